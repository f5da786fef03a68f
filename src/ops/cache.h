// What the files of the op cache_append share: attributes, places of inputs.
#ifndef TARN_OPS_CACHE_H
#define TARN_OPS_CACHE_H

#include <stdint.h>

typedef struct tarn__cache_attr {
  int64_t column, first_row;
} tarn__cache_attr;

enum { TARN__CACHE_X, TARN__CACHE_CACHE };

#endif
