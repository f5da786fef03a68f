// The functions around a training: train.h, plan.h, duration.h, scale.h, profile.h, ranks.h and testset.h. All look at
// one tiny run.
#include "tarn/train.h"

#include <math.h>

#include "api.h"
#include "base/memory.h"
#include "comm/ranks.h"
#include "ranks/thread_ranks.h"
#include "tarn/lab/forecast.h"
#include "tarn/lab/sweep.h"
#include "tarn/plan.h"
#include "tarn/process.h"
#include "tiny_run.h"

static tarn_profile *profile;  // of the run
static int events[TARN_TRAIN_EVENT_DYNAMICS + 1];
static tarn_train_result ended;

static void count_event(void *user, const tarn_train_event *event) {
  (void)user;
  events[event->kind]++;
}

static tarn_train_options of_run(const char *run) {
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = run;
  return options;
}

static int open_all(void **state) {
  tarn_train *train;
  if (tiny_open(state) != 0) return -1;
  make_text_shard("text", 12, TINY_VOCAB, 7);
  sandbox_write("source", "w3 w4 w5\nw6 w7\n", 15);
  sandbox_write("reference", "w8 w9\nw3\n", 9);
  sandbox_write("one-line", "w8 w9\n", 6);
  tarn_train_options options = of_run("run");
  works(tarn_profile_open(&profile, 2));
  options.profile = profile;
  options.on_event = count_event;
  works(tarn_train_open(&train, &options));
  works(tarn_train_run(train, &ended));
  tarn_train_close(&train);
  return 0;
}

static int close_all(void **state) {
  tarn_profile_close(&profile);
  return sandbox_close(state);
}

static void use_tarn_train_default(void) {
  tarn_train_options options;
  memset(&options, 0xff, sizeof options);
  tarn_train_default(&options);
  assert_true(!options.config && !options.run && !options.overrides && !options.comm && !options.on_event);
  assert_true(!options.resume && !options.accept_log && !options.plan_only && options.threads == 0);
}

static void refuses_train(tarn_train_options options, tarn_status status, const char *line) {
  tarn_train *train = (tarn_train *)1;
  refuses(tarn_train_open(&train, &options), status, line);
  assert_null(train);
}

// A new run with this override.
static void refuses_override(const char *override, tarn_status status, const char *line) {
  tarn_train_options options = of_run("never");
  options.overrides = &override;
  options.override_count = 1;
  refuses_train(options, status, line);
}

static void refuses_resuming(const char *run, const char *override, tarn_status status, const char *line) {
  tarn_train_options options = of_run(run);
  options.config = NULL;
  options.resume = true;
  options.overrides = &override;
  options.override_count = override ? 1 : 0;
  refuses_train(options, status, line);
}

static void use_tarn_train_open(void) {
  const tarn_status usage = TARN_STATUS_USAGE;
  tarn_train *train = tiny_open_train("tiny.yaml", "busy", NULL, 0);
  refuses_train(of_run("busy"), TARN_STATUS_BUSY, "busy");
  tarn_train_close(&train);
  tarn_train_options o = of_run(NULL);
  refuses_train(o, usage, "a training needs a run directory");
  o.plan_only = true;
  works(tarn_train_open(&train, &o));
  tarn_train_close(&train);
  const tarn_train_options good = of_run("never");
  refuses_train((o = good, o.config = NULL, o), usage, "either a description or a run directory to resume");
  refuses_train((o = good, o.resume = true, o), usage, "either a description or a run directory to resume");
  refuses_train((o = good, o.threads = -1, o), usage, "the number of threads is 0 to 4096, not -1");
  refuses_train((o = good, o.comm = "pigeon", o), usage, "the communicator \"pigeon\" is not built in");
  refuses_train((o = good, o.config = "missing", o), TARN_STATUS_IO, "missing: cannot read");
  refuses_train((o = good, o.run = "source", o), TARN_STATUS_IO, "source");
  refuses_train(of_run("run"), usage, "run already holds this run; go on with: tarn train --resume run");
  refuses_override("train.lrr=1", usage, "did you mean \"lr\"");
  refuses_override("data.train=", usage, "data.train is missing");
  refuses_override("train.seeds=[1, 2]", usage, "train.seeds: asks for several runs");
  refuses_override("data.train=missing", TARN_STATUS_IO, "missing.tarn: there is no such file");
  refuses_override("data.train=source", TARN_STATUS_DATA, "source: this is text");
  refuses_override("data.train=text", TARN_STATUS_DATA, "is trained on pairs of sentences");
  refuses_override("data.vocab=missing", TARN_STATUS_IO, "missing: there is no such file");
  refuses_override("train.init_from=missing", TARN_STATUS_IO, "missing");
  refuses_override("model.d_model=65536", TARN_STATUS_MEMORY, "this training needs");
  assert_int_not_equal(access("never/checkpoint_last.safetensors", F_OK), 0);
  refuses_resuming("missing", NULL, usage, "missing");
  refuses_resuming("source", NULL, usage, "source");
  refuses_resuming("run", "model.d_model=32", usage, "model.d_model cannot change when a run goes on");
  refuses_resuming("run", "nonsense", usage, "expected key=value");
}

static void use_tarn_train_close(void) {
  tarn_train *train = NULL;
  tarn_train_close(&train);
  assert_null(train);
  train = tiny_open_train("tiny.yaml", "closed", NULL, 0);
  tarn_train_close(&train);
  assert_null(train);
  tarn_train_close(&train);
}

// Opens the finished run again.
static tarn_train *open_finished(void) {
  tarn_train *train;
  tarn_train_options options = of_run("run");
  options.config = NULL;
  options.resume = true;
  works(tarn_train_open(&train, &options));
  return train;
}

static void use_tarn_train_config(void) {
  tarn_train *train = open_finished();
  double updates;
  char *vocab;
  works(tarn_config_number(tarn_train_config(train), "train.max_updates", &updates));
  assert_true(updates == 12);
  works(tarn_config_get(tarn_train_config(train), "data.vocab", &vocab));
  assert_string_equal(vocab, "vocab");
  tarn_config_text_close(&vocab);
  tarn_train_close(&train);
}

static void use_tarn_train_plan(void) {
  tarn_train *train = open_finished();
  const tarn_plan *plan = tarn_train_plan(train);
  assert_true(plan->total_bytes > 0 && plan->trained_parameters > 0 && plan->frozen_parameters > 0);
  assert_true(plan->part_count > 0 && plan->parts);
  tarn_train_close(&train);
}

static void use_tarn_train_update(void) {
  tarn_train *train = open_finished();
  assert_int_equal(tarn_train_update(train), 12);
  tarn_train_close(&train);
}

static void use_tarn_train_rank(void) {
  tarn_train *train = open_finished();
  assert_int_equal(tarn_train_rank(train), 0);
  tarn_train_close(&train);
}

static void use_tarn_train_ranks(void) {
  tarn_train *train = open_finished();
  assert_int_equal(tarn_train_ranks(train), 1);
  tarn_train_close(&train);
}

static void use_tarn_train_is_over(void) {
  tarn_train_end end = TARN_TRAIN_END_PASS;
  tarn_train *train = open_finished();
  assert_true(tarn_train_is_over(train, &end));
  assert_int_equal(end, TARN_TRAIN_END_UPDATES);
  tarn_train_close(&train);
  train = tiny_open_train("tiny.yaml", "over", NULL, 0);
  assert_false(tarn_train_is_over(train, &end));
  tarn_train_close(&train);
}

static void use_tarn_train_was_over(void) {
  tarn_train *train = open_finished();
  assert_true(tarn_train_was_over(train));
  tarn_train_close(&train);
  train = tiny_open_train("tiny.yaml", "over", NULL, 0);
  assert_false(tarn_train_was_over(train));
  tarn_train_close(&train);
}

static void use_tarn_train_run(void) {
  static const sig_atomic_t stop = 1;
  static const char *const far[] = {"train.lr=100", "train.warmup=0", "model.norm=none"};
  assert_int_equal(ended.end, TARN_TRAIN_END_UPDATES);
  assert_int_equal(ended.update, 12);
  assert_true(isfinite(ended.scores[tarn_measure_find("nll")->number]) && ended.seconds > 0);
  assert_int_equal(events[TARN_TRAIN_EVENT_UPDATE], 12);
  assert_int_equal(events[TARN_TRAIN_EVENT_LOG], 6);
  assert_true(events[TARN_TRAIN_EVENT_VALID] >= 3 && events[TARN_TRAIN_EVENT_SAVED] >= 2);
  assert_int_equal(events[TARN_TRAIN_EVENT_FREEZE], 0);
  refuses(tiny_train("tiny.yaml", "stopped", NULL, 0, NULL, NULL, &stop), TARN_STATUS_INTERRUPTED, "stopped");
  refuses(tiny_train("tiny.yaml", "far", far, 3, NULL, NULL, NULL), TARN_STATUS_NUMERIC, "at update");
}

static void refuses_list(tarn_train_options options, tarn_status status, const char *line) {
  tarn_train_list *list = (tarn_train_list *)1;
  refuses(tarn_train_list_open(&list, &options), status, line);
  assert_null(list);
}

static void use_tarn_train_list_open(void) {
  static const char *const seeds[] = {"train.seeds=[3, 5]"}, *const twice[] = {"train.seeds=[3, 3]"};
  tarn_train_list *list;
  tarn_train_options o = of_run("alone");
  works(tarn_train_list_open(&list, &o));
  assert_int_equal(list->count, 1);
  assert_null(list->seeds);
  tarn_train_list_close(&list);
  o = of_run("several");
  o.overrides = seeds;
  o.override_count = 1;
  works(tarn_train_list_open(&list, &o));
  assert_int_equal(list->count, 2);
  assert_int_equal(list->seeds[1], 5);
  assert_string_equal(list->runs[1].run, "several/seed-5");
  tarn_train_list_close(&list);
  refuses_list(o, TARN_STATUS_USAGE, "several already holds runs");
  o = of_run("no-list");
  o.overrides = twice;
  o.override_count = 1;
  refuses_list(o, TARN_STATUS_USAGE, "3 is given twice");
  refuses_list((o = of_run("no-list"), o.config = "missing", o), TARN_STATUS_IO, "missing: cannot read");
  refuses_list((o = of_run("no-list"), o.config = NULL, o), TARN_STATUS_USAGE, "either a description or");
  refuses_list(of_run(NULL), TARN_STATUS_USAGE, "a training needs a run directory");
  assert_int_not_equal(access("no-list", F_OK), 0);
}

static void use_tarn_train_list_close(void) {
  tarn_train_list *list = NULL;
  tarn_train_list_close(&list);
  assert_null(list);
  const tarn_train_options options = of_run("alone");
  works(tarn_train_list_open(&list, &options));
  tarn_train_list_close(&list);
  assert_null(list);
  tarn_train_list_close(&list);
}

static tarn_config *tiny_description(const char *override) {
  tarn_config *config;
  works(tarn_config_read(&config, "tiny.yaml", &override, override ? 1 : 0));
  return config;
}

static tarn_plan planned(const char *override) {
  tarn_plan plan;
  tarn_config *config = tiny_description(override);
  works(tarn_plan_make(&plan, config, &(tarn_plan_options){0}));
  tarn_config_close(&config);
  return plan;
}

static void refuses_plan(const char *override, tarn_plan_options options, tarn_status status, const char *line) {
  tarn_plan plan;
  tarn_config *config = tiny_description(override);
  refuses(tarn_plan_make(&plan, config, &options), status, line);
  tarn_plan_close(&plan);  // nothing is in it
  tarn_config_close(&config);
}

static void use_tarn_plan_make(void) {
  tarn_plan plan = planned(NULL);
  assert_true(plan.total_bytes > 0 && plan.epoch_tokens > 0 && plan.part_count >= 6);
  assert_true(plan.shared_layers > 0);
  tarn_plan_close(&plan);
  static const char bare[] = "decoder: { layers: L }\nkinds: { L: { heads: 2 } }\n";
  tarn_config *config;
  works(tarn_config_parse(&config, "bare", bare, strlen(bare), NULL, 0));
  refuses(tarn_plan_make(&plan, config, &(tarn_plan_options){0}), TARN_STATUS_USAGE,
          "bare: the size of the vocabulary is not known");
  tarn_config_close(&config);
  refuses_plan("data.train=source", (tarn_plan_options){0}, TARN_STATUS_DATA, "source: this is text");
  refuses_plan("data.train=text", (tarn_plan_options){0}, TARN_STATUS_DATA, "is trained on pairs of sentences");
  refuses_plan(NULL, (tarn_plan_options){.source_vocab = -1}, TARN_STATUS_USAGE, "-1");
  refuses_plan(NULL, (tarn_plan_options){.source_vocab = 60, .target_vocab = -5}, TARN_STATUS_USAGE, "-5");
  refuses_plan(NULL, (tarn_plan_options){.source_vocab = INT64_MAX}, TARN_STATUS_USAGE, "9223372036854775807");
  refuses_plan(NULL, (tarn_plan_options){.threads = -1}, TARN_STATUS_USAGE, "-1");
}

static void use_tarn_plan_close(void) {
  tarn_plan plan = planned(NULL);
  tarn_plan_close(&plan);
  assert_null(plan.parts);
  assert_int_equal(plan.part_count, 0);
  tarn_plan_close(&plan);
}

static void use_tarn_memory_available(void) { assert_true(tarn_memory_available() > 0); }

static void use_tarn_duration_source_name(void) {
  assert_string_equal(tarn_duration_source_name(TARN_DURATION_RUN), "run");
  assert_string_equal(tarn_duration_source_name(TARN_DURATION_OPERATIONS), "operations");
  assert_null(tarn_duration_source_name((tarn_duration_source)3));
  assert_null(tarn_duration_source_name((tarn_duration_source)-1));
}

static void use_tarn_train_duration(void) {
  static const char *const bad[] = {"train.lr=fast"};
  tarn_duration duration;
  tarn_plan plan = planned(NULL);
  tarn_train_options options = of_run(NULL);
  works(tarn_train_duration(&duration, &options, &plan, "run"));
  assert_int_equal(duration.source, TARN_DURATION_RUN);
  assert_true(duration.updates == 12 && duration.seconds > 0 && duration.seconds_left < duration.seconds);
  assert_true(duration.low <= duration.seconds && duration.seconds <= duration.high);
  options.overrides = bad;
  options.override_count = 1;
  refuses(tarn_train_duration(&duration, &options, &plan, "run"), TARN_STATUS_USAGE, "fast");
  options.override_count = 0;
  options.config = "missing";
  refuses(tarn_train_duration(&duration, &options, &plan, NULL), TARN_STATUS_IO, "missing: cannot read");
  options.config = NULL;
  refuses(tarn_train_duration(&duration, &options, &plan, NULL), TARN_STATUS_USAGE, "a description is needed");
  options.config = "tiny.yaml";
  options.threads = -1;
  refuses(tarn_train_duration(&duration, &options, &plan, "run"), TARN_STATUS_USAGE, "the number of threads");
  tarn_plan_close(&plan);
}

static void use_tarn_scale_default(void) {
  tarn_scale_options options;
  memset(&options, 0xff, sizeof options);
  tarn_scale_default(&options);
  assert_int_equal(options.count, 1);
  assert_int_equal(options.ranks[0], 1);
  assert_true(options.bandwidth == 1.25e9 && options.latency == 2e-5 && options.adding == 0);
  assert_true(options.step_seconds == 0 && options.optimiser_seconds == 0 && options.one_machine == 0);
}

static tarn_scale_options given_scale(void) {
  static const int ranks[] = {1, 2, 8};
  tarn_scale_options options;
  tarn_scale_default(&options);
  options.ranks = ranks;
  options.count = 3;
  options.step_seconds = 0.01;
  options.optimiser_seconds = 0.001;
  options.adding = 1e9;
  return options;
}

static void refuses_scale(tarn_scale_options options, const char *line) {
  tarn_scale scale;
  const tarn_train_options training = of_run(NULL);
  refuses(tarn_scale_make(&scale, &training, &options), TARN_STATUS_USAGE, line);
  tarn_scale_close(&scale);
}

static void use_tarn_scale_make(void) {
  static const int zero = 0, many = TARN_SCALE_RANKS + 1;
  static const char *const ridge[] = {"train.optimiser=ridge"};
  tarn_scale scale;
  tarn_train_options training = of_run(NULL);
  const tarn_scale_options good = given_scale();
  tarn_scale_options o;
  works(tarn_scale_make(&scale, &training, &good));
  assert_int_equal(scale.count, 3);
  assert_true(scale.points[0].whole.efficiency > 0.999 && scale.points[2].whole.efficiency < 1);
  assert_true(scale.points[1].whole.sent_bytes > 0 && scale.values > 0);
  tarn_scale_close(&scale);
  refuses_scale((o = good, o.count = 0, o), "expected a number of ranks");
  refuses_scale((o = good, o.ranks = &zero, o.count = 1, o), "the number of ranks is 1 to 1048576, not 0");
  refuses_scale((o = good, o.ranks = &many, o.count = 1, o), "not 1048577");
  refuses_scale((o = good, o.bandwidth = 0, o), "the bandwidth is bytes a second, more than 0, not 0");
  refuses_scale((o = good, o.bandwidth = NAN, o), "the bandwidth is bytes a second");
  refuses_scale((o = good, o.latency = -1, o), "the latency is seconds, 0 or more, not -1");
  refuses_scale((o = good, o.step_seconds = -1, o), "a step takes more than 0 seconds, not -1");
  refuses_scale((o = good, o.optimiser_seconds = -1, o), "the optimiser takes 0 seconds or more");
  refuses_scale((o = good, o.optimiser_seconds = 1, o), "the optimiser takes 1 seconds of a step of 0.01");
  refuses_scale((o = good, o.adding = INFINITY, o), "gradients are added at more than 0 bytes a second");
  refuses_scale((o = good, o.vocab_size = -1, o), "-1");
  training.overrides = ridge;
  training.override_count = 1;
  refuses(tarn_scale_make(&scale, &training, &good), TARN_STATUS_USAGE, "ridge");
  training.override_count = 0;
  training.config = "missing";
  refuses(tarn_scale_make(&scale, &training, &good), TARN_STATUS_IO, "missing: cannot read");
  training.config = NULL;
  refuses(tarn_scale_make(&scale, &training, &good), TARN_STATUS_USAGE, "a description is needed");
}

static void use_tarn_scale_close(void) {
  tarn_scale scale;
  const tarn_train_options training = of_run(NULL);
  const tarn_scale_options options = given_scale();
  works(tarn_scale_make(&scale, &training, &options));
  tarn_scale_close(&scale);
  assert_true(!scale.parts && !scale.points && !scale.own && scale.count == 0);
  tarn_scale_close(&scale);
}

static void use_tarn_profile_open(void) {
  tarn_profile *opened;
  works(tarn_profile_open(&opened, 0));
  tarn_profile_close(&opened);
  works(tarn_profile_open(&opened, INT64_MAX));
  tarn_profile_close(&opened);
  refuses(tarn_profile_open(&opened, -1), TARN_STATUS_USAGE, "a trace shows 0 or more updates, not -1");
  assert_null(opened);
}

static void use_tarn_profile_close(void) {
  tarn_profile *opened = NULL;
  tarn_profile_close(&opened);
  assert_null(opened);
  works(tarn_profile_open(&opened, 1));
  tarn_profile_close(&opened);
  assert_null(opened);
  tarn_profile_close(&opened);
}

static void use_tarn_profile_sum(void) {
  tarn_profile_summary summary;
  works(tarn_profile_sum(profile, &summary));
  assert_true(summary.units == 11 && summary.left_out == 1 && summary.left_out_seconds > 0);
  assert_string_equal(summary.unit, "update");
  assert_true(summary.count > 10 && summary.seconds > 0);
  tarn_profile *unused;
  works(tarn_profile_open(&unused, 0));
  works(tarn_profile_sum(unused, &summary));
  assert_int_equal(summary.units, 0);
  assert_string_equal(summary.unit, "");
  assert_true(summary.seconds == 0);
  tarn_profile_close(&unused);
  // A profile is never bad: only memory can be missing.
  works(tarn_profile_open(&unused, 0));
  tarn__memory_fail_after(1);
  refuses(tarn_profile_sum(unused, &summary), TARN_STATUS_MEMORY, "memory");
  tarn__memory_fail_after(0);
  tarn_profile_close(&unused);
}

static void use_tarn_profile_write_trace(void) {
  char begin[16] = "";
  works(tarn_profile_write_trace(profile, "trace.json"));
  FILE *file = fopen("trace.json", "rb");
  assert_non_null(file);
  assert_in_range(fread(begin, 1, sizeof begin - 1, file), 10, 15);
  fclose(file);
  assert_int_equal(begin[0], '{');
  refuses(tarn_profile_write_trace(profile, "missing/trace.json"), TARN_STATUS_IO, "missing/trace.json: cannot write");
  refuses(tarn_profile_write_trace(profile, "."), TARN_STATUS_IO, "is a folder");
}

static void use_tarn_ranks_started(void) { assert_int_equal(tarn_ranks_started(), 1); }

static void use_tarn_ranks_open(void) {
  tarn_ranks *ranks;
  works(tarn_ranks_open(&ranks, NULL));
  tarn_ranks_close(&ranks);
  works(tarn_ranks_open(&ranks, "self"));
  assert_int_equal(tarn_ranks_count(ranks), 1);
  tarn_ranks_close(&ranks);
  refuses(tarn_ranks_open(&ranks, "selv"), TARN_STATUS_USAGE, "expected self, mpi, nccl; did you mean \"self\"?");
  assert_null(ranks);
  refuses(tarn_ranks_open(&ranks, ""), TARN_STATUS_USAGE, "the communicator \"\" is not built in");
  assert_null(ranks);
}

static void use_tarn_ranks_close(void) {
  tarn_ranks *ranks = NULL;
  tarn_ranks_close(&ranks);
  assert_null(ranks);
  works(tarn_ranks_open(&ranks, "self"));
  tarn_ranks_close(&ranks);
  assert_null(ranks);
  tarn_ranks_close(&ranks);
}

// The ranks of a hub of two, whose second one is told of.
typedef struct two_ranks {
  rank_hub hub;
  rank_comm comms[MOST_RANKS];
  tarn_ranks ranks[2];
} two_ranks;

static two_ranks *open_two(void) {
  two_ranks *two = calloc(1, sizeof *two);
  assert_non_null(two);
  hub_open(&two->hub, two->comms, 2);
  for (int r = 0; r < 2; r++) two->ranks[r].comm = &two->comms[r].comm;
  return two;
}

static void close_two(two_ranks *two) {
  hub_close(&two->hub);
  free(two);
}

static void use_tarn_ranks_rank(void) {
  two_ranks *two = open_two();
  assert_int_equal(tarn_ranks_rank(NULL), 0);
  assert_int_equal(tarn_ranks_rank(&two->ranks[1]), 1);
  close_two(two);
}

static void use_tarn_ranks_count(void) {
  two_ranks *two = open_two();
  assert_int_equal(tarn_ranks_count(NULL), 1);
  assert_int_equal(tarn_ranks_count(&two->ranks[0]), 2);
  close_two(two);
}

static void use_tarn_ranks_leave(void) {
  tarn_ranks *alone;
  assert_false(tarn_ranks_leave(NULL, TARN_STATUS_DATA, "no data"));
  works(tarn_ranks_open(&alone, "self"));
  assert_false(tarn_ranks_leave(alone, TARN_STATUS_DATA, "no data"));
  assert_string_equal(tarn_error_message(), "no data");
  assert_false(tarn_ranks_leave(alone, TARN_STATUS_DATA, NULL));
  tarn_ranks_close(&alone);
  two_ranks *two = open_two();
  assert_true(tarn_ranks_leave(&two->ranks[1], TARN_STATUS_DATA, "no data here"));
  close_two(two);
}

static void use_tarn_ranks_meet(void) {
  tarn_ranks *alone;
  works(tarn_ranks_meet(NULL));
  works(tarn_ranks_open(&alone, "self"));
  works(tarn_ranks_meet(alone));
  tarn_ranks_close(&alone);
  // One of two has left.
  two_ranks *two = open_two();
  assert_true(tarn_ranks_leave(&two->ranks[1], TARN_STATUS_DATA, "no data here"));
  refuses(tarn_ranks_meet(&two->ranks[0]), TARN_STATUS_DATA, "rank 1: no data here");
  close_two(two);
}

static void use_tarn_ranks_fail(void) {
  assert_false(tarn_ranks_fail(NULL, TARN_STATUS_USAGE, "no such option"));
  assert_false(tarn_ranks_fail("self", TARN_STATUS_USAGE, "no such option"));
}

static void use_tarn_ranks_abandon(void) {
  tarn_ranks_abandon();
  tarn_ranks_abandon();
}

static void use_tarn_testset_default(void) {
  tarn_testset_options options;
  memset(&options, 0xff, sizeof options);
  tarn_testset_default(&options);
  assert_true(!options.run && !options.checkpoint && !options.source && !options.reference && !options.blimp);
  assert_true(!options.labelled && !options.text && !options.ranks);
  assert_int_equal(options.window + options.stride + options.beam + options.threads, 0);
  assert_int_equal(options.precision, TARN_TRANSLATE_PRECISION_FP32);
  assert_int_equal(options.overlong, TARN_TRANSLATE_OVERLONG_REFUSE);
}

static void refuses_testset(tarn_testset_options options, tarn_status status, const char *line) {
  tarn_testset_result result;
  refuses(tarn_testset_run(&result, &options), status, line);
}

static void use_tarn_testset_run(void) {
  const tarn_status usage = TARN_STATUS_USAGE;
  tarn_testset_result result;
  tarn_testset_options good, o;
  tarn_testset_default(&good);
  good.run = "run";
  good.source = "source";
  good.reference = "reference";
  good.threads = 1;
  works(tarn_testset_run(&result, &good));
  assert_int_equal(result.sentences, 2);
  assert_in_range(result.bleu, 0, 100);
  assert_int_equal(access("run/test.hyp", F_OK), 0);
  assert_int_equal(access("run/test.json", F_OK), 0);
  refuses_testset((o = good, o.run = NULL, o), usage, "a test needs a run");
  refuses_testset((o = good, o.source = NULL, o), usage, "a test needs a run, and a source and a reference");
  refuses_testset((o = good, o.text = "source", o), usage, "or a text");
  refuses_testset((o = good, o.window = 5, o), usage, "a window and its stride are for a text");
  refuses_testset((o = good, o.stride = -1, o), usage, "a window and its stride are for a text");
  refuses_testset((o = good, o.beam = -1, o), usage, "beam");
  refuses_testset((o = good, o.threads = -1, o), usage, "threads");
  refuses_testset((o = good, o.precision = TARN_TRANSLATE_PRECISION_AUTO, o), usage, "fp32, bf16, int8 or int4");
  refuses_testset((o = good, o.precision = TARN_TRANSLATE_PRECISION_COUNT, o), usage, "fp32, bf16, int8 or int4");
  refuses_testset((o = good, o.overlong = TARN_TRANSLATE_OVERLONG_TRUNCATE, o), usage, "sources are always cut");
  refuses_testset((o = good, o.run = "missing", o), usage, "missing: no run: there is no config.yaml");
  refuses_testset((o = good, o.run = "source", o), usage, "source: this is text");
  refuses_testset((o = good, o.source = "missing", o), TARN_STATUS_IO, "missing: cannot read");
  refuses_testset((o = good, o.reference = "missing", o), TARN_STATUS_IO, "missing: cannot read");
  refuses_testset((o = good, o.reference = "one-line", o), TARN_STATUS_DATA, "source has 2 lines, but one-line has 1");
  refuses_testset((o = good, o.checkpoint = "missing", o), TARN_STATUS_IO, "missing");
  refuses_testset((o = good, o.checkpoint = "source", o), TARN_STATUS_DATA, "source: this is text");
  o = good;
  o.source = o.reference = NULL;
  o.text = "source";
  refuses_testset(o, usage,
                  "run: a translation model does not score single sentences; only language models (models with a "
                  "decoder alone) and masked language models (models with an encoder alone) do");
  o.overlong = (tarn_translate_overlong)9;
  refuses_testset(o, usage, "there is no rule 9 for texts that are overlong");
}

// What a program measures of its own, at updates 0, 8 and 12.
static tarn_status open_counting(void **state, tarn_train *train, char identity[TARN_TRAIN_IDENTITY]) {
  static int64_t counted;
  assert_int_equal(tarn_train_update(train), 0);
  snprintf(identity, TARN_TRAIN_IDENTITY, "updates");
  counted = 0;
  *state = &counted;
  return TARN_STATUS_OK;
}

static tarn_status count_updates(void *state, tarn_train *train, tarn_train_values *values) {
  int64_t *counted = state;
  works(tarn_train_values_add(values, "update", (double)tarn_train_update(train)));
  works(tarn_train_values_add(values, "of/all", (double)++*counted));
  works(tarn_train_values_add(values, "infinite", INFINITY));
  refuses(tarn_train_values_add(values, "update", 1), TARN_STATUS_USAGE,
          "\"update\" cannot name a value: use 1 to 64 letters");
  refuses(tarn_train_values_add(values, "step", 1), TARN_STATUS_USAGE, "\"step\"");
  refuses(tarn_train_values_add(values, "seconds", 1), TARN_STATUS_USAGE, "\"seconds\"");
  refuses(tarn_train_values_add(values, "", 1), TARN_STATUS_USAGE, "\"\"");
  refuses(tarn_train_values_add(values, NULL, 1), TARN_STATUS_USAGE, "\"\"");
  refuses(tarn_train_values_add(values, "a b", 1), TARN_STATUS_USAGE, "\"a b\"");
  return TARN_STATUS_OK;
}

static void end_counting(void *state) { assert_int_equal(*(int64_t *)state, 3); }

static void see_values(void *user, const tarn_train_event *event) {
  int *seen = user;
  if (event->kind != TARN_TRAIN_EVENT_DYNAMICS) return;
  assert_int_equal(event->value_count, 2);
  assert_string_equal(event->values[0].name, "update");
  assert_true(event->values[0].value == (double)event->update && event->values[1].value == (double)++*seen);
  assert_non_null(strstr(event->line, "{\"kind\":\"dynamics\",\"step\":"));
  assert_non_null(strstr(event->line, "\"of/all\":"));
  assert_null(strstr(event->line, "infinite"));
}

static void use_tarn_train_values_add(void) {
  static const tarn_train_dynamics counting = {open_counting, count_updates, end_counting};
  static const char *const overrides[] = {"dynamics={input: anything, every: 8}"};
  int seen = 0;
  tarn_train_options options = of_run("counted");
  options.overrides = overrides, options.override_count = 1;
  refuses_train(options, TARN_STATUS_USAGE, "dynamics.input: this program cannot compute exponents");
  options.dynamics = &counting;
  options.on_event = see_values, options.user = &seen;
  works(tiny_run(&options));
  assert_int_equal(seen, 3);
}

int main(void) {
  static const char *const headers[] = {"train.h", "plan.h", "lab/forecast.h", "process.h", "lab/sweep.h", NULL};
  static const api_use uses[] = {
      USE(tarn_train_default),       USE(tarn_train_open),      USE(tarn_train_close),
      USE(tarn_train_config),        USE(tarn_train_plan),      USE(tarn_train_update),
      USE(tarn_train_rank),          USE(tarn_train_ranks),     USE(tarn_train_is_over),
      USE(tarn_train_was_over),      USE(tarn_train_run),       USE(tarn_train_list_open),
      USE(tarn_train_list_close),    USE(tarn_plan_make),       USE(tarn_plan_close),
      USE(tarn_memory_available),    USE(tarn_train_duration),  USE(tarn_duration_source_name),
      USE(tarn_scale_default),       USE(tarn_scale_make),      USE(tarn_scale_close),
      USE(tarn_profile_open),        USE(tarn_profile_close),   USE(tarn_profile_sum),
      USE(tarn_profile_write_trace), USE(tarn_ranks_started),   USE(tarn_ranks_open),
      USE(tarn_ranks_close),         USE(tarn_ranks_rank),      USE(tarn_ranks_count),
      USE(tarn_ranks_leave),         USE(tarn_ranks_meet),      USE(tarn_ranks_fail),
      USE(tarn_ranks_abandon),       USE(tarn_testset_default), USE(tarn_testset_run),
      USE(tarn_train_values_add),
  };
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, close_all);
}
