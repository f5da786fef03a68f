// Messages in Protocol Buffers for TensorBoard's event files.
#ifndef TARN_RUN_EVENT_MESSAGE_H
#define TARN_RUN_EVENT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// A growing message; zero-initialise it, and free `data` with tarn__free(). Numbers are little-endian, in the format
// and on this processor.
typedef struct tarn__message {
  uint8_t *data;
  size_t size, capacity;
} tarn__message;

// Raw bytes.
tarn_status tarn__message_put(tarn__message *m, const void *data, size_t size) TARN_CHECKED;
// A field: its number, and a whole number, a double, a float, or bytes (a text, or another message).
tarn_status tarn__message_number(tarn__message *m, int field, uint64_t value) TARN_CHECKED;
tarn_status tarn__message_double(tarn__message *m, int field, double value) TARN_CHECKED;
tarn_status tarn__message_float(tarn__message *m, int field, float value) TARN_CHECKED;
tarn_status tarn__message_bytes(tarn__message *m, int field, const void *data, size_t size) TARN_CHECKED;
tarn_status tarn__message_text(tarn__message *m, int field, const char *text) TARN_CHECKED;

#endif
