#include "tarn/vocab.h"

#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "text/lines.h"
#include "text/spm.h"
#include "text/words.h"

enum { LONGEST_LINE = 65536 };

struct tarn_vocab {
  char *bytes;
  size_t bytes_size;
  char hash[TARN__HASH_TEXT];
  int32_t size, unk, bos, eos;
  tarn__spm *spm;  // one of these two
  tarn__words *words;
};

void tarn_vocab_default(tarn_vocab_options *options) {
  *options = (tarn_vocab_options){
      .type = TARN_VOCAB_TYPE_BPE, .size = 8000, .character_coverage = 1.0, .minimum_count = 1, .threads = 2};
}

// The lines of several files, one after the other.
typedef struct feed {
  const char *const *files;
  size_t count, next;
  tarn__lines lines;
  int64_t given, replaced, overlong;
} feed;

static tarn_status feed_next(void *user, const char **text, size_t *length) {
  feed *f = user;
  for (;;) {
    *text = NULL;
    if (f->lines.file) TARN_TRY(tarn__lines_next(&f->lines, text, length));
    if (*text && *length > LONGEST_LINE) f->overlong++;
    if (*text && (*length == 0 || *length > LONGEST_LINE)) continue;
    if (*text) {
      f->given++;
      return TARN_STATUS_OK;
    }
    f->replaced += f->lines.replaced;
    tarn__lines_close(&f->lines);
    if (f->next == f->count) return TARN_STATUS_OK;
    TARN_TRY(tarn__lines_open(&f->lines, f->files[f->next++], false));
  }
}

static tarn_status check_options(size_t count, const tarn_vocab_options *o) {
  TARN_REQUIRE(count > 0, USAGE, "a vocabulary needs at least one text file");
  TARN_REQUIRE(o->size >= 4 && o->size <= 1000000, USAGE, "the size of a vocabulary is 4 to 1000000, not %lld",
               (long long)o->size);
  TARN_REQUIRE(o->character_coverage >= 0.9 && o->character_coverage <= 1.0, USAGE,
               "the character coverage is 0.9 to 1, not %g", o->character_coverage);
  TARN_REQUIRE(o->minimum_count >= 1, USAGE, "the minimum count is at least 1, not %lld", (long long)o->minimum_count);
  TARN_REQUIRE(o->sentences >= 0, USAGE, "the number of sentences cannot be negative");
  TARN_REQUIRE(o->threads >= 1 && o->threads <= 1024, USAGE, "the number of threads is 1 to 1024, not %d", o->threads);
  return TARN_STATUS_OK;
}

tarn_status tarn_vocab_train(const char *output, const char *const *files, size_t count,
                             const tarn_vocab_options *options) {
  TARN_TRY(check_options(count, options));
  feed f = {.files = files, .count = count};
  char *bytes = NULL;
  size_t size = 0;
  tarn_status status = options->type == TARN_VOCAB_TYPE_WHITESPACE
                           ? tarn__words_train(&bytes, &size, feed_next, &f, options)
                           : tarn__spm_train(&bytes, &size, feed_next, &f, options);
  tarn__lines_close(&f.lines);
  if (status != TARN_STATUS_OK && status != TARN_STATUS_IO && f.given == 0)
    status = tarn__fail(TARN_STATUS_DATA, "%s: there is no text to train a vocabulary on", files[0]);
  if (f.replaced) tarn__log(TARN_LOG_WARNING, "invalid UTF-8 was replaced in %lld lines", (long long)f.replaced);
  if (f.overlong)
    tarn__log(TARN_LOG_WARNING, "%lld lines of more than %d bytes were skipped", (long long)f.overlong, LONGEST_LINE);
  if (status == TARN_STATUS_OK) status = tarn__file_write(output, bytes, size);
  tarn__free(bytes);
  return status;
}

static tarn_status open_spm(tarn_vocab *v) {
  TARN_TRY(tarn__spm_check(v->bytes, v->bytes_size));
  TARN_TRY(tarn__spm_open(&v->spm, v->bytes, v->bytes_size));
  v->size = tarn__spm_size(v->spm);
  v->unk = tarn__spm_unk(v->spm);
  v->bos = tarn__spm_bos(v->spm);
  v->eos = tarn__spm_eos(v->spm);
  TARN_REQUIRE(v->size > 0 && v->unk >= 0 && v->unk < v->size, DATA, "the vocabulary has no unknown token");
  TARN_REQUIRE(v->eos >= 0 && v->eos < v->size, DATA, "the vocabulary has no end of sentence");
  TARN_REQUIRE(v->bos >= -1 && v->bos < v->size, DATA, "the vocabulary is damaged");
  return TARN_STATUS_OK;
}

static tarn_status open_words(tarn_vocab *v) {
  TARN_TRY(tarn__words_open(&v->words, v->bytes, v->bytes_size));
  v->size = tarn__words_size(v->words);
  v->unk = 0;
  v->bos = 1;
  v->eos = 2;
  return TARN_STATUS_OK;
}

// Takes over the bytes, also when it fails.
static tarn_status open_bytes(tarn_vocab **vocab, char *bytes, size_t size) {
  void *memory;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_vocab));
  if (status != TARN_STATUS_OK) {
    tarn__free(bytes);
    return status;
  }
  tarn_vocab *v = memory;
  v->bytes = bytes;
  v->bytes_size = size;
  tarn__hash(v->hash, bytes, size);
  status = tarn__words_detect(bytes, size) ? open_words(v) : open_spm(v);
  if (status != TARN_STATUS_OK) tarn_vocab_close(&v);
  *vocab = v;
  return status;
}

tarn_status tarn_vocab_open_memory(tarn_vocab **vocab, const void *bytes, size_t size) {
  *vocab = NULL;
  TARN_REQUIRE(size > 0, DATA, "the vocabulary is empty");
  void *copy;
  TARN_TRY(tarn__alloc(&copy, TARN__MEMORY_OTHER, size, 1));
  memcpy(copy, bytes, size);
  return open_bytes(vocab, copy, size);
}

tarn_status tarn_vocab_open(tarn_vocab **vocab, const char *path) {
  char *bytes;
  size_t size;
  *vocab = NULL;
  TARN_TRY(tarn__file_read(path, &bytes, &size));
  if (size == 0) {
    tarn__free(bytes);
    return tarn__fail(TARN_STATUS_DATA, "%s: the vocabulary is empty", path);
  }
  tarn_status status = open_bytes(vocab, bytes, size);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: ", path);
}

void tarn_vocab_close(tarn_vocab **vocab) {
  tarn_vocab *v = *vocab;
  if (!v) return;
  if (v->spm) tarn__spm_close(&v->spm);
  tarn__words_close(&v->words);
  tarn__free(v->bytes);
  tarn__free(v);
  *vocab = NULL;
}

int32_t tarn_vocab_size(const tarn_vocab *vocab) { return vocab->size; }
int32_t tarn_vocab_unk(const tarn_vocab *vocab) { return vocab->unk; }
int32_t tarn_vocab_bos(const tarn_vocab *vocab) { return vocab->bos; }
int32_t tarn_vocab_eos(const tarn_vocab *vocab) { return vocab->eos; }
const char *tarn_vocab_hash(const tarn_vocab *vocab) { return vocab->hash; }

const void *tarn_vocab_bytes(const tarn_vocab *vocab, size_t *size) {
  *size = vocab->bytes_size;
  return vocab->bytes;
}

const char *tarn_vocab_piece(const tarn_vocab *vocab, int32_t id) {
  if (id < 0 || id >= vocab->size) return "";
  return vocab->spm ? tarn__spm_piece(vocab->spm, id) : tarn__words_piece(vocab->words, id);
}

void tarn_vocab_ids_close(tarn_vocab_ids *ids) {
  tarn__free(ids->data);
  *ids = (tarn_vocab_ids){0};
}

void tarn_vocab_text_close(tarn_vocab_text *text) {
  tarn__free(text->data);
  *text = (tarn_vocab_text){0};
}

tarn_status tarn_vocab_encode(const tarn_vocab *vocab, tarn_vocab_ids *ids, const char *text, size_t length) {
  return vocab->spm ? tarn__spm_encode(vocab->spm, ids, text, length)
                    : tarn__words_encode(vocab->words, ids, text, length);
}

tarn_status tarn_vocab_decode(const tarn_vocab *vocab, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    TARN_REQUIRE(ids[i] >= 0 && ids[i] < vocab->size, DATA, "token %d is outside the vocabulary of %d tokens", ids[i],
                 vocab->size);
  return vocab->spm ? tarn__spm_decode(vocab->spm, text, ids, count)
                    : tarn__words_decode(vocab->words, text, ids, count);
}
