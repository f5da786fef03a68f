// Internals of the squared error.
//   squared_error  in: x, weight, bias, values or NULL
//                  out: loss [1, 2], dx or NULL, the numbers that are predicted [n, 1]
//                  dparam: weight or NULL, bias or NULL
#ifndef TARN_OPS_SQUARED_ERROR_H
#define TARN_OPS_SQUARED_ERROR_H

#include <string.h>

#include "graph/graph.h"

typedef struct tarn__squared_error_attr {
  double grad_scale;
} tarn__squared_error_attr;

enum { TARN__SQUARED_ERROR_X, TARN__SQUARED_ERROR_WEIGHT, TARN__SQUARED_ERROR_BIAS, TARN__SQUARED_ERROR_VALUES };
enum { TARN__SQUARED_ERROR_LOSS, TARN__SQUARED_ERROR_DX, TARN__SQUARED_ERROR_NUMBERS };

// The value of a row, whose bits are stored in an integer.
static inline float tarn__squared_error_value(const tarn__tensor *values, int64_t row) {
  float value;
  memcpy(&value, (const int32_t *)values->data + row, sizeof value);
  return value;
}

#endif
