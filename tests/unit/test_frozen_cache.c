// The cache of a frozen bottom: the bits of a training with it are those of one without, a file that does not serve is
// found out and replaced, and what cannot be cached is refused by name.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <sys/stat.h>

#include "store/checkpoint.h"
#include "tarn/plan.h"
#include "tarn/process.h"
#include "tiny_run.h"
#include "train/features/frozen_cache.h"
#include "train/trainer.h"

static const char config_text[] =
    "model: { d_model: 48, embeddings: decoder, dropout: 0.2, embedding_dropout: 0, frozen_embeddings: encoder }\n"
    "encoder: { layers: R F R1 R1 L R L }\n"
    "decoder: { layers: L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 4, ffn: 80 }\n"
    "  R: { mixer: attention, heads: 4, ffn: 80, frozen: yes, dropout: 0 }\n"
    "  F: { mixer: none, ffn: 80, frozen: yes, dropout: 0 }\n"
    "data: { vocab: vocab, train: train, valid: valid }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 300, log_every: 1, save_every: 5, threads: 2,\n"
    "         cache_frozen: yes }\n"
    "valid: { every: 4, bleu: no }\n";

enum { BOTTOM = 4 };

static int warnings;
static char warned[512];

static void note(void *user, tarn_log_level level, const char *text) {
  (void)user;
  if (level != TARN_LOG_WARNING) return;
  warnings++;
  snprintf(warned, sizeof warned, "%s", text);
}

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  sandbox_write("cache.yaml", config_text, strlen(config_text));
  tarn_log_set(note, NULL);
  return 0;
}

static void train(const char *run, const char *const *overrides, size_t count) {
  if (tiny_train("cache.yaml", run, overrides, count, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
}

static void in_run(char path[256], const char *run, const char *name) { snprintf(path, 256, "%s/%s", run, name); }

static void read_run(const char *run, const char *name, char **data, size_t *size) {
  char path[256];
  in_run(path, run, name);
  if (tarn__file_read(path, data, size) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// The checkpoint's tensors, and the losses and norms of the log.
static void assert_same_run(const char *a, const char *b) {
  char path[256];
  tarn__checkpoint_file x;
  tarn__checkpoint_file y;
  in_run(path, a, TARN__CHECKPOINT_LAST);
  assert_int_equal(tarn__checkpoint_file_open(&x, path), TARN_STATUS_OK);
  in_run(path, b, TARN__CHECKPOINT_LAST);
  assert_int_equal(tarn__checkpoint_file_open(&y, path), TARN_STATUS_OK);
  assert_int_equal(x.update, y.update);
  assert_int_equal(x.tensors.count, y.tensors.count);
  for (size_t i = 0; i < x.tensors.count; i++) {
    const tarn__stored *s = &x.tensors.tensors[i];
    assert_int_equal(s->bytes, y.tensors.tensors[i].bytes);
    if (memcmp(s->data, y.tensors.tensors[i].data, s->bytes) != 0) fail_msg("%s differs: %s and %s", s->name, a, b);
  }
  tarn__checkpoint_file_close(&x);
  tarn__checkpoint_file_close(&y);
  char *text[2];
  size_t size;
  read_run(a, "log.jsonl", &text[0], &size);
  read_run(b, "log.jsonl", &text[1], &size);
  const char *at[2] = {text[0], text[1]};
  int losses = 0;
  while ((at[0] = strstr(at[0], "\"loss\"")) && (at[1] = strstr(at[1], "\"loss\""))) {
    size_t length = strcspn(at[0], ",");
    assert_int_equal(strcspn(at[1], ","), length);
    assert_memory_equal(at[0], at[1], length);
    at[0] += length, at[1] += length;
    losses++;
  }
  assert_int_equal(losses, 12);
  tarn__free(text[0]);
  tarn__free(text[1]);
}

static void a_cache_changes_no_bit(void **state) {
  (void)state;
  static const char *const variants[][4] = {
      {"train.precision=fp32", "model.norm=post", "train.threads=2", "train.accumulate=1"},
      {"train.precision=fp32", "model.norm=pre", "train.threads=1", "train.accumulate=3"},
      {"train.precision=bf16", "model.norm=post", "train.threads=1", "train.accumulate=1"},
      {"train.precision=bf16", "model.norm=pre", "train.threads=2", "train.accumulate=2"},
      // Everything in the encoder is frozen but the last norm.
      {"train.precision=bf16", "model.norm=pre", "encoder.layers=R R", "train.threads=2"},
      {"train.precision=fp32", "model.embedding_scale=no", "model.positions=none", "model.max_length=33"}};
  // As a sample, one variant of each norm and precision, and the last.
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    if (getenv("TARN_SAMPLE") && (i == 1 || i == 2 || i == 4)) continue;
    char with[32];
    char without[32];
    snprintf(with, sizeof with, "with%zu", i);
    snprintf(without, sizeof without, "without%zu", i);
    const char *overrides[5] = {"train.cache_frozen=no"};
    memcpy(overrides + 1, variants[i], sizeof variants[i]);
    train(without, overrides, 5);
    overrides[0] = "train.cache_frozen=yes";
    train(with, overrides, 5);
    assert_same_run(with, without);
    char path[256];
    in_run(path, with, TARN__RUN_CACHE);
    assert_true(tarn__file_exists(path));
    in_run(path, without, TARN__RUN_CACHE);
    assert_false(tarn__file_exists(path));
  }
}

// The outputs of the sentences [first, last) of a batch alone against theirs in the whole batch.
static void assert_rows(tarn_train *t, const tarn__batch *batch, const char *all, size_t bytes, int64_t first,
                        int64_t last) {
  int32_t offsets[2000];
  const void *rows;
  int32_t begin = batch->source.offsets[first];
  assert_true(last - first < 2000);
  for (int64_t s = first; s <= last; s++) offsets[s - first] = batch->source.offsets[s] - begin;
  tarn__packed source = {.sentences = last - first,
                         .rows = offsets[last - first],
                         .longest = batch->source.longest,
                         .ids = batch->source.ids + begin,
                         .positions = batch->source.positions + begin,
                         .offsets = offsets};
  assert_int_equal(tarn__stepper_bottom(&t->stepper, &rows, &source), 0);
  assert_memory_equal(rows, all + (size_t)begin * bytes, (size_t)offsets[last - first] * bytes);
}

static void bottom_rows(tarn_train *t, const tarn__batch *batch, char *all, size_t bytes) {
  const void *rows;
  assert_int_equal(tarn__stepper_bottom(&t->stepper, &rows, &batch->source), 0);
  memcpy(all, rows, (size_t)batch->source.rows * bytes);
}

// A model where the rows of products are cut into tiles in many ways; under sanitizers, which are slow, in some.
static void a_row_depends_on_its_sentence_alone(void **state) {
  (void)state;
  const bool sanitized = getenv("TARN_SANITIZED") != NULL;
  for (int precision = 0; precision < 2; precision++) {
    const char *overrides[] = {precision ? "train.precision=bf16" : "train.precision=fp32", "train.max_tokens=3000",
                               sanitized ? "kinds.R.ffn=160" : "kinds.R.ffn=640",
                               sanitized ? "model.d_model=80" : "model.d_model=320"};
    tarn_train *t = tiny_open_train("cache.yaml", precision ? "rows16" : "rows32", overrides, 4);
    tarn__batch batch;
    tarn__batcher *batcher;
    tarn__batcher_options shape;
    tarn__batcher_default(&shape);
    shape.max_tokens = 3000;
    assert_int_equal(tarn__batcher_open(&batcher, &t->shard, &shape), TARN_STATUS_OK);
    tarn__batcher_next(batcher, &batch);
    const tarn__frozen_cache *cache = tarn__features_state(&t->features, "frozen_cache");
    size_t bytes = tarn__frozen_cache_row_bytes(cache);
    assert_true(batch.source.rows > 1000);
    char *all = calloc((size_t)batch.source.rows, bytes);
    assert_non_null(all);
    bottom_rows(t, &batch, all, bytes);
    int64_t middle = batch.target.sentences / 2;
    assert_rows(t, &batch, all, bytes, 0, middle);
    assert_rows(t, &batch, all, bytes, middle, batch.target.sentences);
    assert_rows(t, &batch, all, bytes, middle / 4, middle + middle / 3);
    for (int64_t s = 0; s < batch.target.sentences; s++) assert_rows(t, &batch, all, bytes, s, s + 1);
    free(all);
    tarn__batcher_close(&batcher);
    tarn_train_close(&t);
  }
}

typedef struct stopper {
  volatile sig_atomic_t stop;
} stopper;

static void stop_at_five(void *user, const tarn_train_event *event) {
  stopper *s = user;
  if (event->kind == TARN_TRAIN_EVENT_UPDATE && event->update == 5) s->stop = 1;
}

static void stop_run(const char *run) {
  stopper s = {0};
  assert_int_equal(tiny_train("cache.yaml", run, NULL, 0, stop_at_five, &s, &s.stop), TARN_STATUS_INTERRUPTED);
}

static void resume(const char *run, const char *override) {
  if (tiny_train(NULL, run, &override, override ? 1 : 0, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
}

static void write_cache(const char *run, const char *data, size_t size) {
  char path[256];
  in_run(path, run, TARN__RUN_CACHE);
  sandbox_write(path, data, size);
}

static void resuming_reads_the_file(void **state) {
  (void)state;
  train("whole", NULL, 0);
  stop_run("pieces");
  struct stat before;
  struct stat after;
  assert_int_equal(stat("pieces/" TARN__RUN_CACHE, &before), 0);
  warnings = 0;
  resume("pieces", NULL);
  assert_int_equal(warnings, 0);
  assert_int_equal(stat("pieces/" TARN__RUN_CACHE, &after), 0);
  assert_int_equal(before.st_ino, after.st_ino);
  assert_same_run("pieces", "whole");
  // The choice may change on the way.
  stop_run("changed");
  resume("changed", "train.cache_frozen=no");
  assert_same_run("changed", "whole");
}

// Spoils the cache of a stopped run and expects that it is found out, replaced, and without effect.
static void spoil(const char *run, size_t at, size_t cut, const char *words) {
  char *data;
  char *fresh;
  size_t size;
  size_t fresh_size;
  stop_run(run);
  read_run(run, TARN__RUN_CACHE, &data, &size);
  data[at < size ? at : size - 1] ^= 1;
  write_cache(run, data, cut < size ? size - cut : 10);
  data[at < size ? at : size - 1] ^= 1;
  warnings = 0;
  resume(run, NULL);
  assert_int_equal(warnings, 1);
  assert_non_null(strstr(warned, words));
  assert_non_null(strstr(warned, TARN__RUN_CACHE));
  read_run(run, TARN__RUN_CACHE, &fresh, &fresh_size);
  assert_int_equal(size, fresh_size);
  assert_memory_equal(data, fresh, size);
  assert_same_run(run, "whole");
  tarn__free(data);
  tarn__free(fresh);
}

static void a_spoilt_file_is_made_again(void **state) {
  (void)state;
  spoil("magic", 0, 0, "damaged");
  if (getenv("TARN_SAMPLE") == NULL) {
    spoil("version", 8, 0, "another version");
    spoil("key", 40, 0, "other data, layers or precision");
    spoil("row", 5000, 0, "damaged");
  }
  spoil("hash", SIZE_MAX, 0, "damaged");
  spoil("short", 200, 1, "damaged");
  spoil("stub", SIZE_MAX, SIZE_MAX, "damaged");
}

static void other_runs_have_other_keys(void **state) {
  (void)state;
  static const char *const others[] = {"train.seed=2",        "kinds.F.ffn=81",       "kinds.R.heads=2",
                                       "model.norm=pre",      "model.positions=none", "encoder.layers=R F R1 R1 R",
                                       "kinds.R.init=xavier", "model.max_length=33"};
  char *data;
  size_t size;
  read_run("whole", TARN__RUN_CACHE, &data, &size);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    char run[32];
    snprintf(run, sizeof run, "other%zu", i);
    assert_int_equal(tarn__mkdir(run), TARN_STATUS_OK);
    write_cache(run, data, size);
    warnings = 0;
    const char *overrides[] = {others[i], "train.max_updates=1", "data.valid="};
    train(run, overrides, 3);
    assert_int_equal(strstr(warned, run) != NULL, 1);
  }
  tarn__free(data);
}

static void stopping_in_the_pass_leaves_no_file(void **state) {
  (void)state;
  stopper s = {.stop = 1};
  assert_int_equal(tiny_train("cache.yaml", "early", NULL, 0, NULL, NULL, &s.stop), TARN_STATUS_INTERRUPTED);
  assert_non_null(strstr(tarn_error_message(), "--resume"));
  assert_false(tarn__file_exists("early/" TARN__RUN_CACHE));
  resume("early", NULL);
  assert_same_run("early", "whole");
}

// What was saved last before the first update.
static void note_saved(void *user, const tarn_train_event *event) {
  double *seconds = user;
  if (event->kind == TARN_TRAIN_EVENT_SAVED && event->update == 0) *seconds = event->seconds;
}

// A kill after the pass must not give its time back: the file that it filled will be found.
static void the_time_of_the_pass_is_saved(void **state) {
  (void)state;
  const char *overrides[] = {"train.max_updates=1"};
  double seconds = 0;
  assert_int_equal(tiny_train("cache.yaml", "timed", overrides, 1, note_saved, &seconds, NULL), TARN_STATUS_OK);
  assert_true(seconds > 0);
  seconds = -1;
  overrides[0] = "train.max_updates=2";
  assert_int_equal(tiny_train(NULL, "timed", overrides, 1, note_saved, &seconds, NULL), TARN_STATUS_OK);
  assert_true(seconds == -1);
}

static void the_plan_shows_cached_layers(void **state) {
  (void)state;
  tarn_config *config;
  tarn_plan plan;
  tarn_plan_options options = {0};
  const char *override = "train.precision=bf16";
  assert_int_equal(tarn_config_read(&config, "cache.yaml", &override, 1), TARN_STATUS_OK);
  assert_int_equal(tarn_plan_make(&plan, config, &options), TARN_STATUS_OK);
  assert_int_equal(plan.cached_layers, BOTTOM);
  const char *run = "sized";
  train(run, &override, 1);
  struct stat info;
  assert_int_equal(stat("sized/" TARN__RUN_CACHE, &info), 0);
  assert_int_equal(info.st_size, plan.cache_bytes + 128 + 8);
  int cached = 0;
  for (size_t i = 0; i < plan.part_count; i++) {
    const tarn_plan_part *part = &plan.parts[i];
    cached += part->cached;
    if (part->cached) assert_true(part->frozen && part->forward_flops == 0 && part->backward_flops == 0);
    if (part->cached) assert_int_equal(part->kept_bytes, 0);
  }
  assert_int_equal(cached, BOTTOM);
  tarn_plan_close(&plan);
  tarn_config_close(&config);
}

static void what_cannot_be_cached_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *override, *words;
  } cases[] = {
      {"model.frozen_embeddings=none", "set model.frozen_embeddings to encoder or both"},
      {"encoder.layers=L R", "the lowest layer of the encoder (kind L) is trained"},
      {"model.embedding_dropout=", "model.embedding_dropout is 0.2"},
      {"model.embedding_norm=yes", "the frozen layers read model.embedding_norm, which is trained"},
      {"kinds.F.dropout=0.25", "kinds.F.dropout is 0.25"},
      {"kinds.F={mixer: light_conv, frozen: yes, dropout: 0, kernel_dropout: 0.25}", "kinds.F.kernel_dropout is 0.25"},
      {"kinds.F={mixer: attention, frozen: yes, dropout: 0, attention_dropout: 0.25}",
       "kinds.F.attention_dropout is 0.25"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_config *config;
    assert_int_equal(tarn_config_read(&config, "cache.yaml", &cases[i].override, 1), TARN_STATUS_USAGE);
    assert_non_null(strstr(tarn_error_message(), "train.cache_frozen: "));
    if (!strstr(tarn_error_message(), cases[i].words)) fail_msg("%s", tarn_error_message());
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_cannot_be_cached_is_refused),
                                     cmocka_unit_test(a_row_depends_on_its_sentence_alone),
                                     cmocka_unit_test(a_cache_changes_no_bit),
                                     cmocka_unit_test(resuming_reads_the_file),
                                     cmocka_unit_test(a_spoilt_file_is_made_again),
                                     cmocka_unit_test(other_runs_have_other_keys),
                                     cmocka_unit_test(stopping_in_the_pass_leaves_no_file),
                                     cmocka_unit_test(the_time_of_the_pass_is_saved),
                                     cmocka_unit_test(the_plan_shows_cached_layers)};
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
