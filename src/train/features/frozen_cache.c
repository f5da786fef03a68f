#include "train/features/frozen_cache.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "build_info.h"
#include "config/config_write.h"
#include "store/recipe.h"
#include "tarn/status.h"

static const char MAGIC[] = "TARNFRZN";  // without the terminating zero
enum { VERSION = 1, RELEASE_BYTES = 1 << 24 };

typedef struct header {
  char magic[8];
  uint32_t version, number_bytes;
  int64_t rows, cols;
  char key[TARN__HASH_TEXT - 1];
  char zeros[64];
} header;
_Static_assert(sizeof(header) == 128, "rows begin at a multiple of 64 bytes");

size_t tarn__frozen_cache_row_bytes(const tarn__frozen_cache *cache) {
  return (size_t)cache->table.cols * tarn__dtype_size(cache->table.dtype);
}

size_t tarn__frozen_cache_bytes(const tarn__frozen_cache *cache) {
  return sizeof(header) + (size_t)cache->table.rows * tarn__frozen_cache_row_bytes(cache) + sizeof(uint64_t);
}

static header expected_header(const tarn__frozen_cache *cache) {
  header h = {.version = VERSION,
              .number_bytes = (uint32_t)tarn__dtype_size(cache->table.dtype),
              .rows = cache->table.rows,
              .cols = cache->table.cols};
  memcpy(h.magic, MAGIC, sizeof h.magic);
  memcpy(h.key, cache->key, sizeof h.key);
  return h;
}

tarn_status tarn__frozen_cache_open(tarn__frozen_cache *cache, const tarn__model *model, const tarn__shard *shard) {
  *cache = (tarn__frozen_cache){.table = tarn__model_bottom_table(model, shard->source_tokens)};
  TARN_REQUIRE(shard->source_tokens <= INT32_MAX, USAGE,
               "train.cache_frozen: the training data have %lld source tokens, more than the %d that a cache holds",
               (long long)shard->source_tokens, INT32_MAX);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)shard->pairs, sizeof(int32_t)));
  cache->first = memory;
  int64_t row = 0;
  for (int64_t i = 0; i < shard->pairs; i++) {
    cache->first[i] = (int32_t)row;
    row += tarn__shard_source_length(shard, i);
  }
  return TARN_STATUS_OK;
}

void tarn__frozen_cache_close(tarn__frozen_cache *cache) {
  tarn__map_close(&cache->map);
  tarn__free(cache->first);
  *cache = (tarn__frozen_cache){0};
}

// Appends a line to a growing text.
static tarn_status add_line(char **text, size_t *capacity, const char *line) {
  size_t used = *text ? strlen(*text) : 0;
  size_t more = strlen(line);
  TARN_TRY(tarn__grow(text, capacity, used + more + 2, 1));
  memcpy(*text + used, line, more);
  memcpy(*text + used + more, "\n", 2);
  return TARN_STATUS_OK;
}

static tarn_status add_param(char **text, size_t *capacity, const tarn__param *param, uint64_t seed) {
  char recipe[TARN__RECIPE_TEXT];
  tarn__recipe_write(recipe, param, seed);
  TARN_TRY(add_line(text, capacity, param->name));
  return add_line(text, capacity, recipe);
}

// The whole description of the model, so that no key of a layer can be missed, and all frozen weights by hash.
static tarn_status add_all(char **text, size_t *capacity, const tarn__model *model, const tarn__shard *shard) {
  char line[256];
  char *description;
  const tarn_fp32 fp32 = model->config->train.fp32;
  snprintf(line, sizeof line, "version=%s compiler=%s isa=%s shard=%s%s%s", tarn_version(), TARN_BUILD_COMPILER,
           tarn__device_variant(model->device), shard->hash,
           fp32 == TARN_FP32_EXACT ? "" : " fp32=", fp32 == TARN_FP32_EXACT ? "" : tarn_fp32_name(fp32));
  TARN_TRY(add_line(text, capacity, line));
  TARN_TRY(tarn__config_write_model(model->config, &description));
  tarn_status status = add_line(text, capacity, description);
  tarn_config_text_close(&description);
  for (size_t i = 0; i < model->param_count && status == TARN_STATUS_OK; i++)
    if (!model->params[i]->trained) status = add_param(text, capacity, model->params[i], model->seed);
  return status;
}

tarn_status tarn__frozen_cache_key(tarn__frozen_cache *cache, const tarn__model *model, const tarn__shard *shard) {
  char *text = NULL;
  size_t capacity = 0;
  tarn_status status = add_all(&text, &capacity, model, shard);
  if (status == TARN_STATUS_OK) tarn__hash(cache->key, text, strlen(text));
  tarn__free(text);
  return status;
}

// Whether the rows match the hash after them. Releases their pages as it goes.
static bool rows_are_whole(const tarn__frozen_cache *cache) {
  const size_t bytes = tarn__frozen_cache_row_bytes(cache);
  const uint8_t *row = cache->map.data + sizeof(header);
  uint64_t hash = 0;
  size_t resident = 0;
  for (int64_t r = 0; r < cache->table.rows; r++, row += bytes) {
    hash = tarn__hash64(row, bytes, hash);
    resident += bytes;
    if (resident < RELEASE_BYTES) continue;
    tarn__map_release(&cache->map);
    resident = 0;
  }
  return memcmp(&hash, row, sizeof hash) == 0;
}

static const char *why_not(const tarn__frozen_cache *cache) {
  header h;
  header expected = expected_header(cache);
  if (cache->map.size < sizeof h) return "it is damaged";
  memcpy(&h, cache->map.data, sizeof h);
  if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0) return "it is damaged";
  if (memcmp(&h, &expected, sizeof h) != 0)
    return "it was made by another version, for another processor, or from other data, layers or precision";
  if (cache->map.size != tarn__frozen_cache_bytes(cache) || !rows_are_whole(cache)) return "it is damaged";
  return NULL;
}

tarn_status tarn__frozen_cache_read(tarn__frozen_cache *cache, const char *path, const char **why) {
  TARN_TRY(tarn__map_open(&cache->map, path));
  *why = why_not(cache);
  tarn_status status = tarn__map_check(&cache->map);
  if (*why || status != TARN_STATUS_OK)
    tarn__map_close(&cache->map);
  else
    cache->table.value = (void *)(uintptr_t)(cache->map.data + sizeof(header));
  tarn__map_release(&cache->map);
  return status;
}

tarn_status tarn__frozen_writer_open(tarn__frozen_writer *writer, const tarn__frozen_cache *cache, const char *path) {
  *writer = (tarn__frozen_writer){.row_bytes = tarn__frozen_cache_row_bytes(cache)};
  header h = expected_header(cache);
  TARN_TRY(tarn__writer_open(&writer->file, path));
  tarn_status status = tarn__writer_put(writer->file, &h, sizeof h);
  if (status != TARN_STATUS_OK) tarn__frozen_writer_abort(writer);
  return status;
}

tarn_status tarn__frozen_writer_put(tarn__frozen_writer *writer, const void *rows, int64_t count) {
  const char *row = rows;
  for (int64_t r = 0; r < count; r++, row += writer->row_bytes)
    writer->hash = tarn__hash64(row, writer->row_bytes, writer->hash);
  writer->rows += count;
  return tarn__writer_put(writer->file, rows, (size_t)count * writer->row_bytes);
}

tarn_status tarn__frozen_writer_commit(tarn__frozen_writer *writer, const tarn__frozen_cache *cache) {
  TARN_REQUIRE(writer->rows == cache->table.rows, INTERNAL, "a cache of %lld rows was given %lld",
               (long long)cache->table.rows, (long long)writer->rows);
  TARN_TRY(tarn__writer_put(writer->file, &writer->hash, sizeof writer->hash));
  return tarn__writer_commit(&writer->file);
}

void tarn__frozen_writer_abort(tarn__frozen_writer *writer) { tarn__writer_abort(&writer->file); }

void tarn__frozen_cache_ids(const tarn__frozen_cache *cache, int32_t *ids, const tarn__batch *batch) {
  for (int64_t s = 0; s < batch->target.sentences; s++)
    for (int32_t r = batch->source.offsets[s]; r < batch->source.offsets[s + 1]; r++)
      ids[r] = cache->first[batch->index[s]] + (r - batch->source.offsets[s]);
}
