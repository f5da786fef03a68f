// tarn plan: memory, parameters and arithmetic of a configuration, before anything runs.
#include <sys/stat.h>

#include "cli.h"
#include "commands.h"
#include "plan_output.h"
#include "tarn/duration.h"
#include "tarn/plan.h"

static const cli_command command = {
    .name = "plan",
    .arguments = "CONFIG.yaml|RUN",
    .summary = "Print the memory, parameters, floating-point operations and time that a training run will need.",
    .text =
        "Nothing is trained. RUN is a run directory, whose configuration is planned. The batch is the largest that "
        "the\n"
        "configuration allows (train.max_tokens on the longer side). Sentence lengths come from data.train where it "
        "can be\n"
        "read, else 25 tokens are assumed."};

typedef struct planning {
  const char *path;
  cli_list overrides;
  int64_t vocab_size, threads;
  bool json, time;
} planning;

static int print(const planning *p, const tarn_plan *plan, const tarn_duration *duration) {
  if (!p->json) {
    plan_print_text(plan);
    if (p->time) plan_print_duration(duration);
    return CLI_OK;
  }
  json_t *object = plan_json(plan);
  if (p->time && object && json_object_set_new(object, "time", plan_duration_json(duration)) != 0) {
    json_decref(object);
    object = NULL;
  }
  return json_output_print(&command, stdout, object, JSON_COMPACT);
}

static int run(const planning *p) {
  tarn_config *config = NULL;
  tarn_plan plan = {0};
  tarn_duration duration = {0};
  struct stat info;
  const bool is_run = stat(p->path, &info) == 0 && S_ISDIR(info.st_mode);
  const tarn_plan_options wanted = {
      .source_vocab = p->vocab_size, .target_vocab = p->vocab_size, .threads = (int)p->threads};
  tarn_status status = tarn_config_read(&config, p->path, p->overrides.items, p->overrides.count);
  if (status == TARN_STATUS_OK) status = tarn_plan_make(&plan, config, &wanted);
  if (status == TARN_STATUS_OK && p->time) {
    tarn_train_options training;
    tarn_train_default(&training);
    training.config = p->path;
    training.overrides = p->overrides.items;
    training.override_count = p->overrides.count;
    training.threads = (int)p->threads;
    status = tarn_train_duration(&duration, &training, &plan, is_run ? p->path : NULL);
  }
  const int code = status == TARN_STATUS_OK ? print(p, &plan, &duration) : cli_report(&command, status);
  tarn_plan_close(&plan);
  tarn_config_close(&config);
  return code;
}

int cmd_plan(int argc, char **argv) {
  planning p = {0};
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
      CLI_DEVICE_OPTION,
      {"json", CLI_FLAG, &p.json, NULL, "print JSON", 0, 0},
      {0}};
  int code = cli_parse(&command, options, argc, argv, &files, 1, 1);
  if (code < 0) {
    p.path = files.items[0];
    code = run(&p);
  }
  cli_list_free(&p.overrides);
  cli_list_free(&files);
  return code;
}
