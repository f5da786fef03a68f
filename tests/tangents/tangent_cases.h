// What the ops of a Transformer are built of in the tests of tangents, of rules and of kernels.
#ifndef TARN_TESTS_TANGENT_CASES_H
#define TARN_TESTS_TANGENT_CASES_H

#include "kernels/attention_check.h"
#include "kernels/branch_check.h"
#include "tangents/tangent_check.h"

// Every activation after a product and alone.
static inline void build_linear(check *c, tarn__graph *graph, const void *spec) {
  const tarn__activation form = *(const tarn__activation *)spec;
  tarn__tensor *x = check_input(c, graph, 5, 7, 1.5, true);
  tarn__param *first = check_param(c, 6, 7, 0.5, true), *bias = check_param(c, 1, 6, 0.5, true);
  tarn__param *second = check_param(c, 6, 6, 0.5, false);
  tarn__tensor *hidden = tarn__linear(graph, x, first, bias, form);
  check_output(c, hidden);
  hidden = tarn__linear(graph, hidden, second, NULL, TARN__IDENTITY);
  check_output(c, form == TARN__IDENTITY || form == TARN__RELU ? hidden : tarn__activate(graph, hidden, form));
}

static inline void build_glu(check *c, tarn__graph *graph, const void *spec) {
  check_output(c, tarn__glu(graph, check_input(c, graph, 5, 14, 1.0, true), *(const tarn__activation *)spec));
}

static inline void build_dropout(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  check_output(c, tarn__dropout_apply(graph, check_input(c, graph, 9, 24, 1.0, true), 0.4));
}

// Biases have a reach of 5 tokens, and their table is frozen.
typedef attention_extras_shape attention_case;

static inline void build_attention(check *c, tarn__graph *graph, const void *spec) {
  attention_case a = *(const attention_case *)spec;
  a.max_distance = 5;
  a.frozen = true;
  attention_build_extras(c, graph, &a);
}

static const struct {
  const char *name;
  attention_case a;
} attention_cases[] = {
    {"self", {{12, 3, 4, {3, 1, 5, 2}, {0}, true, false, true, false, 0.0}, 0.0, 0, false, 0, 0, true}},
    {"causal", {{12, 3, 4, {3, 1, 5, 2}, {0}, true, true, true, false, 0.3}, 0.0, 0, false, 0, 0, true}},
    {"cross", {{12, 3, 4, {3, 0, 5, 2}, {2, 2, 5, 1}, false, false, true, true, 0.3}, 0.0, 0, false, 0, 0, true}},
    {"cross, queries alone", {{12, 3, 2, {3, 2}, {2, 6}, false, false, true, false, 0.0}, 0.0, 0, false, 0, 0, true}},
    {"cross, keys and values alone",
     {{12, 3, 2, {3, 2}, {2, 6}, false, false, false, true, 0.0}, 0.0, 0, false, 0, 0, true}},
    {"alibi", {{12, 3, 3, {3, 1, 5}, {0}, true, false, true, false, 0.0}, 8.0, 0, false, 0, 0, true}},
    {"alibi, causal", {{8, 2, 3, {3, 1, 5}, {0}, true, true, true, true, 0.2}, 8.0, 0, true, 0, 0, true}},
    {"grouped heads", {{24, 4, 3, {3, 1, 5}, {0}, true, false, true, false, 0.2}, 0.0, 2, false, 0, 0, true}},
    {"one head of keys", {{24, 4, 3, {3, 1, 5}, {4, 2, 3}, false, false, true, true, 0.0}, 0.0, 1, false, 0, 0, true}},
    {"biases of T5", {{12, 3, 3, {3, 1, 9}, {0}, true, false, true, false, 0.2}, 0.0, 0, false, 8, 0, true}},
    {"biases of T5, causal, grouped", {{16, 4, 2, {9, 3}, {0}, true, true, true, true, 0.0}, 0.0, 2, true, 6, 0, true}},
};

#endif
