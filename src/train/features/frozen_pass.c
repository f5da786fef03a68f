#include "train/features/frozen_pass.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/work.h"

// Source sentences that are computed together, adjacent in the shard.
typedef struct pack {
  int64_t most_rows, longest;  // rows of a batch; tokens of the longest sentence in training
  int64_t sentences, longest_packed;
  int32_t *ids, *positions;  // [most_rows]
  int32_t *offsets;          // [most_rows / 2 + 1]; a sentence has at least 2 tokens
} pack;

static tarn_status pack_open(pack *p, const tarn__stepper *stepper, const tarn__shard *shard) {
  const tarn_config *config = stepper->model->config;
  *p = (pack){.most_rows = config->train.max_tokens, .longest = config->model.max_length};
  if (p->most_rows > shard->source_tokens) p->most_rows = shard->source_tokens;
  if (p->longest > p->most_rows) p->longest = p->most_rows;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)p->most_rows, sizeof(int32_t)));
  p->ids = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)p->most_rows, sizeof(int32_t)));
  p->positions = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)p->most_rows / 2 + 1, sizeof(int32_t)));
  p->offsets = memory;
  return TARN_STATUS_OK;
}

static void pack_close(pack *p) {
  tarn__free(p->ids);
  tarn__free(p->positions);
  tarn__free(p->offsets);
}

// Computes and writes the packed sentences.
static tarn_status flush(pack *p, tarn__stepper *stepper, tarn__frozen_writer *writer) {
  if (p->sentences == 0) return TARN_STATUS_OK;
  const void *rows;
  tarn__packed_positions(p->positions, p->offsets, p->sentences);
  tarn__packed source = {.sentences = p->sentences,
                         .rows = p->offsets[p->sentences],
                         .longest = p->longest_packed,
                         .ids = p->ids,
                         .positions = p->positions,
                         .offsets = p->offsets};
  TARN_TRY(tarn__stepper_bottom(stepper, &rows, &source));
  TARN_TRY(tarn__frozen_writer_put(writer, rows, source.rows));
  p->longest_packed = 0;
  p->sentences = 0;
  return TARN_STATUS_OK;
}

// A sentence that is in no batch: zeros preserve the positions of the others.
static tarn_status skip(tarn__frozen_writer *writer, int64_t rows) {
  void *zeros;
  TARN_TRY(tarn__alloc(&zeros, TARN__MEMORY_OTHER, 1, writer->row_bytes));
  tarn_status status = TARN_STATUS_OK;
  for (int64_t r = 0; r < rows && status == TARN_STATUS_OK; r++) status = tarn__frozen_writer_put(writer, zeros, 1);
  tarn__free(zeros);
  return status;
}

static tarn_status run_all(pack *p, tarn__stepper *stepper, tarn__frozen_writer *writer, const tarn__shard *shard,
                           tarn__work *work, const volatile sig_atomic_t *stop) {
  for (int64_t i = 0; i < shard->pairs; i++) {
    tarn__work_at(work, (double)i, (double)i / (double)shard->pairs);
    int64_t length = tarn__shard_source_length(shard, i);
    bool taken = length <= p->longest;
    if (!taken || p->offsets[p->sentences] + length > p->most_rows) {
      TARN_REQUIRE(!stop || !*stop, INTERRUPTED, "stopped while computing the outputs of frozen layers");
      TARN_TRY(flush(p, stepper, writer));
    }
    if (!taken) {
      TARN_TRY(skip(writer, length));
      continue;
    }
    tarn__shard_source(shard, i, p->ids + p->offsets[p->sentences]);
    p->offsets[p->sentences + 1] = p->offsets[p->sentences] + (int32_t)length;
    p->sentences++;
    if (length > p->longest_packed) p->longest_packed = length;
  }
  return flush(p, stepper, writer);
}

static tarn_status check_disk(const char *path, size_t bytes) {
  char folder[PATH_MAX];
  uint64_t available;
  TARN_REQUIRE(snprintf(folder, sizeof folder, "%s", path) < (int)sizeof folder, IO, "%s: the path is too long", path);
  char *slash = strrchr(folder, '/');
  if (slash) *(slash == folder ? slash + 1 : slash) = '\0';
  TARN_TRY(tarn__disk_free(&available, slash ? folder : "."));
  TARN_REQUIRE(available >= bytes, IO,
               "%s: the outputs of frozen layers take %.1f MB and %.1f MB are free; make room, or set "
               "train.cache_frozen: no",
               path, (double)bytes / 1e6, (double)available / 1e6);
  return TARN_STATUS_OK;
}

static tarn_status write_file(tarn__stepper *stepper, const tarn__frozen_cache *cache, const char *path,
                              const tarn__shard *shard, const volatile sig_atomic_t *stop) {
  pack p;
  tarn__frozen_writer writer = {0};
  tarn_status status = pack_open(&p, stepper, shard);
  if (status == TARN_STATUS_OK) status = tarn__frozen_writer_open(&writer, cache, path);
  tarn__work work;
  tarn__work_begin(&work, "computing frozen layers", "sentences");
  if (status == TARN_STATUS_OK) status = tarn__shard_judge(shard, run_all(&p, stepper, &writer, shard, &work, stop));
  tarn__work_end(&work);
  if (status == TARN_STATUS_OK) status = tarn__frozen_writer_commit(&writer, cache);
  tarn__frozen_writer_abort(&writer);
  pack_close(&p);
  return status;
}

tarn_status tarn__frozen_pass(tarn__stepper *stepper, tarn__frozen_cache *cache, bool *computed, const char *path,
                              const tarn__shard *shard, const volatile sig_atomic_t *stop) {
  const char *why = NULL;
  *computed = false;
  TARN_TRY(tarn__frozen_cache_key(cache, stepper->model, shard));
  if (tarn__file_exists(path)) {
    TARN_TRY(tarn__frozen_cache_read(cache, path, &why));
    if (!why) return TARN_STATUS_OK;
    tarn__log(TARN_LOG_WARNING, "%s does not serve, because %s; it is made again", path, why);
  }
  double begin = tarn__seconds();
  size_t bytes = tarn__frozen_cache_bytes(cache);
  TARN_TRY(check_disk(path, bytes));
  TARN_TRY(write_file(stepper, cache, path, shard, stop));
  *computed = true;
  TARN_TRY(tarn__frozen_cache_read(cache, path, &why));
  TARN_REQUIRE(!why, IO, "%s: what was written reads back otherwise: %s", path, why);
  tarn__log(TARN_LOG_INFO, "%s: outputs of %d frozen layers, %.1f MB, %.1f s", path, tarn__model_bottom(stepper->model),
            (double)bytes / 1e6, tarn__seconds() - begin);
  return TARN_STATUS_OK;
}
