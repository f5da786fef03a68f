#include "score_input.h"

#include <stdio.h>
#include <stdlib.h>

static int read_all(score_input *input, const cli_command *command, const char *hypothesis,
                    const cli_list *references) {
  input->references = calloc(references->count, sizeof *input->references);
  input->streams = calloc(references->count, sizeof *input->streams);
  input->row = calloc(references->count, sizeof *input->row);
  if (!input->references || !input->streams || !input->row) {
    return cli_no_memory(command);
  }
  input->count = references->count;
  for (size_t r = 0; r < references->count; r++) {
    tarn_status status = tarn_score_lines_open(&input->references[r], references->items[r]);
    if (status != TARN_STATUS_OK) return cli_report(command, status);
    input->streams[r] = input->references[r].items;
  }
  tarn_status status = tarn_score_lines_open(&input->hypothesis, hypothesis);
  for (size_t r = 0; r < references->count && status == TARN_STATUS_OK; r++)
    status = tarn_score_lines_match(&input->hypothesis, &input->references[r]);
  return status == TARN_STATUS_OK ? -1 : cli_report(command, status);
}

int score_input_open(score_input *input, const cli_command *command, const char *hypothesis,
                     const cli_list *references) {
  *input = (score_input){0};
  if (references->count == 0) return cli_usage(command, "--reference FILE is missing");
  int code = read_all(input, command, hypothesis, references);
  if (code >= 0) score_input_close(input);
  return code;
}

void score_input_close(score_input *input) {
  for (size_t r = 0; r < input->count; r++) tarn_score_lines_close(&input->references[r]);
  tarn_score_lines_close(&input->hypothesis);
  free(input->references);
  free(input->streams);
  free(input->row);
  *input = (score_input){0};
}

const char *const *score_input_row(score_input *input, size_t s) {
  for (size_t r = 0; r < input->count; r++) input->row[r] = input->streams[r][s];
  return input->row;
}

void score_report_invalid(const cli_command *command, int64_t invalid) {
  if (invalid == 0) return;
  fprintf(stderr, "tarn %s: warning: malformed UTF-8 sequences read as U+FFFD: %lld\n", command->name,
          (long long)invalid);
}
