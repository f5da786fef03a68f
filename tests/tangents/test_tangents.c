// The forward-mode rules of ops, in double: J v against central differences and against the gradient rules.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "tangents/tangent_cases.h"

static void linear(void **state) {
  (void)state;
  for (tarn__activation form = TARN__IDENTITY; form < TARN__ACTIVATIONS_END; form++)
    check_tangents(build_linear, &form, "linear");
}

static void glu(void **state) {
  (void)state;
  for (tarn__activation form = TARN__IDENTITY; form < TARN__ACTIVATIONS_END; form++)
    check_tangents(build_glu, &form, "glu");
}

static void dropout(void **state) {
  (void)state;
  check_tangents(build_dropout, NULL, "dropout");
}

static void norms(void **state) {
  (void)state;
  for (tarn__norm_form form = TARN__NORM_LAYER; form <= TARN__NORM_SCALE; form++) {
    const struct {
      const char *name;
      norm_shape s;
    } cases[] = {
        {"norm alone", {7, 20, false, true, false, true, 0.0, true, false, true, form}},
        {"sum and norm", {7, 20, true, true, true, true, 0.3, true, true, true, form}},
        {"norm of a sum", {7, 20, true, true, false, true, 0.2, true, true, false, form}},
        {"sum alone", {7, 20, true, false, true, false, 0.3, true, true, false, form}},
        {"branch alone", {7, 20, true, true, true, true, 0.5, false, true, false, form}},
        {"x alone", {7, 20, true, true, true, true, 0.5, true, false, false, form}},
        {"a row", {1, 8, true, true, true, true, 0.2, true, true, true, form}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_tangents(norm_build, &cases[i].s, cases[i].name);
  }
}

static void branches(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof branch_cases / sizeof *branch_cases; i++)
    if (branch_cases[i].s.x_grad) check_tangents(branch_build, &branch_cases[i].s, branch_cases[i].name);
  for (size_t i = 0; i < sizeof share_cases / sizeof *share_cases; i++)
    if (share_cases[i].x_grad) check_tangents(share_build, &share_cases[i], "shares");
  for (size_t i = 0; i < sizeof deep_cases / sizeof *deep_cases; i++)
    check_tangents(deep_build, &deep_cases[i].s, deep_cases[i].name);
}

static void attention(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof attention_cases / sizeof *attention_cases; i++)
    check_tangents(build_attention, &attention_cases[i].a, attention_cases[i].name);
}

// Integers for all directions: made once, apart by kind and period.
static void stacks(void **state) {
  (void)state;
  static const int32_t offsets[] = {0, 3, 3, 7}, rows[] = {6, 0, 2};
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_reference, TARN__F64, false, 1);
  tarn__tensor *at = tarn__graph_input(&graph, 4, offsets, "offsets");
  tarn__tensor *chosen = tarn__graph_input(&graph, 3, rows, "rows");
  graph.directions = 3;
  const tarn__tensor *many = tarn__tangent_offsets(&graph, at);
  const int32_t expected[] = {0, 3, 3, 7, 10, 10, 14, 17, 17, 21};
  assert_int_equal(many->cols, 10);
  assert_memory_equal(many->host, expected, sizeof expected);
  const tarn__tensor *same = tarn__tangent_positions(&graph, chosen), *seven = tarn__tangent_rows(&graph, chosen, 7);
  const tarn__tensor *nine = tarn__tangent_rows(&graph, chosen, 9);
  const int32_t repeated[] = {6, 0, 2, 6, 0, 2, 6, 0, 2}, shifted[] = {6, 0, 2, 13, 7, 9, 20, 14, 16};
  assert_memory_equal(same->host, repeated, sizeof repeated);
  assert_memory_equal(seven->host, shifted, sizeof shifted);
  assert_int_equal(nine->host[8], 20);
  assert_ptr_equal(many, tarn__tangent_offsets(&graph, at));
  assert_ptr_equal(same, tarn__tangent_positions(&graph, chosen));
  assert_ptr_equal(seven, tarn__tangent_rows(&graph, chosen, 7));
  assert_null(tarn__tangent_rows(&graph, NULL, 7));
  tarn__graph_close(&graph);
}

// What cannot be pushed fails with one line.
static void refused(void **state) {
  (void)state;
  enum { NO_RULE, BF16, WRONG_ROWS, TWICE, FAILURES };
  static const char *const text[FAILURES] = {"has no tangents", "not in bf16", "rows of directions", "pushed once"};
  for (int what = 0; what < FAILURES; what++) {
    tarn__graph graph = {0};
    const tarn__dtype dtype = what == BF16 ? TARN__BF16 : TARN__F32;
    float memory[3] = {0};
    tarn__graph_begin(&graph, &tarn__device_cpu, dtype, false, 1);
    tarn__tensor *x = tarn__graph_external(&graph, dtype, 1, 1, memory, "x");
    x->tangent = tarn__graph_external(&graph, dtype, what == WRONG_ROWS ? 3 : 2, 1, memory, "directions");
    tarn__tensor *y = tarn__dropout_apply(&graph, x, 0.0);
    if (what == NO_RULE) tarn__stand_in_copy(&graph, y);
    if (what == WRONG_ROWS) tarn__residual_norm(&graph, y, y, 0.0, (tarn__norm){0});
    tarn__graph_push(&graph, 2);
    if (what == TWICE) tarn__graph_push(&graph, 2);
    assert_int_not_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
    assert_non_null(strstr(tarn_error_message(), text[what]));
    tarn__graph_close(&graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(linear),   cmocka_unit_test(glu),       cmocka_unit_test(dropout), cmocka_unit_test(norms),
      cmocka_unit_test(branches), cmocka_unit_test(attention), cmocka_unit_test(stacks),  cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
