#include "limit_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/process.h"

int limit_options_amount(const cli_command *command, double *out, const char *name, const char *text) {
  static const char units[] = "kMGT";
  char *end;
  *out = strtod(text, &end);
  const char *unit = *end ? strchr(units, *end) : NULL;
  if (end == text || !isfinite(*out) || *out < 0 || (*end && (!unit || end[1])))
    return cli_usage(command, "--%s takes a number such as 4G or 1e12, not \"%s\"", name, text);
  for (const char *u = units; unit && u <= unit; u++) *out *= 1000;
  return -1;
}

int bytes_option_read(const cli_command *command, int64_t *out, const char *name, const char *text, int64_t least) {
  double bytes;
  const int code = limit_options_amount(command, &bytes, name, text);
  if (code >= 0) return code;
  if (bytes < (double)least || bytes > 1e15)
    return cli_usage(command, "--%s is %lldk to 1000T, not \"%s\"", name, (long long)(least / 1000), text);
  *out = (int64_t)bytes;
  return -1;
}

int limit_options_set(const cli_command *command, const limit_options *options) {
  tarn_limits limits;
  int code = -1;
  tarn_limits_default(&limits);
  if (options->memory) code = limit_options_amount(command, &limits.max_memory, "max-memory", options->memory);
  if (code < 0 && options->operations)
    code = limit_options_amount(command, &limits.max_operations, "max-operations", options->operations);
  tarn_limits_set(&limits);
  return code;
}
