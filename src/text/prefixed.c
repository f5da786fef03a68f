#include "text/prefixed.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "text/vocab_kind.h"

static const char MAGIC[] = "tarn-vocab prefixed ", FIRST[] = "first ";

typedef struct prefixed {
  const tarn__vocab_kind *kind;  // of the other vocabulary
  void *other;
  int32_t first;
} prefixed;

static bool detect(const void *bytes, size_t size) {
  return size >= sizeof MAGIC - 1 && memcmp(bytes, MAGIC, sizeof MAGIC - 1) == 0;
}

static tarn_status open_other(prefixed *p, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  tarn__vocab_reader reader = {bytes, (const char *)bytes + size};
  int64_t version, first;
  TARN_TRY(tarn__vocab_head(&reader, &version, MAGIC, 1));
  TARN_TRY(tarn__vocab_number(&reader, &first, FIRST, 999999999));
  const size_t left = (size_t)(reader.end - reader.at);
  TARN_REQUIRE(left > 0 && !detect(reader.at, left), DATA,
               "damaged vocabulary: behind \"%s\" there is no vocabulary without a token in front", FIRST);
  p->kind = tarn__vocab_kind_of(reader.at, left);
  p->first = (int32_t)first;
  TARN_TRY(p->kind->open(&p->other, facts, reader.at, left));
  if (!facts->type) facts->type = p->kind->name;
  if (first < facts->size) return TARN_STATUS_OK;
  p->kind->close(p->other);
  return tarn__fail(TARN_STATUS_DATA, "damaged vocabulary: there is no token %lld", (long long)first);
}

static tarn_status open_prefixed(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  TARN_TRY(tarn__alloc(self, TARN__MEMORY_OTHER, 1, sizeof(prefixed)));
  prefixed *p = *self;
  const tarn_status status = open_other(p, facts, bytes, size);
  facts->bos = p->first;
  if (status != TARN_STATUS_OK) tarn__free(p);
  return status;
}

static void close_prefixed(void *self) {
  prefixed *p = self;
  p->kind->close(p->other);
  tarn__free(p);
}

static const char *piece(const void *self, int32_t id) {
  const prefixed *p = self;
  return p->kind->piece(p->other, id);
}

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  const prefixed *p = self;
  TARN_TRY(p->kind->encode(p->other, ids, text, length));
  if (ids->count == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, ids->count + 1, sizeof *ids->data));
  memmove(ids->data + 1, ids->data, ids->count * sizeof *ids->data);
  ids->data[0] = p->first;
  ids->count++;
  return TARN_STATUS_OK;
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  const prefixed *p = self;
  const bool begins = count > 0 && ids[0] == p->first;
  return p->kind->decode(p->other, text, begins ? ids + 1 : ids, begins ? count - 1 : count);
}

static bool begins_word(const void *self, int32_t id) {
  const prefixed *p = self;
  return p->kind->begins_word(p->other, id);
}

tarn_status tarn__prefixed_bytes(char **bytes, size_t *size, const void *other, size_t other_size, int32_t first) {
  char head[64];
  tarn_vocab_text out = {0};
  snprintf(head, sizeof head, "%s1\n%s%d\n", MAGIC, FIRST, first);
  tarn_status status = tarn__vocab_append(&out, head, strlen(head));
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(&out, other, other_size);
  if (status != TARN_STATUS_OK) tarn_vocab_text_close(&out);
  *bytes = out.data;
  *size = out.length;
  return status;
}

const tarn__vocab_kind tarn__prefixed_kind = {detect, open_prefixed, close_prefixed, piece,
                                              encode, decode,        begins_word,    "prefixed"};
