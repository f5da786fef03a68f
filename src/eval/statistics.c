#include "eval/statistics.h"

#include <string.h>

#include "base/memory.h"

tarn_status tarn__statistics_open(tarn_statistics **statistics, size_t sentences, size_t width,
                                  tarn__statistics_score score, const void *options, size_t options_size) {
  void *memory;
  size_t count;
  *statistics = NULL;
  TARN_TRY(tarn__mul_size(&count, sentences, width));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **statistics));
  tarn_statistics *s = *statistics = memory;
  *s = (tarn_statistics){.sentences = sentences, .width = width, .score = score};
  void *values = NULL;
  tarn_status status = tarn__alloc(&values, TARN__MEMORY_OTHER, count, sizeof *s->values);
  s->values = values;
  if (status == TARN_STATUS_OK) status = tarn__alloc(&s->options, TARN__MEMORY_OTHER, 1, options_size);
  if (status != TARN_STATUS_OK)
    tarn_statistics_close(statistics);
  else if (options_size)
    memcpy(s->options, options, options_size);
  return status;
}

void tarn_statistics_close(tarn_statistics **statistics) {
  if (!*statistics) return;
  tarn__free((*statistics)->values);
  tarn__free((*statistics)->options);
  tarn__free(*statistics);
  *statistics = NULL;
}

double tarn__statistics_score_of(const tarn_statistics *statistics, const uint32_t *times, double *sums) {
  size_t width = statistics->width;
  memset(sums, 0, width * sizeof *sums);
  for (size_t s = 0; s < statistics->sentences; s++) {
    const double *row = statistics->values + s * width;
    double n = times ? times[s] : 1;
    if (n == 0) continue;
    for (size_t k = 0; k < width; k++) sums[k] += n * row[k];
  }
  return statistics->score(sums, statistics->options);
}
