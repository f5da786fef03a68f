// Product keys: fast kernels against the reference, which looks at all pairs; a row's bits do not depend on its batch.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/product_keys.h"
#include "ops/weighted_rows.h"

typedef struct variant {
  int64_t rows, heads, keys, width, nearest;
} variant;

static const variant variants[] = {
    {1, 1, 1, 4, 1}, {7, 2, 9, 5, 3}, {150, 3, 20, 24, 20}, {130, 2, 40, 33, 8}, {300, 1, 32, 64, 2}};

// Threads of a card are slow on a processor.
static variant variant_of(size_t i) {
  variant v = variants[i];
  if (check_device() != &tarn__device_cpu && v.rows > 37) v.rows = 37;
  return v;
}

static void build(check *c, tarn__graph *graph, const void *spec) {
  const variant *v = spec;
  tarn__tensor *queries = check_input(c, graph, v->rows, 2 * v->heads * v->width, 1.0, true);
  tarn__param *keys = check_param(c, 2 * v->heads * v->keys, v->width, 0.4, true);
  keys->out = v->keys;
  const tarn__nearest nearest =
      tarn__product_keys(graph, queries, keys, (tarn__product_keys_spec){v->heads, v->nearest});
  check_output(c, nearest.gates);
  nearest.ids->keep = true;
}

static void product_keys(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    char name[80];
    const variant v = variant_of(i);
    snprintf(name, sizeof name, "%d nearest of %d keys", (int)v.nearest, (int)v.keys);
    check_kernels(build, &v, name, 2e-5, 0.03);
    check_kernels_mode(build, &v, name, false, 2e-5, 0.03);
  }
}

// Rows of a table with the gates, and the table's gradient, which a test of its own has in F32 alone.
static void build_table(check *c, tarn__graph *graph, const void *spec) {
  enum { HEADS = 2, KEYS = 5, WIDTH = 8, ROWS = 19 };
  (void)spec;
  tarn__tensor *queries = check_input(c, graph, ROWS, 2 * HEADS * WIDTH, 1.0, true);
  tarn__param *keys = check_param(c, 2 * HEADS * KEYS, WIDTH, 0.4, true);
  tarn__param *table = check_param(c, KEYS * KEYS, 40, 1.0, true);
  keys->out = KEYS;
  const tarn__nearest nearest = tarn__product_keys(graph, queries, keys, (tarn__product_keys_spec){HEADS, 3});
  check_output(c, tarn__weighted_rows(graph, tarn__graph_param(graph, table), nearest.ids, nearest.gates));
}

static void table_of_memory(void **state) {
  (void)state;
  if (check_device() == &tarn__device_cpu) skip();
  check_kernels(build_table, NULL, "table of a memory", 2e-5, 0.03);
}

static int32_t ids[300 * 3 * 20];

static void keep_ids(const tarn__graph *graph) {
  for (size_t i = 0; i < graph->node_count; i++)
    if (graph->nodes[i]->op->id == TARN__OP_PRODUCT_KEYS) {
      const tarn__tensor *t = graph->nodes[i]->out[TARN__PRODUCT_KEYS_IDS];
      memcpy(ids, t->data, (size_t)(t->rows * t->cols) * sizeof *ids);
    }
}

// The pairs, which gates alone do not tell, and the same of the first rows alone.
static void pairs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    const variant now = variant_of(i), *v = &now;
    const size_t count = (size_t)(v->rows * v->heads * v->nearest);
    static int32_t expected[300 * 3 * 20];
    check exact, fast, few;
    check_open(&exact);
    check_open(&fast);
    check_open(&few);
    exact.after = fast.after = keep_ids;
    check_run(&exact, build, v, &tarn__device_reference, TARN__F64, false);
    memcpy(expected, ids, sizeof ids);
    check_run(&fast, build, v, check_device(), TARN__F32, false);
    assert_memory_equal(ids, expected, count * sizeof *ids);
    variant first = *v;
    first.rows = 1;
    check_run(&few, build, &first, check_device(), TARN__F32, false);
    memcpy(few.item[0].value, fast.item[0].value, (size_t)few.item[0].cols * sizeof(double));
    memcpy(few.item[1].value, fast.item[1].value, (size_t)(few.item[1].rows * few.item[1].cols) * sizeof(double));
    check_run(&few, build, &first, check_device(), TARN__F32, false);
    assert_memory_equal(few.output_value[0], fast.output_value[0], few.output_size[0] * sizeof(double));
    check_close(&exact);
    check_close(&fast);
    check_close(&few);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(product_keys), cmocka_unit_test(table_of_memory),
                                     cmocka_unit_test(pairs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
