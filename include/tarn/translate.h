// Translation of raw text by a trained model: tokenization, beam search, detokenization (docs/translation.md).
//
//   tarn_translator_options options;
//   tarn_translator_default(&options);
//   tarn_translator *translator;
//   status = tarn_translator_open(&translator, "runs/model2", &options);
//   status = tarn_translator_lines(translator, results, lines, lengths, count);
//   tarn_translator_close(&translator);
//
// A translator is used by one thread at a time; it computes with the pool of threads of the process, whose size it
// sets.
#ifndef TARN_TRANSLATE_H
#define TARN_TRANSLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/checkpoint.h"
#include "tarn/config.h"
#include "tarn/plan.h"
#include "tarn/process.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What happens to a line of more tokens than the model takes (model.max_length, end of sentence included).
typedef enum tarn_translate_overlong {
  TARN_TRANSLATE_OVERLONG_TRUNCATE,  // its first max_length - 1 tokens are translated; counted
  TARN_TRANSLATE_OVERLONG_REFUSE     // DATA, with the number of the line
} tarn_translate_overlong;

// Arithmetic of a translation.
typedef enum tarn_translate_precision {
  TARN_TRANSLATE_PRECISION_FP32,
  TARN_TRANSLATE_PRECISION_BF16,  // weights and activations; sums in fp32
  TARN_TRANSLATE_PRECISION_INT8,  // weights of products as 8-bit integers with a scale for each output, activations
                                  // rounded likewise, row by row, before each product; sums exact, the rest in fp32;
                                  // of translation models also the embeddings that are looked up
  TARN_TRANSLATE_PRECISION_AUTO,  // int8 for a file that holds int8 (tarn_checkpoint_export_int8()), else fp32
  TARN_TRANSLATE_PRECISION_COUNT
} tarn_translate_precision;

// "fp32", "bf16", "int8" or "auto"; NULL for another value.
TARN_API const char *tarn_translate_precision_name(tarn_translate_precision precision);

// Where a default says "description", the value is that of `translate` in the description that the checkpoint holds.
typedef struct tarn_translator_options {
  int64_t beam;           // hypotheses a sentence, 1 .. 1024; 1: greedy; default 0: description
  double length_penalty;  // score = log-probability / length^length_penalty; default NAN: description
  double max_len_a;       // a translation has at most max_len_a * source tokens + max_len_b tokens; default
  int64_t max_len_b;      // NAN and -1: description
  int64_t max_tokens;     // most source tokens translated together; default 0: description
  int64_t n_best;         // hypotheses returned for a line, 1 .. beam; default 1
  int64_t window;         // lines that are read, sorted by length and translated together by
                          // tarn_translator_file(), 1 .. 10000000; default 2000
  tarn_translate_precision precision;  // default auto
  tarn_translate_overlong overlong;    // default: truncate
  bool strict;                         // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;                         // 0: all that the process may use; default 0
  tarn_prune prune;                    // layers left out of the model; default none
  tarn_profile *profile;               // measures translation; the caller's. Default NULL: nothing is measured
  tarn_ranks *ranks;                   // share the work of tarn_translator_file() (tarn/process.h); the caller's, and
                                       // open as long as the translator. Default NULL: this process is alone
} tarn_translator_options;

TARN_API void tarn_translator_default(tarn_translator_options *options);

// One translation of a line.
typedef struct tarn_translate_hypothesis {
  const char *text;  // `length` bytes of valid UTF-8 and a zero byte; line ends and zero bytes in it are blanks
  size_t length;
  int64_t tokens;          // with the end of sentence
  double log_probability;  // natural logarithm, sum over the tokens
  double score;            // log_probability / tokens^length_penalty
} tarn_translate_hypothesis;

// What became of a line. A line without a token (empty, or blanks only) has one hypothesis: an empty text without
// tokens, with score 0.
typedef struct tarn_translate_result {
  int64_t number;                               // of the line, from 1
  const tarn_translate_hypothesis *hypotheses;  // best first
  int64_t count;                                // 1 .. n_best
  int64_t source_tokens;                        // that were translated, with the end of sentence; 0: an empty line
  bool truncated;
} tarn_translate_result;

// Totals of a translator since it was opened.
typedef struct tarn_translate_summary {
  int64_t lines;
  int64_t empty, truncated, replaced;    // lines without a token; shortened; in which invalid UTF-8 was replaced
  int64_t cut;                           // lines so long that they were encoded in parts (tarn_vocab_encode())
  int64_t unknown;                       // source tokens that are not in the vocabulary
  int64_t source_tokens, target_tokens;  // with ends of sentence; target: of the best hypotheses
  double seconds;                        // spent in translation
} tarn_translate_summary;

typedef struct tarn_translator tarn_translator;

// Opens a checkpoint, or of a run directory the one that tarn_checkpoint_find() takes (tarn/checkpoint.h). Fails
// with USAGE (options), IO, DATA (a damaged checkpoint), or MEMORY.
TARN_API tarn_status tarn_translator_open(tarn_translator **translator, const char *path,
                                          const tarn_translator_options *options) TARN_CHECKED;
TARN_API void tarn_translator_close(tarn_translator **translator);

// Sets beam, length_penalty, max_len_a, max_len_b, max_tokens and n_best for the same model, which is not read again;
// defaults are again those of the description, and the other options stay as they were. Results of earlier calls are
// gone. Ranks that share the work must all set the same. If it fails (USAGE for the options, or MEMORY), the translator
// is as before.
TARN_API tarn_status tarn_translator_set(tarn_translator *translator,
                                         const tarn_translator_options *options) TARN_CHECKED;

// The file that was opened, and the options with every default filled in (precision is never auto); valid until close.
TARN_API const char *tarn_translator_path(const tarn_translator *translator);
TARN_API const tarn_translator_options *tarn_translator_settings(const tarn_translator *translator);

// Translates `count` lines of lengths[i] bytes and fills results [count] in the order of the lines. What they point to
// belongs to the translator and lives until its next call. Fails with DATA (what `strict` and `overlong` refuse),
// NUMERIC (the model gives no numbers) or MEMORY.
TARN_API tarn_status tarn_translator_lines(tarn_translator *translator, tarn_translate_result *results,
                                           const char *const *lines, const size_t *lengths, size_t count) TARN_CHECKED;

// The tokens of hypothesis `place` of line `line`, both from 0, of the last call of tarn_translator_lines(): *ids and
// *log_probabilities (natural logarithms) [the hypothesis's `tokens`], the end of sentence at the end, valid like the
// results. Returns `tokens`; 0, and NULL for both, for an empty line or if there is no such hypothesis.
TARN_API int64_t tarn_translator_tokens(const tarn_translator *translator, const int32_t **ids,
                                        const float **log_probabilities, size_t line, int64_t place);

// The text of a token of the target vocabulary ("" for an id that is not one), valid until close.
TARN_API const char *tarn_translator_piece(const tarn_translator *translator, int32_t id);

// Receives the result of a line; anything but TARN_STATUS_OK stops the translation and is returned to the caller.
typedef tarn_status (*tarn_translate_sink)(void *user, const tarn_translate_result *result);

// Translates a text file, or a pipe or device ("-": standard input), and gives each line's result to `sink`, in order.
// Numbers of lines are those of the file. Fails as tarn_translator_lines() does, and with IO, DATA (a file that is not
// text), or what the sink returns.
TARN_API tarn_status tarn_translator_file(tarn_translator *translator, const char *path, tarn_translate_sink sink,
                                          void *user) TARN_CHECKED;

// What all calls so far did.
TARN_API void tarn_translator_summary(const tarn_translator *translator, tarn_translate_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
