// Divides the parameters among threads, and skips rows known to be zero.
#include <math.h>
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/optim/adam_kernels.h"
#include "optim/moments.h"

// All elements of all parameters, concatenated, are divided into this many equal parts: more than any machine has
// cores, few enough for an array on the stack, and the same for every number of threads.
enum { PARTS = 1024 };

static int64_t total_size(tarn__param *const *params, size_t count) {
  int64_t total = 0;
  for (size_t p = 0; p < count; p++)
    if (tarn__adam_moves(params[p])) total += params[p]->rows * params[p]->cols;
  return total;
}

// Elements [first, end) of one parameter.
typedef struct range {
  tarn__param *param;
  int64_t first, end;
} range;

// Iterates over the ranges of a part. Start with *at = 0 and *before = 0; false at the end.
static bool next_range(range *out, tarn__param *const *params, size_t count, int64_t from, int64_t to, size_t *at,
                       int64_t *before) {
  while (*at < count && *before < to) {
    tarn__param *param = params[(*at)++];
    if (!tarn__adam_moves(param)) continue;
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

// The next elements of the range, from *at on, whose gradient is uniformly used or unused; false at the end. Without
// used_rows the range is one piece.
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

tarn_status tarn__cpu_grad_norm(const tarn__device *device, double *norm, const tarn__param_table *table, int threads) {
  (void)device;
  tarn__param *const *params = table->params;
  const size_t count = table->count;
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
  *norm = sqrt(sum);
  return TARN_STATUS_OK;
}

static void update_piece(const tarn__adam_kernels *kernels, const range *r, bool used, const tarn__exec *stream,
                         const tarn__adam_floats *factors) {
  tarn__param *param = r->param;
  const bool blocks = param->training.moments == TARN__MOMENTS_F8;
  const tarn__adam_piece piece = {.master = param->training.master,
                                  .moment1 = param->training.moment1,
                                  .moment2 = param->training.moment2,
                                  .moments = param->training.moments,
                                  .value = param->dtype == TARN__BF16 ? param->value : NULL,
                                  .grad = used ? param->training.grad : NULL,
                                  .used_rows = blocks ? param->training.used_rows : NULL,
                                  .cols = param->cols,
                                  .first = r->first,
                                  .end = r->end,
                                  .stream = *stream,
                                  .number = param->training.number,
                                  .before = param->training.first};
  kernels->step(&piece, factors);
  if (param->dtype == TARN__F32 && param->value != param->training.master)
    memcpy((float *)param->value + r->first, param->training.master + r->first,
           (size_t)(r->end - r->first) * sizeof(float));
}

// The blocks that begin in a range.
static range blocks_of(const range *r) {
  const int64_t size = r->param->rows * r->param->cols, block = TARN__MOMENT_BLOCK;
  const int64_t first = (r->first + block - 1) / block * block, end = (r->end + block - 1) / block * block;
  return (range){r->param, first, end < size ? end : size};
}

// Blocks of F8 have rows of both kinds, which the kernel tells apart.
static void update(const tarn__adam_kernels *kernels, const range *r, const tarn__exec *stream,
                   const tarn__adam_floats *factors) {
  range piece;
  bool used;
  if (r->param->training.moments == TARN__MOMENTS_F8) {
    piece = blocks_of(r);
    if (piece.first < piece.end) update_piece(kernels, &piece, true, stream, factors);
    return;
  }
  for (int64_t at = r->first; next_piece(&piece, &used, r, &at);) update_piece(kernels, &piece, used, stream, factors);
}

static tarn__adam_floats floats_of(const tarn__adam_factors *factors, double gradient) {
  return (tarn__adam_floats){
      .gradient = (float)gradient,
      .decay_gradient = (float)factors->decay_gradient,
      .keep_weight = (float)factors->keep_weight,
      .beta1_rest = (float)factors->beta1_rest,
      .beta2 = (float)factors->beta2,
      .beta2_rest = (float)factors->beta2_rest,
      .step_size = (float)factors->step_size,
      .inverse_correction2 = (float)factors->inverse_correction2,
      .epsilon = (float)factors->epsilon,
  };
}

tarn_status tarn__cpu_adam_step(const tarn__device *device, const tarn__param_table *table,
                                const tarn__adam_factors *factors, const tarn__step_numbers *numbers, int threads) {
  (void)device;
  if (numbers && numbers->failed != 0) return TARN_STATUS_OK;
  const tarn__adam_kernels *kernels = TARN__TABLE_NOW(tarn__adam_kernels);
  const tarn__adam_floats floats = floats_of(factors, tarn__adam_gradient(factors, numbers));
  tarn__param *const *params = table->params;
  const size_t count = table->count;
  const tarn__exec stream = tarn__moment_stream(factors->seed, factors->step);
  int64_t total = total_size(params, count);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int part = 0; part < PARTS; part++) {
    range r;
    size_t at = 0;
    int64_t before = 0;
    while (next_range(&r, params, count, total * part / PARTS, total * (part + 1) / PARTS, &at, &before))
      update(kernels, &r, &stream, &floats);
  }
  return TARN_STATUS_OK;
}

// The gradient, computed by the previous node, is read from memory once: each part is squared and then applied. A part
// has enough elements to be worth a thread, and the number of parts depends only on the parameter.
tarn_status tarn__cpu_update(const tarn__exec *exec, const tarn__node *node) {
  enum { LEAST = 4096 };
  const tarn__adam_kernels *kernels = TARN__TABLE_NOW(tarn__adam_kernels);
  tarn__param *param = node->dparam[0];
  TARN_REQUIRE(exec->update && exec->squares, INTERNAL, "a graph with updates runs without what they need");
  const tarn__adam_floats floats = floats_of(exec->update, exec->update->gradient);
  const tarn__exec stream = tarn__moment_stream(exec->update->seed, exec->update->step);
  const int64_t size = param->rows * param->cols;
  const int parts = size < LEAST ? 1 : size / LEAST < PARTS ? (int)(size / LEAST) : PARTS;
  double sums[PARTS], sum = 0.0;
#pragma omp parallel for schedule(static) num_threads(exec->threads) if (parts > 1)
  for (int part = 0; part < parts; part++) {
    const range r = {param, size * part / parts, size * (part + 1) / parts};
    sums[part] = squares(kernels, &r);
    update(kernels, &r, &stream, &floats);
  }
  for (int part = 0; part < parts; part++) sum += sums[part];
  *exec->squares += sum;
  return TARN_STATUS_OK;
}

static void add_sum(const tarn__param *param) {
  const range whole = {(tarn__param *)(uintptr_t)param, 0, param->rows * param->cols};
  range piece;
  bool used;
  for (int64_t at = 0; next_piece(&piece, &used, &whole, &at);)
    if (used)
      tarn__row_add(param->training.grad_sum + piece.first, (const float *)param->training.grad + piece.first,
                    piece.end - piece.first);
}

tarn_status tarn__cpu_grad_sum_add(const tarn__device *device, const tarn__param_table *table, int threads) {
  (void)device;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (size_t i = 0; i < table->count; i++)
    if (tarn__adam_sums(table->params[i])) add_sum(table->params[i]);
  return TARN_STATUS_OK;
}
