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

// Characters that JSON allows in strings as they are, but at which many readers of lines, such as Python's
// splitlines(), end a line. They are written as escapes.
typedef struct line_end {
  const char *bytes, *escape;
} line_end;
static const line_end line_ends[] = {{"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}};

// The one that a text begins with, if any.
static const line_end *line_end_at(const char *text, size_t size) {
  for (size_t i = 0; i < sizeof line_ends / sizeof *line_ends; i++) {
    const size_t length = strlen(line_ends[i].bytes);
    if (size >= length && memcmp(text, line_ends[i].bytes, length) == 0) return &line_ends[i];
  }
  return NULL;
}

static int put_on_a_line(const char *text, size_t size, void *file) {
  const char *end = text + size;
  for (const char *at = text; at < end;) {
    const line_end *found = line_end_at(at, (size_t)(end - at));
    if (!found) {
      at++;
      continue;
    }
    fwrite(text, 1, (size_t)(at - text), file);
    fputs(found->escape, file);
    text = at += strlen(found->bytes);
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
