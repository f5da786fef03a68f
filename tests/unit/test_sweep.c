// Sweeps from the library: time left, and processes whose end nobody is told. tests/cli/sweep.sh has the rest.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "tarn/lab/sweep.h"
#include "tiny_run.h"

static void time_left_has_no_more_places_than_runs(void **state) {
  (void)state;
  const tarn_sweep_variant variants[] = {{.run_seconds = 100}, {.run_seconds = 40}, {.run_seconds = 0}};
  tarn_sweep_run runs[] = {{.variant = 0, .state = TARN_SWEEP_BEGUN, .seconds = 30},
                           {.variant = 1, .state = TARN_SWEEP_WAITING},
                           {.variant = 1, .state = TARN_SWEEP_WAITING},
                           {.variant = 2, .state = TARN_SWEEP_FINISHED},
                           {.variant = 2, .state = TARN_SWEEP_WAITING, .reuse = "elsewhere"}};
  tarn_sweep sweep = {.variants = variants, .variant_count = 3, .runs = runs, .run_count = 5, .parallel = 1};
  assert_true(tarn_sweep_training_left(&sweep, 0) == 150);
  assert_true(tarn_sweep_training_left(&sweep, 50) == 120);
  sweep.parallel = 2;
  assert_true(tarn_sweep_training_left(&sweep, 0) == 75);
  sweep.parallel = 8;
  assert_true(tarn_sweep_training_left(&sweep, 0) == 70);
  assert_true(tarn_sweep_training_left(&sweep, 20) == 20);  // a run that took longer has nothing left
  runs[4].reuse = NULL;
  assert_true(tarn_sweep_training_left(&sweep, 0) < 0);
}

static const char sweep_text[] =
    "base: tiny.yaml\nbaseline: good\nseeds: [1]\nparallel: 2\nthreads: 1\n"
    "set: { train: { max_updates: 4, average: 0 }, valid: { bleu: no, every: 4 } }\n"
    "variants: { good: {}, bad: { train.lr: 0.02 } }\n";

// A caller that ignores SIGCHLD never gets a process's exit code; the directories still tell how the runs ended.
static void ends_without_exit_codes(void **state) {
  (void)state;
  tarn_sweep *sweep;
  tarn_sweep_options options;
  tarn_sweep_default(&options);
  tiny_files();
  sandbox_write("sweep.yaml", sweep_text, strlen(sweep_text));
  options.file = "sweep.yaml";
  options.folder = "out";
  options.program = TARN_PROGRAM;
  assert_int_equal(tarn__mkdir("out/bad/seed-1"), TARN_STATUS_OK);
  sandbox_write("out/bad/seed-1/checkpoint_last.safetensors", "damaged", 7);
  assert_int_equal(tarn_sweep_open(&sweep, &options), TARN_STATUS_OK);
  signal(SIGCHLD, SIG_IGN);
  alarm(300);  // in place of waiting for ever
  assert_int_equal(tarn_sweep_run_all(sweep, &options), TARN_STATUS_OK);
  alarm(0);
  signal(SIGCHLD, SIG_DFL);
  assert_int_equal(sweep->runs[0].state, TARN_SWEEP_FINISHED);
  assert_int_equal(sweep->runs[1].state, TARN_SWEEP_FAILED);
  assert_non_null(strstr(sweep->runs[1].message, "checkpoint_last"));
  tarn_sweep_close(&sweep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(time_left_has_no_more_places_than_runs),
      cmocka_unit_test(ends_without_exit_codes),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
