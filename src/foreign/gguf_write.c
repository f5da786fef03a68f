#include "foreign/gguf_write.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "foreign/half_floats.h"
#include "run/file_kind.h"
#include "text/vocab_kind.h"

enum { VERSION = 3, ALIGNMENT = 32, PIECE = 1 << 14, TYPE_F32 = 0, TYPE_F16 = 1, TYPE_Q8_0 = 8 };

void tarn__gguf_keys_close(tarn__gguf_keys *keys) { tarn_vocab_text_close(&keys->bytes); }

static tarn_status append(tarn__gguf_keys *keys, const void *data, size_t size) {
  return tarn__vocab_append(&keys->bytes, data, size);
}

tarn_status tarn__gguf_append_text(tarn__gguf_keys *keys, const char *text, size_t length) {
  const uint64_t size = length;
  TARN_TRY(append(keys, &size, sizeof size));
  return append(keys, text, length);
}

static tarn_status put_head(tarn__gguf_keys *keys, const char *name, tarn__gguf_type type) {
  const uint32_t number = (uint32_t)type;
  keys->count++;
  TARN_TRY(tarn__gguf_append_text(keys, name, strlen(name)));
  return append(keys, &number, sizeof number);
}

tarn_status tarn__gguf_put_text(tarn__gguf_keys *keys, const char *name, const char *text) {
  TARN_TRY(put_head(keys, name, TARN__GGUF_STRING));
  return tarn__gguf_append_text(keys, text, strlen(text));
}

tarn_status tarn__gguf_put_size(tarn__gguf_keys *keys, const char *name, int64_t value) {
  const uint32_t number = (uint32_t)value;
  TARN_TRY(put_head(keys, name, TARN__GGUF_UINT32));
  return append(keys, &number, sizeof number);
}

tarn_status tarn__gguf_put_real(tarn__gguf_keys *keys, const char *name, double value) {
  const float number = (float)value;
  TARN_TRY(put_head(keys, name, TARN__GGUF_FLOAT32));
  return append(keys, &number, sizeof number);
}

tarn_status tarn__gguf_put_flag(tarn__gguf_keys *keys, const char *name, bool value) {
  const uint8_t number = value;
  TARN_TRY(put_head(keys, name, TARN__GGUF_BOOL));
  return append(keys, &number, sizeof number);
}

tarn_status tarn__gguf_put_array(tarn__gguf_keys *keys, const char *name, tarn__gguf_type element, uint64_t count) {
  const uint32_t type = (uint32_t)element;
  TARN_TRY(put_head(keys, name, TARN__GGUF_ARRAY));
  TARN_TRY(append(keys, &type, sizeof type));
  return append(keys, &count, sizeof count);
}

static uint32_t type_of(const tarn__stored *tensor, tarn_gguf_type type) {
  if (tensor->dims == 1 || type == TARN_GGUF_TYPE_F32) return TYPE_F32;
  return type == TARN_GGUF_TYPE_Q8_0 && tensor->shape[1] % TARN__Q8_BLOCK == 0 ? TYPE_Q8_0 : TYPE_F16;
}

static size_t count_of(const tarn__stored *tensor) { return tensor->bytes / sizeof(float); }

static size_t bytes_of(const tarn__stored *tensor, uint32_t type) {
  const size_t count = count_of(tensor);
  return type == TYPE_F32 ? 4 * count : type == TYPE_F16 ? 2 * count : count / TARN__Q8_BLOCK * TARN__Q8_BYTES;
}

static size_t align(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static tarn_status put_zeros(tarn__writer *out, size_t count) {
  static const char zeros[ALIGNMENT];
  return tarn__writer_put(out, zeros, count);
}

// The names, sizes, types and places of the tensors. *size: the bytes written so far.
static tarn_status write_list(tarn__writer *out, size_t *size, const tarn__hf_writer *writer, tarn_gguf_type type) {
  uint64_t offset = 0;
  for (size_t i = 0; i < writer->count; i++) {
    const tarn__stored *tensor = &writer->tensors[i];
    const uint64_t length = strlen(tensor->name);
    const uint32_t dims = (uint32_t)tensor->dims, number = type_of(tensor, type);
    TARN_TRY(tarn__writer_put(out, &length, sizeof length));
    TARN_TRY(tarn__writer_put(out, tensor->name, length));
    TARN_TRY(tarn__writer_put(out, &dims, sizeof dims));
    for (int d = tensor->dims - 1; d >= 0; d--) TARN_TRY(tarn__writer_put(out, &tensor->shape[d], sizeof(int64_t)));
    TARN_TRY(tarn__writer_put(out, &number, sizeof number));
    TARN_TRY(tarn__writer_put(out, &offset, sizeof offset));
    *size += sizeof length + (size_t)length + sizeof dims + (size_t)dims * 8 + sizeof number + sizeof offset;
    offset += align(bytes_of(tensor, number));
  }
  return TARN_STATUS_OK;
}

static bool to_halves(uint16_t *halves, const float *values, size_t count) {
  bool fits = true;
  for (size_t i = 0; i < count; i++) {
    halves[i] = tarn__float_to_half(values[i]);
    fits &= (halves[i] & 0x7C00) != 0x7C00;
  }
  return fits;
}

static bool scales_fit(const uint8_t *blocks, size_t count) {
  bool fit = true;
  for (size_t i = 0; i < count; i++) fit &= (blocks[i * TARN__Q8_BYTES + 1] & 0x7C) != 0x7C;
  return fit;
}

static tarn_status write_values(tarn__writer *out, const tarn__stored *tensor, uint32_t type, const char *path) {
  static _Thread_local uint8_t room[2 * PIECE];
  const size_t all = count_of(tensor);
  bool fits = true;
  for (size_t at = 0; at < all; at += PIECE) {
    const float *values = (const float *)tensor->data + at;
    const size_t count = all - at < PIECE ? all - at : PIECE;
    if (type == TYPE_F32) {
      TARN_TRY(tarn__writer_put(out, values, count * sizeof *values));
      continue;
    }
    if (type == TYPE_F16) {
      fits &= to_halves((uint16_t *)(void *)room, values, count);
      TARN_TRY(tarn__writer_put(out, room, 2 * count));
      continue;
    }
    const size_t blocks = count / TARN__Q8_BLOCK;
    tarn__floats_to_q8(room, values, count);
    fits &= scales_fit(room, blocks);
    TARN_TRY(tarn__writer_put(out, room, blocks * TARN__Q8_BYTES));
  }
  TARN_REQUIRE(fits, DATA, "%s: tensor \"%s\" holds numbers that are too large for F16 and Q8_0; write F32", path,
               tensor->name);
  return put_zeros(out, align(bytes_of(tensor, type)) - bytes_of(tensor, type));
}

static tarn_status write_all(tarn__writer *out, const char *path, const tarn__gguf_keys *keys,
                             const tarn__hf_writer *writer, tarn_gguf_type type) {
  const uint32_t version = VERSION;
  const uint64_t tensors = writer->count;
  size_t size = 4 + sizeof version + sizeof tensors + sizeof keys->count + keys->bytes.length;
  TARN_TRY(tarn__writer_put(out, TARN__GGUF_MAGIC, 4));
  TARN_TRY(tarn__writer_put(out, &version, sizeof version));
  TARN_TRY(tarn__writer_put(out, &tensors, sizeof tensors));
  TARN_TRY(tarn__writer_put(out, &keys->count, sizeof keys->count));
  TARN_TRY(tarn__writer_put(out, keys->bytes.data, keys->bytes.length));
  TARN_TRY(write_list(out, &size, writer, type));
  TARN_TRY(put_zeros(out, align(size) - size));
  for (size_t i = 0; i < writer->count; i++)
    TARN_TRY(write_values(out, &writer->tensors[i], type_of(&writer->tensors[i], type), path));
  return TARN_STATUS_OK;
}

tarn_status tarn__gguf_write(const char *path, const tarn__gguf_keys *keys, const tarn__hf_writer *writer,
                             tarn_gguf_type type) {
  tarn__writer *out;
  TARN_TRY(tarn__writer_open(&out, path));
  const tarn_status status = write_all(out, path, keys, writer, type);
  if (status == TARN_STATUS_OK) return tarn__writer_commit(&out);
  tarn__writer_abort(&out);
  return status;
}
