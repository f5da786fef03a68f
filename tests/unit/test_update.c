// Updates in the backward pass: the bits of updates at the end, whatever parameters share, whatever is left out of a
// step or computed again, and no memory for the gradients of a whole model.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "device/devices.h"
#include "graph/update.h"
#include "same_run.h"
#include "train/plan_run.h"
#include "train/trainer.h"

// The last is the key that decides: a limit that no norm reaches changes no bit, but must know the norm.
static const char AT_ONCE[] = "train.clip_norm=0", AT_END[] = "train.clip_norm=1e6";

enum { MOST = 6 };

static void same_bits(const char *name, const char *const *overrides, size_t count) {
  const char *keys[MOST];
  char at_once[64], at_end[64], pieces[64];
  for (size_t i = 0; i < count; i++) keys[i] = overrides[i];
  snprintf(at_once, sizeof at_once, "%s-once", name);
  snprintf(at_end, sizeof at_end, "%s-end", name);
  snprintf(pieces, sizeof pieces, "%s-pieces", name);
  keys[count] = AT_END;
  run_through(at_end, keys, count + 1);
  keys[count] = AT_ONCE;
  run_through(at_once, keys, count + 1);
  run_in_pieces(pieces, 5, keys, count + 1);
  assert_same_run(at_once, pieces);
  assert_same_tensors(at_once, at_end, "checkpoint_last.safetensors");
  assert_same_tensors(at_once, at_end, "checkpoint_average.safetensors");
}

// tiny.yaml shares layers and ties the three tables; without, tables know the rows that they use.
static void bits_are_those_of_updates_at_the_end(void **state) {
  (void)state;
  static const char *const variants[][MOST - 1] = {
      {"train.precision=fp32"},
      {"train.precision=bf16", "train.moments=bf16", "train.optimiser=adamw", "train.weight_decay=0.1"},
      {"model.embeddings=none", "train.recompute=block", "train.weight_decay=0.1", "train.moments=fp8"},
      {"encoder.layers=(R1 L1 L)*2", "encoder.layerdrop=0.5", "train.recompute=cheap", "train.precision=bf16"},
      {"train.freeze={ encoder.L1: 4, embeddings: 7 }", "model.norm=pre"},
      {"model.embeddings=none", "model.adaptive_input_cutoff=[20, 40]", "model.adaptive_softmax_cutoff=[10, 30]",
       "train.recompute=block"},
      {"model.adaptive_input_cutoff=[20, 58]", "model.adaptive_softmax_cutoff=[20, 58]", "model.tie_adaptive_proj=yes",
       "train.precision=bf16", "model.adaptive_softmax_dropout=0.1"}};
  for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
    char name[32];
    size_t count = 0;
    while (count < MOST - 1 && variants[v][count]) count++;
    snprintf(name, sizeof name, "variant%zu", v);
    same_bits(name, variants[v], count);
  }
}

static size_t count_updates(const tarn__graph *graph, const tarn__param *param) {
  size_t count = 0;
  for (size_t n = 0; n < graph->node_count; n++)
    count += graph->nodes[n]->op == &tarn__op_update && graph->nodes[n]->dparam[0] == param;
  return count;
}

// What is trained is updated once, behind all that reads it or adds to its gradient, whose memory is in the workspace.
static void check_order(const tarn__graph *graph, const tarn__param *param) {
  bool updated = false, gradient = false;
  for (size_t n = 0; n < graph->node_count; n++) {
    const tarn__node *node = graph->nodes[n];
    if (node->op == &tarn__op_update && node->dparam[0] == param) {
      assert_true(gradient);
      updated = true;
      continue;
    }
    for (int k = 0; k < TARN__MAX_PARAM_GRADS; k++) {
      if (node->dparam[k] != param) continue;
      assert_false(updated);
      assert_non_null(node->dparam_grad[k]);
      gradient = true;
    }
    for (int k = 0; k < TARN__MAX_INPUTS; k++)
      if (node->in[k] && node->in[k]->place == TARN__PARAMETER && node->in[k]->param == param) assert_false(updated);
  }
}

// One step more of a training that is over, on the next batch. Leaves its graph to look at.
static void step_more(tarn_train *t) {
  const tarn__loaded *loaded = tarn__loader_next(t->loader);
  tarn__stepper_loss loss;
  const tarn__adam_options options = {.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-8};
  tarn__adam_factors factors;
  tarn__adam_factors_set(&factors, &options, 13, 1.0);
  t->stepper.factors = &factors;
  assert_int_equal(tarn__stepper_train(&t->stepper, &loss, &loaded->batch, 99), TARN_STATUS_OK);
  t->stepper.factors = NULL;
}

// The norm of the gradients of such a step of the same training with updates at the end.
static double norm_at_the_end(void) {
  const char *keys[] = {AT_END, "train.recompute=block"};
  tarn_train *t = tiny_open_train("tiny.yaml", "norm", keys, 2);
  tarn_train_result result;
  assert_int_equal(tarn_train_run(t, &result), TARN_STATUS_OK);
  for (size_t i = 0; i < t->model->param_count; i++) t->model->params[i]->training.grad_written = false;
  step_more(t);
  double norm;
  assert_int_equal(t->model->device->type->grad_norm(t->model->device, &norm, &t->params, 1), TARN_STATUS_OK);
  tarn_train_close(&t);
  return norm;
}

static void gradients_have_no_memory(void **state) {
  (void)state;
  const double norm = norm_at_the_end();
  const char *keys[] = {AT_ONCE, "train.recompute=block"};
  tarn_train *t = tiny_open_train("tiny.yaml", "memory", keys, 2);
  tarn__model_size size;
  tarn__model_measure(t->model, &size);
  assert_true(t->model->updates_at_once);
  assert_true(size.gradient_bytes == 0 && size.optimiser_bytes > 0);
  assert_true(t->plan.gradient_bytes == 0);
  tarn_train_result result;
  assert_int_equal(tarn_train_run(t, &result), TARN_STATUS_OK);
  assert_null(t->stepper.factors);
  // The average was loaded, and a validation came last. What the workspace holds of that is in no gradient.
  const double before = t->numbers.there->squares;
  step_more(t);
  assert_true(norm > 0 && fabs(sqrt(t->numbers.there->squares - before) - norm) <= 1e-6 * norm);
  for (size_t i = 0; i < t->model->param_count; i++) {
    const tarn__param *param = t->model->params[i];
    assert_null(param->training.grad);
    assert_int_equal(count_updates(&t->stepper.graph, param), param->trained);
    check_order(&t->stepper.graph, param);
  }
  tarn__stepper_loss loss;
  const tarn__loaded *loaded = tarn__loader_next(t->loader);
  assert_int_equal(tarn__stepper_train(&t->stepper, &loss, &loaded->batch, 99), TARN_STATUS_INTERNAL);
  for (size_t i = 0; i < t->model->param_count; i++) assert_null(t->model->params[i]->training.grad);
  tarn_train_close(&t);
}

// Nor is memory taken for the largest parameter on its way from a file.
static void loading_takes_no_copy(void **state) {
  (void)state;
  const char *keys[] = {AT_ONCE};
  tarn_train *t = tiny_open_train("tiny.yaml", "loaded", keys, 1);
  tarn_train_result result;
  assert_int_equal(tarn_train_run(t, &result), TARN_STATUS_OK);
  size_t largest = 0;
  for (size_t i = 0; i < t->model->param_count; i++) {
    const tarn__param *param = t->model->params[i];
    const size_t bytes = (size_t)(param->rows * param->cols) * sizeof(float);
    if (bytes > largest) largest = bytes;
  }
  tarn__checkpoint_file file;
  assert_int_equal(tarn__checkpoint_file_open(&file, "loaded/checkpoint_last.safetensors"), TARN_STATUS_OK);
  const size_t before = tarn__memory_peak(TARN__MEMORY_OTHER);
  void *rest;
  assert_int_equal(tarn__alloc(&rest, TARN__MEMORY_OTHER, before - tarn__memory_now(TARN__MEMORY_OTHER), 1),
                   TARN_STATUS_OK);
  assert_int_equal(tarn__checkpoint_file_load(&file, t->model, true), TARN_STATUS_OK);
  assert_true(tarn__memory_peak(TARN__MEMORY_OTHER) < before + largest);
  tarn__free(rest);
  tarn__checkpoint_file_close(&file);
  tarn_train_close(&t);
}

static size_t own_bytes;

static tarn_status count_own(const tarn__device *device, void **out, tarn__memory_kind kind, size_t count,
                             size_t size) {
  own_bytes += count * size;
  return tarn__device_cpu.type->allocate(device, out, kind, count, size);
}

// Sums take the room that there is, and of their own only what is left.
static void averages_fill_the_room(void **state) {
  (void)state;
  const char *keys[] = {AT_ONCE};
  run_through("averaged", keys, 1);
  const char *files[] = {"averaged/checkpoint_last.safetensors", "averaged/checkpoint_best.safetensors"};
  tarn__device_type type = *tarn__device_cpu.type;
  type.allocate = count_own;
  const tarn__device device = {.type = &type, .name = "counted"};
  own_bytes = 0;
  assert_int_equal(tarn__checkpoint_average("averaged/none.safetensors", files, 2, &device, NULL, 0), TARN_STATUS_OK);
  const size_t need = own_bytes, room_bytes = need / 2;
  void *room;
  assert_int_equal(tarn__alloc(&room, TARN__MEMORY_OTHER, room_bytes, 1), TARN_STATUS_OK);
  memset(room, 0x7f, room_bytes);
  own_bytes = 0;
  assert_int_equal(tarn__checkpoint_average("averaged/half.safetensors", files, 2, &device, room, room_bytes),
                   TARN_STATUS_OK);
  assert_true(own_bytes >= need - room_bytes && own_bytes < need);
  tarn__free(room);
  char *a, *b;
  size_t sizes[2];
  assert_int_equal(tarn__file_read("averaged/none.safetensors", &a, &sizes[0]), TARN_STATUS_OK);
  assert_int_equal(tarn__file_read("averaged/half.safetensors", &b, &sizes[1]), TARN_STATUS_OK);
  assert_int_equal(sizes[0], sizes[1]);
  assert_memory_equal(a, b, sizes[0]);
  tarn__free(a);
  tarn__free(b);
}

// What needs all gradients at once, or more than one batch, waits.
static void others_wait(void **state) {
  (void)state;
  static const char *const waits[] = {"train.clip_norm=1", "train.accumulate=2", "train.autofreeze=3",
                                      "kinds.R.backskip={method: feedback, refresh: 4}"};
  for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
    const char *keys[] = {AT_ONCE, waits[i]};
    tarn_config *config;
    assert_int_equal(tarn_config_read(&config, "tiny.yaml", keys, 1), TARN_STATUS_OK);
    assert_true(tarn__plan_updates_at_once(config, 1));
    assert_false(tarn__plan_updates_at_once(config, 2));
    config->train.cache_frozen = true;  // which tiny.yaml has nothing for, as for ridge
    assert_false(tarn__plan_updates_at_once(config, 1));
    config->train.cache_frozen = false;
    config->train.optimiser = TARN_OPTIMISER_RIDGE;
    assert_false(tarn__plan_updates_at_once(config, 1));
    tarn_config_close(&config);
    assert_int_equal(tarn_config_read(&config, "tiny.yaml", keys, 2), TARN_STATUS_OK);
    assert_false(tarn__plan_updates_at_once(config, 1));
    tarn_config_close(&config);
  }
}

static void poison(void *user, const tarn_train_event *event) {
  tarn_train *train = *(tarn_train **)user;
  if (event->kind != TARN_TRAIN_EVENT_UPDATE || event->update != 7) return;
  for (size_t i = 0; i < train->model->param_count; i++) {
    tarn__param *param = train->model->params[i];
    if (param->trained) ((float *)param->value)[0] = 1e30f;
  }
}

// The weights are lost, but not the last good checkpoint.
static void a_norm_that_is_not_finite_ends_it(void **state) {
  (void)state;
  tarn_train *train;
  tarn_train_options options;
  tarn_train_default(&options);
  const char *keys[] = {AT_ONCE};
  options.config = "tiny.yaml";
  options.run = "poisoned";
  options.overrides = keys;
  options.override_count = 1;
  options.on_event = poison;
  options.user = &train;
  assert_int_equal(tarn_train_open(&train, &options), TARN_STATUS_OK);
  tarn_train_result result;
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_NUMERIC);
  tarn_train_close(&train);
  tarn__checkpoint_file file;
  assert_int_equal(tarn__checkpoint_file_open(&file, "poisoned/checkpoint_last.safetensors"), TARN_STATUS_OK);
  assert_true(file.update > 0 && file.update <= 7);
  tarn__checkpoint_file_close(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(bits_are_those_of_updates_at_the_end, tiny_open, sandbox_close),
      cmocka_unit_test_setup_teardown(gradients_have_no_memory, tiny_open, sandbox_close),
      cmocka_unit_test_setup_teardown(loading_takes_no_copy, tiny_open, sandbox_close),
      cmocka_unit_test_setup_teardown(averages_fill_the_room, tiny_open, sandbox_close),
      cmocka_unit_test_setup_teardown(others_wait, tiny_open, sandbox_close),
      cmocka_unit_test_setup_teardown(a_norm_that_is_not_finite_ends_it, tiny_open, sandbox_close)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
