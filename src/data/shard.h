// A shard: parallel sentences, or those of one text, as token ids in one memory-mapped file, or in several behind an
// index, which are read as one (docs/shard-format.md).
// Opening checks everything, so the readers need no checks. Their results are safe to use, but can be trusted only
// after tarn__shard_unchanged() has confirmed that the file has not been written to since.
//
// A text has one side, the target; its source has no tokens, so a language model reads the same as a decoder.
#ifndef TARN_DATA_SHARD_H
#define TARN_DATA_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "data/image_cut.h"

// Zero-initialise or open. The fields are read-only.
typedef struct tarn__shard {
  int64_t pairs;                           // pairs of sentences, or sentences of a text; at least 1
  bool text;                               // there is no source: its counts are 0
  int64_t source_tokens, target_tokens;    // sums, including the end of each sentence
  int64_t longest_source, longest_target;  // tokens of the longest sentence of each side
  int32_t source_vocab_size, target_vocab_size;
  int32_t source_eos, target_eos;           // ids of the end of sentence
  char source_vocab_hash[TARN__HASH_TEXT];  // as tarn_vocab_hash() gives them
  char target_vocab_hash[TARN__HASH_TEXT];
  char hash[TARN__HASH_TEXT];  // of the contents: equal for equal data, in one file or several
  char *path;                  // of the file, or of the index
  int64_t file_bytes;          // of all files
  // Properties of the rows of a text (version 2 of the format).
  bool continues;  // rows are windows of a stream: without an added end of sentence, and possibly of one token
  int64_t bytes, characters;  // of a stream's text, each line end counted as one; 0: unknown
  bool packed;                // rows are whole sentences, each with its end
  int32_t classes;            // 0, or at least 2: the classes of its labels
  const char *const *names;   // [classes], or NULL; UTF-8, all different
  const int32_t *labels;      // [pairs] 0 .. classes-1, or NULL
  const float *numbers;       // [pairs] finite, to predict by regression, or NULL
  // [target_tokens] instead of labels: the class of the word that begins at a token, or -1 if none does; NULL: no
  // classes of words. Those of a row: tarn__shard_word_labels().
  const int32_t *word_labels;
  // [pairs] start of the second sentence of a row, after the end of the first; the row's length if it has none; NULL:
  // no row has one.
  const int32_t *segments;
  tarn__image_size image;  // rows are images, in place of sentences; height 0: they are not
  // Images are cut into patches of so many pixels (tarn__shard_cut()); 0: not yet, and a row has a token for each byte.
  int32_t patch;
  // Private.
  tarn__map map;
  const int64_t *offsets;  // a copy; 2 * pairs + 1: source 0, target 0, source 1, ...; in tokens
  const uint8_t *ids;
  int id_bytes;    // 2 or 4; of images 1
  void *sections;  // labels, numbers, segments and names; copies
  // For several files, which have their own maps, offsets and ids; the map above is then that of the index.
  struct tarn__shard *parts;  // [part_count]; NULL: one file
  int part_count;
  int64_t *first;  // [part_count] the number of each part's first row
} tarn__shard;

// Opens the shard of a prefix (see tarn__shard_path()). Reads each file once: magic, version, sizes, offsets, every id
// and both hashes are checked, ids by all threads of the pool. Fails with IO or DATA and leaves the shard closed: DATA
// if there is no such file but another one is named like the prefix, such as a text; the message names it.
tarn_status tarn__shard_open(tarn__shard *shard, const char *prefix) TARN_CHECKED;
void tarn__shard_close(tarn__shard *shard);

// tarn__map_check(), tarn__map_judge() and tarn__map_release() of all files.
tarn_status tarn__shard_unchanged(const tarn__shard *shard) TARN_CHECKED;
tarn_status tarn__shard_judge(const tarn__shard *shard, tarn_status status) TARN_CHECKED;
void tarn__shard_release(const tarn__shard *shard);

// The path of a shard from its prefix: "<prefix>.tarn", or `prefix` itself if it ends in ".tarn".
tarn_status tarn__shard_path(char *path, size_t size, const char *prefix) TARN_CHECKED;
// The same for a shard to read: `prefix` itself takes precedence if it is a shard. If another file has that name, a
// message names the one that is read.
tarn_status tarn__shard_find(char *path, size_t size, const char *prefix) TARN_CHECKED;

// Tokens of a sentence, including its end: at least 2, 0 for the source of a text, at least 1 for a window of a stream.
// pair: 0 .. pairs-1.
int64_t tarn__shard_source_length(const tarn__shard *shard, int64_t pair);
int64_t tarn__shard_target_length(const tarn__shard *shard, int64_t pair);
// The token that a model reads before the first token of a target: the end of sentence, or, for windows of a stream
// after the first, the last token of the window before.
int32_t tarn__shard_before(const tarn__shard *shard, int64_t pair);
// Copies the ids of a sentence (as many as its length) to `ids`.
void tarn__shard_source(const tarn__shard *shard, int64_t pair, int32_t *ids);
void tarn__shard_target(const tarn__shard *shard, int64_t pair, int32_t *ids);
// Makes patches the tokens of images, whose sides they must divide: the lengths of rows and their sums count them, and
// every id is TARN__PATCH (text/patches.h). The pixels of a row: [its length, tarn__patch_bytes()].
void tarn__shard_cut(tarn__shard *shard, int32_t patch);
void tarn__shard_pixels(const tarn__shard *shard, int64_t row, uint8_t *pixels);
// The labels of the words of a row, one a token, where there are word_labels.
const int32_t *tarn__shard_word_labels(const tarn__shard *shard, int64_t pair);

#endif
