#include "device/cpu/gemm_tiles.h"

#include <omp.h>

#include "device/cpu/gemm_cut.h"
#include "device/cpu/row_cpu.h"

#ifdef TARN_X86

enum {
  LINES = TARN__TILES_LINES,
  TERMS = TARN__TILES_TERMS,
  STEP = TARN__TILES_STEP_BYTES,
  CHUNK = TARN__TILES_CHUNK_STEPS,
  SUMS_BYTES = TARN__TILES_SUMS * (int)sizeof(float),
  // A thread has a second cache of 2 MB for its packed rows of A (a span of k of them), its sums, and B passing by.
  A_BYTES = 512 << 10,
  MOST_ROWS = 512,         // of a block of C
  SPAN_STEPS = 2 * CHUNK,  // of a span, where a block of A does not fit as a whole
  SPAN_ROWS = 256,
  SPAN_COLUMNS = 512,
  TASKS = 2,  // for each thread, at least, where a task has LEAST_ROWS rows or LEAST_COLUMNS columns
  LEAST_ROWS = 64,
  LEAST_COLUMNS = 256
};

static const double SERIAL_FLOPS = 1e6;  // a smaller product is not worth waking other threads

// How a product runs. A task is a block of C. For each span of k its rows of A are packed; then its panels of B pass
// by, chunk by chunk, and each chunk of a panel stays in the first cache while all rows are multiplied with it.
typedef struct plan {
  tarn__cut m, n;
  int64_t steps;     // of k
  int64_t span;      // steps of a span, a whole number of chunks
  int64_t b_panels;  // of all of B
  int threads;
  size_t b_bytes;              // of the scratch: the packed B
  size_t a_bytes, sums_bytes;  // and for every thread
} plan;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t over(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

static size_t pack_bytes(const tarn__gemm *g) { return (size_t)(over(g->n, LINES) * over(g->k, TERMS) * STEP); }

static plan plan_of(const tarn__gemm *g, int threads) {
  plan p = {.steps = over(g->k, TERMS), .b_panels = over(g->n, LINES), .threads = threads};
  if (2.0 * (double)g->m * (double)g->n * (double)g->k < SERIAL_FLOPS) p.threads = 1;
  const int64_t tasks = p.threads == 1 ? 1 : (int64_t)TASKS * p.threads;
  const int64_t fit = A_BYTES / (p.steps * STEP) * LINES;  // rows of A
  const bool whole = fit >= smaller(SPAN_ROWS, g->m);
  const int64_t most = whole ? smaller(fit, MOST_ROWS) : SPAN_ROWS;
  // Few rows: each thread reads its own part of B, which is the larger operand.
  const bool narrow = g->m < g->n && g->m <= most;
  int64_t blocks = over(g->m, most), parts = whole ? 1 : over(g->n, SPAN_COLUMNS);
  // More tasks than threads even out what disturbs one of them.
  if (!narrow && blocks * parts < tasks && g->m >= tasks * LEAST_ROWS) blocks = tasks;
  if (!narrow) blocks = over(blocks, p.threads) * p.threads;
  if (narrow) {
    blocks = 1;
    parts = over(smaller(tasks, g->n / LEAST_COLUMNS), p.threads) * p.threads;
    if (!whole) parts = over(over(g->n, SPAN_COLUMNS), p.threads) * p.threads;
    if (parts < p.threads) parts = p.threads;
  }
  p.m = tarn__cut_into(g->m, LINES, blocks);
  p.n = tarn__cut_into(g->n, LINES, parts);
  p.span = whole ? p.steps : SPAN_STEPS;
  const int64_t panels = over(tarn__cut_largest(&p.m), LINES);
  p.a_bytes = (size_t)(panels * smaller(p.span, p.steps) * STEP);
  // Sums of a panel of B go on from chunk to chunk, those of the whole block from span to span.
  const int64_t kept = p.span < p.steps ? over(tarn__cut_largest(&p.n), LINES) : p.steps > CHUNK ? 1 : 0;
  p.sums_bytes = (size_t)(panels * kept * SUMS_BYTES);
  if (g->packed == NULL) p.b_bytes = pack_bytes(g);
  return p;
}

static size_t scratch_of(const tarn__gemm *gemm, int threads) {
  const plan p = plan_of(gemm, threads);
  return p.b_bytes + (p.a_bytes + p.sums_bytes) * (size_t)p.threads;
}

static int64_t steps_of(int64_t chunk, int64_t steps) { return smaller(CHUNK, steps - chunk * CHUNK); }

// Where chunk `chunk` of a panel begins in an operand of `panels` panels and `steps` steps.
static int64_t place(int64_t chunk, int64_t panel, int64_t panels, int64_t steps) {
  return (chunk * CHUNK * panels + panel * steps_of(chunk, steps)) * STEP;
}

// --- packing

// Terms [first, first + terms) of 32 lines from `line` on, of a matrix of `all` lines.
static tarn__tiles_lines lines_at(const void *matrix, int64_t ld, bool across, bool is_b, int64_t line, int64_t all,
                                  int64_t first, int64_t terms) {
  return (tarn__tiles_lines){.from = (const uint16_t *)matrix + (across ? first * ld + line : line * ld + first),
                             .ld = ld,
                             .lines = smaller(LINES, all - line),
                             .terms = terms,
                             .across = across,
                             .is_b = is_b};
}

// B is packed in parts: a panel where its columns lie along the memory, a step of all panels where they lie across it,
// so that the memory is read from end to end.
static int64_t b_parts(const tarn__gemm *g) { return g->transpose_b ? over(g->n, LINES) : over(g->k, TERMS); }

static void pack_b_part(char *out, const tarn__gemm *g, int64_t part) {
  const int64_t panels = over(g->n, LINES), steps = over(g->k, TERMS);
  if (g->transpose_b) {
    for (int64_t chunk = 0; chunk * CHUNK < steps; chunk++) {
      const int64_t first = chunk * CHUNK * TERMS;
      const tarn__tiles_lines l =
          lines_at(g->b, g->ldb, false, true, part * LINES, g->n, first, smaller(CHUNK * TERMS, g->k - first));
      tarn__tiles_pack(out + place(chunk, part, panels, steps), &l);
    }
    return;
  }
  const int64_t chunk = part / CHUNK, step = part % CHUNK, first = part * TERMS;
  for (int64_t panel = 0; panel < panels; panel++) {
    const tarn__tiles_lines l =
        lines_at(g->b, g->ldb, true, true, panel * LINES, g->n, first, smaller(TERMS, g->k - first));
    tarn__tiles_pack(out + place(chunk, panel, panels, steps) + step * STEP, &l);
  }
}

// Steps [first, first + steps) of rows [row, row + rows) of A, which is packed for itself.
static void pack_a(char *out, const tarn__gemm *g, int64_t row, int64_t rows, int64_t first, int64_t steps) {
  const int64_t panels = over(rows, LINES);
  for (int64_t chunk = 0; chunk * CHUNK < steps; chunk++) {
    const int64_t at = (first + chunk * CHUNK) * TERMS, terms = smaller(steps_of(chunk, steps) * TERMS, g->k - at);
    if (!g->transpose_a) {
      for (int64_t panel = 0; panel < panels; panel++) {
        const tarn__tiles_lines l = lines_at(g->a, g->lda, false, false, row + panel * LINES, row + rows, at, terms);
        tarn__tiles_pack(out + place(chunk, panel, panels, steps), &l);
      }
      continue;
    }
    for (int64_t step = 0; step < steps_of(chunk, steps); step++)
      for (int64_t panel = 0; panel < panels; panel++) {
        const tarn__tiles_lines l = lines_at(g->a, g->lda, true, false, row + panel * LINES, row + rows,
                                             at + step * TERMS, smaller(TERMS, terms - step * TERMS));
        tarn__tiles_pack(out + place(chunk, panel, panels, steps) + step * STEP, &l);
      }
  }
}

// --- running

// A block of C: rows [i, i + rows), columns [j, j + columns); a and sums are the thread's own.
typedef struct block {
  int64_t i, rows, j, columns;
  char *a;
  float *sums;
} block;

// One panel of B with all rows, over the steps [first, first + steps) that are packed in b->a.
static void run_panel(const tarn__gemm *g, const plan *p, const char *packed_b, const block *b, int64_t panel,
                      int64_t first, int64_t steps) {
  const int64_t panels = over(b->rows, LINES), column = b->j + panel * LINES;
  const int64_t columns = smaller(LINES, b->j + b->columns - column);
  const int64_t size = (int64_t)tarn__dtype_size(g->c_dtype);
  const tarn__tiles_finish finish = {.c = (char *)g->c + (b->i * g->ldc + column) * size,
                                     .ldc = g->ldc,
                                     .columns = columns,
                                     .c_dtype = g->c_dtype,
                                     .bias = g->bias != NULL ? g->bias + column : NULL,
                                     .accumulate = g->accumulate,
                                     .relu = g->relu};
  float *sums = b->sums + (p->span < p->steps ? panel * panels * TARN__TILES_SUMS : 0);
  for (int64_t chunk = 0; chunk * CHUNK < steps; chunk++) {
    const int64_t from = first + chunk * CHUNK, count = steps_of(chunk, steps);
    const tarn__tiles_block product = {
        .products = 1,
        .a = {b->a + place(chunk, 0, panels, steps)},
        .b = {packed_b + place(from / CHUNK, column / LINES, p->b_panels, p->steps)},
        .rows = b->rows,
        .steps = count,
        .a_stride = count * STEP,
        .sums = sums,
        .add = from > 0,
        .finish = from + count == p->steps ? &finish : NULL,
    };
    tarn__tiles_multiply(&product);
  }
  if (g->complete != NULL && first + steps == p->steps) g->complete(g, b->i, b->rows, column, columns);
}

static void run_task(const tarn__gemm *g, const plan *p, const char *packed_b, char *memory, int64_t task) {
  const int64_t mi = task / p->n.pieces, ni = task % p->n.pieces;
  const block b = {.i = tarn__cut_start(&p->m, mi),
                   .rows = tarn__cut_size(&p->m, mi),
                   .j = tarn__cut_start(&p->n, ni),
                   .columns = tarn__cut_size(&p->n, ni),
                   .a = memory,
                   .sums = (float *)(void *)(memory + p->a_bytes)};
  for (int64_t first = 0; first < p->steps; first += p->span) {
    const int64_t steps = smaller(p->span, p->steps - first);
    pack_a(b.a, g, b.i, b.rows, first, steps);
    for (int64_t panel = 0; panel * LINES < b.columns; panel++) run_panel(g, p, packed_b, &b, panel, first, steps);
  }
}

static void run(const tarn__gemm *gemm, int threads, void *scratch) {
  const plan p = plan_of(gemm, threads);
  const int64_t tasks = p.m.pieces * p.n.pieces, parts = b_parts(gemm);
  char *own = (char *)scratch + p.b_bytes;
#pragma omp parallel num_threads(p.threads)
  {
    char *memory = own + (p.a_bytes + p.sums_bytes) * (size_t)omp_get_thread_num();
    if (gemm->packed == NULL) {
#pragma omp for schedule(static)
      for (int64_t part = 0; part < parts; part++) pack_b_part(scratch, gemm, part);
    }
    const char *b = gemm->packed != NULL ? gemm->packed : scratch;
    tarn__tiles_begin();
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t task = 0; task < tasks; task++) run_task(gemm, &p, b, memory, task);
    tarn__tiles_end();
  }
}

static void pack_b(void *packed, const tarn__gemm *gemm, int threads) {
  const int64_t parts = b_parts(gemm);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < parts; part++) pack_b_part(packed, gemm, part);
}

const tarn__gemm_way tarn__gemm_tiles = {.scratch = scratch_of, .run = run, .pack_bytes = pack_bytes, .pack = pack_b};

#endif
