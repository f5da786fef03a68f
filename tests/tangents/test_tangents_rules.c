// Checks the forward-mode rules of the ops of parts other than attention, in double: J v against central differences
// and the gradient rules; and that every op that needs a rule has one.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "kernels/entries_check.h"
#include "kernels/gated_conv_check.h"
#include "kernels/halting_check.h"
#include "kernels/linear_attention_check.h"
#include "kernels/noisy_check.h"
#include "kernels/relative_check.h"
#include "kernels/swish_check.h"
#include "ops/adaptive.h"
#include "tangents/part_cases.h"
#include "task/bands.h"

// Ops that a model of a test was made of, and that have a rule.
static bool proved[TARN__OPS];

typedef struct noted {
  check_build build;
  const void *spec;
} noted;

static void build_noted(check *c, tarn__graph *graph, const void *spec) {
  const noted *n = spec;
  n->build(c, graph, n->spec);
  for (size_t i = 0; i < graph->node_count; i++)
    if (graph->nodes[i]->op->tangent) proved[graph->nodes[i]->op->id] = true;
}

static void prove(check_build build, const void *spec, const char *name) {
  check_tangents(build_noted, &(noted){build, spec}, name);
}

// Where the gradient is not the true one, or there is none.
static void prove_alone(check_build build, const void *spec, const char *name) {
  check_tangents_alone(build_noted, &(noted){build, spec}, name);
}

static void linear_ops(void **state) {
  (void)state;
  for (int relu = 0; relu < 2; relu++) prove(build_linear_ops, &(bool){relu == 1}, "linear ops");
}

static void sentence_products(void **state) {
  (void)state;
  static const products cases[] = {
      {{1, 0, D, 5}, true, true}, {{2, 2, D, 7}, true, true}, {{2, 0, D, 5}, false, true}, {{1, 3, D, 5}, true, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) prove(build_products, &cases[i], "sentence products");
}

static void token_linear(void **state) {
  (void)state;
  static const tokens cases[] = {
      {{TARN__TOKENS_AMONG, false, 5, 0}, false, false, true, false, false},
      {{TARN__TOKENS_AMONG, true, 5, 0}, false, false, true, false, false},
      {{TARN__TOKENS_AMONG, false, 5, 0}, true, false, true, true, false},
      {{TARN__TOKENS_AMONG, true, 9, 0}, true, true, true, true, true},
      {{TARN__TOKENS_AMONG, true, 9, 0}, true, true, true, false, false},
      {{TARN__TOKENS_AMONG, false, 9, 0}, true, true, false, true, false},
      {{TARN__TOKENS_AMONG, false, 9, 0}, true, true, false, false, true},
      {{TARN__TOKENS_IN, false, 5, 0}, false, false, true, false, false},
      {{TARN__TOKENS_OUT, false, 5, ROWS}, false, false, true, false, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) prove(build_tokens, &cases[i], "token_linear");
}

static void convolutions(void **state) {
  (void)state;
  static const conv cases[] = {{3, 1, 0.0, false, true, false}, {4, 3, 0.3, false, true, false},
                               {3, 1, 0.0, true, true, true},   {4, 3, 0.3, true, true, true},
                               {3, 1, 0.3, true, true, false},  {7, 3, 0.3, true, false, true},
                               {1, 0, 0.3, true, true, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) prove(build_conv, &cases[i], "depthwise_conv");
  for (int i = 0; i < GATED_CONV_SHAPES; i++) prove(gated_conv_build, &gated_conv_shapes[i], gated_conv_shapes[i].name);
}

static void linear_attention(void **state) {
  (void)state;
  for (int bits = 0; bits < 8; bits++) {
    linear_case at = {
        .heads = 2, .width = 3, .features = 3, .sentences = SENTENCES, .offsets = sentence_ends, .scale = 0.8};
    at.softmax = bits & 1, at.causal = (bits & 2) != 0;
    at.rest = bits & 4 ? 2 : 0;
    if (at.softmax) at.features = 5;
    prove(linear_build, &at, at.softmax ? "linear attention, softmax" : "linear attention, elu");
    at.carried = at.causal;
    if (at.carried) prove(linear_build, &at, "linear attention, carried");
  }
}

static void synthesis(void **state) {
  (void)state;
  static const struct {
    const char *name;
    synthesis_shape s;
  } cases[] = {
      {"dense", {TARN__SYNTHESIS_DENSE, 2, D, 7, 0, 3, false, false, true, SENTENCES, sentence_ends}},
      {"dense, mixed", {TARN__SYNTHESIS_DENSE, 1, D, 5, 0, 4, true, true, false, SENTENCES, sentence_ends}},
      {"factorised", {TARN__SYNTHESIS_FACTORISED, 2, D, 7, 3, 6, false, false, false, SENTENCES, sentence_ends}},
      {"factorised, mixed", {TARN__SYNTHESIS_FACTORISED, 3, D, 6, 2, 5, true, true, false, SENTENCES, sentence_ends}},
      {"random", {TARN__SYNTHESIS_RANDOM, 2, D, 7, 0, 0, false, false, false, SENTENCES, sentence_ends}},
      {"random, mixed", {TARN__SYNTHESIS_RANDOM, 2, D, 5, 0, 0, true, true, false, SENTENCES, sentence_ends}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) prove(synthesis_build, &cases[i].s, cases[i].name);
}

static void relative_attention(void **state) {
  (void)state;
  for (int form = 0; form < 8; form++) {
    relative_shape e = relative_small(form);
    e.frozen = true;
    prove(relative_build, &e, "relative attention");
  }
}

static void swish(void **state) {
  (void)state;
  for (int form = 0; form < 4; form++)
    prove(swish_build, &(swish_shape){5, 7, form % 2, form / 2, true, 1}, "swish with beta");
}

static void halting(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof halting_shapes / sizeof *halting_shapes; i++)
    prove(halting_build, &halting_shapes[i], "halting");
}

static void experts(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) prove(build_experts, &variants[i], variants[i].name);
  for (int i = 0; i < NOISY_SHAPES; i++) {
    noisy_shape noisy = noisy_shapes[i];
    noisy.x = true;
    noisy.importance = noisy.load = 0.0;  // which add to gradients what is no part of the loss
    prove(noisy_build, &noisy, "noisy gating");
  }
  for (int64_t nearest = 2; nearest <= 5; nearest++)
    prove(build_memory, &(tarn__product_keys_spec){2, nearest}, "product keys");
}

static void try_cell(const char *name, tarn__recurrence_spec spec) {
  recurrence_case at = {.spec = spec, .sentences = 5, .longest = 6, .x = true, .weights = true, .biases = true};
  prove(recurrence_build, &at, name);
  at.carried = true;
  prove(recurrence_build, &at, name);
  at.carried = false;
  at.spec.reverse = true;
  prove(recurrence_build, &at, name);
  at.spec.reverse = false;
  at.spec.directions = 2;
  at.twice = true;
  prove(recurrence_build, &at, name);
}

static const tarn__recurrence_spec cells[] = {
    {.cell = TARN__CELL_GRU, .hidden = 5, .directions = 1},
    {.cell = TARN__CELL_LSTM, .hidden = 5, .directions = 1},
    {.cell = TARN__CELL_ECHO, .hidden = 5, .directions = 1, .leak = 0.8},
    {.cell = TARN__CELL_ECHO, .hidden = 6, .directions = 1, .leak = 0.8, .relu = true},
};

static void recurrences(void **state) {
  (void)state;
  static const char *const names[] = {"gru", "lstm", "echo, tanh", "echo, relu"};
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) try_cell(names[i], cells[i]);
}

// Weights that are stored as their entries, and leaks by unit.
static void entries(void **state) {
  (void)state;
  for (int which = 0; which < 8; which++) {
    const entries_case at = {.spec = {.cell = TARN__CELL_ECHO, .hidden = 16, .directions = 1, .leak = 0.7},
                             .sentences = 4,
                             .longest = 5,
                             .sparsity = 0.6,
                             .stored = which & 1,
                             .leaks = which & 2,
                             .inputs = which & 4 ? 12 : 0};
    prove(entries_build, &at, "entries");
  }
}

static void windows(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
    for (int x = 0; x < 2; x++) prove_alone(build_window, &(window){cells[i], x == 1}, "window of a recurrence");
}

// The tangent of last states is written where there is memory for it: that of the last row of each sentence.
static void last_states(void **state) {
  (void)state;
  enum { N = 3, K = 2 };
  static const int32_t at[] = {0, 2, 5};
  double x[5 * N], start[2 * N] = {0}, end[2 * N], dstart[K * 2 * N], dend[K * 2 * N], weight[N * N];
  for (int i = 0; i < 5 * N; i++) x[i] = 0.1 * i - 0.7;
  for (int i = 0; i < N * N; i++) weight[i] = 0.05 * (i % 5) - 0.1;
  for (int i = 0; i < K * 2 * N; i++) dstart[i] = i % 4 - 1.5;
  tarn__param param = {.name = "weight", .rows = N, .cols = N, .uses = 1, .dtype = TARN__F64, .value = weight};
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_reference, TARN__F64, false, 1);
  tarn__tensor *from = tarn__graph_external(&graph, TARN__F64, 2, N, start, "start");
  tarn__tensor *to = tarn__graph_external(&graph, TARN__F64, 2, N, end, "end");
  from->tangent = tarn__graph_external(&graph, TARN__F64, K * 2, N, dstart, "directions");
  to->tangent = tarn__graph_external(&graph, TARN__F64, K * 2, N, dend, "last directions");
  const tarn__recurrence_spec spec = {.cell = TARN__CELL_ECHO, .hidden = N, .directions = 1, .leak = 0.7};
  tarn__tensor *y = tarn__recurrence_carried(&graph, tarn__graph_external(&graph, TARN__F64, 5, N, x, "x"),
                                             tarn__graph_input(&graph, 3, at, "offsets"),
                                             (tarn__recurrent){.weight = &param}, spec, from, to);
  tarn__graph_push(&graph, K);
  y->tangent->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_alloc(graph.workspace_bytes, 1);
  tarn__graph_bind(&graph, workspace);
  check_ok(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}));
  for (int k = 0; k < K; k++)
    for (int s = 0; s < 2; s++)
      assert_memory_equal(dend + (k * 2 + s) * N, (double *)y->tangent->data + (k * 5 + at[s + 1] - 1) * N,
                          N * sizeof(double));
  tarn__free(workspace);
  tarn__graph_close(&graph);
}

// Words 0 .. 2, 3 .. 4 and 5 .. 6; the classes of two bands are the last rows of the first table.
static void build_bands(check *c, tarn__graph *graph, const void *spec) {
  static const int64_t rows[] = {5, 2, 2}, widths[] = {D, 3, 2};
  (void)spec;
  tarn__task_weights weights = {.output_bands = {.count = 3, .first = {0, 3, 5, 7}}};
  tarn__bands *bands = &weights.output_bands;
  for (int b = 0; b < 3; b++) {
    bands->table[b] = check_param(c, rows[b], widths[b], 0.7, true);
    if (b > 0) bands->projection[b] = check_param(c, widths[b], D, 0.7, true);
    bands->bias[b] = check_param(c, 1, rows[b], 0.5, true);
  }
  const tarn__head head = {.x = check_input(c, graph, ROWS, D, 1.0, true), .weights = &weights};
  tarn__tensor *targets = check_ints(c, graph, words, ROWS);
  check_output(c, tarn__bands_loss(graph, &head, targets, 1.0));
  check_output(c, tarn__bands_token_loss(graph, &head, targets));
  check_output(c, tarn__bands_log_probabilities(graph, &head));
}

// Vectors of bands, which move here.
static void build_band_rows(check *c, tarn__graph *graph, const void *spec) {
  static const int32_t to[] = {3, 0, 6, 5, 1, 2, 4};
  (void)spec;
  tarn__tensor *parts[3];
  for (int b = 0; b < 3; b++) parts[b] = check_input(c, graph, b == 1 ? 3 : 2, D, 1.0, true);
  check_output(c, tarn__adaptive_rows(graph, parts, 3, check_ints(c, graph, to, 7)));
}

static void outputs(void **state) {
  (void)state;
  static const double smoothing[] = {0.0, 0.3};
  for (size_t i = 0; i < 2; i++) prove_alone(build_output_loss, &smoothing[i], "output layer");
  prove_alone(build_squares, NULL, "squared error");
  prove_alone(build_bands, NULL, "bands of a vocabulary");
  prove(build_band_rows, NULL, "rows of bands");
}

// Every op of the reference has a rule that a test proves, or needs none. test_tangents.c proves those of the common
// ones.
static const struct {
  const char *why;
  int ops[40];  // up to the first 0 behind one
  int count;
} excepted[] = {
#define LIST(why, ...) \
  { why, {__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)) }
    LIST("test_tangents.c proves it", TARN__OP_ACTIVATION, TARN__OP_ADD, TARN__OP_ATTENTION, TARN__OP_DROPOUT,
         TARN__OP_GLU, TARN__OP_LINEAR, TARN__OP_NORM, TARN__OP_RESIDUAL_NORM, TARN__OP_SCALE),
    LIST("it reads integers and parameters, which do not move", TARN__OP_BIAS_TABLE, TARN__OP_EMBEDDING,
         TARN__OP_PIXELS),
    LIST("it is a tangent itself", TARN__OP_ACTIVATION_TANGENT, TARN__OP_ATTENTION_TANGENT,
         TARN__OP_DEPTHWISE_CONV_TANGENT, TARN__OP_FEATURE_MAP_TANGENT, TARN__OP_GATED_CONV_TANGENT,
         TARN__OP_GLU_TANGENT, TARN__OP_HALTING_TANGENT, TARN__OP_LINEAR_ATTENTION_TANGENT, TARN__OP_NORM_TANGENT,
         TARN__OP_OUTPUT_TANGENT, TARN__OP_PRODUCT_KEYS_TANGENT, TARN__OP_RECURRENCE_TANGENT,
         TARN__OP_RELATIVE_ATTENTION_TANGENT, TARN__OP_RESIDUAL_NORM_TANGENT, TARN__OP_ROUTE_TANGENT,
         TARN__OP_SYNTHESIS_TANGENT, TARN__OP_TANH_TANGENT, TARN__OP_TOKEN_LINEAR_TANGENT,
         TARN__OP_WEIGHTED_ROWS_TANGENT),
    LIST("it belongs to backward passes", TARN__OP_ATTENTION_BACKWARD, TARN__OP_BIAS_TABLE_BACKWARD,
         TARN__OP_CHANNEL_CONV_BACKWARD, TARN__OP_NEIGHBOURS_BACKWARD, TARN__OP_WIDEN_BACKWARD,
         TARN__OP_DEPTHWISE_CONV_BACKWARD, TARN__OP_DROPOUT_BACKWARD, TARN__OP_EMBEDDING_BACKWARD,
         TARN__OP_FEATURE_MAP_BACKWARD, TARN__OP_GATED_CONV_BACKWARD, TARN__OP_GATHER_ROWS_BACKWARD,
         TARN__OP_GLU_BACKWARD, TARN__OP_GROUPED_LINEAR_DWEIGHT, TARN__OP_GROUPED_LINEAR_DX, TARN__OP_HADAMARD_DX,
         TARN__OP_HALTING_BACKWARD, TARN__OP_LINEAR_ATTENTION_BACKWARD, TARN__OP_LINEAR_DWEIGHT, TARN__OP_LINEAR_DZ,
         TARN__OP_POOLING_BACKWARD, TARN__OP_PRODUCT_KEYS_BACKWARD, TARN__OP_RECURRENCE_BACKWARD,
         TARN__OP_RECURRENCE_DWEIGHT, TARN__OP_RELATIVE_ATTENTION_BACKWARD, TARN__OP_SWISH_BETA_BACKWARD,
         TARN__OP_RESIDUAL_BACKWARD, TARN__OP_RESIDUAL_NORM_BACKWARD, TARN__OP_ROTARY_BACKWARD, TARN__OP_ROUTE_BACKWARD,
         TARN__OP_SCALE_BACKWARD, TARN__OP_SELECT_ROWS_BACKWARD, TARN__OP_SENTENCE_MEAN_BACKWARD,
         TARN__OP_SENTENCE_OUTER_BACKWARD, TARN__OP_SENTENCE_PRODUCT_BACKWARD, TARN__OP_SYNTHESIS_BACKWARD,
         TARN__OP_TANH_BACKWARD, TARN__OP_TOKEN_LINEAR_DWEIGHT, TARN__OP_TOKEN_LINEAR_DX,
         TARN__OP_WEIGHTED_ROWS_BACKWARD),
    LIST("it belongs to training: what stands in for gradients, and updates", TARN__OP_DELETIONS, TARN__OP_MARK,
         TARN__OP_STAND_IN_ADD, TARN__OP_STAND_IN_COPY, TARN__OP_STAND_IN_MEASURE, TARN__OP_UPDATE),
    LIST("it belongs to decoding, token by token", TARN__OP_ADJUST_ROWS, TARN__OP_ATTENTION_ROWS, TARN__OP_BEST_ROWS,
         TARN__OP_PICK_ROWS, TARN__OP_CACHE_APPEND, TARN__OP_CHANNEL_CONV_ROWS, TARN__OP_DEPTHWISE_CONV_ROWS,
         TARN__OP_LINEAR_ATTENTION_ROWS, TARN__OP_OUTPUT_TOP, TARN__OP_SAMPLE, TARN__OP_POOLING_ROWS,
         TARN__OP_RECURRENCE_ROWS, TARN__OP_RELATIVE_ATTENTION_ROWS, TARN__OP_SYNTHESIS_ROWS,
         TARN__OP_TOKEN_LINEAR_ROWS),
    LIST("a mixture of softmaxes has no tangents: what moves is the stream below it", TARN__OP_OUTPUT_MIXTURE),
#undef LIST
};

static const char *reason(int op) {
  for (size_t i = 0; i < sizeof excepted / sizeof *excepted; i++)
    for (int k = 0; k < excepted[i].count; k++)
      if (excepted[i].ops[k] == op) return excepted[i].why;
  return NULL;
}

#define NAME(word) #word,
static void every_op(void **state) {
  (void)state;
  static const char *const names[] = {TARN__OP_LIST(NAME)};
  for (int op = 0; op < TARN__OPS; op++) {
    if (!tarn__device_reference.type->kernels[TARN__F64][op].run) continue;
    if (!proved[op] && !reason(op)) fail_msg("%s has no tangent rule that a test proves", names[op]);
    if (proved[op] && reason(op) && op != TARN__OP_LINEAR && !strstr(reason(op), "test_tangents.c"))
      fail_msg("%s has a rule; it is excepted because %s", names[op], reason(op));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(linear_ops),   cmocka_unit_test(sentence_products),  cmocka_unit_test(token_linear),
      cmocka_unit_test(convolutions), cmocka_unit_test(linear_attention),   cmocka_unit_test(synthesis),
      cmocka_unit_test(experts),      cmocka_unit_test(relative_attention), cmocka_unit_test(swish),
      cmocka_unit_test(halting),      cmocka_unit_test(recurrences),        cmocka_unit_test(entries),
      cmocka_unit_test(windows),      cmocka_unit_test(last_states),        cmocka_unit_test(outputs),
      cmocka_unit_test(every_op),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
