#include "device/cpu/gemm/gemm_tiles.h"

#include <omp.h>

#include "device/cpu/gemm/gemm_cut.h"
#include "device/cpu/gemm/gemm_groups.h"
#include "device/cpu/isa/row_cpu.h"

#ifdef TARN_WITH_AMX

enum {
  LINES = TARN__TILES_LINES,
  TERMS = TARN__TILES_TERMS,
  STEP = TARN__TILES_STEP_BYTES,
  CHUNK = TARN__TILES_CHUNK_STEPS,
  SUMS_BYTES = TARN__TILES_SUMS * (int)sizeof(float),
  // A thread has an L2 cache of 2 MB for a block of B, which stays there while rows of A are processed, and, if k is
  // long enough to be divided into spans, for the sums of a block of C.
  B_BYTES = 1 << 20,
  WHOLE_STEPS = 48,     // of an undivided k
  MOST_ROWS = 512,      // of a block of C
  SPAN_STEPS = CHUNK,   // one chunk
  SPAN_COLUMNS = 512,   // of a span
  LEAST_COLUMNS = 256,  // of an undivided k, however long
  OWN_BLOCKS = 2,       // of rows per thread, up to which each packs its own B
  GROUP_TASKS = 8,      // per thread, of all groups, as far as tasks of GROUP_COLUMNS columns suffice
  GROUP_COLUMNS = 512,
  TASKS = 2,  // per thread, if k is undivided and as far as tasks of LEAST_ROWS rows suffice
  LEAST_ROWS = 64
};
_Static_assert(TARN__GEMM_PART % LINES == 0, "a part of the columns begins with a panel");

static const double SERIAL_FLOPS = 1e6;  // a smaller product is not worth waking other threads

// The plan of a product. A task is a block of C. For each span of k it processes panels of A: each is packed or read in
// place, and each chunk of it stays in the L1 cache while it is multiplied by all panels of B.
typedef struct plan {
  tarn__cut m, n;
  int64_t steps;     // of k
  int64_t span;      // steps of a span, a whole number of chunks
  int64_t b_panels;  // of all of B
  bool direct;       // whole panels of A are read in place
  bool few;          // rows: vectors instead of tiles
  bool own_b;        // each task packs its B span by span, to avoid writing all of it to memory and reading it back
  int threads;
  size_t b_bytes;                           // of scratch: the packed B
  size_t a_bytes, own_b_bytes, sums_bytes;  // and per thread
} plan;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t over(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

static size_t pack_bytes(const tarn__gemm *g) { return (size_t)(over(g->n, LINES) * over(g->k, TERMS) * STEP); }

// Whether a chunk of a panel of A is read as fast in place as when packed: whole lines, distributed over the sets of
// the L1 cache evenly enough to stay there.
static bool lies_well(const tarn__gemm *g) {
  enum { LINE = 64, SETS = 64, WAYS = 12, FREE_WAYS = 3 };
  if (g->transpose_a || g->k % TERMS != 0 || g->lda * 2 % LINE != 0 || (uintptr_t)g->a % LINE != 0) return false;
  int8_t used[SETS] = {0}, most = 0;
  const int64_t lines = smaller(CHUNK * TERMS, g->k) * 2 / LINE;
  for (int64_t row = 0; row < LINES; row++)
    for (int64_t i = 0; i < lines; i++) {
      int8_t *set = &used[(row * g->lda * 2 / LINE + i) % SETS];
      if (++*set > most) most = *set;
    }
  return most <= WAYS - FREE_WAYS;
}

static plan plan_of(const tarn__gemm *g, int threads) {
  plan p = {.steps = over(g->k, TERMS),
            .b_panels = over(tarn__gemm_all_columns(g), LINES),
            .direct = lies_well(g),
            .threads = threads};
  p.few = g->m <= TARN__TILES_FEW;
  if (2.0 * (double)g->m * (double)g->n * (double)g->k < SERIAL_FLOPS) p.threads = 1;
  const bool whole = p.steps <= WHOLE_STEPS || g->m <= LINES;
  p.span = whole ? p.steps : SPAN_STEPS;
  const int64_t fit = whole ? larger(LEAST_COLUMNS, B_BYTES / (p.steps * STEP) * LINES) : SPAN_COLUMNS;
  // More tasks than threads balance the load if one is disturbed, but each reads all of B.
  const int64_t tasks = p.threads == 1 ? 1 : whole ? (int64_t)TASKS * p.threads : p.threads;
  int64_t blocks = over(g->m, MOST_ROWS), parts = over(g->n, fit);
  // Few rows: each thread reads its own part of B, the larger operand.
  if (g->m < g->n && blocks < p.threads)
    parts = over(parts, p.threads) * p.threads;
  else if (blocks * parts < tasks && g->m >= LEAST_ROWS)
    blocks = smaller(tasks, g->m / LEAST_ROWS);
  else if (parts % p.threads != 0)
    blocks = over(blocks, p.threads) * p.threads;
  p.m = tarn__cut_into(g->m, LINES, blocks);
  p.n = tarn__cut_into(g->n, LINES, parts);
  p.a_bytes = (size_t)(smaller(CHUNK, p.steps) * STEP);
  // Sums of a panel of A are carried from chunk to chunk, those of the whole block from span to span.
  const int64_t kept = !whole ? over(tarn__cut_largest(&p.m), LINES) : p.steps > CHUNK ? 1 : 0;
  p.sums_bytes = (size_t)(kept * over(tarn__cut_largest(&p.n), LINES) * SUMS_BYTES);
  p.own_b = !whole && g->packed == NULL && p.m.pieces <= OWN_BLOCKS * p.threads;
  if (p.own_b) p.own_b_bytes = (size_t)(over(tarn__cut_largest(&p.n), LINES) * p.span * STEP);
  if (g->packed == NULL && !p.own_b) p.b_bytes = pack_bytes(g);
  return p;
}

static size_t own_bytes(const plan *p) { return p->a_bytes + p->own_b_bytes + p->sums_bytes; }

static size_t scratch_of(const tarn__gemm *gemm, int threads) {
  const plan p = plan_of(gemm, threads);
  return p.b_bytes + own_bytes(&p) * (size_t)p.threads;
}

static int64_t steps_of(int64_t chunk, int64_t steps) { return smaller(CHUNK, steps - chunk * CHUNK); }

// The offset of chunk `chunk` of a panel in an operand of `panels` panels and `steps` steps.
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

// B is packed in parts: a panel if its columns are contiguous, a step of all panels if they are strided, so that memory
// is read sequentially.
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

// Packs steps [first, first + steps) of rows [row, row + rows) of A, at most a panel, separately; sums: to which those
// of the rows are added, or NULL.
static void pack_a(char *out, const tarn__gemm *g, int64_t row, int64_t rows, int64_t first, int64_t steps,
                   float *sums) {
  tarn__tiles_lines l = lines_at(g->a, g->lda, g->transpose_a, false, row, row + rows, first * TERMS,
                                 smaller(steps * TERMS, g->k - first * TERMS));
  l.sums = sums;
  tarn__tiles_pack(out, &l);
}

// --- running

// A task's block of C: rows [i, i + rows), columns [j, j + columns); a and sums belong to the thread.
typedef struct block {
  int64_t i, rows, j, columns;
  char *a, *own_b;
  float *sums;
  tarn__tiles_ahead a_ahead, b_ahead;  // data to pack next; B of the next span
} block;

static block block_of(const plan *p, int64_t task, char *memory) {
  const int64_t mi = task % p->m.pieces, ni = task / p->m.pieces;
  return (block){.i = tarn__cut_start(&p->m, mi),
                 .rows = tarn__cut_size(&p->m, mi),
                 .j = tarn__cut_start(&p->n, ni),
                 .columns = tarn__cut_size(&p->n, ni),
                 .a = memory,
                 .own_b = memory + p->a_bytes,
                 .sums = (float *)(void *)(memory + p->a_bytes + p->own_b_bytes)};
}

// At most 32 rows from b->i + row on with all columns, over the steps [first, first + steps). Each chunk of A is packed
// right before it is multiplied, so that it is then in the L1 cache.
static void run_panel(const tarn__gemm *g, const plan *p, const char *packed_b, block *b, int64_t row, int64_t first,
                      int64_t steps) {
  const int64_t size = (int64_t)tarn__dtype_size(g->c_dtype);
  const tarn__tiles_finish finish = {.c = (char *)g->c + ((b->i + row) * g->ldc + b->j) * size,
                                     .ldc = g->ldc,
                                     .c_dtype = g->c_dtype,
                                     .bias = g->bias != NULL ? g->bias + b->j : NULL,
                                     .accumulate = g->accumulate,
                                     .relu = g->relu};
  const bool direct = p->few ? !g->transpose_a && g->k % TERMS == 0 : p->direct && b->rows - row >= LINES;
  float *sums = b->sums + (p->span < p->steps ? row * over(b->columns, LINES) * LINES : 0);
  // The blocks of the first columns pack every row once.
  float *row_sums = g->row_sums != NULL && b->j == 0 ? g->row_sums + b->i + row : NULL;
  for (int64_t at = first; at < first + steps; at += CHUNK) {
    const int64_t chunk = at / CHUNK, count = steps_of(chunk, p->steps);
    const int64_t rows = smaller(LINES, b->rows - row);
    if (!direct) pack_a(b->a, g, b->i + row, rows, at, count, row_sums);
    const tarn__tiles_block product = {
        .a = direct ? (const char *)((const uint16_t *)g->a + (b->i + row) * g->lda + at * TERMS) : b->a,
        .a_row = direct ? g->lda * 2 : TERMS * 2,
        .a_step = direct ? TERMS * 2 : STEP,
        .b = p->own_b ? b->own_b + (at - first) * over(b->columns, LINES) * STEP
                      : packed_b + place(chunk, (g->first + b->j) / LINES, p->b_panels, p->steps),
        .rows = rows,
        .columns = b->columns,
        .steps = count,
        .b_stride = count * STEP,
        .sums = sums,
        .add = at > 0,
        .ahead = {b->a_ahead.lines > 0 ? &b->a_ahead : NULL, b->b_ahead.lines > 0 ? &b->b_ahead : NULL},
        .finish = at + count == p->steps ? &finish : NULL,
    };
    p->few ? tarn__tiles_multiply_few(&product) : tarn__tiles_multiply(&product);
  }
}

// The next operand: a panel of A from row `i` on, over a span, to be prefetched in the course of `steps` steps.
static tarn__tiles_ahead a_ahead_of(const tarn__gemm *g, const plan *p, int64_t i, int64_t first, int64_t steps) {
  const int64_t rows = smaller(LINES, g->m - i), k = first * TERMS, terms = smaller(p->span * TERMS, g->k - k);
  const int64_t lines = g->transpose_a ? terms : rows, width = (g->transpose_a ? rows : terms) * 2;
  const char *at = (const char *)((const uint16_t *)g->a + (g->transpose_a ? k * g->lda + i : i * g->lda + k));
  return (tarn__tiles_ahead){
      .at = at, .end = at + width, .width = width, .stride = g->lda * 2, .lines = over(lines * over(width, 64), steps)};
}

// A block's panels of B in the span from step `first` on, which is one chunk.
static tarn__tiles_ahead b_ahead_of(const tarn__gemm *g, const plan *p, const char *packed_b, const block *b,
                                    int64_t first, int64_t steps) {
  const char *at = packed_b + place(first / CHUNK, (g->first + b->j) / LINES, p->b_panels, p->steps);
  const int64_t bytes = over(b->columns, LINES) * steps_of(first / CHUNK, p->steps) * STEP;
  return (tarn__tiles_ahead){.at = at, .end = at + bytes, .width = bytes, .lines = over(bytes / 64, steps)};
}

// Packs a block's columns of B over one chunk. If they are strided, memory is read sequentially, step by step.
static void pack_own_chunk(char *to, const tarn__gemm *g, const block *b, int64_t first, int64_t steps) {
  const int64_t end = b->j + b->columns, together = g->transpose_b ? steps : 1;
  for (int64_t at = 0; at < steps; at += together) {
    const int64_t k = (first + at) * TERMS, terms = smaller(together * TERMS, g->k - k);
    char *out = to + at * STEP;
    for (int64_t j = b->j; j < end; j += LINES, out += steps * STEP) {
      const tarn__tiles_lines l = lines_at(g->b, g->ldb, !g->transpose_b, true, j, end, k, terms);
      tarn__tiles_pack(out, &l);
    }
  }
}

// The same over one span.
static void pack_own_b(const tarn__gemm *g, const block *b, int64_t first, int64_t steps) {
  char *out = b->own_b;
  for (int64_t at = 0; at < steps; at += CHUNK) {
    const int64_t count = smaller(CHUNK, steps - at);
    pack_own_chunk(out, g, b, first + at, count);
    out += over(b->columns, LINES) * count * STEP;
  }
}

static void run_task(const tarn__gemm *g, const plan *p, const char *packed_b, char *memory, int64_t task) {
  block b = block_of(p, task, memory);
  // Tasks are assigned round-robin, so a thread probably gets the one after the current tasks of the others.
  const bool last = task + p->threads >= p->m.pieces * p->n.pieces;
  const int64_t next = last ? 0 : block_of(p, task + p->threads, memory).i;
  for (int64_t first = 0; first < p->steps; first += p->span) {
    const int64_t steps = smaller(p->span, p->steps - first), all = over(b.columns, LINES) * steps;
    const bool goes_on = first + steps < p->steps;
    b.b_ahead.lines = 0;
    if (p->own_b)
      pack_own_b(g, &b, first, steps);
    else if (p->span < p->steps && (goes_on || !last))
      b.b_ahead = b_ahead_of(g, p, packed_b, &b, goes_on ? first + steps : 0, all * over(b.rows, LINES));
    for (int64_t row = 0; row < b.rows; row += LINES) {
      b.a_ahead.lines = 0;
      if (row + LINES < b.rows)
        b.a_ahead = a_ahead_of(g, p, b.i + row + LINES, first, all);
      else if (goes_on || !last)
        b.a_ahead = a_ahead_of(g, p, goes_on ? b.i : next, goes_on ? first + steps : 0, all);
      run_panel(g, p, packed_b, &b, row, first, steps);
      if (g->complete != NULL && !goes_on) g->complete(g, b.i + row, smaller(LINES, b.rows - row), b.j, b.columns);
    }
  }
}

static void run(const tarn__gemm *gemm, int threads, void *scratch) {
  const plan p = plan_of(gemm, threads);
  const int64_t tasks = p.m.pieces * p.n.pieces, parts = p.b_bytes > 0 ? b_parts(gemm) : 0;
  char *own = (char *)scratch + p.b_bytes;
#pragma omp parallel num_threads(p.threads)
  {
    char *memory = own + own_bytes(&p) * (size_t)omp_get_thread_num();
    if (parts > 0) {
#pragma omp for schedule(static)
      for (int64_t part = 0; part < parts; part++) pack_b_part(scratch, gemm, part);
    }
    const char *b = gemm->packed != NULL ? gemm->packed : scratch;
    if (!p.few) tarn__tiles_begin();
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t task = 0; task < tasks; task++) run_task(gemm, &p, b, memory, task);
    if (!p.few) tarn__tiles_end();
  }
}

static void pack_b(void *packed, const tarn__gemm *gemm, int threads) {
  const int64_t parts = b_parts(gemm);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < parts; part++) pack_b_part(packed, gemm, part);
}

// --- groups

// Each task packs its columns of its group's B, so that nothing is written to memory and read back; prefetching it
// would slow the multiplications by more than it saves. Rows are divided no further than there are tasks wanted for
// their share of `all_rows`, those of all groups: every block of them packs B again, unless sums are kept over spans of
// k.
static plan group_plan_of(const tarn__gemm *g, int64_t groups, int64_t all_rows, int threads) {
  plan p = {.steps = over(g->k, TERMS), .direct = lies_well(g), .own_b = true, .threads = threads};
  const bool whole = p.steps <= WHOLE_STEPS;
  p.span = whole ? p.steps : SPAN_STEPS;
  const int64_t fit = whole ? B_BYTES / (p.steps * STEP) * LINES : SPAN_COLUMNS, tasks = (int64_t)GROUP_TASKS * threads;
  int64_t parts = over(g->n, fit), blocks = over(g->m, MOST_ROWS);
  if (whole) blocks = smaller(blocks, larger(over(tasks, parts * groups), over(tasks * g->m, parts * all_rows)));
  if (blocks * parts * groups < tasks)
    parts = larger(parts, smaller(over(tasks, blocks * groups), g->n / GROUP_COLUMNS));
  if (blocks * parts * groups < threads) blocks = smaller(over(threads, parts * groups), larger(1, g->m / LEAST_ROWS));
  p.m = tarn__cut_into(g->m, LINES, blocks);
  p.n = tarn__cut_into(g->n, LINES, parts);
  const int64_t panels = over(tarn__cut_largest(&p.n), LINES);
  const int64_t kept = !whole ? over(tarn__cut_largest(&p.m), LINES) : p.steps > CHUNK ? 1 : 0;
  p.a_bytes = (size_t)(smaller(CHUNK, p.steps) * STEP);
  p.own_b_bytes = (size_t)(panels * p.span * STEP);
  p.sums_bytes = (size_t)(kept * panels * SUMS_BYTES);
  return p;
}

// The maximum that a thread needs for any of the products: of A, of B, and of sums.
static size_t group_bytes(const tarn__gemm *most) {
  const int64_t steps = over(most->k, TERMS), panels = over(most->n, LINES);
  const int64_t b_bytes = smaller(B_BYTES, panels * smaller(steps, WHOLE_STEPS) * STEP);
  const int64_t one = steps > CHUNK ? smaller(panels, B_BYTES / (CHUNK * STEP)) : 0;
  const int64_t all = over(smaller(most->m, MOST_ROWS), LINES) * smaller(panels, SPAN_COLUMNS / LINES);
  const int64_t kept = steps > WHOLE_STEPS ? larger(one, all) : one;
  return (size_t)(smaller(CHUNK, steps) * STEP + b_bytes + kept * SUMS_BYTES);
}

static size_t groups_scratch(const tarn__gemm *most, int threads) { return group_bytes(most) * (size_t)threads; }

// A group with tasks; `first` is the number of its first task among those of all groups.
typedef struct cursor {
  int64_t group, first, tasks;
  tarn__gemm g;
  plan p;
} cursor;

static cursor cursor_at(const tarn__gemm_groups *groups, int64_t group, int64_t first, int64_t all_rows, int threads) {
  cursor c = {.group = group, .first = first, .g = groups->product(groups->user, group)};
  if (c.g.m == 0 || c.g.n == 0 || c.g.k == 0) return c;
  c.p = group_plan_of(&c.g, groups->count, all_rows, threads);
  c.tasks = c.p.m.pieces * c.p.n.pieces;
  return c;
}

// Advances to the group of a task, which must exist.
static void move_to(cursor *c, const tarn__gemm_groups *groups, int64_t task, int64_t all_rows, int threads) {
  while (task >= c->first + c->tasks) *c = cursor_at(groups, c->group + 1, c->first + c->tasks, all_rows, threads);
}

static void run_group_task(const tarn__gemm *g, const plan *p, char *memory, int64_t task) {
  block b = block_of(p, task, memory);
  for (int64_t first = 0; first < p->steps; first += p->span) {
    const int64_t steps = smaller(p->span, p->steps - first), all = over(b.columns, LINES) * steps;
    const bool goes_on = first + steps < p->steps;
    pack_own_b(g, &b, first, steps);
    for (int64_t row = 0; row < b.rows; row += LINES) {
      b.a_ahead.lines = 0;
      if (row + LINES < b.rows)
        b.a_ahead = a_ahead_of(g, p, b.i + row + LINES, first, all);
      else if (goes_on)
        b.a_ahead = a_ahead_of(g, p, b.i, first + steps, all);
      run_panel(g, p, NULL, &b, row, first, steps);
      if (g->complete != NULL && !goes_on) g->complete(g, b.i + row, smaller(LINES, b.rows - row), b.j, b.columns);
    }
  }
}

static void run_groups(const tarn__gemm_groups *groups, int threads, void *scratch, size_t bytes) {
  const size_t own = bytes / (size_t)threads / 64 * 64;
  double flops = 0.0;
  int64_t tasks = 0, all_rows = 0;
  for (int64_t e = 0; e < groups->count; e++) {
    const tarn__gemm g = groups->product(groups->user, e);
    all_rows += g.m;
    flops += 2.0 * (double)g.m * (double)g.n * (double)g.k;
  }
  if (flops < SERIAL_FLOPS) threads = 1;
  for (int64_t e = 0; e < groups->count; e++) tasks += cursor_at(groups, e, 0, all_rows, threads).tasks;
#pragma omp parallel num_threads(threads)
  {
    char *memory = (char *)scratch + own * (size_t)omp_get_thread_num();
    // The cursor only moves forward, so a thread's tasks must too, which dynamic schedules do not guarantee.
    cursor here = cursor_at(groups, 0, 0, all_rows, threads);
    tarn__tiles_begin();
#pragma omp for schedule(monotonic : dynamic, 1) nowait
    for (int64_t task = 0; task < tasks; task++) {
      move_to(&here, groups, task, all_rows, threads);
      run_group_task(&here.g, &here.p, memory, task - here.first);
    }
    tarn__tiles_end();
  }
}

const tarn__gemm_groups_way tarn__gemm_tiles_groups = {.scratch = groups_scratch, .run = run_groups};

const tarn__gemm_way tarn__gemm_tiles = {.scratch = scratch_of, .run = run, .pack_bytes = pack_bytes, .pack = pack_b};

#endif
