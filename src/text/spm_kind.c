// SentencePiece models as a kind of vocabulary.
#include <stdio.h>

#include "base/status.h"
#include "text/cut.h"
#include "text/spm.h"
#include "text/vocab_kind.h"

// A model has no fixed first bytes: everything that no other kind accepts is tried.
static bool detect(const void *bytes, size_t size) {
  (void)bytes;
  (void)size;
  return true;
}

static void close_spm(void *self) {
  tarn__spm *spm = self;
  tarn__spm_close(&spm);
}

static tarn_status check(const tarn__vocab_facts *f) {
  TARN_REQUIRE(f->size > 0 && f->unk >= 0 && f->unk < f->size, DATA, "the vocabulary has no unknown token");
  TARN_REQUIRE(f->eos >= 0 && f->eos < f->size, DATA, "the vocabulary has no end of sentence");
  TARN_REQUIRE(f->bos >= -1 && f->bos < f->size && f->pad >= -1 && f->pad < f->size, DATA, "the vocabulary is damaged");
  return TARN_STATUS_OK;
}

void tarn__vocab_describe_spm(tarn__vocab_facts *facts, const void *bytes, size_t size) {
  tarn__spm_facts found;
  tarn__spm_describe(&found, bytes, size);
  facts->type = found.type;
  snprintf(facts->normalization, sizeof facts->normalization, "%s", found.normalization);
  facts->loses_joiners = found.loses_joiners;
}

// ALBERT's names of <cls>, <sep> and <mask>.
static const char *const OF_ALBERT[TARN_SPECIAL_COUNT] = {"[CLS]", "[SEP]", "[MASK]"};

static tarn_status open_spm(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  tarn__spm *spm = NULL;
  TARN_TRY(tarn__spm_check(bytes, size));
  TARN_TRY(tarn__spm_open(&spm, bytes, size));
  *facts = (tarn__vocab_facts){.size = tarn__spm_size(spm),
                               .unk = tarn__spm_unk(spm),
                               .bos = tarn__spm_bos(spm),
                               .eos = tarn__spm_eos(spm),
                               .pad = tarn__spm_pad(spm)};
  tarn__vocab_describe_spm(facts, bytes, size);
  for (int i = 0; i < TARN_SPECIAL_COUNT; i++) {
    facts->special[i] = tarn__spm_control(spm, tarn__vocab_specials[TARN__VOCAB_CLS + i]);
    if (facts->special[i] < 0) facts->special[i] = tarn__spm_control(spm, OF_ALBERT[i]);
  }
  tarn_status status = check(facts);
  if (status != TARN_STATUS_OK) tarn__spm_close(&spm);
  *self = spm;
  return status;
}

static const char *piece(const void *self, int32_t id) { return tarn__spm_piece(self, id); }

// A long text is encoded in parts. Pieces of a model that splits at white space, as ours do, never cross a blank, so
// the ids are those of the whole.
static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  ids->count = ids->parts = 0;
  for (size_t next; ids->parts == 0 || length > 0; text += next, length -= next, ids->parts++) {
    bool within;
    const size_t part = tarn__cut(&next, &within, text, length, TARN__CUT_LONGEST);
    TARN_TRY(tarn__spm_encode(self, ids, text, part));
    ids->broken += within;
  }
  return TARN_STATUS_OK;
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  return tarn__spm_decode(self, text, ids, count);
}

static bool begins_word(const void *self, int32_t id) { return tarn__spm_begins_word(self, id); }

const tarn__vocab_kind tarn__spm_kind = {detect, open_spm, close_spm,   piece,
                                         encode, decode,   begins_word, "SentencePiece"};
