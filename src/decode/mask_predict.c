#include "decode/mask_predict.h"

#include <stdbool.h>
#include <stdlib.h>

int64_t tarn__mask_predict_count(int64_t length, int64_t iteration, int64_t iterations) {
  const int64_t count = length * (iterations - iteration) / iterations;
  return count > 0 ? count : 1;
}

// Whether token i is masked before token j.
static bool worse(const float *log_probabilities, int32_t i, int32_t j) {
  const float a = log_probabilities[i], b = log_probabilities[j];
  return a < b || (a == b && i < j);
}

// Restores the heap of at[0 .. count), whose top is the token masked last, below place `top`.
static void sink(int32_t *at, const float *log_probabilities, int64_t top, int64_t count) {
  for (int64_t child; (child = 2 * top + 1) < count; top = child) {
    if (child + 1 < count && worse(log_probabilities, at[child], at[child + 1])) child++;
    if (!worse(log_probabilities, at[top], at[child])) return;
    const int32_t moved = at[top];
    at[top] = at[child];
    at[child] = moved;
  }
}

static int ascending(const void *a, const void *b) {
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

void tarn__mask_predict_places(int32_t *at, const float *log_probabilities, int64_t length, int64_t count) {
  for (int64_t i = 0; i < length; i++) at[i] = (int32_t)i;
  if (count >= length) return;
  for (int64_t i = length / 2; i-- > 0;) sink(at, log_probabilities, i, length);
  // Takes out the most likely tokens until `count` are left.
  for (int64_t end = length - 1; end >= count; end--) {
    at[0] = at[end];
    sink(at, log_probabilities, 0, end);
  }
  qsort(at, (size_t)count, sizeof *at, ascending);
}

double tarn__mask_predict_score(const float *log_probabilities, int64_t length) {
  double sum = 0;
  for (int64_t i = 0; i < length; i++) sum += (double)log_probabilities[i];
  return sum / (double)length;
}
