// Experts: routing, grouped products and weighted rows, fast kernels against the reference; capacity, balance, and that
// a row's bits do not depend on its batch where nothing is trained. Products of groups against each by itself.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "device/cpu/gemm/gemm_groups.h"
#include "device/cpu/isa/isa.h"
#include "kernels/kernel_check.h"
#include "ops/grouped.h"
#include "ops/route.h"
#include "ops/swish_beta.h"
#include "ops/weighted_rows.h"

typedef struct variant {
  int64_t rows, d, width, experts;
  tarn__route_spec route;
  tarn__activation activation;
  bool learns_beta;  // Swish with a learnt beta takes the place of the activation
} variant;

static const variant variants[] = {
    {1, 8, 12, 3, {.choices = 1, .capacity = 1.25, .share = 1}, TARN__RELU, false},
    {29, 24, 20, 5, {.choices = 1, .capacity = 1.25, .balance = 1, .share = 0.5, .noise = 0.01}, TARN__RELU, false},
    {29, 21, 19, 11, {.choices = 3, .normalise = 1, .capacity = 0.7, .balance = 2, .share = 1}, TARN__GELU, false},
    {90, 48, 33, 20, {.choices = 2, .normalise = 1, .capacity = INFINITY, .noise = 0.2}, TARN__SWISH, false},
    {400, 64, 160, 3, {.choices = 2, .normalise = 1, .capacity = 1, .balance = 0.1, .share = 1}, TARN__RELU, false},
};

static tarn__tensor *experts_of(check *c, tarn__graph *graph, tarn__tensor *x, const variant *v) {
  tarn__param *router = check_param(c, v->experts, v->d, 1.0, true);
  tarn__param *in = check_param(c, v->experts * v->width, v->d, 0.3, true);
  tarn__param *in_bias = check_param(c, 1, v->experts * v->width, 0.5, true);
  tarn__param *out = check_param(c, v->experts * v->d, v->width, 0.3, true);
  tarn__param *out_bias = check_param(c, 1, v->experts * v->d, 0.5, true);
  tarn__param *beta = v->learns_beta ? check_param(c, 1, 1, 1.0, true) : NULL;
  in->out = v->width;
  out->out = v->d;
  const tarn__routed routed = tarn__route(graph, x, router, v->route);
  tarn__tensor *rows = tarn__gather_rows(graph, x, &routed);
  rows = tarn__grouped_linear(graph, rows, routed.offsets, in, in_bias, v->activation);
  if (beta) rows = tarn__swish_beta(graph, rows, routed.offsets, 0.0, beta, false);
  rows = tarn__grouped_linear(graph, rows, routed.offsets, out, out_bias, TARN__IDENTITY);
  return tarn__weighted_rows(graph, rows, routed.places, routed.gates);
}

static void build(check *c, tarn__graph *graph, const void *spec) {
  const variant *v = spec;
  check_output(c, experts_of(c, graph, check_input(c, graph, v->rows, v->d, 1.0, true), v));
}

static void experts(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    char name[80];
    snprintf(name, sizeof name, "%d rows to %d experts", (int)variants[i].rows, (int)variants[i].experts);
    check_kernels(build, &variants[i], name, 2e-5, 0.05);
    check_kernels_mode(build, &variants[i], name, false, 2e-5, 0.05);
  }
}

// Rows behind those of the experts hold NaNs here, which nothing may add to the gradient of beta.
static void little_room_and_a_learnt_beta(void **state) {
  (void)state;
  const variant v = {29, 21, 19, 5, {.choices = 2, .normalise = 1, .capacity = 1, .share = 1}, TARN__IDENTITY, true};
  check_kernels(build, &v, "learnt beta", 2e-5, 0.05);
}

// Without products: what is done to sorted rows leaves out those behind the experts', which hold NaNs here.
static void build_rows(check *c, tarn__graph *graph, const void *spec) {
  const variant *v = spec;
  tarn__tensor *x = check_input(c, graph, v->rows, v->d, 1.0, true);
  tarn__param *router = check_param(c, v->experts, v->d, 1.0, true), *beta = check_param(c, 1, 1, 1.0, true);
  const tarn__routed routed = tarn__route(graph, x, router, v->route);
  tarn__tensor *rows = tarn__gather_rows(graph, x, &routed);
  rows = tarn__swish_beta(graph, rows, routed.offsets, 0.0, beta, false);
  check_output(c, tarn__weighted_rows(graph, rows, routed.places, routed.gates));
}

static void without_products(void **state) {
  (void)state;
  if (check_device() == &tarn__device_cpu) skip();
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    variant v = variants[i];
    v.route.normalise = 0;  // the sum of gates that add up to 1 has no gradient, because all experts are alike
    check_kernels(build_rows, &v, "without products", 2e-5, 0.05);
    check_kernels_mode(build_rows, &v, "without products", false, 2e-5, 0.05);
  }
}

static void build_table(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  enum { ROWS = 23, COUNT = 6, TABLE = 9 };
  static int32_t numbers[ROWS * COUNT];
  for (int i = 0; i < ROWS * COUNT; i++) numbers[i] = i * i % 11 - 2 < 0 ? -1 : i * i % 11 - 2;
  tarn__param *table = check_param(c, TABLE, 150, 1.0, true);
  tarn__tensor *gates = check_input(c, graph, ROWS, COUNT, 1.0, true);
  const tarn__tensor *row = check_ints(c, graph, numbers, ROWS * COUNT);
  tarn__tensor *ids = tarn__graph_external(graph, TARN__I32, ROWS, COUNT, c->item[c->next - 1].data, row->name);
  check_output(c, tarn__weighted_rows(graph, tarn__graph_param(graph, table), ids, gates));
}

static void table(void **state) {
  (void)state;
  // Gates are inputs of the test, which would be bf16.
  check_kernels(build_table, NULL, "rows of a table", 1e-5, 0.0);
}

// What the node of the last run made.
static int32_t places[64], offsets[8];
static double probabilities[64];

static void keep_routes(const tarn__graph *graph) {
  for (size_t i = 0; i < graph->node_count; i++) {
    const tarn__node *node = graph->nodes[i];
    if (node->op->id != TARN__OP_ROUTE) continue;
    const tarn__tensor *p = node->out[TARN__ROUTE_PLACES], *o = node->out[TARN__ROUTE_OFFSETS];
    memcpy(places, p->data, (size_t)(p->rows * p->cols) * sizeof *places);
    memcpy(offsets, o->data, (size_t)o->cols * sizeof *offsets);
    const tarn__tensor *q = node->out[TARN__ROUTE_PROBABILITIES];
    for (int64_t k = 0; q && k < q->rows * q->cols; k++) probabilities[k] = check_load(q->data, q->dtype, (size_t)k);
  }
}

static void build_routes(check *c, tarn__graph *graph, const void *spec) {
  const variant *v = spec;
  tarn__param *router = check_param(c, v->experts, v->d, 1.0, true);
  tarn__tensor *x = check_input(c, graph, v->rows, v->d, 1.0, true);
  const tarn__routed routed = tarn__route(graph, x, router, v->route);
  routed.places->keep = routed.offsets->keep = true;
  check_output(c, routed.gates);
}

static void run_routes(check *c, const variant *v, const tarn__device *device, bool training) {
  c->after = keep_routes;
  check_run(c, build_routes, v, device, TARN__F32, training);
}

static void capacity(void **state) {
  (void)state;
  const variant v = {.rows = 12, .d = 6, .experts = 4, .route = {.choices = 2, .normalise = 1, .capacity = 0.5}};
  const tarn__device *const devices[] = {&tarn__device_reference, check_device()};
  for (int k = 0; k < 2; k++) {
    check c;
    check_open(&c);
    // ceil(0.5 * 2 * 12 / 4) = 3 of each expert at most, and every row of them is named once.
    run_routes(&c, &v, devices[k], true);
    int dropped = 0, seen[12] = {0};
    for (int i = 0; i < 24; i++) {
      if (places[i] < 0) dropped++;
      if (places[i] >= 0) seen[places[i]]++;
    }
    for (int e = 0; e < 4; e++) assert_in_range(offsets[e + 1] - offsets[e], 0, 3);
    for (int i = 0; i < 12; i++) assert_int_equal(seen[i], i < offsets[4]);
    assert_int_equal(24 - dropped, offsets[4]);
    assert_true(dropped >= 12);
    // Without training there is no limit.
    run_routes(&c, &v, devices[k], false);
    assert_int_equal(offsets[4], 24);
    for (int i = 0; i < 24; i++) assert_true(places[i] >= 0);
    check_close(&c);
  }
}

static double balance_of(const variant *v) {
  double f[8] = {0}, mean[8] = {0}, sum = 0.0;
  for (int64_t r = 0; r < v->rows; r++) {
    int best = 0;
    for (int e = 0; e < v->experts; e++) {
      mean[e] += probabilities[r * v->experts + e] / (double)v->rows;
      if (probabilities[r * v->experts + e] > probabilities[r * v->experts + best]) best = e;
    }
    f[best] += 1.0 / (double)v->rows;
  }
  for (int e = 0; e < v->experts; e++) sum += f[e] * mean[e];
  return v->route.balance * v->route.share * (double)v->experts * sum;
}

// What the balance loss adds to the gradient is the difference of balance E sum f P, which no loss contains.
static void balance(void **state) {
  (void)state;
  enum { ROWS = 12, D = 5, EXPERTS = 4 };
  const variant without = {.rows = ROWS, .d = D, .experts = EXPERTS, .route = {.choices = 1, .capacity = 4}};
  variant with = without;
  with.route.balance = 3.0;
  with.route.share = 0.25;
  check c;
  check_open(&c);
  c.after = keep_routes;
  double before[ROWS * D + EXPERTS * D];
  for (int round = 0; round < 2; round++) {
    check_run(&c, build_routes, round ? &with : &without, &tarn__device_reference, TARN__F64, true);
    for (int i = 0; i < EXPERTS * D; i++) before[i] = c.item[0].grad[i] - (round ? before[i] : 0.0);
    for (int i = 0; i < ROWS * D; i++)
      before[EXPERTS * D + i] = c.item[1].grad[i] - (round ? before[EXPERTS * D + i] : 0.0);
  }
  const double h = 1e-6;
  for (int i = 0; i < EXPERTS * D + ROWS * D; i++) {
    double *value = i < EXPERTS * D ? &c.item[0].value[i] : &c.item[1].value[i - EXPERTS * D];
    const double kept = *value;
    double difference = 0.0;
    for (int sign = -1; sign <= 1; sign += 2) {
      *value = kept + sign * h;
      check_run(&c, build_routes, &with, &tarn__device_reference, TARN__F64, true);
      difference += sign * balance_of(&with) / (2.0 * h);
    }
    *value = kept;
    if (!(fabs(difference - before[i]) < 1e-8)) fail_msg("element %d: %.12g, expected %.12g", i, before[i], difference);
  }
  check_close(&c);
}

// The first rows of a batch, alone.
static void alone(void **state) {
  (void)state;
  for (size_t i = 1; i < sizeof variants / sizeof *variants; i++)
    for (int half = 0; half < 2; half++) {
      variant few = variants[i];
      few.rows = 3;
      check whole, part;
      check_open(&whole);
      check_open(&part);
      const tarn__dtype dtype = half ? TARN__BF16 : TARN__F32;
      check_run(&whole, build, &variants[i], check_device(), dtype, false);
      check_run(&part, build, &few, check_device(), dtype, false);
      for (int k = 1; k < part.items; k++)
        memcpy(part.item[k].value, whole.item[k].value,
               (size_t)(part.item[k].rows * part.item[k].cols) * sizeof(double));
      memcpy(part.item[0].value, whole.item[0].value, (size_t)(few.rows * few.d) * sizeof(double));
      check_run(&part, build, &few, check_device(), dtype, false);
      assert_memory_equal(part.output_value[0], whole.output_value[0], (size_t)(few.rows * few.d) * sizeof(double));
      check_close(&whole);
      check_close(&part);
    }
}

// Rows of groups; transposed ones have them as the terms of their sums. Sums of more than 1536 terms are cut.
typedef struct products {
  int64_t rows[6], m, n, k;  // m of transposed ones, k of the others
  bool transpose_a, transpose_b, accumulate;
  tarn__dtype dtype, c_dtype;
} products;

enum { GROUPS = 6 };

static const products all_products[] = {
    {{0, 5, 700, 33, 0, 1}, 0, 70, 200, false, true, false, TARN__BF16, TARN__BF16},
    {{530, 0, 40, 3, 64, 9}, 0, 1100, 70, false, true, false, TARN__BF16, TARN__BF16},
    {{9, 0, 520, 3, 64, 9}, 0, 100, 1700, false, false, true, TARN__BF16, TARN__BF16},
    {{17, 31, 0, 0, 96, 300}, 0, 64, 96, false, false, false, TARN__BF16, TARN__F32},
    {{0, 5, 1700, 33, 64, 1}, 70, 45, 0, true, false, false, TARN__BF16, TARN__F32},
    {{40, 0, 600, 33, 64, 7}, 530, 33, 0, true, false, true, TARN__BF16, TARN__F32},
    {{7, 0, 60, 3, 64, 9}, 0, 50, 70, false, true, false, TARN__F32, TARN__F32},
};

typedef struct product_memory {
  const products *of;
  char *a, *b, *c;
} product_memory;

static tarn__gemm product_of(const void *user, int64_t group) {
  const product_memory *at = user;
  const products *p = at->of;
  const size_t size = tarn__dtype_size(p->dtype), c_size = tarn__dtype_size(p->c_dtype);
  int64_t first = 0;
  for (int64_t e = 0; e < group; e++) first += p->rows[e];
  const int64_t m = p->transpose_a ? p->m : p->rows[group], k = p->transpose_a ? p->rows[group] : p->k;
  const int64_t b_first = p->transpose_a ? first * p->n : group * p->n * k;
  const int64_t c_first = p->transpose_a ? group * m * p->n : first * p->n;
  return (tarn__gemm){.m = m,
                      .n = p->n,
                      .k = k,
                      .a = at->a + (size_t)(first * (p->transpose_a ? m : k)) * size,
                      .b = at->b + (size_t)b_first * size,
                      .c = at->c + (size_t)c_first * c_size,
                      .lda = p->transpose_a ? m : k,
                      .ldb = p->transpose_b ? k : p->n,
                      .ldc = p->n,
                      .dtype = p->dtype,
                      .c_dtype = p->c_dtype,
                      .transpose_a = p->transpose_a,
                      .transpose_b = p->transpose_b,
                      .accumulate = p->accumulate};
}

static char *numbers_of(size_t count, tarn__dtype dtype, uint32_t seed) {
  char *memory = test_malloc(count * tarn__dtype_size(dtype) + 1);
  for (size_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    check_store(memory, dtype, i, (double)(seed >> 16) / 32768.0 - 1.0);
  }
  return memory;
}

static void run_products(const products *p, int threads) {
  int64_t rows = 0;
  for (int e = 0; e < GROUPS; e++) rows += p->rows[e];
  const size_t a = (size_t)(rows * (p->transpose_a ? p->m : p->k));
  const size_t b = (size_t)(p->n * (p->transpose_a ? rows : GROUPS * p->k));
  const size_t c = (size_t)(p->n * (p->transpose_a ? GROUPS * p->m : rows)), bytes = c * tarn__dtype_size(p->c_dtype);
  product_memory at = {p, numbers_of(a, p->dtype, 1), numbers_of(b, p->dtype, 2), numbers_of(c, p->c_dtype, 3)};
  product_memory one = {p, at.a, at.b, numbers_of(c, p->c_dtype, 3)};
  tarn__gemm most = product_of(&at, 0);
  *(p->transpose_a ? &most.k : &most.m) = rows;
  enum { GUARD = 64 };
  const size_t scratch_bytes = tarn__gemm_groups_scratch(&most, threads), alone_bytes = 64 << 20;
  char *scratch = aligned_alloc(64, (scratch_bytes + 2 * GUARD) / 64 * 64), *alone = aligned_alloc(64, alone_bytes);
  memset(scratch + scratch_bytes, 0x5a, GUARD);
  const tarn__gemm_groups groups = {GROUPS, product_of, &at};
  tarn__gemm_groups_run(&groups, threads, scratch, scratch_bytes);
  for (int i = 0; i < GUARD; i++) assert_int_equal(scratch[scratch_bytes + (size_t)i], 0x5a);
  for (int64_t e = 0; e < GROUPS; e++) {
    const tarn__gemm g = product_of(&one, e);
    assert_true(tarn__gemm_scratch(&g, 1) <= alone_bytes);
    if (p->rows[e] > 0) tarn__gemm_run(&g, 1, alone);
  }
  // Sums over groups of rows may be cut where there are no tiles.
  const bool same = !p->transpose_a || tarn__isa_now() == TARN__ISA_AMX;
  if (same) assert_memory_equal(at.c, one.c, bytes);
  for (size_t i = 0; i < c; i++)
    assert_true(fabs(check_load(at.c, p->c_dtype, i) - check_load(one.c, p->c_dtype, i)) <= 1e-3);
  char *const taken[] = {at.a, at.b, at.c, one.c};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) test_free(taken[i]);
  free(scratch);
  free(alone);
}

static void groups(void **state) {
  (void)state;
  if (check_device() != &tarn__device_cpu) skip();
  for (size_t i = 0; i < sizeof all_products / sizeof *all_products; i++)
    for (int threads = 1; threads <= 3; threads += 2) run_products(&all_products[i], threads);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(groups),
                                     cmocka_unit_test(experts),
                                     cmocka_unit_test(without_products),
                                     cmocka_unit_test(table),
                                     cmocka_unit_test(capacity),
                                     cmocka_unit_test(balance),
                                     cmocka_unit_test(alone),
                                     cmocka_unit_test(little_room_and_a_learnt_beta)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
