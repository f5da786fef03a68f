#include "text/marian_own.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/small_file.h"
#include "base/yaml_json.h"
#include "text/marian.h"
#include "text/spm.h"
#include "text/utf8.h"
#include "text/vocab_files.h"

#define VOCABS "vocabs"
#define VOCAB "vocab.yml"
enum { LARGEST_DECODER = 1 << 20, SHOWN = 40 };

static bool has(const char *folder, const char *name) {
  char path[PATH_MAX];
  return tarn__path_join(path, folder, name) == TARN_STATUS_OK && tarn__file_exists(path);
}

bool tarn__marian_is_own(const char *folder) {
  if (has(folder, "config.json")) return false;
  if (has(folder, TARN__MARIAN_DECODER) || has(folder, TARN__MARIAN_WEIGHTS)) return true;
  return has(folder, VOCAB) && !has(folder, TARN__MARIAN_TOKENS);
}

// The value of a file, which must be an object.
static tarn_status read_object(json_t **object, const char *path, const char *data, size_t size) {
  TARN_TRY(tarn__yaml_json(object, path, data, size));
  if (json_is_object(*object)) return TARN_STATUS_OK;
  json_decref(*object);
  *object = NULL;
  return tarn__fail(TARN_STATUS_DATA, "%s: not a YAML map", path);
}

tarn_status tarn__marian_decoder_read(json_t **decoder, const char *folder) {
  char path[PATH_MAX], *data = NULL;
  size_t size;
  *decoder = NULL;
  TARN_TRY(tarn__path_join(path, folder, TARN__MARIAN_DECODER));
  if (!tarn__file_exists(path)) {
    *decoder = json_object();
    TARN_REQUIRE(*decoder, MEMORY, "%s: not enough memory", path);
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__small_file_read(path, &data, &size, LARGEST_DECODER, "settings of a decoder"));
  const tarn_status status = read_object(decoder, path, data, size);
  tarn__free(data);
  return status;
}

tarn_status tarn__marian_file(char path[PATH_MAX], const char *folder, const json_t *decoder, const char *key,
                              size_t most, bool last, const char *other) {
  const json_t *list = json_object_get(decoder, key);
  const size_t count = json_array_size(list);
  if (!list || json_is_null(list)) return tarn__path_join(path, folder, other);
  TARN_REQUIRE(count >= 1 && count <= most, DATA, "%s/" TARN__MARIAN_DECODER ": \"%s\" lists %zu files, not 1%s",
               folder, key, count, most > 1 ? " or 2" : "");
  const char *name = json_string_value(json_array_get(list, last ? count - 1 : 0));
  if (name) name = tarn__vocab_base_name(name);
  TARN_REQUIRE(name && *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0, DATA,
               "%s/" TARN__MARIAN_DECODER ": \"%s\" does not name a file", folder, key);
  return tarn__path_join(path, folder, name);
}

static bool ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), tail = strlen(end);
  return length > tail && strcmp(text + length - tail, end) == 0;
}

// The pieces of a SentencePiece model, which is the vocabulary itself.
static tarn_status list_pieces(json_t **tokens, const tarn__spm *spm, const char *path) {
  *tokens = json_object();
  for (int32_t id = 0; id < tarn__spm_size(spm) && *tokens; id++) {
    const char *piece = tarn__spm_piece(spm, id);
    if (json_object_set_new(*tokens, piece, json_integer(id)) == 0) continue;
    json_decref(*tokens);
    *tokens = NULL;
    const size_t length = strlen(piece), valid = tarn__utf8_valid(piece, length);
    TARN_REQUIRE(valid == length, DATA, "%s: piece %d is not valid UTF-8 after \"%.*s\"", path, (int)id,
                 (int)tarn__utf8_valid(piece, valid < SHOWN ? valid : SHOWN), piece);
  }
  TARN_REQUIRE(*tokens, MEMORY, "%s: not enough memory", path);
  return TARN_STATUS_OK;
}

static tarn_status read_json(json_t **tokens, const char *path) {
  TARN_TRY(tarn__vocab_json_read(tokens, path, "Marian's"));
  if (json_is_object(*tokens)) return TARN_STATUS_OK;
  json_decref(*tokens);
  *tokens = NULL;
  return tarn__fail(TARN_STATUS_DATA, "%s: not a JSON object from tokens to ids", path);
}

static tarn_status read_pieces(json_t **tokens, const char *path, const char *data, size_t size) {
  tarn__spm *spm;
  tarn_status status = tarn__spm_check(data, size);
  if (status == TARN_STATUS_OK) status = tarn__spm_open(&spm, data, size);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", path);
  status = list_pieces(tokens, spm, path);
  tarn__spm_close(&spm);
  return status;
}

// Marian's decoder begins with an embedding of zeros instead of a token. Here a token stands for it, as in the package
// transformers.
static const char *const starts[] = {"<pad>", "<start>"};
enum { STARTS = sizeof starts / sizeof *starts };

bool tarn__marian_is_start(const char *token) {
  bool found = false;
  for (int i = 0; i < STARTS; i++) found = found || strcmp(token, starts[i]) == 0;
  return found;
}

static tarn_status add_start(json_t *tokens, const char *path) {
  const char *name;
  const json_t *value;
  json_int_t id = 0;
  json_object_foreach(tokens, name, value) {
    const json_int_t other = json_integer_value(value);
    if (other >= id && other < INT32_MAX) id = other + 1;  // a larger one is refused with all others
  }
  for (int i = 0; i < STARTS; i++) {
    if (json_object_get(tokens, starts[i])) continue;
    TARN_REQUIRE(json_object_set_new(tokens, starts[i], json_integer(id)) == 0, MEMORY, "%s: not enough memory", path);
    return TARN_STATUS_OK;
  }
  return tarn__fail(TARN_STATUS_DATA, "%s: it has both <pad> and <start>, one of which tarn adds", path);
}

static tarn_status read_list(json_t **tokens, const char *path) {
  const bool pieces = ends_with(path, ".spm");
  char *data = NULL;
  size_t size;
  if (ends_with(path, ".json"))
    return read_json(tokens, path);  // \ud83d\ude00 is one character of JSON, and none of YAML
  TARN_REQUIRE(
      pieces || ends_with(path, ".yml") || ends_with(path, ".yaml"), DATA,
      "%s: its name ends neither in .yml, .yaml or .json nor in .spm, as Marian's vocabularies that tarn reads", path);
  TARN_TRY(tarn__vocab_file_read(path, &data, &size, "Marian's"));
  const tarn_status status = pieces ? read_pieces(tokens, path, data, size) : read_object(tokens, path, data, size);
  tarn__free(data);
  return status;
}

static tarn_status read_tokens(json_t **tokens, const char *path) {
  TARN_TRY(read_list(tokens, path));
  const tarn_status status = add_start(*tokens, path);
  if (status != TARN_STATUS_OK) {
    json_decref(*tokens);
    *tokens = NULL;
  }
  return status;
}

tarn_status tarn__marian_own_tokens(json_t **tokens, tarn__marian_side *side, const char *folder, bool target) {
  json_t *decoder;
  *tokens = NULL;
  TARN_TRY(tarn__marian_decoder_read(&decoder, folder));
  tarn_status status = tarn__marian_file(side->list, folder, decoder, VOCABS, 2, target, VOCAB);
  json_decref(decoder);
  TARN_TRY(status);
  if (ends_with(side->list, ".spm"))
    memcpy(side->model, side->list, sizeof side->model);
  else
    TARN_TRY(tarn__path_join(side->model, folder, tarn__marian_model_name(target)));
  return read_tokens(tokens, side->list);
}
