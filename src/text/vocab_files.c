#include "text/vocab_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json_io.h"
#include "base/memory.h"
#include "base/small_file.h"

enum { LARGEST = 1 << 26 };  // bytes of a file

bool tarn__vocab_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

const char *tarn__vocab_base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

tarn_status tarn__vocab_sibling(char out[PATH_MAX], const char *path, const char *name) {
  char folder[PATH_MAX];
  if (tarn__vocab_is_folder(path)) return tarn__path_join(out, path, name);
  TARN_REQUIRE(strlen(path) < PATH_MAX, IO, "%s: the path is too long", path);
  const size_t length = (size_t)(tarn__vocab_base_name(path) - path);
  memcpy(folder, path, length);
  folder[length] = '\0';
  return tarn__path_join(out, folder, name);
}

tarn_status tarn__vocab_file_read(const char *path, char **data, size_t *size, const char *whose) {
  char what[64];
  snprintf(what, sizeof what, "a file of %s vocabulary", whose);
  return tarn__small_file_read(path, data, size, LARGEST, what);
}

tarn_status tarn__vocab_json_read(json_t **object, const char *path, const char *whose) {
  char *data = NULL;
  size_t size;
  json_error_t error;
  *object = NULL;
  TARN_TRY(tarn__vocab_file_read(path, &data, &size, whose));
  const tarn_status status = tarn__json_parse(object, data, size, JSON_REJECT_DUPLICATES, &error);
  tarn__free(data);
  TARN_TRY(status);
  TARN_REQUIRE(*object, DATA, "%s:%d: %s", path, error.line, error.text);
  return TARN_STATUS_OK;
}

tarn_status tarn__vocab_json_order(const char **tokens, json_t *object, const char *forbidden, const char *path) {
  const char *name;
  json_t *value;
  int64_t count = (int64_t)json_object_size(object);
  json_object_foreach(object, name, value) {
    TARN_REQUIRE(json_is_integer(value), DATA, "%s: the id of \"%.80s\" is not a whole number", path, name);
    int64_t id = json_integer_value(value);
    TARN_REQUIRE(id >= 0 && id < count, DATA,
                 "%s: \"%.80s\" has the id %lld, but the ids of %lld tokens are 0 to %lld without holes", path, name,
                 (long long)id, (long long)count, (long long)count - 1);
    TARN_REQUIRE(!tokens[id], DATA, "%s: \"%.80s\" and \"%.80s\" have the same id %lld", path, tokens[id], name,
                 (long long)id);
    TARN_REQUIRE(!strpbrk(name, forbidden), DATA, "%s: the token with the id %lld holds white space", path,
                 (long long)id);
    tokens[id] = name;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__vocab_json_save(const char *folder, const char *name, json_t *object, size_t flags) {
  char path[PATH_MAX];
  tarn_status status = tarn__path_join(path, folder, name);
  char *text = tarn__json_dump(object, flags);
  json_decref(object);
  if (status == TARN_STATUS_OK && !text)
    status = tarn__fail(TARN_STATUS_MEMORY, "%s: no memory to write the vocabulary", folder);
  if (status == TARN_STATUS_OK) status = tarn__file_write(path, text, strlen(text));
  free(text);
  return status;
}

tarn_status tarn__vocab_json_write(const char *folder, const char *name, const tarn_vocab *vocab) {
  json_t *object = json_object();
  for (int32_t id = 0; id < tarn_vocab_size(vocab) && object; id++) {
    if (json_object_set_new(object, tarn_vocab_piece(vocab, id), json_integer(id)) == 0) continue;
    json_decref(object);
    object = NULL;
  }
  return tarn__vocab_json_save(folder, name, object, JSON_COMPACT);
}
