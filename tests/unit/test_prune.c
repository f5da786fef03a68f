// Pruning: which layers are left, that names and shared sets stay, that a pruned checkpoint is the model that the
// options give, and what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "same_run.h"
#include "tarn/translate.h"

static const char prune_config[] =
    "model: { d_model: 16, embeddings: all, dropout: 0.1 }\n"
    "encoder: { layers: L L1 R L L1 F, layerdrop: 0.2 }\n"
    "decoder: { layers: L L, layerdrop: 0.2 }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "  F: { mixer: none, ffn: 32, frozen: yes }\n"
    "data: { vocab: vocab, train: train }\n"
    "train: { max_updates: 4, lr: 0.01, warmup: 4, max_tokens: 400, threads: 2, freeze: { encoder.layer4: 2 } }\n";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  sandbox_write("tiny.yaml", prune_config, strlen(prune_config));
  run_through("run", NULL, 0);
  return 0;
}

static tarn__checkpoint *opened(const char *path, const tarn_prune *prune) {
  tarn__checkpoint *c;
  if (tarn__checkpoint_open_pruned(&c, path, TARN__F32, prune) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return c;
}

static void expect_sets(const tarn_stack *stack, const char *expected) {
  char text[512] = "";
  for (int32_t i = 0; i < stack->count; i++) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s:%d", i ? " " : "", stack->layers[i].set,
             (int)stack->layers[i].first);
  }
  assert_string_equal(text, expected);
}

static void layers_are_left_out_by_depth(void **state) {
  (void)state;
  static const struct {
    tarn_prune prune;
    const char *encoder, *decoder;
  } cases[] = {
      {{0}, "layer1:0 L1:1 layer3:2 layer4:3 L1:1 layer6:5", "layer1:0 layer2:1"},
      {{"1,3,5", NULL, 0}, "layer1:0 layer3:1 L1:2", "layer1:0 layer2:1"},
      {{"6,2,5", "2", 0}, "L1:0 L1:0 layer6:2", "layer2:0"},
      {{NULL, NULL, 0.5}, "layer1:0 layer3:1 L1:2", "layer1:0"},
      {{NULL, NULL, 0.34}, "layer1:0 layer3:1 L1:2", "layer1:0"},
      {{NULL, NULL, 1.0 / 3}, "layer1:0 L1:1 layer4:2 L1:1", "layer1:0 layer2:1"},
      {{"4", NULL, 0.5}, "layer4:0", "layer1:0"},
      {{NULL, NULL, 0.01}, "layer1:0 L1:1 layer3:2 layer4:3 L1:1 layer6:5", "layer1:0 layer2:1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn__checkpoint *c = opened("run", &cases[i].prune);
    expect_sets(&c->config->encoder, cases[i].encoder);
    expect_sets(&c->config->decoder, cases[i].decoder);
    // The highest layer of the whole pattern is pre-norm, so the encoder keeps its final norm.
    assert_non_null(c->model->encoder.norm.gain);
    assert_null(c->model->decoder.norm.gain);
    tarn__checkpoint_close(&c);
  }
}

static void parameters_keep_their_names_and_values(void **state) {
  (void)state;
  tarn_prune prune = {"2,3,5", "2", 0};
  tarn__checkpoint *whole = opened("run", NULL);
  assert_int_equal(tarn_checkpoint_prune("pruned", "run", &prune), TARN_STATUS_OK);
  tarn__checkpoint *c = opened("pruned", NULL);
  assert_int_equal(c->update, whole->update);
  size_t found = 0;
  for (size_t i = 0; i < c->model->param_count; i++) {
    const tarn__param *param = c->model->params[i];
    for (size_t k = 0; k < whole->model->param_count; k++) {
      const tarn__param *same = whole->model->params[k];
      if (strcmp(same->name, param->name) != 0) continue;
      assert_int_equal(same->trained, param->trained);
      assert_memory_equal(same->value, param->value, (size_t)(param->rows * param->cols) * sizeof(float));
      found++;
    }
    assert_null(strstr(param->name, "encoder.layer1."));
    assert_null(strstr(param->name, "encoder.layer4."));
  }
  assert_int_equal(found, c->model->param_count);
  assert_true(found < whole->model->param_count);
  tarn__checkpoint_close(&c);
  tarn__checkpoint_close(&whole);
}

// Translates some lines and joins the texts.
static void translate(char text[4096], const char *path, const tarn_prune *prune) {
  static const char *const lines[] = {"t3 t4 t5", "t10 t11", "t20 t21 t22 t23 t24", "t7"};
  size_t lengths[4];
  tarn_translate_result results[4];
  tarn_translator *translator;
  tarn_translator_options options;
  tarn_translator_default(&options);
  if (prune) options.prune = *prune;
  options.threads = 1;
  for (int i = 0; i < 4; i++) lengths[i] = strlen(lines[i]);
  if (tarn_translator_open(&translator, path, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_int_equal(tarn_translator_lines(translator, results, lines, lengths, 4), TARN_STATUS_OK);
  text[0] = 0;
  for (int i = 0; i < 4; i++) {
    size_t used = strlen(text);
    snprintf(text + used, 4096 - used, "%.200s %.9g\n", results[i].hypotheses[0].text, results[i].hypotheses[0].score);
  }
  tarn_translator_close(&translator);
}

static void a_pruned_checkpoint_translates_as_the_options_do(void **state) {
  (void)state;
  static const tarn_prune cases[] = {{"1,3,5", NULL, 0}, {"6,5", "2", 0}, {NULL, NULL, 0.5}};
  char whole[4096];
  char by_options[4096];
  char by_file[4096];
  translate(whole, "run", NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(tarn_checkpoint_prune("cut", "run", &cases[i]), TARN_STATUS_OK);
    translate(by_options, "run", &cases[i]);
    translate(by_file, "cut", NULL);
    assert_string_equal(by_options, by_file);
    assert_string_not_equal(by_file, whole);
  }
  // Of what is left, more can be left out; a dense file stays dense.
  tarn_prune more = {"1,5", NULL, 0};
  assert_int_equal(tarn_checkpoint_prune("once", "run", &cases[0]), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_export("dense", "once"), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_prune("twice", "dense", &more), TARN_STATUS_OK);
  tarn__checkpoint *c = opened("twice", NULL);
  assert_true(c->dense == false);  // no frozen layer is left
  tarn__checkpoint_close(&c);
  translate(by_options, "run", &more);
  translate(by_file, "twice", NULL);
  assert_string_equal(by_options, by_file);
}

static void refuse(const char *path, tarn_prune prune, const char *message) {
  assert_int_equal(tarn_checkpoint_prune("refused", path, &prune), TARN_STATUS_USAGE);
  if (!strstr(tarn_error_message(), message)) fail_msg("%s", tarn_error_message());
  assert_false(tarn__file_exists("refused"));
}

static void what_cannot_be_left_out_is_refused(void **state) {
  (void)state;
  refuse("run", (tarn_prune){"7", NULL, 0}, "there is no layer 7: the encoder has layers 1 to 6");
  refuse("run", (tarn_prune){"0,1", NULL, 0}, "there is no layer 0");
  refuse("run", (tarn_prune){NULL, "99999999999999999999", 0}, "there is no layer 99999999999999999999: the decoder");
  refuse("run", (tarn_prune){"1,,2", NULL, 0}, "such as 1,3,5, not \"1,,2\"");
  refuse("run", (tarn_prune){"", NULL, 0}, "such as 1,3,5, not \"\"");
  refuse("run", (tarn_prune){"1 2", NULL, 0}, "such as 1,3,5");
  refuse("run", (tarn_prune){"1,", NULL, 0}, "such as 1,3,5");
  refuse("run", (tarn_prune){NULL, NULL, 0.6}, "the rate of pruning is 0 to 0.5, not 0.6");
  tarn_prune first = {"2,4,6", NULL, 0};
  assert_int_equal(tarn_checkpoint_prune("even", "run", &first), TARN_STATUS_OK);
  refuse("even", (tarn_prune){"2,3", NULL, 0}, "layer 3 of the encoder was left out before");
  refuse("even", (tarn_prune){NULL, NULL, 0.5}, "no layer of the encoder would be left");
  tarn_config *config;
  const char *override = "encoder.layers_to_keep=[1, 7]";
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", &override, 1), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "layers_to_keep names layer 7 of a pattern of 6 layers"));
}

// A frozen set that both stacks have is described by the encoder's depth, also where the decoder has it no longer.
static void shared_frozen_sets_stay_what_they_are(void **state) {
  (void)state;
  static const char *const overrides[] = {"model.share_stacks=yes", "model.norm=deepnorm", "encoder.layers=R1 L1 R1 L1",
                                          "decoder.layers=R1 L1 L", "kinds.R.init=xavier", "train.freeze="};
  const tarn_prune prune = {NULL, "3", 0};
  run_through("shared", overrides, sizeof overrides / sizeof *overrides);
  tarn_checkpoint_info *info;
  assert_int_equal(tarn_checkpoint_info_open(&info, "shared"), TARN_STATUS_OK);
  for (size_t i = 0; i < info->param_count; i++)
    if (strncmp(info->params[i].name, "encoder.R1.", 11) == 0)
      assert_string_equal(info->params[i].places, "encoder layer 1 3 decoder layer 1");
  tarn_checkpoint_info_close(&info);
  if (tarn_checkpoint_prune("cut", "shared", &prune) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  tarn__checkpoint *c = opened("cut", NULL);
  expect_sets(&c->config->encoder, "R1:0 L1:1 R1:0 L1:1");
  expect_sets(&c->config->decoder, "layer3:0");
  tarn__checkpoint_close(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_are_left_out_by_depth),
      cmocka_unit_test(parameters_keep_their_names_and_values),
      cmocka_unit_test(a_pruned_checkpoint_translates_as_the_options_do),
      cmocka_unit_test(what_cannot_be_left_out_is_refused),
      cmocka_unit_test(shared_frozen_sets_stay_what_they_are),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
