// Sweeps, their sequential designs, and queues of them: tarn/lab/sweep.h, tarn/lab/sequential.h, tarn/lab/queue.h.
// Their runs are processes of the program.
#include "api_models.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "tarn/lab/queue.h"
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

static void use_tarn_sweep_time_parse(void) {
  double seconds = 0;
  assert_true(tarn_sweep_time_parse(&seconds, "1.5 h") && seconds == 5400);
  assert_true(tarn_sweep_time_parse(&seconds, "90s") && seconds == 90);
  assert_false(tarn_sweep_time_parse(&seconds, "90"));
  assert_false(tarn_sweep_time_parse(&seconds, "-1 min"));
  assert_false(tarn_sweep_time_parse(&seconds, ""));
  assert_false(tarn_sweep_time_parse(&seconds, "nan h"));
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

// The description of sweep.yaml with this design.
static void refuses_design(const char *keys, const char *words) {
  char all[1000];
  snprintf(all, sizeof all, "%ssequential: %s\n", text, keys);
  refuses_file("s.yaml", all, TARN_STATUS_USAGE, "s.yaml:");
  refuses_file("s.yaml", all, TARN_STATUS_USAGE, words);
}

static void refuses_designs(void) {
  refuses_design("{ alpha: 0.1 }", "sequential: max_seeds is missing");
  refuses_design("{ max_seeds: 2 }", "sequential.max_seeds: expected a whole number from 3 to 100");
  refuses_design("{ max_seeds: 4, spendin: pocock }",
                 "unknown key in sequential \"spendin\"; did you mean \"spending\"?");
  refuses_design("{ max_seeds: 4, spending: pocok }", "\"pocok\"; did you mean \"pocock\"?");
  refuses_design("{ max_seeds: 4, measure: exponent }", "there are no exponents without dynamics.input");
  refuses_design("{ max_seeds: 4, measure: test_bleu }", "the sweep's test does not give test_bleu, but there is none");
  refuses_design("{ max_seeds: 4, looks: [2, 4] }", "sequential.looks: expected a whole number from 3 to 4");
  refuses_design("{ max_seeds: 5, looks: [4, 4, 5] }", "sequential.looks: expected ascending numbers of seeds");
  refuses_design("{ max_seeds: 5, looks: [3, 4] }", "sequential.looks: the last one is at max_seeds");
  refuses_design("{ max_seeds: 5, looks: 3 }", "sequential.looks: expected a list of numbers");
  refuses_design("{ max_seeds: 5, alpha: 0.5 }", "sequential.alpha: expected 0.0001 to 0.2");
  refuses_design("{ max_seeds: 5, equivalence: a bit }", "sequential.equivalence: expected a number, not \"a bit\"");
  refuses_design("{ max_seeds: 5 }\ngrid: { train.warmup: [1, 2] }", "sequential: not with a grid");
  refuses_design("12", "sequential: expected keys such as max_seeds: 12");
}

#define REST "baseline: good\nvariants: { good: {}, quick: { train.lr: 0.02 } }\n"

static void use_tarn_sweep_open(void) {
  tarn_sweep *sweep = opened(NULL);
  assert_memory_equal(sweep->name, "tarn-test-", 10);  // sweep.yaml is called by its folder
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
  refuses_designs();
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

// --- sequential designs and queues

static const tarn_sequential_design design = {.max_seeds = 4,
                                              .looks = {3, 4},
                                              .look_count = 2,
                                              .measure = "best",
                                              .alpha = 0.05,
                                              .equivalence = 0.3,
                                              .futility = 0.1};

static void use_tarn_sequential_spending_name(void) {
  assert_string_equal(tarn_sequential_spending_name(TARN_SEQUENTIAL_POCOCK), "pocock");
  assert_null(tarn_sequential_spending_name(TARN_SEQUENTIAL_SPENDINGS));
}

static void use_tarn_sequential_decision_name(void) {
  assert_string_equal(tarn_sequential_decision_name(TARN_SEQUENTIAL_HOPELESS), "hopeless");
  assert_null(tarn_sequential_decision_name(TARN_SEQUENTIAL_DECISIONS));
}

static void use_tarn_sequential_problem(void) {
  assert_null(tarn_sequential_problem(&design));
  tarn_sequential_design other = design;
  other.look_count = 1;
  assert_string_equal(tarn_sequential_problem(&other), "looks: the last one is at max_seeds");
  other = design, other.max_seeds = 0;
  assert_non_null(strstr(tarn_sequential_problem(&other), "max_seeds: "));
  other = design, other.look_count = TARN_SEQUENTIAL_SEEDS + 1;
  assert_non_null(strstr(tarn_sequential_problem(&other), "looks: "));
  other = design, other.measure = NULL;
  assert_non_null(strstr(tarn_sequential_problem(&other), "measure: "));
  other = design, other.alpha = NAN;
  assert_non_null(strstr(tarn_sequential_problem(&other), "alpha: "));
  other = design, other.spending = TARN_SEQUENTIAL_SPENDINGS;
  assert_non_null(strstr(tarn_sequential_problem(&other), "spending: "));
  other = design, other.equivalence = -1;
  assert_non_null(strstr(tarn_sequential_problem(&other), "equivalence: "));
  other = design, other.futility = 0.9;
  assert_non_null(strstr(tarn_sequential_problem(&other), "futility: "));
}

static void use_tarn_sequential_words(void) {
  char words[TARN_SEQUENTIAL_TEXT];
  tarn_sequential_verdict v = {.decision = TARN_SEQUENTIAL_WORSE, .p_equal = 0.5, .chance = 0.04};
  tarn_sequential_words(words, &v, &design);
  assert_string_equal(words, "worse");
  v.p_equal = 0.01;
  tarn_sequential_words(words, &v, &design);
  assert_string_equal(words, "worse, but equivalent within 0.3");
  tarn_sequential_design neutral = design;
  neutral.measure = "exponent";
  tarn_sequential_words(words, &v, &neutral);
  assert_string_equal(words, "smaller, but equivalent within 0.3");
  v.decision = TARN_SEQUENTIAL_FULL;
  tarn_sequential_words(words, &v, &design);
  assert_string_equal(words, "undecided with all 4 seeds");
  v.decision = TARN_SEQUENTIAL_HOPELESS;
  tarn_sequential_words(words, &v, &design);
  assert_string_equal(words, "closed: chance of a verdict with 4 seeds 4 %");
}

static const char *const folders[] = {"records/claim", "sweep.yaml"};

static tarn_queue_options queue_options(void) {
  tarn_queue_options options;
  tarn_queue_default(&options);
  options.folders = folders, options.count = 2, options.output = "queue", options.program = TARN_PROGRAM;
  return options;
}

static void write_claim(const char *rest) {
  char all[1000];
  assert_true(mkdir("records", 0777) == 0 || errno == EEXIST);
  assert_true(mkdir("records/claim", 0777) == 0 || errno == EEXIST);
  snprintf(all, sizeof all, "%s%s", text, rest);
  api_write("records/claim/sweep.yaml", all);
}

static void use_tarn_queue_event_name(void) {
  assert_string_equal(tarn_queue_event_name(TARN_QUEUE_EVENT_LEFT_OUT), "left out");
  assert_null(tarn_queue_event_name(TARN_QUEUE_EVENTS));
}

static void use_tarn_queue_default(void) {
  tarn_queue_options options;
  tarn_queue_default(&options);
  assert_true(!options.folders && !options.output && options.budget == 0 && !options.commit && !options.on_event);
}

static void use_tarn_queue_open(void) {
  tarn_queue *queue;
  tarn_queue_options options = queue_options();
  options.output = NULL;
  refuses(tarn_queue_open(&queue, &options), TARN_STATUS_USAGE, "a queue needs a folder");
  options = queue_options();
  options.folders = folders + 1, options.count = 1;
  refuses(tarn_queue_open(&queue, &options), TARN_STATUS_USAGE, "there is no folder of records");
  options = queue_options();
  options.budget = -1;
  refuses(tarn_queue_open(&queue, &options), TARN_STATUS_USAGE, "budget");
  assert_null(queue);
  options = queue_options();
  write_claim("");
  works(tarn_queue_open(&queue, &options));  // its base is not there
  assert_int_equal(queue->count, 1);
  assert_non_null(strstr(queue->sweeps[0].problem, "tiny.yaml"));
  assert_null(queue->next.variant);
  tarn_queue_close(&queue);
  assert_int_equal(symlink("../../tiny.yaml", "records/claim/tiny.yaml"), 0);
  works(tarn_queue_open(&queue, &options));
  assert_non_null(strstr(queue->sweeps[0].problem, "it has no key sequential"));
  tarn_queue_close(&queue);
  write_claim("sequential: { max_seeds: 4 }\n");
  works(tarn_queue_open(&queue, &options));
  assert_non_null(strstr(queue->sweeps[0].problem, "data are looked for in queue/claim"));
  assert_int_equal(queue->sweeps[0].comparison_count, 1);
  assert_string_equal(queue->sweeps[0].comparisons[0].variant, "quick");
  tarn_queue_close(&queue);
}

// cli/queue runs one to its end; here it stops, and then has no time for a run.
static void use_tarn_queue_run(void) {
  tarn_queue *queue;
  static const char *const data[] = {"vocab", "train.tarn", "valid.tarn"};
  for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
    char from[64], to[64];
    snprintf(from, sizeof from, "../../%s", data[i]);
    snprintf(to, sizeof to, "queue/claim/%s", data[i]);
    assert_int_equal(symlink(from, to), 0);
  }
  write_claim("sequential: { max_seeds: 3 }\n");
  tarn_queue_options options = queue_options();
  const volatile sig_atomic_t stop = 1;
  options.stop = &stop;
  options.budget = 1e-9;
  works(tarn_queue_open(&queue, &options));
  if (queue->sweeps[0].problem) fail_msg("%s", queue->sweeps[0].problem);
  assert_non_null(strstr(queue->sweeps[0].comparisons[0].words, "closed by the budget: the next look takes"));
  assert_true(queue->sweeps[0].comparisons[0].unaffordable && !queue->next.variant);
  refuses(tarn_queue_run(queue), TARN_STATUS_INTERRUPTED, "stopped, all is saved");
  tarn_queue_close(&queue);
  options.stop = NULL;
  works(tarn_queue_open(&queue, &options));
  works(tarn_queue_run(queue));
  assert_true(queue->sweeps[0].finished == 0 && !queue->sweeps[0].problem);
  assert_int_equal(queue->sweeps[0].comparisons[0].verdict.decision, TARN_SEQUENTIAL_OPEN);
  tarn_queue_close(&queue);
}

static void use_tarn_queue_close(void) {
  tarn_queue *queue = NULL;
  tarn_queue_close(&queue);
  assert_null(queue);
}

int main(void) {
  static const char *const headers[] = {"lab/sweep.h", "lab/queue.h", "lab/sequential.h", NULL};
  static const api_use uses[] = {USE(tarn_sweep_equalize_name),
                                 USE(tarn_sweep_trade_name),
                                 USE(tarn_sweep_state_name),
                                 USE(tarn_sweep_launcher_name),
                                 USE(tarn_sweep_time_parse),
                                 USE(tarn_sweep_default),
                                 USE(tarn_sweep_open),
                                 USE(tarn_sweep_estimate),
                                 USE(tarn_sweep_training_left),
                                 USE(tarn_sweep_run_all),
                                 USE(tarn_sweep_look),
                                 USE(tarn_sweep_cancel),
                                 USE(tarn_sweep_close),
                                 USE(tarn_sequential_spending_name),
                                 USE(tarn_sequential_decision_name),
                                 USE(tarn_sequential_problem),
                                 USE(tarn_sequential_words),
                                 USE(tarn_queue_event_name),
                                 USE(tarn_queue_default),
                                 USE(tarn_queue_open),
                                 USE(tarn_queue_run),
                                 USE(tarn_queue_close)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
