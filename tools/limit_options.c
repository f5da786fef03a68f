#include "limit_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tarn/limits.h"

// On a terminal one line that is written again and again; elsewhere one line says what takes so long.
static void on_progress(void *user, const char *file, double done, double operations) {
  static bool told;
  const bool terminal = isatty(STDERR_FILENO) != 0, whole = done >= operations;
  (void)user;
  if (terminal)
    fprintf(stderr, "\r\033[K");
  else if (told)
    return;
  if (!terminal || !whole)
    fprintf(stderr, "tarn: %s: computing its frozen weights again, %.0f %% of %.2g operations%s", file,
            100.0 * done / operations, operations, terminal ? "" : "\n");
  told = true;
  fflush(stderr);
}

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

int limit_options_set(const cli_command *command, const limit_options *options) {
  tarn_limits limits;
  int code = -1;
  tarn_limits_default(&limits);
  limits.on_progress = on_progress;
  if (options->memory) code = limit_options_amount(command, &limits.max_memory, "max-memory", options->memory);
  if (code < 0 && options->operations)
    code = limit_options_amount(command, &limits.max_operations, "max-operations", options->operations);
  tarn_limits_set(&limits);
  return code;
}
