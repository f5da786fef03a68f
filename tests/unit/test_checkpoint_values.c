// Values of single parameters: mapped, drawn, widened; each is what the whole model has.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "store/checkpoint.h"
#include "store/checkpoint_check.h"
#include "store/checkpoint_keys.h"
#include "tarn/checkpoint.h"
#include "tarn/process.h"
#include "tiny_run.h"

static const char description[] =
    "model: { d_model: 16, embeddings: all }\n"
    "encoder: { layers: \"(R1 L1)*2 E F\" }\n"
    "decoder: { layers: L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "  E: { mixer: esn, ffn: 32, frozen: yes }\n"
    "  F: { mixer: performer, heads: 2, ffn: 32, redraw: 5 }\n";

static tarn_config *config;
static tarn_vocab *vocab;

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  vocab = make_vocab(TINY_VOCAB);
  if (tarn_config_parse(&config, "m.yaml", description, strlen(description), NULL, 0) != TARN_STATUS_OK) return -1;
  tarn__model *model;
  assert_int_equal(tarn__model_open(&model, config, TINY_VOCAB, TINY_VOCAB, TARN__F32, false), TARN_STATUS_OK);
  assert_int_equal(tarn__model_allocate(model), TARN_STATUS_OK);
  tarn__model_set_draws(model, 17);  // which the file's update asks for
  assert_int_equal(tarn__model_initialise(model, 3), TARN_STATUS_OK);
  const tarn__checkpoint_extra extra = {.source = vocab, .target = vocab, .update = 17};
  assert_int_equal(tarn__checkpoint_save("c", model, &extra), TARN_STATUS_OK);
  tarn__model_close(&model);
  assert_int_equal(tarn_checkpoint_export("dense", "c"), TARN_STATUS_OK);
  return 0;
}

static int close_all(void **state) {
  tarn_vocab_close(&vocab);
  tarn_config_close(&config);
  return sandbox_close(state);
}

static float values[TINY_VOCAB * 64], expected[TINY_VOCAB * 64];

// Every parameter of the file against that of the model which is opened from `model`; *mapped counts those in the file.
static void same_as_model(const char *path, const char *model, tarn__dtype dtype, size_t *mapped, size_t *drawn) {
  tarn_checkpoint_info *info;
  tarn__checkpoint *c;
  *mapped = *drawn = 0;
  assert_int_equal(tarn_checkpoint_info_open(&info, path), TARN_STATUS_OK);
  assert_int_equal(tarn__checkpoint_open(&c, model, dtype), TARN_STATUS_OK);
  assert_int_equal(info->param_count, c->model->param_count);
  for (size_t i = 0; i < info->param_count; i++) {
    const size_t bytes = (size_t)(info->params[i].rows * info->params[i].cols) * sizeof *values;
    assert_true(bytes <= sizeof values);
    if (tarn_checkpoint_info_values(info, i, values) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
    assert_int_equal(tarn__param_get(c->model->params[i], expected), TARN_STATUS_OK);
    if (memcmp(values, expected, bytes) != 0) fail_msg("%s of %s differs", info->params[i].name, path);
    const float *place = tarn_checkpoint_info_mapped(info, i);
    *mapped += place != NULL;
    *drawn += info->params[i].recipe != NULL;
    if (place) assert_memory_equal(place, expected, bytes);
  }
  assert_null(tarn_checkpoint_info_mapped(info, info->param_count));
  assert_int_equal(tarn_checkpoint_info_values(info, info->param_count, values), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "there is no parameter number"));
  tarn__checkpoint_close(&c);
  tarn_checkpoint_info_close(&info);
}

static void are_those_of_the_model(void **state) {
  (void)state;
  size_t mapped, drawn;
  same_as_model("c", "c", TARN__F32, &mapped, &drawn);
  assert_true(mapped > 10 && drawn > 10);
  same_as_model("dense", "c", TARN__F32, &mapped, &drawn);
  assert_true(mapped > 20 && drawn == 0);
}

static void are_widened(void **state) {
  (void)state;
  size_t mapped, drawn, all;
  same_as_model("c", "c", TARN__F32, &all, &drawn);
  assert_int_equal(tarn_checkpoint_export_bf16("half", "dense"), TARN_STATUS_OK);
  same_as_model("half", "half", TARN__BF16, &mapped, &drawn);
  assert_true(mapped > 0 && mapped < all && drawn == 0);
}

// Against the scales and numbers of the file itself.
static void int8_is_multiplied_by_its_scales(void **state) {
  (void)state;
  tarn_checkpoint_info *info;
  tarn__safetensors file;
  size_t rounded = 0;
  assert_int_equal(tarn_checkpoint_export_int8("int8", "dense"), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_info_open(&info, "int8"), TARN_STATUS_OK);
  assert_int_equal(tarn__safetensors_open(&file, "int8"), TARN_STATUS_OK);
  for (size_t i = 0; i < info->param_count; i++) {
    char name[256];
    snprintf(name, sizeof name, "%s.scale", info->params[i].name);
    const tarn__stored *scales = tarn__safetensors_find(&file, name);
    assert_int_equal(tarn_checkpoint_info_values(info, i, values), TARN_STATUS_OK);
    if (!scales) continue;
    const signed char *numbers = tarn__safetensors_find(&file, info->params[i].name)->data;
    const float *scale = scales->data;
    rounded++;
    for (int64_t k = 0; k < info->params[i].rows * info->params[i].cols; k++)
      assert_true(values[k] == scale[k / info->params[i].cols] * (float)numbers[k]);
    assert_null(tarn_checkpoint_info_mapped(info, i));
  }
  assert_true(rounded > 5);
  tarn__safetensors_close(&file);
  tarn_checkpoint_info_close(&info);
}

static void int4_is_multiplied_by_its_scales(void **state) {
  (void)state;
  tarn_checkpoint_info *info;
  tarn_checkpoint_stored stored;
  tarn__safetensors file;
  size_t rounded = 0;
  assert_int_equal(tarn_checkpoint_export_int4("int4", "dense"), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_info_open(&info, "int4"), TARN_STATUS_OK);
  assert_int_equal(tarn__safetensors_open(&file, "int4"), TARN_STATUS_OK);
  for (size_t i = 0; i < info->param_count; i++) {
    const tarn_checkpoint_param *p = &info->params[i];
    char name[256];
    snprintf(name, sizeof name, "%s.scale", p->name);
    const tarn__stored *numbers = tarn__safetensors_find(&file, p->name), *scales = tarn__safetensors_find(&file, name);
    if (!scales || strcmp(numbers->dtype, "U8") != 0) continue;
    assert_int_equal(tarn_checkpoint_info_values(info, i, values), TARN_STATUS_OK);
    assert_false(tarn_checkpoint_info_stored(info, &stored, i));
    rounded++;
    for (int64_t k = 0; k < p->rows * p->cols; k++) {
      const int64_t row = k / p->cols, col = k % p->cols;
      const unsigned char *group = (const unsigned char *)numbers->data + row * numbers->shape[1] + col / 32 * 17;
      const int both = group[1 + col % 32 / 2],
                number = (signed char)group[0] * ((col % 2 ? both >> 4 : both & 15) - 8);
      assert_true(values[k] == ((const float *)scales->data)[row] * (float)number);
    }
  }
  assert_true(rounded > 5);
  tarn__safetensors_close(&file);
  tarn_checkpoint_info_close(&info);
}

// A file of another tool, whose header is a byte shorter.
static void unaligned_ones_are_copied(void **state) {
  (void)state;
  char *bytes;
  size_t size, mapped, drawn;
  assert_int_equal(tarn__file_read("c", &bytes, &size), TARN_STATUS_OK);
  const size_t length = (size_t)(unsigned char)bytes[0] | (size_t)(unsigned char)bytes[1] << 8;
  assert_true(bytes[2] == 0 && length > 300 && length < size);
  assert_int_equal(bytes[8 + length - 1], ' ');
  memmove(bytes + 8 + length - 1, bytes + 8 + length, size - 8 - length);
  bytes[0] = (char)((length - 1) & 255);
  bytes[1] = (char)((length - 1) >> 8);
  sandbox_write("moved", bytes, size - 1);
  tarn__free(bytes);
  same_as_model("moved", "c", TARN__F32, &mapped, &drawn);
  assert_true(mapped == 0 && drawn > 0);
}

static void fails(const char *path, tarn_status status, const char *words) {
  tarn_checkpoint_info *info;
  tarn_status got = TARN_STATUS_OK;
  assert_int_equal(tarn_checkpoint_info_open(&info, path), TARN_STATUS_OK);
  for (size_t i = 0; i < info->param_count && got == TARN_STATUS_OK; i++)
    got = tarn_checkpoint_info_values(info, i, values);
  assert_int_equal(got, status);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  tarn_checkpoint_info_close(&info);
}

// Looking into a file draws nothing, so that a line whose hash is wrong is found when it is drawn.
static void are_checked(void **state) {
  (void)state;
  char recipe[512] = "";
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_open(&file, "c"), TARN_STATUS_OK);
  for (size_t i = 0; i < file.text_count; i++) {
    if (strcmp(file.texts[i].key, TARN__KEY_FROZEN "encoder.R1.ffn.in.weight") != 0) continue;
    snprintf(recipe, sizeof recipe, "%s", file.texts[i].text);
    recipe[strlen(recipe) - 1] ^= 1;
    file.texts[i].text = recipe;
  }
  assert_true(*recipe);
  assert_int_equal(tarn__checkpoint_write("bad", file.tensors, file.count, file.texts, file.text_count),
                   TARN_STATUS_OK);
  tarn__safetensors_close(&file);
  fails("bad", TARN_STATUS_DATA, "encoder.R1.ffn.in.weight cannot be made again");
  tarn_limits limits = {.max_operations = 10};
  tarn_limits_set(&limits);
  fails("c", TARN_STATUS_DATA, "--max-operations");
  tarn_limits_default(&limits);
  tarn_limits_set(&limits);
}

// A reader of a file that was replaced in place never gets a mixture of the old and the new values.
static void a_changed_file_is_noticed(void **state) {
  (void)state;
  char *bytes;
  size_t size;
  tarn_checkpoint_info *info;
  assert_int_equal(tarn__file_read("c", &bytes, &size), TARN_STATUS_OK);
  sandbox_write("other", bytes, size);
  assert_int_equal(tarn_checkpoint_info_open(&info, "other"), TARN_STATUS_OK);
  FILE *file = fopen("other", "ab");
  assert_non_null(file);
  assert_int_equal(fputc('x', file), 'x');
  assert_int_equal(fclose(file), 0);
  assert_int_equal(tarn_checkpoint_info_values(info, 0, values), TARN_STATUS_IO);
  assert_non_null(strstr(tarn_error_message(), "other"));
  tarn_checkpoint_info_close(&info);
  tarn__free(bytes);
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  tarn_checkpoint_info *info;
  assert_int_equal(tarn_checkpoint_info_open(&info, "c"), TARN_STATUS_OK);
  const size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  size_t failures = 0;
  for (size_t i = 0; i < info->param_count; i++) {
    tarn_status status = TARN_STATUS_MEMORY;
    for (uint64_t n = 1; status != TARN_STATUS_OK && n < 100; n++) {
      tarn__memory_fail_after(n);
      status = tarn_checkpoint_info_values(info, i, values);
      tarn__memory_fail_after(0);
      if (status != TARN_STATUS_OK) assert_int_equal(status, TARN_STATUS_MEMORY);
      failures += status != TARN_STATUS_OK;
      assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
    }
    assert_int_equal(status, TARN_STATUS_OK);
  }
  assert_true(failures > 0);
  tarn_checkpoint_info_close(&info);
}

// Moments in 8 bits: a scale that no optimiser makes would make the whole block wrong.
static void scales_of_moments_are_checked(void **state) {
  (void)state;
  unsigned char blocks[2][TARN__MOMENT_SCALE + TARN__MOMENT_BLOCK] = {{0}};
  tarn__stored stored[2] = {
      {.name = TARN__TENSOR_MOMENT1 "a", .dtype = "U8", .dims = 1, .shape = {sizeof blocks}, .data = blocks},
      {.name = TARN__TENSOR_MOMENT2 "a", .dtype = "U8", .dims = 1, .shape = {sizeof blocks}, .data = blocks}};
  stored[0].bytes = stored[1].bytes = sizeof blocks;
  const tarn__safetensors file = {.tensors = stored, .count = 2, .path = "file"};
  const tarn__param param = {
      .name = "a", .rows = 2, .cols = 200, .trained = true, .training.moments = TARN__MOMENTS_F8};
  const float good[] = {0, 0x1p-111f, 1, 0x1p127f, INFINITY}, bad[] = {-1, 1.5f, 0x1p-112f, -0.0f, NAN, -INFINITY};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    memcpy(blocks[1], &good[i], sizeof *good);
    assert_int_equal(tarn__checkpoint_check_moments(&file, &param), TARN_STATUS_OK);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    memcpy(blocks[1], &bad[i], sizeof *bad);
    assert_int_equal(tarn__checkpoint_check_moments(&file, &param), TARN_STATUS_DATA);
    assert_non_null(strstr(tarn_error_message(), "file: block 1 of tensor \"optimiser.moment1.a\" has the scale"));
  }
  stored[0].bytes -= 1;
  assert_int_equal(tarn__checkpoint_check_moments(&file, &param), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "is not U8 of 520"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(are_those_of_the_model),           cmocka_unit_test(are_widened),
      cmocka_unit_test(int8_is_multiplied_by_its_scales), cmocka_unit_test(int4_is_multiplied_by_its_scales),
      cmocka_unit_test(unaligned_ones_are_copied),        cmocka_unit_test(are_checked),
      cmocka_unit_test(a_changed_file_is_noticed),        cmocka_unit_test(survives_lack_of_memory),
      cmocka_unit_test(scales_of_moments_are_checked)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
