#include "device/cpu/gemm/gemm_split.h"

#include <omp.h>

#include "device/cpu/gemm/gemm_cut.h"
#include "device/cpu/gemm/gemm_split_kernels.h"
#include "device/cpu/isa/isa.h"

enum {
  BLOCK_TERMS = TARN__SPLIT_STEPS * TARN__SPLIT_STEP,
  CHUNK_TERMS = 4 * BLOCK_TERMS,  // terms of k for which rows of A are packed at a time
  ROWS = 256,                     // maximum of a task: with a chunk of k they take half of the L2 cache
  COLUMNS = 512,                  // processed with one block of k, so that sums stay in the L2 cache
  ROW_UNIT = 32,
  COLUMN_UNIT = 32,    // two groups, which a kernel takes at a time
  LEAST_ROWS = 64,     // of a task, if there are enough rows
  TASKS = 2,           // per thread, which balance the load if one is disturbed
  PACK_COLUMNS = 256,  // of one block of k that one thread packs at a time
};
_Static_assert(TARN__GEMM_PART % COLUMN_UNIT == 0, "a part of the columns begins with a unit of them");

static const double SERIAL_FLOPS = 1e6;  // a smaller product is not worth waking other threads

// NULL: none.
static const tarn__split_kernels *kernels_now(void) {
#ifdef TARN_WITH_AMX
  if (tarn__isa_now() == TARN__ISA_AMX) return &tarn__split_kernels_amx;
#endif
  return NULL;
}

bool tarn__gemm_split_there(void) { return kernels_now() != NULL; }

// The plan of a product.
typedef struct plan {
  const tarn__split_kernels *kernels;
  int parts, threads;
  tarn__cut rows, columns;  // of C, for tasks
  size_t b_bytes, a_bytes;  // of scratch: the packed B; per thread a packed chunk of A
} plan;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

static int64_t pieces_of(int64_t total, int64_t piece) { return (total + piece - 1) / piece; }

static int parts_of(const tarn__gemm *g) { return g->fp32 == TARN__FP32_SPLIT6 ? 3 : 2; }

// Bytes of `lines` lines, a whole number of groups, with `terms` of k.
static int64_t packed_bytes(int64_t lines, int64_t terms, int parts) {
  return lines * round_up(terms, TARN__SPLIT_STEP) * 2 * parts;
}

static size_t pack_bytes(const tarn__gemm *g) {
  return (size_t)packed_bytes(round_up(g->n, COLUMN_UNIT), g->k, parts_of(g));
}

static plan plan_of(const tarn__gemm *g, int threads) {
  plan p = {.kernels = kernels_now(), .parts = parts_of(g), .threads = threads};
  if (2.0 * (double)g->m * (double)g->n * (double)g->k < SERIAL_FLOPS) p.threads = 1;
  const int64_t tasks = p.threads == 1 ? 1 : (int64_t)TASKS * p.threads;
  int64_t rows = pieces_of(g->m, ROWS), columns = 1;
  // If there are too few rows for all threads, every thread packs them, and each reads its own columns of B.
  if (rows >= tasks)
    rows = round_up(rows, p.threads);
  else if (g->m >= tasks * LEAST_ROWS)
    rows = tasks;
  else
    columns = pieces_of(tasks, rows);
  p.rows = tarn__cut_into(g->m, ROW_UNIT, rows);
  p.columns = tarn__cut_into(g->n, COLUMN_UNIT, columns);
  p.a_bytes = (size_t)packed_bytes(tarn__cut_largest(&p.rows), smaller(g->k, CHUNK_TERMS), p.parts);
  if (g->packed == NULL) p.b_bytes = pack_bytes(g);
  return p;
}

static size_t scratch_bytes(const tarn__gemm *g, int threads) {
  const plan p = plan_of(g, threads);
  return p.b_bytes + p.a_bytes * (size_t)p.threads;
}

// Packs columns [first, first + PACK_COLUMNS) of the block of k that begins with `term`.
static void pack_b(char *packed, const tarn__gemm *g, int parts, int64_t term, int64_t first) {
  const int64_t columns = round_up(g->n, COLUMN_UNIT), terms = smaller(BLOCK_TERMS, g->k - term);
  const tarn__split_lines lines = {
      .from = (const float *)g->b + (g->transpose_b ? first * g->ldb + term : term * g->ldb + first),
      .ld = g->ldb,
      .count = smaller(PACK_COLUMNS, g->n - first),
      .k = terms,
      .group_bytes = packed_bytes(TARN__SPLIT_GROUP, terms, parts),
      .parts = parts,
      .across = !g->transpose_b,
      .right = true};
  char *out = packed + packed_bytes(columns, term, parts) + packed_bytes(first, terms, parts);
  kernels_now()->pack(out, &lines);
  // With an odd number of groups, the last pair is completed with zeros.
  const int64_t there = round_up(lines.count, TARN__SPLIT_GROUP), wanted = round_up(lines.count, COLUMN_UNIT);
  if (there < wanted) memset(out + packed_bytes(there, terms, parts), 0, (size_t)lines.group_bytes);
}

static int64_t pack_parts(const tarn__gemm *g) { return pieces_of(g->k, BLOCK_TERMS) * pieces_of(g->n, PACK_COLUMNS); }

static void pack_part(char *packed, const tarn__gemm *g, int parts, int64_t part) {
  const int64_t across = pieces_of(g->n, PACK_COLUMNS);
  pack_b(packed, g, parts, part / across * BLOCK_TERMS, part % across * PACK_COLUMNS);
}

static void pack(void *packed, const tarn__gemm *g, int threads) {
  const int64_t count = pack_parts(g);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < count; part++) pack_part(packed, g, parts_of(g), part);
}

// Packs rows [i, i + rows) of `terms` terms of k.
static void pack_a(char *out, const tarn__gemm *g, int parts, int64_t i, int64_t rows, int64_t term, int64_t terms) {
  const tarn__split_lines lines = {
      .from = (const float *)g->a + (g->transpose_a ? term * g->lda + i : i * g->lda + term),
      .ld = g->lda,
      .count = rows,
      .k = terms,
      .group_bytes = packed_bytes(TARN__SPLIT_GROUP, terms, parts),
      .parts = parts,
      .across = g->transpose_a};
  kernels_now()->pack(out, &lines);
}

// Rows [i, i + rows) and columns [j, end) of C, with the chunk of k that begins with `term`.
static void run_chunk(const tarn__gemm *g, const plan *p, const char *b, char *a, int64_t i, int64_t rows, int64_t j,
                      int64_t end, int64_t term) {
  const int64_t above = round_up(rows, TARN__SPLIT_GROUP), columns = round_up(tarn__gemm_all_columns(g), COLUMN_UNIT);
  const int64_t stop = smaller(term + CHUNK_TERMS, g->k);
  for (int64_t t = term; t < stop; t += BLOCK_TERMS)
    pack_a(a + packed_bytes(above, t - term, p->parts), g, p->parts, i, rows, t, smaller(BLOCK_TERMS, stop - t));
  for (; j < end; j += COLUMNS)
    for (int64_t t = term; t < stop; t += BLOCK_TERMS) {
      const int64_t terms = smaller(BLOCK_TERMS, stop - t);
      const bool last = t + terms == g->k;
      const tarn__split_block block = {
          .a = a + packed_bytes(above, t - term, p->parts),
          .b = b + packed_bytes(columns, t, p->parts) + packed_bytes(g->first + j, terms, p->parts),
          .m = rows,
          .n = smaller(COLUMNS, end - j),
          .steps = pieces_of(terms, TARN__SPLIT_STEP),
          .parts = p->parts,
          .c = (float *)g->c + i * g->ldc + j,
          .ldc = g->ldc,
          .bias = last && g->bias != NULL ? g->bias + j : NULL,
          .accumulate = t > 0 || g->accumulate,
          .relu = last && g->relu,
      };
      p->kernels->multiply(&block);
    }
}

static void run_task(const tarn__gemm *g, const plan *p, const char *b, char *a, int64_t task) {
  const int64_t mi = task / p->columns.pieces, ni = task % p->columns.pieces;
  const int64_t i = tarn__cut_start(&p->rows, mi), rows = tarn__cut_size(&p->rows, mi);
  const int64_t j = tarn__cut_start(&p->columns, ni), end = tarn__cut_start(&p->columns, ni + 1);
  for (int64_t term = 0; term < g->k; term += CHUNK_TERMS) run_chunk(g, p, b, a, i, rows, j, end, term);
  if (g->complete != NULL) g->complete(g, i, rows, j, end - j);
}

static void run(const tarn__gemm *g, int threads, void *scratch) {
  const plan p = plan_of(g, threads);
  const int64_t tasks = p.rows.pieces * p.columns.pieces, parts = g->packed == NULL ? pack_parts(g) : 0;
#pragma omp parallel num_threads(p.threads)
  {
    char *own = (char *)scratch + p.b_bytes + p.a_bytes * (size_t)omp_get_thread_num();
    if (parts > 0) {
#pragma omp for schedule(static)
      for (int64_t part = 0; part < parts; part++) pack_part(scratch, g, p.parts, part);
    }
    const char *b = g->packed != NULL ? g->packed : scratch;
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t task = 0; task < tasks; task++) run_task(g, &p, b, own, task);
  }
}

const tarn__gemm_way tarn__gemm_split = {.scratch = scratch_bytes, .run = run, .pack_bytes = pack_bytes, .pack = pack};
