#include "lm_output.h"

#include <inttypes.h>

#include "text_output.h"

int lm_output_run(const cli_command *command, const char *path, const tarn_lm_options *options, const char *output,
                  lm_work *work, void *user) {
  tarn_lm *lm;
  text_output to;
  tarn_status status = tarn_lm_open(&lm, path, options);
  if (status != TARN_STATUS_OK) return cli_report(command, status);
  int code = output ? text_output_open(command, &to, output) : CLI_OK;
  if (code == CLI_OK) {
    code = work(lm, output ? to.file : NULL, user);
    int closed = output ? text_output_close(command, &to, code == CLI_OK) : CLI_OK;
    if (code == CLI_OK) code = closed;
  }
  tarn_lm_close(&lm);
  return code;
}

void lm_print_changes(int64_t unknown, int64_t truncated, const char *unit, int64_t replaced) {
  if (unknown)
    fprintf(stderr,
            "unknown to the vocabulary: %s; what they stand for is not predicted, so the figures are too good\n",
            CLI_COUNT(unknown, "token"));
  if (truncated) fprintf(stderr, "truncated to the model's longest sentence: %s\n", CLI_COUNT(truncated, unit));
  if (replaced) fprintf(stderr, "invalid UTF-8 replaced in: %s\n", CLI_COUNT(replaced, "line"));
}

void lm_print_equal(int64_t equal) {
  if (equal) fprintf(stderr, "pairs of two equal sentences, which count as wrong: %" PRId64 "\n", equal);
}
