// Checkpoints: round trip, no byte of frozen weights, damage of every kind, averages, dense export.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "store/checkpoint.h"
#include "store/checkpoint_keys.h"
#include "store/regenerate.h"
#include "tarn/checkpoint.h"
#include "tarn/process.h"
#include "tarn/translate.h"
#include "tiny_run.h"

static tarn_config *config;
static tarn_vocab *vocab;

static tarn__model *make_model(uint64_t seed, tarn__dtype dtype) {
  tarn__model *model;
  assert_int_equal(tarn__model_open(&model, config, TINY_VOCAB, TINY_VOCAB, dtype, false), TARN_STATUS_OK);
  assert_int_equal(tarn__model_allocate(model), TARN_STATUS_OK);
  assert_int_equal(tarn__model_initialise(model, seed), TARN_STATUS_OK);
  return model;
}

static void save(const char *path, uint64_t seed, int64_t update, float shift) {
  tarn__model *model = make_model(seed, TARN__F32);
  for (size_t i = 0; i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    for (int64_t k = 0; param->trained && k < param->rows * param->cols; k++) ((float *)param->value)[k] += shift;
  }
  tarn__checkpoint_extra extra = {.source = vocab, .target = vocab, .update = update};
  assert_int_equal(tarn__checkpoint_save(path, model, &extra), TARN_STATUS_OK);
  tarn__model_close(&model);
}

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  vocab = make_vocab(TINY_VOCAB);
  return tarn_config_parse(&config, "tiny.yaml", tiny_config, strlen(tiny_config), NULL, 0) == TARN_STATUS_OK ? 0 : -1;
}

static int close_all(void **state) {
  tarn_vocab_close(&vocab);
  tarn_config_close(&config);
  return sandbox_close(state);
}

static void assert_same_values(const tarn__param *a, const tarn__param *b) {
  static float x[TINY_VOCAB * 64];
  static float y[TINY_VOCAB * 64];
  assert_string_equal(a->name, b->name);
  assert_true(a->rows * a->cols <= TINY_VOCAB * 64);
  assert_int_equal(tarn__param_get(a, x), TARN_STATUS_OK);
  assert_int_equal(tarn__param_get(b, y), TARN_STATUS_OK);
  assert_memory_equal(x, y, (size_t)(a->rows * a->cols) * sizeof *x);
}

static void comes_back_in(tarn__dtype dtype) {
  save("c", 3, 17, 0);
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "c", dtype), TARN_STATUS_OK);
  tarn__model *model = make_model(3, dtype);
  assert_int_equal(c->update, 17);
  assert_int_equal(c->model->seed, 3);
  assert_ptr_equal(c->source, c->target);
  assert_string_equal(tarn_vocab_hash(c->source), tarn_vocab_hash(vocab));
  assert_int_equal(c->model->param_count, model->param_count);
  for (size_t i = 0; i < model->param_count; i++) assert_same_values(model->params[i], c->model->params[i]);
  tarn__model_close(&model);
  tarn__checkpoint_close(&c);
  tarn__checkpoint_close(&c);
}

static void comes_back(void **state) {
  (void)state;
  comes_back_in(TARN__F32);
  comes_back_in(TARN__BF16);
  comes_back_in(TARN__F64);
}

// The vocabularies within a file, for those who use nothing else of it.
static void gives_its_vocabularies(void **state) {
  (void)state;
  save("c", 3, 17, 0);
  tarn_vocab *source, *target;
  tarn_checkpoint_info *info;
  assert_int_equal(tarn_checkpoint_info_open(&info, "c"), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_vocabs(&source, &target, "c"), TARN_STATUS_OK);
  assert_true(info->joint_vocab);
  assert_int_equal(tarn_vocab_size(source), info->source_vocab);
  assert_null(target);
  tarn_vocab_close(&source);
  tarn_checkpoint_info_close(&info);
  assert_int_equal(tarn_checkpoint_vocabs(&source, &target, "nowhere"), TARN_STATUS_IO);
  assert_true(!source && !target);
}

static void stores_no_frozen_byte(void **state) {
  (void)state;
  save("c", 3, 17, 0);
  tarn_checkpoint_info *info;
  assert_int_equal(tarn_checkpoint_info_open(&info, "c"), TARN_STATUS_OK);
  assert_true(info->frozen > 0);
  assert_int_equal(info->frozen_bytes, 0);
  assert_int_equal(info->optimiser_bytes, 0);
  assert_int_equal(info->trained_bytes, 4 * info->trained);
  assert_string_equal(info->kind, "model");
  // The sets R1 and L1 are used twice each; the table three times.
  int64_t saved = 0;
  bool frozen_seen = false;
  for (size_t i = 0; i < info->param_count; i++) {
    const tarn_checkpoint_param *p = &info->params[i];
    saved += (p->uses - 1) * p->rows * p->cols;
    assert_int_equal(p->stored_bytes, p->trained ? 4 * p->rows * p->cols : 0);
    assert_true(p->trained == (p->recipe == NULL));
    if (strncmp(p->name, "encoder.R1.", 11) == 0) {
      frozen_seen = true;
      assert_false(p->trained);
      assert_string_equal(p->places, "encoder layer 1 3");
    }
    if (strncmp(p->name, "encoder.L1.", 11) == 0) assert_string_equal(p->places, "encoder layer 2 4");
    if (strncmp(p->name, "embeddings", 10) == 0) assert_string_equal(p->places, "source target output");
  }
  assert_true(frozen_seen);
  assert_int_equal(info->shared_uses, saved);
  // No tensor bears the name of a frozen parameter.
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_open(&file, "c"), TARN_STATUS_OK);
  for (size_t i = 0; i < file.count; i++) assert_null(strstr(file.tensors[i].name, ".R1."));
  tarn__safetensors_close(&file);
  tarn_checkpoint_info_close(&info);
}

static void sees_every_flipped_bit(void **state) {
  (void)state;
  char *bytes;
  size_t size;
  save("c", 3, 17, 0);
  assert_int_equal(tarn__file_read("c", &bytes, &size), TARN_STATUS_OK);
  // A prime step reaches every part of the file.
  for (size_t at = 0; at < size; at += getenv("TARN_SANITIZED") ? 997 : 61) {
    bytes[at] ^= (char)(1 << at % 8);
    sandbox_write("bad", bytes, size);
    bytes[at] ^= (char)(1 << at % 8);
    tarn__checkpoint_file file;
    tarn_status status = tarn__checkpoint_file_open(&file, "bad");
    // Spaces behind the header mean nothing, so one that changed to another white space may pass.
    if (status == TARN_STATUS_OK && bytes[at] == ' ') {
      tarn__checkpoint_file_close(&file);
      continue;
    }
    if (status != TARN_STATUS_DATA) fail_msg("a flipped bit in byte %zu gives status %d", at, (int)status);
    assert_non_null(strstr(tarn_error_message(), "bad"));
  }
  for (size_t cut = 0; cut < size; cut = cut * 5 / 4 + 1) {
    sandbox_write("bad", bytes, cut);
    tarn__checkpoint_file file;
    assert_int_equal(tarn__checkpoint_file_open(&file, "bad"), TARN_STATUS_DATA);
  }
  tarn__free(bytes);
}

// Writes "c" again as "bad" with one text changed, and its hash right.
static void write_changed(const char *key, const char *text) {
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_open(&file, "c"), TARN_STATUS_OK);
  bool found = false;
  for (size_t i = 0; i < file.text_count; i++) {
    if (strcmp(file.texts[i].key, key) != 0) continue;
    file.texts[i].text = text;
    found = true;
  }
  assert_true(found);
  assert_int_equal(tarn__checkpoint_write("bad", file.tensors, file.count, file.texts, file.text_count),
                   TARN_STATUS_OK);
  tarn__safetensors_close(&file);
}

static void refuse(const char *words) {
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "bad", TARN__F32), TARN_STATUS_DATA);
  assert_null(c);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

static void refuses_what_does_not_fit(void **state) {
  (void)state;
  static const char name[] = TARN__KEY_FROZEN "encoder.R1.ffn.in.weight";
  save("c", 3, 17, 0);
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_open(&file, "c"), TARN_STATUS_OK);
  const char *text = tarn__safetensors_text(&file, name);
  assert_non_null(text);
  char recipe[256];
  snprintf(recipe, sizeof recipe, "%s", text);
  tarn__safetensors_close(&file);
  recipe[strlen(recipe) - 1] ^= 1;
  write_changed(name, recipe);
  refuse("cannot be made again");
  write_changed(name, "generator=mt19937 seed=3");
  refuse("is described as");
  write_changed(TARN__KEY_FORMAT, "2");
  refuse("format 2");
  write_changed(TARN__KEY_SEED, "4");
  refuse("is described as");
  write_changed(TARN__KEY_SEED, "many");
  refuse("whole number");
  write_changed(TARN__KEY_SOURCE_VOCAB, "0123456789abcdef0123456789abcdef");
  refuse("is not that of its model (hash 0123456789abcdef0123456789abcdef)");
  write_changed(TARN__KEY_CONFIG, "encoder: { layers: X }");
  refuse("X");
  char *wide;
  const char *more[] = {"model.d_model=32"};
  tarn_config *other;
  assert_int_equal(tarn_config_parse(&other, "t", tiny_config, strlen(tiny_config), more, 1), TARN_STATUS_OK);
  assert_int_equal(tarn_config_write(other, &wide), TARN_STATUS_OK);
  write_changed(TARN__KEY_CONFIG, wide);
  refuse("differ");
  tarn_config_text_close(&wide);
  tarn_config_close(&other);
}

// Nothing is known of values that were not made: no recipe may say that they are those of its empty hash.
static void refuses_recipes_without_hash(void **state) {
  (void)state;
  enum { MOST = 64, RECIPE = 400 };
  static char recipes[MOST][RECIPE];
  size_t count = 0;
  save("c", 3, 17, 0);
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_open(&file, "c"), TARN_STATUS_OK);
  for (size_t i = 0; i < file.text_count; i++) {
    if (strncmp(file.texts[i].key, TARN__KEY_FROZEN, strlen(TARN__KEY_FROZEN)) != 0) continue;
    assert_true(count < MOST);
    snprintf(recipes[count], RECIPE, "%s", file.texts[i].text);
    char *hash = strstr(recipes[count], "hash=");
    assert_non_null(hash);
    hash[strlen("hash=")] = '\0';
    file.texts[i].text = recipes[count++];
  }
  assert_true(count > 0);
  assert_int_equal(tarn__checkpoint_write("bad", file.tensors, file.count, file.texts, file.text_count),
                   TARN_STATUS_OK);
  tarn__safetensors_close(&file);
  refuse("cannot be made again");
}

// Writes "c" again as "bad" with one tensor more or another one, and its hash right. `change` gets all of them.
static void write_tensors(void (*change)(tarn__stored *tensor), const char *name, const tarn__stored *extra) {
  tarn__safetensors file;
  tarn__stored tensors[128];
  assert_int_equal(tarn__safetensors_open(&file, "c"), TARN_STATUS_OK);
  assert_true(file.count < 128);
  size_t count = file.count;
  memcpy(tensors, file.tensors, count * sizeof *tensors);
  bool found = change == NULL;
  for (size_t i = 0; i < count; i++) {
    if (!change || strcmp(tensors[i].name, name) != 0) continue;
    change(&tensors[i]);
    found = true;
  }
  assert_true(found);
  if (extra) tensors[count++] = *extra;
  assert_int_equal(tarn__checkpoint_write("bad", tensors, count, file.texts, file.text_count), TARN_STATUS_OK);
  tarn__safetensors_close(&file);
}

static void label_integers(tarn__stored *tensor) { tensor->dtype = "I32"; }

static void transpose(tarn__stored *tensor) {
  int64_t rows = tensor->shape[0];
  tensor->shape[0] = tensor->shape[1];
  tensor->shape[1] = rows;
}

// Nobody takes the file, not even those who need no model of it.
static void refuse_everywhere(const char *words) {
  tarn_checkpoint_info *info;
  const char *const orders[][2] = {{"bad", "bad"}, {"c", "bad"}, {"bad", "c"}};
  refuse(words);
  assert_int_equal(tarn_checkpoint_info_open(&info, "bad"), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  for (size_t i = 0; i < 3; i++) {
    tarn_status status = tarn_checkpoint_average("out", orders[i], 2);
    // The tensors of the last file are averaged; others may have more.
    assert_int_equal(status, i == 2 && strstr(words, "does not ask") ? TARN_STATUS_OK : TARN_STATUS_DATA);
  }
}

static void refuses_other_tensors(void **state) {
  (void)state;
  static const char name[] = "encoder.L1.ffn.in.weight";
  static const float values[4] = {1, 2, 3, 4};
  static const char *const extra[] = {"stray",
                                      "encoder.L1.ffn.in.weights",
                                      "encoder.layer9.ffn.in.weight",
                                      "optimiser.moment1.encoder.L1.ffn.in.weight",
                                      "backskip.R1.in.weight",
                                      "vocab.sources"};
  save("c", 3, 17, 0);
  write_tensors(label_integers, name, NULL);
  refuse_everywhere("\"encoder.L1.ffn.in.weight\" is not F32 of 32 x 16");
  write_tensors(transpose, name, NULL);
  refuse_everywhere("\"encoder.L1.ffn.in.weight\" is not F32 of 32 x 16");
  for (size_t i = 0; i < sizeof extra / sizeof *extra; i++) {
    char words[128];
    snprintf(words, sizeof words, "does not ask for its tensor \"%s\"", extra[i]);
    const tarn__stored tensor = {extra[i], "F32", 1, {4}, values, sizeof values, NULL, NULL};
    write_tensors(NULL, NULL, &tensor);
    refuse_everywhere(words);
  }
}

// Values and the line that says how they are drawn: one of them would be ignored.
static void refuses_frozen_values_twice(void **state) {
  (void)state;
  static float values[32 * 16];
  tarn__safetensors file;
  save("c", 3, 17, 0);
  assert_int_equal(tarn__safetensors_open(&file, "c"), TARN_STATUS_OK);
  assert_non_null(tarn__safetensors_text(&file, TARN__KEY_FROZEN "encoder.R1.ffn.in.weight"));
  tarn__safetensors_close(&file);
  const tarn__stored tensor = {"encoder.R1.ffn.in.weight", "F32", 2, {32, 16}, values, sizeof values, NULL, NULL};
  write_tensors(NULL, NULL, &tensor);
  refuse("it holds values of encoder.R1.ffn.in.weight as well as the line that says how they are drawn");
  tarn_checkpoint_info *info;
  assert_int_equal(tarn_checkpoint_info_open(&info, "bad"), TARN_STATUS_DATA);
  // A line that nobody understands is seen without drawing anything.
  write_changed(TARN__KEY_FROZEN "encoder.R1.ffn.in.weight", "nonsense");
  assert_int_equal(tarn_checkpoint_info_open(&info, "bad"), TARN_STATUS_DATA);
}

static void averages(void **state) {
  (void)state;
  const char *files[] = {"a", "b"};
  save("a", 3, 10, 1.0f);
  save("b", 3, 20, 2.0f);
  save("mean", 3, 20, 1.5f);
  assert_int_equal(tarn_checkpoint_average("out", files, 2), TARN_STATUS_OK);
  tarn__checkpoint *mean;
  tarn__checkpoint *out;
  assert_int_equal(tarn__checkpoint_open(&mean, "mean", TARN__F32), TARN_STATUS_OK);
  assert_int_equal(tarn__checkpoint_open(&out, "out", TARN__F32), TARN_STATUS_OK);
  for (size_t i = 0; i < mean->model->param_count; i++) {
    const tarn__param *a = mean->model->params[i];
    const tarn__param *b = out->model->params[i];
    for (int64_t k = 0; k < a->rows * a->cols; k++) {
      float difference = ((const float *)a->value)[k] - ((const float *)b->value)[k];
      assert_true(difference < 1e-5f && difference > -1e-5f);
      if (!a->trained) assert_true(difference == 0);
    }
  }
  assert_int_equal(out->update, 20);
  tarn__checkpoint_close(&mean);
  tarn__checkpoint_close(&out);
  tarn_checkpoint_info *info;
  assert_int_equal(tarn_checkpoint_info_open(&info, "out"), TARN_STATUS_OK);
  assert_string_equal(info->kind, "average");
  assert_string_equal(info->averaged, "10 20");
  tarn_checkpoint_info_close(&info);
  const char *many[300];
  for (size_t i = 0; i < 300; i++) many[i] = "a";
  assert_int_equal(tarn_checkpoint_average("out", many, 300), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_info_open(&info, "out"), TARN_STATUS_OK);
  assert_int_equal(strlen(info->averaged), 300 * strlen("10 ") - 1);
  tarn_checkpoint_info_close(&info);
  save("b", 4, 20, 2.0f);  // other frozen weights
  assert_int_equal(tarn_checkpoint_average("out", files, 2), TARN_STATUS_DATA);
  assert_int_equal(tarn_checkpoint_average("out", files, 0), TARN_STATUS_USAGE);
}

static void exports_everything(void **state) {
  (void)state;
  save("c", 3, 17, 0);
  assert_int_equal(tarn_checkpoint_export("dense", "c"), TARN_STATUS_OK);
  tarn__model *model = make_model(3, TARN__F32);
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_open(&file, "dense"), TARN_STATUS_OK);
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const tarn__stored *tensor = tarn__safetensors_find(&file, param->name);
    assert_non_null(tensor);
    assert_string_equal(tensor->dtype, "F32");
    assert_memory_equal(tensor->data, param->value, tensor->bytes);
  }
  tarn__safetensors_close(&file);
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "dense", TARN__F32), TARN_STATUS_OK);
  for (size_t i = 0; i < model->param_count; i++) assert_same_values(model->params[i], c->model->params[i]);
  tarn__checkpoint_close(&c);
  tarn__model_close(&model);
}

// The mean of dense files: frozen weights stay as they are, bit by bit, and must be the same in all.
static void averages_dense_files(void **state) {
  (void)state;
  const char *files[] = {"dense", "dense", "dense"};
  save("c", 3, 17, 0);
  assert_int_equal(tarn_checkpoint_export("dense", "c"), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_average("out", files, 3), TARN_STATUS_OK);
  tarn__model *model = make_model(3, TARN__F32);
  tarn__checkpoint *out;
  assert_int_equal(tarn__checkpoint_open(&out, "out", TARN__F32), TARN_STATUS_OK);
  for (size_t i = 0; i < model->param_count; i++)
    if (!model->params[i]->trained) assert_same_values(model->params[i], out->model->params[i]);
  tarn__checkpoint_close(&out);
  for (size_t i = 0; i < model->param_count; i++)
    if (!model->params[i]->trained) ((float *)model->params[i]->value)[0] += 1.0f;
  tarn__checkpoint_extra extra = {.source = vocab, .target = vocab, .update = 17, .dense = true};
  assert_int_equal(tarn__checkpoint_save("other", model, &extra), TARN_STATUS_OK);
  tarn__model_close(&model);
  files[1] = "other";
  assert_int_equal(tarn_checkpoint_average("out", files, 3), TARN_STATUS_DATA);
}

// Signs are in the file as they are and, for other tools, as the matrix they stand for.
static void exports_structured_weights(void **state) {
  (void)state;
  const char *more[] = {"kinds.R.init=hadamard"};
  tarn_config *structured, *usual = config;
  assert_int_equal(tarn_config_parse(&structured, "t", tiny_config, strlen(tiny_config), more, 1), TARN_STATUS_OK);
  config = structured;
  comes_back_in(TARN__BF16);
  stores_no_frozen_byte(state);
  exports_everything(state);
  averages_dense_files(state);
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_open(&file, "dense"), TARN_STATUS_OK);
  const tarn__stored *signs = tarn__safetensors_find(&file, "encoder.R1.ffn.in.signs");
  const tarn__stored *matrix = tarn__safetensors_find(&file, "encoder.R1.ffn.in.weight");
  assert_non_null(signs);
  assert_non_null(matrix);
  assert_int_equal(signs->bytes, 2 * 3 * 16 * sizeof(float));
  assert_int_equal(matrix->shape[0], 32);
  assert_int_equal(matrix->shape[1], 16);
  float sum = 0.0f;
  for (int i = 0; i < 32 * 16; i++) {
    float value;
    memcpy(&value, (const char *)matrix->data + (size_t)i * sizeof value, sizeof value);
    sum += value * value;
  }
  assert_true(sum > 15.999f && sum < 16.001f);
  tarn__safetensors_close(&file);
  // averages_dense_files() left a file in which some signs are other numbers.
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "other", TARN__F32), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "where 1 or -1 was expected"));
  config = usual;
  tarn_config_close(&structured);
}

enum { LINES = 3 };

// Scores of translations by a file, and what it holds.
static void translate(double scores[LINES], const char *path, tarn_translate_precision precision) {
  static const char *const lines[LINES] = {"w3 w4 w5", "w9", "w5 w5 w6 w7 w8"};
  const size_t lengths[LINES] = {8, 2, 14};
  tarn_translate_result results[LINES];
  tarn_translator_options options;
  tarn_translator *translator;
  tarn_translator_default(&options);
  options.precision = precision;
  options.threads = 1;
  assert_int_equal(tarn_translator_open(&translator, path, &options), TARN_STATUS_OK);
  assert_int_equal(tarn_translator_lines(translator, results, lines, lengths, LINES), TARN_STATUS_OK);
  for (int i = 0; i < LINES; i++) scores[i] = results[i].hypotheses[0].score;
  tarn_translator_close(&translator);
}

static void assert_same_translations(const char *a, tarn_translate_precision with, const char *b,
                                     tarn_translate_precision as) {
  double x[LINES], y[LINES];
  translate(x, a, with);
  translate(y, b, as);
  assert_memory_equal(x, y, sizeof x);
}

static void assert_holds(const char *path, const char *precision) {
  tarn_checkpoint_info *info;
  assert_int_equal(tarn_checkpoint_info_open(&info, path), TARN_STATUS_OK);
  assert_string_equal(info->precision, precision);
  tarn_checkpoint_info_close(&info);
}

typedef tarn_status (*writer)(const char *output, const char *path);

// Computing in int8 or int4 gives the same bits of the file in fp32, of one of such integers, and of one that holds
// frozen weights too. `type`: of matrices that are not tables.
static void computes_with(tarn_translate_precision precision, writer write, const char *type) {
  const char *word = tarn_translate_precision_name(precision);
  save("c", 3, 17, 0.01f);
  assert_int_equal(write("q", "c"), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_export("d", "c"), TARN_STATUS_OK);
  assert_int_equal(write("dq", "d"), TARN_STATUS_OK);
  assert_holds("c", "fp32");
  assert_holds("q", word);
  double exact[LINES], rounded[LINES];
  translate(exact, "c", TARN_TRANSLATE_PRECISION_AUTO);
  translate(rounded, "c", precision);
  assert_true(memcmp(exact, rounded, sizeof exact) != 0);
  assert_same_translations("c", precision, "q", TARN_TRANSLATE_PRECISION_AUTO);
  assert_same_translations("c", precision, "q", precision);
  assert_same_translations("c", precision, "dq", TARN_TRANSLATE_PRECISION_AUTO);
  tarn__safetensors plain, dense;
  assert_int_equal(tarn__safetensors_open(&plain, "q"), TARN_STATUS_OK);
  assert_int_equal(tarn__safetensors_open(&dense, "dq"), TARN_STATUS_OK);
  assert_null(tarn__safetensors_find(&plain, "encoder.R1.ffn.in.weight"));
  assert_string_equal(tarn__safetensors_find(&dense, "encoder.R1.ffn.in.weight")->dtype, type);
  assert_string_equal(tarn__safetensors_find(&plain, "encoder.L1.ffn.in.weight")->dtype, type);
  assert_string_equal(tarn__safetensors_find(&plain, "embeddings.weight")->dtype, "I8");
  assert_string_equal(tarn__safetensors_find(&plain, "encoder.L1.ffn.in.bias")->dtype, "F32");
  tarn__safetensors_close(&plain);
  tarn__safetensors_close(&dense);
}

static void computes_with_int8(void **state) {
  (void)state;
  computes_with(TARN_TRANSLATE_PRECISION_INT8, tarn_checkpoint_export_int8, "I8");
}

static void computes_with_int4(void **state) {
  (void)state;
  computes_with(TARN_TRANSLATE_PRECISION_INT4, tarn_checkpoint_export_int4, "U8");
}

// Of a file in bf16 what is looked up or packed stays where the file is.
static void computes_with_mapped_bf16(void **state) {
  (void)state;
  save("c", 3, 17, 0.01f);
  assert_int_equal(tarn_checkpoint_export_bf16("h", "c"), TARN_STATUS_OK);
  assert_holds("h", "bf16");
  tarn__checkpoint *c;
  tarn_translate_precision precision = TARN_TRANSLATE_PRECISION_BF16;
  assert_int_equal(tarn__checkpoint_open_use(&c, "h", &precision, NULL), TARN_STATUS_OK);
  assert_ptr_equal(c->model->weights.source_table->value, c->model->weights.source_table->mapped.value);
  assert_non_null(c->model->weights.source_table->value);
  tarn__checkpoint_close(&c);
  assert_same_translations("c", TARN_TRANSLATE_PRECISION_BF16, "h", TARN_TRANSLATE_PRECISION_BF16);
}

// Writes the dense file `path` as "mixed": every third of the frozen parameters that "c" describes, from `first` on,
// is a line instead of a tensor, and the hash is right.
static void write_mixed(const char *path, size_t first) {
  tarn__safetensors plain, dense;
  tarn__stored tensors[128];
  tarn__stored_text texts[256];
  assert_int_equal(tarn__safetensors_open(&plain, "c"), TARN_STATUS_OK);
  assert_int_equal(tarn__safetensors_open(&dense, path), TARN_STATUS_OK);
  assert_true(dense.count <= 128 && dense.text_count + plain.text_count <= 256);
  size_t count = 0, text_count = dense.text_count, lines = 0;
  memcpy(texts, dense.texts, text_count * sizeof *texts);
  for (size_t i = 0; i < plain.text_count; i++)
    if (strncmp(plain.texts[i].key, TARN__KEY_FROZEN, strlen(TARN__KEY_FROZEN)) == 0 && lines++ % 3 == first)
      texts[text_count++] = plain.texts[i];
  for (size_t i = 0; i < dense.count; i++) {
    bool described = false;
    for (size_t k = dense.text_count; k < text_count; k++) {
      const char *name = texts[k].key + strlen(TARN__KEY_FROZEN), *own = dense.tensors[i].name;
      const size_t length = strlen(name);
      described |= strncmp(own, name, length) == 0 && (own[length] == '\0' || strcmp(own + length, ".scale") == 0);
    }
    if (!described) tensors[count++] = dense.tensors[i];
  }
  assert_int_equal(tarn__checkpoint_write("mixed", tensors, count, texts, text_count), TARN_STATUS_OK);
  tarn__safetensors_close(&dense);
  tarn__safetensors_close(&plain);
}

// Some frozen parameters lie in the file, where nothing can be written, and others are drawn: the values are those of
// the file `path`, which holds them all, and only what is drawn counts against the limits.
static void mixes_tensors_and_lines(const char *path, tarn_translate_precision precision) {
  tarn__checkpoint *all, *mixed;
  assert_int_equal(tarn__checkpoint_open_use(&all, path, &precision, NULL), TARN_STATUS_OK);
  for (size_t first = 0; first < 3; first++) {
    write_mixed(path, first);
    assert_int_equal(tarn__checkpoint_open_use(&mixed, "mixed", &precision, NULL), TARN_STATUS_OK);
    tarn_limits limits = {0};
    size_t lying = 0;
    for (size_t i = 0; i < mixed->model->param_count; i++) {
      const tarn__param *param = mixed->model->params[i];
      if (param->trained) continue;
      const bool lies = param->mapped.value || param->mapped.rounded;
      lying += lies;
      if (!lies) limits.max_operations += tarn__regenerate_param(param).operations;
      if (param->value && all->model->params[i]->value) assert_same_values(param, all->model->params[i]);
    }
    assert_true(lying > 0 && limits.max_operations > 0);
    tarn__checkpoint_close(&mixed);
    tarn_limits_set(&limits);
    assert_same_translations(path, precision, "mixed", precision);
    tarn_limits_default(&limits);
    tarn_limits_set(&limits);
  }
  tarn__checkpoint_close(&all);
}

static void draws_beside_mapped_values(void **state) {
  (void)state;
  save("c", 3, 17, 0.01f);
  assert_int_equal(tarn_checkpoint_export("d", "c"), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_export_bf16("dh", "d"), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_export_int8("dq", "d"), TARN_STATUS_OK);
  assert_int_equal(tarn_checkpoint_export_int4("dr", "d"), TARN_STATUS_OK);
  mixes_tensors_and_lines("dh", TARN_TRANSLATE_PRECISION_BF16);
  mixes_tensors_and_lines("dq", TARN_TRANSLATE_PRECISION_INT8);
  mixes_tensors_and_lines("dr", TARN_TRANSLATE_PRECISION_INT4);
}

// What needs the weights themselves.
static void refuses_for_other_ends(writer write, const char *words, tarn_translate_precision other) {
  const char *const orders[][2] = {{"q", "c"}, {"c", "q"}};
  tarn__checkpoint *c;
  save("c", 3, 17, 0);
  assert_int_equal(write("q", "c"), TARN_STATUS_OK);
  assert_int_equal(tarn__checkpoint_open(&c, "q", TARN__F32), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), words));
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tarn_checkpoint_average("none", orders[i], 2), TARN_STATUS_DATA);
    assert_non_null(strstr(tarn_error_message(), words));
  }
  assert_int_equal(tarn_checkpoint_export("none", "q"), TARN_STATUS_DATA);
  assert_int_equal(tarn_checkpoint_export_bf16("none", "q"), TARN_STATUS_DATA);
  assert_int_equal(tarn_checkpoint_export_int8("none", "q"), TARN_STATUS_DATA);
  assert_int_equal(tarn_checkpoint_export_int4("none", "q"), TARN_STATUS_DATA);
  assert_false(tarn__file_exists("none"));
  tarn_translate_precision precision = TARN_TRANSLATE_PRECISION_FP32;
  assert_int_equal(tarn__checkpoint_open_use(&c, "q", &precision, NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "the precision cannot be fp32"));
  assert_int_equal(tarn__checkpoint_open_use(&c, "q", &other, NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "the precision cannot be int"));
}

static void refuses_integers_for_other_ends(void **state) {
  (void)state;
  refuses_for_other_ends(tarn_checkpoint_export_int8, "q: it holds int8", TARN_TRANSLATE_PRECISION_INT4);
  refuses_for_other_ends(tarn_checkpoint_export_int4, "q: it holds int4", TARN_TRANSLATE_PRECISION_INT8);
}

static void refuse_use(const char *words) {
  tarn__checkpoint *c;
  tarn_checkpoint_info *info;
  tarn_translate_precision precision = TARN_TRANSLATE_PRECISION_AUTO;
  assert_int_equal(tarn__checkpoint_open_use(&c, "bad", &precision, NULL), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  assert_int_equal(tarn_checkpoint_info_open(&info, "bad"), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

static float wrong_scales[80];
static void give_scales(tarn__stored *tensor) {
  assert_true(tensor->bytes <= sizeof wrong_scales);
  tensor->data = wrong_scales;
}
static void halve(tarn__stored *tensor) {
  tensor->shape[0] /= 2;
  tensor->bytes /= 2;
}
static void label_bytes(tarn__stored *tensor) {
  tensor->dtype = "I8";
  tensor->shape[0] = (int64_t)tensor->bytes;
}
static void rename_scales(tarn__stored *tensor) { tensor->name = "encoder.L1.ffn.in.weight.sale"; }
static void label_unsigned(tarn__stored *tensor) { tensor->dtype = "U8"; }

static void refuses_damaged_int8(void **state) {
  (void)state;
  static const char matrix[] = "encoder.L1.ffn.in.weight", scale[] = "encoder.L1.ffn.in.weight.scale";
  const float wrong[] = {-0.5f, NAN, INFINITY};
  save("c", 3, 17, 0);
  assert_int_equal(tarn_checkpoint_export_int8("q", "c"), TARN_STATUS_OK);
  assert_int_equal(rename("q", "c"), 0);
  for (size_t i = 0; i < 3; i++) {
    wrong_scales[20] = wrong[i];
    write_tensors(give_scales, scale, NULL);
    refuse_use("where a finite number from 0 was expected");
  }
  write_tensors(halve, scale, NULL);
  refuse_use("\"encoder.L1.ffn.in.weight\" is I8 and needs F32 of 32 as \"encoder.L1.ffn.in.weight.scale\"");
  write_tensors(rename_scales, scale, NULL);
  refuse_use("does not ask for its tensor \"encoder.L1.ffn.in.weight.sale\"");
  write_tensors(transpose, matrix, NULL);
  refuse_use("\"encoder.L1.ffn.in.weight\" is not I8 of 32 x 16");
  write_tensors(halve, matrix, NULL);
  refuse_use("\"encoder.L1.ffn.in.weight\" is not I8 of 32 x 16");
  write_tensors(label_unsigned, matrix, NULL);
  refuse_use("\"encoder.L1.ffn.in.weight\" is not U8 of 32 x 17");
  write_tensors(label_unsigned, "embeddings.weight", NULL);
  refuse_use("\"embeddings.weight\" is U8, which cannot stand for that parameter");
  write_tensors(label_bytes, "encoder.L1.ffn.in.bias", NULL);
  refuse_use("\"encoder.L1.ffn.in.bias\" is I8, which cannot stand for that parameter");
}

static void refuses_damaged_int4(void **state) {
  (void)state;
  static const char matrix[] = "encoder.L1.ffn.out.weight", scale[] = "encoder.L1.ffn.out.weight.scale";
  save("c", 3, 17, 0);
  assert_int_equal(tarn_checkpoint_export_int4("q", "c"), TARN_STATUS_OK);
  assert_int_equal(rename("q", "c"), 0);
  for (int factor = 16; factor <= 240; factor += 224) {
    ((unsigned char *)wrong_scales)[15 * 17] = (unsigned char)factor;
    write_tensors(give_scales, matrix, NULL);
    refuse_use(factor == 16 ? "holds the factor 16 where -15 to 15" : "holds the factor -16 where -15 to 15");
  }
  wrong_scales[12] = NAN;
  write_tensors(give_scales, scale, NULL);
  refuse_use("where a finite number from 0 was expected");
  write_tensors(halve, scale, NULL);
  refuse_use("\"encoder.L1.ffn.out.weight\" is U8 and needs F32 of 16 as \"encoder.L1.ffn.out.weight.scale\"");
  write_tensors(halve, matrix, NULL);
  refuse_use("\"encoder.L1.ffn.out.weight\" is not U8 of 16 x 17");
}

static void finds_the_file_of_a_folder(void **state) {
  (void)state;
  char *file;
  assert_int_equal(tarn__mkdir("run/seed-1"), TARN_STATUS_OK);
  assert_int_equal(tarn__checkpoint_find(&file, "run"), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "seed-1"));
  // An average that nothing says more of is better than the last, but not than the best.
  const char *names[] = {TARN__CHECKPOINT_LAST, TARN__CHECKPOINT_AVERAGE, TARN__CHECKPOINT_BEST};
  for (size_t i = 0; i < 3; i++) {
    char path[128];
    snprintf(path, sizeof path, "run/%s", names[i]);
    sandbox_write(path, "x", 1);
    assert_int_equal(tarn__checkpoint_find(&file, "run"), TARN_STATUS_OK);
    assert_string_equal(file, path);
    tarn__free(file);
  }
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "nowhere", TARN__F32), TARN_STATUS_IO);
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  save("c", 3, 17, 0);
  assert_int_equal(tarn_checkpoint_export_int8("q", "c"), TARN_STATUS_OK);
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  tarn_status status = TARN_STATUS_MEMORY;
  uint64_t n = 1;
  for (; status != TARN_STATUS_OK && n < 2000; n++) {
    tarn__checkpoint *c;
    tarn__memory_fail_after(n);
    status = tarn__checkpoint_open(&c, "c", TARN__F32);
    tarn__memory_fail_after(0);
    if (status != TARN_STATUS_OK) assert_int_equal(status, TARN_STATUS_MEMORY);
    tarn__checkpoint_close(&c);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
  }
  assert_int_equal(status, TARN_STATUS_OK);
  assert_true(n > 20);
  status = TARN_STATUS_MEMORY;
  for (n = 1; status != TARN_STATUS_OK && n < 2000; n++) {
    tarn__checkpoint *c;
    tarn_translate_precision precision = TARN_TRANSLATE_PRECISION_AUTO;
    tarn__memory_fail_after(n);
    status = tarn__checkpoint_open_use(&c, "q", &precision, NULL);
    tarn__memory_fail_after(0);
    if (status != TARN_STATUS_OK) assert_int_equal(status, TARN_STATUS_MEMORY);
    tarn__checkpoint_close(&c);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
  }
  assert_int_equal(status, TARN_STATUS_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back),
                                     cmocka_unit_test(gives_its_vocabularies),
                                     cmocka_unit_test(stores_no_frozen_byte),
                                     cmocka_unit_test(sees_every_flipped_bit),
                                     cmocka_unit_test(refuses_what_does_not_fit),
                                     cmocka_unit_test(refuses_recipes_without_hash),
                                     cmocka_unit_test(refuses_other_tensors),
                                     cmocka_unit_test(refuses_frozen_values_twice),
                                     cmocka_unit_test(averages),
                                     cmocka_unit_test(exports_everything),
                                     cmocka_unit_test(averages_dense_files),
                                     cmocka_unit_test(exports_structured_weights),
                                     cmocka_unit_test(computes_with_int8),
                                     cmocka_unit_test(computes_with_int4),
                                     cmocka_unit_test(computes_with_mapped_bf16),
                                     cmocka_unit_test(draws_beside_mapped_values),
                                     cmocka_unit_test(refuses_integers_for_other_ends),
                                     cmocka_unit_test(refuses_damaged_int8),
                                     cmocka_unit_test(refuses_damaged_int4),
                                     cmocka_unit_test(finds_the_file_of_a_folder),
                                     cmocka_unit_test(survives_lack_of_memory)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
