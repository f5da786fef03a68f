#include "data/class_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "data/shard_format.h"
#include "text/utf8.h"

static uint64_t hash_of(const char *name, size_t length) { return tarn__hash64(name, length, 0); }

bool tarn__class_name_valid(const char *name, size_t length) {
  int32_t code;
  return length > 0 && length <= TARN__SHARD_NAME_LONGEST && name[0] != '|' &&
         tarn__utf8_line(&code, name, length) == length;
}

int32_t tarn__class_names_find(const tarn__class_names *classes, const char *name, size_t length) {
  size_t step = 0;
  for (;;) {
    const int64_t n = tarn__index_next(&classes->index, hash_of(name, length), &step);
    if (n < 0) return -1;
    if (strlen(classes->names[n]) == length && memcmp(classes->names[n], name, length) == 0) return (int32_t)n;
  }
}

tarn_status tarn__class_names_add(tarn__class_names *classes, const char *name, size_t length) {
  TARN_REQUIRE(classes->count < TARN__SHARD_CLASSES_MOST, DATA,
               "the labels have more than %d values; those of regression are read with numbers",
               TARN__SHARD_CLASSES_MOST);
  TARN_REQUIRE(length <= TARN__SHARD_NAME_LONGEST, DATA, "a label of %zu bytes; the longest has %d", length,
               TARN__SHARD_NAME_LONGEST);
  TARN_REQUIRE(length == 0 || name[0] != '|', DATA,
               "the label \"%.*s\" begins with a bar, which divides the names of classes in head.labels", (int)length,
               name);
  int32_t code;
  const bool plain = tarn__utf8_line(&code, name, length) == length;
  TARN_REQUIRE(plain || code >= 0, DATA, "a label that is not valid UTF-8");
  TARN_REQUIRE(plain, DATA,
               "a label with a control character, line end or other character that head.labels cannot have (U+%04X)",
               (unsigned)code);
  TARN_TRY(tarn__grow(&classes->names, &classes->capacity, (size_t)classes->count + 1, sizeof *classes->names));
  TARN_TRY(tarn__strndup(&classes->names[classes->count], name, length));
  classes->count++;
  return tarn__index_add(&classes->index, hash_of(name, length));
}

// A name and its number before the names were sorted.
typedef struct numbered {
  char *name;
  int32_t number;
} numbered;

static int by_bytes(const void *a, const void *b) {
  return strcmp(((const numbered *)a)->name, ((const numbered *)b)->name);
}

tarn_status tarn__class_names_sort(tarn__class_names *classes, int32_t *rank) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)classes->count, sizeof(numbered)));
  numbered *sorted = memory;
  for (int32_t i = 0; i < classes->count; i++) sorted[i] = (numbered){classes->names[i], i};
  qsort(sorted, (size_t)classes->count, sizeof *sorted, by_bytes);
  for (int32_t i = 0; i < classes->count; i++) {
    classes->names[i] = sorted[i].name;
    rank[sorted[i].number] = i;
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}

void tarn__class_names_close(tarn__class_names *classes) {
  for (int32_t i = 0; i < classes->count; i++) tarn__free(classes->names[i]);
  tarn__free(classes->names);
  tarn__index_close(&classes->index);
  *classes = (tarn__class_names){0};
}
