#include "labelled_output.h"
#include "json_output.h"

#include <inttypes.h>
#include <stdio.h>

static int print_json(const cli_command *command, const tarn_labelled_result *r) {
  json_t *object =
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "lines", (json_int_t)r->lines, "rows",
                (json_int_t)r->rows, "tokens", (json_int_t)r->tokens, "unknown", (json_int_t)r->unknown, "longest",
                (json_int_t)r->longest, "dropped", (json_int_t)r->dropped, "truncated", (json_int_t)r->truncated,
                "left_out", (json_int_t)r->left_out, "replaced", (json_int_t)r->replaced);
  json_t *labels = r->classes ? json_pack("{s:i, s:I}", "classes", (int)r->classes, "most", (json_int_t)r->most)
                              : json_pack("{s:o, s:o}", "least", json_output_real(r->least), "greatest",
                                          json_output_real(r->greatest));
  const bool made = object && labels && json_object_update(object, labels) == 0 &&
                    (!r->words || json_object_set_new(object, "words", json_integer(r->words)) == 0);
  json_decref(labels);
  if (!made) json_decref(object);
  return json_output_print(command, stdout, made ? object : NULL, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

static void print_text(const tarn_labelled_result *r) {
  printf("rows   %10" PRId64 " of %" PRId64 "\n", r->rows, r->lines);
  printf("text   %10" PRId64 " tokens, %" PRId64 " unknown (%.2f %%), longest row %" PRId64 "\n", r->tokens, r->unknown,
         100.0 * (double)r->unknown / (double)r->tokens, r->longest);
  if (r->classes)
    printf("labels %10d classes, the most frequent one has %.2f %% of the %s\n", r->classes,
           100.0 * (double)r->most / (double)(r->words ? r->words : r->rows), r->words ? "words" : "rows");
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
  if (json) return print_json(command, &result);
  print_text(&result);
  return CLI_OK;
}
