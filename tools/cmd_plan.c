// tarn plan: memory, parameters and arithmetic of a configuration, before anything runs.
#include "cli.h"
#include "commands.h"
#include "plan_output.h"
#include "tarn/plan.h"

static const cli_command command = {
    .name = "plan",
    .arguments = "CONFIG.yaml|RUN",
    .summary = "Print the memory, parameters and floating-point operations that a training run will need.",
    .text =
        "Nothing is trained. RUN is a run directory, whose configuration is planned. The batch is the largest that "
        "the\n"
        "configuration allows (train.max_tokens on the longer side). Sentence lengths come from data.train where it "
        "can be\n"
        "read, else 25 tokens are assumed."};

int cmd_plan(int argc, char **argv) {
  int64_t vocab_size = 0;
  int64_t threads = 0;
  bool json = false;
  cli_list overrides = {0};
  cli_list files = {0};
  const cli_option options[] = {
      {"set", CLI_LIST, &overrides, "KEY=VALUE", "override a key of the configuration; may be repeated", 0, 0},
      {"vocab-size", CLI_INT, &vocab_size, "N", "tokens of the vocabulary; 0 reads it from the configuration's files",
       0, 100000000},
      {"threads", CLI_INT, &threads, "N", "threads; 0 takes train.threads", 0, 1024},
      CLI_DEVICE_OPTION,
      {"json", CLI_FLAG, &json, NULL, "print JSON", 0, 0},
      {0}};
  int code = cli_parse(&command, options, argc, argv, &files, 1, 1);
  tarn_config *config = NULL;
  tarn_plan plan = {0};
  if (code < 0) {
    tarn_status status = tarn_config_read(&config, files.items[0], overrides.items, overrides.count);
    tarn_plan_options wanted = {.source_vocab = vocab_size, .target_vocab = vocab_size, .threads = (int)threads};
    if (status == TARN_STATUS_OK) status = tarn_plan_make(&plan, config, &wanted);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&command, status);
    if (code == CLI_OK && json) code = json_output_print(&command, stdout, plan_json(&plan), JSON_COMPACT);
    if (code == CLI_OK && !json) plan_print_text(&plan);
  }
  tarn_plan_close(&plan);
  tarn_config_close(&config);
  cli_list_free(&overrides);
  cli_list_free(&files);
  return code;
}
