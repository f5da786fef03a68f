#include "tarn/vocab.h"

#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "text/bytes.h"
#include "text/chars.h"
#include "text/gpt2.h"
#include "text/lines.h"
#include "text/spm.h"
#include "text/utf8.h"
#include "text/vocab_kind.h"
#include "text/words.h"

enum { LONGEST_LINE = 65536 };

struct tarn_vocab {
  char *bytes;
  size_t bytes_size;
  char hash[TARN__HASH_TEXT];
  const tarn__vocab_kind *kind;
  void *self;  // the object of its kind
  tarn__vocab_facts facts;
};

// The first kind that takes the bytes; the last one takes all.
static const tarn__vocab_kind *const KINDS[] = {&tarn__words_kind, &tarn__gpt2_kind, &tarn__bytes_kind,
                                                &tarn__chars_kind, &tarn__spm_kind};

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
  bool limited;  // to lines that SentencePiece takes
} feed;

static tarn_status feed_next(void *user, const char **text, size_t *length) {
  feed *f = user;
  for (;;) {
    *text = NULL;
    if (f->lines.file) TARN_TRY(tarn__lines_next(&f->lines, text, length));
    const bool overlong = *text && f->limited && *length > LONGEST_LINE;
    f->overlong += overlong;
    if (*text && (*length == 0 || overlong)) continue;
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

// What a type has no use for stands at its default.
static tarn_status check_type(size_t count, const tarn_vocab_options *o) {
  tarn_vocab_options fresh;
  tarn_vocab_default(&fresh);
  const bool byte = o->type == TARN_VOCAB_TYPE_BYTE;
  const bool counted = o->type == TARN_VOCAB_TYPE_WHITESPACE || o->type == TARN_VOCAB_TYPE_CHAR;
  const bool pieces = !byte && !counted;
  TARN_REQUIRE(!byte || count == 0, USAGE, "a byte vocabulary has the 256 bytes: it takes no text");
  TARN_REQUIRE(!byte || o->size == fresh.size, USAGE, "a byte vocabulary has 259 tokens: it takes no size");
  TARN_REQUIRE(!byte || !o->lowercase, USAGE, "a byte vocabulary keeps every byte: it cannot fold the case");
  TARN_REQUIRE(counted || o->minimum_count == fresh.minimum_count, USAGE,
               "only whitespace and character vocabularies take a minimum count");
  TARN_REQUIRE(pieces || o->character_coverage == fresh.character_coverage, USAGE,
               "only SentencePiece's vocabularies (bpe, unigram) take a character coverage");
  TARN_REQUIRE(pieces || o->sentences == fresh.sentences, USAGE,
               "only SentencePiece's vocabularies (bpe, unigram) take a number of sentences");
  TARN_REQUIRE(o->sentences == 0 || o->sentences > 100, USAGE,
               "SentencePiece draws at least 101 sentences (0: all of them), not %lld", (long long)o->sentences);
  TARN_REQUIRE(pieces || o->threads == fresh.threads, USAGE,
               "only SentencePiece's vocabularies (bpe, unigram) are trained by threads");
  return TARN_STATUS_OK;
}

static tarn_status check_options(size_t count, const tarn_vocab_options *o) {
  TARN_REQUIRE(count > 0 || o->type == TARN_VOCAB_TYPE_BYTE, USAGE, "a vocabulary needs at least one text file");
  TARN_REQUIRE(o->size >= 4 && o->size <= 1000000, USAGE, "the size of a vocabulary is 4 to 1000000, not %lld",
               (long long)o->size);
  TARN_REQUIRE(o->character_coverage >= 0.9 && o->character_coverage <= 1.0, USAGE,
               "the character coverage is 0.9 to 1, not %g", o->character_coverage);
  TARN_REQUIRE(o->minimum_count >= 1, USAGE, "the minimum count is at least 1, not %lld", (long long)o->minimum_count);
  TARN_REQUIRE(o->threads >= 1 && o->threads <= 1024, USAGE, "the number of threads is 1 to 1024, not %d", o->threads);
  return check_type(count, o);
}

// Makes the bytes of a vocabulary from the text of the feed.
static tarn_status train(char **bytes, size_t *size, feed *f, const tarn_vocab_options *options) {
  switch (options->type) {
    case TARN_VOCAB_TYPE_BYTE:
      return tarn__bytes_train(bytes, size);
    case TARN_VOCAB_TYPE_CHAR:
      return tarn__chars_train(bytes, size, feed_next, f, options);
    case TARN_VOCAB_TYPE_WHITESPACE:
      return tarn__words_train(bytes, size, feed_next, f, options);
    case TARN_VOCAB_TYPE_BPE:
    case TARN_VOCAB_TYPE_UNIGRAM:
      return tarn__spm_train(bytes, size, feed_next, f, options);
  }
  return tarn__fail(TARN_STATUS_USAGE, "there is no type %d of a vocabulary", (int)options->type);
}

tarn_status tarn_vocab_train(const char *output, const char *const *files, size_t count,
                             const tarn_vocab_options *options) {
  TARN_TRY(check_options(count, options));
  TARN_TRY(tarn__mkdir_of_file(output));
  feed f = {.files = files,
            .count = count,
            .limited = options->type == TARN_VOCAB_TYPE_BPE || options->type == TARN_VOCAB_TYPE_UNIGRAM};
  char *bytes = NULL;
  size_t size = 0;
  tarn_status status = train(&bytes, &size, &f, options);
  tarn__lines_close(&f.lines);
  if (status == TARN_STATUS_DATA && f.given == 0)
    status = tarn__fail(TARN_STATUS_DATA, "there is no text to train a vocabulary on");
  if (status == TARN_STATUS_DATA && count > 0)
    status = tarn__fail_prefix(status, count > 1 ? "%s and others: " : "%s: ", files[0]);
  if (f.replaced) tarn__log(TARN_LOG_WARNING, "invalid UTF-8 was replaced in %lld lines", (long long)f.replaced);
  if (f.overlong)
    tarn__log(TARN_LOG_WARNING, "%lld lines of more than %d bytes were skipped", (long long)f.overlong, LONGEST_LINE);
  if (status == TARN_STATUS_OK) status = tarn__file_write(output, bytes, size);
  tarn__free(bytes);
  return status;
}

// Takes over the bytes, also when it fails.
static tarn_status open_bytes(tarn_vocab **vocab, char *bytes, size_t size) {
  void *memory;
  *vocab = NULL;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_vocab));
  if (status != TARN_STATUS_OK) {
    tarn__free(bytes);
    return status;
  }
  tarn_vocab *v = memory;
  size_t kind = 0;
  while (!KINDS[kind]->detect(bytes, size)) kind++;
  v->bytes = bytes;
  v->bytes_size = size;
  tarn__hash(v->hash, bytes, size);
  status = KINDS[kind]->open(&v->self, &v->facts, bytes, size);
  if (status == TARN_STATUS_OK)
    v->kind = KINDS[kind];
  else
    tarn_vocab_close(&v);
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
  if (tarn__gpt2_is_original(path))
    TARN_TRY(tarn__gpt2_import(&bytes, &size, path));
  else
    TARN_TRY(tarn__file_read(path, &bytes, &size));
  if (size == 0) {
    tarn__free(bytes);
    return tarn__fail(TARN_STATUS_DATA, "%s: the vocabulary is empty", path);
  }
  tarn_status status = open_bytes(vocab, bytes, size);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: ", path);
}

tarn_status tarn_vocab_import_gpt2(const char *output, const char *path) {
  tarn_vocab *vocab;
  TARN_REQUIRE(
      tarn__gpt2_is_original(path), USAGE,
      "%s: GPT-2's vocabulary is a folder with vocab.json and merges.txt, or encoder.json and vocab.bpe, or one "
      "of these files",
      path);
  TARN_TRY(tarn_vocab_open(&vocab, path));
  tarn_status status = tarn__mkdir_of_file(output);
  if (status == TARN_STATUS_OK) status = tarn__file_write(output, vocab->bytes, vocab->bytes_size);
  tarn_vocab_close(&vocab);
  return status;
}

void tarn_vocab_close(tarn_vocab **vocab) {
  tarn_vocab *v = *vocab;
  if (!v) return;
  if (v->kind) v->kind->close(v->self);
  tarn__free(v->bytes);
  tarn__free(v);
  *vocab = NULL;
}

int32_t tarn_vocab_size(const tarn_vocab *vocab) { return vocab->facts.size; }
int32_t tarn_vocab_unk(const tarn_vocab *vocab) { return vocab->facts.unk; }
int32_t tarn_vocab_bos(const tarn_vocab *vocab) { return vocab->facts.bos; }
int32_t tarn_vocab_eos(const tarn_vocab *vocab) { return vocab->facts.eos; }
int32_t tarn_vocab_pad(const tarn_vocab *vocab) { return vocab->facts.pad; }
const char *tarn_vocab_hash(const tarn_vocab *vocab) { return vocab->hash; }

const void *tarn_vocab_bytes(const tarn_vocab *vocab, size_t *size) {
  *size = vocab->bytes_size;
  return vocab->bytes;
}

const char *tarn_vocab_piece(const tarn_vocab *vocab, int32_t id) {
  return id < 0 || id >= vocab->facts.size ? "" : vocab->kind->piece(vocab->self, id);
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
  return vocab->kind->encode(vocab->self, ids, text, length);
}

tarn_status tarn_vocab_decode(const tarn_vocab *vocab, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    TARN_REQUIRE(ids[i] >= 0 && ids[i] < vocab->facts.size, DATA, "token %d is outside the vocabulary of %d tokens",
                 ids[i], vocab->facts.size);
  return vocab->kind->decode(vocab->self, text, ids, count);
}

size_t tarn_vocab_characters(const char *text, size_t length) {
  size_t count = 0;
  for (size_t at = 0; at < length; count++) {
    int32_t code;
    at += tarn__utf8_decode(&code, text + at, length - at);
  }
  return count;
}
