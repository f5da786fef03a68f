#include "text/bytes.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "text/vocab_kind.h"

static const char MAGIC[] = "tarn-vocab byte ";
enum {
  SPECIALS = TARN__VOCAB_SPECIALS,
  BYTES_END = SPECIALS + 256,
  MOST = BYTES_END + TARN_SPECIAL_COUNT,
  LONGEST_NAME = 8
};

typedef struct bytes {
  char names[MOST][LONGEST_NAME];
} bytes;

static bool detect(const void *data, size_t size) {
  return size >= sizeof MAGIC - 1 && memcmp(data, MAGIC, sizeof MAGIC - 1) == 0;
}

static void close_bytes(void *self) { tarn__free(self); }

static tarn_status open_bytes(void **self, tarn__vocab_facts *facts, const void *data, size_t size) {
  tarn__vocab_reader reader = {data, (const char *)data + size};
  int64_t version;
  TARN_TRY(tarn__vocab_head(&reader, &version, MAGIC, 2));
  TARN_TRY(tarn__vocab_finish(&reader));
  TARN_TRY(tarn__alloc(self, TARN__MEMORY_OTHER, 1, sizeof(bytes)));
  bytes *b = *self;
  for (int i = 0; i < SPECIALS; i++) snprintf(b->names[i], LONGEST_NAME, "%s", tarn__vocab_specials[i]);
  for (int i = 0; i < 256; i++)
    snprintf(b->names[SPECIALS + i], LONGEST_NAME, i > ' ' && i < 0x7F ? "%c" : "<0x%02X>", (unsigned)i);
  *facts = (tarn__vocab_facts){.size = version == 2 ? MOST : BYTES_END,
                               .unk = TARN__VOCAB_UNK,
                               .bos = TARN__VOCAB_BOS,
                               .eos = TARN__VOCAB_EOS,
                               .pad = -1,
                               .special = TARN__VOCAB_NO_SPECIAL};
  for (int i = 0; version == 2 && i < TARN_SPECIAL_COUNT; i++) {
    snprintf(b->names[BYTES_END + i], LONGEST_NAME, "%s", tarn__vocab_specials[TARN__VOCAB_CLS + i]);
    facts->special[i] = BYTES_END + i;
  }
  return TARN_STATUS_OK;
}

static const char *piece(const void *self, int32_t id) { return ((const bytes *)self)->names[id]; }

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  (void)self;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, length, sizeof *ids->data));
  for (size_t i = 0; i < length; i++) ids->data[i] = SPECIALS + (unsigned char)text[i];
  ids->count = length;
  return TARN_STATUS_OK;
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  (void)self;
  TARN_TRY(tarn__grow(&text->data, &text->capacity, count + 1, 1));
  text->length = 0;
  for (size_t i = 0; i < count; i++)
    if (ids[i] >= SPECIALS && ids[i] < BYTES_END) text->data[text->length++] = (char)(ids[i] - SPECIALS);
  text->data[text->length] = '\0';
  return TARN_STATUS_OK;
}

static bool begins_word(const void *self, int32_t id) {
  (void)self;
  const int byte = id - SPECIALS;
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

tarn_status tarn__bytes_train(char **data, size_t *size, bool mask_symbols) {
  tarn_vocab_text out = {0};
  TARN_TRY(tarn__vocab_append(&out, MAGIC, sizeof MAGIC - 1));
  tarn_status status = tarn__vocab_append(&out, mask_symbols ? "2\n" : "1\n", 2);
  *data = out.data;
  *size = out.length;
  return status;
}

const tarn__vocab_kind tarn__bytes_kind = {detect, open_bytes, close_bytes, piece,
                                           encode, decode,     begins_word, "bytes"};
