// The interface of a kind of vocabulary behind tarn/vocab.h, and helpers for kinds that are text files.
#ifndef TARN_TEXT_VOCAB_KIND_H
#define TARN_TEXT_VOCAB_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/vocab.h"

typedef struct tarn__vocab_facts {
  int32_t size, unk, bos, eos, pad;     // unk, bos and pad: -1 if there is none
  int32_t special[TARN_SPECIAL_COUNT];  // -1 for missing ones; TARN__VOCAB_NO_SPECIAL: none
  const char *type;                     // NULL: the name of the kind
  char normalization[48];               // "": identity
  bool loses_joiners;
} tarn__vocab_facts;

#define TARN__VOCAB_NO_SPECIAL \
  { -1, -1, -1 }

// `self` is the object made by open. The other functions are called only with ids in range.
typedef struct tarn__vocab_kind {
  // Whether the bytes begin as a file of this kind does.
  bool (*detect)(const void *bytes, size_t size);
  // The bytes outlive the object. On failure there is nothing to close.
  tarn_status (*open)(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size);
  void (*close)(void *self);
  const char *(*piece)(const void *self, int32_t id);
  tarn_status (*encode)(const void *self, tarn_vocab_ids *ids, const char *text, size_t length);
  tarn_status (*decode)(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count);
  bool (*begins_word)(const void *self, int32_t id);  // not called for special tokens
  const char *name;
} tarn__vocab_kind;

// The first tokens of our own kinds of file, and those of masked models, which version 2 adds.
enum {
  TARN__VOCAB_UNK,
  TARN__VOCAB_BOS,
  TARN__VOCAB_EOS,
  TARN__VOCAB_SPECIALS,
  TARN__VOCAB_CLS = TARN__VOCAB_SPECIALS,
  TARN__VOCAB_SEP,
  TARN__VOCAB_MASK,
  TARN__VOCAB_ALL_SPECIALS
};
extern const char *const tarn__vocab_specials[TARN__VOCAB_ALL_SPECIALS];

extern const tarn__vocab_kind tarn__spm_kind, tarn__words_kind, tarn__gpt2_kind, tarn__wordpiece_kind, tarn__bytes_kind,
    tarn__chars_kind, tarn__patches_kind, tarn__marian_kind, tarn__bpe_kind, tarn__fairseq_kind, tarn__prefixed_kind;

// The number of special tokens for `options`: TARN__VOCAB_SPECIALS or TARN__VOCAB_ALL_SPECIALS.
int tarn__vocab_count_specials(const tarn_vocab_options *options);
// The facts of a file of ours whose first `specials` tokens are the special ones.
tarn__vocab_facts tarn__vocab_own_facts(int32_t size, int specials);

// The unknown token and that of the end, which must be there, and those of the beginning and of padding by their names
// in a list of tokens, such as <unk>, <bos>, <eos> and <pad>. find() gives the id of a token, or -1. Fails with DATA.
tarn_status tarn__vocab_named_facts(tarn__vocab_facts *facts, const void *self,
                                    int32_t (*find)(const void *self, const char *token)) TARN_CHECKED;

// The kind of a file of these bytes.
const tarn__vocab_kind *tarn__vocab_kind_of(const void *bytes, size_t size);

// Sets type and normalization from the bytes of a SentencePiece model.
void tarn__vocab_describe_spm(tarn__vocab_facts *facts, const void *bytes, size_t size);

// Reads the lines of a text vocabulary. `at` moves from the first byte to `end`.
typedef struct tarn__vocab_reader {
  const char *at, *end;
} tarn__vocab_reader;

// Takes a line without its newline; false if there is none that ends in one.
bool tarn__vocab_line(tarn__vocab_reader *reader, const char **line, size_t *length);
// Takes a line that is `key` (with a blank at its end) and a number of one to nine digits, 0 .. maximum.
tarn_status tarn__vocab_number(tarn__vocab_reader *reader, int64_t *number, const char *key,
                               int64_t maximum) TARN_CHECKED;
// Takes the first line: `magic` (with a blank at its end) and the version, 1 .. `newest`.
tarn_status tarn__vocab_head(tarn__vocab_reader *reader, int64_t *version, const char *magic,
                             int64_t newest) TARN_CHECKED;
// Fails unless everything has been read.
tarn_status tarn__vocab_finish(const tarn__vocab_reader *reader) TARN_CHECKED;

// Whether two vocabularies have the same tokens with the same numbers.
bool tarn__vocab_same_tokens(const tarn_vocab *a, const tarn_vocab *b);

// Appends to a text, followed by a zero byte.
tarn_status tarn__vocab_append(tarn_vocab_text *text, const char *bytes, size_t length) TARN_CHECKED;

#endif
