#include "text/vocab_kind.h"

#include <string.h>

#include "base/memory.h"

const char *const tarn__vocab_specials[TARN__VOCAB_ALL_SPECIALS] = {"<unk>", "<s>", "</s>", "<cls>", "<sep>", "<mask>"};

int tarn__vocab_count_specials(const tarn_vocab_options *options) {
  return options->mask_symbols ? TARN__VOCAB_ALL_SPECIALS : TARN__VOCAB_SPECIALS;
}

tarn__vocab_facts tarn__vocab_own_facts(int32_t size, int specials) {
  tarn__vocab_facts facts = {.size = size,
                             .unk = TARN__VOCAB_UNK,
                             .bos = TARN__VOCAB_BOS,
                             .eos = TARN__VOCAB_EOS,
                             .pad = -1,
                             .special = TARN__VOCAB_NO_SPECIAL};
  for (int i = TARN__VOCAB_CLS; i < specials; i++) facts.special[i - TARN__VOCAB_CLS] = i;
  return facts;
}

bool tarn__vocab_line(tarn__vocab_reader *reader, const char **line, size_t *length) {
  const char *newline = reader->at < reader->end ? memchr(reader->at, '\n', (size_t)(reader->end - reader->at)) : NULL;
  if (!newline) return false;
  *line = reader->at;
  *length = (size_t)(newline - reader->at);
  reader->at = newline + 1;
  return true;
}

tarn_status tarn__vocab_number(tarn__vocab_reader *reader, int64_t *number, const char *key, int64_t maximum) {
  const char *line;
  size_t length;
  size_t prefix = strlen(key);
  TARN_REQUIRE(tarn__vocab_line(reader, &line, &length) && length > prefix && length <= prefix + 9 &&
                   memcmp(line, key, prefix) == 0,
               DATA, "damaged vocabulary: the line \"%sNUMBER\" is missing", key);
  *number = 0;
  for (size_t i = prefix; i < length; i++) {
    TARN_REQUIRE(line[i] >= '0' && line[i] <= '9', DATA, "damaged vocabulary: \"%s\" needs a number", key);
    *number = *number * 10 + (line[i] - '0');
  }
  TARN_REQUIRE(*number <= maximum, DATA, "damaged vocabulary: \"%s\" is at most %lld, not %lld", key,
               (long long)maximum, (long long)*number);
  return TARN_STATUS_OK;
}

tarn_status tarn__vocab_head(tarn__vocab_reader *reader, int64_t *version, const char *magic, int64_t newest) {
  TARN_TRY(tarn__vocab_number(reader, version, magic, 999999999));
  TARN_REQUIRE(*version >= 1 && *version <= newest, DATA, "vocabulary of version %lld; this program reads version %s",
               (long long)*version,
               newest > 2   ? "1, 2 or 3"
               : newest > 1 ? "1 or 2"
                            : "1");
  return TARN_STATUS_OK;
}

tarn_status tarn__vocab_finish(const tarn__vocab_reader *reader) {
  TARN_REQUIRE(reader->at == reader->end, DATA, "damaged vocabulary: there is more after its end");
  return TARN_STATUS_OK;
}

// The names that programs give to special tokens, the first of which counts that a list has.
enum { NAMES = 6 };
static const char *const UNK_NAMES[NAMES] = {"<unk>", "<UNK>", "[UNK]"}, *const BOS_NAMES[NAMES] = {"<bos>", "<sos>",
                                                                                                    "<s>",   "<BOS>",
                                                                                                    "<SOS>", "[BOS]"},
                         *const EOS_NAMES[NAMES] = {"<eos>", "</s>", "<EOS>", "[EOS]"},
                         *const PAD_NAMES[NAMES] = {"<pad>", "<PAD>", "[PAD]", "<blank>"};

static int32_t find_named(const void *self, int32_t (*find)(const void *self, const char *token),
                          const char *const names[NAMES]) {
  int32_t id = -1;
  for (int i = 0; i < NAMES && names[i] && id < 0; i++) id = find(self, names[i]);
  return id;
}

tarn_status tarn__vocab_named_facts(tarn__vocab_facts *facts, const void *self,
                                    int32_t (*find)(const void *self, const char *token)) {
  facts->unk = find_named(self, find, UNK_NAMES);
  facts->bos = find_named(self, find, BOS_NAMES);
  facts->eos = find_named(self, find, EOS_NAMES);
  facts->pad = find_named(self, find, PAD_NAMES);
  TARN_REQUIRE(facts->unk >= 0, DATA, "the list of tokens has no unknown token, such as <unk>");
  TARN_REQUIRE(facts->eos >= 0, DATA, "the list of tokens has no end of sentence, such as <eos> or </s>");
  return TARN_STATUS_OK;
}

bool tarn__vocab_same_tokens(const tarn_vocab *a, const tarn_vocab *b) {
  bool same = tarn_vocab_size(a) == tarn_vocab_size(b);
  for (int32_t id = 0; same && id < tarn_vocab_size(a); id++)
    same = strcmp(tarn_vocab_piece(a, id), tarn_vocab_piece(b, id)) == 0;
  return same;
}

tarn_status tarn__vocab_append(tarn_vocab_text *text, const char *bytes, size_t length) {
  TARN_TRY(tarn__grow(&text->data, &text->capacity, text->length + length + 1, 1));
  if (length) memcpy(text->data + text->length, bytes, length);
  text->length += length;
  text->data[text->length] = '\0';
  return TARN_STATUS_OK;
}
