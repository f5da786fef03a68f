// The memory planner: lifetimes that overlap get disjoint bytes, others may share, in place where an op allows it. And
// the sizes that plans of training and translation are made for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "decode/translate.h"
#include "device/devices.h"
#include "graph/graph.h"
#include "model/plan.h"

// An op of the forward pass through which no gradient could flow must not cut the path to what learns in silence.
static void test_an_op_without_gradient_fails_in_training(void **state) {
  (void)state;
  static const tarn__op blind = {.id = TARN__OP_MARK, .name = "blind"};
  tarn__param weight = {.name = "w", .rows = 4, .cols = 32, .dtype = TARN__F32, .trained = true, .uses = 1};
  for (int training = 0; training < 2; training++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, training, 1);
    tarn__node *node = tarn__graph_node(&graph, &blind, 0);
    node->in[0] = tarn__graph_param(&graph, &weight);
    node->out[0] = tarn__graph_tensor(&graph, TARN__F32, 4, 32, "t");
    tarn__graph_emit(&graph, node);
    assert_int_equal(tarn__graph_plan(&graph), training ? TARN_STATUS_INTERNAL : TARN_STATUS_OK);
    if (training)
      assert_string_equal(tarn_error_message(), "op blind has no gradient rule, but its input needs a gradient");
    tarn__graph_close(&graph);
  }
}

static const tarn__op plain = {.id = TARN__OP_MARK, .name = "plain"};
static const tarn__op in_place = {
    .id = TARN__OP_MARK, .name = "in place", .in_place = true, .inplace_out = 0, .inplace_in = 0};

static tarn__tensor *step(tarn__graph *graph, const tarn__op *op, tarn__tensor *a, tarn__tensor *b, int64_t rows) {
  tarn__node *node = tarn__graph_node(graph, op, 0);
  node->in[0] = a;
  node->in[1] = b;
  node->out[0] = tarn__graph_tensor(graph, TARN__F32, rows, 32, "t");
  tarn__graph_emit(graph, node);
  return node->out[0];
}

static void test_chain_needs_two_buffers(void **state) {
  (void)state;
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
  tarn__tensor *t = NULL;
  for (int i = 0; i < 10; i++) t = step(&graph, &plain, t, NULL, 64);
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
  assert_int_equal(graph.activation_bytes, 2 * 64 * 32 * 4);
  tarn__graph_close(&graph);
}

static void test_in_place_needs_one(void **state) {
  (void)state;
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
  tarn__tensor *t = NULL;
  for (int i = 0; i < 10; i++) t = step(&graph, &in_place, t, NULL, 64);
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
  assert_int_equal(graph.activation_bytes, 64 * 32 * 4);
  tarn__graph_close(&graph);
}

static void test_in_place_spares_what_is_read_later(void **state) {
  (void)state;
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
  tarn__tensor *a = step(&graph, &plain, NULL, NULL, 64);
  tarn__tensor *b = step(&graph, &in_place, a, NULL, 64);
  tarn__tensor *c = step(&graph, &plain, b, a, 64);
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
  assert_ptr_not_equal(tarn__tensor_owner(a), tarn__tensor_owner(b));
  assert_ptr_not_equal(tarn__tensor_owner(c), tarn__tensor_owner(a));
  assert_int_equal(graph.activation_bytes, 3 * 64 * 32 * 4);
  tarn__graph_close(&graph);
}

static bool joins_in_place(const tarn__node *node, const tarn__node *other, bool before) {
  (void)node;
  return before && other->op == &in_place;
}

// A node does the work of the one before it, unless memory of that one ends before its own, or it does others' work.
static void test_joined_nodes_live_together(void **state) {
  (void)state;
  tarn__device_type type = *tarn__device_cpu.type;
  type.joins = joins_in_place;
  tarn__device device = tarn__device_cpu;
  device.type = &type;
  for (int reads = 0; reads < 2; reads++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &device, TARN__F32, false, 1);
    tarn__tensor *other = step(&graph, &plain, NULL, NULL, 64), *t = step(&graph, &plain, NULL, NULL, 64);
    t = step(&graph, &in_place, t, reads ? other : NULL, 64);
    t = step(&graph, &plain, t, NULL, 32);
    t = step(&graph, &in_place, t, NULL, 32);
    t = step(&graph, &in_place, t, NULL, 32);
    step(&graph, &plain, t, NULL, 8);
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
    assert_ptr_equal(graph.nodes[3]->joined[0], reads ? NULL : graph.nodes[2]);
    assert_int_equal(graph.nodes[2]->joins, !reads);
    assert_ptr_equal(graph.nodes[5]->joined[0], graph.nodes[4]);
    assert_null(graph.nodes[6]->joined[0]);
    assert_false(graph.nodes[5]->joins);
    tarn__graph_close(&graph);
  }
}

static void test_kept_tensors_survive(void **state) {
  (void)state;
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
  tarn__tensor *kept = step(&graph, &plain, NULL, NULL, 64);
  kept->keep = true;
  for (int i = 0; i < 5; i++) step(&graph, &plain, NULL, NULL, 64);
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
  assert_int_equal(graph.activation_bytes, 2 * 64 * 32 * 4);
  tarn__graph_close(&graph);
}

static size_t index_of(const tarn__graph *graph, const tarn__node *node) {
  size_t n = 0;
  while (graph->nodes[n] != node) n++;
  return n;
}

// `late` lies in the memory of `early`: the node that writes it reads `early` through the input that it may overwrite
// alone, and no node reads `early` after it.
static void assert_overwritten_after_use(const tarn__graph *graph, const tarn__tensor *early,
                                         const tarn__tensor *late) {
  const size_t written = index_of(graph, late->source);
  const tarn__op *op = late->source->op;
  assert_true(op->in_place && early->rows == late->rows && early->cols == late->cols);
  for (size_t n = written; n < graph->node_count; n++)
    for (int k = 0; k < TARN__MAX_INPUTS; k++)
      if (graph->nodes[n]->in[k] == early) assert_true(n == written && k == op->inplace_in);
}

// Random graphs: no two tensors that live at the same time overlap in bytes, and none that took over the memory of
// another does so before that one was read for the last time.
static void test_random_graphs_never_overlap(void **state) {
  (void)state;
  int shared = 0;
  tarn__graph graph = {0};
  tarn__random random;
  tarn__random_init(&random, 7, 0);
  for (int round = 0; round < 50; round++) {
    tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
    tarn__tensor *all[60];
    for (int i = 0; i < 60; i++) {
      tarn__tensor *a = i ? all[tarn__random_below(&random, (uint64_t)i)] : NULL;
      tarn__tensor *b = i ? all[tarn__random_below(&random, (uint64_t)i)] : NULL;
      int64_t rows = a ? a->rows : 1 + (int64_t)tarn__random_below(&random, 200);
      if (tarn__random_below(&random, 3) == 0) rows = 1 + (int64_t)tarn__random_below(&random, 200);
      all[i] = step(&graph, tarn__random_below(&random, 2) ? &in_place : &plain, a, b, rows);
    }
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
    for (int i = 0; i < 60; i++)
      for (int j = 0; j < i; j++) {
        tarn__tensor *x = tarn__tensor_owner(all[i]);
        tarn__tensor *y = tarn__tensor_owner(all[j]);
        if (x == y) {
          assert_overwritten_after_use(&graph, all[j], all[i]);
          shared++;
        }
        if (x == y || x->first > y->last || y->first > x->last) continue;
        assert_true(x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset);
      }
  }
  assert_true(shared > 100);
  tarn__graph_close(&graph);
}

static void test_failures_of_building_are_reported_by_plan(void **state) {
  (void)state;
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
  step(&graph, &plain, NULL, NULL, -5);
  step(&graph, &plain, NULL, NULL, 5);
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
  tarn__graph_close(&graph);
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F64, false, 1);
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_UNSUPPORTED);
  tarn__graph_close(&graph);
}

static tarn__model *open_linformer(tarn_config **config) {
  static const char text[] =
      "model: { d_model: 64, max_length: 64 }\nencoder: { layers: L }\ndecoder: { layers: D }\n"
      "kinds:\n  L: { mixer: linformer, heads: 2, ffn: 64 }\n  D: { mixer: attention, heads: 2, ffn: 64 }\n";
  tarn__model *model;
  assert_int_equal(tarn_config_parse(config, "test", text, strlen(text), NULL, 0), TARN_STATUS_OK);
  assert_int_equal(tarn__model_open(&model, *config, 37, 83, TARN__F32, true), TARN_STATUS_OK);
  return model;
}

// The sources decoded together share a budget of tokens, so that more sentences than fit take no more memory.
static void test_planned_budget(void **state) {
  (void)state;
  tarn_config *config;
  tarn__model *model = open_linformer(&config);
  size_t fit, fewer, many;
  tarn__translator_options options;
  tarn__translator_default(&options);
  options.threads = options.beam = 1;
  options.max_tokens = 64;
  assert_int_equal(tarn__translator_plan(&fewer, model, &options, 10.0, 3), TARN_STATUS_OK);
  assert_int_equal(tarn__translator_plan(&fit, model, &options, 10.0, 6), TARN_STATUS_OK);
  assert_int_equal(tarn__translator_plan(&many, model, &options, 10.0, 1000), TARN_STATUS_OK);
  assert_true(fewer < fit);
  assert_int_equal(fit, many);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

// A step has no more sentences than rows, whatever the data would allow.
static void test_planned_sentences(void **state) {
  (void)state;
  const int64_t sentences[] = {1, 8, 16, 1000};
  size_t bytes[4];
  tarn_config *config;
  tarn__model *model = open_linformer(&config);
  for (int i = 0; i < 4; i++) {
    tarn_plan plan;
    const tarn__plan_batch batch = {.source_rows = 64,
                                    .target_rows = 16,
                                    .source_length = 64,
                                    .target_length = 16,
                                    .longest_source = 64,
                                    .longest_target = 16,
                                    .sentences = sentences[i]};
    assert_int_equal(tarn__plan_model(&plan, model, &batch, 1), TARN_STATUS_OK);
    bytes[i] = plan.activation_bytes;
    tarn_plan_close(&plan);
  }
  assert_true(bytes[0] < bytes[1] && bytes[1] < bytes[2]);
  assert_int_equal(bytes[2], bytes[3]);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_op_without_gradient_fails_in_training),
      cmocka_unit_test(test_chain_needs_two_buffers),
      cmocka_unit_test(test_in_place_needs_one),
      cmocka_unit_test(test_in_place_spares_what_is_read_later),
      cmocka_unit_test(test_joined_nodes_live_together),
      cmocka_unit_test(test_kept_tensors_survive),
      cmocka_unit_test(test_random_graphs_never_overlap),
      cmocka_unit_test(test_failures_of_building_are_reported_by_plan),
      cmocka_unit_test(test_planned_budget),
      cmocka_unit_test(test_planned_sentences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
