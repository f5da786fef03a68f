// How the parameters of a model are cut among ranks that share the optimiser: every element once, all ranks alike, and
// an update of all parts is one of the whole.
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
#include "dist/optim_parts.h"
#include "list_optimiser.h"

static const char plain[] =
    "model: { d_model: 96, max_length: 33 }\n"
    "encoder: { layers: L R }\n"
    "decoder: { layers: L*2 }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 4, ffn: 200 }\n"
    "  R: { mixer: attention, heads: 4, ffn: 200, frozen: yes }\n"
    "train: { shard_optimiser: yes }\n";

// Tables whose rows are told apart, of a width that is no multiple of a block of random numbers; sums of AutoFreeze;
// predictors of backskipping.
static const char odd[] =
    "model: { d_model: 20, embeddings: none, positions: learned, max_length: 33 }\n"
    "encoder: { layers: L R L1 }\n"
    "decoder: { layers: L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 30 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 30, frozen: yes, backskip: { method: predictor, refresh: 3 } }\n"
    "train: { shard_optimiser: yes, autofreeze: 5, precision: bf16, moments: bf16 }\n";

// The same with blocks that are no rows.
static const char blocks[] =
    "model: { d_model: 20, embeddings: none, positions: learned, max_length: 33 }\n"
    "encoder: { layers: L R L1 }\n"
    "decoder: { layers: L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 300 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 300, frozen: yes, backskip: { method: predictor, refresh: 3 } }\n"
    "train: { shard_optimiser: yes, precision: bf16, moments: fp8 }\n";

static void open_model(tarn__model **model, tarn_config **config, const char *text) {
  if (tarn_config_parse(config, "test", text, strlen(text), NULL, 0) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  const tarn__dtype dtype = (*config)->train.precision == TARN_PRECISION_BF16 ? TARN__BF16 : TARN__F32;
  if (tarn__model_open(model, *config, 1003, 1003, dtype, true) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// Parts follow each other, begin with whole blocks and, in tables, with whole rows; nothing is left out.
static void check_cut(const tarn__optim_parts *parts) {
  for (size_t i = 0; i < parts->count; i++) {
    const tarn__param *param = tarn__model_param(parts->model, i);
    int64_t at = 0;
    for (int r = 0; r < parts->ranks; r++) {
      const tarn__optim_range range = tarn__optim_part_of(parts, i, r);
      assert_int_equal(range.first, at);
      assert_true(range.count >= 0);
      if (range.count > 0)
        assert_int_equal(range.first % tarn__moment_divisor(tarn__model_moments(parts->model, param)), 0);
      if (range.count > 0 && param->training.used_rows) assert_int_equal(range.first % param->cols, 0);
      at += range.count;
    }
    assert_int_equal(at, param->trained ? param->rows * param->cols : 0);
  }
}

static void every_element_has_one_rank(void **state) {
  (void)state;
  static const char *const texts[] = {plain, odd, blocks};
  static const int sizes[] = {1, 2, 3, 4, 7, 16, 64, 1000};
  for (size_t k = 0; k < 3; k++) {
    tarn_config *config;
    tarn__model *model;
    open_model(&model, &config, texts[k]);
    assert_int_equal(tarn__model_allocate(model), TARN_STATUS_OK);
    tarn__model_size size;
    tarn__model_measure(model, &size);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      size_t most = 0, all = 0;
      tarn__optim_parts parts;
      assert_int_equal(tarn__optim_parts_open(&parts, model, sizes[s] - 1, sizes[s]), TARN_STATUS_OK);
      check_cut(&parts);
      for (int r = 0; r < sizes[s]; r++) {
        const size_t bytes = tarn__optim_parts_moments(&parts, r);
        if (bytes > most) most = bytes;
        all += bytes;
      }
      // All are even, until a unit is much of what a rank has, as that of blocks in a table is.
      if (sizes[s] <= (texts[k] == blocks ? 1 : 4))
        assert_true((double)most * sizes[s] < 1.02 * (double)size.optimiser_bytes);
      // Small parts are rounded up to whole lines.
      assert_true((double)all < 1.02 * (double)size.optimiser_bytes + 4096.0 * sizes[s]);
      tarn__optim_parts_close(&parts);
    }
    tarn__model_close(&model);
    tarn_config_close(&config);
  }
}

// The plan of several ranks has the optimiser's memory of one of them, and the sum of all is still the total.
static void plans_have_the_memory_of_one_rank(void **state) {
  (void)state;
  static const char *const texts[] = {plain, odd};
  for (size_t k = 0; k < 2; k++)
    for (int ranks = 1; ranks <= 4; ranks++) {
      tarn_config *config;
      tarn__model *model;
      open_model(&model, &config, texts[k]);
      tarn__model_size size;
      tarn__model_measure(model, &size);
      tarn_plan plan = {.optimiser_bytes = size.optimiser_bytes, .trained_bytes = size.trained_bytes};
      plan.total_bytes = 1000000000;
      const size_t rest = plan.total_bytes - plan.optimiser_bytes - plan.trained_bytes;
      assert_int_equal(tarn__plan_share(&plan, model, ranks), TARN_STATUS_OK);
      assert_true(abs((int)((double)plan.optimiser_bytes * ranks / (double)size.optimiser_bytes * 1000) - 1000) <= 20);
      assert_int_equal(plan.total_bytes - plan.optimiser_bytes - plan.trained_bytes, rest);
      // Master copies of bf16 are apart as well.
      assert_true(k == 1 && ranks > 1 ? plan.trained_bytes < size.trained_bytes
                                      : plan.trained_bytes == size.trained_bytes);
      config->train.shard_optimiser = false;
      plan.optimiser_bytes = size.optimiser_bytes;
      assert_int_equal(tarn__plan_share(&plan, model, ranks), TARN_STATUS_OK);
      assert_int_equal(plan.optimiser_bytes, size.optimiser_bytes);
      tarn__model_close(&model);
      tarn_config_close(&config);
    }
}

static float number(size_t i, size_t k) {
  return (float)(((i * 2654435761u + k * 40503u) >> 7) % 2001) / 1000.0f - 1.0f;
}

// Values, master copies, gradients, and a table of which some rows were used.
static void fill(tarn__model *model) {
  for (size_t i = 0; i < model->param_count + model->helper_count; i++) {
    tarn__param *param = tarn__model_param(model, i);
    const size_t count = (size_t)(param->rows * param->cols);
    if (!param->trained) continue;
    void *memory;
    assert_int_equal(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(float)), TARN_STATUS_OK);
    for (size_t k = 0; k < count; k++) ((float *)memory)[k] = number(i, k);
    assert_int_equal(tarn__param_set(param, memory), TARN_STATUS_OK);
    tarn__free(memory);
    for (size_t k = 0; k < count; k++) ((float *)param->training.grad)[k] = number(i + 1, k);
    param->training.grad_written = i % 7 != 3;
    param->training.number = (uint32_t)i;
    if (!param->training.used_rows) continue;
    for (int64_t row = 0; row < param->rows; row++) param->training.used_rows[row] = row % 3 == 0;
    for (int64_t row = 0; row < param->rows; row++)
      if (row % 3 != 0)
        memset((float *)param->training.grad + row * param->cols, 0, (size_t)param->cols * sizeof(float));
  }
}

// Moments of whole parameters.
static void *take_moments(tarn__model *model) {
  void *memory;
  tarn__model_size size;
  tarn__model_measure(model, &size);
  assert_int_equal(tarn__alloc(&memory, TARN__MEMORY_OPTIMISER, size.optimiser_bytes, 1), TARN_STATUS_OK);
  char *next = memory;
  for (size_t i = 0; i < model->param_count + model->helper_count; i++) {
    tarn__param *param = tarn__model_param(model, i);
    if (!param->trained) continue;
    param->training.moments = tarn__model_moments(model, param);
    param->training.moment1 = next;
    param->training.moment2 = next + tarn__model_moment_bytes(model, param);
    next += 2 * tarn__model_moment_bytes(model, param);
  }
  return memory;
}

static void assert_part(const tarn__param *part, const tarn__param *whole) {
  const size_t count = (size_t)(part->rows * part->cols), first = (size_t)part->training.first;
  const size_t value = tarn__dtype_size(part->dtype), before = tarn__moment_bytes(part->training.moments, first);
  const size_t bytes = tarn__moment_bytes(part->training.moments, count);
  assert_memory_equal(part->training.moment1, (char *)whole->training.moment1 + before, bytes);
  assert_memory_equal(part->training.moment2, (char *)whole->training.moment2 + before, bytes);
  assert_memory_equal(part->training.master, whole->training.master + first, count * sizeof(float));
  assert_memory_equal(part->value, (char *)whole->value + first * value, count * value);
}

// Three updates of every part have the bits of three updates of the whole, random rounding and unused rows included.
static void parts_are_updated_as_the_whole(void **state) {
  (void)state;
  static const char *const texts[] = {plain, odd, blocks};
  static const tarn__device *const devices[] = {&tarn__device_cpu, &tarn__device_reference};
  const tarn__adam_options options = {.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-8, .seed = 5};
  for (size_t k = 0; k < 6; k++)
    for (int ranks = 2; ranks <= 5; ranks += 3) {
      const tarn__device *device = devices[k / 3];
      tarn_config *config;
      tarn__model *whole, *shared;
      open_model(&whole, &config, texts[k % 3]);
      assert_int_equal(tarn__model_allocate(whole), TARN_STATUS_OK);
      fill(whole);
      void *moments = take_moments(whole);
      const size_t count = whole->param_count + whole->helper_count;
      for (int64_t step = 1; step <= 3; step++)
        for (size_t i = 0; i < count; i++) {
          tarn__param *const one[] = {tarn__model_param(whole, i)};
          step_list(device, one, 1, &options, step, 0.5, 2);
        }
      for (int r = 0; r < ranks; r++) {
        tarn__optim_parts parts;
        assert_int_equal(tarn__model_open(&shared, config, 1003, 1003, whole->dtype, true), TARN_STATUS_OK);
        shared->shares_optimiser = true;
        assert_int_equal(tarn__model_allocate(shared), TARN_STATUS_OK);
        assert_int_equal(tarn__optim_parts_open(&parts, shared, r, ranks), TARN_STATUS_OK);
        assert_int_equal(tarn__optim_parts_take(&parts), TARN_STATUS_OK);
        fill(shared);
        tarn__optim_parts_refresh(&parts);
        for (int64_t step = 1; step <= 3; step++) step_list(device, parts.list, parts.count, &options, step, 0.5, 2);
        for (size_t i = 0; i < count; i++)
          if (tarn__model_param(shared, i)->trained) assert_part(parts.list[i], tarn__model_param(whole, i));
        tarn__optim_parts_close(&parts);
        tarn__model_close(&shared);
      }
      tarn__free(moments);
      tarn__model_close(&whole);
      tarn_config_close(&config);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_element_has_one_rank),
      cmocka_unit_test(plans_have_the_memory_of_one_rank),
      cmocka_unit_test(parts_are_updated_as_the_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
