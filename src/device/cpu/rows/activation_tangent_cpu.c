// Fast kernels: the slope of a piece of a row is computed once, and used for all directions while it is in L1.
// Memory-bound.
#include "device/cpu/rows/activation_vec.h"
#include "device/cpu/rows/tangent_kernels.h"
#include "ops/glu.h"

// Columns that stay in L1.
enum { PIECE = 1024 };

typedef struct piece {
  const tarn__node *node;
  int64_t rows, d;      // of the forward pass; of the result
  int64_t r, first, n;  // the row, and its columns
} piece;

TARN__VEC_INLINE void activation_piece(const piece *p, tarn__activation form) {
  _Alignas(64) float slope[PIECE];
  const tarn__tensor *dx = p->node->in[TARN__ACTIVATION_DX], *dy = p->node->out[0];
  const float *saved = (const float *)p->node->in[TARN__ACTIVATION_SAVED]->data + p->r * p->d + p->first;
#define SLOPE(i, n) \
  tarn__vec_store(slope + (i), tarn__activation_slope_vec(tarn__vec_read_first(saved, TARN__F32, i, n), form))
  TARN__VEC_EACH(0, p->n, SLOPE);
#undef SLOPE
  for (int64_t row = p->r; row < dx->rows; row += p->rows) {
    const float *in = (const float *)dx->data + row * p->d + p->first;
    float *out = (float *)dy->data + row * p->d + p->first;
#define STEP(i, n) \
  tarn__vec_write_first(out, TARN__F32, i, tarn__vec_read_first(in, TARN__F32, i, n) * tarn__vec_load(slope + (i)), n)
    TARN__VEC_EACH(0, p->n, STEP);
#undef STEP
  }
}

// dy = dleft gate + left gate' dright.
TARN__VEC_INLINE void glu_piece(const piece *p, tarn__activation form) {
  _Alignas(64) float gate[PIECE], slope[PIECE];
  const tarn__tensor *dx = p->node->in[TARN__GLU_DX], *dy = p->node->out[0];
  const int64_t d = p->d;
  const float *x = (const float *)p->node->in[TARN__GLU_X]->data + 2 * p->r * d + p->first;
#define GATE(i, n)                                                                \
  do {                                                                            \
    const tarn__vec right = tarn__vec_read_first(x, TARN__F32, d + (i), n);       \
    const tarn__vec left = tarn__vec_read_first(x, TARN__F32, i, n);              \
    tarn__vec_store(gate + (i), tarn__activation_vec(right, form));               \
    tarn__vec_store(slope + (i), left * tarn__activation_slope_vec(right, form)); \
  } while (0)
  TARN__VEC_EACH(0, p->n, GATE);
#undef GATE
  for (int64_t row = p->r; row < dx->rows; row += p->rows) {
    const float *in = (const float *)dx->data + 2 * row * d + p->first;
    float *out = (float *)dy->data + row * d + p->first;
#define STEP(i, n)                                                                                           \
  do {                                                                                                       \
    const tarn__vec by_gate = tarn__vec_read_first(in, TARN__F32, d + (i), n) * tarn__vec_load(slope + (i)); \
    const tarn__vec left = tarn__vec_read_first(in, TARN__F32, i, n);                                        \
    tarn__vec_write_first(out, TARN__F32, i, tarn__vec_fma(left, tarn__vec_load(gate + (i)), by_gate), n);   \
  } while (0)
    TARN__VEC_EACH(0, p->n, STEP);
#undef STEP
  }
}

// Compiled once for each activation.
#define EACH_FORM(function)                           \
  switch (*(const tarn__activation *)p->node->attr) { \
    TARN__EACH_ACTIVATION(function)                   \
    case TARN__ACTIVATIONS_END:                       \
      break;                                          \
  }
#define ACTIVATION_CASE(form, ...) \
  case form:                       \
    activation_piece(p, form);     \
    break;
#define GLU_CASE(form, ...) \
  case form:                \
    glu_piece(p, form);     \
    break;

static void activation_any(const piece *p) { EACH_FORM(ACTIVATION_CASE) }

static void glu_any(const piece *p) { EACH_FORM(GLU_CASE) }

// All pieces of the rows of the forward pass.
static tarn_status each_piece(const tarn__exec *exec, const tarn__node *node, const tarn__tensor *forward,
                              void (*function)(const piece *p)) {
  const int64_t d = node->out[0]->cols, pieces = (d + PIECE - 1) / PIECE;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t item = 0; item < forward->rows * pieces; item++) {
    const int64_t first = item % pieces * PIECE;
    const piece p = {node, forward->rows, d, item / pieces, first, d - first < PIECE ? d - first : PIECE};
    function(&p);
  }
  return TARN_STATUS_OK;
}

static tarn_status activation(const tarn__exec *exec, const tarn__node *node) {
  return each_piece(exec, node, node->in[TARN__ACTIVATION_SAVED], activation_any);
}

static tarn_status glu(const tarn__exec *exec, const tarn__node *node) {
  return each_piece(exec, node, node->in[TARN__GLU_X], glu_any);
}

const tarn__activation_tangent_kernels TARN__FAST(tarn__activation_tangent_kernels) = {activation, glu};
