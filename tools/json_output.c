#include "json_output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/text.h"

json_t *json_output_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *json_output_text(const char *text) {
  if (!text) return json_null();
  char *repaired = malloc(3 * strlen(text) + 1);
  if (repaired) tarn_text_repair(repaired, text);
  json_t *string = repaired ? json_string(repaired) : NULL;
  free(repaired);
  return string;
}

int json_output_print(const cli_command *command, FILE *file, json_t *object, size_t flags) {
  bool printed = object && json_dumpf(object, file, flags) == 0;
  json_decref(object);
  if (printed) putc('\n', file);
  return printed || ferror(file) ? CLI_OK : cli_no_memory(command);
}
