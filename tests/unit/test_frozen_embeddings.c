// Frozen embeddings: which matrix is frozen, what cannot be asked for, no backward pass below the lowest trained layer,
// and a recipe in place of bytes in a checkpoint.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "device/devices.h"
#include "model/model.h"
#include "store/checkpoint.h"
#include "tiny_run.h"

#define STACKS                                           \
  "encoder: { layers: R R L }\ndecoder: { layers: L }\n" \
  "kinds:\n  L: { heads: 2, ffn: 16 }\n"                 \
  "  R: { heads: 2, ffn: 16, frozen: yes, dropout: 0 }\n"

static tarn_status parse(tarn_config **config, const char *share, const char *frozen) {
  char text[512];
  snprintf(text, sizeof text, "model: { d_model: 8, embeddings: %s, frozen_embeddings: %s }\n" STACKS, share, frozen);
  return tarn_config_parse(config, "m.yaml", text, strlen(text), NULL, 0);
}

// The flags of source, target and output table as three letters: t for trained, f for frozen; NULL: refused.
static void each_sharing_with_each_freezing(void **state) {
  (void)state;
  static const struct {
    const char *share, *frozen, *tables;
  } cases[] = {
      {"none", "none", "ttt"},
      {"none", "encoder", "ftt"},
      {"none", "decoder", "tft"},
      {"none", "both", "fft"},
      {"decoder", "none", "ttt"},
      {"decoder", "encoder", "ftt"},
      {"decoder", "decoder", NULL},
      {"decoder", "both", NULL},
      {"encoder_decoder", "none", "ttt"},
      {"encoder_decoder", "encoder", NULL},
      {"encoder_decoder", "decoder", NULL},
      {"encoder_decoder", "both", "fft"},
      {"encoder_output", "none", "ttt"},
      {"encoder_output", "encoder", NULL},
      {"encoder_output", "decoder", "tft"},
      {"encoder_output", "both", NULL},
      {"all", "none", "ttt"},
      {"all", "encoder", NULL},
      {"all", "decoder", NULL},
      {"all", "both", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_config *config;
    tarn_status status = parse(&config, cases[i].share, cases[i].frozen);
    if (!cases[i].tables) {
      assert_int_equal(status, TARN_STATUS_USAGE);
      assert_non_null(strstr(tarn_error_message(), "m.yaml:1: model.frozen_embeddings: with "));
      assert_non_null(strstr(tarn_error_message(), "model.embeddings"));
      continue;
    }
    if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
    tarn__model *model;
    assert_int_equal(tarn__model_open(&model, config, 20, 20, TARN__F32, true), TARN_STATUS_OK);
    const tarn__param *tables[] = {model->weights.source_table, model->weights.target_table,
                                   model->weights.output_table};
    for (int k = 0; k < 3; k++) assert_int_equal(tables[k]->trained, cases[i].tables[k] == 't');
    tarn__model_close(&model);
    tarn_config_close(&config);
  }
}

static void dropout_of_embeddings_has_its_own_key(void **state) {
  (void)state;
  static const char text[] = "model: { d_model: 8, dropout: 0.3 }\n" STACKS;
  const char *override = "model.embedding_dropout=0";
  tarn_config *config;
  assert_int_equal(tarn_config_parse(&config, "m", text, strlen(text), NULL, 0), TARN_STATUS_OK);
  assert_true(config->model.embedding_dropout == 0.3);
  tarn_config_close(&config);
  assert_int_equal(tarn_config_parse(&config, "m", text, strlen(text), &override, 1), TARN_STATUS_OK);
  assert_true(config->model.embedding_dropout == 0);
  assert_true(config->kinds[0].dropout == 0.3);
  tarn_config_close(&config);
}

// Nodes of the backward pass whose label begins with `label`.
static int backward_nodes(const char *frozen, const char *label) {
  tarn_config *config;
  tarn__model *model;
  tarn__graph graph = {0};
  static const int32_t offsets[] = {0, 3, 8};
  static const double scale = 1.0;
  tarn__packed side = {.sentences = 2, .rows = 8, .longest = 5, .offsets = offsets};
  if (parse(&config, "decoder", frozen) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_int_equal(tarn__model_open(&model, config, 20, 20, TARN__F32, true), TARN_STATUS_OK);
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, 1);
  const tarn__batch batch = {.source = side, .target = side, .predictions = 8};
  tarn__graph_differentiate(&graph, tarn__model_build_loss(model, &graph, &batch, NULL, 0.1, scale, NULL));
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
  int count = 0;
  for (size_t n = graph.forward_count; n < graph.node_count; n++)
    count += strncmp(graph.nodes[n]->label, label, strlen(label)) == 0;
  tarn__graph_close(&graph);
  tarn__model_close(&model);
  tarn_config_close(&config);
  return count;
}

static void a_frozen_bottom_has_no_backward_pass(void **state) {
  (void)state;
  assert_true(backward_nodes("none", "encoder 1") > 0);
  assert_true(backward_nodes("none", "encoder 2") > 0);
  assert_int_equal(backward_nodes("none", "embeddings"), 2);
  assert_int_equal(backward_nodes("encoder", "encoder 1"), 0);
  assert_int_equal(backward_nodes("encoder", "encoder 2"), 0);
  assert_true(backward_nodes("encoder", "encoder 3") > 0);
  assert_int_equal(backward_nodes("encoder", "embeddings"), 1);  // of the target
}

static void a_checkpoint_holds_a_recipe(void **state) {
  (void)state;
  static const char path[] = "run/" TARN__CHECKPOINT_LAST;
  const char *overrides[] = {"model.embeddings=decoder", "model.frozen_embeddings=encoder", "train.average=0"};
  if (tiny_train("tiny.yaml", "run", overrides, 3, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  tarn__checkpoint_file file;
  assert_int_equal(tarn__checkpoint_file_open(&file, path), TARN_STATUS_OK);
  for (size_t i = 0; i < file.tensors.count; i++)
    assert_null(strstr(file.tensors.tensors[i].name, "embeddings.source"));
  tarn__checkpoint_file_close(&file);
  tarn__checkpoint *checkpoint;
  if (tarn__checkpoint_open(&checkpoint, path, TARN__F32) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  const tarn__param *table = checkpoint->model->weights.source_table;
  assert_false(table->trained);
  float *first = calloc((size_t)(table->rows * table->cols), sizeof *first);
  assert_non_null(first);
  assert_int_equal(tarn__param_initialise(table, 1, first), TARN_STATUS_OK);
  assert_memory_equal(first, table->value, (size_t)(table->rows * table->cols) * sizeof *first);
  free(first);
  tarn__checkpoint_close(&checkpoint);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_sharing_with_each_freezing), cmocka_unit_test(dropout_of_embeddings_has_its_own_key),
      cmocka_unit_test(a_frozen_bottom_has_no_backward_pass), cmocka_unit_test(a_checkpoint_holds_a_recipe)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
