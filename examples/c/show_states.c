// Prints the length of each token's vector inside a model, for a text: show_states RUN NAME FILE (NAME: encoder.1)
#include <math.h>
#include <stdio.h>

#include "tarn/lab/states.h"

static tarn_status print_sentence(void *user, int64_t sentence, const void *const *values) {
  const tarn_states *states = user;
  size_t count;
  const tarn_states_array *array = tarn_states_selected(states, &count);
  const int64_t first = tarn_states_offsets(states, array->side)[sentence];
  const int64_t last = tarn_states_offsets(states, array->side)[sentence + 1];
  const float *rows = values[0];
  for (int64_t t = first; t < last; t++, rows += array->width) {
    double squares = 0;
    for (int64_t c = 0; c < array->width; c++) squares += (double)rows[c] * (double)rows[c];
    printf("%lld\t%s\t%.4f\n", (long long)sentence + 1,
           tarn_states_piece(states, array->side, tarn_states_ids(states, array->side)[t]), sqrt(squares));
  }
  return ferror(stdout) ? TARN_STATUS_IO : TARN_STATUS_OK;
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: show_states RUN NAME FILE\n"), 2;
  tarn_states_options options;
  tarn_states_default(&options);
  tarn_states *states = NULL;
  size_t count;
  bool rows = true;
  tarn_status status = tarn_states_open(&states, argv[1], &options);
  if (status == TARN_STATUS_OK) status = tarn_states_select(states, &(const char *){argv[2]}, 1);
  if (status == TARN_STATUS_OK) rows = tarn_states_selected(states, &count)->form == TARN_STATES_FORM_TOKENS;
  if (status == TARN_STATUS_OK && rows) status = tarn_states_encode_file(states, argv[3], NULL);
  if (status == TARN_STATUS_OK && rows) status = tarn_states_each(states, print_sentence, states);
  if (status != TARN_STATUS_OK) fprintf(stderr, "show_states: %s\n", tarn_error_message());
  if (!rows) fprintf(stderr, "show_states: %s is not a vector for each token\n", argv[2]);
  tarn_states_close(&states);
  return status == TARN_STATUS_OK && rows ? 0 : 1;
}
