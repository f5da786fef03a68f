#include "decode/mbr.h"

#include "base/threads.h"
#include "tarn/score.h"

static tarn_status score_bleu(double *score, const char *text, const char *reference) {
  tarn_bleu_options options;
  tarn_bleu_result result;
  tarn_bleu_default(&options);
  options.effective_order = true;
  TARN_TRY(tarn_bleu_sentence(&result, text, &reference, 1, &options));
  *score = result.score;
  return TARN_STATUS_OK;
}

static tarn_status score_chrf(double *score, const char *text, const char *reference) {
  tarn_chrf_result result;
  TARN_TRY(tarn_chrf_sentence(&result, text, &reference, 1, NULL));
  *score = result.score;
  return TARN_STATUS_OK;
}

static tarn_status expect(double *expected, tarn_mbr utility, const char *const *texts, int64_t count, int64_t i) {
  double sum = 0.0;
  for (int64_t j = 0; j < count; j++) {
    double score;
    TARN_TRY((utility == TARN_MBR_BLEU ? score_bleu : score_chrf)(&score, texts[i], texts[j]));
    sum += score;
  }
  *expected = sum / (double)count;
  return TARN_STATUS_OK;
}

tarn_status tarn__mbr_rank(tarn_mbr utility, const char *const *texts, int64_t count, double *expected,
                           int32_t *order) {
  tarn__failure failure = {0};
  const int threads = tarn__threads();
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (int64_t i = 0; i < count; i++) tarn__failure_note(&failure, expect(&expected[i], utility, texts, count, i));
  TARN_TRY(tarn__failure_raise(&failure));
  for (int64_t i = 0; i < count; i++) {
    int64_t at = i;
    for (; at > 0 && expected[order[at - 1]] < expected[i]; at--) order[at] = order[at - 1];
    order[at] = (int32_t)i;
  }
  return TARN_STATUS_OK;
}
