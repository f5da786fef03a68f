// A growing list of 32-bit integers: token ids, positions, offsets.
#ifndef TARN_DECODE_ID_LIST_H
#define TARN_DECODE_ID_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

// Zero-initialise; the data is freed with tarn__free().
typedef struct tarn__id_list {
  int32_t *data;
  size_t capacity;
} tarn__id_list;

// Makes room for `count` integers.
static inline tarn_status tarn__id_list_room(tarn__id_list *list, int64_t count) {
  return tarn__grow(&list->data, &list->capacity, (size_t)count, sizeof *list->data);
}

#endif
