// Protocol buffers as used in SentencePiece models, read without trust.
#ifndef TARN_TEXT_SPM_WIRE_H
#define TARN_TEXT_SPM_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Numbers of fields in sentencepiece_model.proto: of the model, of its normaliser, of the trainer's options.
enum { TARN__WIRE_TRAINER = 2, TARN__WIRE_NORMALISER = 3, TARN__WIRE_DENORMALISER = 5 };
enum { TARN__WIRE_NAME = 1, TARN__WIRE_TABLE = 2 };
enum { TARN__WIRE_MODEL_TYPE = 3 };

typedef struct tarn__wire {
  const uint8_t *at, *end;
} tarn__wire;

static inline bool tarn__wire_varint(tarn__wire *w, uint64_t *value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (w->at == w->end) return false;
    uint8_t byte = *w->at++;
    *value |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Takes one field; *body is its contents, of a type with a length (*has_body) or a number.
static inline bool tarn__wire_field(tarn__wire *w, uint64_t *number, bool *has_body, tarn__wire *body) {
  uint64_t key;
  uint64_t size = 0;
  if (!tarn__wire_varint(w, &key)) return false;
  *number = key >> 3;
  *has_body = (key & 7) == 2;
  if (*number == 0) return false;
  body->at = w->at;
  switch (key & 7) {
    case 0:
      if (!tarn__wire_varint(w, &size)) return false;
      body->end = w->at;
      return true;
    case 1:
      size = 8;
      break;
    case 2:
      if (!tarn__wire_varint(w, &size)) return false;
      break;
    case 5:
      size = 4;
      break;
    default:
      return false;
  }
  if (size > (uint64_t)(w->end - w->at)) return false;
  *body = (tarn__wire){w->at, w->at + size};
  w->at += size;
  return true;
}

static inline uint32_t tarn__wire_u32(const uint8_t *bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

#endif
