// Echo state networks as language models: resume, what a checkpoint holds of a reservoir, no way back through time
// where nothing below is trained, an end with a clear line when the states explode, and refusals.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "base/hash.h"
#include "config_text.h"
#include "device/devices.h"
#include "same_run.h"
#include "store/checkpoint_keys.h"
#include "store/recipe.h"

static const char config_text[] =
    "model: { d_model: 16, dropout: 0, embedding_dropout: 0.1, positions: none, embeddings: none,\n"
    "         frozen_embeddings: decoder, embedding_std: 1, embedding_scale: no, output_bias: yes }\n"
    "decoder: { layers: E*2 }\n"
    "kinds:\n"
    "  E: { mixer: esn, input: direct, residual: no, frozen: yes }\n"
    "data: { vocab: vocab, train: text, valid: valid_text }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 400, max_sentences: 9, log_every: 2, save_every: 5,\n"
    "         keep_last: 2, average: 2, threads: 2, clip_norm: 1 }\n"
    "valid: { every: 4 }\n";

static const char RECURRENT[] = "decoder.layer1.esn.recurrent.weight";

static int open_all(void **state) { return tiny_open_text(state, config_text); }

static void pieces_give_the_bits_of_the_whole(void **state) {
  (void)state;
  static const char *const esn_i[] = {"model.frozen_embeddings=none", "train.precision=bf16"};
  run_through("whole", NULL, 0);
  run_in_pieces("pieces", 5, NULL, 0);
  assert_same_run("whole", "pieces");
  run_through("whole_i", esn_i, 2);
  run_in_pieces("pieces_i", 5, esn_i, 2);
  assert_same_run("whole_i", "pieces_i");
}

static tarn__model *open_model(const char *const *overrides, size_t count, tarn_config **config) {
  tarn__model *model = NULL;
  tarn_status status = tarn_config_parse(config, "esn", config_text, strlen(config_text), overrides, count);
  if (status == TARN_STATUS_OK) status = tarn__model_open(&model, *config, TINY_VOCAB, TINY_VOCAB, TARN__F32, true);
  if (status == TARN_STATUS_OK) status = tarn__model_allocate(model);
  if (status == TARN_STATUS_OK) status = tarn__model_initialise(model, 3);
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return model;
}

// Nodes behind the forward pass that belong to layers, and layers' tensors that live until then.
static void look_back(const char *const *overrides, size_t count, int *nodes, int *kept) {
  static const double scale = 1.0;
  const int32_t ids[] = {2, 5, 6, 2, 7}, targets[] = {5, 6, 2, 7, 2}, offsets[] = {0, 3, 5}, positions[5] = {0};
  const tarn__packed text = {
      .sentences = 2, .rows = 5, .longest = 3, .ids = ids, .positions = positions, .offsets = offsets};
  tarn_config *config;
  tarn__model *model = open_model(overrides, count, &config);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, 2);
  tarn__tensor *loss = tarn__model_build_loss(
      model, &graph, &(tarn__batch){.target = text, .predictions = text.rows, .targets = targets}, NULL, 0.1, scale,
      NULL);
  tarn__graph_differentiate(&graph, loss);
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
  *nodes = *kept = 0;
  for (size_t n = 0; n < graph.node_count; n++) {
    const tarn__node *node = graph.nodes[n];
    if (strncmp(node->label, "decoder ", 8) != 0) continue;
    *nodes += n >= graph.forward_count;
    for (int k = 0; k < TARN__MAX_OUTPUTS; k++)
      if (node->out[k]) *kept += tarn__tensor_owner(node->out[k])->last >= (int)graph.forward_count;
  }
  tarn__graph_close(&graph);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

static void frozen_input_needs_no_way_back(void **state) {
  (void)state;
  static const char *const trained[] = {"model.frozen_embeddings=none"};
  static const char *const projection[] = {"kinds.E.input=projection", "kinds.E.hidden=24"};
  int nodes, kept;
  look_back(NULL, 0, &nodes, &kept);
  assert_int_equal(nodes, 0);
  assert_in_range(kept, 0, 1);  // the states that the output layer reads
  look_back(projection, 2, &nodes, &kept);
  assert_int_equal(nodes, 0);
  look_back(trained, 1, &nodes, &kept);
  if (nodes < 2 || kept < 2) fail_msg("%d nodes, %d kept", nodes, kept);
}

static const tarn__param *find(const tarn__model *model, const char *name) {
  for (size_t i = 0; i < model->param_count; i++)
    if (strcmp(model->params[i]->name, name) == 0) return model->params[i];
  return NULL;
}

static void parts_are_trained_and_frozen(void **state) {
  (void)state;
  static const char *const keys[] = {"kinds.E={mixer: esn, hidden: 24, frozen_input: yes, input_scaling: 0.1}",
                                     "decoder.layers=E G", "kinds.G={mixer: gru, frozen_recurrence: yes}"};
  static const struct {
    const char *name;
    bool trained;
  } parts[] = {{"decoder.layer1.esn.in.weight", false},      {"decoder.layer1.esn.recurrent.weight", false},
               {"decoder.layer1.esn.out.weight", true},      {"decoder.layer2.gru.in.weight", true},
               {"decoder.layer2.gru.forward.weight", false}, {"decoder.layer2.gru.out.weight", true}};
  tarn_config *config;
  tarn__model *model = open_model(keys, 3, &config);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    const tarn__param *param = find(model, parts[i].name);
    if (!param) fail_msg("there is no %s", parts[i].name);
    assert_int_equal(param->trained, parts[i].trained);
    assert_int_equal(param->training.grad != NULL, parts[i].trained);
  }
  const tarn__param *in = find(model, "decoder.layer1.esn.in.weight");
  double squares = 0;
  for (int i = 0; i < 24 * 16; i++) squares += pow((double)((const float *)in->value)[i], 2);
  assert_true(fabs(sqrt(squares / (24 * 16)) - 0.1) < 0.015);
  tarn__model_close(&model);
  tarn_config_close(&config);
  // States that are the output need no projection.
  model = open_model((const char *const[]){"kinds.E={mixer: lstm, residual: no}"}, 1, &config);
  assert_null(find(model, "decoder.layer1.lstm.out.weight"));
  assert_non_null(find(model, "decoder.layer1.lstm.in.weight"));
  tarn__model_close(&model);
  tarn_config_close(&config);
}

// Writes the recipe of the first reservoir of run/ anew, its hash that of `values`.
static void write_recipe(const char *recipe, const char *path) {
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_open(&file, "run/" TARN__CHECKPOINT_LAST), TARN_STATUS_OK);
  for (size_t i = 0; i < file.text_count; i++) {
    const char *key = file.texts[i].key;
    if (strncmp(key, TARN__KEY_FROZEN, strlen(TARN__KEY_FROZEN)) == 0 && strstr(key, RECURRENT))
      file.texts[i].text = recipe;
  }
  assert_int_equal(tarn__checkpoint_write(path, file.tensors, file.count, file.texts, file.text_count), TARN_STATUS_OK);
  tarn__safetensors_close(&file);
}

static void refuse(const char *path, const char *words) {
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, path, TARN__F32), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

// Another factor with the hash of its values is what a machine with another LAPACK would have written.
static void a_load_uses_the_recorded_factor(void **state) {
  (void)state;
  char before[400], recipe[512], hash[TARN__HASH_TEXT];
  float values[16 * 16];
  run_through("run", NULL, 0);
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_open(&file, "run/" TARN__CHECKPOINT_LAST), TARN_STATUS_OK);
  snprintf(recipe, sizeof recipe, "%s%s", TARN__KEY_FROZEN, RECURRENT);
  const char *text = tarn__safetensors_text(&file, recipe);
  assert_non_null(text);
  assert_in_range(strlen(text), 1, sizeof before - 1);
  strcpy(before, text);
  tarn__safetensors_close(&file);
  assert_non_null(strstr(before, " init=reservoir gain=0.99"));
  assert_non_null(strstr(before, " topology=random sparsity=0.5 factor="));
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "run", TARN__F32), TARN_STATUS_OK);
  const tarn__param *param = find(c->model, RECURRENT);
  for (int i = 0; i < 16 * 16; i++) values[i] = 2 * ((const float *)param->value)[i];
  const double factor = param->factor;
  tarn__hash(hash, values, sizeof values);
  tarn__checkpoint_close(&c);

  char *at = strstr(before, "factor="), *shape = strstr(before, " shape="), *end = strstr(before, "hash=");
  snprintf(recipe, sizeof recipe, "%.*sfactor=%.17g%.*shash=%s", (int)(at - before), before, 2 * factor,
           (int)(end - shape), shape, hash);
  write_recipe(recipe, "other");
  assert_int_equal(tarn__checkpoint_open(&c, "other", TARN__F32), TARN_STATUS_OK);
  assert_memory_equal(find(c->model, RECURRENT)->value, values, sizeof values);
  tarn__checkpoint_close(&c);

  snprintf(recipe, sizeof recipe, "%.*sfactor=%.17g%s", (int)(at - before), before, 2 * factor, shape);
  write_recipe(recipe, "wrong");
  refuse("wrong", "cannot be made again");
  static const char *const factors[] = {"", " factor=0", " factor=-1", " factor=nan", " factor=1x", " factor="};
  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
    snprintf(recipe, sizeof recipe, "%.*s%s%s", (int)(at - 1 - before), before, factors[i], shape);
    write_recipe(recipe, "wrong");
    refuse("wrong", "no factor");
  }
}

// A spectral radius of 0 trains, is saved as a line and made again, stored densely or as entries; a factor there is
// refused as one that is missing is elsewhere.
static void no_recurrence_is_trained_and_loaded(void **state) {
  (void)state;
  static const char *const storages[] = {"kinds.E.storage=dense", "kinds.E.storage=entries"};
  for (int i = 0; i < 2; i++) {
    const char *const keys[] = {"kinds.E.spectral_radius=0", storages[i], "train.max_updates=2",
                                "kinds.E.sparsity=0.995"};
    const char *run = i ? "still_entries" : "still";
    float values[16 * 16];
    char path[64];
    run_through(run, keys, 4);
    snprintf(path, sizeof path, "%s/" TARN__CHECKPOINT_LAST, run);
    tarn__checkpoint *c;
    if (tarn__checkpoint_open(&c, path, TARN__F32) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
    const tarn__param *param = find(c->model, RECURRENT);
    assert_true((param->entries > 0) == i);
    assert_int_equal(tarn__param_get(param, values), TARN_STATUS_OK);
    for (int k = 0; k < 16 * 16; k++) assert_true(values[k] == 0);
    tarn__checkpoint_close(&c);
  }
  tarn__safetensors file;
  char key[128], text[400];
  assert_int_equal(tarn__safetensors_open(&file, "still/" TARN__CHECKPOINT_LAST), TARN_STATUS_OK);
  snprintf(key, sizeof key, "%s%s", TARN__KEY_FROZEN, RECURRENT);
  snprintf(text, sizeof text, "%s", tarn__safetensors_text(&file, key));
  tarn__safetensors_close(&file);
  char *at = strstr(text, " gain=0 ");
  assert_non_null(at);
  at = strstr(at, "factor=0 ");
  assert_non_null(at);
  at[strlen("factor=")] = '2';
  tarn__param wrong = {.name = "p", .init = {TARN__INIT_RESERVOIR, 0, 1}, .reservoir = &(tarn__reservoir){0}};
  assert_int_equal(tarn__recipe_take_factor(text, "file", &wrong), TARN_STATUS_DATA);
}

// What was logged and saved before stays, and nothing that is not a number is written.
static void an_explosion_ends_the_run(void **state) {
  (void)state;
  static const char *const keys[] = {"kinds.E.spectral_radius=1000", "kinds.E.leak_rate=1", "valid.at_start=no",
                                     "model.frozen_embeddings=none", "decoder.layers=E",    "train.precision=bf16"};
  assert_int_equal(tiny_train("tiny.yaml", "exploded", keys, 6, NULL, NULL, NULL), TARN_STATUS_NUMERIC);
  assert_non_null(strstr(tarn_error_message(), "not a finite number"));
  assert_non_null(strstr(tarn_error_message(), "spectral_radius"));
  json_t *result = json_load_file("exploded/result.json", 0, NULL);
  assert_non_null(result);
  assert_string_equal(json_string_value(json_object_get(result, "status")), "failed");
  assert_non_null(strstr(json_string_value(json_object_get(result, "message")), "not a finite number"));
  json_decref(result);
  assert_true(tarn__file_exists("exploded/log.jsonl"));
  tarn__checkpoint *c;
  if (tarn__checkpoint_open(&c, "exploded/" TARN__CHECKPOINT_LAST, TARN__F32) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  for (size_t i = 0; i < c->model->param_count; i++) {
    const tarn__param *param = c->model->params[i];
    for (int64_t k = 0; k < param->rows * param->cols; k++) assert_true(isfinite(((const float *)param->value)[k]));
  }
  tarn__checkpoint_close(&c);
}

static void bad_keys_are_refused(void **state) {
  (void)state;
  static const refused_key cases[] = {
      {"kinds.E.spectral_radius=-0.9", "kinds.E.spectral_radius: -0.9 is out of range (0 <= x <= 1000)"},
      {"kinds.E.spectral_radius=nan", "kinds.E.spectral_radius: "},
      {"kinds.E.sparsity=1", "kinds.E.sparsity: 1 is out of range (0 <= x < 1)"},
      {"kinds.E.sparsity=0.999", "kinds.E.sparsity: 0.999 of 16 x 16 entries leaves no edges"},
      {"kinds.E={mixer: esn, topology: ring, sparsity: 0.97}",
       "kinds.E.sparsity: 0.97 is sparser than a graph of this topology with 16 units can be; use at most 0.9375"},
      {"kinds.E={mixer: esn, topology: small_world, sparsity: 0.94}", "with 16 units can be; use at most 0.875"},
      {"kinds.E={mixer: esn, topology: scale_free, sparsity: 0.945}", "with 16 units can be; use at most 0.8828125"},
      {"kinds.E.leak_rate=0", "kinds.E.leak_rate: 0 is out of range (0 < x <= 1)"},
      {"kinds.E.topology=smallworld", "did you mean \"small_world\""},
      {"kinds.E.nonlinearity=gelu", "is not one of relu, tanh"},
      {"kinds.E.hidden=24", "kinds.E.hidden: with input: direct"},
      {"kinds.E.input_scaling=1", "kinds.E.input_scaling: with input: direct the layer has no W_in"},
      {"kinds.E.frozen_recurrence=no", "kinds.E.frozen_recurrence: a layer with mixer esn has no frozen_recurrence"},
      {"kinds.E={mixer: esn, hidden: 2, topology: small_world}", "kinds.E.hidden: a graph of this topology"},
      {"kinds.E={mixer: gru, sparsity: 0.5}", "kinds.E.sparsity: a layer with mixer gru has no sparsity"},
  };
  expect_refused_keys(config_text, cases, sizeof cases / sizeof *cases);
  // What is named as the largest sparsity is taken, and so is what is rounded to it.
  static const char *const sparsest[] = {"{mixer: esn, topology: ring, sparsity: 0.9375}",
                                         "{mixer: esn, topology: ring, sparsity: 0.965}",
                                         "{mixer: esn, topology: ring, hidden: 512, sparsity: 0.998046875}",
                                         "{mixer: esn, topology: ring, hidden: 1}",
                                         "{mixer: esn, topology: small_world, sparsity: 0.875}",
                                         "{mixer: esn, topology: small_world, hidden: 3}",
                                         "{mixer: esn, topology: scale_free, sparsity: 0.8828125}",
                                         "{mixer: esn, topology: scale_free, hidden: 2}"};
  for (size_t i = 0; i < sizeof sparsest / sizeof *sparsest; i++) {
    char key[128];
    const char *const keys[] = {key};
    tarn_config *config;
    snprintf(key, sizeof key, "kinds.E=%s", sparsest[i]);
    if (tarn_config_parse(&config, "esn", config_text, strlen(config_text), keys, 1) != TARN_STATUS_OK)
      fail_msg("%s", tarn_error_message());
    tarn_config_close(&config);
  }
  // No cycle among so few edges: the line names the key.
  static const char *const nilpotent = "kinds.E.sparsity=0.995";
  assert_int_equal(tiny_train("tiny.yaml", "never", &nilpotent, 1, NULL, NULL, NULL), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "kinds.E.spectral_radius: decoder.layer"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(pieces_give_the_bits_of_the_whole, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(frozen_input_needs_no_way_back, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(parts_are_trained_and_frozen, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(a_load_uses_the_recorded_factor, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(no_recurrence_is_trained_and_loaded, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(an_explosion_ends_the_run, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(bad_keys_are_refused, open_all, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
