// Translates its arguments: translate_lines RUN SENTENCE...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/translate.h"

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: translate_lines RUN SENTENCE...\n"), 2;
  size_t count = (size_t)argc - 2;
  const char *const *lines = (const char *const *)(argv + 2);
  size_t *lengths = calloc(count, sizeof *lengths);
  tarn_translate_result *results = calloc(count, sizeof *results);
  if (!lengths || !results) return 1;
  for (size_t i = 0; i < count; i++) lengths[i] = strlen(lines[i]);

  tarn_translator_options options;
  tarn_translator_default(&options);
  options.beam = 4;
  options.n_best = 2;
  tarn_translator *translator = NULL;
  tarn_status status = tarn_translator_open(&translator, argv[1], &options);
  if (status == TARN_STATUS_OK) status = tarn_translator_lines(translator, results, lines, lengths, count);
  if (status != TARN_STATUS_OK) fprintf(stderr, "translate_lines: %s\n", tarn_error_message());
  for (size_t i = 0; status == TARN_STATUS_OK && i < count; i++) {
    for (int64_t k = 0; k < results[i].count; k++)
      printf("%s\t%.4f\n", results[i].hypotheses[k].text, results[i].hypotheses[k].score);
  }
  tarn_translator_close(&translator);
  free(lengths);
  free(results);
  return status == TARN_STATUS_OK ? 0 : 1;
}
