// The vocabulary of a GGUF file.
#include <math.h>
#include <string.h>

#include "foreign/gguf_format.h"
#include "text/bpe_scores.h"
#include "text/spm_pieces.h"

#define KEY "tokenizer.ggml."
enum { LONGEST_TOKEN = 512 };

const tarn__gguf_pre tarn__gguf_pres[] = {{"gpt-2", TARN__SPLIT_GPT2, false},
                                          {"llama-bpe", TARN__SPLIT_LLAMA3, true},
                                          {"llama3", TARN__SPLIT_LLAMA3, true},
                                          {"llama-v3", TARN__SPLIT_LLAMA3, true},
                                          {"qwen2", TARN__SPLIT_QWEN2, false},
                                          {"smollm", TARN__SPLIT_DIGITS, false},
                                          {NULL, 0, false}};

typedef struct reading {
  const tarn__gguf_file *file;
  tarn__bpe_rules rules;
  tarn__bpe_token *tokens;
  int64_t count;
  const float *scores;
} reading;

static bool is_word(const tarn__gguf_key *key, const char *word) {
  size_t length;
  const uint8_t *at = key->data;
  const char *text = tarn__gguf_next_text(&at, &length);
  return length == strlen(word) && memcmp(text, word, length) == 0;
}

static tarn_status need(const reading *r, const tarn__gguf_key **key, const char *name, tarn__gguf_type element,
                        bool array) {
  *key = tarn__gguf_find(r->file, name);
  TARN_REQUIRE(*key, DATA, "%s: it has no \"%s\", and so no vocabulary; name one", r->file->path, name);
  TARN_REQUIRE((*key)->element == element && ((*key)->type == TARN__GGUF_ARRAY) == array, DATA,
               "%s: \"%s\" is of another type than tarn expects", r->file->path, name);
  return TARN_STATUS_OK;
}

// How text is cut, for byte-pair encodings of bytes.
static tarn_status read_pre(reading *r) {
  const tarn__gguf_key *key;
  TARN_TRY(need(r, &key, KEY "pre", TARN__GGUF_STRING, false));
  for (const tarn__gguf_pre *pre = tarn__gguf_pres; pre->word; pre++) {
    if (!is_word(key, pre->word)) continue;
    r->rules.split = pre->split;
    r->rules.direct = pre->direct;
    r->rules.nfc = pre->split == TARN__SPLIT_QWEN2;  // as Qwen2's tokenizer.json has it
    return TARN_STATUS_OK;
  }
  size_t length;
  const uint8_t *at = key->data;
  const char *text = tarn__gguf_next_text(&at, &length);
  return tarn__fail(TARN_STATUS_DATA,
                    "%s: \"" KEY "pre\" is \"%.*s\"; tarn has gpt-2, llama-bpe, qwen2 and smollm; name a vocabulary",
                    r->file->path, length > 60 ? 60 : (int)length, text);
}

static tarn_status read_model(reading *r) {
  const tarn__gguf_key *key, *space = tarn__gguf_find(r->file, KEY "add_space_prefix");
  TARN_TRY(need(r, &key, KEY "model", TARN__GGUF_STRING, false));
  if (is_word(key, "gpt2")) return read_pre(r);
  size_t length;
  const uint8_t *at = key->data;
  const char *text = tarn__gguf_next_text(&at, &length);
  TARN_REQUIRE(is_word(key, "llama"), DATA,
               "%s: \"" KEY "model\" is \"%.*s\"; tarn has gpt2 and llama; name a vocabulary", r->file->path,
               length > 60 ? 60 : (int)length, text);
  const bool prefixed = !space || tarn__gguf_number(space, 0) != 0.0;
  r->rules.pieces = 1;
  r->rules.prefix = prefixed ? TARN__PREFIX_ALWAYS : TARN__PREFIX_NONE;
  r->rules.strip = prefixed;
  return TARN_STATUS_OK;
}

// The sorts of tokens: 1 normal, 2 unknown, 3 control, 4 of the user, 5 unused, 6 a byte.
static tarn_status sort_of(const reading *r, tarn__bpe_token *token, double type, int64_t id) {
  static const tarn__token_sort sorts[] = {TARN__TOKEN_PLAIN, TARN__TOKEN_SPECIAL, TARN__TOKEN_SPECIAL,
                                           TARN__TOKEN_ADDED, TARN__TOKEN_UNUSED,  TARN__TOKEN_PLAIN};
  TARN_REQUIRE(type >= 1 && type <= 6, DATA, "%s: token %lld is of the unknown type %g (\"" KEY "token_type\")",
               r->file->path, (long long)id, type);
  token->sort = sorts[(int)type - 1];
  token->spelt = !r->rules.pieces && token->sort == TARN__TOKEN_PLAIN;
  if (token->sort == TARN__TOKEN_UNUSED) token->text = NULL;
  return TARN_STATUS_OK;
}

static tarn_status read_tokens(reading *r) {
  const tarn__gguf_key *key, *types = tarn__gguf_find(r->file, KEY "token_type");
  void *memory;
  TARN_TRY(need(r, &key, KEY "tokens", TARN__GGUF_STRING, true));
  TARN_REQUIRE(key->count >= 1 && key->count <= TARN__BYTE_TOKENS_MOST, DATA, "%s: \"" KEY "tokens\" are not 1 to %d",
               r->file->path, TARN__BYTE_TOKENS_MOST);
  TARN_REQUIRE(!types || types->count == key->count, DATA,
               "%s: \"" KEY "token_type\" has another size than \"" KEY "tokens\"", r->file->path);
  r->count = (int64_t)key->count;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)r->count, sizeof *r->tokens));
  r->tokens = memory;
  const uint8_t *at = key->data;
  for (int64_t i = 0; i < r->count; i++) {
    tarn__bpe_token *token = &r->tokens[i];
    token->text = tarn__gguf_next_text(&at, &token->length);
    TARN_REQUIRE(token->length >= 1 && token->length <= LONGEST_TOKEN && !memchr(token->text, 0, token->length) &&
                     (r->rules.pieces || !memchr(token->text, '\n', token->length)),
                 DATA, "%s: token %lld is empty, longer than %d bytes, or holds a zero byte or a line end",
                 r->file->path, (long long)i, LONGEST_TOKEN);
    TARN_TRY(sort_of(r, token, types ? tarn__gguf_number(types, (uint64_t)i) : 1, i));
  }
  return TARN_STATUS_OK;
}

static tarn_status read_named(reading *r) {
  const struct {
    const char *key;
    int64_t *token;
  } named[] = {{KEY "bos_token_id", &r->rules.bos},
               {KEY "eos_token_id", &r->rules.eos},
               {KEY "unknown_token_id", &r->rules.unk},
               {KEY "padding_token_id", &r->rules.pad}};
  for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
    const tarn__gguf_key *key = tarn__gguf_find(r->file, named[i].key);
    const double id = key ? tarn__gguf_number(key, 0) : -1;
    TARN_REQUIRE(id >= -1 && id < (double)r->count && id == floor(id), DATA, "%s: \"%s\" is %g, which is no token",
                 r->file->path, named[i].key, id);
    *named[i].token = (int64_t)id + 1;
  }
  TARN_REQUIRE(r->rules.eos > 0, DATA, "%s: it has no \"" KEY "eos_token_id\"", r->file->path);
  return TARN_STATUS_OK;
}

static tarn_status make_listed(char **bytes, size_t *size, const reading *r) {
  const tarn__gguf_key *key;
  tarn_vocab_text merges = {0};
  TARN_TRY(need(r, &key, KEY "merges", TARN__GGUF_STRING, true));
  const uint8_t *at = key->data;
  tarn_status status = tarn__vocab_append(&merges, "", 0);
  for (uint64_t i = 0; i < key->count && status == TARN_STATUS_OK; i++) {
    size_t length;
    const char *text = tarn__gguf_next_text(&at, &length);
    if (memchr(text, '\n', length) || memchr(text, 0, length))
      status = tarn__fail(TARN_STATUS_DATA, "number %llu of \"" KEY "merges\" holds a line end or a zero byte",
                          (unsigned long long)i);
    if (status == TARN_STATUS_OK) status = tarn__vocab_append(&merges, text, length);
    if (status == TARN_STATUS_OK) status = tarn__vocab_append(&merges, "\n", 1);
  }
  if (status == TARN_STATUS_OK) status = tarn__bpe_make(bytes, size, &r->rules, r->tokens, r->count, &merges, NULL);
  tarn_vocab_text_close(&merges);
  return status;
}

static tarn_status take_scores(const reading *r, const tarn__gguf_key **key) {
  TARN_TRY(need(r, key, KEY "scores", TARN__GGUF_FLOAT32, true));
  TARN_REQUIRE((int64_t)(*key)->count == r->count, DATA, "\"" KEY "scores\" has another size than \"" KEY "tokens\"");
  for (uint64_t i = 0; i < (*key)->count; i++) {
    float score;
    memcpy(&score, (*key)->data + i * sizeof score, sizeof score);
    TARN_REQUIRE(isfinite(score), DATA, "the score of token %llu is not finite", (unsigned long long)i);
  }
  return TARN_STATUS_OK;
}

static tarn_status make_scored(char **bytes, size_t *size, const reading *r) {
  const tarn__gguf_key *key;
  void *memory;
  TARN_TRY(take_scores(r, &key));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)r->count, sizeof(float)));
  float *scores = memory;
  memcpy(scores, key->data, (size_t)r->count * sizeof *scores);
  const tarn_status status = tarn__bpe_make(bytes, size, &r->rules, r->tokens, r->count, NULL, scores);
  tarn__free(scores);
  return status;
}

static bool squeezes(const reading *r) {
  const tarn__gguf_key *key = tarn__gguf_find(r->file, KEY "remove_extra_whitespaces");
  return key && tarn__gguf_number(key, 0) != 0.0;
}

// A vocabulary without bytes has unknown characters, and one may remove blanks, as SentencePiece's own models do, of
// which one is made.
static tarn_status fill_pieces(tarn__spm_list *list, const reading *r) {
  const tarn__gguf_key *texts, *scores, *types = tarn__gguf_find(r->file, KEY "token_type");
  TARN_TRY(need(r, &texts, KEY "tokens", TARN__GGUF_STRING, true));
  TARN_TRY(take_scores(r, &scores));
  list->bpe = true;
  list->prefixes = r->rules.prefix != TARN__PREFIX_NONE;
  list->squeezes = squeezes(r);
  TARN_TRY(tarn__grow(&list->entries, &list->capacity, (size_t)r->count, sizeof *list->entries));
  const uint8_t *at = texts->data;
  for (; list->count < (size_t)r->count; list->count++) {
    tarn__spm_entry *entry = &list->entries[list->count];
    *entry = (tarn__spm_entry){.type = TARN__SPM_NORMAL};
    if (types) entry->type = (tarn__spm_type)tarn__gguf_number(types, list->count);
    entry->text = tarn__gguf_next_text(&at, &entry->length);
    memcpy(&entry->score, scores->data + list->count * sizeof entry->score, sizeof entry->score);
  }
  return TARN_STATUS_OK;
}

static tarn_status make_pieces(char **bytes, size_t *size, const reading *r) {
  tarn__spm_list list = {0};
  tarn_vocab_text out = {0};
  tarn_status status = fill_pieces(&list, r);
  const tarn__spm_named named = {r->rules.bos - 1, r->rules.eos - 1, r->rules.pad - 1};
  if (status == TARN_STATUS_OK) status = tarn__spm_list_write(&out, &list, &named);
  tarn__spm_list_close(&list);
  if (status != TARN_STATUS_OK) {
    tarn_vocab_text_close(&out);
    return status;
  }
  *bytes = out.data;
  *size = out.length;
  return TARN_STATUS_OK;
}

static bool has_bytes(const reading *r) {
  const tarn__gguf_key *types = tarn__gguf_find(r->file, KEY "token_type");
  bool found = !types;
  for (uint64_t i = 0; types && i < types->count && !found; i++) found = tarn__gguf_number(types, i) == TARN__SPM_BYTE;
  return found;
}

static tarn_status make(char **bytes, size_t *size, reading *r) {
  TARN_TRY(read_model(r));
  TARN_TRY(read_tokens(r));
  TARN_TRY(read_named(r));
  const tarn_status status = !r->rules.pieces               ? make_listed(bytes, size, r)
                             : has_bytes(r) && !squeezes(r) ? make_scored(bytes, size, r)
                                                            : make_pieces(bytes, size, r);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: ", r->file->path);
}

tarn_status tarn__gguf_vocab(tarn_vocab **vocab, const tarn__gguf_file *file) {
  char *bytes;
  size_t size;
  reading r = {.file = file};
  tarn_status status = make(&bytes, &size, &r);
  tarn__free(r.tokens);
  TARN_TRY(status);
  status = tarn_vocab_open_memory(vocab, bytes, size);
  tarn__free(bytes);
  return status;
}
