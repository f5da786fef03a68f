// A text that grows while it is written. It records the first failure instead of returning it from every call; check
// `status` once at the end.
#ifndef TARN_BASE_BUFFER_H
#define TARN_BASE_BUFFER_H

#include <stddef.h>

#include "base/status.h"

// Zero-initialise it. `data` ends with a zero byte once something was added, and is NULL before.
typedef struct tarn__buffer {
  char *data;
  size_t used, capacity;
  tarn_status status;
} tarn__buffer;

void tarn__buffer_put(tarn__buffer *buffer, const char *text, size_t size);
void tarn__buffer_add(tarn__buffer *buffer, const char *text);
void tarn__buffer_format(tarn__buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Clears the text and the failure but keeps the memory.
void tarn__buffer_reset(tarn__buffer *buffer);
void tarn__buffer_close(tarn__buffer *buffer);

#endif
