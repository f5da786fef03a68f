// One array of NumPy: a magic number, a version, and a header that is a Python dictionary of three entries.
#include <string.h>

#include "foreign/npz_file.h"
#include "run/file_kind.h"

static const uint8_t MAGIC[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
enum { LONGEST_HEADER = 1 << 16, LONGEST_TYPE = 7 };

// Where the reader is in a header, and what it has found.
typedef struct header {
  const char *at, *end;
  char type[LONGEST_TYPE + 1];  // NumPy's, such as "<f4"
  bool columns;                 // the values stand column by column
  unsigned seen;                // a bit for each key
} header;

static void skip_blanks(header *h) {
  while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t')) h->at++;
}

static bool take(header *h, const char *word) {
  const size_t length = strlen(word);
  skip_blanks(h);
  if ((size_t)(h->end - h->at) < length || memcmp(h->at, word, length) != 0) return false;
  h->at += length;
  return true;
}

// A text in quotes without escapes.
static bool take_text(header *h, char *text, size_t room) {
  skip_blanks(h);
  if (h->at == h->end || (*h->at != '\'' && *h->at != '"')) return false;
  const char *end = memchr(h->at + 1, *h->at, (size_t)(h->end - h->at - 1));
  const size_t length = end ? (size_t)(end - h->at - 1) : room;
  if (length >= room) return false;
  memcpy(text, h->at + 1, length);
  text[length] = '\0';
  h->at = end + 1;
  return true;
}

static bool take_extent(header *h, int64_t *extent) {
  skip_blanks(h);
  const char *from = h->at;
  for (*extent = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9' && *extent <= INT32_MAX; h->at++)
    *extent = *extent * 10 + (*h->at - '0');
  return h->at > from && *extent <= INT32_MAX;
}

static bool take_shape(header *h, tarn__stored *tensor) {
  tensor->dims = 0;
  if (!take(h, "(")) return false;
  for (bool comma = true; !take(h, ")"); comma = take(h, ",")) {
    if (!comma || tensor->dims == TARN__TENSOR_DIMS || !take_extent(h, &tensor->shape[tensor->dims])) return false;
    tensor->dims++;
  }
  return true;
}

static bool take_entry(header *h, tarn__stored *tensor) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  char key[16];
  unsigned k = 0;
  if (!take_text(h, key, sizeof key)) return false;
  while (k < 3 && strcmp(key, keys[k]) != 0) k++;
  if (k == 3 || h->seen >> k & 1u || !take(h, ":")) return false;
  h->seen |= 1u << k;
  if (k == 0) return take_text(h, h->type, sizeof h->type);
  if (k == 2) return take_shape(h, tensor);
  h->columns = take(h, "True");
  return h->columns || take(h, "False");
}

static bool read_entries(header *h, tarn__stored *tensor) {
  if (!take(h, "{")) return false;
  for (bool comma = true; !take(h, "}"); comma = take(h, ","))
    if (!comma || !take_entry(h, tensor)) return false;
  skip_blanks(h);
  return h->seen == 7 && h->at == h->end;
}

// The bytes of an element; 0: no number that is read here.
static size_t element_size(const char *type) {
  static const char *const types[] = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"};
  for (size_t i = 0; i < sizeof types / sizeof *types && type[0]; i++)
    if (strcmp(type + 1, types[i]) == 0) return (size_t)(types[i][1] - '0');
  return 0;
}

static tarn_status name_type(tarn__stored *tensor, tarn__arena *arena, const char *path, const header *h) {
  static const char *const words[][2] = {{"f4", "F32"}, {"f2", "F16"}, {"i1", "I8"}, {"u1", "U8"}};
  char *copy;
  TARN_REQUIRE(!strchr(h->type, 'O'), DATA, "%s: array \"%s\" is %s" TARN__PICKLE_ADVICE, path, tensor->name,
               TARN__PICKLE_NAME);
  const size_t size = element_size(h->type);
  TARN_REQUIRE(size > 0, DATA, "%s: array \"%s\" is of type \"%s\", which is no type of numbers that tarn reads", path,
               tensor->name, h->type);
  TARN_REQUIRE(h->type[0] == '<' || size == 1, DATA,
               "%s: array \"%s\" is of type \"%s\", which is not little-endian as the files that tarn reads", path,
               tensor->name, h->type);
  TARN_REQUIRE(!h->columns || tensor->dims < 2, DATA,
               "%s: array \"%s\" stands column by column (\"fortran_order\"), where tarn reads rows", path,
               tensor->name);
  tensor->bytes = size;
  for (int i = 0; i < tensor->dims; i++)
    TARN_TRY(tarn__mul_size(&tensor->bytes, tensor->bytes, (size_t)tensor->shape[i]));
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(h->type + 1, words[i][0]) == 0) tensor->dtype = words[i][1];
  if (tensor->dtype) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_strdup(arena, &copy, h->type));
  tensor->dtype = copy;
  return TARN_STATUS_OK;
}

// The length of the header has two bytes in the first version, and four in later ones.
tarn_status tarn__npy_read(tarn__stored *tensor, tarn__arena *arena, const char *path, const uint8_t *bytes,
                           size_t size) {
  const size_t fixed = size > 6 && bytes[6] > 1 ? 12 : 10;
  TARN_REQUIRE(size >= fixed && memcmp(bytes, MAGIC, sizeof MAGIC) == 0 && bytes[6] >= 1 && bytes[6] <= 3, DATA,
               "%s: \"%s\" is no array of NumPy in the versions 1 to 3", path, tensor->name);
  size_t length = bytes[8] | (size_t)bytes[9] << 8;
  if (fixed == 12) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  TARN_REQUIRE(length <= LONGEST_HEADER && length <= size - fixed, DATA, "%s: the header of array \"%s\" is cut off",
               path, tensor->name);
  header h = {.at = (const char *)bytes + fixed, .end = (const char *)bytes + fixed + length};
  const bool read = read_entries(&h, tensor);
  // Records, whose type is a list and may hold objects, are refused here too.
  TARN_REQUIRE(read, DATA, "%s: the header of array \"%s\" is no plain \"descr\", \"fortran_order\" and \"shape\"",
               path, tensor->name);
  TARN_TRY(name_type(tensor, arena, path, &h));
  tensor->data = bytes + fixed + length;
  TARN_REQUIRE(tensor->bytes == size - fixed - length, DATA,
               "%s: array \"%s\" has %zu bytes of values, and its header says %zu", path, tensor->name,
               size - fixed - length, tensor->bytes);
  return TARN_STATUS_OK;
}
