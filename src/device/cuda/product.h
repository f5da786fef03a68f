// Matrix products of the card: cuBLASLt (product_cublas.cu), and plain loops where there is no card
// (tests/cuda_host/products.cc). Row-major, fp32 sums.
//
//   C = act(alpha op(A) op(B) + beta C + bias)      op(A) [m, k], op(B) [k, n], C [m, n]
//
// The bits of a result repeat: one algorithm is chosen for each class of shapes and kept.
#ifndef TARN_DEVICE_CUDA_PRODUCT_H
#define TARN_DEVICE_CUDA_PRODUCT_H

#include "device/cuda/cuda.h"

typedef enum tarn__epilogue {
  TARN__EPILOGUE_NONE,
  TARN__EPILOGUE_RELU,
  TARN__EPILOGUE_GELU_TANH  // TARN__GELU_TANH of ops/activation_table.h, the only GELU that cuBLASLt has
} tarn__epilogue;

typedef struct tarn__product {
  int64_t m, n, k;
  const void *a, *b;              // both of `dtype`
  void *c;                        // of `out`
  int64_t lda, ldb, ldc;          // elements from one row to the next
  bool transpose_a, transpose_b;  // A is stored [k, m], B is stored [n, k]
  tarn__dtype dtype, out;         // F32 and F32, BF16 and BF16, BF16 and F32, F64 and F64
  tarn__fp32 fp32;                // of F32: EXACT or TF32
  float alpha;                    // 1 for most
  float beta;                     // 0: C is not read; 1: added to
  const float *bias;              // [n], or NULL; it may be rounded to `out`
  tarn__epilogue epilogue;
  void *z;                               // with GELU_TANH: what the activation is of, [m, n] of `out` with ldc; or NULL
  int64_t batch;                         // products, 1 for one
  int64_t stride_a, stride_b, stride_c;  // elements from one product to the next, of z as of C
} tarn__product;

// Memory of a stream that products are computed on, taken at the first of them: the library's workspace, and behind it
// a bias that is rounded to bf16. The device's `stream_bytes`.
enum { TARN__PRODUCT_WORKSPACE = 32 << 20, TARN__PRODUCT_BIAS = 256 << 10 };
tarn_status tarn__cuda_product_room(char **memory, cudaStream_t stream);

// Any of m, n and batch may be 0, and k too: then C = act(beta C + bias).
tarn_status tarn__cuda_product(const tarn__product *product, cudaStream_t stream);

// Called when the card is opened: finds cuBLASLt. Fails with UNSUPPORTED, in one line, if it is missing or too old.
tarn_status tarn__cuda_product_open(void);
// Frees the room of a stream that is being closed.
void tarn__cuda_product_free(cudaStream_t stream);

#endif
