#include "foreign/gguf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/half_floats.h"
#include "run/file_kind.h"

enum { MOST_KEYS = 1 << 16, MOST_TENSORS = 1 << 20, LONGEST_NAME = 255, DIMS = 4, ALIGNMENT = 32 };

// Where the reader is.
typedef struct cursor {
  const char *path;
  const uint8_t *data;
  size_t size, at;
} cursor;

static tarn_status fail_cut(const cursor *c, const char *what) {
  return tarn__fail(TARN_STATUS_DATA, "%s: %s ends outside of the file; the file is cut off or damaged", c->path, what);
}

static tarn_status take(cursor *c, const uint8_t **data, uint64_t bytes, const char *what) {
  *data = c->data + c->at;
  if (bytes > c->size - c->at) return fail_cut(c, what);
  c->at += (size_t)bytes;
  return TARN_STATUS_OK;
}

static tarn_status take_u32(cursor *c, uint32_t *value, const char *what) {
  const uint8_t *data;
  TARN_TRY(take(c, &data, sizeof *value, what));
  memcpy(value, data, sizeof *value);
  return TARN_STATUS_OK;
}

static tarn_status take_u64(cursor *c, uint64_t *value, const char *what) {
  const uint8_t *data;
  TARN_TRY(take(c, &data, sizeof *value, what));
  memcpy(value, data, sizeof *value);
  return TARN_STATUS_OK;
}

// A name, copied with a zero byte.
static tarn_status take_name(tarn__gguf_file *file, cursor *c, const char **name, const char *what) {
  uint64_t length;
  const uint8_t *data;
  void *copy;
  TARN_TRY(take_u64(c, &length, what));
  TARN_REQUIRE(length >= 1 && length <= LONGEST_NAME, DATA, "%s: %s has %llu bytes, not 1 to %d", c->path, what,
               (unsigned long long)length, LONGEST_NAME);
  TARN_TRY(take(c, &data, length, what));
  TARN_REQUIRE(!memchr(data, 0, (size_t)length), DATA, "%s: %s holds a zero byte", c->path, what);
  TARN_TRY(tarn__arena_alloc(&file->arena, &copy, (size_t)length + 1, 1));
  memcpy(copy, data, (size_t)length);
  *name = copy;
  return TARN_STATUS_OK;
}

// Bytes of an element; 0 for strings and arrays.
static size_t element_size(tarn__gguf_type type) {
  static const uint8_t sizes[TARN__GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[type];
}

static tarn_status take_type(cursor *c, tarn__gguf_type *type, const char *name) {
  uint32_t number;
  TARN_TRY(take_u32(c, &number, name));
  TARN_REQUIRE(number < TARN__GGUF_TYPES, DATA, "%s: the value of \"%s\" is of the unknown type %u", c->path, name,
               number);
  *type = (tarn__gguf_type)number;
  return TARN_STATUS_OK;
}

static tarn_status skip_elements(cursor *c, tarn__gguf_type type, uint64_t count, const char *name) {
  const uint8_t *data;
  const size_t size = element_size(type);
  if (size > 0) {
    if (count > (c->size - c->at) / size) return fail_cut(c, name);
    return take(c, &data, count * size, name);
  }
  for (uint64_t i = 0; i < count; i++) {
    uint64_t length;
    TARN_TRY(take_u64(c, &length, name));
    TARN_TRY(take(c, &data, length, name));
  }
  return TARN_STATUS_OK;
}

static tarn_status read_key(tarn__gguf_file *file, cursor *c, tarn__gguf_key *key) {
  TARN_TRY(take_name(file, c, &key->name, "the name of a key"));
  TARN_TRY(take_type(c, &key->type, key->name));
  key->element = key->type;
  key->count = 1;
  if (key->type == TARN__GGUF_ARRAY) {
    TARN_TRY(take_type(c, &key->element, key->name));
    TARN_REQUIRE(key->element != TARN__GGUF_ARRAY, DATA, "%s: \"%s\" is an array of arrays, which tarn does not read",
                 c->path, key->name);
    TARN_TRY(take_u64(c, &key->count, key->name));
  }
  key->data = c->data + c->at;
  return skip_elements(c, key->element, key->count, key->name);
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const tarn__gguf_key *)a)->name, ((const tarn__gguf_key *)b)->name);
}

static tarn_status read_keys(tarn__gguf_file *file, cursor *c, uint64_t count) {
  void *memory;
  TARN_REQUIRE(count <= MOST_KEYS, DATA, "%s: it has %llu keys, more than %d", c->path, (unsigned long long)count,
               MOST_KEYS);
  TARN_TRY(tarn__arena_alloc(&file->arena, &memory, (size_t)count + 1, sizeof *file->keys));
  file->keys = memory;
  for (; file->key_count < count; file->key_count++) TARN_TRY(read_key(file, c, &file->keys[file->key_count]));
  qsort(file->keys, file->key_count, sizeof *file->keys, by_key);
  for (size_t i = 1; i < file->key_count; i++)
    TARN_REQUIRE(by_key(&file->keys[i - 1], &file->keys[i]) != 0, DATA, "%s: the key \"%s\" is there twice", c->path,
                 file->keys[i].name);
  return TARN_STATUS_OK;
}

// The types of tensors, by their numbers; those with a size are read.
static const struct {
  uint32_t number;
  const char *word;
  size_t bytes, block;
} TYPES[] = {
    {0, "F32", 4, 1},     {1, "F16", 2, 1},      {30, "BF16", 2, 1},   {8, "Q8_0", TARN__Q8_BYTES, TARN__Q8_BLOCK},
    {2, "Q4_0", 0, 0},    {3, "Q4_1", 0, 0},     {6, "Q5_0", 0, 0},    {7, "Q5_1", 0, 0},
    {9, "Q8_1", 0, 0},    {10, "Q2_K", 0, 0},    {11, "Q3_K", 0, 0},   {12, "Q4_K", 0, 0},
    {13, "Q5_K", 0, 0},   {14, "Q6_K", 0, 0},    {15, "Q8_K", 0, 0},   {16, "IQ2_XXS", 0, 0},
    {17, "IQ2_XS", 0, 0}, {18, "IQ3_XXS", 0, 0}, {19, "IQ1_S", 0, 0},  {20, "IQ4_NL", 0, 0},
    {21, "IQ3_S", 0, 0},  {22, "IQ2_S", 0, 0},   {23, "IQ4_XS", 0, 0}, {24, "I8", 0, 0},
    {25, "I16", 0, 0},    {26, "I32", 0, 0},     {27, "I64", 0, 0},    {28, "F64", 0, 0},
    {29, "IQ1_M", 0, 0},  {34, "TQ1_0", 0, 0},   {35, "TQ2_0", 0, 0},  {39, "MXFP4", 0, 0}};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

static tarn_status read_type(const cursor *c, tarn__stored *tensor, uint32_t number) {
  char word[24];
  int type = 0;
  while (type < TYPE_COUNT && TYPES[type].number != number) type++;
  snprintf(word, sizeof word, "number %u", number);
  TARN_REQUIRE(type < TYPE_COUNT && TYPES[type].bytes > 0, DATA,
               "%s: tensor \"%s\" is of type %s; tarn reads F32, F16, BF16 and Q8_0", c->path, tensor->name,
               type < TYPE_COUNT ? TYPES[type].word : word);
  const int64_t row = tensor->shape[tensor->dims - 1];
  TARN_REQUIRE(row % (int64_t)TYPES[type].block == 0, DATA,
               "%s: tensor \"%s\" has rows of %lld numbers, which are no blocks of %zu (%s)", c->path, tensor->name,
               (long long)row, TYPES[type].block, TYPES[type].word);
  tensor->dtype = TYPES[type].word;
  tensor->bytes = TYPES[type].bytes;
  TARN_TRY(tarn__mul_size(&tensor->bytes, tensor->bytes, (size_t)row / TYPES[type].block));
  for (int i = 0; i < tensor->dims - 1; i++)
    TARN_TRY(tarn__mul_size(&tensor->bytes, tensor->bytes, (size_t)tensor->shape[i]));
  return TARN_STATUS_OK;
}

// The place of its values is kept in `source` order: *offset is from the beginning of the data.
static tarn_status read_tensor(tarn__gguf_file *file, cursor *c, tarn__stored *tensor, uint64_t *offset) {
  uint32_t dims, type;
  TARN_TRY(take_name(file, c, &tensor->name, "the name of a tensor"));
  TARN_TRY(take_u32(c, &dims, tensor->name));
  TARN_REQUIRE(dims >= 1 && dims <= DIMS, DATA, "%s: tensor \"%s\" has %u dimensions, not 1 to %d", c->path,
               tensor->name, dims, DIMS);
  tensor->dims = (int)dims;
  for (uint32_t i = 0; i < dims; i++) {
    uint64_t extent;
    TARN_TRY(take_u64(c, &extent, tensor->name));
    TARN_REQUIRE(extent >= 1 && extent <= INT32_MAX, DATA, "%s: tensor \"%s\" has the size %llu, not 1 to %d", c->path,
                 tensor->name, (unsigned long long)extent, INT32_MAX);
    tensor->shape[dims - 1 - i] = (int64_t)extent;
  }
  TARN_TRY(take_u32(c, &type, tensor->name));
  TARN_TRY(take_u64(c, offset, tensor->name));
  return read_type(c, tensor, type);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const tarn__stored *)a)->name, ((const tarn__stored *)b)->name);
}

static int by_place(const void *a, const void *b) {
  const uint8_t *p = ((const tarn__stored *)a)->data, *q = ((const tarn__stored *)b)->data;
  return (p > q) - (p < q);
}

static tarn_status check_places(const tarn__hf_tensors *tensors, const char *path) {
  tarn__stored *list = tensors->tensors;
  if (tensors->count == 0) return TARN_STATUS_OK;
  qsort(list, tensors->count, sizeof *list, by_place);
  for (size_t i = 1; i < tensors->count; i++)
    TARN_REQUIRE((const uint8_t *)list[i - 1].data + list[i - 1].bytes <= (const uint8_t *)list[i].data, DATA,
                 "%s: tensors \"%s\" and \"%s\" overlap", path, list[i - 1].name, list[i].name);
  qsort(list, tensors->count, sizeof *list, by_name);
  for (size_t i = 1; i < tensors->count; i++)
    TARN_REQUIRE(by_name(&list[i - 1], &list[i]) != 0, DATA, "%s: tensor \"%s\" is there twice", path, list[i].name);
  return TARN_STATUS_OK;
}

static tarn_status read_alignment(const tarn__gguf_file *file, size_t *alignment) {
  const tarn__gguf_key *key = tarn__gguf_find(file, "general.alignment");
  const double value = key ? tarn__gguf_number(key, 0) : ALIGNMENT;
  TARN_REQUIRE(value == 8 || value == 16 || value == 32 || value == 64 || value == 128 || value == 4096, DATA,
               "%s: \"general.alignment\" is %g, which is none of 8, 16, 32, 64, 128 and 4096", file->path, value);
  *alignment = (size_t)value;
  return TARN_STATUS_OK;
}

static tarn_status read_tensors(tarn__gguf_file *file, cursor *c, tarn__hf_tensors *tensors, uint64_t count) {
  void *memory;
  size_t alignment = ALIGNMENT;
  TARN_REQUIRE(count <= MOST_TENSORS && count <= c->size / 24, DATA, "%s: it has %llu tensors, more than it can hold",
               c->path, (unsigned long long)count);
  TARN_TRY(read_alignment(file, &alignment));
  TARN_TRY(tarn__hf_tensors_room(tensors, c->path, (size_t)count));
  TARN_TRY(tarn__arena_alloc(&file->arena, &memory, (size_t)count + 1, sizeof(uint64_t)));
  uint64_t *offsets = memory;
  for (size_t i = 0; i < count; i++) TARN_TRY(read_tensor(file, c, &tensors->tensors[i], &offsets[i]));
  const size_t start = (c->at + alignment - 1) / alignment * alignment;
  for (size_t i = 0; i < count; i++) {
    tarn__stored *tensor = &tensors->tensors[i];
    TARN_REQUIRE(offsets[i] % alignment == 0, DATA, "%s: tensor \"%s\" begins at %llu, which is no multiple of %zu",
                 c->path, tensor->name, (unsigned long long)offsets[i], alignment);
    TARN_REQUIRE(start <= c->size && offsets[i] <= c->size - start && tensor->bytes <= c->size - start - offsets[i],
                 DATA, "%s: tensor \"%s\" ends outside of the file; the file is cut off or damaged", c->path,
                 tensor->name);
    tensor->data = c->data + start + offsets[i];
  }
  return check_places(tensors, c->path);
}

tarn_status tarn__gguf_open(tarn__gguf_file *file, tarn__hf_tensors *tensors, const char *path) {
  uint32_t version;
  uint64_t tensor_count, key_count;
  const uint8_t *magic;
  file->path = path;
  TARN_TRY(tarn__map_open(&tensors->map, path));
  TARN_REQUIRE(tensors->map.size > 0, DATA, "%s: the file is empty", path);
  cursor c = {path, tensors->map.data, tensors->map.size, 0};
  TARN_TRY(take(&c, &magic, 4, "the magic number"));
  TARN_REQUIRE(memcmp(magic, TARN__GGUF_MAGIC, 4) == 0, DATA, "%s: not a GGUF file", path);
  TARN_TRY(take_u32(&c, &version, "the version"));
  TARN_REQUIRE(version == 2 || version == 3, DATA, "%s: GGUF of version %u; tarn reads 2 and 3 in little-endian", path,
               version);
  TARN_TRY(take_u64(&c, &tensor_count, "the number of tensors"));
  TARN_TRY(take_u64(&c, &key_count, "the number of keys"));
  TARN_TRY(read_keys(file, &c, key_count));
  return read_tensors(file, &c, tensors, tensor_count);
}

void tarn__gguf_close(tarn__gguf_file *file) { tarn__arena_close(&file->arena); }

const tarn__gguf_key *tarn__gguf_find(const tarn__gguf_file *file, const char *name) {
  const tarn__gguf_key key = {.name = name};
  if (file->key_count == 0) return NULL;
  return bsearch(&key, file->keys, file->key_count, sizeof key, by_key);
}

#define AS(type)                                                    \
  do {                                                              \
    type value;                                                     \
    memcpy(&value, key->data + index * sizeof value, sizeof value); \
    return (double)value;                                           \
  } while (0)

// The number that a person would have written: the shortest one of seven digits, if it is this float.
static double plain_number(float value) {
  char text[32];
  snprintf(text, sizeof text, "%.7g", (double)value);
  const double plain = strtod(text, NULL);
  return (float)plain == value ? plain : (double)value;
}

static double float_at(const uint8_t *data) {
  float value;
  memcpy(&value, data, sizeof value);
  return plain_number(value);
}

double tarn__gguf_number(const tarn__gguf_key *key, uint64_t index) {
  if (index >= key->count) return 0.0;
  switch (key->element) {
    case TARN__GGUF_UINT8:
    case TARN__GGUF_BOOL:
      return key->data[index];
    case TARN__GGUF_INT8:
      return ((const int8_t *)key->data)[index];
    case TARN__GGUF_UINT16:
      AS(uint16_t);
    case TARN__GGUF_INT16:
      AS(int16_t);
    case TARN__GGUF_UINT32:
      AS(uint32_t);
    case TARN__GGUF_INT32:
      AS(int32_t);
    case TARN__GGUF_FLOAT32:
      return float_at(key->data + index * sizeof(float));
    case TARN__GGUF_UINT64:
      AS(uint64_t);
    case TARN__GGUF_INT64:
      AS(int64_t);
    case TARN__GGUF_FLOAT64:
      AS(double);
    default:
      return 0.0;
  }
}

const char *tarn__gguf_next_text(const uint8_t **at, size_t *length) {
  uint64_t bytes;
  memcpy(&bytes, *at, sizeof bytes);
  const char *text = (const char *)*at + sizeof bytes;
  *length = (size_t)bytes;
  *at += sizeof bytes + bytes;
  return text;
}
