// LayerDrop: what it draws, that a skipped layer is not in the step, that its parameters rest, that evaluation runs all
// layers, and that resuming and recomputation give the same bits.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "same_run.h"
#include "store/checkpoint_keys.h"
#include "tarn/plan.h"
#include "train/features/layerdrop.h"
#include "train/trainer.h"

static void draws_follow_the_probability(void **state) {
  (void)state;
  enum { LAYERS = 8, STEPS = 4000 };
  int skipped[2][LAYERS] = {{0}};
  int both = 0;
  bool skip[2][LAYERS];
  bool again[LAYERS];
  for (uint32_t step = 0; step < STEPS; step++) {
    for (int stack = 0; stack < 2; stack++) {
      tarn__layerdrop_draw(skip[stack], LAYERS, 0.2, 7, step, (tarn__stack_id)stack);
      for (int i = 0; i < LAYERS; i++) skipped[stack][i] += skip[stack][i];
    }
    both += skip[0][0] && skip[0][1];
    tarn__layerdrop_draw(again, LAYERS, 0.2, 7, step, TARN__STACK_ENCODER);
    assert_memory_equal(again, skip[0], sizeof again);
  }
  // Five standard deviations of a binomial count; layers are independent.
  double deviation = sqrt(STEPS * 0.2 * 0.8);
  for (int i = 0; i < LAYERS; i++) {
    assert_true(fabs(skipped[0][i] - STEPS * 0.2) < 5 * deviation);
    assert_true(fabs(skipped[1][i] - STEPS * 0.2) < 5 * deviation);
  }
  assert_true(fabs(both - STEPS * 0.04) < 5 * sqrt(STEPS * 0.04 * 0.96));
  tarn__layerdrop_draw(skip[0], LAYERS, 0.0, 7, 1, TARN__STACK_ENCODER);
  for (int i = 0; i < LAYERS; i++) assert_false(skip[0][i]);
}

static tarn_train *open_train(const char *run, const char *const *overrides, size_t count) {
  tarn_train *t;
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = run;
  options.overrides = overrides;
  options.override_count = count;
  if (tarn_train_open(&t, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return t;
}

// Nodes of the newest graph that belong to layer `depth` of a stack, from 1.
static int nodes_of(const tarn_train *t, const char *stack, int depth) {
  char label[32];
  int count = 0;
  snprintf(label, sizeof label, "%s %d ", stack, depth);
  for (size_t i = 0; i < t->stepper.graph.node_count; i++) {
    const char *of = t->stepper.graph.nodes[i]->label;
    count += of && strncmp(of, label, strlen(label)) == 0;
  }
  return count;
}

static void a_skipped_layer_is_not_in_the_step(void **state) {
  (void)state;
  static const char *const recompute[] = {"train.recompute=none", "train.recompute=block"};
  for (int r = 0; r < 2; r++) {
    const char *overrides[] = {"encoder.layers=L L R L",
                               "decoder.layers=L L",
                               "encoder.layerdrop=0.5",
                               "decoder.layerdrop=0.5",
                               "model.embeddings=all",
                               recompute[r],
                               r ? "model.norm=pre" : "model.norm=post"};
    tarn_train *t = open_train(r ? "nodes1" : "nodes0", overrides, 7);
    const tarn__loaded *loaded = tarn__loader_next(t->loader);
    const tarn__layerdrop *drop = tarn__features_state(&t->features, "layerdrop");
    int seen = 0;
    for (int64_t step = 0; step < 24; step++) {
      tarn__stepper_loss loss;
      assert_int_equal(tarn__stepper_train(&t->stepper, &loss, &loaded->batch, step), TARN_STATUS_OK);
      assert_true(isfinite(loss.loss));
      for (int i = 0; i < 4; i++) {
        bool skipped = drop->skip[TARN__STACK_ENCODER][i];
        assert_int_equal(nodes_of(t, "encoder", i + 1) == 0, skipped);
        seen += skipped;
      }
      for (int i = 0; i < 2; i++)
        assert_int_equal(nodes_of(t, "decoder", i + 1) == 0, drop->skip[TARN__STACK_DECODER][i]);
    }
    assert_true(seen > 24 && seen < 72);
    tarn_train_close(&t);
  }
}

// With all but certain skips only embeddings (and final norms) learn. The others keep their first values, without
// moments, and have no part in the norm.
static void parameters_of_skipped_layers_rest(void **state) {
  (void)state;
  static const char *const variants[][2] = {{"model.norm=post", "train.precision=fp32"},
                                            {"model.norm=pre", "train.precision=bf16"}};
  for (int v = 0; v < 2; v++) {
    const char *run = v ? "rest1" : "rest0";
    const char *overrides[] = {"encoder.layerdrop=0.999999999",
                               "decoder.layerdrop=0.999999999",
                               "train.weight_decay=0.1",
                               variants[v][0],
                               variants[v][1],
                               "train.average=0"};
    assert_int_equal(tiny_train("tiny.yaml", run, overrides, 6, NULL, NULL, NULL), TARN_STATUS_OK);
    tarn__checkpoint_file file;
    tarn__checkpoint *c;
    char path[256];
    join(path, run, TARN__CHECKPOINT_LAST);
    assert_int_equal(tarn__checkpoint_file_open(&file, path), TARN_STATUS_OK);
    assert_int_equal(tarn__checkpoint_open(&c, path, TARN__F32), TARN_STATUS_OK);
    int rested = 0;
    for (size_t i = 0; i < c->model->param_count; i++) {
      const tarn__param *param = c->model->params[i];
      size_t count = (size_t)(param->rows * param->cols);
      float *first = calloc(count, sizeof *first);
      assert_non_null(first);
      assert_int_equal(tarn__param_initialise(param, c->model->seed, first), TARN_STATUS_OK);
      bool same = memcmp(first, param->value, count * sizeof *first) == 0;
      bool in_layer = strstr(param->name, ".L") || strstr(param->name, ".R") || strstr(param->name, ".layer");
      if (same != in_layer && (in_layer || strncmp(param->name, "embeddings", 10) == 0)) fail_msg("%s", param->name);
      free(first);
      if (!in_layer || !param->trained) continue;
      char name[300];
      snprintf(name, sizeof name, "%s%s", TARN__TENSOR_MOMENT2, param->name);
      const tarn__stored *moment = tarn__safetensors_find(&file.tensors, name);
      if (!moment) fail_msg("%s is not stored", name);
      for (size_t b = 0; b < moment->bytes; b++) assert_int_equal(((const char *)moment->data)[b], 0);
      rested++;
    }
    assert_true(rested > 10);
    tarn__checkpoint_close(&c);
    tarn__checkpoint_file_close(&file);
  }
}

static void evaluation_runs_all_layers(void **state) {
  (void)state;
  const char *with[] = {"encoder.layerdrop=0.9", "decoder.layerdrop=0.9"};
  tarn_train *t[2] = {open_train("eval0", NULL, 0), open_train("eval1", with, 2)};
  tarn__stepper_loss loss[2];
  for (int i = 0; i < 2; i++) {
    const tarn__loaded *loaded = tarn__loader_next(t[i]->loader);
    assert_int_equal(tarn__stepper_evaluate(&t[i]->stepper, &loss[i], &loaded->batch), TARN_STATUS_OK);
    assert_int_equal(tarn_train_plan(t[i])->upper_bound, i);
  }
  assert_true(loss[0].loss == loss[1].loss && loss[0].watched == loss[1].watched);
  assert_int_equal(tarn_train_plan(t[0])->activation_bytes, tarn_train_plan(t[1])->activation_bytes);
  tarn_train_close(&t[0]);
  tarn_train_close(&t[1]);
}

static void resuming_and_recomputation_change_no_bit(void **state) {
  (void)state;
  static const char *const variants[][3] = {
      {"train.precision=fp32", "train.accumulate=1", "model.norm=post"},
      {"train.precision=bf16", "train.accumulate=3", "model.norm=pre"},
  };
  for (int v = 0; v < 2; v++) {
    const char *overrides[] = {"encoder.layerdrop=0.4", "decoder.layerdrop=0.2", variants[v][0],
                               variants[v][1],          variants[v][2],          "train.recompute=block"};
    char run[3][16];
    for (int i = 0; i < 3; i++) snprintf(run[i], sizeof run[i], "drop%d%d", v, i);
    run_through(run[0], overrides, 5);
    run_in_pieces(run[1], 1 + v, overrides, 5);
    run_through(run[2], overrides, 6);
    assert_same_run(run[0], run[1]);
    assert_same_run(run[0], run[2]);
  }
}

static void refuse(const char *override, const char *message) {
  tarn_config *config;
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", &override, 1), TARN_STATUS_USAGE);
  if (!strstr(tarn_error_message(), message)) fail_msg("%s", tarn_error_message());
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  refuse("encoder.layerdrop=1", "encoder.layerdrop: 1 is out of range (0 <= x < 1)");
  refuse("decoder.layerdrop=-0.1", "decoder.layerdrop: -0.1 is out of range (0 <= x < 1)");
  refuse("encoder.layer_drop=0.2", "unknown key \"layer_drop\" in encoder; did you mean \"layerdrop\"?");
  const char *cached[] = {"model={d_model: 16, embeddings: decoder, frozen_embeddings: encoder, dropout: 0}",
                          "train.cache_frozen=yes", "encoder.layerdrop=0.2"};
  tarn_config *config;
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", cached, 2), TARN_STATUS_OK);
  tarn_config_close(&config);
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", cached, 3), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "encoder.layerdrop is 0.2"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(draws_follow_the_probability),
      cmocka_unit_test(a_skipped_layer_is_not_in_the_step),
      cmocka_unit_test(parameters_of_skipped_layers_rest),
      cmocka_unit_test(evaluation_runs_all_layers),
      cmocka_unit_test(resuming_and_recomputation_change_no_bit),
      cmocka_unit_test(what_cannot_be_is_refused),
  };
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
