// Inside of tarn_translator (tarn/translate.h): its state, and what lines that are translated together and lines that
// join a running batch have in common.
#ifndef TARN_DECODE_TRANSLATE_STATE_H
#define TARN_DECODE_TRANSLATE_STATE_H

#include "base/memory.h"
#include "decode/forced_text.h"
#include "decode/steering.h"
#include "decode/translate.h"
#include "store/checkpoint.h"
#include "tarn/translate.h"
#include "text/line_block.h"
#include "text/repair.h"

// A line of which a thread has made tokens: `count` of them from `begin` of those of that thread's encoder (-1: none
// has), and what tarn_vocab_ids says of them.
typedef struct tarn__ready_line {
  int encoder;
  size_t begin, count, parts, broken;
} tarn__ready_line;

struct tarn_translator {
  tarn_translator_options options;
  tarn__checkpoint *checkpoint;
  tarn__steering steering;
  tarn__forced_text forced;
  tarn__translator *translator;
  tarn_translate_summary summary;

  // The lines of one call. Lines without a token have no sentence.
  tarn_vocab_ids line_ids;
  tarn_vocab_text text;
  int32_t *ids;                     // of all sentences
  int64_t *offsets;                 // [sentences + 1]
  tarn__translation *translations;  // [lines]; empty for lines without a token
  size_t ids_capacity, offsets_capacity, translations_capacity, lines;
  int32_t *prefix_ids;      // of all sentences, with options.prefixes
  int64_t *prefix_offsets;  // [sentences + 1]
  size_t prefix_ids_capacity, prefix_offsets_capacity, prefix_count;
  tarn_vocab_ids whole;  // a prefix and what follows
  tarn__repaired repaired;
  tarn__ready_line *ready;              // [ready_count] lines that are taken next; 0: none was encoded ahead
  struct tarn__line_encoder *encoders;  // [encoder_count] one for each thread, or more
  size_t ready_count, ready_capacity, encoder_count;
  int64_t before;  // lines of the file before this call
  tarn__arena results;

  // The window of tarn_translator_file().
  tarn__line_block block;
  tarn_translate_result *window;
  size_t window_capacity;
};

// The translator's options with those of `options` that can be set, complete and checked; their steering and what they
// force, whose copies replace their texts; and all of it as options of tarn__translator_set().
tarn_status tarn__translate_options(const tarn_translator *translator, tarn_translator_options *wanted,
                                    const tarn_translator_options *options) TARN_CHECKED;
tarn_status tarn__translate_steer(tarn__steering *steering, tarn__forced_text *forced, tarn_translator_options *options,
                                  const tarn__checkpoint *checkpoint) TARN_CHECKED;
void tarn__translate_core(tarn__translator_options *core, const tarn_translator *translator,
                          const tarn_translator_options *options, const tarn__steering *steering);
// Whether translations may have to contain something.
bool tarn__translate_forces(const tarn_translator_options *options);

// The columns of a line; NULL: there is none.
typedef struct tarn__columns {
  size_t length, prefix_length, forced_length;  // length: of the sentence, in front
  const char *prefix, *forced;
} tarn__columns;
tarn__columns tarn__translate_split(const tarn_translator_options *options, const char *line, size_t length);

// The tokens of a sentence, with their end if there are any, or of a prefix (NULL: none), in translator->line_ids.
tarn_status tarn__translate_encode(tarn_translator *translator, tarn_translate_result *result, const char *line,
                                   size_t length) TARN_CHECKED;
tarn_status tarn__translate_encode_prefix(tarn_translator *translator, const char *text, size_t length) TARN_CHECKED;
// Encodes all lines of a call, and their columns: fills ids, offsets, prefix_ids and `forced`. *sentences: lines with a
// token.
tarn_status tarn__translate_encode_lines(tarn_translator *translator, tarn_translate_result *results,
                                         const char *const *lines, const size_t *lengths, size_t count,
                                         int64_t *sentences) TARN_CHECKED;
void tarn__line_encoders_close(tarn_translator *translator);
// Appends tokens to those of all sentences, of which there are *at.
tarn_status tarn__translate_add(tarn_translator *translator, const int32_t *ids, size_t count, size_t *at) TARN_CHECKED;

// Where the result of a line comes from.
typedef struct tarn__translated {
  const tarn_translator_options *options;
  tarn__translation *translation;  // of samples all, of which the best remain
  tarn__phrase prefix;
  tarn__arena *memory;  // of the result
} tarn__translated;
tarn_status tarn__translate_result(tarn_translator *translator, tarn_translate_result *result,
                                   const tarn__translated *from) TARN_CHECKED;

// Makes one line of a text.
void tarn__translate_line(char *text, size_t length);

#endif
