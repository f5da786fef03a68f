#include "json_output.h"

#include <math.h>

json_t *json_output_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

int json_output_print(const cli_command *command, FILE *file, json_t *object, size_t flags) {
  bool printed = object && json_dumpf(object, file, flags) == 0;
  json_decref(object);
  if (printed) putc('\n', file);
  return printed || ferror(file) ? CLI_OK : cli_no_memory(command);
}
