// What runs on a device whose memory the host cannot touch has the bits that it has on the processor: trainings of all
// kinds of layers, whole, stopped and resumed, with validation, averaging and every way of freezing; translation,
// generation and scores. Whatever the host reads or writes behind the device's back ends the test with a fault.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "same_run.h"
#include "shadow_device.h"
#include "tarn/generate.h"
#include "tarn/lm.h"
#include "tarn/translate.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// The signal that ends a process which touches the memory; 0: none does.
static int signal_of(char *memory, bool write) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGSEGV, SIG_DFL);
    volatile char *at = memory;
    if (write)
      *at = 1;
    else
      (void)*at;
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// The proof that the other tests can fail.
static void host_access_faults(void **state) {
  (void)state;
  void *memory;
  float in[3] = {1, 2, 3}, out[3] = {0};
  must(shadow_device.allocate(&memory, TARN__MEMORY_OTHER, 3, sizeof *in));
  assert_int_equal(signal_of(memory, false), SIGSEGV);
  assert_int_equal(signal_of(memory, true), SIGSEGV);
  must(shadow_device.copy_in(memory, in, sizeof in));
  must(shadow_device.copy_out(out, memory, sizeof out));
  assert_memory_equal(in, out, sizeof in);
  assert_int_equal(signal_of(memory, false), SIGSEGV);
  shadow_enter();
  assert_int_equal(signal_of(memory, true), 0);
  shadow_leave();
  assert_int_equal(signal_of(memory, true), SIGSEGV);
  shadow_device.free(memory);
}

// A training on the processor and the same on the device: checkpoints and logs must agree, and all memory be given
// back.
static void assert_same_training(const char *name, const char *const *overrides, size_t count, int64_t pieces) {
  char cpu[64], apart[64];
  snprintf(cpu, sizeof cpu, "%s-cpu", name);
  snprintf(apart, sizeof apart, "%s-shadow", name);
  run_through(cpu, overrides, count);
  shadow.most = 0;
  tarn__device_use(&shadow_device);
  if (pieces > 0)
    run_in_pieces(apart, pieces, overrides, count);
  else
    run_through(apart, overrides, count);
  tarn__device_use(NULL);
  assert_true(shadow.most > 0);
  assert_int_equal(shadow.now, 0);
  assert_same_run(cpu, apart);
}

typedef struct training {
  const char *name;
  const char *overrides[6];
  int64_t pieces;  // updates between a stop and the next; 0: in one go
} training;

static const training trainings[] = {
    {"plain", {NULL}, 0},
    {"resumed", {NULL}, 3},
    {"bf16", {"train.precision=bf16", NULL}, 5},
    {"bleu", {"valid.bleu=yes", "valid.metric=bleu", "train.accumulate=2", NULL}, 0},
    {"recomputed", {"train.recompute=block", "encoder.layerdrop=0.5", NULL}, 0},
    {"cached",
     {"train.cache_frozen=yes", "model.dropout=0", "model.embeddings=none", "model.frozen_embeddings=encoder", NULL},
     4},
    {"autofreeze", {"train.autofreeze=3", NULL}, 4},
    {"predictor", {"encoder.layers=L R L R", "kinds.R.backskip={method: predictor, refresh: 3}", NULL}, 4},
};

static void training_is_the_same(void **state) {
  const training *t = *state;
  size_t count = 0;
  while (t->overrides[count]) count++;
  assert_same_training(t->name, t->overrides, count, t->pieces);
}

static int open_sandbox(void **state) {
  if (sandbox_open(state) != 0) return -1;
  tiny_files();
  return 0;
}

int main(void) {
  enum { TRAININGS = sizeof trainings / sizeof *trainings };
  struct CMUnitTest tests[TRAININGS + 1] = {cmocka_unit_test(host_access_faults)};
  for (int i = 0; i < TRAININGS; i++)
    tests[1 + i] =
        (struct CMUnitTest){trainings[i].name, training_is_the_same, NULL, NULL, (void *)(uintptr_t)&trainings[i]};
  return cmocka_run_group_tests(tests, open_sandbox, sandbox_close);
}
