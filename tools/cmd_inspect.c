// tarn inspect: prints the parameter table of a checkpoint, or the contents of a data set.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "commands.h"
#include "inspect_data.h"
#include "inspect_vocab.h"
#include "json_output.h"
#include "model_options.h"
#include "sharing_text.h"
#include "tarn/checkpoint.h"
#include "tarn/data.h"
#include "tarn/vocab.h"

static const cli_command COMMAND = {
    "inspect", "RUN|FILE", "Print what a checkpoint, a shard or a vocabulary holds.",
    "For each parameter: name, shape, trained or frozen, bytes stored, and where the model uses it. A frozen random\n"
    "parameter is computed again from its generator, seed and initialiser, so the file stores no byte of it.\n"
    "Of a shard, or an index of several: rows, tokens, bytes, and the parts. All of it is read and checked.\n"
    "Of a vocabulary: its kind, special tokens, and how it normalises a text."};

static void format_shape(char text[64], const tarn_checkpoint_param *p) {
  if (p->rows == 1)
    snprintf(text, 64, "%lld", (long long)p->cols);
  else
    snprintf(text, 64, "%lld x %lld", (long long)p->rows, (long long)p->cols);
}

static void print_params(const tarn_checkpoint_info *info) {
  int width = 4;
  for (size_t i = 0; i < info->param_count; i++) {
    int length = (int)strlen(info->params[i].name);
    if (length > width) width = length;
  }
  printf("%-*s %14s %-8s %12s  %s\n", width, "name", "shape", "", "bytes stored", "used in");
  for (size_t i = 0; i < info->param_count; i++) {
    const tarn_checkpoint_param *p = &info->params[i];
    char shape[64];
    format_shape(shape, p);
    printf("%-*s %14s %-8s %12lld  %s%s\n", width, p->name, shape, p->trained ? "trained" : "frozen",
           (long long)p->stored_bytes, p->uses > 1 ? "shared: " : "", p->places);
  }
}

static void print_text(const tarn_checkpoint_info *info) {
  const bool narrow = strcmp(info->precision, "fp32") != 0;
  printf("file          %s (%s%s%s, update %lld%s%s)\n\n", info->path, info->kind, narrow ? " in " : "",
         narrow ? info->precision : "", (long long)info->update, info->averaged ? ", mean of " : "",
         info->averaged ? info->averaged : "");
  printf("%s\n", info->model);
  print_params(info);
  char sharing[SHARING_TEXT];
  printf("\nparameters    %lld: %lld trained, %lld frozen%s\n", (long long)(info->trained + info->frozen),
         (long long)info->trained, (long long)info->frozen,
         sharing_text(sharing, info->shared_uses, info->shared_layers, false));
  printf("bytes         %lld: %lld trained, %lld frozen, %lld optimiser, %lld vocabulary, %lld description\n",
         (long long)info->file_bytes, (long long)info->trained_bytes, (long long)info->frozen_bytes,
         (long long)info->optimiser_bytes, (long long)info->vocab_bytes,
         (long long)(info->file_bytes - info->trained_bytes - info->frozen_bytes - info->optimiser_bytes -
                     info->vocab_bytes));
  printf("vocabulary    %lld source and %lld target tokens%s\n", (long long)info->source_vocab,
         (long long)info->target_vocab, info->joint_vocab ? ", one vocabulary" : "");
  printf("seed          %llu\n", (unsigned long long)info->seed);
}

static json_t *param_json(const tarn_checkpoint_param *p) {
  json_t *shape = p->rows == 1 ? json_pack("[I]", (json_int_t)p->cols)
                               : json_pack("[I, I]", (json_int_t)p->rows, (json_int_t)p->cols);
  return json_pack("{s:s, s:o, s:b, s:i, s:s, s:I, s:s?}", "name", p->name, "shape", shape, "trained", (int)p->trained,
                   "uses", p->uses, "places", p->places, "stored_bytes", (json_int_t)p->stored_bytes, "recipe",
                   p->recipe);
}

static int print_json(const tarn_checkpoint_info *info) {
  json_t *params = json_array();
  for (size_t i = 0; i < info->param_count; i++) json_array_append_new(params, param_json(&info->params[i]));
  json_t *object = json_pack(
      "{s:o, s:s, s:s, s:s?, s:I, s:I, s:s, s:s, s:I, s:I, s:b, s:I, s:I, s:I, s:I}", "path",
      json_output_text(info->path), "kind", info->kind, "precision", info->precision, "averaged", info->averaged,
      "update", (json_int_t)info->update, "seed", (json_int_t)info->seed, "model", info->model, "config", info->config,
      "source_vocab", (json_int_t)info->source_vocab, "target_vocab", (json_int_t)info->target_vocab, "joint_vocab",
      (int)info->joint_vocab, "trained", (json_int_t)info->trained, "frozen", (json_int_t)info->frozen, "shared_uses",
      (json_int_t)info->shared_uses, "shared_layers", (json_int_t)info->shared_layers);
  json_t *bytes = json_pack("{s:I, s:I, s:I, s:I, s:I}", "file", (json_int_t)info->file_bytes, "trained",
                            (json_int_t)info->trained_bytes, "frozen", (json_int_t)info->frozen_bytes, "optimiser",
                            (json_int_t)info->optimiser_bytes, "vocabulary", (json_int_t)info->vocab_bytes);
  int failed = json_object_set_new(object, "bytes", bytes) != 0;
  failed |= json_object_set_new(object, "params", params) != 0;
  if (failed) json_decref(object);
  return json_output_print(&COMMAND, stdout, failed ? NULL : object, JSON_COMPACT);
}

int cmd_inspect(int argc, char **argv) {
  bool json = false;
  const char *which = NULL;
  cli_list files = {0};
  const cli_option table[] = {{"json", CLI_FLAG, &json, NULL, "print JSON", 0, 0}, CHECKPOINT_OPTION(which), {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 1, 1);
  // An existing path is taken as it is; without PREFIX, PREFIX.tarn is tried.
  struct stat there;
  if (code < 0 && !which && tarn_data_is(files.items[0])) {
    code = inspect_data(&COMMAND, files.items[0], json);
    if (code == CLI_OK && stat(files.items[0], &there) != 0)  // else the error message names the file
      fprintf(stderr, "tarn %s: there is no %s; this is %s.tarn\n", COMMAND.name, files.items[0], files.items[0]);
    cli_list_free(&files);
    return code;
  }
  if (code < 0 && !which && tarn_vocab_is(files.items[0])) {
    code = inspect_vocab(&COMMAND, files.items[0], json);
    cli_list_free(&files);
    return code;
  }
  tarn_checkpoint_found found = {0};
  if (code < 0) code = model_options_find(&COMMAND, &found, files.items[0], which);
  if (code < 0) {
    tarn_checkpoint_info *info;
    tarn_status status = tarn_checkpoint_info_open(&info, found.path);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
    if (code == CLI_OK && json) code = print_json(info);
    if (code == CLI_OK && !json) print_text(info);
    tarn_checkpoint_info_close(&info);
  }
  model_options_done(&COMMAND, &found, code, false);
  cli_list_free(&files);
  return code;
}
