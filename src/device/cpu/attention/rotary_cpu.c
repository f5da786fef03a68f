// Fast kernel: cosines and sines are computed in double, once for each position if there are few of them, else once for
// all heads of a row. No library functions or fused operations are used here, so every instruction set and every
// compiler gives the same bits.
#include "base/fixed.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/rotary.h"

enum {
  LANES = TARN__VEC_LANES,
  MOST = 1024,  // positions of a table
  SERIAL = 64   // positions that are computed faster than threads are woken
};

// Floats of the scratch: the turns of position 1 in double, followed by a table, or by a row of cosines and one of
// sines per thread.
static size_t turns_floats(int64_t half) { return 2 * tarn__row_floats(half); }
static size_t part_floats(int64_t half) { return 2 * tarn__row_floats(half); }

static int64_t half_of(const tarn__node *node) { return ((const tarn__rotary_attr *)node->attr)->spec.rotated / 2; }

// Positions of the table for a node that is not joined.
static int64_t most_of(const tarn__node *node) { return node->out[0]->rows < MOST ? node->out[0]->rows : MOST; }

static size_t scratch(const tarn__node *node, int threads) {
  const int64_t half = half_of(node);
  const size_t parts = part_floats(half) * (size_t)threads, whole = part_floats(half) * (size_t)most_of(node);
  return (turns_floats(half) + (parts > whole ? parts : whole)) * sizeof(float);
}

// Angles of position 1, in turns.
static void make_turns(double *turns, const tarn__rotary_spec *spec) {
  const double step = -2.0 / (double)spec->rotated * tarn__fixed_log(spec->base);
  for (int64_t i = 0; i < spec->rotated / 2; i++) {
    const double plain = tarn__fixed_exp((double)i * step) / 6.28318530717958647692;
    turns[i] = plain * tarn__rotary_slowing(&spec->scaling, plain);
  }
}

// sin(2 pi x) for x in [-1/4, 1/4]: its Taylor series in z = x^2, exact to 1e-13.
static inline __attribute__((always_inline)) double sin_turn(double x) {
  const double z = x * x;
  double p = 0.10422916220813984;
  p = p * z - 0.71812230177850054;
  p = p * z + 3.8199525848482821;
  p = p * z - 15.094642576822991;
  p = p * z + 42.058693944897651;
  p = p * z - 76.705859753061383;
  p = p * z + 81.605249276075050;
  p = p * z - 41.341702240399755;
  p = p * z + 6.2831853071795865;
  return p * x;
}

// Cosines and sines of a position's angles. They are folded to quarter turns as in embedding_cpu.c, but in double and
// without fused products: sinusoids are added to embeddings in fp32, where that is fast and exact enough, while
// rotations of queries and keys must have fp32 accuracy far from the first position. Whole turns are subtracted: adding
// 1.5 * 2^52 rounds to an integer.
static void make_angles(float *cosine, float *sine, double position, double sign, const double *turns, int64_t half) {
#pragma omp simd
  for (int64_t i = 0; i < half; i++) {
    const double all = position * turns[i], whole = (all + 6755399441055744.0) - 6755399441055744.0;
    const double x = all - whole;  // in [-1/2, 1/2]
    const double size = x < 0.0 ? -x : x;
    const double folded = size > 0.25 ? 0.5 - size : size;  // sin(pi - a) = sin(a)
    sine[i] = (float)(sign * sin_turn(x < 0.0 ? -folded : folded));
    cosine[i] = (float)sin_turn(0.25 - size);  // cos(a) = sin(pi / 2 - |a|)
  }
}

// Rotates one head, which begins at element `at`.
TARN__VEC_INLINE void turn_head(void *y, int64_t at, const float *cosine, const float *sine, int64_t half,
                                tarn__dtype dtype) {
#define STEP(i, n)                                                               \
  do {                                                                           \
    const tarn__vec first = tarn__vec_read_first(y, dtype, at + (i), n);         \
    const tarn__vec second = tarn__vec_read_first(y, dtype, at + half + (i), n); \
    const tarn__vec c = tarn__vec_read_first(cosine, TARN__F32, i, n);           \
    const tarn__vec s = tarn__vec_read_first(sine, TARN__F32, i, n);             \
    tarn__vec_write_first(y, dtype, at + (i), first * c - second * s, n);        \
    tarn__vec_write_first(y, dtype, at + half + (i), second * c + first * s, n); \
  } while (0)
  TARN__VEC_EACH(0, half, STEP);
#undef STEP
}

// Between the rows of a table, of cosines and then sines.
static int64_t angles_stride(int64_t half) { return (int64_t)part_floats(half); }

// The least position, and how many there are from it to the largest.
static int64_t span_of(int32_t *least, const tarn__tensor *positions) {
  const int32_t *position = positions->data;
  if (positions->cols == 0) return 0;
  int32_t low = position[0], high = position[0];
  for (int64_t r = 1; r < positions->cols; r++) {
    if (position[r] < low) low = position[r];
    if (position[r] > high) high = position[r];
  }
  *least = low;
  return (int64_t)high - low + 1;
}

static void fill_table(float *angles, const tarn__node *node, const double *turns, int32_t least, int64_t count,
                       int threads) {
  const int64_t half = half_of(node), stride = angles_stride(half);
  const double sign = ((const tarn__rotary_attr *)node->attr)->back ? -1.0 : 1.0;
#pragma omp parallel for num_threads(threads) schedule(static) if (count >= SERIAL)
  for (int64_t i = 0; i < count; i++)
    make_angles(angles + i * stride, angles + i * stride + stride / 2, (double)(least + i), sign, turns, half);
}

static size_t table_bytes(const tarn__node *node, int64_t most) {
  const int64_t half = half_of(node);
  return (turns_floats(half) + (size_t)(angles_stride(half) * most)) * sizeof(float);
}

static bool table(tarn__rotary_table *out, const tarn__node *node, float *memory, int64_t most, int threads) {
  *out = (tarn__rotary_table){.node = node};
  const int64_t count = span_of(&out->least, node->in[TARN__ROTARY_POSITIONS]);
  if (count > most) return false;
  double *turns = (double *)(void *)memory;
  float *angles = memory + turns_floats(half_of(node));
  make_turns(turns, &((const tarn__rotary_attr *)node->attr)->spec);
  fill_table(angles, node, turns, out->least, count, threads);
  out->angles = angles;
  return true;
}

static const float *angles_at(const tarn__rotary_table *t, int64_t r) {
  const int32_t *position = t->node->in[TARN__ROTARY_POSITIONS]->data;
  return t->angles + ((int64_t)position[r] - t->least) * angles_stride(half_of(t->node));
}

// A head's columns of rows [first, last). They are short pieces far apart, which the hardware prefetcher does not
// recognise.
TARN__VEC_INLINE void turn_rows(const tarn__rotary_table *t, void *y, tarn__dtype dtype, int64_t cols, int64_t column,
                                int64_t half, int64_t first, int64_t last) {
  enum { AHEAD = 12 };  // rows
  const int32_t *position = t->node->in[TARN__ROTARY_POSITIONS]->data;
  const int64_t stride = angles_stride(half), bytes = 2 * half * (int64_t)tarn__dtype_size(dtype);
  for (int64_t r = first; r < last; r++) {
    const float *cosine = t->angles + ((int64_t)position[r] - t->least) * stride;
    const char *next = (const char *)y + ((r + AHEAD) * cols + column) * (int64_t)tarn__dtype_size(dtype);
    for (int64_t i = 0; i < bytes && r + AHEAD < last; i += 64) __builtin_prefetch(next + i, 1);
    turn_head(y, r * cols + column, cosine, cosine + stride / 2, half, dtype);
  }
}

static void turn(const tarn__rotary_table *t, int64_t head, int64_t first, int64_t last) {
  const tarn__rotary_spec *spec = &((const tarn__rotary_attr *)t->node->attr)->spec;
  const tarn__tensor *y = t->node->out[0];
  const int64_t column = spec->column + head * spec->width;
  if (y->dtype == TARN__BF16)
    turn_rows(t, y->data, TARN__BF16, y->cols, column, half_of(t->node), first, last);
  else
    turn_rows(t, y->data, TARN__F32, y->cols, column, half_of(t->node), first, last);
}

// Rows [begin, end), by a table (NULL: none), or with `part`, room for the angles of a row.
static void run_rows(const tarn__node *node, const tarn__rotary_table *t, const double *turns, float *part,
                     int64_t begin, int64_t end) {
  const tarn__rotary_attr *attr = node->attr;
  const tarn__rotary_spec *spec = &attr->spec;
  const tarn__tensor *x = node->in[TARN__ROTARY_X], *y = node->out[0];
  const int32_t *position = node->in[TARN__ROTARY_POSITIONS]->data;
  const int64_t half = half_of(node);
  const size_t row_bytes = (size_t)x->cols * tarn__dtype_size(x->dtype);
  const float *cosine = part, *sine = part + tarn__row_floats(half);
  for (int64_t r = begin; r < end; r++) {
    if (y->data != x->data)
      memcpy((char *)y->data + (size_t)r * row_bytes, (const char *)x->data + (size_t)r * row_bytes, row_bytes);
    if (t)
      sine = (cosine = angles_at(t, r)) + tarn__row_floats(half);
    else if (r == begin || position[r] != position[r - 1])
      make_angles(part, part + tarn__row_floats(half), (double)position[r], attr->back ? -1.0 : 1.0, turns, half);
    for (int64_t h = 0; h < spec->heads; h++) {
      const int64_t at = r * x->cols + spec->column + h * spec->width;
      if (y->dtype == TARN__BF16)
        turn_head(y->data, at, cosine, sine, half, TARN__BF16);
      else
        turn_head(y->data, at, cosine, sine, half, TARN__F32);
    }
  }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__rotary_attr *attr = node->attr;
  const int64_t half = half_of(node), rows = node->out[0]->rows;
  double *turns = node->scratch;
  float *parts = (float *)node->scratch + turns_floats(half);
  tarn__rotary_table angles;
  const bool few = table(&angles, node, node->scratch, most_of(node), exec->threads);
  if (!few) make_turns(turns, &attr->spec);
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++)
    run_rows(node, few ? &angles : NULL, turns, parts + (size_t)which * part_floats(half), rows * which / exec->threads,
             rows * (which + 1) / exec->threads);
  return TARN_STATUS_OK;
}

const tarn__rotary_kernels TARN__FAST(tarn__rotary_kernels) = {forward, scratch, table_bytes, table, turn};
