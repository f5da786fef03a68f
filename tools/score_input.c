#include "score_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_names(const cli_command *command, const cli_list *systems, const cli_list *references) {
  if (references->count == 0) return cli_usage(command, "--reference FILE is missing");
  for (size_t i = 0; i < systems->count; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(systems->items[i], systems->items[k]) == 0)
        return cli_usage(command, "the system %s is given twice", systems->items[i]);
  return -1;
}

static bool is_equal(const tarn_score_lines *a, const tarn_score_lines *b) {
  if (a->count != b->count || a->count == 0) return false;
  for (size_t s = 0; s < a->count; s++)
    if (strcmp(a->items[s], b->items[s]) != 0) return false;
  return true;
}

static int read_all(score_input *input, const cli_command *command, const cli_list *systems,
                    const cli_list *references) {
  size_t count = systems->count ? systems->count : 1;
  input->systems = calloc(count, sizeof *input->systems);
  input->references = calloc(references->count, sizeof *input->references);
  input->streams = calloc(references->count, sizeof *input->streams);
  input->following = calloc(references->count, sizeof *input->following);
  if (!input->systems || !input->references || !input->streams || !input->following) return cli_no_memory(command);
  input->system_count = count;
  input->count = references->count;
  tarn_status status = TARN_STATUS_OK;
  for (size_t r = 0; r < references->count && status == TARN_STATUS_OK; r++) {
    status = tarn_score_lines_open(&input->references[r], references->items[r]);
    input->streams[r] = input->references[r].items;
  }
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    status = tarn_score_lines_open(&input->systems[i], systems->count ? systems->items[i] : NULL);
    for (size_t r = 0; r < references->count && status == TARN_STATUS_OK; r++)
      status = tarn_score_lines_match(&input->systems[i], &input->references[r]);
  }
  return status == TARN_STATUS_OK ? -1 : cli_report(command, status);
}

int score_input_open(score_input *input, const cli_command *command, const cli_list *systems,
                     const cli_list *references) {
  *input = (score_input){0};
  int code = check_names(command, systems, references);
  if (code < 0) code = read_all(input, command, systems, references);
  if (code >= 0) {
    score_input_close(input);
    return code;
  }
  for (size_t i = 0; i < input->system_count; i++)
    for (size_t r = 0; r < input->count; r++)
      if (is_equal(&input->systems[i], &input->references[r]))
        fprintf(stderr, "tarn %s: warning: %s has the very lines of the reference %s\n", command->name,
                input->systems[i].name, input->references[r].name);
  return -1;
}

void score_input_close(score_input *input) {
  for (size_t r = 0; r < input->count; r++) tarn_score_lines_close(&input->references[r]);
  for (size_t i = 0; i < input->system_count; i++) tarn_score_lines_close(&input->systems[i]);
  free(input->systems);
  free(input->references);
  free(input->streams);
  free(input->following);
  *input = (score_input){0};
}

const char *const *const *score_input_from(score_input *input, size_t s) {
  // Without lines there are no streams, and pointer arithmetic on NULL is undefined.
  for (size_t r = 0; r < input->count; r++) input->following[r] = input->streams[r] ? input->streams[r] + s : NULL;
  return input->following;
}
