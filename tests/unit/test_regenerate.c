// What frozen values cost is counted before they are computed, and bounded.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "make_shard.h"
#include "sandbox.h"
#include "store/checkpoint.h"
#include "store/checkpoint_keys.h"
#include "store/recipe.h"
#include "store/regenerate.h"
#include "tarn/process.h"

enum { VOCAB = 20, SEED = 3 };

static tarn_config *config_of(const char *ffn) {
  char text[512];
  tarn_config *config;
  snprintf(text, sizeof text,
           "model: { d_model: 512 }\nencoder: { layers: R }\ndecoder: { layers: L }\n"
           "kinds:\n  R: { mixer: none, ffn: %s, frozen: yes }\n  L: { mixer: attention, heads: 2, ffn: 16 }\n",
           ffn);
  if (tarn_config_parse(&config, "test", text, strlen(text), NULL, 0) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  return config;
}

static void write_checkpoint(const char *path) {
  tarn_vocab *vocab = make_vocab(VOCAB);
  tarn_config *config = config_of("24");
  tarn__model *model;
  assert_int_equal(tarn__model_open(&model, config, VOCAB, VOCAB, TARN__F32, false), TARN_STATUS_OK);
  assert_int_equal(tarn__model_allocate(model), TARN_STATUS_OK);
  assert_int_equal(tarn__model_initialise(model, SEED), TARN_STATUS_OK);
  const tarn__checkpoint_extra extra = {.source = vocab, .target = vocab};
  if (tarn__checkpoint_save(path, model, &extra) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  tarn__model_close(&model);
  tarn_config_close(&config);
  tarn_vocab_close(&vocab);
}

// A text with one word in place of another, wherever it stands. Allocated.
static char *replaced(const char *text, const char *word, const char *by) {
  char *out = calloc(strlen(text) * 4 + 64, 1);
  assert_non_null(out);
  for (const char *found; (found = strstr(text, word)); text = found + strlen(word)) {
    strncat(out, text, (size_t)(found - text));
    strcat(out, by);
  }
  return strcat(out, text);
}

// The line of the wide model's parameter, with some hash.
static char *recipe_of(const tarn__model *model, const char *name) {
  for (size_t i = 0; i < model->param_count; i++) {
    if (strcmp(model->params[i]->name, name) != 0) continue;
    char *text = calloc(1, TARN__RECIPE_TEXT + TARN__HASH_TEXT);
    assert_non_null(text);
    tarn__recipe_write(text, model->params[i], SEED);
    return strcat(text, "00112233445566778899aabbccddeeff");
  }
  fail_msg("there is no parameter %s", name);
  return NULL;
}

// The same file with a frozen layer of another width, as a stranger may write it: its tensors and its size stay.
static void write_wide(const char *path, const char *from, const char *ffn) {
  tarn__safetensors file;
  tarn__model *model;
  char word[64];
  tarn__stored_text texts[64];
  tarn_config *config = config_of(ffn);
  assert_int_equal(tarn__model_open(&model, config, VOCAB, VOCAB, TARN__F32, false), TARN_STATUS_OK);
  assert_int_equal(tarn__safetensors_open(&file, from), TARN_STATUS_OK);
  assert_in_range(file.text_count, 1, 64);
  snprintf(word, sizeof word, "ffn: %s", ffn);
  for (size_t i = 0; i < file.text_count; i++) {
    const char *key = file.texts[i].key;
    const size_t prefix = strlen(TARN__KEY_FROZEN);
    const bool frozen = strncmp(key, TARN__KEY_FROZEN, prefix) == 0;
    texts[i] = (tarn__stored_text){
        key, frozen ? recipe_of(model, key + prefix) : replaced(file.texts[i].text, "ffn: 24", word)};
  }
  assert_int_equal(tarn__checkpoint_write(path, file.tensors, file.count, texts, file.text_count), TARN_STATUS_OK);
  for (size_t i = 0; i < file.text_count; i++) free((char *)(uintptr_t)texts[i].text);
  tarn__safetensors_close(&file);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

static void must_open(const char *path) {
  tarn__checkpoint *c;
  if (tarn__checkpoint_open(&c, path, TARN__F32) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  tarn__checkpoint_close(&c);
}

static void must_refuse(const char *path, tarn_status status, const char *words) {
  tarn__checkpoint *c;
  const double begin = tarn__seconds();
  const tarn_status got = tarn__checkpoint_open(&c, path, TARN__F32);
  if (got != status || !strstr(tarn_error_message(), words))
    fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  assert_true(tarn__seconds() - begin < 5);
}

// A small file that asks for gigabytes, or for hours, is refused at once and takes no memory.
static void small_files_that_ask_for_much(void **state) {
  (void)state;
  tarn_limits limits;
  tarn_limits_default(&limits);
  tarn_limits_set(&limits);
  write_checkpoint("small");
  must_open("small");
  const size_t peak = tarn__memory_peak(TARN__MEMORY_FROZEN);
  write_wide("wide", "small", "1000000");
  must_refuse("wide", TARN_STATUS_MEMORY, "wide: its frozen weights");
  must_refuse("wide", TARN_STATUS_MEMORY, "--max-memory");
  write_wide("slow", "small", "500000");
  limits.max_memory = 0;
  limits.max_operations = 1e9;
  tarn_limits_set(&limits);
  must_refuse("slow", TARN_STATUS_DATA, "more than the 1e+09 of --max-operations");
  must_open("small");
  assert_int_equal(tarn__memory_peak(TARN__MEMORY_FROZEN), peak);
  // Somewhat wider, within the limits: it is computed, and has not the values of the first.
  write_wide("other", "small", "25");
  must_refuse("other", TARN_STATUS_DATA, "cannot be made again");
  tarn_limits_default(&limits);
  tarn_limits_set(&limits);
}

// The count grows as the work does: with the matrix, and with more than its size where it is orthogonal.
static void counts(void **state) {
  (void)state;
  tarn__reservoir reservoir = {.kind = "R", .topology = TARN__TOPOLOGY_RANDOM, .sparsity = 0.5};
  for (int kind = TARN__INIT_ZERO; kind <= TARN__INIT_RESERVOIR; kind++) {
    tarn__param param = {.name = "p", .rows = 1000, .cols = 1000, .init = {(tarn__init_kind)kind, 1, 1}};
    param.reservoir = &reservoir;
    const tarn__regenerate_cost once = tarn__regenerate_param(&param);
    param.rows = param.cols = 2000;
    const tarn__regenerate_cost more = tarn__regenerate_param(&param);
    assert_true(once.operations >= 1e6 && once.bytes >= 4e6);
    assert_true(more.operations >= 3.9 * once.operations && more.bytes >= 3.9 * once.bytes);
    if (kind == TARN__INIT_ORTHOGONAL) assert_true(more.operations > 7 * once.operations);
  }
  // 40,000 units are beyond the memory that is there for a stranger's file.
  const tarn__param units = {
      .name = "p", .rows = 40000, .cols = 40000, .init = {TARN__INIT_RESERVOIR, 1, 1}, .reservoir = &reservoir};
  assert_true(tarn__regenerate_param(&units).bytes > TARN_LIMITS_MEMORY);
}

typedef struct told {
  int calls;
  double last;
} told;

static void on_progress(void *user, const char *file, double done, double operations) {
  told *t = user;
  assert_string_equal(file, "small");
  assert_true(done >= t->last && done <= operations);
  t->last = done;
  t->calls++;
}

// What is done in no time is not told of.
static void small_models_are_silent(void **state) {
  (void)state;
  told t = {0};
  tarn_limits limits;
  tarn_limits_default(&limits);
  limits.on_progress = on_progress;
  limits.user = &t;
  tarn_limits_set(&limits);
  write_checkpoint("small");
  must_open("small");
  assert_int_equal(t.calls, 0);
  tarn_limits_default(&limits);
  tarn_limits_set(&limits);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts),
      cmocka_unit_test_setup_teardown(small_files_that_ask_for_much, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(small_models_are_silent, sandbox_open, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
