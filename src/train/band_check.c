#include "train/band_check.h"

#include "base/log.h"
#include "base/memory.h"
#include "task/bands.h"

enum { TOKENS = 1000000 };

// One side of a shard.
typedef struct side {
  const char *name;
  int64_t longest, words;
  int64_t (*length)(const tarn__shard *shard, int64_t pair);
  void (*read)(const tarn__shard *shard, int64_t pair, int32_t *ids);
} side;

static int band_of(const tarn__cutoffs *cutoffs, int32_t id) {
  int b = 0;
  while (b < cutoffs->count && id >= cutoffs->values[b]) b++;
  return b;
}

static int64_t first_of(const tarn__cutoffs *cutoffs, int64_t words, int64_t b) {
  return b == 0 ? 0 : b > cutoffs->count ? words : cutoffs->values[b - 1];
}

static tarn_status look_at(const tarn__shard *shard, const side *s, const tarn__cutoffs *cutoffs) {
  int64_t tokens[TARN__BANDS] = {0}, all = 0;
  void *memory;
  // A model too small for its bands is rejected elsewhere.
  if (cutoffs->count == 0 || s->longest == 0 || cutoffs->values[cutoffs->count - 1] >= s->words) return TARN_STATUS_OK;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)s->longest, sizeof(int32_t)));
  int32_t *ids = memory;
  for (int64_t pair = 0; pair < shard->pairs && all < TOKENS; pair++) {
    const int64_t length = s->length(shard, pair);
    s->read(shard, pair, ids);
    for (int64_t i = 0; i < length; i++) tokens[band_of(cutoffs, ids[i])]++;
    all += length;
  }
  tarn__free(memory);
  for (int64_t b = 1; b <= cutoffs->count; b++) {
    const int64_t before = first_of(cutoffs, s->words, b - 1), first = first_of(cutoffs, s->words, b),
                  end = first_of(cutoffs, s->words, b + 1);
    const double mean_before = (double)tokens[b - 1] / (double)(first - before);
    const double mean = (double)tokens[b] / (double)(end - first);
    if (mean <= mean_before) continue;
    tarn__log(TARN_LOG_WARNING,
              "%s: %s: ids from %lld on are more frequent in the %s (%.3g times each) than those from %lld on (%.3g); "
              "bands save time where low ids are the frequent ones",
              shard->path, cutoffs->key, (long long)first, s->name, mean, (long long)before, mean_before);
    break;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__shard_warn_bands(const tarn__shard *shard, const tarn_config *config) {
  const tarn__cutoffs input = tarn__input_cutoffs(&config->model), output = tarn__output_cutoffs(&config->model);
  const side source = {"source", shard->longest_source, shard->source_vocab_size, tarn__shard_source_length,
                       tarn__shard_source};
  const side target = {shard->text ? "text" : "target", shard->longest_target, shard->target_vocab_size,
                       tarn__shard_target_length, tarn__shard_target};
  if (!shard->text) TARN_TRY(look_at(shard, &source, &input));
  TARN_TRY(look_at(shard, &target, output.count > 0 ? &output : &input));
  return TARN_STATUS_OK;
}
