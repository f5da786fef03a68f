// The words that a model inserted, and those of them that an expert deletes: every device against the reference, before
// lookups as in models; and rows in pairs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/deletions.h"
#include "ops/fold.h"
#include "ops/ops.h"

enum { MOST = 700, WORDS = 9 };

typedef struct shape {
  int sentences, longest;
} shape;

typedef struct batch {
  int32_t ids[MOST], offsets[16], rows[MOST], words[MOST], truth[MOST];
  int64_t rows_count, holes;
} batch;

// Few different words, so that there are many ways; every third placeholder is filled in right, some are not at all.
static void make(batch *b, const shape *s) {
  tarn__random random;
  tarn__random_init(&random, (uint64_t)(s->sentences * 1000 + s->longest), 1);
  *b = (batch){.rows_count = 0};
  for (int i = 0; i < s->sentences; i++) {
    const int inner = i == 0 ? s->longest - 2 : (int)tarn__random_below(&random, (uint64_t)s->longest - 1);
    assert_true(b->rows_count + inner + 2 <= MOST);
    b->ids[b->rows_count++] = 0;
    for (int k = 0; k < inner; k++) {
      const int32_t true_word = 2 + (int32_t)tarn__random_below(&random, WORDS - 2);
      const bool hole = tarn__random_below(&random, 2) == 0;
      if (hole) {
        const uint64_t what = tarn__random_below(&random, 6);
        b->rows[b->holes] = (int32_t)b->rows_count;
        b->truth[b->holes] = true_word;
        b->words[b->holes++] = what == 0  ? -1
                               : what < 3 ? true_word
                                          : 2 + (int32_t)tarn__random_below(&random, WORDS - 2);
      }
      b->ids[b->rows_count++] = hole ? 1 : true_word;
    }
    b->ids[b->rows_count++] = 0;
    b->offsets[i + 1] = (int32_t)b->rows_count;
  }
}

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  static batch b;
  make(&b, s);
  const int64_t inner = b.rows_count - 2 * s->sentences;
  tarn__tensor *ids = check_ints(c, graph, b.ids, b.rows_count);
  tarn__tensor *offsets = check_ints(c, graph, b.offsets, s->sentences + 1);
  tarn__tensor *rows = check_ints(c, graph, b.rows, b.holes), *words = check_ints(c, graph, b.words, b.holes);
  tarn__tensor *truth = check_ints(c, graph, b.truth, b.holes);
  const tarn__deletions made = tarn__deletions_of(graph, ids, offsets, rows, words, truth, inner, s->longest);
  assert_false(made.filled->needs_grad || made.deleted->needs_grad);
  check_output(c, tarn__embedding(graph, made.filled, NULL, check_param(c, WORDS, 8, 1.0, true), NULL, 1.0, 0.0));
  check_output(c, tarn__embedding(graph, made.deleted, NULL, check_param(c, 2, 8, 1.0, true), NULL, 1.0, 0.0));
}

static void shapes(void **state) {
  (void)state;
  static const shape all[] = {{1, 3}, {1, 9}, {5, 12}, {9, 40}, {2, 66}, {3, 67}, {4, 150}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char name[80];
    snprintf(name, sizeof name, "%d sentences of up to %d", all[i].sentences, all[i].longest);
    check_kernels(build, &all[i], name, 1e-6, 0.02);
  }
}

static void build_pairs(check *c, tarn__graph *graph, const void *spec) {
  const int64_t d = *(const int64_t *)spec;
  static const int32_t rows[] = {0, 1, 1, 2, 2, 3, 4, 5, 5, 6};
  tarn__tensor *x = check_input(c, graph, 7, d, 1.0, true);
  check_output(c, tarn__fold(graph, tarn__select_rows(graph, x, check_ints(c, graph, rows, 10))));
}

static void pairs(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 8, 24, 40};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    check_kernels(build_pairs, &widths[i], "pairs", 1e-6, 0.02);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(pairs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
