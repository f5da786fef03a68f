#include "labelled_output.h"

#include <inttypes.h>
#include <stdio.h>

static void print_json(const tarn_labelled_result *r) {
  printf("{\"lines\": %" PRId64 ", \"rows\": %" PRId64 ", \"tokens\": %" PRId64 ", \"unknown\": %" PRId64
         ", \"longest\": %" PRId64 ", \"dropped\": %" PRId64 ", \"truncated\": %" PRId64 ", \"left_out\": %" PRId64
         ", \"replaced\": %" PRId64,
         r->lines, r->rows, r->tokens, r->unknown, r->longest, r->dropped, r->truncated, r->left_out, r->replaced);
  if (r->classes)
    printf(", \"classes\": %d, \"most\": %" PRId64 "}\n", r->classes, r->most);
  else
    printf(", \"least\": %.9g, \"greatest\": %.9g}\n", r->least, r->greatest);
}

static void print_text(const tarn_labelled_result *r) {
  printf("rows   %10" PRId64 " of %" PRId64 "\n", r->rows, r->lines);
  printf("text   %10" PRId64 " tokens, %" PRId64 " unknown (%.2f %%), longest row %" PRId64 "\n", r->tokens, r->unknown,
         100.0 * (double)r->unknown / (double)r->tokens, r->longest);
  if (r->classes)
    printf("labels %10d classes, the most frequent one has %.2f %% of the rows\n", r->classes,
           100.0 * (double)r->most / (double)r->rows);
  else
    printf("labels %10s %g to %g\n", "numbers,", r->least, r->greatest);
  if (r->dropped) printf("%s left out: overlong\n", CLI_COUNT(r->dropped, "row"));
  if (r->truncated) printf("truncated: %s\n", CLI_COUNT(r->truncated, "row"));
  if (r->left_out) printf("left out: %s\n", CLI_COUNT(r->left_out, "token"));
  if (r->replaced) printf("invalid UTF-8 replaced in: %s\n", CLI_COUNT(r->replaced, "line"));
}

int prepare_labels(const cli_command *command, const tarn_labelled_options *options, bool json) {
  tarn_labelled_result result;
  const tarn_status status = tarn_labelled_prepare(&result, options);
  if (status != TARN_STATUS_OK) return cli_report(command, status);
  if (json)
    print_json(&result);
  else
    print_text(&result);
  return CLI_OK;
}
