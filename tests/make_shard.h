// Makes small shards for tests: a whitespace vocabulary of N words and sentences of random words.
#ifndef TARN_TESTS_MAKE_SHARD_H
#define TARN_TESTS_MAKE_SHARD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "data/shard_writer.h"
#include "tarn/vocab.h"

enum { MAKE_SHARD_LONGEST = 40 };  // tokens of the longest sentence, end included

// A vocabulary w0, w1, ... with `size` tokens in total.
static inline tarn_vocab *make_vocab(int size) {
  size_t room = 64 + (size_t)size * 12;
  char *text = malloc(room);
  if (!text) abort();
  int used = sprintf(text, "tarn-vocab whitespace 1\nlowercase 0\nsize %d\n<unk>\n<s>\n</s>\n", size);
  for (int i = 3; i < size; i++) used += sprintf(text + used, "w%d\n", i);
  tarn_vocab *vocab;
  if (tarn_vocab_open_memory(&vocab, text, (size_t)used) != TARN_STATUS_OK) abort();
  free(text);
  return vocab;
}

// Writes "<prefix>.tarn" with random sentences of 2 .. MAKE_SHARD_LONGEST tokens.
static inline void make_shard_of(const char *prefix, int64_t pairs, const tarn_vocab *source, const tarn_vocab *target,
                                 uint64_t seed) {
  tarn__shard_writer *writer;
  tarn__random random;
  tarn__random_init(&random, seed, 1);
  if (tarn__shard_writer_open(&writer, prefix, source, target) != TARN_STATUS_OK) abort();
  for (int64_t i = 0; i < pairs; i++) {
    int32_t ids[2][MAKE_SHARD_LONGEST];
    int64_t length[2];
    for (int side = 0; side < 2; side++) {
      length[side] = 1 + (int64_t)tarn__random_below(&random, MAKE_SHARD_LONGEST - 1);
      uint64_t words = (uint64_t)tarn_vocab_size(side ? target : source) - 3;
      for (int64_t k = 0; k < length[side]; k++) ids[side][k] = 3 + (int32_t)tarn__random_below(&random, words);
    }
    if (tarn__shard_writer_put(writer, ids[0], length[0], ids[1], length[1]) != TARN_STATUS_OK) abort();
  }
  if (tarn__shard_writer_commit(&writer) != TARN_STATUS_OK) abort();
}

static inline void make_shard(const char *prefix, int64_t pairs, int source_size, int target_size, uint64_t seed) {
  tarn_vocab *source = make_vocab(source_size);
  tarn_vocab *target = make_vocab(target_size);
  make_shard_of(prefix, pairs, source, target, seed);
  tarn_vocab_close(&source);
  tarn_vocab_close(&target);
}

// Writes "<prefix>.tarn", a stream of random tokens with a period, in windows of `window` tokens; the last one is
// shorter.
static inline void make_stream_shard(const char *prefix, int64_t tokens, int64_t window, int size, uint64_t seed) {
  tarn_vocab *vocab = make_vocab(size);
  tarn__shard_writer *writer;
  tarn__random random;
  tarn__random_init(&random, seed, 1);
  int32_t *ids = malloc((size_t)tokens * sizeof *ids);
  if (!ids || tarn__shard_writer_open(&writer, prefix, NULL, vocab) != TARN_STATUS_OK) abort();
  tarn__shard_writer_continues(writer);
  for (int64_t i = 0; i < tokens; i++)
    ids[i] = i % 3 == 2 ? ids[i - 2] : 3 + (int32_t)tarn__random_below(&random, (uint64_t)size - 3);
  for (int64_t i = 0; i < tokens; i += window)
    if (tarn__shard_writer_put(writer, NULL, 0, ids + i, tokens - i < window ? tokens - i : window) != TARN_STATUS_OK)
      abort();
  if (tarn__shard_writer_commit(&writer) != TARN_STATUS_OK) abort();
  free(ids);
  tarn_vocab_close(&vocab);
}

// The same with the special tokens of masked models, 3 to 5.
static inline tarn_vocab *make_masked_vocab(int size) {
  char text[4096];
  int used = snprintf(text, sizeof text,
                      "tarn-vocab whitespace 2\nlowercase 0\nsize %d\n<unk>\n<s>\n</s>\n<cls>\n<sep>\n<mask>\n", size);
  for (int i = 6; i < size; i++) used += snprintf(text + used, sizeof text - (size_t)used, "w%d\n", i);
  tarn_vocab *vocab;
  if (tarn_vocab_open_memory(&vocab, text, (size_t)used) != TARN_STATUS_OK) abort();
  return vocab;
}

// Writes "<prefix>.tarn", a text of random sentences of 2 .. MAKE_SHARD_LONGEST tokens.
static inline void make_text_shard_of(const char *prefix, int64_t sentences, const tarn_vocab *vocab, uint64_t seed) {
  const int32_t size = tarn_vocab_size(vocab);
  tarn__shard_writer *writer;
  tarn__random random;
  tarn__random_init(&random, seed, 1);
  if (tarn__shard_writer_open(&writer, prefix, NULL, vocab) != TARN_STATUS_OK) abort();
  for (int64_t i = 0; i < sentences; i++) {
    int32_t ids[MAKE_SHARD_LONGEST];
    int64_t length = 1 + (int64_t)tarn__random_below(&random, MAKE_SHARD_LONGEST - 1);
    for (int64_t n = 0; n < length; n++) ids[n] = 3 + (int32_t)tarn__random_below(&random, (uint64_t)size - 3);
    if (tarn__shard_writer_put(writer, NULL, 0, ids, length) != TARN_STATUS_OK) abort();
  }
  if (tarn__shard_writer_commit(&writer) != TARN_STATUS_OK) abort();
}

static inline void make_text_shard(const char *prefix, int64_t sentences, int size, uint64_t seed) {
  tarn_vocab *vocab = make_vocab(size);
  make_text_shard_of(prefix, sentences, vocab, seed);
  tarn_vocab_close(&vocab);
}

#endif
