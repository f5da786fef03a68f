// A shard: parallel sentences, or those of one text, as token ids in one memory-mapped file, or in several behind an
// index, which are read as if they were one (docs/shard-format.md).
// Opening checks everything, so that the readers need no checks. What they gave is only to be trusted once
// tarn__shard_unchanged() has said that nobody has written into the file since; until then it is safe to use.
//
// A text has one side, the target; its source is a side without tokens, so that a language model reads what a decoder
// reads.
#ifndef TARN_DATA_SHARD_H
#define TARN_DATA_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

// Zero-initialise or open. Read the fields, do not write them.
typedef struct tarn__shard {
  int64_t pairs;                           // of sentences, or sentences of a text; at least 1
  bool text;                               // there is no source: its counts are 0
  int64_t source_tokens, target_tokens;    // sums, with the end of sentence that each sentence has
  int64_t longest_source, longest_target;  // tokens of the longest sentence of each side
  int32_t source_vocab_size, target_vocab_size;
  int32_t source_eos, target_eos;           // ids of the end of sentence
  char source_vocab_hash[TARN__HASH_TEXT];  // as tarn_vocab_hash() gives them
  char target_vocab_hash[TARN__HASH_TEXT];
  char hash[TARN__HASH_TEXT];  // of the contents: equal for equal data, in one file or in several
  char *path;                  // of the file, or of the index
  int64_t file_bytes;          // of all files
  // What a text may say of its rows (version 2 of the format).
  bool continues;  // they are windows of a stream: no end of sentence is added to a row, and it may have one token
  int64_t bytes, characters;  // of a stream's text, line ends counted as one each; 0: not known
  bool packed;                // rows are whole sentences, each with its end
  int32_t classes;            // 0, or at least 2: the classes of its labels
  const char *const *names;   // [classes], or NULL; UTF-8, each another
  const int32_t *labels;      // [pairs] 0 .. classes-1, or NULL
  const float *numbers;       // [pairs] finite, or NULL: to be predicted by regression
  // [target_tokens] in place of labels: the class of the word that begins at a token, -1: none does; NULL: there are
  // none. Those of a row: tarn__shard_word_labels().
  const int32_t *word_labels;
  // [pairs] where the second sentence of a row begins, behind the end of the first; its length where it has none; NULL:
  // no row has.
  const int32_t *segments;
  // Private.
  tarn__map map;
  const int64_t *offsets;  // a copy; 2 * pairs + 1: source 0, target 0, source 1, ...; in tokens
  const uint8_t *ids;
  int id_bytes;    // 2 or 4
  void *sections;  // labels, numbers, segments and names; copies
  // Of several files, whose maps, offsets and ids are their own: the map above is then that of the index.
  struct tarn__shard *parts;  // [part_count]; NULL: there is one file
  int part_count;
  int64_t *first;  // [part_count] the number of each part's first row
} tarn__shard;

// Opens the shard of a prefix (see tarn__shard_path()). Reads each file once: magic, version, sizes, offsets,
// every id and both hashes are checked, ids by all threads of the pool. Fails with IO or DATA and leaves the shard
// closed: DATA where there is no such file but one that is named like the prefix, such as text, which the message says.
tarn_status tarn__shard_open(tarn__shard *shard, const char *prefix) TARN_CHECKED;
void tarn__shard_close(tarn__shard *shard);

// tarn__map_check(), tarn__map_judge() and tarn__map_release() of all files.
tarn_status tarn__shard_unchanged(const tarn__shard *shard) TARN_CHECKED;
tarn_status tarn__shard_judge(const tarn__shard *shard, tarn_status status) TARN_CHECKED;
void tarn__shard_release(const tarn__shard *shard);

// The path of a shard from its prefix: "<prefix>.tarn", or `prefix` itself if it ends in ".tarn".
tarn_status tarn__shard_path(char *path, size_t size, const char *prefix) TARN_CHECKED;
// The same of a shard that is read: `prefix` itself comes first if there is a shard of that very name. Where another
// file has it, a line says which of the two is read.
tarn_status tarn__shard_find(char *path, size_t size, const char *prefix) TARN_CHECKED;

// Tokens of a sentence, with its end of sentence; at least 2, or 0 for the source of a text; of a window of a stream at
// least 1. pair: 0 .. pairs-1.
int64_t tarn__shard_source_length(const tarn__shard *shard, int64_t pair);
int64_t tarn__shard_target_length(const tarn__shard *shard, int64_t pair);
// What a model reads before the first token of a target: the end of sentence, or, of a window of a stream behind the
// first one, the last token of the window before.
int32_t tarn__shard_before(const tarn__shard *shard, int64_t pair);
// Copies the ids of a sentence (as many as its length) to `ids`.
void tarn__shard_source(const tarn__shard *shard, int64_t pair, int32_t *ids);
void tarn__shard_target(const tarn__shard *shard, int64_t pair, int32_t *ids);
// The labels of the words of a row, one a token, where there are word_labels.
const int32_t *tarn__shard_word_labels(const tarn__shard *shard, int64_t pair);

#endif
