#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct shape {
  bool self, causal, query_grad, key_grad;
  int64_t spare;  // columns that are nobody's
  int uses;
} shape;

enum { SEQUENCES = 5, D = 12, HEADS = 3 };

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  static const int32_t q_offsets[SEQUENCES + 1] = {0, 3, 3, 4, 9, 11}, k_offsets[SEQUENCES + 1] = {0, 2, 4, 9, 10, 13};
  const int64_t part = D + s->spare;
  tarn__attention_spec attention = {.heads = HEADS,
                                    .d = D,
                                    .key_column = s->self ? part : 0,
                                    .value_column = s->self ? 2 * part : part,
                                    .causal = s->causal,
                                    .longest = 5};
  tarn__tensor *queries = check_input(c, graph, 11, s->self ? 3 * part : part, 1.0, s->query_grad);
  tarn__tensor *keys_values = s->self ? queries : check_input(c, graph, 13, 2 * part, 1.0, s->key_grad);
  tarn__tensor *q_at = check_ints(c, graph, q_offsets, SEQUENCES + 1);
  tarn__tensor *k_at = s->self ? q_at : check_ints(c, graph, k_offsets, SEQUENCES + 1);
  for (int i = 0; i < s->uses; i++)
    check_output(c, tarn__attention(graph, queries, keys_values, q_at, k_at, attention));
}

static void all(void **state) {
  (void)state;
  static const struct {
    const char *name;
    shape s;
  } cases[] = {
      {"self", {true, false, true, false, 0, 1}},
      {"causal", {true, true, true, false, 0, 1}},
      {"causal, spare columns, twice", {true, true, true, false, 2, 2}},
      {"cross", {false, false, true, true, 0, 1}},
      {"cross, queries alone", {false, false, true, false, 0, 1}},
      {"cross, keys and values alone", {false, false, false, true, 0, 1}},
      {"cross, spare columns, twice", {false, false, true, true, 3, 2}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_gradients(build, &cases[i].s, cases[i].name, 1e-7);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
