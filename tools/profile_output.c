#include "profile_output.h"

#include <jansson.h>
#include <string.h>

#include "json_output.h"

static const char *const passes[] = {"forward", "backward", "both", "outside"};

static double gflops(const tarn_profile_row *row) { return row->seconds > 0 ? row->flops / row->seconds * 1e-9 : 0; }

static double share(const tarn_profile_row *row, const tarn_profile_summary *summary) {
  return summary->seconds > 0 ? row->seconds / summary->seconds : 0;
}

static void print_text(FILE *stream, const tarn_profile_summary *s) {
  double outside = 0;
  for (size_t i = 0; i < s->count; i++)
    if (s->rows[i].pass == TARN_PROFILE_OUTSIDE) outside += s->rows[i].seconds;
  fprintf(stream, "\nprofile     %.3f s", s->seconds);
  if (s->units > 0) fprintf(stream, ", %lld %s%s", (long long)s->units, s->unit, s->units == 1 ? "" : "s");
  fprintf(stream, "; outside of ops %.3f s\n\n", outside);
  fprintf(stream, "%-28s %-22s %-8s %9s %11s %7s %9s\n", "op", "part", "pass", "calls", "ms", "share", "GFLOP/s");
  for (size_t i = 0; i < s->count; i++) {
    const tarn_profile_row *row = &s->rows[i];
    fprintf(stream, "%-28s %-22s %-8s %9lld %11.2f %6.2f%%", row->op, row->part, passes[row->pass],
            (long long)row->calls, row->seconds * 1e3, share(row, s) * 100);
    if (row->flops > 0) fprintf(stream, " %9.1f", gflops(row));
    fputc('\n', stream);
  }
}

static int print_json(const cli_command *command, FILE *stream, const tarn_profile_summary *s) {
  json_t *rows = json_array();
  for (size_t i = 0; i < s->count; i++) {
    const tarn_profile_row *row = &s->rows[i];
    json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:f}", "op", row->op, "part", row->part,
                                          "pass", passes[row->pass], "calls", (json_int_t)row->calls, "seconds",
                                          row->seconds, "share", share(row, s), "flops", row->flops));
  }
  json_t *object = json_pack("{s:s, s:f, s:I, s:s, s:o}", "kind", "profile", "seconds", s->seconds, "units",
                             (json_int_t)s->units, "unit", s->unit, "rows", rows);
  return json_output_print(command, stream, object, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

int profile_output(const cli_command *command, tarn_profile *profile, const char *path, FILE *stream, bool json) {
  tarn_profile_summary summary;
  tarn_status status = tarn_profile_sum(profile, &summary);
  int printed = CLI_OK;
  if (status == TARN_STATUS_OK && stream && json) printed = print_json(command, stream, &summary);
  if (status == TARN_STATUS_OK && stream && !json) print_text(stream, &summary);
  if (status == TARN_STATUS_OK && printed == CLI_OK) status = tarn_profile_write_trace(profile, path);
  return status == TARN_STATUS_OK ? printed : cli_report(command, status);
}
