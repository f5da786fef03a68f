#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static tarn_log_fn receiver;
static void *receiver_user;

void tarn_log_set(tarn_log_fn fn, void *user) {
  receiver = fn;
  receiver_user = user;
}

void tarn__log(tarn_log_level level, const char *format, ...) {
  if (!receiver) return;
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  receiver(receiver_user, level, text);
}
