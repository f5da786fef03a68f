// Prints the log-probability of every line of a text, and its perplexity: score_text RUN FILE ("-": standard input)
#include <stdio.h>

#include "tarn/lm.h"

static tarn_status print_line(void *user, int64_t number, const tarn_lm_line *line) {
  tarn_lm_total_add(user, line);
  printf("%lld\t%.4f\n", (long long)number, line->log_probability);
  return ferror(stdout) ? TARN_STATUS_IO : TARN_STATUS_OK;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: score_text RUN FILE\n"), 2;
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.overlong = TARN_TRANSLATE_OVERLONG_TRUNCATE;
  tarn_lm *lm = NULL;
  tarn_lm_total total = {0};
  tarn_status status = tarn_lm_open(&lm, argv[1], &options);
  if (status == TARN_STATUS_OK) status = tarn_lm_score_file(lm, argv[2], print_line, &total);
  if (status == TARN_STATUS_OK)
    printf("perplexity %.3f, bits per character %.3f\n", tarn_lm_perplexity(&total),
           tarn_lm_bits_per_character(&total));
  if (status != TARN_STATUS_OK) fprintf(stderr, "score_text: %s\n", tarn_error_message());
  tarn_lm_close(&lm);
  return status == TARN_STATUS_OK ? 0 : 1;
}
