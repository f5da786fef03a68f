// Fast kernels: one pass over the rows, each computed in fp32 while it is in L1. The rows are divided into one part per
// thread; the gradients of gain and bias are summed in each part, then over the parts in order, so that equal numbers
// of threads give equal bits.
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/dropout.h"
#include "ops/residual_norm.h"

// Scratch of one part, in floats: a row; sums of the gradients of gain and bias; 16-bit numbers of dropout.
enum { ROWS_A_PART = 3, LANES = TARN__VEC_LANES };

static size_t numbers_floats(int64_t d) { return tarn__dropout_room(d) * sizeof(uint16_t) / sizeof(float); }

static size_t part_floats(int64_t d) { return ROWS_A_PART * tarn__row_floats(d) + numbers_floats(d); }

static size_t scratch(int64_t d, int threads) {
  size_t bytes = part_floats(d) * sizeof(float) * (size_t)threads;
  size_t reference = (size_t)d * sizeof(double);
  return bytes > reference ? bytes : reference;
}

typedef struct part {
  const tarn__exec *exec;
  tarn__dropout dropout;
  float keep_scale;
  float *row, *dgain, *dbias;
  uint16_t *numbers;
  int64_t first, last;  // rows
} part;

static part part_of(const tarn__exec *exec, const tarn__node *node, int which, int64_t rows, int64_t d) {
  const tarn__dropout dropout = ((const tarn__residual_norm_attr *)node->attr)->dropout;
  float *base = (float *)node->scratch + (size_t)which * part_floats(d);
  size_t n = tarn__row_floats(d);
  return (part){.exec = exec,
                .dropout = dropout,
                .keep_scale = (float)tarn__dropout_scale(dropout),
                .row = base,
                .dgain = base + n,
                .dbias = base + 2 * n,
                .numbers = (uint16_t *)(void *)(base + 3 * n),
                .first = rows * which / exec->threads,
                .last = rows * (which + 1) / exec->threads};
}

// part(..., dtype, dropped, form) with three constants, so that a kernel is compiled once for each of the twelve
// combinations. The mean of RMSNorm and ScaleNorm is zero.
#define WITH_FORM(part, dtype, dropped, form, ...)                                  \
  ((form) == TARN__NORM_LAYER ? part(__VA_ARGS__, dtype, dropped, TARN__NORM_LAYER) \
   : (form) == TARN__NORM_RMS ? part(__VA_ARGS__, dtype, dropped, TARN__NORM_RMS)   \
                              : part(__VA_ARGS__, dtype, dropped, TARN__NORM_SCALE))
#define WITH_DROPOUT(part, dtype, dropped, form, ...) \
  ((dropped) ? WITH_FORM(part, dtype, true, form, __VA_ARGS__) : WITH_FORM(part, dtype, false, form, __VA_ARGS__))
#define WITH_CONSTANTS(part, dtype, dropped, form, ...)                               \
  ((dtype) == TARN__BF16 ? WITH_DROPOUT(part, TARN__BF16, dropped, form, __VA_ARGS__) \
                         : WITH_DROPOUT(part, TARN__F32, dropped, form, __VA_ARGS__))

static tarn__norm_form form_of(const tarn__node *node) { return ((const tarn__residual_norm_attr *)node->attr)->form; }

static float skip_of(const tarn__node *node) { return (float)((const tarn__residual_norm_attr *)node->attr)->skip; }

// The factor of ScaleNorm's single gain that reduces it to RMSNorm.
static float scalar_of(int64_t d) { return 1.0f / sqrtf((float)d); }

TARN__VEC_INLINE tarn__vec gain_at(const float *gain, tarn__norm_form form, float scalar, int64_t i, int64_t n) {
  return form == TARN__NORM_SCALE ? tarn__vec_all(gain[0] * scalar) : tarn__vec_read_first(gain, TARN__F32, i, n);
}

// Kept elements of a branch or of its gradient, scaled.
TARN__VEC_INLINE tarn__vec drop(const part *p, int64_t i, tarn__vec x) {
  const tarn__vec_int kept = tarn__vec_load_u16(p->numbers + i) >= (int32_t)p->dropout.threshold;
  return tarn__vec_select(kept, x * p->keep_scale, (tarn__vec){0});
}

// p->row = skip x + dropout(branch), which is stored in sum (NULL: not wanted); returns its mean. branch may be NULL. A
// BF16 sum is used in its rounded form, so that a norm recomputed from the stored sum has equal bits.
TARN__VEC_INLINE float add_branch(const part *p, const tarn__tensor *x, const tarn__tensor *branch,
                                  const tarn__tensor *sum, int64_t r, float skip, tarn__dtype dtype, bool dropped) {
  const int64_t d = x->cols, at = r * d;
  const void *x_data = x->data, *branch_data = branch ? branch->data : NULL;
  void *sum_data = sum ? sum->data : NULL;
  tarn__vec total = {0};
#define STEP(i, n)                                                                       \
  do {                                                                                   \
    tarn__vec s = tarn__vec_read_first(x_data, dtype, at + (i), n) * skip;               \
    if (branch_data) {                                                                   \
      tarn__vec b = tarn__vec_read_first(branch_data, dtype, at + (i), n);               \
      s += dropped ? drop(p, i, b) : b;                                                  \
      if (sum_data) {                                                                    \
        tarn__vec_write_first(sum_data, dtype, at + (i), s, n);                          \
        if (dtype == TARN__BF16) s = tarn__vec_read_first(sum_data, dtype, at + (i), n); \
      }                                                                                  \
    }                                                                                    \
    tarn__vec_store(p->row + (i), s);                                                    \
    total += s;                                                                          \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
  return tarn__vec_sum_lanes(total)[0] / (float)d;
}

// sum of (x - mean)^2 over a row in scratch
static inline float squares(const float *x, float mean, int64_t d) {
  tarn__vec sum[4] = {{0}};
  int64_t i = 0;
  for (; i + 4 * LANES <= d; i += 4 * LANES)
    for (int k = 0; k < 4; k++) {
      const tarn__vec off = tarn__vec_load(x + i + k * LANES) - mean;
      sum[k] = tarn__vec_fma(off, off, sum[k]);
    }
  for (; i < d; i += LANES) {
    const tarn__vec off = tarn__vec_first(tarn__vec_load(x + i) - mean, d - i, 0.0f);
    sum[0] = tarn__vec_fma(off, off, sum[0]);
  }
  return tarn__vec_sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]))[0];
}

TARN__VEC_INLINE void forward_part(const tarn__node *node, const part *p, tarn__dtype dtype, bool dropped,
                                   tarn__norm_form form) {
  const bool centred = form == TARN__NORM_LAYER;
  const tarn__tensor *x = node->in[TARN__RN_X], *branch = node->in[TARN__RN_BRANCH];
  const tarn__tensor *sum = node->out[TARN__RN_SUM], *y = node->out[TARN__RN_Y], *stats = node->out[TARN__RN_STATS];
  const float *gain = y ? node->in[TARN__RN_GAIN]->data : NULL;
  const float *bias = y && centred ? node->in[TARN__RN_BIAS]->data : NULL;
  const float epsilon = (float)((const tarn__residual_norm_attr *)node->attr)->epsilon;
  const int64_t d = x->cols;
  const float skip = skip_of(node), scalar = scalar_of(d);
  for (int64_t r = p->first; r < p->last; r++) {
    if (dropped) tarn__dropout_numbers(p->numbers, p->exec, p->dropout.site, r, 0, d);
    const float first = add_branch(p, x, branch, sum, r, skip, dtype, dropped), mean = centred ? first : 0.0f;
    if (!y) continue;
    const float rstd = 1.0f / sqrtf(squares(p->row, mean, d) / (float)d + epsilon);
    void *out = y->data;
    const int64_t at = r * d;
#define STEP(i, n)                                                                                    \
  do {                                                                                                \
    const tarn__vec normal = (tarn__vec_load(p->row + (i)) - mean) * rstd;                            \
    const tarn__vec g = gain_at(gain, form, scalar, i, n);                                            \
    const tarn__vec normed =                                                                          \
        centred ? tarn__vec_fma(normal, g, tarn__vec_read_first(bias, TARN__F32, i, n)) : normal * g; \
    tarn__vec_write_first(out, dtype, at + (i), normed, n);                                           \
  } while (0)
    TARN__VEC_EACH(0, d, STEP);
#undef STEP
    if (stats && centred) memcpy((float *)stats->data + 2 * r, (float[]){mean, rstd}, 2 * sizeof(float));
    if (stats && !centred) ((float *)stats->data)[r] = rstd;
  }
}

// Fewer rows, as of a step of decoding, are not worth waking other threads.
enum { ROWS_TO_SHARE = 8 };

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__RN_X];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1) if (x->rows >= ROWS_TO_SHARE)
  for (int which = 0; which < exec->threads; which++) {
    const part p = part_of(exec, node, which, x->rows, x->cols);
    WITH_CONSTANTS(forward_part, x->dtype, p.dropout.threshold != 0, form_of(node), node, &p);
  }
  return TARN_STATUS_OK;
}

// Mean of a row and 1 / its deviation, from the forward pass.
typedef struct moments {
  float mean, rstd;
} moments;

TARN__VEC_INLINE moments moments_of(const tarn__node *node, int64_t r, bool centred) {
  const float *stats = node->in[TARN__RN_SAVED_STATS]->data;
  return centred ? (moments){stats[2 * r], stats[2 * r + 1]} : (moments){0.0f, stats[r]};
}

// Means over a row of the gradient of the normalised row (RMS: zero), and of that times the normalised row.
typedef struct means {
  float g, gx;
} means;

// Those of row r; adds to the sums for the gradients of gain and bias. Rows are processed one by one: reading several
// at a time would save loads and stores of the sums, but defeats the hardware prefetcher.
TARN__VEC_INLINE means reduce(const tarn__node *node, const part *p, int64_t r, tarn__dtype dtype,
                              tarn__norm_form form) {
  const bool centred = form == TARN__NORM_LAYER;
  const void *dy = node->in[TARN__RN_DY]->data, *x = node->in[TARN__RN_SAVED]->data;
  const float *gain = node->in[TARN__RN_SAVED_GAIN]->data;
  const moments row = moments_of(node, r, centred);
  const float mean = row.mean, rstd = row.rstd;
  const int64_t d = node->in[TARN__RN_DY]->cols, at = r * d;
  const float scalar = scalar_of(d);
  tarn__vec g_sum = {0}, gx_sum = {0};
#define STEP(i, n)                                                                                    \
  do {                                                                                                \
    const tarn__vec gradient = tarn__vec_read_first(dy, dtype, at + (i), n);                          \
    const tarn__vec normal = (tarn__vec_read_first(x, dtype, at + (i), n) - mean) * rstd;             \
    const tarn__vec g = gradient * gain_at(gain, form, scalar, i, n);                                 \
    if (centred) g_sum += g;                                                                          \
    gx_sum = tarn__vec_fma(g, normal, gx_sum);                                                        \
    tarn__vec_store(p->dgain + (i), tarn__vec_fma(gradient, normal, tarn__vec_load(p->dgain + (i)))); \
    if (centred) tarn__vec_store(p->dbias + (i), tarn__vec_load(p->dbias + (i)) + gradient);          \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
  return (means){tarn__vec_sum_lanes(g_sum)[0] / (float)d, tarn__vec_sum_lanes(gx_sum)[0] / (float)d};
}

// g rstd + other, either of which may be absent. In F32 the product is fused with the sum, in BF16 it is rounded first:
// the difference only preserves the bits of earlier versions.
TARN__VEC_INLINE tarn__vec with_sum(bool norm, bool sum, tarn__vec g, float rstd, tarn__vec other, tarn__dtype dtype) {
  if (!norm || !sum) return norm ? g * rstd : other;
  return dtype == TARN__F32 ? tarn__vec_axpy(rstd, g, other) : g * rstd + other;
}

// The gradient of the sum of row r, and those derived from it. Without a norm m is NULL.
TARN__VEC_INLINE void backward_row(const tarn__node *node, const part *p, const means *m, int64_t r, tarn__dtype dtype,
                                   bool dropped, tarn__norm_form form) {
  const bool centred = form == TARN__NORM_LAYER;
  const tarn__tensor *dsum = node->in[TARN__RN_DSUM], *previous = node->in[TARN__RN_PREVIOUS];
  const tarn__tensor *dx = node->out[TARN__RN_DX], *dbranch = node->out[TARN__RN_DBRANCH];
  const void *dy = m ? node->in[TARN__RN_DY]->data : NULL, *x = m ? node->in[TARN__RN_SAVED]->data : NULL;
  const void *dsum_data = dsum ? dsum->data : NULL, *previous_data = previous ? previous->data : NULL;
  void *dx_data = dx ? dx->data : NULL, *dbranch_data = dbranch ? dbranch->data : NULL;
  const float *gain = m ? node->in[TARN__RN_SAVED_GAIN]->data : NULL;
  const moments row = m ? moments_of(node, r, centred) : (moments){0};
  const float mean = row.mean, rstd = row.rstd;
  const float mean_g = m ? m->g : 0.0f, mean_gx = m ? m->gx : 0.0f;
  const int64_t d = m ? node->in[TARN__RN_DY]->cols : dsum->cols, at = r * d;
  const float skip = skip_of(node), scalar = scalar_of(d);
#define STEP(i, n)                                                                                                  \
  do {                                                                                                              \
    tarn__vec g = {0};                                                                                              \
    if (m) {                                                                                                        \
      const tarn__vec normal = (tarn__vec_read_first(x, dtype, at + (i), n) - mean) * rstd;                         \
      g = tarn__vec_fma(tarn__vec_read_first(dy, dtype, at + (i), n), gain_at(gain, form, scalar, i, n),            \
                        tarn__vec_all(-mean_g));                                                                    \
      g = tarn__vec_axpy(-mean_gx, normal, g);                                                                      \
    }                                                                                                               \
    const tarn__vec other = dsum_data ? tarn__vec_read_first(dsum_data, dtype, at + (i), n) : (tarn__vec){0};       \
    g = with_sum(m, dsum_data, g, rstd, other, dtype);                                                              \
    const tarn__vec old = previous_data ? tarn__vec_read_first(previous_data, dtype, at + (i), n) : (tarn__vec){0}; \
    if (dbranch_data) tarn__vec_write_first(dbranch_data, dtype, at + (i), dropped ? drop(p, i, g) : g, n);         \
    if (dx_data) tarn__vec_write_first(dx_data, dtype, at + (i), g * skip + old, n);                                \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

TARN__VEC_INLINE void backward_part(const tarn__node *node, const part *p, int64_t d, tarn__dtype dtype, bool dropped,
                                    tarn__norm_form form) {
  for (int64_t r = p->first; r < p->last; r++) {
    if (dropped) tarn__dropout_numbers(p->numbers, p->exec, p->dropout.site, r, 0, d);
    if (node->in[TARN__RN_DY]) {
      const means m = reduce(node, p, r, dtype, form);
      backward_row(node, p, &m, r, dtype, dropped, form);
    } else {
      backward_row(node, p, NULL, r, dtype, dropped, form);
    }
  }
}

// The sum of a row in scratch, with possible cancellation.
static double sum_of(const float *row, int64_t d) {
  double sum = 0.0;
  for (int64_t i = 0; i < d; i++) sum += (double)row[i];
  return sum;
}

static void add_to_gradient(const tarn__exec *exec, const tarn__node *node, int which, int64_t rows, int64_t d) {
  tarn__param *param = node->dparam[which];
  if (!param) return;
  float *grad = param->training.grad;
  const bool scalar = which == TARN__RN_DGAIN && form_of(node) == TARN__NORM_SCALE;
  if (!tarn__param_accumulate(param)) memset(grad, 0, (size_t)(scalar ? 1 : d) * sizeof *grad);
  for (int t = 0; scalar && t < exec->threads; t++)
    grad[0] += sum_of(part_of(exec, node, t, rows, d).dgain, d) * scalar_of(d);
  for (int t = 0; !scalar && t < exec->threads; t++) {
    const part p = part_of(exec, node, t, rows, d);
    tarn__row_add(grad, which == TARN__RN_DGAIN ? p.dgain : p.dbias, d);
  }
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *any = node->in[TARN__RN_DY] ? node->in[TARN__RN_DY] : node->in[TARN__RN_DSUM];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    const part p = part_of(exec, node, which, any->rows, any->cols);
    const bool dropped = p.dropout.threshold != 0 && node->out[TARN__RN_DBRANCH] != NULL;
    memset(p.dgain, 0, 2 * tarn__row_floats(any->cols) * sizeof(float));
    WITH_CONSTANTS(backward_part, any->dtype, dropped, form_of(node), node, &p, any->cols);
  }
  add_to_gradient(exec, node, TARN__RN_DGAIN, any->rows, any->cols);
  add_to_gradient(exec, node, TARN__RN_DBIAS, any->rows, any->cols);
  return TARN_STATUS_OK;
}

const tarn__residual_norm_kernels TARN__FAST(tarn__residual_norm_kernels) = {forward, backward, scratch};
