#include "store/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_io.h"
#include "base/memory.h"
#include "base/work.h"
#include "device/transfer.h"

enum { LENGTH_BYTES = 8, ALIGN = 64 };
static const uint64_t LONGEST_HEADER = 100000000;  // as in the reference implementation
static const char METADATA[] = "__metadata__";

static const struct {
  const char *name;
  size_t bytes;
} dtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
              {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};

// Bytes of an element, or 0 for an unknown type.
static size_t dtype_bytes(const char *name) {
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    if (strcmp(dtypes[i].name, name) == 0) return dtypes[i].bytes;
  return 0;
}

static tarn_status shape_bytes(const tarn__stored *tensor, size_t *bytes) {
  *bytes = dtype_bytes(tensor->dtype);
  for (int i = 0; i < tensor->dims; i++) TARN_TRY(tarn__mul_size(bytes, *bytes, (size_t)tensor->shape[i]));
  return TARN_STATUS_OK;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const tarn__stored *)a)->name, ((const tarn__stored *)b)->name);
}
static int by_key(const void *a, const void *b) {
  return strcmp(((const tarn__stored_text *)a)->key, ((const tarn__stored_text *)b)->key);
}
// If two tensors begin at the same place, the empty one comes first.
static int by_place(const void *a, const void *b) {
  const tarn__stored *x = *(const tarn__stored *const *)a;
  const tarn__stored *y = *(const tarn__stored *const *)b;
  uintptr_t p = (uintptr_t)x->data;
  uintptr_t q = (uintptr_t)y->data;
  if (p != q) return p < q ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

// Reads an entry "name": {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}.
static tarn_status read_tensor(tarn__safetensors *file, tarn__stored *tensor, json_t *entry, const uint8_t *data,
                               size_t data_size) {
  const char *path = file->path;
  const char *name = tensor->name;
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  const json_t *shape = json_object_get(entry, "shape");
  const json_t *offsets = json_object_get(entry, "data_offsets");
  TARN_REQUIRE(dtype && json_is_array(shape) && json_array_size(offsets) == 2, DATA,
               "%s: tensor \"%s\" has no dtype, shape and data_offsets", path, name);
  TARN_REQUIRE(dtype_bytes(dtype), DATA, "%s: tensor \"%s\" has the unknown type \"%s\"", path, name, dtype);
  TARN_REQUIRE(json_array_size(shape) <= TARN__TENSOR_DIMS, DATA, "%s: tensor \"%s\" has more than %d dimensions", path,
               name, TARN__TENSOR_DIMS);
  tensor->dtype = dtype;
  tensor->dims = (int)json_array_size(shape);
  for (int i = 0; i < tensor->dims; i++) {
    const json_t *extent = json_array_get(shape, (size_t)i);
    TARN_REQUIRE(json_is_integer(extent) && json_integer_value(extent) >= 0, DATA,
                 "%s: tensor \"%s\" has a size that is not a whole number", path, name);
    tensor->shape[i] = json_integer_value(extent);
  }
  const json_t *first = json_array_get(offsets, 0);
  const json_t *last = json_array_get(offsets, 1);
  json_int_t begin = json_integer_value(first);
  json_int_t end = json_integer_value(last);
  TARN_REQUIRE(json_is_integer(first) && json_is_integer(last) && begin >= 0 && begin <= end, DATA,
               "%s: tensor \"%s\" has offsets that are no range", path, name);
  TARN_REQUIRE((uint64_t)end <= data_size, DATA,
               "%s: tensor \"%s\" ends outside of the file; the file is cut off or damaged", path, name);
  tarn_status status = shape_bytes(tensor, &tensor->bytes);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: tensor \"%s\": ", path, name);
  TARN_REQUIRE(tensor->bytes == (uint64_t)(end - begin), DATA,
               "%s: tensor \"%s\" has %" PRId64 " bytes where its shape and type make %zu", path, name,
               (int64_t)(end - begin), tensor->bytes);
  tensor->data = data + begin;
  return TARN_STATUS_OK;
}

static tarn_status read_metadata(tarn__safetensors *file, json_t *entry) {
  TARN_REQUIRE(json_is_object(entry), DATA, "%s: the metadata is no object", file->path);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, json_object_size(entry), sizeof(tarn__stored_text)));
  file->texts = memory;
  const char *key;
  json_t *value;
  json_object_foreach(entry, key, value) {
    TARN_REQUIRE(json_is_string(value), DATA, "%s: the metadata \"%s\" is no text", file->path, key);
    file->texts[file->text_count++] = (tarn__stored_text){key, json_string_value(value)};
  }
  qsort(file->texts, file->text_count, sizeof *file->texts, by_key);
  return TARN_STATUS_OK;
}

// The tensors must cover the data exactly once.
static tarn_status check_cover(const tarn__safetensors *file, const uint8_t *data, size_t data_size) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, file->count, sizeof(tarn__stored *)));
  const tarn__stored **order = memory;
  for (size_t i = 0; i < file->count; i++) order[i] = &file->tensors[i];
  qsort(order, file->count, sizeof *order, by_place);
  const uint8_t *end = data;
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < file->count && status == TARN_STATUS_OK; i++) {
    const uint8_t *begin = order[i]->data;
    if (begin != end)
      status = tarn__fail(TARN_STATUS_DATA, "%s: tensor \"%s\" %s", file->path, order[i]->name,
                          begin < end ? "overlaps another one" : "begins after a hole");
    end = begin + order[i]->bytes;
  }
  tarn__free(memory);
  TARN_TRY(status);
  TARN_REQUIRE(end == data + data_size, DATA, "%s: bytes that belong to no tensor follow the last one", file->path);
  return TARN_STATUS_OK;
}

static tarn_status read_header(tarn__safetensors *file, const uint8_t *text, size_t length) {
  json_error_t error;
  TARN_REQUIRE(length > 0 && text[0] == '{', DATA, "%s: the header does not begin with {; this is no safetensors file",
               file->path);
  TARN_TRY(tarn__json_parse(&file->json, (const char *)text, length, JSON_REJECT_DUPLICATES, &error));
  TARN_REQUIRE(file->json, DATA, "%s: the header is damaged: %s at byte %d", file->path, error.text, error.position);
  TARN_REQUIRE(json_is_object(file->json), DATA, "%s: the header is no object", file->path);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, json_object_size(file->json), sizeof(tarn__stored)));
  file->tensors = memory;
  const uint8_t *data = text + length;
  size_t data_size = file->map.size - LENGTH_BYTES - length;
  const char *key;
  json_t *value;
  json_object_foreach(file->json, key, value) {
    if (strcmp(key, METADATA) == 0) {
      TARN_TRY(read_metadata(file, value));
      continue;
    }
    tarn__stored *tensor = &file->tensors[file->count++];
    tensor->name = key;
    TARN_TRY(read_tensor(file, tensor, value, data, data_size));
  }
  TARN_TRY(check_cover(file, data, data_size));
  qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
  return TARN_STATUS_OK;
}

static tarn_status open_file(tarn__safetensors *file, const char *path) {
  TARN_TRY(tarn__strdup(&file->path, path));
  TARN_TRY(tarn__map_open(&file->map, path));
  TARN_REQUIRE(file->map.size >= LENGTH_BYTES, DATA, "%s: too short for a safetensors file; it is cut off or damaged",
               path);
  uint64_t length = 0;
  for (int i = LENGTH_BYTES - 1; i >= 0; i--) length = length << 8 | file->map.data[i];
  TARN_REQUIRE(length <= LONGEST_HEADER && length <= file->map.size - LENGTH_BYTES, DATA,
               "%s: a header of %" PRIu64 " bytes does not fit; this is no safetensors file, or it is cut off", path,
               length);
  return read_header(file, file->map.data + LENGTH_BYTES, (size_t)length);
}

tarn_status tarn__safetensors_open(tarn__safetensors *file, const char *path) {
  *file = (tarn__safetensors){0};
  tarn_status status = tarn__map_judge(&file->map, open_file(file, path));
  if (status != TARN_STATUS_OK) tarn__safetensors_close(file);
  return status;
}

void tarn__safetensors_close(tarn__safetensors *file) {
  json_decref(file->json);
  tarn__map_close(&file->map);
  tarn__free(file->tensors);
  tarn__free(file->texts);
  tarn__free(file->path);
  *file = (tarn__safetensors){0};
}

const tarn__stored *tarn__safetensors_find(const tarn__safetensors *file, const char *name) {
  tarn__stored key = {.name = name};
  return file->count ? bsearch(&key, file->tensors, file->count, sizeof key, by_name) : NULL;
}

const char *tarn__safetensors_text(const tarn__safetensors *file, const char *key) {
  tarn__stored_text want = {.key = key};
  if (file->text_count == 0) return NULL;
  const tarn__stored_text *found = bsearch(&want, file->texts, file->text_count, sizeof want, by_key);
  return found ? found->text : NULL;
}

// Wide types first; `order` keeps the caller's order among equals.
static void sort_for_writing(const tarn__stored **order, const tarn__stored *tensors, size_t count) {
  size_t used = 0;
  for (size_t bytes = 8; bytes > 0; bytes /= 2)
    for (size_t i = 0; i < count; i++)
      if (dtype_bytes(tensors[i].dtype) == bytes) order[used++] = &tensors[i];
}

static json_t *describe(const tarn__stored *tensor, size_t begin) {
  json_t *shape = json_array();
  for (int i = 0; i < tensor->dims; i++)
    if (json_array_append_new(shape, json_integer(tensor->shape[i])) != 0) {
      json_decref(shape);
      return NULL;
    }
  return json_pack("{s:s, s:o, s:[I,I]}", "dtype", tensor->dtype, "shape", shape, "data_offsets", (json_int_t)begin,
                   (json_int_t)(begin + tensor->bytes));
}

// The header as growing text. A JSON tree of tens of thousands of tensors would take many times as much memory.
typedef struct header {
  char *text;
  size_t length, capacity;
} header;

static tarn_status header_add(header *h, const char *text, size_t length) {
  TARN_TRY(tarn__grow(&h->text, &h->capacity, h->length + length, 1));
  memcpy(h->text + h->length, text, length);
  h->length += length;
  return TARN_STATUS_OK;
}

// A member of the header. Takes over `value` in any case; NULL: memory had run out.
static tarn_status header_member(header *h, const char *name, json_t *value) {
  json_t *member = json_object();
  const bool whole = value && member && json_object_set(member, name, value) == 0;
  char *text = whole ? tarn__json_dump(member, JSON_COMPACT) : NULL;
  json_decref(value);
  json_decref(member);
  TARN_REQUIRE(text, MEMORY, "out of memory: the header of a safetensors file");
  tarn_status status = header_add(h, h->length == 0 ? "{" : ",", 1);
  if (status == TARN_STATUS_OK) status = header_add(h, text + 1, strlen(text) - 2);
  free(text);
  return status;
}

static tarn_status header_metadata(header *h, const tarn__stored_text *texts, size_t text_count) {
  json_t *metadata = json_object();
  bool whole = metadata != NULL;
  for (size_t i = 0; i < text_count && whole; i++)
    whole = json_object_set_new(metadata, texts[i].key, json_string(texts[i].text)) == 0;
  if (!whole) {
    json_decref(metadata);
    metadata = NULL;
  }
  return header_member(h, METADATA, metadata);
}

// Free h->text with tarn__free(), even after a failure.
static tarn_status make_header(header *h, const tarn__stored *const *order, size_t count,
                               const tarn__stored_text *texts, size_t text_count) {
  if (text_count) TARN_TRY(header_metadata(h, texts, text_count));
  size_t begin = 0;
  for (size_t i = 0; i < count; i++) {
    TARN_TRY(header_member(h, order[i]->name, describe(order[i], begin)));
    begin += order[i]->bytes;
  }
  if (h->length == 0) TARN_TRY(header_add(h, "{", 1));
  return header_add(h, "}", 1);
}

// The transfer of tensors' bytes.
typedef struct transfer {
  tarn__work work;
  double done, all;
} transfer;

static void note(transfer *moved, size_t bytes) {
  moved->done += (double)bytes;
  tarn__work_at(&moved->work, moved->done, moved->done / moved->all);
}

static void begin(transfer *moved, const char *what, const tarn__stored *tensors, size_t count) {
  moved->done = moved->all = 0;
  for (size_t i = 0; i < count; i++) moved->all += (double)tensors[i].bytes;
  tarn__work_begin(&moved->work, what, "bytes");
}

// *data: bytes of a tensor, valid until the buffer is reused.
static tarn_status read_values(const tarn__stored *tensor, void **data, size_t first, size_t bytes,
                               tarn__host_room *room) {
  if (!tensor->source) return tarn__device_read(tensor->device, data, (const char *)tensor->data + first, bytes, room);
  TARN_TRY(tarn__grow(&room->memory, &room->capacity, bytes, 1));
  *data = room->memory;
  return tensor->source->read(tensor->source, *data, first, bytes);
}

// Values are written piece by piece, so those of a device need only one piece of the host's memory.
static tarn_status put_values(tarn__writer *writer, const tarn__stored *tensor, tarn__host_room *room,
                              transfer *moved) {
  for (size_t done = 0; done < tensor->bytes;) {
    const size_t left = tensor->bytes - done, now = left < TARN__MAP_PIECE ? left : TARN__MAP_PIECE;
    void *data;
    TARN_TRY(read_values(tensor, &data, done, now, room));
    TARN_TRY(tarn__writer_put(writer, data, now));
    done += now;
    note(moved, now);
  }
  return TARN_STATUS_OK;
}

// *size: its bytes.
static tarn_status put_header(tarn__writer *writer, const header *h, uint64_t *size) {
  static const char spaces[ALIGN + 1] = "                                                                ";
  const size_t length = h->length, padding = (ALIGN - (LENGTH_BYTES + length) % ALIGN) % ALIGN;
  uint8_t bytes[LENGTH_BYTES];
  for (int i = 0; i < LENGTH_BYTES; i++) bytes[i] = (uint8_t)((uint64_t)(length + padding) >> 8 * i);
  TARN_TRY(tarn__writer_put(writer, bytes, sizeof bytes));
  TARN_TRY(tarn__writer_put(writer, h->text, length));
  *size = LENGTH_BYTES + length + padding;
  return tarn__writer_put(writer, spaces, padding);
}

static tarn_status put_file(tarn__writer *writer, const header *h, const tarn__stored *tensors,
                            const tarn__stored *const *order, size_t count) {
  uint64_t size;
  TARN_TRY(put_header(writer, h, &size));
  tarn__host_room room = {0};
  tarn_status status = TARN_STATUS_OK;
  transfer moved;
  begin(&moved, "writing the file", tensors, count);
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) status = put_values(writer, order[i], &room, &moved);
  tarn__work_end(&moved.work);
  tarn__host_room_close(&room);
  return status;
}

static tarn_status check_for_writing(const char *path, const tarn__stored *tensors, size_t count) {
  // Files that could not be read again are not written. An entry has at most 16 values: a name, an object with three
  // keys, two arrays of a few numbers.
  TARN_REQUIRE(count <= TARN__JSON_VALUES / 16, DATA, "%s: %zu tensors, but a safetensors file of ours has at most %d",
               path, count, TARN__JSON_VALUES / 16);
  for (size_t i = 0; i < count; i++) {
    size_t bytes;
    TARN_TRY(shape_bytes(&tensors[i], &bytes));
    TARN_REQUIRE(bytes == tensors[i].bytes && dtype_bytes(tensors[i].dtype), INTERNAL,
                 "%s: tensor \"%s\" has a wrong number of bytes", path, tensors[i].name);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__safetensors_write(const char *path, const tarn__stored *tensors, size_t count,
                                    const tarn__stored_text *texts, size_t text_count) {
  return tarn__safetensors_write_mapped(path, tensors, count, texts, text_count, &(tarn__map){0});
}

tarn_status tarn__safetensors_write_mapped(const char *path, const tarn__stored *tensors, size_t count,
                                           const tarn__stored_text *texts, size_t text_count, const tarn__map *map) {
  TARN_TRY(check_for_writing(path, tensors, count));
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(tarn__stored *)));
  const tarn__stored **order = memory;
  sort_for_writing(order, tensors, count);
  tarn__writer *writer = NULL;
  header h = {0};
  tarn_status status = make_header(&h, order, count, texts, text_count);
  if (status == TARN_STATUS_OK) status = tarn__writer_open(&writer, path);
  if (status == TARN_STATUS_OK) status = tarn__map_judge(map, put_file(writer, &h, tensors, order, count));
  if (status == TARN_STATUS_OK) status = tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  tarn__free(h.text);
  tarn__free(memory);
  return status;
}

tarn_status tarn__safetensors_begin(tarn__writer *writer, uint64_t *places, const tarn__stored *tensors, size_t count,
                                    const tarn__stored_text *texts, size_t text_count) {
  void *memory;
  uint64_t at = 0;
  TARN_TRY(check_for_writing("a file", tensors, count));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(tarn__stored *)));
  const tarn__stored **order = memory;
  sort_for_writing(order, tensors, count);
  header h = {0};
  tarn_status status = make_header(&h, order, count, texts, text_count);
  if (status == TARN_STATUS_OK) status = put_header(writer, &h, &at);
  for (size_t i = 0; i < count; at += order[i++]->bytes) places[order[i] - tensors] = at;
  tarn__free(h.text);
  tarn__free(memory);
  return status;
}

// The description of all tensors, for hashing.
typedef struct manifest {
  tarn__hasher *hasher;
  tarn__host_room room;  // for values on a device
} manifest;

// The zero byte separates.
static void manifest_add(manifest *m, const char *text) { tarn__hasher_add(m->hasher, text, strlen(text) + 1); }

static tarn_status hash_apart(char hash[TARN__HASH_TEXT], const tarn__stored *tensor, tarn__host_room *room) {
  tarn__hasher *hasher;
  TARN_TRY(tarn__hasher_open(&hasher));
  tarn_status status = TARN_STATUS_OK;
  for (size_t done = 0; done < tensor->bytes && status == TARN_STATUS_OK; done += TARN__MAP_PIECE) {
    const size_t left = tensor->bytes - done, now = left < TARN__MAP_PIECE ? left : TARN__MAP_PIECE;
    void *data;
    status = read_values(tensor, &data, done, now, room);
    if (status == TARN_STATUS_OK) tarn__hasher_add(hasher, data, now);
  }
  if (status == TARN_STATUS_OK) tarn__hasher_text(hash, hasher, NULL, 0);
  tarn__hasher_close(&hasher);
  return status;
}

static tarn_status hash_values(char hash[TARN__HASH_TEXT], const tarn__stored *tensor, const tarn__map *map,
                               tarn__host_room *room) {
  if (tensor->source || !tarn__device_is_host(tensor->device)) return hash_apart(hash, tensor, room);
  if (map)
    tarn__hash_map(hash, map, tensor->data, tensor->bytes);
  else
    tarn__hash(hash, tensor->data, tensor->bytes);
  return TARN_STATUS_OK;
}

static tarn_status manifest_fill(manifest *m, const tarn__stored *tensors, size_t count, const tarn__stored_text *texts,
                                 size_t text_count, const char *except, const tarn__map *map, transfer *moved) {
  for (size_t i = 0; i < text_count; i++) {
    if (strcmp(texts[i].key, except) == 0) continue;
    manifest_add(m, texts[i].key);
    manifest_add(m, texts[i].text);
  }
  for (size_t i = 0; i < count; i++) {
    char word[32];
    manifest_add(m, tensors[i].name);
    manifest_add(m, tensors[i].dtype);
    for (int d = 0; d < tensors[i].dims; d++) {
      snprintf(word, sizeof word, "%" PRId64, tensors[i].shape[d]);
      manifest_add(m, word);
    }
    char hash[TARN__HASH_TEXT];
    TARN_TRY(hash_values(hash, &tensors[i], map, &m->room));
    note(moved, tensors[i].bytes);
    manifest_add(m, hash);
  }
  return TARN_STATUS_OK;
}

// A sorted copy of an array.
static tarn_status sorted(void **copy, const void *array, size_t count, size_t size,
                          int (*compare)(const void *, const void *)) {
  TARN_TRY(tarn__alloc(copy, TARN__MEMORY_OTHER, count, size));
  if (count) {
    memcpy(*copy, array, count * size);
    qsort(*copy, count, size, compare);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__safetensors_hash(char hash[TARN__HASH_TEXT], const tarn__stored *tensors, size_t count,
                                   const tarn__stored_text *texts, size_t text_count, const char *except,
                                   const tarn__map *map) {
  manifest m = {0};
  void *tensor_order = NULL;
  void *text_order = NULL;
  tarn_status status = sorted(&tensor_order, tensors, count, sizeof *tensors, by_name);
  if (status == TARN_STATUS_OK) status = sorted(&text_order, texts, text_count, sizeof *texts, by_key);
  if (status == TARN_STATUS_OK) status = tarn__hasher_open(&m.hasher);
  transfer moved;
  begin(&moved, map ? "reading the file" : "hashing", tensors, count);
  if (status == TARN_STATUS_OK)
    status = manifest_fill(&m, tensor_order, count, text_order, text_count, except, map, &moved);
  tarn__work_end(&moved.work);
  if (status == TARN_STATUS_OK) tarn__hasher_text(hash, m.hasher, NULL, 0);
  tarn__hasher_close(&m.hasher);
  tarn__host_room_close(&m.room);
  tarn__free(tensor_order);
  tarn__free(text_order);
  return status;
}
