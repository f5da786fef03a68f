#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = 1024 };
static _Thread_local char message[MESSAGE_SIZE];

const char *tarn_status_text(tarn_status status) {
  static const char *const texts[] = {
#define TARN_STATUS_STRING(name, text) text,
      TARN_STATUS_MAP(TARN_STATUS_STRING)
#undef TARN_STATUS_STRING
  };
  if ((unsigned)status >= TARN_STATUS_COUNT) return "unknown status";
  return texts[status];
}

const char *tarn_error_message(void) { return message; }

// Keeps a message on one line and harmless on a terminal, whatever text from files it contains.
static void record(const char *line) {
  size_t length = strnlen(line, MESSAGE_SIZE - 1);
  for (size_t i = 0; i < length; i++) message[i] = (unsigned char)line[i] < ' ' || line[i] == 0x7f ? '?' : line[i];
  message[length] = '\0';
}

tarn_status tarn__fail(tarn_status status, const char *format, ...) {
  char line[MESSAGE_SIZE];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  record(line);
  return status;
}

tarn_status tarn__fail_prefix(tarn_status status, const char *format, ...) {
  char prefix[MESSAGE_SIZE];
  char line[MESSAGE_SIZE * 2];
  va_list args;
  va_start(args, format);
  vsnprintf(prefix, sizeof prefix, format, args);
  va_end(args);
  snprintf(line, sizeof line, "%s%s", prefix, message);
  record(line);
  return status;
}
