#include "device/cpu/gemm/gemm.h"

#include <omp.h>
#include <pthread.h>

#include "device/cpu/gemm/gemm_cut.h"
#include "device/cpu/gemm/gemm_int4.h"
#include "device/cpu/gemm/gemm_kernels.h"
#include "device/cpu/gemm/gemm_split.h"
#include "device/cpu/gemm/gemm_tiles.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"

enum {
  LINE_BYTES = 4096,        // maximum of a line of A or B in one chunk of k
  ACROSS_BYTES = 2048,      // the same if rows of A are strided
  BLOCK_BYTES = 256 << 10,  // maximum of a block of A in one chunk, which stays in the L2 cache
  PAGE_BYTES = 4096,
  CHUNK_UNIT = 4,
  TASKS = 2,  // minimum per thread, if a task has LEAST_ROWS rows or LEAST_COLUMNS columns
  LEAST_ROWS = 64,
  LEAST_COLUMNS = 256,
  PACK_TERMS = 64  // terms of k that one thread packs at a time; even
};

static const double SERIAL_FLOPS = 1e6;  // a smaller product is not worth waking other threads

// The plan of a product.
typedef struct plan {
  const tarn__gemm_kernels *kernels;
  tarn__gemm_arithmetic arithmetic;
  int64_t group, step;  // rows of A in groups and steps for this arithmetic
  tarn__cut m, n, k;    // rows of C; columns of C, in whole panels; terms of the sums
  int threads;
  const char *a;        // A as it is read: g->a, or its rows quantised to INT8
  int64_t lda, a_size;  // elements between rows, bytes of an element
  const float *row_scales;
  bool pack_a;                    // A is not read in place
  bool partial;                   // sums over several chunks of k are kept in fp32 until they are complete
  size_t b_bytes;                 // of scratch: the packed B
  size_t a_bytes, partial_bytes;  // and per thread: a packed block of A, sums of a block of C
} plan;

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

static tarn__gemm_arithmetic arithmetic_of(const tarn__gemm_kernels *kernels, const tarn__gemm *g) {
  if (g->int8) return TARN__GEMM_INT8;
  if (g->dtype == TARN__F32) return TARN__GEMM_F32;
  return kernels->multiply_bf16 != NULL ? TARN__GEMM_BF16 : TARN__GEMM_WIDE;
}

// Chunks of k are whole units of 32 bits, and as many as lie side by side, except the last.
static tarn__cut chunks_of(const tarn__gemm *g, const tarn__gemm_kernels *kernels, tarn__gemm_arithmetic arithmetic) {
  const int64_t terms = tarn__gemm_unit_terms(arithmetic), whole = terms * tarn__gemm_beside(kernels, arithmetic);
  const int64_t most = (g->transpose_a ? ACROSS_BYTES : LINE_BYTES) / (4 / terms);
  return tarn__cut_into(g->k, whole > CHUNK_UNIT ? whole : CHUNK_UNIT, (g->k + most - 1) / most);
}

// Rows whose distance is a whole number of pages map to the same few sets of the L1 cache; those of one step fit there.
static bool must_pack_a(const tarn__gemm *g, const plan *p) {
  if (p->arithmetic == TARN__GEMM_INT8) return false;
  const bool odd = p->arithmetic == TARN__GEMM_BF16 && g->k % (2 * p->kernels->beside) != 0;
  const bool same_places = g->m > p->step && g->lda * (int64_t)tarn__dtype_size(g->dtype) % PAGE_BYTES == 0;
  return g->transpose_a || p->arithmetic == TARN__GEMM_WIDE || odd || same_places;
}

int64_t tarn__gemm_int8_row(int64_t k) { return round_up(k, 4 * tarn__gemm_kernels_now()->beside); }

// Rows of A as bytes and their scales, in whole groups: after the last row, and after the last term of a row, a kernel
// reads arbitrary values; sums of such rows are discarded, and B has zeros for such terms.
static size_t quantised_bytes(const tarn__gemm *g) {
  const int64_t rows = round_up(g->m, TARN__GEMM_INT8_ROWS);
  if (!g->int8 || g->a_rounded) return 0;
  return aligned((size_t)(rows * tarn__gemm_int8_row(g->k))) + aligned((size_t)rows * sizeof(float));
}

// Columns of all panels of B.
static int64_t columns_of_b(const tarn__gemm *g, const plan *p) {
  return round_up(tarn__gemm_all_columns(g), p->kernels->panel);
}

static size_t panels_bytes(const tarn__gemm *g, const plan *p) {
  return (size_t)(columns_of_b(g, p) * tarn__gemm_units(p->kernels, g->k, p->arithmetic)) * 4;
}

#ifdef TARN_WITH_AMX
static tarn__gemm_kernels amx;
static pthread_once_t amx_once = PTHREAD_ONCE_INIT;

static void make_amx(void) {
  amx = tarn__gemm_kernels_avx512_bf16;
  if (tarn__isa_int8_tiles()) amx.multiply_int8 = tarn__gemm_int8_amx_multiply;
}
#endif

const tarn__gemm_kernels *tarn__gemm_kernels_now(void) {
#ifdef TARN_WITH_AMX
  if (tarn__isa_now() == TARN__ISA_AMX) {
    pthread_once(&amx_once, make_amx);
    return &amx;
  }
#endif
  return TARN__TABLE_NOW(tarn__gemm_kernels);
}

static plan plan_of(const tarn__gemm *g, int threads) {
  const tarn__gemm_kernels *kernels = tarn__gemm_kernels_now();
  plan p = {.kernels = kernels, .arithmetic = arithmetic_of(kernels, g), .threads = threads};
  const bool bf16 = p.arithmetic == TARN__GEMM_BF16;
  p.group = bf16 ? kernels->group_bf16 : kernels->group;
  p.step = bf16 ? kernels->step_bf16 : kernels->step;
  if (2.0 * (double)g->m * (double)g->n * (double)g->k < SERIAL_FLOPS) p.threads = 1;
  p.k = chunks_of(g, kernels, p.arithmetic);
  int64_t units = tarn__gemm_units(kernels, tarn__cut_largest(&p.k), p.arithmetic);
  int64_t most = BLOCK_BYTES / (units * 4) / p.step * p.step;
  if (most < p.group) most = p.group;
  // Few rows: each thread reads its own part of B, the larger operand.
  bool narrow = g->m < g->n && g->m <= most;
  int64_t blocks = (g->m + most - 1) / most;
  p.pack_a = must_pack_a(g, &p);
  // More tasks than threads balance the load if one of them is disturbed.
  int64_t tasks = p.threads == 1 ? 1 : (int64_t)TASKS * p.threads;
  if (!narrow && blocks < tasks && g->m >= tasks * LEAST_ROWS) blocks = tasks;
  bool wide = !p.pack_a && g->n >= tasks * LEAST_COLUMNS;
  p.m = tarn__cut_into(g->m, p.step, narrow ? 1 : round_up(blocks, p.threads));
  p.n = tarn__cut_into(g->n, kernels->panel, !narrow ? 1 : wide ? tasks : p.threads);
  p.a = g->a;
  p.lda = g->lda;
  p.a_size = (int64_t)tarn__dtype_size(g->dtype);
  p.partial = p.k.pieces > 1 && g->c_dtype == TARN__BF16;
  int64_t rows = tarn__cut_largest(&p.m);
  p.a_bytes = aligned((size_t)((p.pack_a ? rows : p.step) * units) * 4);
  if (g->packed == NULL) p.b_bytes = aligned(panels_bytes(g, &p));
  if (p.partial) p.partial_bytes = aligned((size_t)(rows * tarn__cut_largest(&p.n)) * sizeof(float));
  return p;
}

static bool is_empty(const tarn__gemm *g) { return g->m == 0 || g->n == 0 || g->k == 0; }

// Another implementation of the product, or NULL for that of this file.
static const tarn__gemm_way *way_of(const tarn__gemm *g) {
  if (g->int4) return &tarn__gemm_int4;
  if (g->fp32 != TARN__FP32_EXACT && g->dtype == TARN__F32 && !g->int8) return &tarn__gemm_split;
#ifdef TARN_WITH_AMX
  if (g->dtype == TARN__BF16 && !g->int8 && tarn__isa_now() == TARN__ISA_AMX) return &tarn__gemm_tiles;
#endif
  return NULL;
}

bool tarn__gemm_sums_rows(const tarn__gemm *gemm) {
#ifdef TARN_WITH_AMX
  return gemm->transpose_a && way_of(gemm) == &tarn__gemm_tiles;
#else
  (void)gemm;
  return false;
#endif
}

size_t tarn__gemm_scratch(const tarn__gemm *gemm, int threads) {
  if (is_empty(gemm) || gemm->dtype == TARN__F64) return 0;
  const tarn__gemm_way *way = way_of(gemm);
  if (way != NULL) return way->scratch(gemm, threads);
  plan p = plan_of(gemm, threads);
  return p.b_bytes + quantised_bytes(gemm) + (p.a_bytes + p.partial_bytes) * (size_t)p.threads;
}

// Scratch does not grow with every row, because more rows may be divided into smaller blocks.
size_t tarn__gemm_scratch_most(const tarn__gemm *gemm, int threads, bool by_terms) {
  enum { LINES = 32 };  // the other implementations take rows and terms in units of at most this many
  tarn__gemm g = *gemm;
  int64_t *size = by_terms ? &g.k : &g.m;
  const int64_t most = *size, unit = way_of(gemm) != NULL ? LINES : 1;
  size_t bytes = 0;
  for (int64_t n = unit; n < most + unit; n += unit) {
    // One below a unit takes the same number of blocks, but may be divided among fewer threads.
    for (int64_t below = 0; below < (unit > 1 ? 2 : 1); below++) {
      *size = n - below;
      const size_t own = tarn__gemm_scratch(&g, threads), serial = threads > 1 ? tarn__gemm_scratch(&g, 1) : 0;
      if (own > bytes) bytes = own;
      if (serial > bytes) bytes = serial;
    }
  }
  return bytes;
}

// The packed B; a block of A, of which every implementation packs at most half a megabyte at once; and for each column
// of B the bytes it takes in blocks of sums of TARN__GEMM_FEW rows, or in a chunk that a task packs for itself.
size_t tarn__gemm_scratch_bound(tarn__dtype dtype, tarn__fp32 fp32, int64_t narrow, int64_t wide) {
  enum { A_BYTES = 512 << 10, COLUMN_BYTES = 2048 };
  if (wide < TARN__GEMM_FEW) wide = TARN__GEMM_FEW;
  if (wide < narrow) wide = narrow;
  const tarn__gemm tall = {.m = 1, .n = narrow, .k = wide, .dtype = dtype, .c_dtype = dtype, .fp32 = fp32};
  tarn__gemm flat = tall;
  flat.n = wide, flat.k = narrow;
  const size_t a = tarn__gemm_pack_bytes(&tall), b = tarn__gemm_pack_bytes(&flat);
  return (a > b ? a : b) + A_BYTES + (size_t)round_up(wide, TARN__GEMM_FEW) * COLUMN_BYTES;
}

static const char *element(const void *data, tarn__dtype dtype, int64_t index) {
  return (const char *)data + index * (int64_t)tarn__dtype_size(dtype);
}

// Data after the panels of an INT8 B: a scale for each column, and for each chunk of k the sums of the columns.
typedef struct int8_columns {
  float *scales;
  int32_t *sums;
} int8_columns;

static int8_columns columns_of(const tarn__gemm *g, const plan *p) {
  char *at = (char *)(uintptr_t)g->packed + panels_bytes(g, p);
  float *scales = (float *)(void *)at;
  return (int8_columns){scales, (int32_t *)(void *)(scales + columns_of_b(g, p))};
}

// Packs part `part` of a chunk of B: panels if its columns are contiguous, terms of k if they are strided, so that
// memory is read sequentially.
static void pack_b(uint32_t *out, const tarn__gemm *g, const plan *p, int64_t chunk, int64_t part) {
  int64_t width = p->kernels->panel, k = tarn__cut_start(&p->k, chunk), length = tarn__cut_size(&p->k, chunk);
  tarn__gemm_lines lines = {.ld = g->ldb,
                            .count = g->n,
                            .k = length,
                            .width = width,
                            .stride = width * tarn__gemm_units(p->kernels, length, p->arithmetic),
                            .across = !g->transpose_b,
                            .arithmetic = p->arithmetic};
  if (g->transpose_b) {
    int64_t j = part * width;
    lines.from = element(g->b, g->dtype, j * g->ldb + k);
    lines.count = smaller(width, g->n - j);
    p->kernels->pack(out + part * lines.stride, &lines);
  } else {
    int64_t first = part * PACK_TERMS;
    lines.from = element(g->b, g->dtype, (k + first) * g->ldb);
    lines.k = smaller(PACK_TERMS, length - first);
    p->kernels->pack(out + width * tarn__gemm_units(p->kernels, first, p->arithmetic), &lines);
  }
}

static int64_t pack_parts(const tarn__gemm *g, const plan *p, int64_t chunk) {
  int64_t total = g->transpose_b ? g->n : tarn__cut_size(&p->k, chunk);
  int64_t unit = g->transpose_b ? p->kernels->panel : PACK_TERMS;
  return (total + unit - 1) / unit;
}

// Packs rows [i, i + rows) of chunk `chunk` of A.
static void pack_a(uint32_t *out, const tarn__gemm *g, const plan *p, int64_t chunk, int64_t i, int64_t rows) {
  int64_t k = tarn__cut_start(&p->k, chunk), group = p->group, whole = rows / group * group;
  tarn__gemm_lines lines = {.from = p->a + (g->transpose_a ? k * p->lda + i : i * p->lda + k) * p->a_size,
                            .ld = p->lda,
                            .count = whole,
                            .k = tarn__cut_size(&p->k, chunk),
                            .width = group,
                            .across = g->transpose_a,
                            .arithmetic = p->arithmetic};
  int64_t units = tarn__gemm_units(p->kernels, lines.k, p->arithmetic);
  lines.stride = group * units;
  if (whole > 0) p->kernels->pack(out, &lines);
  if (whole == rows) return;
  lines.from = (const char *)lines.from + (g->transpose_a ? whole : whole * p->lda) * p->a_size;
  lines.count = rows - whole;
  lines.width = tarn__gemm_group(rows - whole, group, p->step);
  p->kernels->pack(out + whole * units, &lines);
}

// Writes the complete fp32 sums of a block to C.
static void finish_block(const tarn__gemm *g, const float *sums, int64_t i, int64_t rows, int64_t j, int64_t cols) {
  enum { PIECE = 512 };
  float piece[PIECE], old[PIECE];
  for (int64_t r = i; r < i + rows; r++)
    for (int64_t first = j; first < j + cols; first += PIECE) {
      int64_t n = j + cols - first < PIECE ? j + cols - first : PIECE, at = r * g->ldc + first;
      memcpy(piece, sums + (r - i) * cols + first - j, (size_t)n * sizeof *piece);
      if (g->accumulate) {
        tarn__row_copy(old, g->c, g->c_dtype, at, n);
        tarn__row_add(piece, old, n);
      }
      tarn__row_write(g->c, g->c_dtype, at, n, piece);
    }
}

// One block of C with one chunk of k. b is the packed chunk; a and sums belong to the thread.
static void run_chunk(const tarn__gemm *g, const plan *p, const uint32_t *b, uint32_t *a, float *sums, int64_t chunk,
                      int64_t task) {
  int64_t mi = task / p->n.pieces, ni = task % p->n.pieces;
  int64_t i = tarn__cut_start(&p->m, mi), rows = tarn__cut_size(&p->m, mi);
  int64_t j = tarn__cut_start(&p->n, ni), cols = tarn__cut_size(&p->n, ni);
  int64_t units = tarn__gemm_units(p->kernels, tarn__cut_size(&p->k, chunk), p->arithmetic);
  bool last = chunk == p->k.pieces - 1;
  // Rows after others that do not fill a step are packed and padded with zeros, except for INT8.
  int64_t direct = p->pack_a ? 0 : g->int8 || rows <= p->step ? rows : rows / p->step * p->step;
  tarn__gemm_block block = {
      .b = b + (g->first + j) * units,
      .n = cols,
      .units = units,
      .c = p->partial ? (char *)sums : (char *)g->c + (i * g->ldc + j) * (int64_t)tarn__dtype_size(g->c_dtype),
      .ldc = p->partial ? cols : g->ldc,
      .c_dtype = p->partial ? TARN__F32 : g->c_dtype,
      .bias = last && g->bias != NULL ? g->bias + j : NULL,
      .accumulate = chunk > 0 || (g->accumulate && !p->partial),
      .relu = last && g->relu,
  };
  void (*multiply)(const tarn__gemm_block *) = p->arithmetic == TARN__GEMM_INT8   ? p->kernels->multiply_int8
                                               : p->arithmetic == TARN__GEMM_BF16 ? p->kernels->multiply_bf16
                                                                                  : p->kernels->multiply_f32;
  if (g->int8) {
    const int8_columns columns = columns_of(g, p);
    block.row_scales = p->row_scales + i;
    block.column_scales = columns.scales + g->first + j;
    block.column_sums = columns.sums + chunk * columns_of_b(g, p) + g->first + j;
  }
  if (direct > 0) {
    block.a = p->a + (i * p->lda + tarn__cut_start(&p->k, chunk)) * p->a_size;
    block.row_bytes = p->lda * p->a_size;
    block.m = direct;
    // Tasks are assigned round-robin, so a thread probably gets the one after the current tasks of the others.
    int64_t following = mi + p->threads;
    if (p->n.pieces == 1 && p->k.pieces == 1 && following < p->m.pieces) {
      block.next = (const char *)block.a + (tarn__cut_start(&p->m, following) - i) * block.row_bytes;
      block.next_rows = tarn__cut_size(&p->m, following);
    }
    multiply(&block);
    block.next_rows = 0;
  }
  if (direct < rows) {
    pack_a(a, g, p, chunk, i + direct, rows - direct);
    block.a = a;
    block.row_bytes = 0;
    block.m = rows - direct;
    block.c = (char *)block.c + direct * block.ldc * (int64_t)tarn__dtype_size(block.c_dtype);
    multiply(&block);
  }
  if (last && p->partial) finish_block(g, sums, i, rows, j, cols);
}

// The address of the packed chunk after `chunk`.
static uint32_t *after_chunk(const uint32_t *b, const tarn__gemm *g, const plan *p, int64_t chunk) {
  return (uint32_t *)(uintptr_t)b +
         columns_of_b(g, p) * tarn__gemm_units(p->kernels, tarn__cut_size(&p->k, chunk), p->arithmetic);
}

// One block of C, which stays in the L2 cache while the chunks of k are added.
static void run_task(const tarn__gemm *g, const plan *p, const uint32_t *b, uint32_t *a, float *sums, int64_t task) {
  for (int64_t chunk = 0; chunk < p->k.pieces; chunk++) {
    run_chunk(g, p, b, a, sums, chunk, task);
    b = after_chunk(b, g, p, chunk);
  }
  int64_t mi = task / p->n.pieces, ni = task % p->n.pieces;
  if (g->complete != NULL)
    g->complete(g, tarn__cut_start(&p->m, mi), tarn__cut_size(&p->m, mi), tarn__cut_start(&p->n, ni),
                tarn__cut_size(&p->n, ni));
}

// C = act(bias), for an empty sum.
static void empty_sum(const tarn__gemm *g) {
  for (int64_t r = 0; r < g->m && !g->accumulate; r++)
    for (int64_t j = 0; j < g->n; j++) {
      float value = g->bias == NULL ? 0.0f : g->bias[j];
      if (g->relu && value < 0.0f) value = 0.0f;
      tarn__row_write(g->c, g->c_dtype, r * g->ldc + j, 1, &value);
    }
  if (g->complete != NULL) g->complete(g, 0, g->m, 0, g->n);
}

static const float INT8_MOST = 127.0f;

static float inverse_of(float scale) { return scale > 0.0f ? 1.0f / scale : 0.0f; }

void tarn__gemm_quantise_row(uint8_t *out, float *scale, const void *row, tarn__dtype dtype, int64_t k) {
  const tarn__gemm_kernels *kernels = tarn__gemm_kernels_now();
  *scale = kernels->magnitude(row, dtype, k) / INT8_MOST;
  kernels->quantise(out, row, dtype, k, inverse_of(*scale), kernels->zero);
}

// Rows of A as bytes, and the scale of each.
static void quantise_rows(const tarn__gemm *g, const plan *p, char *memory, float *scales) {
#pragma omp for schedule(static)
  for (int64_t r = 0; r < g->m; r++)
    tarn__gemm_quantise_row((uint8_t *)memory + r * p->lda, scales + r, element(g->a, g->dtype, r * g->lda), g->dtype,
                            g->k);
}

// Where the product reads the rows of A as bytes, and their scales.
static void place_bytes(const tarn__gemm *g, plan *p, char *quantised) {
  p->lda = tarn__gemm_int8_row(g->k);
  p->a_size = 1;
  p->a = g->a_rounded ? g->a : quantised;
  const size_t bytes = aligned((size_t)(round_up(g->m, TARN__GEMM_INT8_ROWS) * p->lda));
  p->row_scales = g->a_rounded ? g->a_scales : (const float *)(const void *)(quantised + bytes);
}

void tarn__gemm_run(const tarn__gemm *gemm, int threads, void *scratch) {
  if (is_empty(gemm)) {
    empty_sum(gemm);
    return;
  }
  const tarn__gemm_way *way = way_of(gemm);
  if (way != NULL) {
    way->run(gemm, threads, scratch);
    return;
  }
  plan p = plan_of(gemm, threads);
  char *quantised = (char *)scratch + p.b_bytes, *own = quantised + quantised_bytes(gemm);
  if (gemm->int8) place_bytes(gemm, &p, quantised);
  int64_t tasks = p.m.pieces * p.n.pieces;
#pragma omp parallel num_threads(p.threads)
  {
    char *memory = own + (p.a_bytes + p.partial_bytes) * (size_t)omp_get_thread_num();
    if (gemm->int8 && !gemm->a_rounded) quantise_rows(gemm, &p, quantised, (float *)(uintptr_t)p.row_scales);
    if (gemm->packed == NULL) {
      uint32_t *to = scratch;
      for (int64_t chunk = 0; chunk < p.k.pieces; chunk++) {
        int64_t parts = pack_parts(gemm, &p, chunk);
#pragma omp for schedule(static) nowait
        for (int64_t part = 0; part < parts; part++) pack_b(to, gemm, &p, chunk, part);
        to = after_chunk(to, gemm, &p, chunk);
      }
#pragma omp barrier
    }
    const uint32_t *b = gemm->packed != NULL ? gemm->packed : scratch;
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t task = 0; task < tasks; task++)
      run_task(gemm, &p, b, (uint32_t *)(void *)memory, (float *)(void *)(memory + p.a_bytes), task);
  }
}

size_t tarn__gemm_pack_bytes(const tarn__gemm *gemm) {
  if (gemm->n == 0 || gemm->k == 0) return 0;
  const tarn__gemm_way *way = way_of(gemm);
  if (way != NULL) return way->pack_bytes(gemm);
  plan p = plan_of(gemm, 1);
  int64_t columns = round_up(gemm->n, p.kernels->panel);
  size_t bytes = panels_bytes(gemm, &p);
  if (gemm->int8) bytes += (size_t)columns * (sizeof(float) + (size_t)p.k.pieces * sizeof(int32_t));
  return aligned(bytes);
}

static float scale_of(const tarn__gemm *g, const plan *p, int64_t column) {
  if (g->b_scales != NULL) return g->b_scales[column];
  return p->kernels->magnitude(element(g->b, g->dtype, column * g->ldb), g->dtype, g->k) / INT8_MOST;
}

// Quantises terms of a column of B to INT8, padded with zeros to a whole unit. Returns their sum.
static int32_t round_terms(uint8_t *out, const tarn__gemm *g, const plan *p, int64_t column, int64_t k, int64_t terms,
                           float scale) {
  if (g->b_scales == NULL)
    return p->kernels->quantise(out, element(g->b, g->dtype, column * g->ldb + k), g->dtype, terms, inverse_of(scale),
                                0);
  const signed char *from = (const signed char *)g->b + column * g->ldb + k;
  int32_t sum = 0;
  for (int64_t i = 0; i < terms; i++) sum += from[i];
  memcpy(out, from, (size_t)terms);
  for (int64_t i = terms; i % 4 != 0; i++) out[i] = 0;
  return sum;
}

// Packs panel `panel` of all chunks of B as INT8.
static void pack_panel_int8(const tarn__gemm *g, const plan *p, void *packed, int64_t panel) {
  enum { TERMS = 512, WIDEST = 32 };  // terms of each column at a time
  uint8_t bytes[WIDEST * TERMS];
  const int64_t width = p->kernels->panel, j = panel * width, count = smaller(width, g->n - j);
  const int64_t columns = round_up(g->n, width);
  const int8_columns out = columns_of(g, p);
  for (int64_t i = 0; i < count; i++) out.scales[j + i] = scale_of(g, p, j + i);
  for (int64_t i = count; i < width; i++) out.scales[j + i] = 0.0f;
  uint32_t *to = packed;
  for (int64_t chunk = 0; chunk < p->k.pieces; chunk++) {
    int64_t k = tarn__cut_start(&p->k, chunk), end = k + tarn__cut_size(&p->k, chunk);
    int64_t units = tarn__gemm_units(p->kernels, end - k, TARN__GEMM_INT8);
    uint32_t *at = to + j * units;
    memset(out.sums + chunk * columns + j, 0, (size_t)width * sizeof *out.sums);
    for (; k < end; k += TERMS) {
      int64_t terms = smaller(TERMS, end - k);
      for (int64_t i = 0; i < count; i++)
        out.sums[chunk * columns + j + i] += round_terms(bytes + i * TERMS, g, p, j + i, k, terms, out.scales[j + i]);
      tarn__gemm_lines lines = {.from = bytes,
                                .ld = TERMS,
                                .count = count,
                                .k = terms,
                                .width = width,
                                .stride = width * units,
                                .arithmetic = TARN__GEMM_INT8};
      p->kernels->pack(at, &lines);
      at += width * tarn__gemm_units(p->kernels, terms, TARN__GEMM_INT8);
    }
    to += columns * units;
  }
}

void tarn__gemm_pack(void *packed, const tarn__gemm *gemm, int threads) {
  if (gemm->n == 0 || gemm->k == 0) return;
  const tarn__gemm_way *way = way_of(gemm);
  if (way != NULL) {
    way->pack(packed, gemm, threads);
    return;
  }
  tarn__gemm g = *gemm;
  g.packed = packed;
  plan p = plan_of(&g, threads);
  int64_t width = p.kernels->panel, panels = (g.n + width - 1) / width;
  if (g.int8) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t panel = 0; panel < panels; panel++) pack_panel_int8(&g, &p, packed, panel);
    return;
  }
  uint32_t *out = packed;
  for (int64_t chunk = 0; chunk < p.k.pieces; chunk++) {
    int64_t parts = pack_parts(&g, &p, chunk);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t part = 0; part < parts; part++) pack_b(out, &g, &p, chunk, part);
    out = after_chunk(out, &g, &p, chunk);
  }
}

void tarn__gemm_quantise(signed char *values, float *scales, const tarn__gemm *gemm, int threads) {
  enum { TERMS = 512 };
  const plan p = {.kernels = tarn__gemm_kernels_now()};
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t j = 0; j < gemm->n; j++) {
    uint8_t bytes[TERMS];  // a buffer, because zeros are written after the last term
    scales[j] = scale_of(gemm, &p, j);
    for (int64_t k = 0; k < gemm->k; k += TERMS) {
      const int64_t terms = smaller(TERMS, gemm->k - k);
      (void)round_terms(bytes, gemm, &p, j, k, terms, scales[j]);
      memcpy(values + j * gemm->k + k, bytes, (size_t)terms);
    }
  }
}
