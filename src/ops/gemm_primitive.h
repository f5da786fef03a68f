// Primitives of the product library: one for each shape of a tile, shared by all threads, kept in a bounded cache.
#ifndef TARN_OPS_GEMM_PRIMITIVE_H
#define TARN_OPS_GEMM_PRIMITIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/dtype.h"

// Like tarn__gemm, for one tile. Compared byte by byte: the fields leave no padding.
typedef struct tarn__primitive_key {
  int64_t m, n, k, lda, ldb, ldc;
  int32_t dtype, c_dtype;  // tarn__dtype
  int32_t transpose_a, transpose_b, accumulate, bias, relu, unused;
} tarn__primitive_key;

typedef struct tarn__primitive tarn__primitive;

// Finds or makes the primitive; it stays valid until the release.
tarn_status tarn__primitive_acquire(tarn__primitive **primitive, const tarn__primitive_key *key) TARN_CHECKED;
void tarn__primitive_release(tarn__primitive *primitive);

// Bytes of scratch of one execution.
size_t tarn__primitive_scratch(const tarn__primitive *primitive);

// Runs on the calling thread alone, provided that omp_get_max_threads() is 1.
tarn_status tarn__primitive_run(const tarn__primitive *primitive, const void *a, const void *b, const float *bias,
                                void *c, void *scratch) TARN_CHECKED;

// Version of the library, for `tarn --version`: "oneDNN 2.6.3".
const char *tarn__primitive_library(void);

#endif
