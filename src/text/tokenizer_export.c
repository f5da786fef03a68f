// A vocabulary of byte-pair encoding as tokenizer.json and tokenizer_config.json of Hugging Face's tokenizers.
#include <string.h>

#include "base/memory.h"
#include "text/tokenizer_json.h"
#include "text/vocab_files.h"
#include "text/vocab_formats.h"

#define BLANK "\xE2\x96\x81"

// What the file of ours holds, read again: a vocabulary gives no merges.
typedef struct source {
  tarn__bpe_rules rules;
  tarn__byte_tokens all;
} source;

static tarn_status open_source(source *s, const tarn_vocab *vocab) {
  size_t size;
  int64_t merge;
  const char *bytes = tarn_vocab_bytes(vocab, &size);
  tarn__vocab_reader reader = {bytes, bytes + size};
  TARN_TRY(tarn__bpe_read_rules(&s->rules, &reader));
  TARN_TRY(tarn__byte_tokens_read(&s->all, &reader, true));
  return tarn__byte_tokens_read_merges(&s->all, &reader, NULL, 0, &merge);
}

// The text of a token: its bytes, or in the form of bytes the characters for them.
static json_t *text_of(const source *s, const tarn__byte_token *token) {
  if (!s->rules.pieces && token->sort == TARN__TOKEN_PLAIN) return json_string(token->text);
  return json_stringn(s->all.bytes + token->at, token->length);
}

static json_t *added_tokens(const source *s) {
  json_t *list = json_array();
  for (int32_t i = 0; i < s->all.count && list; i++) {
    const tarn__byte_token *token = &s->all.tokens[i];
    if (token->sort != TARN__TOKEN_ADDED && token->sort != TARN__TOKEN_SPECIAL) continue;
    json_t *object =
        json_pack("{s:i, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (int)i, "content", text_of(s, token), "single_word", 0,
                  "lstrip", 0, "rstrip", 0, "normalized", 0, "special", token->sort == TARN__TOKEN_SPECIAL);
    if (json_array_append_new(list, object) == 0) continue;
    json_decref(list);
    list = NULL;
  }
  return list;
}

static json_t *merges(const source *s) {
  json_t *list = json_array();
  for (size_t i = 0; i < s->all.merges.index.count && list; i++) {
    const tarn__merge *m = &s->all.merges.merges[i];
    json_t *pair = json_pack("[o, o]", text_of(s, &s->all.tokens[m->left]), text_of(s, &s->all.tokens[m->right]));
    if (json_array_append_new(list, pair) == 0) continue;
    json_decref(list);
    list = NULL;
  }
  return list;
}

// The package numbers added tokens that are not in the vocabulary on from its size, so those in front of others are in
// it, and holes too.
static int32_t vocabulary_size(const source *s) {
  int32_t size = 0, used = s->all.count;
  while (used > 0 && s->all.tokens[used - 1].sort == TARN__TOKEN_UNUSED) used--;
  for (int32_t i = 0; i < used; i++) {
    const tarn__token_sort sort = s->all.tokens[i].sort;
    if (sort == TARN__TOKEN_PLAIN || sort == TARN__TOKEN_UNUSED || i == (int32_t)s->rules.unk - 1) size = i + 1;
  }
  return size;
}

static json_t *vocabulary(const source *s) {
  json_t *object = json_object();
  const int32_t size = vocabulary_size(s);
  for (int32_t i = 0; i < size && object; i++) {
    const tarn__byte_token *token = &s->all.tokens[i];
    json_t *text = token->sort == TARN__TOKEN_UNUSED ? json_string(token->text) : text_of(s, token);
    const char *key = json_string_value(text);
    const int failed = key ? json_object_set_new(object, key, json_integer(i)) : -1;
    json_decref(text);
    if (!failed) continue;
    json_decref(object);
    object = NULL;
  }
  return object;
}

static json_t *metaspace(const tarn__bpe_rules *rules) {
  static const char *const schemes[TARN__PREFIXES] = {"never", "never", "always", "first"};
  return json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace", "replacement", BLANK, "prepend_scheme",
                   schemes[rules->prefix], "split", rules->split == TARN__SPLIT_WORDS);
}

// The list with one more value; NULL if memory has run out, now or before.
static json_t *with(json_t *list, json_t *value) {
  if (list && json_array_append_new(list, value) == 0) return list;
  if (!list) json_decref(value);
  json_decref(list);
  return NULL;
}

// Metaspace marks blanks itself, and Prepend has no other form.
static json_t *normaliser(const tarn__bpe_rules *rules) {
  json_t *list = json_array();
  if (rules->nfc) list = with(list, json_pack("{s:s}", "type", "NFC"));
  if (rules->pieces && rules->prefix == TARN__PREFIX_ALWAYS) {
    list = with(list, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", BLANK));
    list = with(list, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String", " ", "content", BLANK));
  }
  if (!list || json_array_size(list) > 0) return json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", list);
  json_decref(list);
  return json_null();
}

static json_t *pre_tokenizer(const tarn__bpe_rules *rules) {
  if (rules->pieces) return rules->prefix == TARN__PREFIX_ALWAYS ? json_null() : metaspace(rules);
  const bool gpt2 = rules->split == TARN__SPLIT_GPT2 || rules->split == TARN__SPLIT_DIGITS;
  json_t *list = json_array();
  if (rules->split == TARN__SPLIT_DIGITS)
    list = with(list, json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
  else if (!gpt2 && tarn__split_patterns[rules->split])
    list = with(list, json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                                tarn__split_patterns[rules->split], "behavior", "Isolated", "invert", 0));
  list = with(list, json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                              "use_regex", (int)gpt2));
  return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", list);
}

static json_t *decoder(const tarn__bpe_rules *rules) {
  if (!rules->pieces)
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 1, "trim_offsets", 1, "use_regex",
                     1);
  json_t *list = json_pack("[{s:s, s:{s:s}, s:s}, {s:s}, {s:s}]", "type", "Replace", "pattern", "String", BLANK,
                           "content", " ", "type", "ByteFallback", "type", "Fuse");
  if (rules->strip)
    list = with(list, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ", "start", 1, "stop", 0));
  return json_pack("{s:s, s:o}", "type", "Sequence", "decoders", list);
}

// The token that begins a text is put before it, as the model reads it.
static json_t *post_processor(const source *s) {
  if (s->rules.bos == 0 || s->rules.bos == s->rules.eos) return json_null();
  json_t *text = text_of(s, &s->all.tokens[s->rules.bos - 1]);
  const char *bos = json_string_value(text);
  json_t *object =
      !bos ? NULL
           : json_pack(
                 "{s:s, s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}], s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}], "
                 "s:{s:{s:s, s:[i], s:[s]}}}",
                 "type", "TemplateProcessing", "single", "SpecialToken", "id", bos, "type_id", 0, "Sequence", "id", "A",
                 "type_id", 0, "pair", "Sequence", "id", "A", "type_id", 0, "Sequence", "id", "B", "type_id", 1,
                 "special_tokens", bos, "id", bos, "ids", (int)s->rules.bos - 1, "tokens", bos);
  json_decref(text);
  return object;
}

static json_t *unknown(const source *s) {
  return s->rules.unk > 0 && s->rules.pieces ? text_of(s, &s->all.tokens[s->rules.unk - 1]) : json_null();
}

static json_t *tokenizer(const source *s) {
  const tarn__bpe_rules *rules = &s->rules;
  return json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:n, s:o, s:n, s:n, s:b, s:b, s:b, s:o, s:o}}",
                   "version", "1.0", "truncation", "padding", "added_tokens", added_tokens(s), "normalizer",
                   normaliser(rules), "pre_tokenizer", pre_tokenizer(rules), "post_processor", post_processor(s),
                   "decoder", decoder(rules), "model", "type", "BPE", "dropout", "unk_token", unknown(s),
                   "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", (int)rules->pieces, "byte_fallback",
                   (int)rules->pieces, "ignore_merges", (int)rules->direct, "vocab", vocabulary(s), "merges",
                   merges(s));
}

static json_t *settings(const source *s) {
  const struct {
    const char *key;
    int64_t token;
  } named[] = {{"bos_token", s->rules.bos},
               {"eos_token", s->rules.eos},
               {"unk_token", s->rules.unk},
               {"pad_token", s->rules.pad}};
  json_t *object =
      json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast", "clean_up_tokenization_spaces", 0);
  for (size_t i = 0; i < sizeof named / sizeof *named && object; i++) {
    if (named[i].token == 0) continue;
    if (json_object_set_new(object, named[i].key, text_of(s, &s->all.tokens[named[i].token - 1])) == 0) continue;
    json_decref(object);
    object = NULL;
  }
  return object;
}

bool tarn__vocab_is_bpe(const tarn_vocab *vocab) { return strcmp(tarn_vocab_kind(vocab), tarn__bpe_kind.name) == 0; }

tarn_status tarn__vocab_export_tokenizer(const char *folder, const tarn_vocab *vocab) {
  source s = {0};
  TARN_REQUIRE(tarn__vocab_is_bpe(vocab), USAGE, "only a vocabulary from a tokenizer.json has one");
  tarn_status status = open_source(&s, vocab);
  if (status == TARN_STATUS_OK)
    status = tarn__vocab_json_save(folder, TARN__TOKENIZER_JSON, tokenizer(&s), JSON_COMPACT);
  if (status == TARN_STATUS_OK)
    status = tarn__vocab_json_save(folder, TARN__TOKENIZER_SETTINGS, settings(&s), JSON_INDENT(2));
  tarn__byte_tokens_close(&s.all);
  return status;
}
