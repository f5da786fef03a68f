#include "optim/adam.h"

#include <math.h>
#include <string.h>

#include "device/cpu/isa.h"
#include "device/cpu/row_cpu.h"
#include "device/variant.h"

// All elements of all parameters, end to end, are cut into this many equal parts: more than any machine has cores, few
// enough for an array on the stack, and the same for every number of threads.
enum { PARTS = 1024 };

static bool takes_part(const tarn__param *param) { return param->trained && param->training.grad_written; }

static int64_t total_size(tarn__param *const *params, size_t count) {
  int64_t total = 0;
  for (size_t p = 0; p < count; p++)
    if (takes_part(params[p])) total += params[p]->rows * params[p]->cols;
  return total;
}

// Elements [first, end) of one parameter.
typedef struct range {
  tarn__param *param;
  int64_t first, end;
} range;

// Walks over the ranges of a part. Start with *at = 0 and *before = 0; false at the end.
static bool next_range(range *out, tarn__param *const *params, size_t count, int64_t from, int64_t to, size_t *at,
                       int64_t *before) {
  while (*at < count && *before < to) {
    tarn__param *param = params[(*at)++];
    if (!takes_part(param)) continue;
    int64_t size = param->rows * param->cols, start = *before;
    *before += size;
    if (*before <= from) continue;
    out->param = param;
    out->first = from > start ? from - start : 0;
    out->end = to < *before ? to - start : size;
    return true;
  }
  return false;
}

// The next elements of the range, from *at on, whose gradient is used or is not: false at the end. A range whose rows
// are not known to be used is one piece.
static bool next_piece(range *out, bool *used, const range *whole, int64_t *at) {
  tarn__param *param = whole->param;
  if (*at >= whole->end) return false;
  *out = (range){param, *at, whole->end};
  *used = true;
  if (param->training.used_rows) {
    int64_t row = *at / param->cols;
    *used = param->training.used_rows[row];
    while (row < param->rows && row * param->cols < whole->end && param->training.used_rows[row] == *used) row++;
    if (row * param->cols < whole->end) out->end = row * param->cols;
  }
  *at = out->end;
  return true;
}

static double squares(const tarn__adam_kernels *kernels, const range *r) {
  double sum = 0.0;
  range piece;
  bool used;
  for (int64_t at = r->first; next_piece(&piece, &used, r, &at);)
    if (used) sum += kernels->squares((const float *)piece.param->training.grad + piece.first, piece.end - piece.first);
  return sum;
}

double tarn__grad_norm(tarn__param *const *params, size_t count, int threads) {
  const tarn__adam_kernels *kernels = TARN__TABLE_NOW(tarn__adam_kernels);
  int64_t total = total_size(params, count);
  double sums[PARTS], sum = 0.0;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int part = 0; part < PARTS; part++) {
    range r;
    size_t at = 0;
    int64_t before = 0;
    sums[part] = 0.0;
    while (next_range(&r, params, count, total * part / PARTS, total * (part + 1) / PARTS, &at, &before))
      sums[part] += squares(kernels, &r);
  }
  for (int part = 0; part < PARTS; part++) sum += sums[part];
  return sqrt(sum);
}

void tarn__grad_sum_add(float *sum, const float *grad, int64_t count) { tarn__row_add(sum, grad, count); }

static void update_piece(const tarn__adam_kernels *kernels, const range *r, bool used,
                         const tarn__adam_factors *factors) {
  tarn__param *param = r->param;
  int64_t n = r->end - r->first;
  uint16_t *value = param->dtype == TARN__BF16 ? (uint16_t *)param->value + r->first : NULL;
  kernels->step(param->training.master + r->first, param->training.moment1 + r->first,
                param->training.moment2 + r->first, value, used ? (const float *)param->training.grad + r->first : NULL,
                n, factors);
  if (param->dtype == TARN__F32 && param->value != param->training.master)
    memcpy((float *)param->value + r->first, param->training.master + r->first, (size_t)n * sizeof(float));
}

static void update(const tarn__adam_kernels *kernels, const range *r, const tarn__adam_factors *factors) {
  range piece;
  bool used;
  for (int64_t at = r->first; next_piece(&piece, &used, r, &at);) update_piece(kernels, &piece, used, factors);
}

void tarn__adam_step(tarn__param *const *params, size_t count, const tarn__adam_options *options, int64_t step,
                     double factor, int threads) {
  const tarn__adam_kernels *kernels = TARN__TABLE_NOW(tarn__adam_kernels);
  const tarn__adam_options *o = options;
  double correction1 = 1.0 - pow(o->beta1, (double)step), correction2 = 1.0 - pow(o->beta2, (double)step);
  tarn__adam_factors factors = {
      .gradient = (float)factor,
      .decay_gradient = o->decoupled ? 0.0f : (float)o->weight_decay,
      .keep_weight = o->decoupled ? (float)(1.0 - o->learning_rate * o->weight_decay) : 1.0f,
      .beta1_rest = (float)(1.0 - o->beta1),
      .beta2 = (float)o->beta2,
      .beta2_rest = (float)(1.0 - o->beta2),
      .step_size = (float)(o->learning_rate / correction1),
      .inverse_correction2 = (float)(1.0 / sqrt(correction2)),
      .epsilon = (float)o->epsilon,
  };
  int64_t total = total_size(params, count);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int part = 0; part < PARTS; part++) {
    range r;
    size_t at = 0;
    int64_t before = 0;
    while (next_range(&r, params, count, total * part / PARTS, total * (part + 1) / PARTS, &at, &before))
      update(kernels, &r, &factors);
  }
}
