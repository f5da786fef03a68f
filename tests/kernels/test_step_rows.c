// What decoding keeps from token to token: single steps of recurrences with gates, and rows that are copied to caches,
// whose widths choose how a card copies them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/cache.h"
#include "ops/recurrence.h"

// Sentences token by token, side by side.
enum { TOKENS = 4, SENTENCES = 3 };

static void build_steps(check *c, tarn__graph *graph, const void *spec) {
  const tarn__recurrence_spec *s = spec;
  const int64_t n = s->hidden, cols = tarn__recurrence_gates(s) * n;
  int32_t row[SENTENCES * TOKENS], range[TOKENS][2 * SENTENCES];
  for (int i = 0; i < SENTENCES * TOKENS; i++) row[i] = i % TOKENS * SENTENCES + i / TOKENS;
  tarn__tensor *x = check_input(c, graph, (int64_t)TOKENS * SENTENCES, cols, 1.0, false);
  const tarn__recurrent weights = {.weight = check_param(c, cols, n, 0.8 / sqrt((double)n), false),
                                   .bias = check_param(c, 1, cols, 0.5, false)};
  tarn__tensor *rows = check_ints(c, graph, row, SENTENCES * TOKENS);
  check_item *item = check_next(c, CHECK_INPUT, (int64_t)TOKENS * SENTENCES, 2 * n, 0.0, false);
  const int64_t width = tarn__recurrence_cache_width(s->cell, n);
  tarn__tensor *cache = tarn__graph_external(graph, graph->dtype, item->rows, width, item->data, "cache");
  const size_t bytes = (size_t)(SENTENCES * cols) * tarn__dtype_size(graph->dtype);
  for (int t = 0; t < TOKENS; t++) {
    for (int k = 0; k < SENTENCES; k++) {
      range[t][2 * k] = k * TOKENS;
      range[t][2 * k + 1] = k * TOKENS + t + 1;
    }
    tarn__tensor *ranges = check_ints(c, graph, range[t], (int64_t)2 * SENTENCES);
    tarn__tensor *token =
        tarn__graph_external(graph, graph->dtype, SENTENCES, cols, (char *)x->data + (size_t)t * bytes, "tokens");
    check_output(c, tarn__recurrence_rows(graph, token, cache, (int64_t)t * SENTENCES, rows, ranges, weights, *s));
  }
}

static void steps(void **state) {
  (void)state;
  static const int64_t hidden[] = {5, 24, 72};
  for (int lstm = 0; lstm < 2; lstm++)
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
      const tarn__recurrence_spec spec = {
          .cell = lstm ? TARN__CELL_LSTM : TARN__CELL_GRU, .hidden = hidden[i], .directions = 1};
      check_kernels_mode(build_steps, &spec, lstm ? "steps of an LSTM" : "steps of a GRU", false, 2e-5, 0.03);
    }
}

// Columns [column, column + cols) of x become columns from `to` on of some rows of a cache.
typedef struct copied {
  int64_t rows, x_cols, column, cols, cache_cols, to, first_row;
} copied;

static void build_append(check *c, tarn__graph *graph, const void *spec) {
  const copied *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->x_cols, 1.0, false);
  tarn__tensor *cache = check_input(c, graph, s->first_row + s->rows + 1, s->cache_cols, 1.0, false);
  check_output(c, tarn__cache_append_columns(graph, x, s->column, s->cols, cache, s->to, s->first_row));
}

static void caches(void **state) {
  (void)state;
  static const copied cases[] = {{3, 32, 16, 16, 16, 0, 2},  {5, 24, 8, 16, 40, 24, 0}, {2, 10, 2, 6, 8, 2, 1},
                                 {4, 9, 3, 5, 5, 0, 3},      {1, 7, 0, 7, 16, 9, 0},    {0, 8, 0, 8, 8, 0, 1},
                                 {3, 700, 1, 699, 699, 0, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_kernels_mode(build_append, &cases[i], "cache", false, 1e-7, 1e-7);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(caches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
