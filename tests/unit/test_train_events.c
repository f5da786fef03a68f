// What a training tells of the time that is left.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "tiny_run.h"
#include "train/trainer.h"

static void keep(void *user, const tarn_train_event *event) { *(tarn_train_event *)user = *event; }

// A training that has done `update` updates of a second each, and whose validations take 1000 seconds.
typedef struct place {
  tarn_train *train;
  tarn_train_event event;
} place;

static void open_at(place *p, const char *const *overrides, size_t count, int64_t update) {
  static int number;
  char run[32];
  tarn_train_options options;
  tarn_train_default(&options);
  snprintf(run, sizeof run, "run%d", number++);
  options.config = "tiny.yaml";
  options.run = run;
  options.overrides = overrides;
  options.override_count = count;
  options.on_event = keep;
  options.user = &p->event;
  if (tarn_train_open(&p->train, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  p->train->progress.update = update;
  p->train->progress.seconds = (double)update;
  p->train->session.validation_seconds = 1000;
}

static void assert_left(place *p, double seconds) {
  tarn_train_event event = {.kind = TARN_TRAIN_EVENT_UPDATE};
  tarn__train_tell(p->train, &event);
  if (fabs(p->event.seconds_left - seconds) > 1e-6) fail_msg("%g s left, not %g", p->event.seconds_left, seconds);
}

// tiny.yaml: 12 updates, a validation every 4, and one of the average.
static void validations_count(void **state) {
  (void)state;
  place p;
  open_at(&p, NULL, 0, 2);
  assert_left(&p, 10 + 4000);  // at 4, 8 and 12, and the average
  assert_false(p.event.left_at_least);
  p.train->progress.update = 4;
  p.train->progress.seconds = 4;
  assert_left(&p, 8 + 4000);  // that at 4 comes after the event
  p.train->progress.validated = 4;
  assert_left(&p, 8 + 3000);
  p.train->session.validation_seconds = 0;
  assert_left(&p, 8);
  assert_true(p.event.left_at_least);
  tarn_train_close(&p.train);

  const char *const shorter[] = {"train.max_updates=11", "train.average=0"};
  open_at(&p, shorter, 2, 2);
  assert_left(&p, 9 + 3000);  // at 4, 8 and 11
  tarn_train_close(&p.train);

  const char *const none[] = {"data.valid="};
  open_at(&p, none, 1, 2);
  assert_left(&p, 10);
  p.train->session.validation_seconds = 0;
  assert_left(&p, 10);
  assert_false(p.event.left_at_least);
  tarn_train_close(&p.train);
}

static void validations_after_epochs_count(void **state) {
  (void)state;
  place p;
  const char *const epochs[] = {"train.max_updates=0", "train.max_epochs=4", "valid.every=0", "train.average=0"};
  open_at(&p, epochs, 4, 3);
  p.train->epoch_batches = 2;
  p.train->progress.epoch = 1;
  p.train->progress.index = 1;
  assert_left(&p, 5 + 3000);  // epochs of two seconds
  tarn_train_close(&p.train);
}

// Past its limit a training has no time left, however far away other limits are.
static void nothing_is_left_past_a_limit(void **state) {
  (void)state;
  place p;
  const char *const limits[] = {"train.max_minutes=0.1", "train.max_updates=1000000", "data.valid="};
  open_at(&p, limits, 3, 5);
  assert_left(&p, 1);
  p.train->progress.update = 7;
  p.train->progress.seconds = 7;
  assert_left(&p, 0);
  tarn_train_close(&p.train);
}

// On a machine that others use a second of the processor's takes more than one on the wall.
static void left_is_on_the_wall(void **state) {
  (void)state;
  place p;
  const char *const cpu[] = {"train.clock=cpu", "data.valid="};
  open_at(&p, cpu, 2, 2);
  p.train->session.step_clock = 2;
  p.train->session.step_wall = 6;
  assert_left(&p, 30);
  tarn_train_close(&p.train);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(validations_count), cmocka_unit_test(validations_after_epochs_count),
      cmocka_unit_test(nothing_is_left_past_a_limit), cmocka_unit_test(left_is_on_the_wall)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
