#include "eval/bootstrap.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/work.h"

// The count of each item in a resample.
static void draw(uint32_t *times, size_t items, const tarn__bootstrap_options *o, int64_t resample) {
  for (size_t s = 0; s < items; s++) times[s] = 0;
  if (o->indices) {
    const uint32_t *indices = o->indices + (size_t)resample * items;
    for (size_t s = 0; s < items; s++) times[indices[s]]++;
    return;
  }
  tarn__random random;
  tarn__random_init(&random, o->seed, (uint32_t)resample);
  const size_t *strata = o->strata ? o->strata : &items;
  size_t count = o->strata ? o->stratum_count : 1;
  for (size_t k = 0, first = 0; k < count; first += strata[k++])
    for (size_t s = 0; s < strata[k]; s++) times[first + tarn__random_below(&random, strata[k])]++;
}

static tarn_status check(size_t systems, size_t items, const tarn__bootstrap_options *o) {
  TARN_REQUIRE(systems > 0 && items > 0 && items <= INT32_MAX, USAGE,
               "a bootstrap needs at least one system, and 1 to %d sentences or pairs", INT32_MAX);
  TARN_REQUIRE(o->resamples >= 1 && o->resamples <= TARN__RESAMPLES_MOST, USAGE,
               "a bootstrap takes 1 to %d resamples, not %lld", TARN__RESAMPLES_MOST, (long long)o->resamples);
  size_t all = 0;
  for (size_t k = 0; o->strata && k < o->stratum_count; k++) all += o->strata[k];
  TARN_REQUIRE(!o->strata || all == items, INTERNAL, "strata of %zu items in a test of %zu", all, items);
  return TARN_STATUS_OK;
}

tarn_status tarn__bootstrap(double *observed, double *resampled, size_t systems, size_t items,
                            tarn__bootstrap_score score, void *user, const tarn__bootstrap_options *o) {
  void *memory;
  TARN_TRY(check(systems, items, o));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, items, sizeof(uint32_t)));
  uint32_t *times = memory;
  for (size_t i = 0; i < systems; i++) observed[i] = score(user, i, NULL);
  tarn__work work;
  tarn__work_begin(&work, "resampling", "resamples");
  for (int64_t r = 0; r < o->resamples; r++) {
    tarn__work_at(&work, (double)r, (double)r / (double)o->resamples);
    draw(times, items, o, r);
    for (size_t i = 0; i < systems; i++) resampled[i * (size_t)o->resamples + (size_t)r] = score(user, i, times);
  }
  tarn__work_end(&work);
  tarn__free(memory);
  return TARN_STATUS_OK;
}
