// A vocabulary from the tokenizer.json of Hugging Face's tokenizers.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "text/tokenizer_json.h"
#include "text/vocab_files.h"

static const char WHOSE[] = "a tokenizer's";

bool tarn__tokenizer_is_original(const char *path) {
  static const char *const others[] = {"vocab.txt", "vocab.json", "encoder.json"};
  char file[PATH_MAX];
  if (strcmp(tarn__vocab_base_name(path), TARN__TOKENIZER_JSON) == 0) return true;
  if (!tarn__vocab_is_folder(path)) return false;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (snprintf(file, sizeof file, "%s/%s", path, others[i]) >= (int)sizeof file || tarn__file_exists(file))
      return false;
  return snprintf(file, sizeof file, "%s/" TARN__TOKENIZER_JSON, path) < (int)sizeof file && tarn__file_exists(file);
}

// The tokens by their ids.
typedef struct table {
  const char *path;
  tarn__bpe_token *tokens;
  int64_t count, room;
} table;

static tarn_status put_token(table *t, const tarn__bpe_token *token, int64_t id) {
  TARN_REQUIRE(id >= 0 && id < t->room, DATA, "%s: \"%.80s\" has the id %lld, which is not below %lld", t->path,
               token->text, (long long)id, (long long)t->room);
  const tarn__bpe_token *old = &t->tokens[id];
  const bool same = old->text && strcmp(old->text, token->text) == 0;
  TARN_REQUIRE(!old->text || (same && token->sort != TARN__TOKEN_PLAIN), DATA,
               "%s: \"%.80s\" and \"%.80s\" have the same id %lld", t->path, old->text ? old->text : "", token->text,
               (long long)id);
  t->tokens[id] = *token;
  if (id >= t->count) t->count = id + 1;
  return TARN_STATUS_OK;
}

static tarn_status read_vocab(table *t, json_t *vocab, bool spelt) {
  const char *text;
  json_t *value;
  TARN_REQUIRE(json_object_size(vocab) > 0, DATA, "%s: \"model\" has no \"vocab\" from tokens to ids", t->path);
  json_object_foreach(vocab, text, value) {
    const tarn__bpe_token token = {text, strlen(text), TARN__TOKEN_PLAIN, spelt};
    TARN_REQUIRE(json_is_integer(value), DATA, "%s: the id of \"%.80s\" is not a whole number", t->path, text);
    TARN_REQUIRE(token.length > 0, DATA, "%s: the token with the id %lld is empty", t->path,
                 (long long)json_integer_value(value));
    TARN_TRY(put_token(t, &token, json_integer_value(value)));
  }
  return TARN_STATUS_OK;
}

// Special tokens never result from text, so how they would be found does not matter.
static tarn_status read_added(table *t, const json_t *list, bool normalised) {
  static const char *const ways[] = {"single_word", "lstrip", "rstrip"};
  const json_t *object;
  size_t i;
  json_array_foreach(list, i, object) {
    const char *text = json_string_value(json_object_get(object, "content"));
    const json_t *id = json_object_get(object, "id");
    const bool special = json_is_true(json_object_get(object, "special"));
    TARN_REQUIRE(text && *text && json_is_integer(id), DATA,
                 "%s: number %zu of \"added_tokens\" has no \"content\" and \"id\"", t->path, i);
    for (size_t k = 0; k < sizeof ways / sizeof *ways && !special; k++)
      TARN_REQUIRE(!json_is_true(json_object_get(object, ways[k])), DATA,
                   "%s: the added token \"%.80s\" has \"%s\", which tarn does not have", t->path, text, ways[k]);
    TARN_REQUIRE(special || !normalised || !json_is_true(json_object_get(object, "normalized")), DATA,
                 "%s: the added token \"%.80s\" is found in the normalised text, which tarn does not have", t->path,
                 text);
    const tarn__bpe_token token = {text, strlen(text), special ? TARN__TOKEN_SPECIAL : TARN__TOKEN_ADDED, false};
    TARN_TRY(put_token(t, &token, json_integer_value(id)));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__bpe_write_text(tarn_vocab_text *out, const char *text, size_t length, bool spelt) {
  if (spelt) return tarn__vocab_append(out, text, length);
  TARN_TRY(tarn__grow(&out->data, &out->capacity, out->length + 2 * length + 1, 1));
  out->length += tarn__byte_text(out->data + out->length, text, length);
  return TARN_STATUS_OK;
}

tarn_status tarn__bpe_write_tokens(tarn_vocab_text *out, const tarn__bpe_token *tokens, int64_t count) {
  char head[40];
  snprintf(head, sizeof head, "size %lld\n", (long long)count);
  TARN_TRY(tarn__vocab_append(out, head, strlen(head)));
  for (int64_t i = 0; i < count; i++) {
    const tarn__token_sort sort = tokens[i].text ? tokens[i].sort : TARN__TOKEN_UNUSED;
    TARN_TRY(tarn__vocab_append(out, &tarn__token_marks[sort], 1));
    if (tokens[i].text) TARN_TRY(tarn__bpe_write_text(out, tokens[i].text, tokens[i].length, tokens[i].spelt));
    TARN_TRY(tarn__vocab_append(out, "\n", 1));
  }
  return TARN_STATUS_OK;
}

// Merges are texts with a blank between two tokens or, since version 0.20 of the package, lists of two.
static tarn_status write_merges(tarn_vocab_text *out, const json_t *list, bool spelt, const char *path) {
  char head[40];
  size_t i;
  const json_t *merge;
  TARN_REQUIRE(json_is_array(list) && json_array_size(list) <= TARN__BYTE_TOKENS_MOST, DATA,
               "%s: \"model\" has no \"merges\", or more than %d", path, TARN__BYTE_TOKENS_MOST);
  snprintf(head, sizeof head, "merges %zu\n", json_array_size(list));
  TARN_TRY(tarn__vocab_append(out, head, strlen(head)));
  json_array_foreach(list, i, merge) {
    const char *left = json_string_value(json_is_array(merge) ? json_array_get(merge, 0) : merge);
    const char *right = json_string_value(json_array_get(merge, 1));
    const char *blank = left && json_is_string(merge) ? strchr(left, ' ') : NULL;
    if (blank) right = blank + 1;
    TARN_REQUIRE(left && right && (blank || json_array_size(merge) == 2), DATA,
                 "%s: number %zu of \"merges\" is not two tokens", path, i);
    TARN_TRY(tarn__bpe_write_text(out, left, blank ? (size_t)(blank - left) : strlen(left), spelt));
    TARN_TRY(tarn__vocab_append(out, " ", 1));
    TARN_TRY(tarn__bpe_write_text(out, right, strlen(right), spelt));
    TARN_TRY(tarn__vocab_append(out, "\n", 1));
  }
  return TARN_STATUS_OK;
}

// The number of a token that the settings name, from 1; 0: they do not.
static int64_t named(const table *t, const json_t *settings, const char *key) {
  const json_t *value = json_object_get(settings, key);
  const char *text = json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
  for (int64_t i = 0; i < t->count && text; i++)
    if (t->tokens[i].text && strcmp(t->tokens[i].text, text) == 0) return i + 1;
  return 0;
}

static tarn_status read_settings(tarn__bpe_rules *rules, const table *t, const json_t *model,
                                 const tarn__tokenizer_wish *wish) {
  char path[PATH_MAX];
  json_t *settings = NULL;
  TARN_TRY(tarn__vocab_sibling(path, t->path, TARN__TOKENIZER_SETTINGS));
  if (tarn__file_exists(path)) TARN_TRY(tarn__vocab_json_read(&settings, path, WHOSE));
  rules->unk = named(t, settings, "unk_token");
  if (rules->unk == 0) rules->unk = named(t, model, "unk_token");
  rules->bos = wish->bos >= 0 ? wish->bos + 1 : named(t, settings, "bos_token");
  rules->eos = wish->eos >= 0 ? wish->eos + 1 : named(t, settings, "eos_token");
  rules->pad = named(t, settings, "pad_token");
  json_decref(settings);
  TARN_REQUIRE(rules->eos > 0, DATA, "%s: there is no \"eos_token\" that is one of its tokens in %s beside it", t->path,
               TARN__TOKENIZER_SETTINGS);
  return TARN_STATUS_OK;
}

static tarn_status write_all(tarn_vocab_text *out, table *t, json_t *tokenizer, const tarn__tokenizer_wish *wish) {
  tarn__bpe_rules rules;
  json_t *model = json_object_get(tokenizer, "model");
  TARN_TRY(tarn__tokenizer_rules(&rules, tokenizer, t->path));
  TARN_TRY(read_vocab(t, json_object_get(model, "vocab"), !rules.pieces));
  const json_t *normaliser = json_object_get(tokenizer, "normalizer");
  TARN_TRY(read_added(t, json_object_get(tokenizer, "added_tokens"), normaliser && !json_is_null(normaliser)));
  TARN_TRY(read_settings(&rules, t, model, wish));
  TARN_REQUIRE(wish->size == 0 || t->count <= wish->size, DATA, "%s: it has %lld tokens, and the model %lld", t->path,
               (long long)t->count, (long long)wish->size);
  TARN_TRY(tarn__bpe_write_rules(out, &rules));
  TARN_TRY(tarn__bpe_write_tokens(out, t->tokens, wish->size > 0 ? wish->size : t->count));
  TARN_TRY(write_merges(out, json_object_get(model, "merges"), !rules.pieces, t->path));
  const tarn_status status = tarn__bpe_check(out->data, out->length);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: ", t->path);
}

tarn_status tarn__tokenizer_import(char **bytes, size_t *size, const char *path, const tarn__tokenizer_wish *wish) {
  char file[PATH_MAX];
  json_t *tokenizer;
  void *memory;
  tarn_vocab_text out = {0};
  *bytes = NULL;
  TARN_TRY(tarn__vocab_sibling(file, path, TARN__TOKENIZER_JSON));
  TARN_TRY(tarn__vocab_json_read(&tokenizer, file, WHOSE));
  table t = {.path = file, .room = wish->size > 0 ? wish->size : TARN__BYTE_TOKENS_MOST};
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)t.room, sizeof *t.tokens);
  if (status == TARN_STATUS_OK) {
    t.tokens = memory;
    status = write_all(&out, &t, tokenizer, wish);
  }
  tarn__free(t.tokens);
  json_decref(tokenizer);
  if (status != TARN_STATUS_OK) {
    tarn_vocab_text_close(&out);
    return status;
  }
  *bytes = out.data;
  *size = out.length;
  return TARN_STATUS_OK;
}
