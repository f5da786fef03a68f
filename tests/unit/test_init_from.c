// train.init_from: a training starts from the weights of another, with what is to stay frozen from the first update on.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "store/checkpoint.h"
#include "tiny_run.h"

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  const char *const set[] = {"train.average=0"};
  return tiny_train("tiny.yaml", "base", set, 1, NULL, NULL, NULL) == TARN_STATUS_OK ? 0 : -1;
}

static tarn__checkpoint *open_checkpoint(const char *path) {
  tarn__checkpoint *c;
  if (tarn__checkpoint_open(&c, path, TARN__F32) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return c;
}

static void read_log(char **log, const char *path) {
  size_t size;
  assert_int_equal(tarn__file_read(path, log, &size), TARN_STATUS_OK);
}

static bool same_values(const tarn__checkpoint *a, const tarn__checkpoint *b, const char *part) {
  bool same = true;
  size_t seen = 0;
  for (size_t i = 0; i < a->model->param_count; i++) {
    const tarn__param *p = a->model->params[i], *q = b->model->params[i];
    assert_string_equal(p->name, q->name);
    if (strncmp(p->name, part, strlen(part)) != 0) continue;
    same = same && memcmp(p->value, q->value, (size_t)(p->rows * p->cols) * sizeof(float)) == 0;
    seen++;
  }
  assert_true(seen > 0);
  return same;
}

static void starts_from_the_weights(void **state) {
  (void)state;
  const char *const set[] = {
      "train.init_from=base", "train.max_updates=2", "train.freeze={encoder.L1: 0, embeddings: 0}",
      "train.save_every=1",   "train.keep_last=9",   "train.average=0",
      "train.precision=bf16"};
  assert_int_equal(tiny_train("tiny.yaml", "tuned", set, 7, NULL, NULL, NULL), TARN_STATUS_OK);
  tarn__checkpoint *base = open_checkpoint("base"), *tuned = open_checkpoint("tuned");
  assert_true(same_values(base, tuned, "encoder.L1"));
  assert_true(same_values(base, tuned, "embeddings"));
  assert_true(same_values(base, tuned, "encoder.R1"));
  assert_false(same_values(base, tuned, "decoder.layer1"));
  tarn__checkpoint_close(&tuned);
  tarn__checkpoint_close(&base);
  char *log;
  read_log(&log, "tuned/log.jsonl");
  const char *frozen = strstr(log, "\"kind\":\"freeze\",\"step\":0");
  assert_non_null(frozen);
  assert_non_null(strstr(frozen, "encoder.L1"));
  tarn__free(log);
}

static volatile sig_atomic_t stop_now;
static void stop_at_once(void *user, const tarn_train_event *event) {
  (void)user;
  (void)event;
  stop_now = 1;
}

// Stopped before its first update it goes on without the file, and logs what is frozen once.
static void goes_on_without_the_file(void **state) {
  (void)state;
  const char *const set[] = {"train.init_from=copy", "train.freeze={encoder.L1: 0}", "valid.at_start=yes"};
  assert_int_equal(system("cp -r base copy"), 0);
  stop_now = 0;
  assert_int_equal(tiny_train("tiny.yaml", "halted", set, 3, stop_at_once, NULL, &stop_now), TARN_STATUS_INTERRUPTED);
  assert_int_equal(system("rm -r copy"), 0);
  if (tiny_train(NULL, "halted", NULL, 0, NULL, NULL, NULL) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  const char *const again[] = {"train.init_from=base", "train.freeze={encoder.L1: 0}", "valid.at_start=yes"};
  assert_int_equal(tiny_train("tiny.yaml", "through", again, 3, NULL, NULL, NULL), TARN_STATUS_OK);
  tarn__checkpoint *a = open_checkpoint("halted"), *b = open_checkpoint("through");
  assert_true(same_values(a, b, ""));
  tarn__checkpoint_close(&a);
  tarn__checkpoint_close(&b);
  char *log;
  read_log(&log, "halted/log.jsonl");
  const char *first = strstr(log, "\"kind\":\"freeze\"");
  assert_non_null(first);
  assert_null(strstr(first + 1, "\"kind\":\"freeze\""));
  tarn__free(log);
}

static void refuses(const char *run, const char *const *set, size_t count, const char *words) {
  assert_int_equal(tiny_train("tiny.yaml", run, set, count, NULL, NULL, NULL), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  assert_int_equal(strncmp(tarn_error_message(), "train.init_from: ", 17), 0);
}

static void refuses_what_does_not_fit(void **state) {
  (void)state;
  const char *const seed[] = {"train.init_from=base", "train.seed=9"};
  refuses("bad1", seed, 2, "has other values of encoder.R1.self_attn.qkv.weight, which is frozen here");
  const char *const wide[] = {"train.init_from=base", "kinds.L.ffn=48"};
  refuses("bad2", wide, 2, "encoder.L1.ffn.in.weight is 32 x 16, and the description asks for 48 x 16");
  const char *const more[] = {"train.init_from=base", "decoder.layers=L L"};
  refuses("bad3", more, 2, "has no decoder.layer2.");
  const char *const gone[] = {"train.init_from=nowhere"};
  assert_int_equal(tiny_train("tiny.yaml", "bad4", gone, 1, NULL, NULL, NULL), TARN_STATUS_IO);
  // A layer that was frozen may learn.
  const char *const thaw[] = {"train.init_from=base", "kinds.R.frozen=no", "train.max_updates=2"};
  if (tiny_train("tiny.yaml", "thawed", thaw, 3, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
}

// The signs of a Hadamard layer do not know the gain of their matrix.
static void compares_the_gain_of_signs(void **state) {
  (void)state;
  const char *const base[] = {"kinds.R.init=hadamard", "train.average=0", "train.max_updates=2"};
  assert_int_equal(tiny_train("tiny.yaml", "signs", base, 3, NULL, NULL, NULL), TARN_STATUS_OK);
  const char *const other[] = {"train.init_from=signs", "kinds.R.init=hadamard", "kinds.R.init_gain=0.5"};
  refuses("gain", other, 3, ".signs, which is frozen here, with an init_gain of 1, and the description asks for 0.5");
  const char *const same[] = {"train.init_from=signs", "kinds.R.init=hadamard", "train.max_updates=2"};
  if (tiny_train("tiny.yaml", "gain", same, 3, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
}

#define PERFORMER(redraw) "kinds.L={ mixer: performer, heads: 2, features: 6, redraw: " redraw ", ffn: 32 }"

// Features that will be drawn anew need not be those of the file; the advice is for the kind of values that differ.
static void takes_a_model_with_other_features(void **state) {
  (void)state;
  const char *const base[] = {PERFORMER("3"), "train.average=0"};
  if (tiny_train("tiny.yaml", "drawn", base, 2, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  const char *const again[] = {"train.init_from=drawn", PERFORMER("5"), "train.average=0", "train.max_updates=2"};
  if (tiny_train("tiny.yaml", "redrawn", again, 4, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  const char *const never[] = {"train.init_from=drawn", PERFORMER("0")};
  refuses("bad5", never, 2, "give its seed, or a redraw above 0, with which it is drawn anew");
  const char *const fixed[] = {"kinds.L={ mixer: synthesizer_random, heads: 2, fixed: yes, ffn: 32 }",
                               "train.init_from=fixed", "train.seed=9"};
  assert_int_equal(tiny_train("tiny.yaml", "fixed", fixed, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  refuses("bad6", fixed, 3, "give its seed, or have it trained here (frozen: no, and no other key that freezes it)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(starts_from_the_weights),           cmocka_unit_test(goes_on_without_the_file),
      cmocka_unit_test(refuses_what_does_not_fit),         cmocka_unit_test(compares_the_gain_of_signs),
      cmocka_unit_test(takes_a_model_with_other_features),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
