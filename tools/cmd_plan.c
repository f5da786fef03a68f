// tarn plan: memory, parameters and arithmetic of a configuration, before anything runs.
#include <math.h>
#include <sys/stat.h>

#include "advice_output.h"
#include "cli.h"
#include "commands.h"
#include "plan_output.h"
#include "scale_output.h"
#include "tarn/lab/advice.h"
#include "tarn/lab/dynamics.h"
#include "tarn/lab/forecast.h"
#include "tarn/plan.h"

static const cli_command command = {
    .name = "plan",
    .arguments = "CONFIG.yaml|RUN [--records FOLDER...]",
    .summary = "Print the memory, parameters, floating-point operations and time that a training run will need.",
    .text =
        "Nothing is trained. RUN is a run directory, whose configuration is planned. The batch is the largest that "
        "the\n"
        "configuration allows (train.max_tokens on the longer side). Sentence lengths come from data.train where it "
        "can be\n"
        "read, else 25 tokens are assumed.\n"
        "\n"
        "--ranks says how fast the training would be on so many ranks (docs/scale.md): a list such as 1,2,64, in which "
        "2-1024\n"
        "stands for 2, 4, 8 and so on up to 1024. Each rank has --threads threads of its own.\n"
        "\n"
        "--records says which layers to freeze, or to leave out, by the verdicts of records of experiments (tarn "
        "record)\n"
        "of the same task: what is decided, what it saves, and the plan of the configuration with it "
        "(docs/training.md)."};

typedef struct planning {
  const char *path;
  cli_list overrides;
  int64_t vocab_size, threads;
  bool json, time, records;
  const char *const *folders;
  size_t folder_count;
  scale_wanted scale;
} planning;

// The arguments of the command.
typedef struct answers {
  tarn_plan plan;
  tarn_duration duration;
  tarn_scale scale;
  tarn_advice *advice;
} answers;

static json_t *to_json(const planning *p, const answers *a) {
  json_t *object = plan_json(&a->plan);
  if (!object) return NULL;
  int failed = 0;
  if (p->time) failed |= json_object_set_new(object, "time", plan_duration_json(&a->duration));
  if (p->scale.ranks) failed |= json_object_set_new(object, "scale", scale_json(&a->scale));
  if (p->records) failed |= json_object_set_new(object, "advice", advice_json(a->advice));
  if (failed == 0) return object;
  json_decref(object);
  return NULL;
}

static int print(const planning *p, const answers *a) {
  if (p->json) return json_output_print(&command, stdout, to_json(p, a), JSON_COMPACT);
  plan_print_text(&a->plan);
  if (p->time) plan_print_duration(&a->duration);
  if (p->scale.ranks) scale_print_text(&a->scale);
  if (p->records) return advice_print_text(&command, a->advice);
  return CLI_OK;
}

static tarn_status advise(answers *a, const planning *p, const tarn_plan_options *plan) {
  tarn_advice_options options;
  tarn_advice_default(&options);
  options.config = p->path;
  options.overrides = p->overrides.items;
  options.override_count = p->overrides.count;
  options.folders = p->folders;
  options.folder_count = p->folder_count;
  options.plan = *plan;
  return tarn_advice_make(&a->advice, &options);
}

static tarn_status answer(answers *a, const planning *p, const tarn_scale_options *scale) {
  tarn_config *config;
  struct stat info;
  const bool is_run = stat(p->path, &info) == 0 && S_ISDIR(info.st_mode);
  const tarn_plan_options wanted = {
      .source_vocab = p->vocab_size, .target_vocab = p->vocab_size, .threads = (int)p->threads};
  tarn_train_options training;
  tarn_train_default(&training);
  training.config = p->path;
  training.overrides = p->overrides.items;
  training.override_count = p->overrides.count;
  training.threads = (int)p->threads;
  tarn_status status = tarn_config_read(&config, p->path, p->overrides.items, p->overrides.count);
  if (status != TARN_STATUS_OK) return status;
  status = tarn_plan_make(&a->plan, config, &wanted);
  if (status == TARN_STATUS_OK) status = tarn_dynamics_check(config);
  tarn_config_close(&config);
  if (status == TARN_STATUS_OK && p->time)
    status = tarn_train_duration(&a->duration, &training, &a->plan, is_run ? p->path : NULL);
  if (status == TARN_STATUS_OK && p->scale.ranks) status = tarn_scale_make(&a->scale, &training, scale);
  if (status == TARN_STATUS_OK && p->records) status = advise(a, p, &wanted);
  return status;
}

static int run(const planning *p) {
  answers a = {0};
  int ranks[SCALE_MOST];
  tarn_scale_options scale;
  int code = scale_options(&scale, ranks, &command, &p->scale);
  if (code != CLI_OK) return code;
  scale.vocab_size = p->vocab_size;
  const tarn_status status = answer(&a, p, &scale);
  code = status == TARN_STATUS_OK ? print(p, &a) : cli_report(&command, status);
  tarn_advice_close(&a.advice);
  tarn_scale_close(&a.scale);
  tarn_plan_close(&a.plan);
  return code;
}

int cmd_plan(int argc, char **argv) {
  planning p = {
      .scale = {.bandwidth = NAN, .latency = NAN, .step_seconds = NAN, .optimiser_seconds = NAN, .adding = NAN}};
  cli_list files = {0};
  const cli_option options[] = {
      {"set", CLI_LIST, &p.overrides, "KEY=VALUE", "override a key of the configuration; may be repeated", 0, 0},
      {"vocab-size", CLI_INT, &p.vocab_size, "N", "tokens of the vocabulary; 0 reads it from the configuration's files",
       0, 100000000},
      {"threads", CLI_INT, &p.threads, "N", "threads; 0 takes train.threads", 0, 1024},
      {"time", CLI_FLAG, &p.time, NULL,
       "say how long the training takes, from the log of RUN, from two seconds of its updates if the data can be read, "
       "or from its operations",
       0, 0},
      {"ranks", CLI_TEXT, &p.scale.ranks, "LIST",
       "say how fast it would be on so many ranks: 1,2,64 or 1-1024, which doubles", 0, 0},
      {"bandwidth", CLI_REAL, &p.scale.bandwidth, "BYTES",
       "with --ranks: bytes a second that a rank sends, and receives at the same time (default 1.25e9)", 1, 1e18},
      {"latency", CLI_REAL, &p.scale.latency, "SECONDS",
       "with --ranks: seconds that each message between ranks takes in addition to the time of its bytes (default "
       "2e-5)",
       0, 1e6},
      {"one-machine", CLI_FLAG, &p.scale.one_machine, NULL,
       "with --ranks: all ranks run on one machine, so gradients are summed in shared memory, after the backward pass "
       "(default: over a link, during it)",
       0, 0},
      {"step-seconds", CLI_REAL, &p.scale.step_seconds, "SECONDS",
       "with --ranks: what an update takes on one rank (default: measured by updates if the data can be read, or "
       "estimated from its operations)",
       1e-9, 1e9},
      {"optimiser-seconds", CLI_REAL, &p.scale.optimiser_seconds, "SECONDS",
       "with --step-seconds: the optimiser's part of them, which train.shard_optimiser divides by the ranks (default: "
       "not told apart)",
       0, 1e9},
      {"adding", CLI_REAL, &p.scale.adding, "BYTES",
       "with --ranks: bytes of gradients a second that a rank takes out of memory, adds and puts back (default: "
       "measured)",
       1, 1e18},
      {"records", CLI_FLAG, &p.records, NULL,
       "say which layers to freeze or to leave out, by the records in the folders after CONFIG.yaml, such as results/*",
       0, 0},
      CLI_DEVICE_OPTION,
      {"json", CLI_FLAG, &p.json, NULL, "print JSON", 0, 0},
      {0}};
  int code = cli_parse(&command, options, argc, argv, &files, 1, 100000);
  if (code < 0 && !p.records && files.count > 1)
    code = cli_usage(&command, "unexpected argument \"%s\"", files.items[1]);
  if (code < 0 && p.records && files.count < 2)
    code = cli_usage(&command, "--records needs folders of records, such as results/*");
  if (code < 0) {
    p.path = files.items[0];
    p.folders = files.items + 1;
    p.folder_count = files.count - 1;
    code = run(&p);
  }
  cli_list_free(&p.overrides);
  cli_list_free(&files);
  return code;
}
