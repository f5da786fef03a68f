#include "foreign/hf_tensors.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_io.h"
#include "base/memory.h"
#include "base/small_file.h"
#include "foreign/half_floats.h"

enum { MOST_FILES = 512, LARGEST_INDEX = 1 << 26 };

static int by_name(const void *a, const void *b) {
  return strcmp(((const tarn__stored *)a)->name, ((const tarn__stored *)b)->name);
}

tarn_status tarn__hf_tensors_room(tarn__hf_tensors *tensors, const char *path, size_t count) {
  void *memory;
  if (!tensors->path) TARN_TRY(tarn__strdup(&tensors->path, path));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count + 1, sizeof *tensors->tensors));
  tensors->tensors = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count + 1, sizeof *tensors->used));
  tensors->used = memory;
  tensors->count = count;
  return TARN_STATUS_OK;
}

// Puts the tensors of all files into one list.
static tarn_status gather(tarn__hf_tensors *tensors) {
  size_t count = 0;
  for (size_t f = 0; f < tensors->file_count; f++) TARN_TRY(tarn__add_size(&count, count, tensors->files[f].count));
  TARN_TRY(tarn__hf_tensors_room(tensors, NULL, count));
  count = 0;
  for (size_t f = 0; f < tensors->file_count; f++)
    for (size_t i = 0; i < tensors->files[f].count; i++) tensors->tensors[count++] = tensors->files[f].tensors[i];
  if (count > 0) qsort(tensors->tensors, count, sizeof *tensors->tensors, by_name);
  for (size_t i = 1; i < count; i++)
    TARN_REQUIRE(strcmp(tensors->tensors[i - 1].name, tensors->tensors[i].name) != 0, DATA,
                 "%s: tensor \"%s\" is in two of its files", tensors->path, tensors->tensors[i].name);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_tensors_open(tarn__hf_tensors *tensors, const char *path, const char *prefix) {
  void *memory;
  tensors->prefix = prefix;
  TARN_TRY(tarn__strdup(&tensors->path, path));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *tensors->files));
  tensors->files = memory;
  tensors->file_count = 1;
  TARN_TRY(tarn__safetensors_open(tensors->files, path));
  return gather(tensors);
}

// A name of the index: one of a file in its folder.
static bool is_plain(const char *name) {
  return name && *name && *name != '.' && !strchr(name, '/') && strlen(name) < 200;
}

// The number of the file of this name, which is added if it is new; names have room for one more.
static tarn_status number_of(size_t *number, const char **names, size_t *count, const char *name, const char *path) {
  for (*number = 0; *number < *count; ++*number)
    if (strcmp(names[*number], name) == 0) return TARN_STATUS_OK;
  TARN_REQUIRE(*count < MOST_FILES, DATA, "%s: it names more than %d files", path, MOST_FILES);
  names[(*count)++] = name;
  return TARN_STATUS_OK;
}

// Opens the files, which stand beside the index.
static tarn_status open_files(tarn__hf_tensors *tensors, const char **names, size_t count) {
  void *memory;
  const char *slash = strrchr(tensors->path, '/');
  const int folder = slash ? (int)(slash - tensors->path) + 1 : 0;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof *tensors->files));
  tensors->files = memory;
  for (; tensors->file_count < count; tensors->file_count++) {
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%.*s%s", folder, tensors->path, names[tensors->file_count]);
    TARN_REQUIRE(length > 0 && length < (int)sizeof path, IO, "%s: the path is too long", tensors->path);
    TARN_TRY(tarn__safetensors_open(&tensors->files[tensors->file_count], path));
  }
  return gather(tensors);
}

// Every tensor is in the file that the index says, and the files hold no other ones.
static tarn_status check_index(const tarn__hf_tensors *tensors, json_t *map, const char **names) {
  const char *name, *path = tensors->path;
  json_t *value;
  size_t number = 0;
  json_object_foreach(map, name, value) {
    size_t count = tensors->file_count;
    TARN_TRY(number_of(&number, names, &count, json_string_value(value), path));
    TARN_REQUIRE(tarn__safetensors_find(&tensors->files[number], name), DATA,
                 "%s: it says that tensor \"%.80s\" is in %s, which it is not", path, name, names[number]);
  }
  for (size_t i = 0; i < tensors->count; i++)
    TARN_REQUIRE(json_object_get(map, tensors->tensors[i].name), DATA, "%s: it does not name tensor \"%.80s\" of %s",
                 path, tensors->tensors[i].name, tarn__hf_tensors_path(tensors, &tensors->tensors[i]));
  return TARN_STATUS_OK;
}

static tarn_status open_map(tarn__hf_tensors *tensors, json_t *map, const char **names) {
  const char *name;
  json_t *value;
  size_t count = 0, number;
  json_object_foreach(map, name, value) {
    TARN_REQUIRE(is_plain(json_string_value(value)), DATA,
                 "%s: \"weight_map\" does not give the name of a file beside it for tensor \"%.80s\"", tensors->path,
                 name);
    TARN_TRY(number_of(&number, names, &count, json_string_value(value), tensors->path));
  }
  TARN_TRY(open_files(tensors, names, count));
  return check_index(tensors, map, names);
}

static tarn_status read_index(json_t **index, const char *path) {
  char *data = NULL;
  size_t size;
  json_error_t error;
  TARN_TRY(tarn__small_file_read(path, &data, &size, LARGEST_INDEX, "an index of files of tensors"));
  const tarn_status status = tarn__json_parse(index, data, size, JSON_REJECT_DUPLICATES, &error);
  tarn__free(data);
  TARN_TRY(status);
  TARN_REQUIRE(*index, DATA, "%s:%d: %s", path, error.line, error.text);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_tensors_open_index(tarn__hf_tensors *tensors, const char *path, const char *prefix) {
  json_t *index = NULL;
  void *names = NULL;
  tensors->prefix = prefix;
  TARN_TRY(tarn__strdup(&tensors->path, path));
  TARN_TRY(tarn__alloc(&names, TARN__MEMORY_OTHER, MOST_FILES, sizeof(const char *)));
  tarn_status status = read_index(&index, path);
  json_t *map = json_object_get(index, "weight_map");
  if (status == TARN_STATUS_OK && json_object_size(map) == 0)
    status = tarn__fail(TARN_STATUS_DATA, "%s: it has no \"weight_map\" from tensors to files", path);
  if (status == TARN_STATUS_OK) status = open_map(tensors, map, names);
  json_decref(index);
  tarn__free(names);
  return status;
}

void tarn__hf_tensors_close(tarn__hf_tensors *tensors) {
  for (size_t f = 0; f < tensors->file_count; f++) tarn__safetensors_close(&tensors->files[f]);
  tarn__map_close(&tensors->map);
  tarn__free(tensors->files);
  tarn__free(tensors->tensors);
  tarn__free(tensors->used);
  tarn__free(tensors->path);
  *tensors = (tarn__hf_tensors){0};
}

tarn_status tarn__hf_tensors_judge(const tarn__hf_tensors *tensors, tarn_status status) {
  for (size_t f = 0; f < tensors->file_count; f++) status = tarn__map_judge(&tensors->files[f].map, status);
  return tarn__map_judge(&tensors->map, status);
}

static const tarn__stored *find(const tarn__hf_tensors *tensors, const char *name) {
  const tarn__stored key = {.name = name};
  if (tensors->count == 0) return NULL;
  return bsearch(&key, tensors->tensors, tensors->count, sizeof key, by_name);
}

const tarn__stored *tarn__hf_tensors_find(const tarn__hf_tensors *tensors, const char *name) {
  char full[256];
  snprintf(full, sizeof full, "%s%s", tensors->prefix ? tensors->prefix : "", name);
  const tarn__stored *tensor = find(tensors, full);
  return tensor ? tensor : find(tensors, name);
}

bool tarn__hf_ends(const char *name, const char *end) {
  const size_t length = strlen(name), own = strlen(end);
  return length >= own && strcmp(name + length - own, end) == 0;
}

const char *tarn__hf_tensors_path(const tarn__hf_tensors *tensors, const tarn__stored *tensor) {
  const uint8_t *data = tensor ? tensor->data : NULL;
  for (size_t f = 0; data && f < tensors->file_count; f++) {
    const tarn__map *map = &tensors->files[f].map;
    if (data >= map->data && data + tensor->bytes <= map->data + map->size) return tensors->files[f].path;
  }
  return tensors->path;
}

tarn_status tarn__hf_tensors_sizes(const tarn__hf_tensors *tensors, const tarn__stored *tensor) {
  const int64_t *shape = tensor->shape;
  TARN_REQUIRE(tensor->dims == 2 && shape[0] >= 1 && shape[0] <= 1 << 24 && shape[1] >= 1 && shape[1] <= 1 << 24, DATA,
               "%s: tensor \"%s\" is no matrix of 1 to %d rows and columns", tarn__hf_tensors_path(tensors, tensor),
               tensor->name, 1 << 24);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_tensors_check(tarn__hf_tensors *tensors, const tarn__stored *tensor, const char *name,
                                   int64_t rows, int64_t cols) {
  const char *path = tarn__hf_tensors_path(tensors, tensor);
  TARN_REQUIRE(tensor, DATA, "%s: tensor \"%s\" is missing", path, name);
  TARN_REQUIRE(tarn__floats_known(tensor->dtype), DATA,
               "%s: tensor \"%s\" has type %s where F32, F16 or BF16 was expected", path, tensor->name, tensor->dtype);
  bool vector = tensor->dims == 1 && rows == 1 && tensor->shape[0] == cols;
  bool matrix = tensor->dims == 2 && tensor->shape[0] == rows && tensor->shape[1] == cols;
  char shape[128] = "";
  for (int i = 0; i < tensor->dims; i++)
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
  char wanted[64];
  if (rows == 1)
    snprintf(wanted, sizeof wanted, "%lld", (long long)cols);
  else
    snprintf(wanted, sizeof wanted, "%lld, %lld", (long long)rows, (long long)cols);
  TARN_REQUIRE(vector || matrix, DATA, "%s: tensor \"%s\" has the shape [%s] where [%s] was expected", path,
               tensor->name, shape, wanted);
  tensors->used[tensor - tensors->tensors] = true;
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_tensors_read(const tarn__hf_tensors *tensors, float *values, const tarn__stored *tensor,
                                  size_t first, size_t count) {
  bool finite = tarn__floats_read(values, tensor->dtype, tensor->data, first, count);
  for (size_t i = 0; i < count; i++) finite &= isfinite(values[i]) != 0;
  TARN_REQUIRE(finite, DATA, "%s: tensor \"%s\" holds numbers that are not finite",
               tarn__hf_tensors_path(tensors, tensor), tensor->name);
  return TARN_STATUS_OK;
}
