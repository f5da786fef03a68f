// Preparing data: parallel text, one text for a language model, or sentences with labels become a shard, one
// memory-mapped file of token ids (docs/shard-format.md).
#ifndef TARN_DATA_H
#define TARN_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What happens to a line that gives more than `max_tokens` tokens.
typedef enum tarn_prepare_overlong {
  TARN_PREPARE_OVERLONG_TRUNCATE,  // its first max_tokens - 1 tokens and the end of sentence are kept; counted
  TARN_PREPARE_OVERLONG_DROP,      // the pair is left out; counted
  TARN_PREPARE_OVERLONG_REFUSE     // an error that names file and line
} tarn_prepare_overlong;

typedef struct tarn_prepare_options {
  const char *vocab;               // file of the vocabulary, needed
  const char *target_vocab;        // file of the target side's vocabulary; default NULL: the same
  const char *source, *target;     // text files, one sentence a line, needed unless there is a text
  const char *text;                // one sentence a line, for language models, in place of source and target
  const char *output;              // the shard is written to "<output>.tarn", needed
  bool strict;                     // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int64_t min_tokens;              // shorter sentences (with their end of sentence) are left out and counted; default 2
  int64_t max_tokens;              // longest side of a pair with its end of sentence, 2 .. 2^24; default 1024
  tarn_prepare_overlong overlong;  // default: truncate
  // For a text, one of the two at most; default 0: a row is a line (docs/data.md).
  // `stream`: rows are consecutive windows of so many tokens (2 .. 2^24), across line ends, the last one shorter.
  // Nothing of the text is left out, and min_tokens, max_tokens and overlong have no effect. A line end is the
  // vocabulary's newline (bytes, GPT-2: then the tokens decode to the same bytes), or else its end of sentence.
  // `pack`: rows are whole sentences with their ends, up to so many tokens, and never of two documents, which an empty
  // line separates (DOC-SENTENCES of Liu et al. 2019).
  int64_t stream, pack;
  int threads;  // 0: all that the process may use; default 0. The shard does not depend on it
  // The most bytes of memory that preparing takes, as long as no line has more than a few megabytes; it limits how far
  // the text is read ahead of the thread that writes. TARN_PREPARE_LEAST_MEMORY or more; default 0: a quarter of the
  // available memory (tarn_memory_available()), but at least TARN_PREPARE_LEAST_MEMORY and at most 256 MB, beyond which
  // nothing gets faster. The shard does not depend on it
  int64_t memory;
  // The most bytes of a shard. A set that would have more is written as several shards, its parts, each of at most so
  // many bytes (or of a single row), and "<output>.tarn" is an index that names them: "<output>.0001-<8 digits of its
  // hash>.tarn" and so on, at most 256. Whatever takes a shard takes the index too. TARN_PREPARE_LEAST_SHARD or more;
  // default TARN_PREPARE_SHARD_BYTES
  int64_t shard_bytes;
} tarn_prepare_options;

#define TARN_PREPARE_SHARD_BYTES 4000000000LL
#define TARN_PREPARE_LEAST_SHARD 1000
#define TARN_PREPARE_LEAST_MEMORY 64000000

TARN_API void tarn_prepare_default(tarn_prepare_options *options);

typedef struct tarn_prepare_result {
  int64_t lines;                           // lines of each side
  int64_t pairs;                           // pairs in the shard, or sentences of a text, or its windows or packed rows
  int64_t source_tokens, target_tokens;    // with an end of sentence each
  int64_t source_unknown, target_unknown;  // unknown tokens among them
  int64_t empty;                           // pairs left out because a side has no token
  int64_t brief;                           // pairs left out because a side is shorter than min_tokens
  int64_t dropped;                         // pairs left out because a side is overlong
  int64_t truncated;                       // pairs with a shortened side
  int64_t replaced;                        // lines, of both sides together, in which bytes were replaced by U+FFFD
  int64_t cut;    // lines, of both sides together, so long that they were encoded in parts (tarn_vocab_encode())
  int64_t split;  // parts of them that end within a word
  // Tokens of lines that are not in the shard: cut off by truncation, or of pairs that were left out.
  int64_t source_left_out, target_left_out;
  int64_t longest_source, longest_target;  // tokens of the longest sentence of each side; a text is the target side
  int64_t packed, documents;               // with `pack`: sentences in the rows, and documents they are from
  int64_t bytes, characters;               // with `stream`: of the text, line ends counted as one each
  int64_t parts;                           // shards that were written; if more than 1, there is an index beside them
} tarn_prepare_result;

// Writes the shard, or the parts and their index, atomically: on any failure an older file stays as it was. Memory does
// not grow with the text; the disk needs room for the shard twice. Each sentence ends with the end of sentence of its
// vocabulary. Line ends may be LF or CRLF; a byte order mark at the start of a file is left out. Fails with USAGE
// (options), IO, or DATA: different numbers of lines (the message says both and the first line without a partner), no
// pair left, damaged vocabulary, a file that is not text, a line of more than 2^24 bytes, and what `strict` and
// `overlong` refuse. Warns (tarn/process.h) where more than 1 % of a side's tokens are unknown
// (TARN_VOCAB_UNKNOWN_WARNED) or were cut off by truncation, and where the vocabulary loses joiners that spell words
// (tarn_vocab_keeps_joiners()).
TARN_API tarn_status tarn_prepare_run(tarn_prepare_result *result, const tarn_prepare_options *options) TARN_CHECKED;

// Sentences with labels, from a table. A column is given by its name in the file's first line, which is then a header,
// or by its number, counted from 1.
typedef struct tarn_labelled_options {
  const char *vocab;         // file of the vocabulary, needed
  const char *table;         // the file, one row a line; needed
  const char *label, *text;  // columns, needed
  const char *pair;          // column of a second sentence; default NULL: none
  const char *output;        // the shard is written to "<output>.tarn", needed
  const char *labels_from;   // shard of the training set, whose classes are taken; default NULL: those found here
  bool numbers;              // labels are numbers, for regression; default false: names of classes
  bool per_word;             // a label for each word of a text: as many as words, and divided by white space as they
                             // are; default false: a label a row
  bool header;               // the first line is a header although all columns are given by number
  bool strict;               // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  char delimiter;  // between fields: '\t', without quoting (quotes are text, as in GLUE's files), or ',', ';' or '|',
                   // with which a field may stand in quotes ("" is one) that end on its line; default 0: a tab where
                   // the first line has one, else the comma or semicolon with which it has these columns
  char decimal;    // of labels that are numbers: '.' or ','; default 0: that of the first one that has one
  int64_t max_tokens;              // longest row with its ends of sentence, 4 .. 2^24; default 1024
  tarn_prepare_overlong overlong;  // default: truncate; of two sentences the longer one is cut first
} tarn_labelled_options;

TARN_API void tarn_labelled_default(tarn_labelled_options *options);

typedef struct tarn_labelled_result {
  int64_t lines;           // rows of the file
  int64_t rows;            // in the shard
  int64_t tokens;          // of them, with their ends of sentence
  int64_t unknown;         // unknown tokens among them
  int64_t longest;         // tokens of the longest row
  int64_t dropped;         // rows left out because they are overlong
  int64_t truncated;       // rows that were cut
  int64_t left_out;        // tokens of them that are not in the shard
  int64_t replaced;        // lines in which bytes were replaced by U+FFFD
  int64_t words;           // of the rows, where each word has a label; else 0
  int32_t classes;         // 0: the labels are numbers
  int64_t most;            // rows, or words, of the most frequent class: their share is the accuracy without reading
  double least, greatest;  // of the numbers
} tarn_labelled_result;

// Writes the shard, atomically: on any failure an older file stays as it was. Classes are ordered by the bytes of their
// names, at most 10000 of 255 bytes each. Fails with USAGE (options), IO, or DATA in a line that names file and line:
// a column that is missing or given twice, a delimiter that cannot be found out, quotes that do not end, a line with
// more or fewer fields than the first, an empty label or text, a label that is no number or not in `labels_from`, the
// name of a class that begins with a bar or has a control character, one class only, a sentence that gives no token,
// and what `strict` and `overlong` refuse. Warns as tarn_prepare_run() does.
TARN_API tarn_status tarn_labelled_prepare(tarn_labelled_result *result,
                                           const tarn_labelled_options *options) TARN_CHECKED;

// What a set holds: a shard, or several behind an index.
typedef struct tarn_data_part {
  const char *path, *hash;
  int64_t bytes, rows, source_tokens, target_tokens;
} tarn_data_part;

typedef struct tarn_data_info {
  const char *path, *hash;
  bool text;             // one side, the target; its source counts are 0
  bool windows, packed;  // the rows of a text are windows of a stream, or packed sentences
  int32_t classes;       // of its labels, or 0
  int64_t bytes;         // of all files
  int64_t rows, source_tokens, target_tokens, longest_source, longest_target;
  int64_t source_vocab, target_vocab;  // tokens of the vocabularies
  int64_t part_count;                  // shards; 1: there is no index
  const tarn_data_part *parts;         // [part_count]
} tarn_data_info;

// Whether `prefix` is a shard or an index, judged by its first bytes; where there is nothing of that name, whether
// "<prefix>.tarn" is one.
TARN_API bool tarn_data_is(const char *prefix);
// Opens a set as training does, which checks all of it, and tells what it holds. Fails with IO, DATA or MEMORY. The
// information belongs to the caller, who closes it.
TARN_API tarn_status tarn_data_info_open(tarn_data_info **info, const char *prefix) TARN_CHECKED;
TARN_API void tarn_data_info_close(tarn_data_info **info);

#ifdef __cplusplus
}
#endif
#endif
