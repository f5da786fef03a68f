// Echo state networks at scale: matrices that are stored as their entries train, load and export as dense ones do; tens
// of thousands of units take the memory of their entries; leak rates by unit; refusals.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/hash.h"
#include "config_text.h"
#include "device/devices.h"
#include "graph/entries.h"
#include "same_run.h"
#include "store/checkpoint_keys.h"

// The output layer and W_out are trained, W_in and W_rec are not; the input of the second layer is.
static const char config_text[] =
    "model: { d_model: 16, dropout: 0, embedding_dropout: 0.1, positions: none, embeddings: none,\n"
    "         frozen_embeddings: decoder, output_bias: yes }\n"
    "decoder: { layers: E*2 }\n"
    "kinds:\n"
    "  E: { mixer: esn, hidden: 64, sparsity: 0.9, frozen_input: yes, leak_rate_min: 0.2, nonlinearity: tanh, ffn: 0 "
    "}\n"
    "data: { vocab: vocab, train: text, valid: valid_text }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 400, max_sentences: 9, log_every: 2, save_every: 5,\n"
    "         keep_last: 2, average: 2, threads: 2 }\n"
    "valid: { every: 4 }\n";

static const char RECURRENT[] = "decoder.layer1.esn.recurrent.weight", INPUT[] = "decoder.layer1.esn.in.weight";

static int open_all(void **state) { return tiny_open_text(state, config_text); }

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static tarn__model *open_model(const char *const *overrides, size_t count, tarn__dtype dtype, tarn_config **config) {
  tarn__model *model = NULL;
  must(tarn_config_parse(config, "esn", config_text, strlen(config_text), overrides, count));
  must(tarn__model_open(&model, *config, TINY_VOCAB, TINY_VOCAB, dtype, true));
  must(tarn__model_allocate(model));
  must(tarn__model_initialise(model, 3));
  return model;
}

static tarn__param *find(const tarn__model *model, const char *name) {
  for (size_t i = 0; i < model->param_count; i++)
    if (strcmp(model->params[i]->name, name) == 0) return model->params[i];
  fail_msg("there is no %s", name);
  return NULL;
}

// Training has the same bits, and the checkpoint of one is that of the other; so has a run that is cut into pieces.
static void entries_train_as_dense_matrices(void **state) {
  (void)state;
  for (int bf16 = 0; bf16 < 2; bf16++) {
    const char *dense[] = {"kinds.E.storage=dense", bf16 ? "train.precision=bf16" : "train.precision=fp32"};
    const char *entries[] = {"kinds.E.storage=entries", dense[1]};
    run_through(bf16 ? "dense16" : "dense", dense, 2);
    run_through(bf16 ? "entries16" : "entries", entries, 2);
    assert_same_tensors(bf16 ? "dense16" : "dense", bf16 ? "entries16" : "entries", TARN__CHECKPOINT_LAST);
  }
  static const char *const sparse[] = {"kinds.E.storage=entries", "kinds.E.input_sparsity=0.7"};
  run_through("whole", sparse, 2);
  run_in_pieces("pieces", 5, sparse, 2);
  assert_same_run("whole", "pieces");
  tarn__checkpoint *a, *b;
  must(tarn__checkpoint_open(&a, "dense", TARN__F32));
  must(tarn__checkpoint_open(&b, "entries", TARN__F32));
  const tarn__param *x = find(a->model, RECURRENT), *y = find(b->model, RECURRENT);
  static float expanded[64 * 64];
  assert_int_equal(x->entries, 0);
  assert_true(y->entries > 0);
  assert_string_equal(x->hash, y->hash);
  must(tarn__param_get(y, expanded));
  assert_memory_equal(x->value, expanded, sizeof expanded);
  tarn__checkpoint_close(&a);
  tarn__checkpoint_close(&b);
}

// A dense export of either is the same file of weights, and loads into entries again, piece by piece.
static void dense_values_become_entries_again(void **state) {
  (void)state;
  static const char *const keys[] = {"kinds.E.storage=entries", "kinds.E.input_sparsity=0.7"};
  tarn_config *config;
  for (int bf16 = 0; bf16 < 2; bf16++) {
    tarn__model *model = open_model(keys, 2, bf16 ? TARN__BF16 : TARN__F32, &config);
    const char *const names[] = {RECURRENT, INPUT};
    for (int i = 0; i < 2; i++) {
      tarn__param *param = find(model, names[i]);
      const size_t count = (size_t)(param->rows * param->cols), bytes = tarn__param_value_bytes(param);
      float *values = test_malloc(count * sizeof *values);
      void *before = test_malloc(bytes);
      must(tarn__param_get(param, values));
      memcpy(before, param->value, bytes);
      for (size_t done = 0; done < count; done += 100)
        must(tarn__param_set_part(param, done, values + done, count - done < 100 ? count - done : 100));
      assert_memory_equal(before, param->value, bytes);
      size_t zeros = 0;
      for (size_t k = 0; k < count; k++) zeros += values[k] == 0.0f;
      const double share = (double)zeros / (double)count, expected = i == 0 ? 0.9 : 0.7;
      assert_true(fabs(share - expected) < 0.05);
      for (size_t k = 0; k < count; k++) values[k] = 1.0f;
      assert_int_equal(tarn__param_set_part(param, 0, values, count), TARN_STATUS_DATA);
      assert_non_null(strstr(tarn_error_message(), "more entries"));
      test_free(values);
      test_free(before);
    }
    tarn__model_close(&model);
    tarn_config_close(&config);
  }
}

static void leaks_are_drawn_between_bounds(void **state) {
  (void)state;
  static const char *const keys[] = {"kinds.E.leak_rate=0.6", "kinds.E.hidden=2000"};
  tarn_config *config;
  tarn__model *model = open_model(keys, 2, TARN__F32, &config);
  const tarn__param *leaks = find(model, "decoder.layer1.esn.leak_rate");
  assert_false(leaks->trained);
  float least = 1, most = 0, sum = 0;
  for (int i = 0; i < 2000; i++) {
    const float leak = ((const float *)leaks->value)[i];
    least = fminf(least, leak);
    most = fmaxf(most, leak);
    sum += leak;
  }
  assert_true(least >= 0.2f && least < 0.205f && most <= 0.6f && most > 0.595f && fabsf(sum / 2000 - 0.4f) < 0.02f);
  // Of another layer they are others.
  assert_true(memcmp(leaks->value, find(model, "decoder.layer2.esn.leak_rate")->value, 64) != 0);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

// How a matrix is stored changes what it takes, not how many parameters there are.
static void storage_changes_no_number_of_parameters(void **state) {
  (void)state;
  tarn__model_size sizes[2];
  for (int i = 0; i < 2; i++) {
    const char *const keys[] = {i ? "kinds.E.storage=entries" : "kinds.E.storage=dense", "kinds.E.input_sparsity=0.7"};
    tarn_config *config;
    tarn__model *model = open_model(keys, 2, TARN__F32, &config);
    tarn__model_measure(model, &sizes[i]);
    tarn__model_close(&model);
    tarn_config_close(&config);
  }
  assert_int_equal(sizes[0].frozen, sizes[1].frozen);
  assert_int_equal(sizes[0].trained, sizes[1].trained);
  assert_true(sizes[1].frozen_bytes < sizes[0].frozen_bytes);
}

static size_t memory_peak(void) {
  size_t sum = 0;
  for (int kind = 0; kind < TARN__MEMORY_KINDS; kind++) sum += tarn__memory_peak((tarn__memory_kind)kind);
  return sum;
}

// A step of 32,768 units forward and back. As dense values W_rec alone would take four gigabytes.
static void many_units_take_the_memory_of_their_entries(void **state) {
  (void)state;
  static const char *const keys[] = {
      "kinds.E={mixer: esn, hidden: 32768, topology: ring, input_sparsity: 0.9, frozen_input: yes, ffn: 0}",
      "decoder.layers=E"};
  static const int32_t ids[] = {2, 5, 6, 2, 7}, targets[] = {5, 6, 2, 7, 2}, offsets[] = {0, 3, 5}, positions[5] = {0};
  const tarn__packed text = {
      .sentences = 2, .rows = 5, .longest = 3, .ids = ids, .positions = positions, .offsets = offsets};
  tarn_config *config;
  tarn__model *model = open_model(keys, 2, TARN__BF16, &config);
  const tarn__param *w = find(model, RECURRENT), *in = find(model, INPUT);
  assert_int_equal(w->entries, 32768);
  const size_t starts = 32769 * 4 + 60, room = (size_t)in->entries;  // 60: up to a multiple of 64
  assert_int_equal(tarn__param_value_bytes(w), starts + 32768 * 8);
  assert_int_equal(tarn__param_value_bytes(in), starts + ((room * 4 + 63) & ~(size_t)63) + room * 4);
  assert_true(fabs((double)room / (0.1 * 32768 * 16) - 1) < 0.1);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__BF16, true, 2);
  tarn__tensor *loss = tarn__model_build_loss(
      model, &graph, &(tarn__batch){.target = text, .predictions = text.rows, .targets = targets}, NULL, 0.0, 1.0,
      NULL);
  tarn__graph_differentiate(&graph, loss);
  must(tarn__graph_plan(&graph));
  void *workspace;
  must(tarn__alloc(&workspace, TARN__MEMORY_WORKSPACE, graph.workspace_bytes, 1));
  tarn__graph_bind(&graph, workspace);
  must(tarn__graph_run(&graph, &(tarn__exec){.threads = 2, .seed = 1, .step = 1}));
  const float *grad = find(model, "decoder.layer1.esn.out.weight")->training.grad;
  double squares = 0;
  for (int i = 0; i < 16 * 32768; i++) squares += (double)grad[i] * (double)grad[i];
  assert_true(isfinite(squares) && squares > 0);
  if (memory_peak() > (size_t)64 << 20) fail_msg("%zu bytes of memory", memory_peak());
  tarn__free(workspace);
  tarn__graph_close(&graph);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

static void bad_keys_are_refused(void **state) {
  (void)state;
  static const refused_key cases[] = {
      {"kinds.E.leak_rate_min=0.9", "kinds.E.leak_rate_min: 0.9 is not below leak_rate 0.8"},
      {"kinds.E.leak_rate_min=-1", "kinds.E.leak_rate_min: -1 is out of range (0 <= x < 1)"},
      {"kinds.E.leak_rate_max=0.5", "did you mean \"leak_rate\""},
      {"kinds.E.input_sparsity=1", "kinds.E.input_sparsity: 1 is out of range (0 <= x < 1)"},
      {"kinds.E.input_sparsity=0.9999", "kinds.E.input_sparsity: 0.9999 of 64 x 16 entries leaves none"},
      {"kinds.E={mixer: esn, input: direct, input_sparsity: 0.5}",
       "kinds.E.input_sparsity: with input: direct the layer has no W_in"},
      {"kinds.E={mixer: esn, frozen: yes, init: hadamard, input_sparsity: 0.5}",
       "kinds.E.input_sparsity: a frozen W_in of init hadamard has no entries"},
      {"kinds.E.storage=sparse", "kinds.E.storage: \"sparse\" is not one of auto, dense, entries"},
      {"kinds.E={mixer: esn, hidden: 65536, sparsity: 0.3, storage: entries}",
       "kinds.E.storage: W_rec may have up to 3006"},
      {"kinds.E={mixer: gru, storage: entries}", "kinds.E.storage: a layer with mixer gru has no storage"},
  };
  expect_refused_keys(config_text, cases, sizeof cases / sizeof *cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(many_units_take_the_memory_of_their_entries, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(entries_train_as_dense_matrices, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(dense_values_become_entries_again, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(leaks_are_drawn_between_bounds, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(storage_changes_no_number_of_parameters, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(bad_keys_are_refused, open_all, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
