// The vocabulary of one side from the files of a MarianTokenizer of the package transformers, or from Marian's own.
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "text/marian.h"
#include "text/marian_own.h"
#include "text/vocab_files.h"
#include "text/vocab_kind.h"

const char *tarn__marian_model_name(bool target) { return target ? "target.spm" : "source.spm"; }

// A special token may be a text, or an object with its text as "content".
static tarn_status check_special(const json_t *settings, const char *key, const char *wanted, const char *path) {
  const json_t *value = json_object_get(settings, key);
  if (json_is_object(value)) value = json_object_get(value, "content");
  if (!value || json_is_null(value)) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_string(value) && strcmp(json_string_value(value), wanted) == 0, DATA,
               "%s: \"%s\" is not \"%s\", as Marian's is", path, key, wanted);
  return TARN_STATUS_OK;
}

// Whether each side has a separate list of tokens. Settings that would change the tokens of a text are refused.
static tarn_status take_settings(bool *separate, const json_t *settings, const char *path) {
  static const char *const specials[][2] = {{"unk_token", "<unk>"}, {"eos_token", "</s>"}};
  TARN_REQUIRE(json_is_object(settings), DATA, "%s: not a JSON object", path);
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
    TARN_TRY(check_special(settings, specials[i][0], specials[i][1], path));
  TARN_REQUIRE(json_object_size(json_object_get(settings, "sp_model_kwargs")) == 0, DATA,
               "%s: \"sp_model_kwargs\" changes how SentencePiece works, which tarn does not have", path);
  const json_t *value = json_object_get(settings, "separate_vocabs");
  TARN_REQUIRE(!value || json_is_boolean(value), DATA, "%s: \"separate_vocabs\" is neither true nor false", path);
  *separate = json_is_true(value);
  return TARN_STATUS_OK;
}

static tarn_status read_settings(bool *separate, const char *folder) {
  char path[PATH_MAX];
  json_t *object;
  *separate = false;
  TARN_TRY(tarn__path_join(path, folder, TARN__MARIAN_SETTINGS));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__vocab_json_read(&object, path, "Marian's"));
  tarn_status status = take_settings(separate, object, path);
  json_decref(object);
  return status;
}

static tarn_status write_tokens(tarn_vocab_text *out, json_t *object, const char *path) {
  char head[64];
  void *memory;
  const size_t count = json_object_size(object);
  TARN_REQUIRE(json_is_object(object), DATA, "%s: not a JSON object from tokens to ids", path);
  TARN_REQUIRE(count <= TARN__MARIAN_MOST, DATA, "%s: %zu tokens are more than %d", path, count, TARN__MARIAN_MOST);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count + 1, sizeof(const char *)));
  const char **tokens = memory;
  tarn_status status = tarn__vocab_json_order(tokens, object, "\n", path);
  snprintf(head, sizeof head, TARN__MARIAN_MAGIC "1\n" TARN__MARIAN_SIZE "%zu\n", count);
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, head, strlen(head));
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    status = tarn__vocab_append(out, tokens[i], strlen(tokens[i]));
    if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, "\n", 1);
  }
  tarn__free(memory);
  return status;
}

// The tokens of a folder of transformers.
static tarn_status read_tokens(json_t **tokens, tarn__marian_side *side, const char *folder, bool target) {
  bool separate;
  TARN_TRY(read_settings(&separate, folder));
  TARN_TRY(tarn__path_join(side->list, folder, target && separate ? TARN__MARIAN_TARGET_TOKENS : TARN__MARIAN_TOKENS));
  TARN_TRY(tarn__path_join(side->model, folder, tarn__marian_model_name(target)));
  return tarn__vocab_json_read(tokens, side->list, "Marian's");
}

static tarn_status import_tokens(tarn_vocab_text *out, tarn__marian_side *side, const char *folder, bool target) {
  json_t *object;
  TARN_TRY((tarn__marian_is_own(folder) ? tarn__marian_own_tokens : read_tokens)(&object, side, folder, target));
  tarn_status status = write_tokens(out, object, side->list);
  json_decref(object);
  return status;
}

static tarn_status import_model(tarn_vocab_text *out, const char *path) {
  char head[64];
  char *data = NULL;
  size_t size;
  TARN_TRY(tarn__vocab_file_read(path, &data, &size, "Marian's"));
  snprintf(head, sizeof head, TARN__MARIAN_MODEL "%zu\n", size);
  tarn_status status = tarn__vocab_append(out, head, strlen(head));
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, data, size);
  tarn__free(data);
  return status;
}

tarn_status tarn__marian_import(char **bytes, size_t *size, const char *folder, bool target) {
  tarn_vocab_text out = {0};
  tarn__marian_side side;
  *bytes = NULL;
  tarn_status status = import_tokens(&out, &side, folder, target);
  if (status == TARN_STATUS_OK) status = import_model(&out, side.model);
  if (status != TARN_STATUS_OK) {
    tarn_vocab_text_close(&out);
    return status;
  }
  *bytes = out.data;
  *size = out.length;
  return TARN_STATUS_OK;
}
