#include "run/event_message.h"

#include <string.h>

#include "base/memory.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

tarn_status tarn__message_put(tarn__message *m, const void *data, size_t size) {
  TARN_TRY(tarn__grow(&m->data, &m->capacity, m->size + size, 1));
  if (size) memcpy(m->data + m->size, data, size);
  m->size += size;
  return TARN_STATUS_OK;
}

static tarn_status put_varint(tarn__message *m, uint64_t value) {
  uint8_t bytes[10];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = (uint8_t)(value | 0x80);
  bytes[count++] = (uint8_t)value;
  return tarn__message_put(m, bytes, count);
}

static tarn_status put_key(tarn__message *m, int field, int wire) {
  return put_varint(m, (uint64_t)(field << 3 | wire));
}

tarn_status tarn__message_number(tarn__message *m, int field, uint64_t value) {
  TARN_TRY(put_key(m, field, WIRE_VARINT));
  return put_varint(m, value);
}

tarn_status tarn__message_double(tarn__message *m, int field, double value) {
  TARN_TRY(put_key(m, field, WIRE_64));
  return tarn__message_put(m, &value, sizeof value);
}

tarn_status tarn__message_float(tarn__message *m, int field, float value) {
  TARN_TRY(put_key(m, field, WIRE_32));
  return tarn__message_put(m, &value, sizeof value);
}

tarn_status tarn__message_bytes(tarn__message *m, int field, const void *data, size_t size) {
  TARN_TRY(put_key(m, field, WIRE_BYTES));
  TARN_TRY(put_varint(m, size));
  return tarn__message_put(m, data, size);
}

tarn_status tarn__message_text(tarn__message *m, int field, const char *text) {
  return tarn__message_bytes(m, field, text, strlen(text));
}
