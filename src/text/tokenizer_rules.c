// The parts of a tokenizer.json as rules of ours.
#include <string.h>

#include "tarn/text.h"
#include "text/tokenizer_json.h"

#define BLANK "\xE2\x96\x81"

const char *const tarn__split_patterns[TARN__SPLITS] = {
    [TARN__SPLIT_GPT2] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    [TARN__SPLIT_LLAMA3] =
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
        "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    [TARN__SPLIT_QWEN2] =
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
        "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};

// What the parts say, before it is known whether they fit together.
typedef struct reading {
  const char *path;
  tarn__bpe_rules *rules;
  bool levels, regex;  // of bytes, and whether that cuts as GPT-2 does
  bool digits, split;
  bool metaspace, blanks;
  bool level_decoder, fallback;
} reading;

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static bool is_text(const json_t *object, const char *key, const char *wanted) {
  return strcmp(text_of(object, key), wanted) == 0;
}

static tarn_status fail_value(const reading *r, const char *part, const json_t *object, const char *key) {
  return tarn__fail(TARN_STATUS_DATA, "%s: \"%s\" of type %.60s has a \"%s\" that tarn does not have", r->path, part,
                    text_of(object, "type"), key);
}

static tarn_status fail_type(const reading *r, const char *part, const json_t *object) {
  return tarn__fail(TARN_STATUS_DATA, "%s: \"%s\" has a part of type \"%.60s\", which tarn does not have", r->path,
                    part, text_of(object, "type"));
}

static tarn_status read_normalizer(reading *r, const char *part, const json_t *object) {
  if (is_text(object, "type", "NFC")) {
    r->rules->nfc = 1;
    return TARN_STATUS_OK;
  }
  if (is_text(object, "type", "Prepend")) {
    r->rules->prefix = TARN__PREFIX_ALWAYS;
    return is_text(object, "prepend", BLANK) ? TARN_STATUS_OK : fail_value(r, part, object, "prepend");
  }
  if (!is_text(object, "type", "Replace")) return fail_type(r, part, object);
  r->blanks = true;
  if (!is_text(json_object_get(object, "pattern"), "String", " ")) return fail_value(r, part, object, "pattern");
  return is_text(object, "content", BLANK) ? TARN_STATUS_OK : fail_value(r, part, object, "content");
}

static tarn_status read_split(reading *r, const char *part, const json_t *object) {
  const char *pattern = text_of(json_object_get(object, "pattern"), "Regex");
  r->split = true;
  for (int i = 0; i < TARN__SPLITS; i++)
    if (tarn__split_patterns[i] && strcmp(tarn__split_patterns[i], pattern) == 0) r->rules->split = i;
  if (r->rules->split == TARN__SPLIT_NONE) return fail_value(r, part, object, "pattern");
  if (!is_text(object, "behavior", "Isolated") && !is_text(object, "behavior", "Removed"))
    return fail_value(r, part, object, "behavior");
  // The pattern matches everything, so what stands between its matches is nothing.
  const bool removed = is_text(object, "behavior", "Removed");
  if (removed != json_is_true(json_object_get(object, "invert"))) return fail_value(r, part, object, "invert");
  return TARN_STATUS_OK;
}

static tarn_status read_metaspace(reading *r, const char *part, const json_t *object) {
  static const char *const schemes[] = {"never", "", "always", "first"};  // in the order of tarn__bpe_prefix
  const json_t *scheme = json_object_get(object, "prepend_scheme"), *split = json_object_get(object, "split");
  r->metaspace = true;
  if (!is_text(object, "replacement", BLANK)) return fail_value(r, part, object, "replacement");
  const char *word = scheme ? json_string_value(scheme) : "always";
  int found = -1;
  for (int i = 0; i < TARN__PREFIXES && word; i++)
    if (*schemes[i] && strcmp(schemes[i], word) == 0) found = i;
  // Before version 0.15 of the package there was only this.
  const json_t *old = json_object_get(object, "add_prefix_space");
  if (!scheme && old) found = json_is_true(old) ? TARN__PREFIX_MISSING : TARN__PREFIX_NONE;
  if (found < 0) return fail_value(r, part, object, "prepend_scheme");
  r->rules->prefix = found;
  r->rules->split = json_is_false(split) ? TARN__SPLIT_NONE : TARN__SPLIT_WORDS;
  return TARN_STATUS_OK;
}

static tarn_status read_pre_tokenizer(reading *r, const char *part, const json_t *object) {
  if (r->levels || r->metaspace) return fail_type(r, part, object);  // nothing comes behind these
  if (is_text(object, "type", "Metaspace")) return read_metaspace(r, part, object);
  if (is_text(object, "type", "Split")) return read_split(r, part, object);
  if (is_text(object, "type", "Digits")) {
    r->digits = true;
    const bool single = json_is_true(json_object_get(object, "individual_digits"));
    return single && !r->split ? TARN_STATUS_OK : fail_value(r, part, object, "individual_digits");
  }
  if (!is_text(object, "type", "ByteLevel")) return fail_type(r, part, object);
  r->levels = true;
  r->regex = !json_is_false(json_object_get(object, "use_regex"));
  return json_is_false(json_object_get(object, "add_prefix_space")) ? TARN_STATUS_OK
                                                                    : fail_value(r, part, object, "add_prefix_space");
}

// What is put around a text is the task's; the model's settings say which token a text is read behind.
static tarn_status read_post_processor(reading *r, const char *part, const json_t *object) {
  const bool known = is_text(object, "type", "ByteLevel") || is_text(object, "type", "TemplateProcessing");
  return known ? TARN_STATUS_OK : fail_type(r, part, object);
}

static tarn_status read_decoder(reading *r, const char *part, const json_t *object) {
  if (is_text(object, "type", "ByteLevel")) {
    r->level_decoder = true;
    return TARN_STATUS_OK;
  }
  if (is_text(object, "type", "Fuse")) return TARN_STATUS_OK;
  if (is_text(object, "type", "ByteFallback")) {
    r->fallback = true;
    return TARN_STATUS_OK;
  }
  if (is_text(object, "type", "Replace")) {
    if (!is_text(json_object_get(object, "pattern"), "String", BLANK)) return fail_value(r, part, object, "pattern");
    return is_text(object, "content", " ") ? TARN_STATUS_OK : fail_value(r, part, object, "content");
  }
  if (is_text(object, "type", "Metaspace")) {
    if (!is_text(object, "prepend_scheme", "never")) r->rules->strip = 1;
    return is_text(object, "replacement", BLANK) ? TARN_STATUS_OK : fail_value(r, part, object, "replacement");
  }
  if (!is_text(object, "type", "Strip")) return fail_type(r, part, object);
  const json_int_t start = json_integer_value(json_object_get(object, "start"));
  r->rules->strip = start == 1;
  if (!is_text(object, "content", " ")) return fail_value(r, part, object, "content");
  if (start < 0 || start > 1) return fail_value(r, part, object, "start");
  return json_integer_value(json_object_get(object, "stop")) == 0 ? TARN_STATUS_OK
                                                                  : fail_value(r, part, object, "stop");
}

typedef tarn_status reader(reading *r, const char *part, const json_t *object);

// A part, which may be a sequence of parts.
static tarn_status read_part(reading *r, const json_t *tokenizer, const char *part, const char *members, reader *read) {
  const json_t *object = json_object_get(tokenizer, part);
  if (!object || json_is_null(object)) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_object(object), DATA, "%s: \"%s\" is no object", r->path, part);
  if (!is_text(object, "type", "Sequence")) return read(r, part, object);
  const json_t *list = json_object_get(object, members), *member;
  size_t i;
  TARN_REQUIRE(json_is_array(list), DATA, "%s: \"%s\" has no \"%s\"", r->path, part, members);
  json_array_foreach(list, i, member) TARN_TRY(read(r, part, member));
  return TARN_STATUS_OK;
}

static bool is_none(const json_t *value) {
  return !value || json_is_null(value) || (json_is_string(value) && !*json_string_value(value));
}

static tarn_status read_model(reading *r, json_t *model) {
  static const char *const known[] = {"type",     "dropout",       "unk_token",     "continuing_subword_prefix",
                                      "fuse_unk", "byte_fallback", "ignore_merges", "end_of_word_suffix",
                                      "vocab",    "merges"};
  const char *key;
  json_t *value;
  TARN_REQUIRE(json_is_object(model), DATA, "%s: it has no \"model\"", r->path);
  const char *type = json_object_get(model, "type") ? text_of(model, "type") : "BPE";
  TARN_REQUIRE(strcmp(type, "BPE") == 0, DATA, "%s: \"model\" is of type \"%.60s\"; tarn reads BPE", r->path, type);
  json_object_foreach(model, key, value) {
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) found = found || strcmp(known[i], key) == 0;
    TARN_REQUIRE(found, DATA, "%s: \"model\" has a \"%.60s\", which tarn does not know", r->path, key);
  }
  for (size_t i = 3; i < 8; i += 4)
    TARN_REQUIRE(is_none(json_object_get(model, known[i])), DATA,
                 "%s: \"model\" has a \"%s\", which tarn does not have", r->path, known[i]);
  const json_t *dropout = json_object_get(model, "dropout");
  TARN_REQUIRE(is_none(dropout) || json_number_value(dropout) == 0.0, DATA,
               "%s: \"model\" has a \"dropout\", which tarn does not have", r->path);
  r->rules->direct = json_is_true(json_object_get(model, "ignore_merges"));
  TARN_REQUIRE(!r->rules->pieces || json_is_true(json_object_get(model, "byte_fallback")), DATA,
               "%s: \"model\" has no \"byte_fallback\", without which tarn does not read this kind of tokenizer",
               r->path);
  return TARN_STATUS_OK;
}

// Whether the parts fit together: those of bytes, or those of SentencePiece.
static tarn_status join(reading *r) {
  tarn__bpe_rules *rules = r->rules;
  const bool marks = r->blanks || rules->prefix != TARN__PREFIX_NONE;
  rules->pieces = !r->levels;
  if (r->levels) {
    TARN_REQUIRE(!marks && !r->metaspace, DATA, "%s: \"normalizer\" marks blanks, and \"pre_tokenizer\" is of bytes",
                 r->path);
    TARN_REQUIRE(!r->regex || !r->split, DATA, "%s: \"pre_tokenizer\" cuts a text by two rules", r->path);
    TARN_REQUIRE(!r->digits || (r->regex && !r->split), DATA,
                 "%s: \"pre_tokenizer\" has Digits without the rule of ByteLevel (\"use_regex\")", r->path);
    if (r->regex) rules->split = r->digits ? TARN__SPLIT_DIGITS : TARN__SPLIT_GPT2;
    TARN_REQUIRE(r->level_decoder, DATA, "%s: \"decoder\" is not of type ByteLevel, as \"pre_tokenizer\" is", r->path);
    rules->strip = 0;
    return TARN_STATUS_OK;
  }
  TARN_REQUIRE(!r->split && !r->digits && (r->metaspace ? !r->blanks : r->blanks), DATA,
               "%s: \"pre_tokenizer\" is neither of type ByteLevel nor of Metaspace, and \"normalizer\" does not mark "
               "blanks",
               r->path);
  TARN_REQUIRE(!r->level_decoder, DATA, "%s: \"decoder\" is of type ByteLevel, and \"pre_tokenizer\" is not", r->path);
  TARN_REQUIRE(r->fallback, DATA, "%s: \"decoder\" has no ByteFallback, without which tarn does not read it", r->path);
  return TARN_STATUS_OK;
}

tarn_status tarn__tokenizer_rules(tarn__bpe_rules *rules, json_t *tokenizer, const char *path) {
  static const char *const known[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                      "pre_tokenizer", "post_processor", "decoder", "model"};
  reading r = {.path = path, .rules = rules};
  const char *key;
  json_t *value;
  TARN_REQUIRE(json_is_object(tokenizer), DATA, "%s: not a JSON object", path);
  json_object_foreach(tokenizer, key, value) {
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) found = found || strcmp(known[i], key) == 0;
    TARN_REQUIRE(found, DATA, "%s: it has a part \"%.60s\", which tarn does not know", path, key);
  }
  *rules = (tarn__bpe_rules){0};
  TARN_TRY(read_part(&r, tokenizer, "normalizer", "normalizers", read_normalizer));
  TARN_TRY(read_part(&r, tokenizer, "pre_tokenizer", "pretokenizers", read_pre_tokenizer));
  TARN_TRY(read_part(&r, tokenizer, "post_processor", "processors", read_post_processor));
  TARN_TRY(read_part(&r, tokenizer, "decoder", "decoders", read_decoder));
  TARN_TRY(join(&r));
  return read_model(&r, json_object_get(tokenizer, "model"));
}
