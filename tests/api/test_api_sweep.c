// Sweeps: tarn/lab/sweep.h. Their runs are processes of the program.
#include "api_models.h"
#include "tarn/lab/sweep.h"

static const char text[] =
    "base: tiny.yaml\nbaseline: good\nseeds: [1, 2]\nparallel: 2\nthreads: 1\n"
    "set: { train: { max_updates: 2, average: 0 }, valid: { bleu: no, every: 2 } }\n"
    "variants: { good: {}, quick: { train.lr: 0.02 } }\n";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  api_write("sweep.yaml", text);
  api_write("garbage", "this is no sweep\n");
  return mkdir("nothing", 0777);
}

static tarn_sweep_options local(const char *folder) {
  tarn_sweep_options options;
  tarn_sweep_default(&options);
  options.file = "sweep.yaml", options.folder = folder, options.program = TARN_PROGRAM;
  return options;
}

static tarn_sweep *opened(const char *folder) {
  tarn_sweep *sweep;
  const tarn_sweep_options options = local(folder);
  works(tarn_sweep_open(&sweep, &options));
  return sweep;
}

static void use_tarn_sweep_trade_name(void) {
  assert_string_equal(tarn_sweep_trade_name(TARN_SWEEP_TRADE_FFN), "ffn");
  assert_string_equal(tarn_sweep_trade_name(TARN_SWEEP_TRADE_HEADS), "heads");
  assert_null(tarn_sweep_trade_name(TARN_SWEEP_TRADE_COUNT));
  assert_null(tarn_sweep_trade_name((tarn_sweep_trade)-1));
}

static void use_tarn_sweep_equalize_name(void) {
  assert_string_equal(tarn_sweep_equalize_name(TARN_SWEEP_EQUALIZE_NO), "no");
  assert_string_equal(tarn_sweep_equalize_name(TARN_SWEEP_EQUALIZE_FLOPS), "flops");
  assert_null(tarn_sweep_equalize_name(TARN_SWEEP_EQUALIZE_COUNT));
  assert_null(tarn_sweep_equalize_name((tarn_sweep_equalize)-1));
}

static void use_tarn_sweep_state_name(void) {
  assert_string_equal(tarn_sweep_state_name(TARN_SWEEP_WAITING), "waiting");
  assert_string_equal(tarn_sweep_state_name(TARN_SWEEP_FAILED), "failed");
  assert_null(tarn_sweep_state_name((tarn_sweep_state)(TARN_SWEEP_FAILED + 1)));
  assert_null(tarn_sweep_state_name((tarn_sweep_state)-1));
}

static void use_tarn_sweep_launcher_name(void) {
  assert_string_equal(tarn_sweep_launcher_name(TARN_SWEEP_LAUNCHER_MPI), "mpi");
  assert_null(tarn_sweep_launcher_name(TARN_SWEEP_LAUNCHER_COUNT));
}

static void use_tarn_sweep_default(void) {
  tarn_sweep_options options;
  tarn_sweep_default(&options);
  assert_true(!options.file && !options.folder && !options.program && !options.only && !options.retry_failed);
  assert_int_equal(options.launcher, TARN_SWEEP_LAUNCHER_LOCAL);
}

static void refuses_file(const char *name, const char *content, tarn_status status, const char *words) {
  tarn_sweep *sweep;
  tarn_sweep_options options = local(NULL);
  if (content) api_write(name, content);
  options.file = name;
  refuses(tarn_sweep_open(&sweep, &options), status, words);
  assert_null(sweep);
}

#define REST "baseline: good\nvariants: { good: {}, quick: { train.lr: 0.02 } }\n"

static void use_tarn_sweep_open(void) {
  tarn_sweep *sweep = opened(NULL);
  assert_string_equal(sweep->name, "sweep");
  assert_int_equal(sweep->variant_count, 2);
  assert_int_equal(sweep->run_count, 4);
  assert_int_equal(sweep->baseline, 0);
  assert_null(sweep->runs[0].path);
  tarn_sweep_close(&sweep);
  refuses_file("missing.yaml", NULL, TARN_STATUS_IO, "missing.yaml: ");
  refuses_file("garbage", NULL, TARN_STATUS_USAGE, "garbage");
  refuses_file("s.yaml", "base: tiny.yaml\nseeds: [1]\nsedes: 1\n" REST, TARN_STATUS_USAGE, "s.yaml:3: ");
  refuses_file("s.yaml", "base: tiny.yaml\nseeds: [1, 1]\n" REST, TARN_STATUS_USAGE, "s.yaml:2: ");
  refuses_file("s.yaml", "base: none.yaml\nseeds: [1]\n" REST, TARN_STATUS_IO, "none.yaml");
  refuses_file("s.yaml", "base: tiny.yaml\nseeds: [1]\nbaseline: a\nvariants: { a: {}, b: {} }\n", TARN_STATUS_USAGE,
               "are the same configuration");
  refuses_file("s.yaml", "base: tiny.yaml\nseeds: [1]\nbaseline: goat\nvariants: { good: {} }\n", TARN_STATUS_USAGE,
               "goat");
  refuses_file("s.yaml", "base: tiny.yaml\nseeds: [1]\nset: { data.train: nowhere }\n" REST, TARN_STATUS_IO, "nowhere");
  refuses_file("s.yaml", "base: tiny.yaml\nseeds: [1]\ntest: { text: sweep.yaml, stride: 1 }\n" REST, TARN_STATUS_USAGE,
               "text is for language models");
  tarn_sweep_options options = local(NULL);
  options.file = NULL;
  refuses(tarn_sweep_open(&sweep, &options), TARN_STATUS_USAGE, "a sweep needs a file");
  options.folder = "nothing";
  refuses(tarn_sweep_open(&sweep, &options), TARN_STATUS_USAGE, "nothing: no sweep to go on with");
  assert_null(sweep);
}

static void use_tarn_sweep_estimate(void) {
  tarn_sweep *sweep = opened(NULL);
  assert_true(sweep->variants[0].run_seconds == 0);
  works(tarn_sweep_estimate(sweep));
  assert_true(sweep->variants[0].run_seconds > 0 && sweep->variants[1].epoch_seconds > 0);
  assert_int_equal(setenv("TARN_DEVICE", "abacus", 1), 0);
  refuses(tarn_sweep_estimate(sweep), TARN_STATUS_USAGE, "TARN_DEVICE: ");
  assert_int_equal(unsetenv("TARN_DEVICE"), 0);
  tarn_sweep_close(&sweep);
}

static void use_tarn_sweep_training_left(void) {
  tarn_sweep *sweep = opened(NULL);
  assert_true(tarn_sweep_training_left(sweep, 0) < 0);
  assert_true(tarn_sweep_training_left(sweep, 10) == 20);
  tarn_sweep_close(&sweep);
}

static int events[TARN_SWEEP_EVENT_LOST + 1];
static void count_events(void *user, const tarn_sweep_event *event) {
  assert_ptr_equal(user, events);
  assert_int_equal(event->count, 4);
  events[event->kind]++;
}

static void use_tarn_sweep_run_all(void) {
  tarn_sweep *sweep = opened("out");
  tarn_sweep_options options = local("out");
  options.only = "good/seed-2";
  options.on_event = count_events, options.user = events;
  works(tarn_sweep_run_all(sweep, &options));
  assert_int_equal(sweep->runs[2].state, TARN_SWEEP_FINISHED);
  assert_int_equal(sweep->runs[0].state, TARN_SWEEP_WAITING);
  assert_true(events[TARN_SWEEP_EVENT_STARTED] == 1 && events[TARN_SWEEP_EVENT_FINISHED] == 1);
  options.only = "good/seed-3";
  refuses(tarn_sweep_run_all(sweep, &options), TARN_STATUS_USAGE, "good/seed-3 is no run of this sweep");
  options = local("out");
  options.launcher = TARN_SWEEP_LAUNCHER_COUNT;
  refuses(tarn_sweep_run_all(sweep, &options), TARN_STATUS_USAGE, "an unknown launcher");
  options.launcher = TARN_SWEEP_LAUNCHER_MPI;
  refuses(tarn_sweep_run_all(sweep, &options), TARN_STATUS_USAGE, "this process was started alone");
  const volatile sig_atomic_t stop = 1;
  options = local("out");
  options.stop = &stop;
  refuses(tarn_sweep_run_all(sweep, &options), TARN_STATUS_INTERRUPTED, "go on with: tarn sweep --output out");
  tarn_sweep *other = opened(NULL);
  refuses(tarn_sweep_run_all(other, &options), TARN_STATUS_USAGE, "a sweep needs a folder");
  tarn_sweep_close(&other);
  tarn_sweep_close(&sweep);
  sweep = opened("garbage/out");
  options = local("garbage/out");
  refuses(tarn_sweep_run_all(sweep, &options), TARN_STATUS_IO, "garbage/out");
  tarn_sweep_close(&sweep);
}

static void use_tarn_sweep_look(void) {
  tarn_sweep *sweep = opened("seen"), *other = opened(NULL);
  works(tarn_sweep_look(sweep));
  assert_int_equal(sweep->runs[1].state, TARN_SWEEP_WAITING);
  assert_null(sweep->runs[1].job);
  refuses(tarn_sweep_look(other), TARN_STATUS_USAGE, "a sweep needs a folder");
  tarn_sweep_close(&sweep);
  tarn_sweep_close(&other);
}

// Nothing was submitted, so there is nothing to end.
static void use_tarn_sweep_cancel(void) {
  tarn_sweep *sweep = opened("seen"), *other = opened(NULL);
  size_t count = 9;
  works(tarn_sweep_cancel(sweep, &count));
  assert_int_equal(count, 0);
  count = 9;
  refuses(tarn_sweep_cancel(other, &count), TARN_STATUS_USAGE, "a sweep needs a folder");
  assert_int_equal(count, 0);
  tarn_sweep_close(&sweep);
  tarn_sweep_close(&other);
}

static void use_tarn_sweep_close(void) {
  tarn_sweep *sweep = opened(NULL);
  tarn_sweep_close(&sweep);
  assert_null(sweep);
  tarn_sweep_close(&sweep);
}

int main(void) {
  static const char *const headers[] = {"lab/sweep.h", NULL};
  static const api_use uses[] = {
      USE(tarn_sweep_equalize_name), USE(tarn_sweep_trade_name),    USE(tarn_sweep_state_name),
      USE(tarn_sweep_launcher_name), USE(tarn_sweep_default),       USE(tarn_sweep_open),
      USE(tarn_sweep_estimate),      USE(tarn_sweep_training_left), USE(tarn_sweep_run_all),
      USE(tarn_sweep_look),          USE(tarn_sweep_cancel),        USE(tarn_sweep_close)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
