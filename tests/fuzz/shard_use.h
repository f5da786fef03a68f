// What the targets of shards do with one that was opened: every sentence with what is said of it, and an epoch of
// batches.
#ifndef TARN_TESTS_FUZZ_SHARD_USE_H
#define TARN_TESTS_FUZZ_SHARD_USE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/batch.h"
#include "fuzz/fuzz.h"

enum { MOST_BATCHES = 64 };

static inline void shard_use_sentences(const tarn__shard *shard) {
  for (int64_t i = 0; i < shard->pairs; i++) {
    int64_t source = tarn__shard_source_length(shard, i), target = tarn__shard_target_length(shard, i);
    int32_t *ids = calloc((size_t)(source > target ? source : target) + 1, sizeof *ids);
    if (!ids) return;
    tarn__shard_source(shard, i, ids);
    FUZZ_REQUIRE(shard->text || ids[source - 1] == shard->source_eos);
    tarn__shard_target(shard, i, ids);
    FUZZ_REQUIRE(shard->continues || ids[target - 1] == shard->target_eos);
    for (int64_t k = 0; k < target; k++) FUZZ_REQUIRE(ids[k] >= 0 && ids[k] < shard->target_vocab_size);
    free(ids);
  }
}

static inline void shard_use_labels(const tarn__shard *shard) {
  const bool labels = shard->labels || shard->word_labels;
  FUZZ_REQUIRE(labels == (shard->classes >= 2) && !(labels && shard->numbers));
  for (int32_t c = 0; c < shard->classes; c++) FUZZ_REQUIRE(strlen(shard->names[c]) > 0);
  for (int64_t i = 0; i < shard->pairs; i++) {
    const int64_t length = tarn__shard_target_length(shard, i);
    FUZZ_REQUIRE(!shard->labels || (shard->labels[i] >= 0 && shard->labels[i] < shard->classes));
    FUZZ_REQUIRE(!shard->numbers || isfinite(shard->numbers[i]));
    FUZZ_REQUIRE(!shard->segments || (shard->segments[i] >= 2 && shard->segments[i] <= length));
  }
}

static inline void shard_use_batches(const tarn__shard *shard) {
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.max_tokens = 64;
  options.longest = 32;
  tarn__batcher *batcher;
  if (!fuzz_good(tarn__batcher_open(&batcher, shard, &options))) return;
  int64_t sentences = 0, batches = tarn__batcher_batches(batcher);
  for (int64_t i = 0; i < batches && i < MOST_BATCHES; i++) {
    tarn__batch batch;
    tarn__batcher_next(batcher, &batch);
    sentences += batch.target.sentences;
    FUZZ_REQUIRE(batch.target.rows <= 64 && batch.source.rows <= 64);
  }
  FUZZ_REQUIRE(batches > MOST_BATCHES || sentences == shard->pairs - tarn__batcher_left_out(batcher));
  tarn__batcher_close(&batcher);
}

// The pixels of all images, in patches as large as they allow, up to 4.
static inline void shard_use_images(tarn__shard *shard) {
  const tarn__image_size size = shard->image;
  int32_t patch = 4;
  if (!size.height) return;
  while (size.height % patch != 0 || size.width % patch != 0) patch--;
  tarn__shard_cut(shard, patch);
  uint8_t *pixels = calloc((size_t)tarn__image_bytes(size), 1);
  for (int64_t i = 0; pixels && i < shard->pairs; i++) tarn__shard_pixels(shard, i, pixels);
  free(pixels);
}

static inline void shard_use(tarn__shard *shard) {
  shard_use_images(shard);
  shard_use_sentences(shard);
  shard_use_labels(shard);
  shard_use_batches(shard);
}

#endif
