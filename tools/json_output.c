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

// U+2028 and U+2029, which in JSON stand in texts alone, end lines for many readers of lines, such as Python's
// splitlines(): they are written as \u2028 and \u2029.
static int put_on_a_line(const char *text, size_t size, void *file) {
  const char *end = text + size, *at = text;
  while ((at = memchr(at, 0xE2, (size_t)(end - at))) && end - at > 2) {
    const bool line = memcmp(at, "\xE2\x80\xA8", 3) == 0, paragraph = memcmp(at, "\xE2\x80\xA9", 3) == 0;
    at++;
    if (!line && !paragraph) continue;
    fwrite(text, 1, (size_t)(at - 1 - text), file);
    fputs(line ? "\\u2028" : "\\u2029", file);
    text = at += 2;
  }
  fwrite(text, 1, (size_t)(end - text), file);
  return 0;
}

bool json_output_dump(FILE *file, const json_t *object, size_t flags) {
  // jansson gives a text in pieces that begin and end between characters.
  return !json_memory_ended() && object && json_dump_callback(object, put_on_a_line, file, flags) == 0 &&
         !json_memory_ended();
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
