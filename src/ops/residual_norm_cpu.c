// Fast kernels: one pass over the rows, each computed in fp32 while it lies in L1. The rows are cut into one part a
// thread; the gradients of gain and bias are summed in each part, then over the parts in order, so that equal numbers
// of threads give equal bits.
#include "ops/dropout.h"
#include "ops/residual_norm.h"
#include "ops/row_cpu.h"

// Scratch of one part, in floats: rows a, b, c; sums of the gradients of gain and bias; 16-bit numbers of dropout.
enum { ROWS_A_PART = 5 };

static size_t part_floats(int64_t d) {
  return ROWS_A_PART * tarn__row_floats(d) + tarn__dropout_room(d) * sizeof(uint16_t) / sizeof(float);
}

static size_t scratch(int64_t d, int threads) {
  size_t bytes = part_floats(d) * sizeof(float) * (size_t)threads;
  size_t reference = (size_t)d * sizeof(double);
  return bytes > reference ? bytes : reference;
}

typedef struct part {
  float *a, *b, *c, *dgain, *dbias;
  uint16_t *numbers;
  int64_t first, last;  // rows
} part;

static part part_of(const tarn__exec *exec, const tarn__node *node, int which, int64_t rows, int64_t d) {
  float *base = (float *)node->scratch + (size_t)which * part_floats(d);
  size_t n = tarn__row_floats(d);
  return (part){.a = base,
                .b = base + n,
                .c = base + 2 * n,
                .dgain = base + 3 * n,
                .dbias = base + 4 * n,
                .numbers = (uint16_t *)(void *)(base + 5 * n),
                .first = rows * which / exec->threads,
                .last = rows * (which + 1) / exec->threads};
}

// sum = x + dropout(branch)
static void add_branch(float *sum, const float *x, const float *branch, int64_t d, const part *p,
                       const tarn__dropout *dropout, const tarn__exec *exec, int64_t row) {
  if (dropout->threshold == 0) {
#pragma omp simd
    for (int64_t i = 0; i < d; i++) sum[i] = x[i] + branch[i];
    return;
  }
  const uint16_t *numbers = p->numbers;
  const uint32_t threshold = dropout->threshold;
  const float scale = (float)tarn__dropout_scale(*dropout);
  tarn__dropout_numbers(p->numbers, exec, dropout->site, row, 0, d);
#pragma omp simd
  for (int64_t i = 0; i < d; i++) sum[i] = x[i] + (numbers[i] >= threshold ? branch[i] * scale : 0.0f);
}

static void norm(float *y, float stats[2], const float *x, const float *gain, const float *bias, int64_t d) {
  const float mean = tarn__row_sum(x, d) / (float)d;
  const float rstd = 1.0f / sqrtf(tarn__row_squares(x, mean, d) / (float)d + (float)TARN__NORM_EPSILON);
#pragma omp simd
  for (int64_t i = 0; i < d; i++) y[i] = (x[i] - mean) * rstd * gain[i] + bias[i];
  stats[0] = mean;
  stats[1] = rstd;
}

static void forward_part(const tarn__exec *exec, const tarn__node *node, const part *p) {
  const tarn__tensor *x = node->in[TARN__RN_X], *branch = node->in[TARN__RN_BRANCH];
  const tarn__tensor *sum = node->out[TARN__RN_SUM], *y = node->out[TARN__RN_Y], *stats = node->out[TARN__RN_STATS];
  const tarn__residual_norm_attr *attr = node->attr;
  const int64_t d = x->cols;
  for (int64_t r = p->first; r < p->last; r++) {
    const float *row = tarn__row_read(x->data, x->dtype, r * d, d, p->a);
    if (branch) {
      const float *b = tarn__row_read(branch->data, branch->dtype, r * d, d, p->b);
      float *s = sum ? tarn__row_target(sum->data, sum->dtype, r * d, p->c) : p->c;
      add_branch(s, row, b, d, p, &attr->dropout, exec, r);
      row = s;
      // The norm is that of the sum as it is stored, so that it can be computed again from there.
      if (sum) {
        tarn__row_write(sum->data, sum->dtype, r * d, d, s);
        row = tarn__row_read(sum->data, sum->dtype, r * d, d, p->c);
      }
    }
    if (!y) continue;
    float *out = tarn__row_target(y->data, y->dtype, r * d, p->b);
    float values[2];
    norm(out, values, row, node->in[TARN__RN_GAIN]->data, node->in[TARN__RN_BIAS]->data, d);
    tarn__row_write(y->data, y->dtype, r * d, d, out);
    if (stats) memcpy((float *)stats->data + 2 * r, values, sizeof values);
  }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__RN_X];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    part p = part_of(exec, node, which, x->rows, x->cols);
    forward_part(exec, node, &p);
  }
  return TARN_STATUS_OK;
}

// The gradient of the norm's input, and sums for those of gain and bias.
static void norm_backward(float *out, const part *p, const float *dy, const float *x, const float *gain,
                          const float stats[2], int64_t d) {
  const float mean = stats[0], rstd = stats[1];
  float *dgain = p->dgain, *dbias = p->dbias;
  float sum_g = 0.0f, sum_gx = 0.0f;
#pragma omp simd reduction(+ : sum_g, sum_gx)
  for (int64_t i = 0; i < d; i++) {
    float normal = (x[i] - mean) * rstd;
    float g = gain[i] * dy[i];
    sum_g += g;
    sum_gx += g * normal;
    dgain[i] += dy[i] * normal;
    dbias[i] += dy[i];
  }
  const float mean_g = sum_g / (float)d, mean_gx = sum_gx / (float)d;
#pragma omp simd
  for (int64_t i = 0; i < d; i++) out[i] = rstd * (gain[i] * dy[i] - mean_g - (x[i] - mean) * rstd * mean_gx);
}

// Gradient of the sum of row r: through the norm, if there is one, and from other readers.
static const float *dsum_row(const tarn__node *node, const part *p, int64_t r, int64_t d) {
  const tarn__tensor *dy = node->in[TARN__RN_DY], *dsum = node->in[TARN__RN_DSUM], *saved = node->in[TARN__RN_SAVED];
  if (!dy) return tarn__row_read(dsum->data, dsum->dtype, r * d, d, p->c);
  const float *g = tarn__row_read(dy->data, dy->dtype, r * d, d, p->a);
  const float *x = tarn__row_read(saved->data, saved->dtype, r * d, d, p->b);
  norm_backward(p->c, p, g, x, node->in[TARN__RN_SAVED_GAIN]->data,
                (const float *)node->in[TARN__RN_SAVED_STATS]->data + 2 * r, d);
  if (dsum) tarn__row_add(p->c, tarn__row_read(dsum->data, dsum->dtype, r * d, d, p->a), d);
  return p->c;
}

static void branch_row(const tarn__exec *exec, const tarn__node *node, const part *p, const float *dsum, int64_t r,
                       int64_t d) {
  const tarn__tensor *dbranch = node->out[TARN__RN_DBRANCH];
  const tarn__dropout *dropout = &((const tarn__residual_norm_attr *)node->attr)->dropout;
  if (dropout->threshold == 0) {
    tarn__row_write(dbranch->data, dbranch->dtype, r * d, d, dsum);
    return;
  }
  const uint16_t *numbers = p->numbers;
  const uint32_t threshold = dropout->threshold;
  const float scale = (float)tarn__dropout_scale(*dropout);
  float *out = tarn__row_target(dbranch->data, dbranch->dtype, r * d, p->a);
  tarn__dropout_numbers(p->numbers, exec, dropout->site, r, 0, d);
#pragma omp simd
  for (int64_t i = 0; i < d; i++) out[i] = numbers[i] >= threshold ? dsum[i] * scale : 0.0f;
  tarn__row_write(dbranch->data, dbranch->dtype, r * d, d, out);
}

static void backward_part(const tarn__exec *exec, const tarn__node *node, const part *p, int64_t d) {
  const tarn__tensor *dx = node->out[TARN__RN_DX], *previous = node->in[TARN__RN_PREVIOUS];
  memset(p->dgain, 0, (size_t)d * sizeof(float));
  memset(p->dbias, 0, (size_t)d * sizeof(float));
  for (int64_t r = p->first; r < p->last; r++) {
    const float *dsum = dsum_row(node, p, r, d);
    if (node->out[TARN__RN_DBRANCH]) branch_row(exec, node, p, dsum, r, d);
    if (!dx) continue;
    if (previous) tarn__row_add(p->c, tarn__row_read(previous->data, previous->dtype, r * d, d, p->a), d);
    tarn__row_write(dx->data, dx->dtype, r * d, d, dsum);
  }
}

static void add_to_gradient(const tarn__exec *exec, const tarn__node *node, int which, int64_t rows, int64_t d) {
  tarn__param *param = node->dparam[which];
  if (!param) return;
  float *grad = param->grad;
  if (!tarn__param_accumulate(param)) memset(grad, 0, (size_t)d * sizeof *grad);
  for (int t = 0; t < exec->threads; t++) {
    part p = part_of(exec, node, t, rows, d);
    tarn__row_add(grad, which == TARN__RN_DGAIN ? p.dgain : p.dbias, d);
  }
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *any = node->in[TARN__RN_DY] ? node->in[TARN__RN_DY] : node->in[TARN__RN_DSUM];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    part p = part_of(exec, node, which, any->rows, any->cols);
    backward_part(exec, node, &p, any->cols);
  }
  add_to_gradient(exec, node, TARN__RN_DGAIN, any->rows, any->cols);
  add_to_gradient(exec, node, TARN__RN_DBIAS, any->rows, any->cols);
  return TARN_STATUS_OK;
}

const tarn__residual_norm_kernels TARN__FAST(tarn__residual_norm_kernels) = {forward, backward, scratch};
