#include "profile_output.h"

#include <jansson.h>
#include <string.h>

#include "json_output.h"

static const char *const passes[] = {"forward", "backward", "both", "outside"};

static double gflops(const tarn_profile_row *row) { return row->seconds > 0 ? row->flops / row->seconds * 1e-9 : 0; }

static double share(const tarn_profile_row *row, const tarn_profile_summary *summary) {
  return summary->seconds > 0 ? row->seconds / summary->seconds : 0;
}

static double gigabytes(const tarn_profile_row *row) { return row->seconds > 0 ? row->bytes / row->seconds * 1e-9 : 0; }

// Time above the floor.
static double rest(const tarn_profile_row *row) { return row->seconds - row->floor_seconds; }

// A number, or spaces if it is unknown.
static void print_cell(FILE *stream, int width, int digits, double value, bool known) {
  if (known)
    fprintf(stream, " %*.*f", width, digits, value);
  else
    fprintf(stream, " %*s", width, "");
}

static void print_row(FILE *stream, const tarn_profile_row *row, const tarn_profile_summary *s, const char *pass) {
  fprintf(stream, "%-28s %-22s %-8s %9lld %11.2f %6.2f%%", row->op, row->part, pass, (long long)row->calls,
          row->seconds * 1e3, share(row, s) * 100);
  print_cell(stream, 9, 1, gflops(row), row->flops > 0);
  print_cell(stream, 8, 1, gigabytes(row), row->bytes > 0);
  print_cell(stream, 10, 2, row->flops_seconds * 1e3, row->flops_seconds > 0);
  print_cell(stream, 10, 2, row->bytes_seconds * 1e3, row->bytes_seconds > 0);
  print_cell(stream, 10, 2, row->floor_seconds * 1e3, row->floor_seconds > 0);
  print_cell(stream, 10, 2, rest(row) * 1e3, row->floor_seconds > 0);
  fputc('\n', stream);
}

// The sum of the rows with a floor.
static void print_counted(FILE *stream, const tarn_profile_summary *s) {
  tarn_profile_row all = {.op = "all that is counted", .part = ""};
  for (size_t i = 0; i < s->count; i++) {
    const tarn_profile_row *row = &s->rows[i];
    if (row->floor_seconds <= 0) continue;
    all.calls += row->calls;
    all.seconds += row->seconds;
    all.flops += row->flops;
    all.bytes += row->bytes;
    all.flops_seconds += row->flops_seconds;
    all.bytes_seconds += row->bytes_seconds;
    all.floor_seconds += row->floor_seconds;
  }
  if (all.calls == 0) return;
  fputc('\n', stream);
  print_row(stream, &all, s, "");
}

// The limit of an update, or of a decoding step, and the share of it that was reached.
static void print_limit(FILE *stream, const tarn_profile_summary *s) {
  if (!(s->floor_seconds > 0 && s->unit_seconds > 0)) return;
  const double reached = s->floor_seconds / s->unit_seconds;
  fprintf(stream, "limit       the floors add up to %.2f of the %.2f ms of %s %s: %.0f %% of the limit",
          s->floor_seconds / (double)s->units * 1e3, s->unit_seconds / (double)s->units * 1e3,
          strchr("aeiou", *s->unit) ? "an" : "a", s->unit, 100 * reached);
  if (s->available > 0) fprintf(stream, ", %.0f %% of what was available", 100 * reached / s->available);
  fputc('\n', stream);
}

static void print_text(FILE *stream, const tarn_profile_summary *s) {
  double outside = 0;
  for (size_t i = 0; i < s->count; i++)
    if (s->rows[i].pass == TARN_PROFILE_OUTSIDE) outside += s->rows[i].seconds;
  fprintf(stream, "\nprofile     %.3f s", s->seconds);
  if (s->units > 0) fprintf(stream, ", %lld %s%s", (long long)s->units, s->unit, s->units == 1 ? "" : "s");
  fprintf(stream, "; outside of ops %.3f s\n", outside);
  if (s->left_out > 0)
    fprintf(stream, "left out    the first update, in which memory is allocated and weights are packed: %.3f s\n",
            s->left_out_seconds / (double)s->left_out);
  if (s->left_out > 0 && s->units == 0)
    fputs("            there was no other one, so the table has no update\n", stream);
  if (s->peaks.bytes > 0)
    fprintf(stream, "peaks       fp32 %.0f GFLOP/s, bf16 %.0f GFLOP/s, memory %.1f GB/s, caches %.1f GB/s\n",
            s->peaks.fp32_flops * 1e-9, s->peaks.bf16_flops * 1e-9, s->peaks.bytes * 1e-9,
            s->peaks.cached_bytes * 1e-9);
  if (s->available > 0)
    fprintf(stream, "available   %.0f %% of the peak of fp32, by samples between the %ss\n", 100 * s->available,
            s->unit);
  print_limit(stream, s);
  fprintf(stream, "\n%-28s %-22s %-8s %9s %11s %7s %9s %8s %10s %10s %10s %10s\n", "op", "part", "pass", "calls", "ms",
          "share", "GFLOP/s", "GB/s", "ops ms", "bytes ms", "floor ms", "rest ms");
  for (size_t i = 0; i < s->count; i++) print_row(stream, &s->rows[i], s, passes[s->rows[i].pass]);
  print_counted(stream, s);
}

static int print_json(const cli_command *command, FILE *stream, const tarn_profile_summary *s) {
  json_t *rows = json_array();
  for (size_t i = 0; i < s->count; i++) {
    const tarn_profile_row *row = &s->rows[i];
    json_array_append_new(
        rows, json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "op", row->op, "part", row->part,
                        "pass", passes[row->pass], "calls", (json_int_t)row->calls, "seconds", row->seconds, "share",
                        share(row, s), "flops", row->flops, "bytes", row->bytes, "flops_seconds", row->flops_seconds,
                        "bytes_seconds", row->bytes_seconds, "floor_seconds", row->floor_seconds));
  }
  json_t *object = json_pack("{s:s, s:f, s:f, s:f, s:I, s:s, s:{s:f, s:f, s:f, s:f}, s:f, s:I, s:f, s:o}", "kind",
                             "profile", "seconds", s->seconds, "unit_seconds", s->unit_seconds, "floor_seconds",
                             s->floor_seconds, "units", (json_int_t)s->units, "unit", s->unit, "peaks", "fp32_flops",
                             s->peaks.fp32_flops, "bf16_flops", s->peaks.bf16_flops, "bytes", s->peaks.bytes,
                             "cached_bytes", s->peaks.cached_bytes, "available", s->available, "left_out",
                             (json_int_t)s->left_out, "left_out_seconds", s->left_out_seconds, "rows", rows);
  return json_output_print(command, stream, object, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

int profile_output(const cli_command *command, tarn_profile *profile, const char *path, FILE *stream, bool json) {
  tarn_profile_summary summary;
  tarn_status status = tarn_profile_sum(profile, &summary);
  int printed = CLI_OK;
  // What failed before it began has its line; a table of nothing would hide it.
  if (status == TARN_STATUS_OK && summary.seconds <= 0) return CLI_OK;
  if (status == TARN_STATUS_OK && stream && json) printed = print_json(command, stream, &summary);
  if (status == TARN_STATUS_OK && stream && !json) print_text(stream, &summary);
  if (status == TARN_STATUS_OK && printed == CLI_OK) status = tarn_profile_write_trace(profile, path);
  return status == TARN_STATUS_OK ? printed : cli_report(command, status);
}
