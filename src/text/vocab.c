#include "tarn/vocab.h"

#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "run/file_kind.h"
#include "text/fairseq.h"
#include "text/gpt2.h"
#include "text/list.h"
#include "text/marian.h"
#include "text/patches.h"
#include "text/prefixed.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"
#include "text/vocab_files.h"
#include "text/vocab_formats.h"
#include "text/vocab_kind.h"
#include "text/wordpiece.h"

struct tarn_vocab {
  char *bytes;
  size_t bytes_size;
  char hash[TARN__HASH_TEXT];
  const tarn__vocab_kind *kind;
  void *self;  // the object of its kind
  tarn__vocab_facts facts;
};

// The first kind that accepts the bytes is used; the last one accepts all.
static const tarn__vocab_kind *const KINDS[] = {&tarn__words_kind,    &tarn__gpt2_kind,  &tarn__wordpiece_kind,
                                                &tarn__bytes_kind,    &tarn__chars_kind, &tarn__patches_kind,
                                                &tarn__marian_kind,   &tarn__bpe_kind,   &tarn__fairseq_kind,
                                                &tarn__prefixed_kind, &tarn__spm_kind};

const tarn__vocab_kind *tarn__vocab_kind_of(const void *bytes, size_t size) {
  size_t kind = 0;
  while (!KINDS[kind]->detect(bytes, size)) kind++;
  return KINDS[kind];
}

// Takes over the bytes, even on failure.
static tarn_status open_bytes(tarn_vocab **vocab, char *bytes, size_t size) {
  void *memory;
  *vocab = NULL;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_vocab));
  if (status != TARN_STATUS_OK) {
    tarn__free(bytes);
    return status;
  }
  tarn_vocab *v = memory;
  const tarn__vocab_kind *kind = tarn__vocab_kind_of(bytes, size);
  v->bytes = bytes;
  v->bytes_size = size;
  tarn__hash(v->hash, bytes, size);
  status = kind->open(&v->self, &v->facts, bytes, size);
  if (status == TARN_STATUS_OK)
    v->kind = kind;
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

// A file of ours may also be named vocab.txt.
static bool is_wordpiece(const char *path) {
  return tarn__wordpiece_is_original(path) && tarn__file_kind_at(path) != TARN__FILE_KIND_VOCAB;
}

// A file of ours may also be named dict.de.txt.
static bool is_fairseq(const char *path) {
  return tarn__fairseq_is_original(path) && tarn__file_kind_at(path) != TARN__FILE_KIND_VOCAB;
}

// A file of ours may also be named tokens.source.txt.
static bool is_list(const char *path) {
  return tarn__list_is_original(path) && tarn__file_kind_at(path) != TARN__FILE_KIND_VOCAB;
}

static bool is_original(const char *path) {
  return is_wordpiece(path) || is_fairseq(path) || is_list(path) || tarn__tokenizer_is_original(path) ||
         tarn__gpt2_is_original(path);
}

static const tarn__tokenizer_wish NO_WISH = {.bos = -1, .eos = -1};

static tarn_status open_file(tarn_vocab **vocab, const char *path, tarn_wordpiece_case casing) {
  char *bytes;
  size_t size;
  if (is_wordpiece(path))
    TARN_TRY(tarn__wordpiece_import(&bytes, &size, path, casing));
  else if (is_fairseq(path))
    TARN_TRY(tarn__fairseq_import(&bytes, &size, path));
  else if (is_list(path))
    TARN_TRY(tarn__list_import(&bytes, &size, path));
  else if (tarn__tokenizer_is_original(path))
    TARN_TRY(tarn__tokenizer_import(&bytes, &size, path, &NO_WISH));
  else if (tarn__gpt2_is_original(path))
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

tarn_status tarn_vocab_open(tarn_vocab **vocab, const char *path) {
  *vocab = NULL;
  if (strcmp(path, TARN__PATCHES_NAME) == 0)
    return tarn_vocab_open_memory(vocab, TARN__PATCHES_FILE, strlen(TARN__PATCHES_FILE));
  tarn_status status = open_file(vocab, path, TARN_WORDPIECE_CASE_AS_SAID);
  // A message about another program's file names it and says more.
  if (status == TARN_STATUS_OK || (is_original(path) && tarn__file_kind_at(path) < TARN__FILE_KIND_FOLDER))
    return status;
  return tarn__file_kind_explain(status, path, TARN__FILE_KIND_VOCAB);
}

tarn_status tarn_vocab_save(const tarn_vocab *vocab, const char *output) {
  TARN_TRY(tarn__mkdir_of_file(output));
  return tarn__file_write(output, vocab->bytes, vocab->bytes_size);
}

static tarn_status write_file(const char *output, tarn_vocab **vocab) {
  const tarn_status status = tarn_vocab_save(*vocab, output);
  tarn_vocab_close(vocab);
  return status;
}

tarn_status tarn_vocab_import_gpt2(const char *output, const char *path) {
  tarn_vocab *vocab;
  TARN_REQUIRE(
      tarn__gpt2_is_original(path), USAGE,
      "%s: GPT-2's vocabulary is a folder with vocab.json and merges.txt, or encoder.json and vocab.bpe, or one "
      "of these files",
      path);
  TARN_TRY(tarn_vocab_open(&vocab, path));
  return write_file(output, &vocab);
}

tarn_status tarn_vocab_import_tokenizer(const char *output, const char *path) {
  tarn_vocab *vocab;
  char *bytes;
  size_t size;
  TARN_REQUIRE(tarn__vocab_is_folder(path) || tarn__tokenizer_is_original(path), USAGE,
               "%s: a tokenizer is a file tokenizer.json, or a folder with it", path);
  TARN_TRY(tarn__tokenizer_import(&bytes, &size, path, &NO_WISH));
  TARN_TRY(open_bytes(&vocab, bytes, size));
  return write_file(output, &vocab);
}

tarn_status tarn__vocab_open_tokenizer(tarn_vocab **vocab, const char *path, int64_t size, int64_t bos, int64_t eos) {
  char *bytes;
  size_t length;
  *vocab = NULL;
  TARN_TRY(tarn__tokenizer_import(&bytes, &length, path, &(tarn__tokenizer_wish){size, bos, eos}));
  return open_bytes(vocab, bytes, length);
}

tarn_status tarn_vocab_import_wordpiece(const char *output, const char *path, tarn_wordpiece_case casing) {
  tarn_vocab *vocab;
  TARN_REQUIRE(is_wordpiece(path), USAGE,
               "%s: BERT's vocabulary is a file vocab.txt, or a folder with it and without vocab.json", path);
  TARN_REQUIRE((int)casing >= 0 && casing <= TARN_WORDPIECE_UNCASED, USAGE, "there is no rule %d for the case of text",
               (int)casing);
  TARN_TRY(open_file(&vocab, path, casing));
  return write_file(output, &vocab);
}

// A vocabulary of this kind whose special tokens have the names that the package expects.
static bool is_named(const tarn_vocab *vocab, const tarn__vocab_kind *kind) {
  const int32_t unk = vocab->facts.unk, eos = vocab->facts.eos;
  return vocab->kind == kind && strcmp(tarn_vocab_piece(vocab, unk), "<unk>") == 0 &&
         strcmp(tarn_vocab_piece(vocab, eos), "</s>") == 0;
}

tarn_status tarn__vocab_open_marian(tarn_vocab **vocab, const char *folder, bool target) {
  char *bytes;
  size_t size;
  *vocab = NULL;
  TARN_TRY(tarn__marian_import(&bytes, &size, folder, target));
  const tarn_status status = open_bytes(vocab, bytes, size);
  if (status == TARN_STATUS_OK) return status;
  return tarn__fail_prefix(status, "%s, vocabulary of %s: ", folder, tarn__marian_model_name(target));
}

tarn_status tarn_vocab_import_marian(const char *output, const char *folder, bool target) {
  tarn_vocab *vocab;
  TARN_TRY(tarn__vocab_open_marian(&vocab, folder, target));
  return write_file(output, &vocab);
}

tarn_status tarn__vocab_open_prefixed(tarn_vocab **vocab, const tarn_vocab *other, int32_t first) {
  char *bytes;
  size_t size;
  *vocab = NULL;
  if (other->kind == &tarn__prefixed_kind) return tarn_vocab_open_memory(vocab, other->bytes, other->bytes_size);
  TARN_TRY(tarn__prefixed_bytes(&bytes, &size, other->bytes, other->bytes_size, first));
  return open_bytes(vocab, bytes, size);
}

bool tarn__vocab_has_marian_form(const tarn_vocab *source, const tarn_vocab *target) {
  return (is_named(source, &tarn__marian_kind) && is_named(target, &tarn__marian_kind)) ||
         (is_named(source, &tarn__spm_kind) && is_named(target, &tarn__spm_kind));
}

bool tarn__vocab_is_prefixed(const tarn_vocab *vocab) { return vocab->kind == &tarn__prefixed_kind; }
bool tarn__vocab_is_marian(const tarn_vocab *vocab) { return vocab->kind == &tarn__marian_kind; }
bool tarn__vocab_is_sentencepiece(const tarn_vocab *vocab) { return vocab->kind == &tarn__spm_kind; }

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
int32_t tarn_vocab_special(const tarn_vocab *vocab, tarn_special special) {
  const int32_t id = vocab->facts.special[special];
  return id < 0 && special == TARN_SPECIAL_SEP ? vocab->facts.eos : id;
}
bool tarn_vocab_begins_word(const tarn_vocab *vocab, int32_t id) {
  if (id < 0 || id >= vocab->facts.size || id == vocab->facts.unk || id == vocab->facts.bos || id == vocab->facts.eos ||
      id == vocab->facts.pad)
    return true;
  for (int i = 0; i < TARN_SPECIAL_COUNT; i++)
    if (id == vocab->facts.special[i]) return true;
  return vocab->kind->begins_word(vocab->self, id);
}
bool tarn__vocab_is_spelling(const tarn_vocab *vocab) {
  return vocab->kind == &tarn__bytes_kind || vocab->kind == &tarn__chars_kind;
}
const char *tarn_vocab_kind(const tarn_vocab *vocab) {
  return vocab->facts.type ? vocab->facts.type : vocab->kind->name;
}
const char *tarn_vocab_normalization_of(const tarn_vocab *vocab) {
  return *vocab->facts.normalization ? vocab->facts.normalization : "identity";
}
bool tarn_vocab_keeps_joiners(const tarn_vocab *vocab) { return !vocab->facts.loses_joiners; }
bool tarn_vocab_is(const char *path) { return tarn__file_kind_at(path) == TARN__FILE_KIND_VOCAB; }
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
  ids->parts = 1;
  ids->broken = 0;
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
