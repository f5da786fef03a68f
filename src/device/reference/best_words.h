// The best words of a row of logits, for the ops that give them. Included by kernels, which define TARN_REAL.
#ifndef TARN_DEVICE_REFERENCE_BEST_WORDS_H
#define TARN_DEVICE_REFERENCE_BEST_WORDS_H

#include <math.h>

#include "ops/output_top.h"

// log sum exp.
static inline TARN_REAL tarn__ref_log_sum(const TARN_REAL *logits, int64_t words) {
  TARN_REAL most = -INFINITY;
  double sum = 0.0;
  for (int64_t v = 0; v < words; v++)
    if (logits[v] > most) most = logits[v];
  for (int64_t v = 0; v < words; v++) sum += exp((double)(logits[v] - most));
  return most + (TARN_REAL)log(sum);
}

// The word that follows `before` in the order of decreasing logits, ties broken by increasing id; -1: none.
static inline int64_t tarn__ref_next_word(const TARN_REAL *logits, int64_t words, int64_t before) {
  int64_t next = -1;
  for (int64_t v = 0; v < words; v++) {
    const bool behind = before < 0 || logits[v] < logits[before] || (logits[v] == logits[before] && v > before);
    if (behind && logits[v] > -INFINITY && (next < 0 || logits[v] > logits[next])) next = v;
  }
  return next;
}

// values [best + 1] and ids [best], as tarn__output_top() gives them.
static inline void tarn__ref_best_words(TARN_REAL *values, int32_t *ids, const TARN_REAL *logits, int64_t words,
                                        const tarn__output_top_attr *attr) {
  const TARN_REAL shift = tarn__ref_log_sum(logits, words);
  bool more = true;
  for (int64_t i = 0; i < attr->best; i++) {
    const int64_t word = more ? tarn__ref_next_word(logits, words, i > 0 ? ids[i - 1] : -1) : -1;
    more = word >= 0;
    ids[i] = (int32_t)word;
    values[i] = more ? logits[word] - shift : -(TARN_REAL)INFINITY;
  }
  values[attr->best] = logits[attr->always] - shift;
}

#endif
