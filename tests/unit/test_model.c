// Parameters of a model: counts under sharing, initialisers, first values that depend on seed and name alone.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/threads.h"
#include "device/devices.h"
#include "init/orthogonal.h"
#include "model/first_rows.h"
#include "model/model.h"
#include "task/labelled.h"

enum { VOCAB = 10000, D = 512, FFN = 1024 };

static tarn_config *read_config(const char *encoder, int d_model) {
  char text[1024];
  const int ffn = 2 * d_model;
  snprintf(text, sizeof text,
           "model: {d_model: %d, embeddings: decoder}\n"
           "encoder: {layers: \"%s\"}\ndecoder: {layers: \"L*2\"}\n"
           "kinds:\n  L: {mixer: attention, heads: 4, ffn: %d}\n"
           "  R: {mixer: attention, heads: 4, ffn: %d, frozen: yes}\n"
           "  F: {mixer: none, ffn: %d, frozen: yes}\n"
           "  N: {mixer: attention, heads: 4, ffn: %d, frozen: yes, init: normal}\n",
           d_model, encoder, ffn, ffn, ffn, ffn);
  tarn_config *config = NULL;
  tarn_status status = tarn_config_parse(&config, "test", text, strlen(text), NULL, 0);
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return config;
}

static tarn__model_size measure(const char *encoder) {
  tarn_config *config = read_config(encoder, D);
  tarn__model *model;
  assert_int_equal(tarn__model_open(&model, config, VOCAB, VOCAB, TARN__BF16, true), TARN_STATUS_OK);
  tarn__model_size size;
  tarn__model_measure(model, &size);
  tarn__model_close(&model);
  tarn_config_close(&config);
  return size;
}

// A kind whose name begins like the sets of bare uses has sets of its own.
static void test_labels_tell_sets_from_kinds(void **state) {
  (void)state;
  static const char text[] =
      "model: {d_model: 8}\nencoder: {layers: layers layers1 layers1}\ndecoder: {layers: layers}\n"
      "kinds: {layers: {mixer: none, ffn: 8}}\n";
  static const char *const labels[] = {"encoder 1 layers", "encoder 2 layers1", "encoder 3 layers1"};
  tarn_config *config;
  tarn__model *model;
  if (tarn_config_parse(&config, "test", text, strlen(text), NULL, 0) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  assert_int_equal(tarn__model_open(&model, config, 10, 10, TARN__F32, false), TARN_STATUS_OK);
  for (int i = 0; i < 3; i++) assert_string_equal(model->encoder.layers[i].label, labels[i]);
  assert_string_equal(model->decoder.layers[0].label, "decoder 1 layers");
  tarn__model_close(&model);
  tarn_config_close(&config);
}

// The five models of the Light Reservoir Transformer, with one set a kind where layers are shared.
static void test_counts_of_model0_to_model4(void **state) {
  (void)state;
  const int64_t layer = 4 * (D * D + D) + (D * FFN + FFN) + (FFN * D + D) + 4 * D;
  tarn__model_size model0 = measure("L*8");
  tarn__model_size model1 = measure("R L*3 R L*3");
  tarn__model_size model2 = measure("(R L)*4");
  tarn__model_size model3 = measure("(R1 L)*4");
  tarn__model_size model4 = measure("(R1 L1)*4");
  tarn__model_size two_sets = measure("(R1 L1 R2 L2)*2");
  assert_int_equal(model0.frozen, 0);
  assert_int_equal(model1.frozen, 2 * layer);
  assert_int_equal(model2.frozen, 4 * layer);
  assert_int_equal(model2.trained + model2.frozen, model0.trained);
  assert_int_equal(model1.trained + model1.frozen, model0.trained);
  assert_int_equal(model3.trained + model3.frozen, model0.trained - 3 * layer);
  assert_int_equal(model4.trained + model4.frozen, model0.trained - 6 * layer);
  // The published counts fall by two layers a sharing step: two sets a kind.
  assert_int_equal(two_sets.trained + two_sets.frozen, model0.trained - 4 * layer);
  assert_int_equal(model4.shared_uses, 6 * layer + (int64_t)VOCAB * D);
  assert_int_equal(model4.shared_layers, 6 * layer);
  assert_int_equal(model0.shared_uses, (int64_t)VOCAB * D);
  assert_int_equal(model0.shared_layers, 0);
}

static void test_frozen_parameters_have_nothing_else(void **state) {
  (void)state;
  tarn_config *config = read_config("R F L", D);
  tarn__model *model;
  assert_int_equal(tarn__model_open(&model, config, 100, 100, TARN__BF16, true), TARN_STATUS_OK);
  assert_int_equal(tarn__model_allocate(model), TARN_STATUS_OK);
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    bool frozen = strstr(param->name, "encoder.layer1.") || strstr(param->name, "encoder.layer2.");
    assert_int_equal(param->trained, !frozen);
    assert_non_null(param->value);
    if (!frozen) continue;
    assert_null(param->training.grad);
    assert_null(param->training.master);
  }
  tarn__model_close(&model);
  tarn_config_close(&config);
}

static void check_orthonormal(int64_t rows, int64_t cols) {
  static float values[96 * 96];
  tarn__random random;
  tarn__random_init(&random, 3, 0);
  assert_int_equal(tarn__orthogonal(values, rows, cols, 1.0, &random), TARN_STATUS_OK);
  bool by_columns = rows > cols;
  int64_t n = by_columns ? cols : rows;
  int64_t length = by_columns ? rows : cols;
  for (int64_t a = 0; a < n; a++)
    for (int64_t b = 0; b <= a; b++) {
      double sum = 0.0;
      for (int64_t i = 0; i < length; i++) {
        double x = by_columns ? values[i * cols + a] : values[a * cols + i];
        double y = by_columns ? values[i * cols + b] : values[b * cols + i];
        sum += x * y;
      }
      assert_true(fabs(sum - (a == b)) < 1e-6);
    }
}

static void test_orthogonal(void **state) {
  (void)state;
  check_orthonormal(64, 64);
  check_orthonormal(96, 32);
  check_orthonormal(31, 77);
  check_orthonormal(1, 5);
  check_orthonormal(5, 1);
}

// The signs of the diagonal of R make Q uniform: the mean of the first element over many matrices is zero.
static void test_orthogonal_is_not_biased(void **state) {
  (void)state;
  double sum = 0.0;
  for (uint64_t seed = 0; seed < 400; seed++) {
    float values[16];
    tarn__random random;
    tarn__random_init(&random, seed, 0);
    assert_int_equal(tarn__orthogonal(values, 4, 4, 1.0, &random), TARN_STATUS_OK);
    sum += values[0];
  }
  assert_true(fabs(sum / 400) < 4 * 0.5 / 20);
}

static void hash_of(char text[TARN__HASH_TEXT], int d_model, uint64_t seed, int threads) {
  tarn_config *config = read_config("R F L", d_model);
  tarn__model *model;
  tarn__threads_set(threads);
  assert_int_equal(tarn__model_open(&model, config, 100, 100, TARN__F32, false), TARN_STATUS_OK);
  assert_int_equal(tarn__model_allocate(model), TARN_STATUS_OK);
  assert_int_equal(tarn__model_initialise(model, seed), TARN_STATUS_OK);
  tarn__model_size size;
  tarn__model_measure(model, &size);
  tarn__hash(text, model->storage[TARN__MEMORY_FROZEN], size.frozen_bytes);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

// A recipe in a checkpoint is worth something only if it gives the same bits for ever: these hashes may never change
// without a new name of the generator in the checkpoint format. Orthogonal matrices take the cube of the width, so
// under sanitizers only the narrow ones are made.
static void test_frozen_weights_are_a_function_of_the_seed(void **state) {
  (void)state;
  char one[TARN__HASH_TEXT], two[TARN__HASH_TEXT], other[TARN__HASH_TEXT];
  hash_of(one, 64, 1, 1);
  hash_of(two, 64, 1, 2);
  hash_of(other, 64, 2, 2);
  assert_string_equal(one, two);
  assert_string_not_equal(one, other);
  assert_string_equal(one, "b5a5e9f302fc738dc2eb753728065e82");
  if (getenv("TARN_SAMPLE")) return;
  hash_of(one, D, 1, 1);
  hash_of(two, D, 1, 2);
  assert_string_equal(one, two);
  assert_string_equal(one, "eedd3d28171e0ccd17be5bf1353f8b95");
}

static double deviation(const tarn__param *param) {
  const float *values = param->value;
  const int64_t n = param->rows * param->cols;
  double sum = 0.0, squares = 0.0;
  for (int64_t i = 0; i < n; i++) {
    sum += values[i];
    squares += (double)values[i] * values[i];
  }
  assert_true(fabs(sum / (double)n) < 5.0 * sqrt(squares / (double)n / (double)n));
  return sqrt(squares / (double)n);
}

// init: normal has Glorot's standard deviation, that of each of query, key and value with their gain of 1 / sqrt(2).
static void test_normal(void **state) {
  (void)state;
  tarn_config *config = read_config("N", D);
  tarn__model *model;
  int seen = 0;
  assert_int_equal(tarn__model_open(&model, config, 100, 100, TARN__F32, false), TARN_STATUS_OK);
  assert_int_equal(tarn__model_allocate(model), TARN_STATUS_OK);
  assert_int_equal(tarn__model_initialise(model, 1), TARN_STATUS_OK);
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const double d = (double)config->model.d_model;
    double wanted = 0.0;
    if (strcmp(param->name, "encoder.layer1.ffn.in.weight") == 0) wanted = sqrt(2.0 / (d + 1024.0));
    if (strcmp(param->name, "encoder.layer1.self_attn.qkv.weight") == 0) wanted = sqrt(0.5 * 2.0 / (d + d));
    if (wanted == 0.0) continue;
    seen++;
    assert_true(fabs(deviation(param) / wanted - 1.0) < 0.02);
  }
  assert_int_equal(seen, 2);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

// A classifier of a few packed sentences.
enum { SENTENCES = 4, ROWS = 15, WORDS = 12, MOST = 4096 };
static const int32_t offsets[SENTENCES + 1] = {0, 5, 6, 13, 15};

#define CLASSIFIER "task: classification, d_model: 8, dropout: 0, max_length: 16"
#define HEAD "\nhead: { pool: cls, labels: \"a|b|c\" }\nkinds:\n"

static tarn_config *described;  // of the model that is open

// Reads a description whose sections are these; all parameters are drawn, so that none is 0.
static tarn__model *open_classifier(const char *keys, const char *stack, const char *head, const char *kind) {
  char text[1024];
  static float values[MOST];
  tarn__model *model;
  tarn__random random;
  snprintf(text, sizeof text, "model: { %s, %s }\nencoder: { %s }%s  L: { heads: 4, ffn: 16 }\n  K: { %s }\n",
           CLASSIFIER, keys, stack, head, kind);
  if (tarn_config_parse(&described, "test", text, strlen(text), NULL, 0) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  assert_int_equal(tarn__model_open(&model, described, WORDS, WORDS, TARN__F64, true), TARN_STATUS_OK);
  model->device = &tarn__device_reference;
  assert_int_equal(tarn__model_allocate(model), TARN_STATUS_OK);
  tarn__random_init(&random, 5, 0);
  for (size_t i = 0; i < model->param_count; i++) {
    const int64_t count = model->params[i]->rows * model->params[i]->cols;
    assert_true(count <= MOST);
    for (int64_t k = 0; k < count; k++) values[k] = (float)tarn__random_uniform(&random) - 0.4f;
    assert_int_equal(tarn__param_set(model->params[i], values), TARN_STATUS_OK);
  }
  return model;
}

static void close_classifier(tarn__model *model) {
  tarn__model_close(&model);
  tarn_config_close(&described);
}

static const tarn__batch *sentences_of(const tarn_config *config) {
  static int32_t ids[ROWS], positions[ROWS], selected[SENTENCES];
  static const int32_t labels[SENTENCES] = {2, 0, 1, 1};
  static tarn__batch batch;
  for (int i = 0; i < ROWS; i++) ids[i] = (i * 7 + 3) % WORDS;
  tarn__packed_positions(positions, offsets, SENTENCES);
  tarn__pooled_rows(selected, offsets, SENTENCES, config->head.pool);
  batch = (tarn__batch){
      .source = {.sentences = SENTENCES},
      .target =
          {.sentences = SENTENCES, .rows = ROWS, .longest = 7, .ids = ids, .positions = positions, .offsets = offsets},
      .predictions = SENTENCES,
      .selected = selected,
      .targets = labels};
  return &batch;
}

// The loss and all gradients of a step, which go to `out`; `whole`: the last layer is computed for all rows. Returns
// for how many the last attention was.
static int64_t run_classifier(const tarn__model *model, bool whole, double *out) {
  tarn__graph graph = {0};
  tarn__tensor *stacks[TARN__STACKS] = {NULL};
  const tarn__model_shortcuts cuts = {.stacks = whole ? stacks : NULL};
  void *workspace, *read;
  tarn__host_room room = {0};
  int64_t rows = 0;
  for (size_t i = 0; i < model->param_count; i++) model->params[i]->training.grad_written = false;
  tarn__graph_begin(&graph, model->device, TARN__F64, true, 1);
  tarn__tensor *loss =
      tarn__model_build_loss(model, &graph, sentences_of(model->config), &cuts, 0.1, 1.0 / SENTENCES, NULL);
  for (size_t i = 0; i < graph.node_count; i++)
    if (strcmp(graph.nodes[i]->op->name, "attention") == 0) rows = graph.nodes[i]->out[0]->rows;
  tarn__graph_differentiate(&graph, loss);
  if (tarn__graph_plan(&graph) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_int_equal(tarn__device_allocate(model->device, &workspace, TARN__MEMORY_ACTIVATION, graph.workspace_bytes, 1),
                   TARN_STATUS_OK);
  tarn__graph_bind(&graph, workspace);
  assert_int_equal(tarn__graph_run(&graph, &(tarn__exec){.threads = 1, .seed = 1, .step = 1}), TARN_STATUS_OK);
  assert_int_equal(tarn__graph_read(&graph, &read, loss, &room), TARN_STATUS_OK);
  *out++ = *(const double *)read;
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const size_t count = (size_t)(param->rows * param->cols);
    if (!param->trained) continue;
    assert_int_equal(tarn__device_read(model->device, &read, param->training.grad, count * sizeof(double), &room),
                     TARN_STATUS_OK);
    memcpy(out, read, count * sizeof(double));
    out += count;
  }
  tarn__host_room_close(&room);
  tarn__graph_close(&graph);
  tarn__device_free(model->device, workspace);
  return rows;
}

// The last layer of a classifier that reads first rows computes these alone (model/first_rows.h), and what comes out
// is the same.
static void test_first_rows_are_enough(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"norm: post", "heads: 4, ffn: 16"},
      {"norm: pre", "heads: 4, ffn: 16"},
      {"norm: pre, positions: rotary", "heads: 4, ffn: 16"},
      {"norm: post, positions: learned", "heads: 4, kv_heads: 2, ffn: 16"},
      {"norm: pre, positions: rotary", "heads: 4, kv_heads: 1, ffn: { type: swiglu, width: 12 }"},
      {"norm: b2t", "heads: 4, ffn: 16"},
      {"norm: deepnorm", "heads: 4, ffn: 16"},
      {"norm: fixup", "heads: 4, ffn: 16"},
      {"norm: pre", "heads: 4, ffn: 16, gate: scalar, gate_init: 0.7"},
      {"norm: none", "heads: 4, ffn: 0, residual: no"},
      {"norm: none", "heads: 4, ffn: 16"},
  };
  static double few[4 * MOST], all[4 * MOST];
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    size_t numbers = 1;
    double worst = 0.0, largest = 0.0;
    tarn__model *model = open_classifier(cases[c][0], "layers: L K", HEAD, cases[c][1]);
    for (size_t i = 0; i < model->param_count; i++)
      numbers += (size_t)(model->params[i]->rows * model->params[i]->cols);
    assert_true(numbers <= sizeof few / sizeof *few);
    assert_int_equal(run_classifier(model, false, few), SENTENCES);
    assert_int_equal(run_classifier(model, true, all), ROWS);
    for (size_t i = 0; i < numbers; i++) {
      worst = fmax(worst, fabs(few[i] - all[i]));
      largest = fmax(largest, fabs(all[i]));
    }
    if (!(worst <= 1e-12 * largest)) fail_msg("%s, %s: off by %g", cases[c][0], cases[c][1], worst);
    close_classifier(model);
  }
}

static bool reads_first_rows(const tarn__model *model, tarn__model_shortcuts cuts) {
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, model->device, TARN__F64, true, 1);
  tarn__first_rows_read(model, &graph, sentences_of(model->config), &cuts);
  assert_int_equal(graph.status, TARN_STATUS_OK);
  tarn__graph_close(&graph);
  return cuts.read_rows != NULL;
}

// Where other rows of the last layer are wanted, or its rows depend on each other, all are computed.
static void test_first_rows_are_not_enough(void **state) {
  (void)state;
  static const struct {
    const char *keys, *stack, *head, *kind;
  } cases[] = {
      {"positions: alibi", "layers: L K", HEAD, "heads: 4, ffn: 16"},
      {"positions: t5", "layers: L K", HEAD, "heads: 4, ffn: 16"},
      {"positions: shaw", "layers: L K", HEAD, "heads: 4, ffn: 16"},
      {"norm: post", "layers: L K", "\nhead: { pool: mean, labels: \"a|b|c\" }\nkinds:\n", "heads: 4, ffn: 16"},
      {"norm: post", "layers: L K", HEAD, "mixer: fnet, ffn: 16"},
      {"norm: post", "layers: L K", HEAD, "heads: 4, ffn: { type: switch, width: 8, experts: 2 }"},
      {"norm: post", "layers: L K", HEAD, "heads: 4, ffn: 16, frozen: yes, backskip: { method: identity }"},
      {"norm: post", "layers: L K, pool_after: [1]", HEAD, "heads: 4, ffn: 16"},
      {"norm: post", "layers: K1*3, act_threshold: 0.9", HEAD, "heads: 4, ffn: 16"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tarn__model *model = open_classifier(cases[c].keys, cases[c].stack, cases[c].head, cases[c].kind);
    if (reads_first_rows(model, (tarn__model_shortcuts){0})) fail_msg("%s, %s", cases[c].keys, cases[c].kind);
    close_classifier(model);
  }
  tarn__model *model = open_classifier("norm: post", "layers: L K", HEAD, "heads: 4, ffn: 16");
  tarn__tensor *outputs[8] = {NULL};
  tarn__shows shows[8] = {0};
  static const bool lower[] = {true, false}, last[] = {false, true};
  assert_true(reads_first_rows(model, (tarn__model_shortcuts){0}));
  assert_true(reads_first_rows(model, (tarn__model_shortcuts){.skip = {[TARN__STACK_ENCODER] = lower}}));
  assert_false(reads_first_rows(model, (tarn__model_shortcuts){.skip = {[TARN__STACK_ENCODER] = last}}));
  assert_false(reads_first_rows(model, (tarn__model_shortcuts){.stacks = outputs}));
  assert_false(reads_first_rows(model, (tarn__model_shortcuts){.outputs = outputs}));
  assert_false(reads_first_rows(model, (tarn__model_shortcuts){.shows = {[TARN__STACK_ENCODER] = shows}}));
  close_classifier(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_labels_tell_sets_from_kinds),
      cmocka_unit_test(test_counts_of_model0_to_model4),
      cmocka_unit_test(test_frozen_parameters_have_nothing_else),
      cmocka_unit_test(test_orthogonal),
      cmocka_unit_test(test_normal),
      cmocka_unit_test(test_orthogonal_is_not_biased),
      cmocka_unit_test(test_frozen_weights_are_a_function_of_the_seed),
      cmocka_unit_test(test_first_rows_are_enough),
      cmocka_unit_test(test_first_rows_are_not_enough),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
