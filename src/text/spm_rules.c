// The kind and normalisation of a SentencePiece model, and rules that differ from SentencePiece's only in the joiners.
// A rule is a compiled table (text/spm_check.c); removing a key leaves its characters unchanged.
#include <stdio.h>
#include <string.h>

#include "text/spm.h"
#include "text/spm_wire.h"

static const char JOINERS[][4] = {"\xE2\x80\x8C", "\xE2\x80\x8D"};  // U+200C, U+200D
enum { JOINER_COUNT = sizeof JOINERS / sizeof *JOINERS };

typedef struct trie {
  const uint8_t *units;
  size_t count;
} trie;

static bool open_trie(trie *t, const uint8_t *table, size_t size) {
  if (size <= 4) return false;
  const size_t bytes = tarn__wire_u32(table);
  *t = (trie){table + 4, bytes / 4};
  return bytes <= size - 4;
}

// The unit of a key with a replacement, or 0, which belongs to no key.
static size_t find_key(const trie *t, const char *key) {
  size_t at = 0;
  for (const char *c = key; *c; c++) {
    const uint32_t unit = at < t->count ? tarn__wire_u32(t->units + 4 * at) : 0;
    const size_t child = at ^ (size_t)((unit >> 10) << ((unit & (1u << 9)) >> 6)) ^ (uint8_t)*c;
    if (child >= t->count || (tarn__wire_u32(t->units + 4 * child) & (1u << 31 | 0xFF)) != (uint8_t)*c) return 0;
    at = child;
  }
  return at < t->count && tarn__wire_u32(t->units + 4 * at) >> 8 & 1 ? at : 0;
}

bool tarn__spm_keep_joiners(void *table, size_t size) {
  trie t;
  if (!open_trie(&t, table, size)) return false;
  for (int i = 0; i < JOINER_COUNT; i++) {
    const size_t at = find_key(&t, JOINERS[i]);
    if (at) ((uint8_t *)table)[4 + 4 * at + 1] &= 0xFE;  // bit 8 of the unit: a key ends here
  }
  return true;
}

const char *tarn_vocab_normalization_name(tarn_vocab_normalization normalization) {
  static const char *const NAMES[TARN_VOCAB_NORMALIZATION_COUNT] = {
      [TARN_VOCAB_NORMALIZATION_AUTO] = "auto",
      [TARN_VOCAB_NORMALIZATION_NMT_NFKC] = "nmt_nfkc",
      [TARN_VOCAB_NORMALIZATION_NMT_NFKC_JOINERS] = "nmt_nfkc_joiners",
      [TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF] = "nmt_nfkc_cf",
      [TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF_JOINERS] = "nmt_nfkc_cf_joiners",
      [TARN_VOCAB_NORMALIZATION_NFKC] = "nfkc",
      [TARN_VOCAB_NORMALIZATION_NFKC_CF] = "nfkc_cf",
      [TARN_VOCAB_NORMALIZATION_IDENTITY] = "identity"};
  const int place = (int)normalization;
  return place < 0 || place >= TARN_VOCAB_NORMALIZATION_COUNT ? "" : NAMES[place];
}

tarn_vocab_normalization tarn__spm_base(tarn_vocab_normalization normalization) {
  return normalization == TARN_VOCAB_NORMALIZATION_NMT_NFKC_JOINERS      ? TARN_VOCAB_NORMALIZATION_NMT_NFKC
         : normalization == TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF_JOINERS ? TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF
                                                                         : normalization;
}

// The last field of a number in a part of the model.
static bool find_field(tarn__wire *found, tarn__wire part, uint64_t wanted) {
  uint64_t number;
  bool has_body, any = false;
  tarn__wire field;
  while (part.at < part.end && tarn__wire_field(&part, &number, &has_body, &field)) {
    if (number != wanted) continue;
    *found = field;
    any = true;
  }
  return any;
}

bool tarn__spm_table(const void **table, size_t *table_size, const void *bytes, size_t size) {
  tarn__wire model = {bytes, (const uint8_t *)bytes + size}, rule, field;
  *table = NULL;
  *table_size = 0;
  if (!find_field(&rule, model, TARN__WIRE_NORMALISER) || !find_field(&field, rule, TARN__WIRE_TABLE)) return false;
  *table = field.at;
  *table_size = (size_t)(field.end - field.at);
  return *table_size > 0;
}

// The name, which may contain anything in other programs' models.
static void take_name(char name[TARN__SPM_NAME], const tarn__wire *field) {
  size_t used = 0;
  for (const uint8_t *c = field->at; c < field->end && used + 1 < TARN__SPM_NAME; c++)
    name[used++] = *c > ' ' && *c < 0x7F ? (char)*c : '?';
  name[used] = 0;
}

void tarn__spm_describe(tarn__spm_facts *facts, const void *bytes, size_t size) {
  static const char *const TYPES[] = {"SentencePiece", "SentencePiece unigram", "SentencePiece bpe",
                                      "SentencePiece words", "SentencePiece characters"};
  tarn__wire model = {bytes, (const uint8_t *)bytes + size}, part, field;
  uint64_t type = 1;  // the format's default
  const void *table;
  size_t table_size;
  trie t;
  if (find_field(&part, model, TARN__WIRE_TRAINER) && find_field(&field, part, TARN__WIRE_MODEL_TYPE))
    if (!tarn__wire_varint(&field, &type)) type = 0;
  facts->type = TYPES[type < sizeof TYPES / sizeof *TYPES ? type : 0];
  const bool has_table = tarn__spm_table(&table, &table_size, bytes, size);
  snprintf(facts->normalization, sizeof facts->normalization, "%s", has_table ? "user_defined" : "identity");
  if (find_field(&part, model, TARN__WIRE_NORMALISER) && find_field(&field, part, TARN__WIRE_NAME) &&
      field.at < field.end)
    take_name(facts->normalization, &field);
  facts->loses_joiners = false;
  if (!has_table || !open_trie(&t, table, table_size)) return;
  for (int i = 0; i < JOINER_COUNT; i++) facts->loses_joiners |= find_key(&t, JOINERS[i]) != 0;
}
