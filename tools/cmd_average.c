// tarn average: the mean of several checkpoints.
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "model_options.h"
#include "progress_show.h"
#include "tarn/checkpoint.h"

static const cli_command COMMAND = {
    "average", "CHECKPOINT...", "Write the mean of the trained parameters of several checkpoints.",
    "The checkpoints must be of one training. Configuration and vocabularies are those of the last one given."};

// The files of the given checkpoints or run directories.
static int find_all(tarn_checkpoint_found *found, const char **paths, const cli_list *given, const char *which) {
  int code = -1;
  for (size_t i = 0; i < given->count && code < 0; i++) {
    code = model_options_find(&COMMAND, &found[i], given->items[i], which);
    paths[i] = found[i].path;
  }
  return code;
}

static int print_json(const char *output, const char *const *paths, size_t count) {
  json_t *all = json_array();
  int failed = 0;
  for (size_t i = 0; i < count; i++) failed |= json_array_append_new(all, json_output_text(paths[i])) != 0;
  json_t *object = json_pack("{s:o, s:o}", "output", json_output_text(output), "checkpoints", all);
  if (failed) json_decref(object);
  return json_output_print(&COMMAND, stdout, failed ? NULL : object, JSON_COMPACT);
}

static int average(const char *output, const cli_list *given, const char *which, bool json) {
  tarn_checkpoint_found *found = calloc(given->count, sizeof *found);
  const char **paths = calloc(given->count, sizeof *paths);
  int code = found && paths ? find_all(found, paths, given, which) : cli_no_memory(&COMMAND);
  if (code < 0) {
    tarn_status status = tarn_checkpoint_average(output, paths, given->count);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
    if (code == CLI_OK && json) code = print_json(output, paths, given->count);
  }
  for (size_t i = 0; found && i < given->count; i++) model_options_done(&COMMAND, &found[i], code, false);
  free(found);
  free(paths);
  return code;
}

int cmd_average(int argc, char **argv) {
  const char *output = NULL;
  const char *which = NULL;
  bool json = false;
  cli_list files = {0};
  const cli_option table[] = {{"output", CLI_TEXT, &output, "FILE", "where to write the mean; needed", 0, 0},
                              CHECKPOINT_OPTION(which),
                              {"json", CLI_FLAG, &json, NULL, "print what was made as JSON", 0, 0},
                              PROGRESS_OPTIONS,
                              CLI_DEVICE_OPTION,
                              {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 1, SIZE_MAX);
  if (code < 0 && !output) code = cli_usage(&COMMAND, "--output is missing");
  if (code < 0) code = average(output, &files, which, json);
  if (code == CLI_OK && files.count == 1)
    fprintf(stderr, "tarn average: warning: only one checkpoint was given, so %s holds its parameters\n", output);
  cli_list_free(&files);
  return code;
}
