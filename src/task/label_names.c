#include <string.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"
#include "task/labelled.h"

// Terminates each name in place and points to it. A name is no longer than its escaped form.
static tarn_status split(tarn__label_names *names) {
  size_t capacity = 0;
  char *read = names->text, *write = names->text;
  for (bool more = true; more;) {
    TARN_TRY(tarn__grow(&names->names, &capacity, (size_t)names->count + 1, sizeof *names->names));
    char *name = names->names[names->count++] = write;
    for (; *read && (*read != '|' || read[1] == '|'); read++) {
      if (*read == '|') read++;
      *write++ = *read;
    }
    more = *read == '|';
    read++;
    *write++ = 0;
    TARN_REQUIRE(*name, USAGE, "head.labels: name %d is empty", names->count);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__label_names_open(tarn__label_names *names, const char *labels) {
  *names = (tarn__label_names){0};
  if (!labels || !*labels) return TARN_STATUS_OK;
  TARN_TRY(tarn__strdup(&names->text, labels));
  const tarn_status status = split(names);
  if (status != TARN_STATUS_OK) tarn__label_names_close(names);
  return status;
}

void tarn__label_names_close(tarn__label_names *names) {
  tarn__free(names->names);
  tarn__free(names->text);
  *names = (tarn__label_names){0};
}

static uint64_t hash_of(const char *name) { return tarn__hash64(name, strlen(name), 0); }

static int32_t find(const tarn__label_names *all, const tarn__index *index, const char *name) {
  int32_t place = -1;
  size_t step = 0;
  for (;;) {
    const int64_t n = tarn__index_next(index, hash_of(name), &step);
    if (n < 0) return place;
    if ((place < 0 || n < place) && strcmp(all->names[n], name) == 0) place = (int32_t)n;
  }
}

tarn_status tarn__label_places(int32_t *places, const char *labels, const char *const *names, int32_t count) {
  tarn__label_names all;
  tarn__index index = {0};
  TARN_TRY(tarn__label_names_open(&all, labels));
  tarn_status status = TARN_STATUS_OK;
  for (int32_t i = 0; i < all.count && status == TARN_STATUS_OK; i++)
    status = tarn__index_add(&index, hash_of(all.names[i]));
  for (int32_t i = 0; i < count && status == TARN_STATUS_OK; i++) places[i] = find(&all, &index, names[i]);
  tarn__index_close(&index);
  tarn__label_names_close(&all);
  return status;
}

tarn_status tarn__label_names_join(char **labels, const char *const *names, int32_t count) {
  size_t size = 1;
  void *memory;
  for (int32_t i = 0; i < count; i++) size += 2 * strlen(names[i]) + 1;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, size, 1));
  char *out = *labels = memory;
  for (int32_t i = 0; i < count; i++) {
    if (i > 0) *out++ = '|';
    for (const char *c = names[i]; *c; c++) {
      if (*c == '|') *out++ = '|';
      *out++ = *c;
    }
  }
  *out = 0;
  return TARN_STATUS_OK;
}

tarn_status tarn__labels_of_shard(char **labels, const char *prefix) {
  tarn__shard shard;
  *labels = NULL;
  TARN_TRY(tarn__shard_open(&shard, prefix));
  tarn_status status = TARN_STATUS_OK;
  if (!shard.classes)
    status = tarn__fail(TARN_STATUS_DATA,
                        "%s: its sentences have no classes; tarn prepare --table makes sets with labels", shard.path);
  else
    status = tarn__label_names_join(labels, shard.names, shard.classes);
  status = tarn__shard_judge(&shard, status);
  tarn__shard_close(&shard);
  return status;
}
