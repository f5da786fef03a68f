// Fast kernels: one pass over the rows of each direction, while their common forward row is in L1.
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/rows/tangent_kernels.h"
#include "ops/residual_norm.h"

// Scratch of a thread: the row t, n = (saved - mean) rstd, gain rstd, in floats; 16-bit numbers of dropout.
static size_t numbers_floats(int64_t d) { return tarn__dropout_room(d) * sizeof(uint16_t) / sizeof(float); }

static size_t part_floats(int64_t d) { return 3 * tarn__row_floats(d) + numbers_floats(d); }

static size_t scratch(int64_t d, int threads) { return part_floats(d) * sizeof(float) * (size_t)threads; }

// The state of a thread.
typedef struct part {
  const tarn__node *node;
  tarn__dropout dropout;
  float keep_scale, skip;
  float *t, *normal, *factor;
  uint16_t *numbers;
} part;

static part part_of(const tarn__node *node, int which, int64_t d) {
  const tarn__residual_norm_attr *attr = node->attr;
  float *base = (float *)node->scratch + (size_t)which * part_floats(d);
  const size_t n = tarn__row_floats(d);
  return (part){.node = node,
                .dropout = attr->dropout,
                .keep_scale = (float)tarn__dropout_scale(attr->dropout),
                .skip = (float)attr->skip,
                .t = base,
                .normal = base + n,
                .factor = base + 2 * n,
                .numbers = (uint16_t *)(void *)(base + 3 * n)};
}

// The normalised row r of the forward pass, and the factor of its tangent.
TARN__VEC_INLINE void read_row(const part *p, int64_t r, int64_t d, tarn__norm_form form) {
  const tarn__tensor *stats = p->node->in[TARN__RN_TANGENT_STATS];
  const float *saved = (const float *)p->node->in[TARN__RN_TANGENT_SAVED]->data + r * d;
  const float *gain = p->node->in[TARN__RN_TANGENT_GAIN]->data, *stat = (const float *)stats->data + stats->cols * r;
  const float mean = form == TARN__NORM_LAYER ? stat[0] : 0.0f, rstd = stat[stats->cols - 1];
  const float scalar = rstd / sqrtf((float)d);
#define STEP(i, n)                                                                                                   \
  do {                                                                                                               \
    tarn__vec_store(p->normal + (i), (tarn__vec_read_first(saved, TARN__F32, i, n) - mean) * rstd);                  \
    tarn__vec_store(p->factor + (i), form == TARN__NORM_SCALE ? tarn__vec_all(gain[0] * scalar)                      \
                                                              : tarn__vec_read_first(gain, TARN__F32, i, n) * rstd); \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

// Means over a row: of t (only for LAYER), and of t times the normalised row.
typedef struct means {
  float t, nt;
} means;

// p->t = skip dx + mask dbranch, also stored in dsum; row `at / d` of the tangents.
TARN__VEC_INLINE means add_row(const part *p, int64_t at, int64_t d, bool norm, bool dropped) {
  const tarn__tensor *dx = p->node->in[TARN__RN_TANGENT_X], *dbranch = p->node->in[TARN__RN_TANGENT_BRANCH];
  const tarn__tensor *dsum = p->node->out[TARN__RN_TANGENT_SUM];
  const float *x = dx ? (const float *)dx->data + at : NULL, *b = dbranch ? (const float *)dbranch->data + at : NULL;
  float *out = dsum ? (float *)dsum->data + at : NULL;
  const float skip = p->skip;
  tarn__vec sum = {0}, product = {0};
#define STEP(i, n)                                                                                        \
  do {                                                                                                    \
    tarn__vec t = x ? tarn__vec_read_first(x, TARN__F32, i, n) * skip : (tarn__vec){0};                   \
    if (b) {                                                                                              \
      tarn__vec branch = tarn__vec_read_first(b, TARN__F32, i, n);                                        \
      if (dropped) {                                                                                      \
        const tarn__vec_int kept = tarn__vec_load_u16(p->numbers + (i)) >= (int32_t)p->dropout.threshold; \
        branch = tarn__vec_select(kept, branch * p->keep_scale, (tarn__vec){0});                          \
      }                                                                                                   \
      t += branch;                                                                                        \
    }                                                                                                     \
    if (out) tarn__vec_write_first(out, TARN__F32, i, t, n);                                              \
    if (norm) {                                                                                           \
      tarn__vec_store(p->t + (i), t);                                                                     \
      sum += t;                                                                                           \
      product = tarn__vec_fma(t, tarn__vec_load(p->normal + (i)), product);                               \
    }                                                                                                     \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
  if (!norm) return (means){0};
  return (means){tarn__vec_sum_lanes(sum)[0] / (float)d, tarn__vec_sum_lanes(product)[0] / (float)d};
}

// All directions of row r.
TARN__VEC_INLINE void each_direction(const part *p, const tarn__exec *exec, int64_t r, tarn__norm_form form) {
  const tarn__tensor *saved = p->node->in[TARN__RN_TANGENT_SAVED], *dy = p->node->out[TARN__RN_TANGENT_Y];
  const tarn__tensor *any =
      p->node->in[TARN__RN_TANGENT_X] ? p->node->in[TARN__RN_TANGENT_X] : p->node->in[TARN__RN_TANGENT_BRANCH];
  const int64_t d = saved->cols;
  const bool dropped = p->dropout.threshold != 0 && p->node->in[TARN__RN_TANGENT_BRANCH];
  if (dropped) tarn__dropout_numbers(p->numbers, exec, p->dropout.site, r, 0, d);
  if (dy) read_row(p, r, d, form);
  for (int64_t row = r; row < any->rows; row += saved->rows) {
    const means m = dropped ? add_row(p, row * d, d, dy, true) : add_row(p, row * d, d, dy, false);
    if (!dy) continue;
    const float mean = form == TARN__NORM_LAYER ? m.t : 0.0f;
    float *out = (float *)dy->data + row * d;
#define STEP(i, n)                                                                                                   \
  do {                                                                                                               \
    const tarn__vec off = tarn__vec_axpy(-m.nt, tarn__vec_load(p->normal + (i)), tarn__vec_load(p->t + (i)) - mean); \
    tarn__vec_write_first(out, TARN__F32, i, off *tarn__vec_load(p->factor + (i)), n);                               \
  } while (0)
    TARN__VEC_EACH(0, d, STEP);
#undef STEP
  }
}

static tarn_status run(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *saved = node->in[TARN__RN_TANGENT_SAVED];
  const tarn__norm_form form = ((const tarn__residual_norm_attr *)node->attr)->form;
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    const part p = part_of(node, which, saved->cols);
    const int64_t last = saved->rows * (which + 1) / exec->threads;
    for (int64_t r = saved->rows * which / exec->threads; r < last; r++)
      form == TARN__NORM_LAYER ? each_direction(&p, exec, r, TARN__NORM_LAYER)
      : form == TARN__NORM_RMS ? each_direction(&p, exec, r, TARN__NORM_RMS)
                               : each_direction(&p, exec, r, TARN__NORM_SCALE);
  }
  return TARN_STATUS_OK;
}

const tarn__norm_tangent_kernels TARN__FAST(tarn__norm_tangent_kernels) = {run, scratch};
