// Data preparation: turns parallel text, monolingual text for a language model, or labelled sentences into a shard, a
// memory-mapped file of token ids (docs/shard-format.md).
#ifndef TARN_DATA_H
#define TARN_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// How to handle a line of more than `max_tokens` tokens.
typedef enum tarn_prepare_overlong {
  TARN_PREPARE_OVERLONG_TRUNCATE,  // keep its first max_tokens - 1 tokens and the end of sentence; counted
  TARN_PREPARE_OVERLONG_DROP,      // leave out the pair; counted
  TARN_PREPARE_OVERLONG_REFUSE     // fail, naming file and line
} tarn_prepare_overlong;

typedef struct tarn_prepare_options {
  const char *vocab;               // vocabulary file; required
  const char *target_vocab;        // vocabulary file of the target side; default NULL: the same
  const char *source, *target;     // text files, one sentence per line; required unless `text` is set
  const char *text;                // for language models, instead of source and target: one sentence per line
  const char *output;              // the shard is written to "<output>.tarn"; required
  bool strict;                     // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int64_t min_tokens;              // shorter sentences (with end of sentence) are left out and counted; default 2
  int64_t max_tokens;              // longest side of a pair, with end of sentence, 2 .. 2^24; default 1024
  tarn_prepare_overlong overlong;  // default: truncate
  // For a text; at most one of the two. Default 0: one row per line (docs/data.md).
  // `stream`: rows are consecutive windows of this many tokens (2 .. 2^24), across line ends; the last one may be
  // shorter. The whole text is kept; min_tokens, max_tokens and overlong have no effect. A line end is the vocabulary's
  // newline (bytes, GPT-2: the tokens decode to the same bytes), or else its end of sentence.
  // `pack`: rows are whole sentences with their ends, of up to this many tokens, and never span two documents. An empty
  // line separates documents (DOC-SENTENCES of Liu et al. 2019).
  int64_t stream, pack;
  int threads;  // 0: all available to the process; default 0. Does not change the shard
  // Memory limit of preparation in bytes, valid if no line is longer than a few megabytes; it limits how far reading
  // may run ahead of the writing thread. At least TARN_PREPARE_LEAST_MEMORY; default 0: a quarter of the available
  // memory (tarn_memory_available()), but at least TARN_PREPARE_LEAST_MEMORY and at most 256 MB, above which there is
  // no gain in speed. Does not change the shard
  int64_t memory;
  // Largest size of a shard in bytes. A larger set is written as several shards, its parts, each of at most this size
  // (or of a single row), and "<output>.tarn" is an index that names them: "<output>.0001-<8 digits of its hash>.tarn"
  // and so on, at most 256. An index can be used wherever a shard can. At least TARN_PREPARE_LEAST_SHARD; default
  // TARN_PREPARE_SHARD_BYTES
  int64_t shard_bytes;
} tarn_prepare_options;

#define TARN_PREPARE_SHARD_BYTES 4000000000LL
#define TARN_PREPARE_LEAST_SHARD 1000
#define TARN_PREPARE_LEAST_MEMORY 64000000

TARN_API void tarn_prepare_default(tarn_prepare_options *options);

typedef struct tarn_prepare_result {
  int64_t lines;                           // lines of each side
  int64_t pairs;                           // pairs in the shard; of a text its sentences, windows or packed rows
  int64_t source_tokens, target_tokens;    // each sentence with its end of sentence
  int64_t source_unknown, target_unknown;  // unknown tokens among these
  int64_t empty;                           // pairs left out because a side has no token
  int64_t brief;                           // pairs left out because a side is shorter than min_tokens
  int64_t dropped;                         // pairs left out because a side is overlong
  int64_t truncated;                       // pairs with a truncated side
  int64_t replaced;                        // lines, of both sides together, with bytes replaced by U+FFFD
  int64_t cut;    // lines, of both sides together, encoded in parts because of their length (tarn_vocab_encode())
  int64_t split;  // parts of these that end within a word
  // Tokens of the lines missing from the shard: cut off by truncation, or of pairs left out.
  int64_t source_left_out, target_left_out;
  int64_t longest_source, longest_target;  // tokens of the longest sentence of each side; a text is the target side
  int64_t packed, documents;               // with `pack`: sentences in the rows, and their documents
  int64_t bytes, characters;               // with `stream`: of the text; each line end counts as one
  int64_t parts;                           // shards written; if more than 1, there is an index too
} tarn_prepare_result;

// Writes the shard, or the parts and their index, atomically: on failure an older file is unchanged. Memory does not
// grow with the text; the disk needs space for twice the shard. Each sentence gets the end of sentence of its
// vocabulary. Line ends may be LF or CRLF; a byte order mark at the start of a file is skipped. Fails with USAGE
// (options), IO, or DATA: different numbers of lines (the message gives both and the first line without a partner), no
// pair left, a damaged vocabulary, a file that is not text, a line of more than 2^24 bytes, input refused by `strict`
// or `overlong`. Warns (tarn/process.h) if more than 1 % of a side's tokens are unknown (TARN_VOCAB_UNKNOWN_WARNED) or
// were cut off by truncation, and if the vocabulary loses joiners used to spell words (tarn_vocab_keeps_joiners()).
TARN_API tarn_status tarn_prepare_run(tarn_prepare_result *result, const tarn_prepare_options *options) TARN_CHECKED;

// Labelled sentences from a table. Columns are given by name, if the first line is a header, or by number from 1.
typedef struct tarn_labelled_options {
  const char *vocab;         // vocabulary file; required
  const char *table;         // the file, one row per line; required
  const char *label, *text;  // columns; required
  const char *pair;          // column of a second sentence; default NULL: none
  const char *output;        // the shard is written to "<output>.tarn"; required
  const char *labels_from;   // shard of the training set, whose classes are used; default NULL: those found here
  bool numbers;              // labels are numbers, for regression; default false: class names
  bool per_word;             // one label per word of the text: as many labels as words, also separated by white space;
                             // default false: one label per row
  bool header;               // the first line is a header, even if all columns are given by number
  bool strict;               // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  char delimiter;  // between fields: '\t', without quoting (quotes are text, as in GLUE's files), or ',', ';' or '|',
                   // with which a field may be quoted ("" is one quote) within its line; default 0: a tab if the first
                   // line has one, else the comma or semicolon that yields these columns
  char decimal;    // of numeric labels: '.' or ','; default 0: that of the first label that has one
  int64_t max_tokens;              // longest row with its ends of sentence, 4 .. 2^24; default 1024
  tarn_prepare_overlong overlong;  // default: truncate; of two sentences the longer one is cut first
} tarn_labelled_options;

TARN_API void tarn_labelled_default(tarn_labelled_options *options);

typedef struct tarn_labelled_result {
  int64_t lines;           // rows of the file
  int64_t rows;            // in the shard
  int64_t tokens;          // in the shard, with ends of sentence
  int64_t unknown;         // unknown tokens among these
  int64_t longest;         // tokens of the longest row
  int64_t dropped;         // rows left out because they are overlong
  int64_t truncated;       // truncated rows
  int64_t left_out;        // tokens missing from the shard because of that
  int64_t replaced;        // lines with bytes replaced by U+FFFD
  int64_t words;           // of the rows, if each word has a label; else 0
  int32_t classes;         // 0: the labels are numbers
  int64_t most;            // rows, or words, of the most frequent class; their share is the majority-class accuracy
  double least, greatest;  // of the numbers
} tarn_labelled_result;

// Writes the shard atomically: on failure an older file is unchanged. Classes are sorted by the bytes of their names;
// at most 10000, of at most 255 bytes each. Fails with USAGE (options), IO, or DATA, naming file and line: a column
// that is missing or given twice, an undetectable delimiter, unterminated quotes, a line with more or fewer fields than
// the first, an empty label or text, a label that is not a number or not in `labels_from`, a class name that begins
// with a bar or contains a control character, a single class, a sentence without tokens, input refused by `strict` or
// `overlong`. Warns like tarn_prepare_run().
TARN_API tarn_status tarn_labelled_prepare(tarn_labelled_result *result,
                                           const tarn_labelled_options *options) TARN_CHECKED;

// The contents of a set: one shard, or several with an index.
typedef struct tarn_data_part {
  const char *path, *hash;
  int64_t bytes, rows, source_tokens, target_tokens;
} tarn_data_part;

typedef struct tarn_data_info {
  const char *path, *hash;
  bool text;             // one side, the target; source counts are 0
  bool windows, packed;  // the rows of a text are windows of a stream, or packed sentences
  int32_t classes;       // of its labels, or 0
  int64_t bytes;         // of all files
  int64_t rows, source_tokens, target_tokens, longest_source, longest_target;
  int64_t source_vocab, target_vocab;  // tokens of the vocabularies
  int64_t part_count;                  // shards; 1: no index
  const tarn_data_part *parts;         // [part_count]
  // Of images, whose tokens are their bytes: pixels, and 1 (grey) or 3 (colour) channels; else 0.
  int height, width, channels;
  const char *const *class_names;  // [classes], sorted by their bytes; UTF-8 without control characters
} tarn_data_info;

// Whether `prefix` is a shard or an index, judged by its first bytes; if there is no such file, whether "<prefix>.tarn"
// is one.
TARN_API bool tarn_data_is(const char *prefix);
// Opens a set as training does, with all its checks, and describes its contents. Fails with IO, DATA or MEMORY. The
// caller closes the result.
TARN_API tarn_status tarn_data_info_open(tarn_data_info **info, const char *prefix) TARN_CHECKED;
TARN_API void tarn_data_info_close(tarn_data_info **info);

#ifdef __cplusplus
}
#endif
#endif
