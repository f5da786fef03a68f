// Shapes that a card has no room for in the shared memory of a block are refused before anything runs, by a line with
// the limit; the processor takes them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/attention_check.h"
#include "kernels/hadamard_check.h"
#include "kernels/linear_attention_check.h"
#include "kernels/norm_check.h"
#include "ops/depthwise_conv.h"
#include "ops/product_keys.h"
#include "ops/route.h"

static void build_norm(check *c, tarn__graph *graph, const void *spec) {
  const norm_shape s = {1, *(const int64_t *)spec, false, true, false, false, 0.0, true, false, true, TARN__NORM_LAYER};
  norm_build(c, graph, &s);
}

static void build_heads(check *c, tarn__graph *graph, const void *spec) {
  const attention_extras_shape s = {
      {*(const int64_t *)spec, 1, 1, {2}, {0}, true, false, false, false, 0.0}, 0.0, 0, false, 0, 0, true};
  attention_build_extras(c, graph, &s);
}

static void build_features(check *c, tarn__graph *graph, const void *spec) {
  static const int32_t ends[] = {0, 2};
  const linear_case s = {
      .heads = 1, .width = 4, .features = *(const int64_t *)spec, .softmax = true, .sentences = 1, .offsets = ends};
  linear_build(c, graph, &s);
}

static void build_transform(check *c, tarn__graph *graph, const void *spec) {
  const int64_t width = *(const int64_t *)spec;
  tarn__tensor *x = check_input(c, graph, 1, width, 1.0, false);
  check_output(c, tarn__hadamard(graph, x, check_signs(c, width, width, 1), NULL, TARN__IDENTITY));
}

static void build_router(check *c, tarn__graph *graph, const void *spec) {
  const int64_t width = *(const int64_t *)spec;
  const tarn__route_spec route = {.choices = 1, .capacity = INFINITY, .share = 1};
  tarn__tensor *x = check_input(c, graph, 1, width, 1.0, false);
  check_output(c, tarn__route(graph, x, check_param(c, 4, width, 1.0, false), route).gates);
}

static void build_keys(check *c, tarn__graph *graph, const void *spec) {
  const int64_t keys = *(const int64_t *)spec;
  tarn__tensor *queries = check_input(c, graph, 1, 4, 1.0, false);
  tarn__param *table = check_param(c, 2 * keys, 2, 1.0, false);
  table->out = keys;
  check_output(c, tarn__product_keys(graph, queries, table, (tarn__product_keys_spec){1, 3}).gates);
}

static void build_taps(check *c, tarn__graph *graph, const void *spec) {
  static const int32_t ends[] = {0, 1};
  const int64_t heads = *(const int64_t *)spec / 31;
  const tarn__conv_spec conv = {.heads = heads, .width = 31, .before = 30};
  tarn__tensor *x = check_input(c, graph, 1, heads, 1.0, false), *at = check_ints(c, graph, ends, 2);
  tarn__tensor *logits = tarn__graph_param(graph, check_param(c, 1, heads * 31, 1.0, false));
  check_output(c, tarn__depthwise_conv(graph, x, logits, at, conv, 0.0));
}

static const struct {
  check_build build;
  int64_t small, large;
  const char *words[2];
} cases[] = {
    {build_norm, 8192, 8200, {"it needs norms of at most ", " columns, not 8200"}},
    {build_heads, 1024, 20000, {"it needs heads of at most ", " columns, not 20000"}},
    {build_features, 600, 3000, {"it needs heads of at most ", " features, not 3000"}},
    {build_transform, 8192, 40000, {"it needs Hadamard transforms of at most ", " elements, not "}},
    {build_router, 1024, 20000, {"it needs experts for rows of at most ", " columns, not 20000"}},
    {build_keys, 512, 20000, {"it needs memories of at most ", " keys of a half, not 20000"}},
    {build_taps, 310, 124000, {"it needs kernels of at most ", " taps of all heads, not 124000"}},
};

static tarn_status plan(check_build build, int64_t size) {
  check c;
  tarn__graph graph = {0};
  check_open(&c);
  c.next = c.outputs = 0;
  c.dtype = TARN__F32;
  tarn__graph_begin(&graph, check_device(), TARN__F32, false, CHECK_THREADS);
  build(&c, &graph, &size);
  const tarn_status status = tarn__graph_plan(&graph);
  tarn__graph_close(&graph);
  check_close(&c);
  return status;
}

static void refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_ok(plan(cases[i].build, cases[i].small));
    const tarn_status status = plan(cases[i].build, cases[i].large);
    if (check_device() == &tarn__device_cpu) {
      check_ok(status);
      continue;
    }
    assert_int_equal(status, TARN_STATUS_UNSUPPORTED);
    for (int k = 0; k < 2; k++)
      if (!strstr(tarn_error_message(), cases[i].words[k])) fail_msg("not the limit: %s", tarn_error_message());
    if (strchr(tarn_error_message(), '\n')) fail_msg("more than a line: %s", tarn_error_message());
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
