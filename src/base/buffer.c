#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

void tarn__buffer_put(tarn__buffer *buffer, const char *text, size_t size) {
  if (buffer->status == TARN_STATUS_OK)
    buffer->status = tarn__grow(&buffer->data, &buffer->capacity, buffer->used + size + 1, 1);
  if (buffer->status != TARN_STATUS_OK) return;
  if (size > 0) memcpy(buffer->data + buffer->used, text, size);
  buffer->used += size;
  buffer->data[buffer->used] = '\0';
}

void tarn__buffer_add(tarn__buffer *buffer, const char *text) { tarn__buffer_put(buffer, text, strlen(text)); }

void tarn__buffer_format(tarn__buffer *buffer, const char *format, ...) {
  char piece[256];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(piece, sizeof piece, format, arguments);
  va_end(arguments);
  if (length < 0) {
    if (buffer->status == TARN_STATUS_OK) buffer->status = tarn__fail(TARN_STATUS_INTERNAL, "a text has no length");
    return;
  }
  if ((size_t)length < sizeof piece) {
    tarn__buffer_put(buffer, piece, (size_t)length);
    return;
  }
  if (buffer->status == TARN_STATUS_OK)
    buffer->status = tarn__grow(&buffer->data, &buffer->capacity, buffer->used + (size_t)length + 1, 1);
  if (buffer->status != TARN_STATUS_OK) return;
  va_start(arguments, format);
  vsnprintf(buffer->data + buffer->used, (size_t)length + 1, format, arguments);
  va_end(arguments);
  buffer->used += (size_t)length;
}

void tarn__buffer_reset(tarn__buffer *buffer) {
  buffer->used = 0;
  buffer->status = TARN_STATUS_OK;
  if (buffer->data) buffer->data[0] = '\0';
}

void tarn__buffer_close(tarn__buffer *buffer) {
  tarn__free(buffer->data);
  *buffer = (tarn__buffer){0};
}
