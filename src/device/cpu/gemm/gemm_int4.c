#include "device/cpu/gemm/gemm_int4.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/gemm/gemm_cut.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"

enum {
  GROUP = TARN__INT4_GROUP,
  PAIR = TARN__INT4_PAIR,
  FEW = 12,                // rows that read B as it is packed
  OWN = 2,                 // rows that every thread quantises for itself, sooner than waiting for another
  TASKS = 2,               // per thread, of many rows: one that is disturbed leaves work to others
  ROOM_BYTES = 512 << 10,  // of a piece of B that is widened, at most, and thus stays in the L2 cache
  FEW_BYTES = 1024 << 10  // of a task of few rows, which may read B again, at most; smaller ones stop reading too often
};

static const double SERIAL_FLOPS = 1e6;  // a smaller product is not worth waking other threads
static const float INT8_MOST = 127.0f;

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static const tarn__gemm_int4_kernels *kernels_now(void) { return TARN__TABLE_NOW(tarn__gemm_int4_kernels); }

static int64_t panels_of(const tarn__gemm *g) {
  const int64_t panel = tarn__gemm_kernels_now()->panel;
  return (g->n + panel - 1) / panel;
}

static int64_t panel_bytes(const tarn__gemm *g) {
  return tarn__gemm_kernels_now()->panel * tarn__int4_pairs(g->k) * TARN__INT4_PAIR_BYTES;
}

// --- rounding and packing

// Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits. |x * inverse| is small.
static int32_t nearest(float x, float inverse, int32_t least, int32_t most) {
  const int32_t whole = (int32_t)(tarn__row_float_to_bits(x * inverse + 12582912.0f) - 0x4B400000u);
  return whole < least ? least : whole > most ? most : whole;
}

static float inverse_of(float scale) {
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  return isfinite(inverse) ? inverse : 0.0f;
}

// Rounds by a scale; returns the sum of squared errors.
static float round_by(signed char out[GROUP], const float x[GROUP], float scale) {
  const float inverse = inverse_of(scale);
  float errors = 0.0f;
  for (int i = 0; i < GROUP; i++) {
    const int32_t whole = nearest(x[i], inverse, -TARN__INT4_ZERO, TARN__INT4_ZERO - 1);
    const float error = x[i] - scale * (float)whole;
    out[i] = (signed char)whole;
    errors += error * error;
  }
  return errors;
}

// The scale that a group would have for itself: the number of greatest magnitude becomes -8, of which there is one more
// than of 7; then the squared error is made least for the integers found.
static float scale_alone(const float x[GROUP]) {
  signed char q[GROUP];
  float most = 0.0f, products = 0.0f, squares = 0.0f;
  for (int i = 0; i < GROUP; i++)
    if (fabsf(x[i]) > fabsf(most)) most = x[i];
  (void)round_by(q, x, most / -TARN__INT4_ZERO);
  for (int i = 0; i < GROUP; i++) {
    products += x[i] * (float)q[i];
    squares += (float)q[i] * (float)q[i];
  }
  return squares > 0.0f && isfinite(products) ? products / squares : most / -TARN__INT4_ZERO;
}

// Of the factors around the scale that the group would have for itself the one with the least squared error. Both are
// in units of the scale of the column.
static void round_group(unsigned char out[TARN__INT4_GROUP_BYTES], const float x[GROUP], float alone) {
  signed char q[GROUP] = {0}, tried[GROUP];
  const int32_t middle = nearest(fabsf(alone), 1.0f, 0, TARN__INT4_MOST_FACTOR);
  int32_t best = 0;
  float least = INFINITY;
  for (int32_t f = middle - 1; f <= middle + 1; f++) {
    if (f < 1 || f > TARN__INT4_MOST_FACTOR) continue;
    const int32_t factor = alone < 0.0f ? -f : f;
    const float errors = round_by(tried, x, (float)factor);
    if (errors >= least) continue;
    least = errors;
    best = factor;
    memcpy(q, tried, sizeof q);
  }
  out[0] = (unsigned char)best;
  for (int i = 0; i < GROUP / 2; i++)
    out[1 + i] = (unsigned char)((q[2 * i] + TARN__INT4_ZERO) | (q[2 * i + 1] + TARN__INT4_ZERO) << 4);
}

// Terms of a column, as floats; after the last one zeros.
static void read_group(float out[GROUP], const tarn__gemm *g, int64_t column, int64_t group) {
  const int64_t k = group * GROUP, terms = g->k - k < GROUP ? g->k - k : GROUP;
  memset(out, 0, GROUP * sizeof *out);
  tarn__row_copy(out, g->b, g->dtype, column * g->ldb + k, terms);
}

// A column of B, [groups][17]; returns its scale.
static float round_column(unsigned char *out, const tarn__gemm *g, int64_t column) {
  const int64_t groups = tarn__int4_groups(g->k);
  float x[GROUP], alone[TARN__INT4_MOST_TERMS / GROUP], most = 0.0f;
  bool finite = true;
  for (int64_t group = 0; group < groups; group++) {
    read_group(x, g, column, group);
    for (int i = 0; i < GROUP; i++) finite &= isfinite(x[i]) != 0;
    alone[group] = scale_alone(x);
    if (fabsf(alone[group]) > most) most = fabsf(alone[group]);
  }
  const float scale = finite ? most / TARN__INT4_MOST_FACTOR : NAN, inverse = finite ? inverse_of(scale) : 0.0f;
  for (int64_t group = 0; group < groups; group++, out += TARN__INT4_GROUP_BYTES) {
    read_group(x, g, column, group);
    for (int i = 0; i < GROUP; i++) x[i] = finite ? x[i] * inverse : 0.0f;
    round_group(out, x, finite ? alone[group] * inverse : 0.0f);
  }
  return scale;
}

void tarn__gemm_round_int4(unsigned char *values, float *scales, const tarn__gemm *gemm, int threads) {
  const int64_t bytes = tarn__int4_bytes(gemm->k);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t j = 0; j < gemm->n; j++) scales[j] = round_column(values + j * bytes, gemm, j);
}

// What follows the panels of a packed B.
typedef struct columns {
  float *scales;
  int32_t *sums;
} columns;

static columns columns_of(const tarn__gemm *g, const void *packed) {
  tarn__gemm all = *g;
  all.n = tarn__gemm_all_columns(g);
  const int64_t panels = panels_of(&all);
  float *scales = (float *)(void *)((char *)(uintptr_t)packed + panels * panel_bytes(g));
  return (columns){scales, (int32_t *)(void *)(scales + panels * tarn__gemm_kernels_now()->panel)};
}

// Places column c of a panel, [groups][17], in a panel of zeros. Returns the sum of its integers.
static int32_t place_column(unsigned char *panel, const unsigned char *column, int64_t c, int64_t groups) {
  const int64_t width = tarn__gemm_kernels_now()->panel;
  int32_t sum = 0;
  for (int64_t group = 0; group < groups; group++) {
    unsigned char *pair = panel + width * (group / 2 * TARN__INT4_PAIR_BYTES);
    unsigned char *words = pair + 2 * width + group % 2 * TARN__INT4_WORDS * width * 4 + c * 4;
    const int factor = tarn__int4_factor(column, group);
    pair[2 * c + group % 2] = (unsigned char)factor;
    for (int64_t t = 0; t < GROUP; t++) {
      const int whole = tarn__int4_term(column, group * GROUP + t);
      sum += factor * whole;
      words[t / 8 * width * 4 + t % 4] |= (unsigned char)((whole + TARN__INT4_ZERO) << (t / 4 % 2 * 4));
    }
  }
  return sum;
}

// `column` has room for one.
static void pack_panel(void *packed, unsigned char *column, const tarn__gemm *g, int64_t panel) {
  const int64_t width = tarn__gemm_kernels_now()->panel;
  const columns of = columns_of(g, packed);
  unsigned char *out = (unsigned char *)packed + panel * panel_bytes(g);
  memset(out, 0, (size_t)panel_bytes(g));
  for (int64_t c = 0; c < width; c++) {
    const int64_t j = panel * width + c;
    of.scales[j] = 0.0f;
    of.sums[j] = 0;
    if (j >= g->n) continue;
    const bool rounded = g->b_scales != NULL;
    of.scales[j] = rounded ? g->b_scales[j] : round_column(column, g, j);
    const unsigned char *from = rounded ? (const unsigned char *)g->b + j * tarn__int4_bytes(g->k) : column;
    of.sums[j] = place_column(out, from, c, tarn__int4_groups(g->k));
  }
}

static size_t pack_bytes(const tarn__gemm *gemm) {
  const int64_t head = tarn__gemm_kernels_now()->panel * (int64_t)(sizeof(float) + sizeof(int32_t));
  return aligned((size_t)(panels_of(gemm) * (panel_bytes(gemm) + head)));
}

static void pack(void *packed, const tarn__gemm *gemm, int threads) {
  unsigned char column[TARN__INT4_MOST_TERMS / GROUP * TARN__INT4_GROUP_BYTES];
  const int64_t panels = panels_of(gemm);
#pragma omp parallel for num_threads(threads) schedule(static) private(column)
  for (int64_t panel = 0; panel < panels; panel++) pack_panel(packed, column, gemm, panel);
}

// --- running

// Scratch: the rows of A as bytes, their scales and, of few rows, the zeros, for all threads or for each; and a room
// for each thread.
typedef struct layout {
  bool few, own;  // own: every thread has rows of its own
  int threads;
  size_t scales, zeros, bytes, room_bytes;
  int64_t row_bytes;
  tarn__cut pieces;  // of columns, in whole panels
} layout;

static layout layout_of(const tarn__gemm *g, int threads) {
  const int64_t panel = tarn__gemm_kernels_now()->panel,
                rows = (g->m + TARN__GEMM_INT8_ROWS - 1) / TARN__GEMM_INT8_ROWS * TARN__GEMM_INT8_ROWS;
  layout l = {.few = g->m <= FEW,
              .own = g->m <= OWN,
              .threads = 2.0 * (double)g->m * (double)g->n * (double)g->k < SERIAL_FLOPS ? 1 : threads,
              .row_bytes = tarn__int4_pairs(g->k) * PAIR};
  l.scales = aligned((size_t)(rows * l.row_bytes));
  l.zeros = l.scales + aligned((size_t)rows * sizeof(float));
  l.bytes = l.zeros + (l.few ? aligned((size_t)(g->m * l.row_bytes / GROUP) * sizeof(int32_t)) : 0);
  const int64_t each = l.few ? panel_bytes(g) : panel * l.row_bytes, most = l.few ? FEW_BYTES : ROOM_BYTES;
  int64_t pieces = (panels_of(g) * each + most - 1) / most;
  const int64_t least = (l.few ? 1 : (int64_t)TASKS) * l.threads;
  if (pieces < least) pieces = least;
  l.pieces = tarn__cut_into(g->n, panel, pieces);
  if (!l.few) l.room_bytes = (size_t)(tarn__cut_largest(&l.pieces) * l.row_bytes);
  return l;
}

static size_t scratch(const tarn__gemm *gemm, int threads) {
  const layout l = layout_of(gemm, threads);
  return (l.own ? (size_t)l.threads : 1) * l.bytes + (size_t)l.threads * l.room_bytes;
}

static void quantise_row(const tarn__gemm *g, char *memory, const layout *l, int64_t r) {
  const tarn__gemm_kernels *kernels = tarn__gemm_kernels_now();
  const int zero = l->few ? 0 : kernels->zero;
  const int64_t groups = l->row_bytes / GROUP, units = (g->k + 3) / 4 * 4;
  char *out = memory + r * l->row_bytes;
  float *scale = (float *)(void *)(memory + l->scales) + r;
  const char *row = (const char *)g->a + r * g->lda * (int64_t)tarn__dtype_size(g->dtype);
  *scale = kernels->magnitude(row, g->dtype, g->k) / INT8_MOST;
  kernels->quantise((uint8_t *)out, row, g->dtype, g->k, *scale > 0.0f ? 1.0f / *scale : 0.0f, zero);
  memset(out + units, zero, (size_t)(l->row_bytes - units));
  if (l->few)
    kernels_now()->find_zeros((int32_t *)(void *)(memory + l->zeros) + r * groups, (const signed char *)out, groups);
}

static void run_few(const tarn__gemm *g, const char *memory, const layout *l, int64_t first, int64_t count) {
  const columns of = columns_of(g, g->packed);
  const tarn__int4_block block = {
      .a = (const signed char *)memory,
      .row_scales = (const float *)(const void *)(memory + l->scales),
      .zeros = (const int32_t *)(const void *)(memory + l->zeros),
      .b = (const unsigned char *)g->packed + (g->first + first) / tarn__gemm_kernels_now()->panel * panel_bytes(g),
      .column_scales = of.scales + g->first + first,
      .rows = g->m,
      .columns = count,
      .pairs = l->row_bytes / PAIR,
      .c = (char *)g->c + first * (int64_t)tarn__dtype_size(g->c_dtype),
      .ldc = g->ldc,
      .c_dtype = g->c_dtype,
      .bias = g->bias != NULL ? g->bias + first : NULL,
      .accumulate = g->accumulate,
      .relu = g->relu};
  kernels_now()->multiply(&block);
}

static void run_many(const tarn__gemm *g, const char *memory, const layout *l, uint32_t *room, int64_t first,
                     int64_t count) {
  const tarn__gemm_kernels *kernels = tarn__gemm_kernels_now();
  const int64_t units = l->row_bytes / 4;
  const columns of = columns_of(g, g->packed);
  for (int64_t j = 0; j < count; j += kernels->panel) {
    const int64_t panel = (g->first + first + j) / kernels->panel;
    kernels_now()->widen(room + j * units, (const unsigned char *)g->packed + panel * panel_bytes(g),
                         l->row_bytes / PAIR);
  }
  const tarn__gemm_block block = {.a = memory,
                                  .row_bytes = l->row_bytes,
                                  .b = room,
                                  .m = g->m,
                                  .n = count,
                                  .units = units,
                                  .c = (char *)g->c + first * (int64_t)tarn__dtype_size(g->c_dtype),
                                  .ldc = g->ldc,
                                  .c_dtype = g->c_dtype,
                                  .bias = g->bias != NULL ? g->bias + first : NULL,
                                  .row_scales = (const float *)(const void *)(memory + l->scales),
                                  .column_scales = of.scales + g->first + first,
                                  .column_sums = of.sums + g->first + first,
                                  .accumulate = g->accumulate,
                                  .relu = g->relu};
  kernels->multiply_int8(&block);
}

static void run(const tarn__gemm *gemm, int threads, void *scratch_memory) {
  const layout l = layout_of(gemm, threads);
#pragma omp parallel num_threads(l.threads)
  {
    const size_t thread = (size_t)omp_get_thread_num();
    char *memory = (char *)scratch_memory + (l.own ? thread * l.bytes : 0);
    char *room = (char *)scratch_memory + l.bytes + thread * l.room_bytes;
    if (l.own) {
      for (int64_t r = 0; r < gemm->m; r++) quantise_row(gemm, memory, &l, r);
    } else {
#pragma omp for schedule(static)
      for (int64_t r = 0; r < gemm->m; r++) quantise_row(gemm, memory, &l, r);
    }
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t piece = 0; piece < l.pieces.pieces; piece++) {
      const int64_t first = tarn__cut_start(&l.pieces, piece), count = tarn__cut_size(&l.pieces, piece);
      if (l.few)
        run_few(gemm, memory, &l, first, count);
      else
        run_many(gemm, memory, &l, (uint32_t *)(void *)room, first, count);
      if (gemm->complete != NULL) gemm->complete(gemm, 0, gemm->m, first, count);
    }
  }
}

const tarn__gemm_way tarn__gemm_int4 = {.scratch = scratch, .run = run, .pack_bytes = pack_bytes, .pack = pack};
