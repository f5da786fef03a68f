#include "json_output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_memory.h"
#include "tarn/text.h"

json_t *json_output_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *json_output_text(const char *text) {
  if (!text) return json_null();
  char *repaired = json_memory_take(3 * strlen(text) + 1);
  if (repaired) tarn_text_repair(repaired, text);
  json_t *string = repaired ? json_string(repaired) : NULL;
  free(repaired);
  return string;
}

bool json_output_dump(FILE *file, const json_t *object, size_t flags) {
  return !json_memory_ended() && object && json_dumpf(object, file, flags) == 0 && !json_memory_ended();
}

int json_output_print(const cli_command *command, FILE *file, json_t *object, size_t flags) {
  bool printed = json_output_dump(file, object, flags);
  json_decref(object);
  if (printed) putc('\n', file);
  return printed || ferror(file) ? CLI_OK : cli_no_memory(command);
}

int json_output_made(const cli_command *command, const char *output, const char *what, const char *from) {
  json_t *object = json_pack("{s:o}", "output", json_output_text(output));
  if (what && json_object_set_new(object, what, json_output_text(from)) != 0) {
    json_decref(object);
    object = NULL;
  }
  return json_output_print(command, stdout, object, JSON_COMPACT);
}
