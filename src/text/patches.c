#include "text/patches.h"

#include <string.h>

#include "base/status.h"
#include "text/vocab_kind.h"

static const char MAGIC[] = "tarn-vocab patches ";

static bool detect(const void *data, size_t size) {
  return size >= sizeof MAGIC - 1 && memcmp(data, MAGIC, sizeof MAGIC - 1) == 0;
}

static void close_patches(void *self) { (void)self; }

static tarn_status open_patches(void **self, tarn__vocab_facts *facts, const void *data, size_t size) {
  tarn__vocab_reader reader = {data, (const char *)data + size};
  int64_t version;
  *self = NULL;
  TARN_TRY(tarn__vocab_head(&reader, &version, MAGIC, 1));
  TARN_TRY(tarn__vocab_finish(&reader));
  // An image ends in a patch.
  *facts = (tarn__vocab_facts){.size = TARN__PATCH_TOKENS,
                               .unk = -1,
                               .bos = -1,
                               .eos = TARN__PATCH,
                               .pad = -1,
                               .special = {TARN__PATCH_CLS, -1, -1}};
  return TARN_STATUS_OK;
}

static const char *piece(const void *self, int32_t id) {
  (void)self;
  return id == TARN__PATCH_CLS ? "<cls>" : "<patch>";
}

static tarn_status refuse(void) {
  return tarn__fail(TARN_STATUS_USAGE, "the model is one of images, which reads no text");
}

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  (void)self, (void)ids, (void)text, (void)length;
  return refuse();
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  (void)self, (void)text, (void)ids, (void)count;
  return refuse();
}

static bool begins_word(const void *self, int32_t id) {
  (void)self, (void)id;
  return true;
}

const tarn__vocab_kind tarn__patches_kind = {detect, open_patches, close_patches, piece,
                                             encode, decode,       begins_word,   "patches"};
