// Products by cuBLASLt, which is found at run time: the module does not link with it, and it is never carried.
//
// A row-major C = A B is the column-major C^T = B^T A^T, so the library's A is our B and its rows are our columns; a
// bias along columns is one along its rows, as its epilogues want it.
#include <cublasLt.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda_device.h"
#include "device/cuda/product.h"
#include "device/cuda/products/activation_cuda.h"

// --- the library

// It cannot settle on one form of this list.
// clang-format off
#define FUNCTIONS(F)                                                             \
  F(Create) F(GetStatusString) F(Matmul) F(MatmulAlgoGetHeuristic)               \
  F(MatmulDescCreate) F(MatmulDescSetAttribute)                                  \
  F(MatrixLayoutCreate) F(MatrixLayoutSetAttribute)                              \
  F(MatmulPreferenceCreate) F(MatmulPreferenceSetAttribute)
// clang-format on

// The handle, and one description of each kind that every call fills in; `lock` is held meanwhile.
static struct {
#define POINTER(name) decltype(&cublasLt##name) name;
  FUNCTIONS(POINTER)
#undef POINTER
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulPreference_t preference;
} lt;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { LEAST_VERSION = 120400, WORKSPACE = TARN__PRODUCT_WORKSPACE };

static void *open_library(char *names, size_t size) {
  const int own = CUDART_VERSION / 1000, other = own == 12 ? 13 : 12;
  char name[3][64];
  void *library = NULL;
  snprintf(name[0], sizeof name[0], "libcublasLt.so.%d", own);
  snprintf(name[1], sizeof name[1], "libcublasLt.so.%d", other);
  snprintf(name[2], sizeof name[2], "libcublasLt.so");
  snprintf(names, size, "%s, %s or %s", name[0], name[1], name[2]);
  for (int i = 0; i < 3 && !library; i++) {
    char path[128];
    library = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
    // Where the toolkit is installed, which need not be known to the loader.
    snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", name[i]);
    if (!library) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return library;
}

static tarn_status find_functions(void *library) {
  const auto version = (decltype(&cublasLtGetVersion))dlsym(library, "cublasLtGetVersion");
  const size_t found = version ? version() : 0;
  TARN_REQUIRE(found >= LEAST_VERSION, UNSUPPORTED,
               "%s: products need cuBLASLt of CUDA 12.4 or later, and the one that is found is of version %zu.%zu",
               tarn__cuda_name(), found / 10000, found % 10000 / 100);
#define FIND(name)                                                       \
  lt.name = (decltype(&cublasLt##name))dlsym(library, "cublasLt" #name); \
  TARN_REQUIRE(lt.name, UNSUPPORTED, "%s: cuBLASLt has no function cublasLt" #name, tarn__cuda_name());
  FUNCTIONS(FIND)
#undef FIND
  return TARN_STATUS_OK;
}

static tarn_status failed(cublasStatus_t status, const char *what) {
  return tarn__fail(status == CUBLAS_STATUS_ALLOC_FAILED ? TARN_STATUS_MEMORY : TARN_STATUS_IO,
                    "%s: %s failed: %s (status %d of cuBLASLt)", tarn__cuda_name(), what, lt.GetStatusString(status),
                    (int)status);
}

#define TRY_LT(call, what)                                                \
  do {                                                                    \
    const cublasStatus_t status_ = (call);                                \
    if (status_ != CUBLAS_STATUS_SUCCESS) return failed(status_, (what)); \
  } while (0)

tarn_status tarn__cuda_product_open(void) {
  const char *const what = "preparing products";
  char names[256];
  if (lt.handle) return TARN_STATUS_OK;
  void *library = open_library(names, sizeof names);
  TARN_REQUIRE(library, UNSUPPORTED,
               "%s: products need cuBLASLt of CUDA 12.4 or later, but there is no %s where libraries are looked for",
               tarn__cuda_name(), names);
  TARN_TRY(find_functions(library));
  TRY_LT(lt.MatmulDescCreate(&lt.product, CUBLAS_COMPUTE_32F, CUDA_R_32F), what);
  TRY_LT(lt.MatrixLayoutCreate(&lt.a, CUDA_R_32F, 1, 1, 1), what);
  TRY_LT(lt.MatrixLayoutCreate(&lt.b, CUDA_R_32F, 1, 1, 1), what);
  TRY_LT(lt.MatrixLayoutCreate(&lt.c, CUDA_R_32F, 1, 1, 1), what);
  TRY_LT(lt.MatmulPreferenceCreate(&lt.preference), what);
  TRY_LT(lt.Create(&lt.handle), what);
  return TARN_STATUS_OK;
}

// --- what the library does not do: an epilogue that it lacks for a type or a layout, and sums of nothing

// The bias is added, and C made act(C), element by element; beta is 0 for sums of nothing. A row of the grid has one
// product of a batch.
template <typename T>
static __global__ void finish_kernel(T *c, T *z, const float *bias, float beta, int64_t m, int64_t n, int64_t ldc,
                                     int64_t stride, int64_t batch, tarn__epilogue epilogue) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m * n) return;
  for (int64_t b = blockIdx.y; b < batch; b += gridDim.y) {
    const int64_t at = b * stride + i / n * ldc + i % n;
    if constexpr (sizeof(T) == sizeof(double)) {
      double x = beta != 0.0f ? (double)beta * c[at] : 0.0;
      if (bias) x += (double)bias[i % n];
      c[at] = epilogue == TARN__EPILOGUE_RELU && x < 0.0 ? 0.0 : x;
    } else {
      float x = beta != 0.0f ? beta * tarn__get(c[at]) : 0.0f;
      if (bias) x += bias[i % n];
      if (epilogue == TARN__EPILOGUE_RELU && x < 0.0f) x = 0.0f;
      if (epilogue == TARN__EPILOGUE_GELU_TANH) {
        if (z) tarn__set(z + at, x);
        x = tarn__form<TARN__GELU_TANH>::value(x);
      }
      tarn__set(c + at, x);
    }
  }
}

template <typename T>
static tarn_status finish_as(const tarn__product *p, float beta, cudaStream_t stream) {
  const dim3 blocks(tarn__blocks(p->m * p->n, 256), (unsigned)(p->batch < 65535 ? p->batch : 65535));
  TARN__LAUNCH(finish_kernel<T>, blocks, 256, 0, stream, (T *)p->c, (T *)p->z, p->bias, beta, p->m, p->n, p->ldc,
               p->stride_c, p->batch, p->epilogue);
  return TARN_STATUS_OK;
}

static tarn_status finish(const tarn__product *p, float beta, cudaStream_t stream) {
  if (p->out == TARN__F64) return finish_as<double>(p, beta, stream);
  return p->out == TARN__BF16 ? finish_as<tarn__bf16>(p, beta, stream) : finish_as<float>(p, beta, stream);
}

static __global__ void round_bias_kernel(tarn__bf16 *to, const float *from, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = __float2bfloat16_rn(from[i]);
}

// --- descriptions

// Where the epilogue of a product is computed: in the library, with the bias as it is or rounded to bf16, or after it.
typedef enum way { WAY_WHOLE, WAY_ROUNDED, WAY_AFTER, WAYS } way;

// What a choice of an algorithm depends on. It is cleared before it is filled, because it is compared as bytes.
typedef struct shape_class {
  int64_t m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
  int32_t align_a, align_b, align_c, align_bias, align_z;
  int32_t dtype, out, fp32, epilogue;
  bool transpose_a, transpose_b, adds, has_bias, has_z, exact;
} shape_class;

typedef struct choice {
  struct choice *next;
  shape_class shape;
  way how;
  cublasLtMatmulAlgo_t algorithm;
} choice;
enum { CHAINS = 1024, ROWS_EACH = 256 };
static choice *choices[CHAINS];

static int32_t alignment(const void *pointer) {
  const uintptr_t bits = (uintptr_t)pointer | 16u;
  return (int32_t)(bits & (~bits + 1));
}

static int64_t rounded(int64_t rows) { return (rows + ROWS_EACH - 1) / ROWS_EACH * ROWS_EACH; }

// Rows of a batch vary: those of A and C, or, in gradients of weights, the terms of the sums.
static shape_class class_of(const tarn__product *p, bool exact) {
  shape_class shape;
  memset(&shape, 0, sizeof shape);
  shape.m = exact || p->transpose_a ? p->m : rounded(p->m);
  shape.n = p->n;
  shape.k = exact || !p->transpose_a ? p->k : rounded(p->k);
  shape.lda = p->lda;
  shape.ldb = p->ldb;
  shape.ldc = p->ldc;
  shape.batch = p->batch;
  shape.stride_a = p->batch > 1 ? p->stride_a : 0;
  shape.stride_b = p->batch > 1 ? p->stride_b : 0;
  shape.stride_c = p->batch > 1 ? p->stride_c : 0;
  shape.align_a = alignment(p->a);
  shape.align_b = alignment(p->b);
  shape.align_c = alignment(p->c);
  shape.align_bias = alignment(p->bias);
  shape.align_z = alignment(p->z);
  shape.dtype = (int32_t)p->dtype;
  shape.out = (int32_t)p->out;
  shape.fp32 = p->dtype == TARN__F32 ? (int32_t)p->fp32 : 0;
  shape.epilogue = (int32_t)p->epilogue;
  shape.transpose_a = p->transpose_a;
  shape.transpose_b = p->transpose_b;
  shape.adds = p->beta != 0.0f;
  shape.has_bias = p->bias != NULL;
  shape.has_z = p->z != NULL;
  shape.exact = exact;
  return shape;
}

static cudaDataType_t data_type(tarn__dtype dtype) {
  return dtype == TARN__BF16 ? CUDA_R_16BF : dtype == TARN__F64 ? CUDA_R_64F : CUDA_R_32F;
}

#define SET(attribute, type, value)                                                                                \
  do {                                                                                                             \
    type value_ = (type)(value);                                                                                   \
    TRY_LT(lt.MatmulDescSetAttribute(lt.product, CUBLASLT_MATMUL_DESC_##attribute, &value_, sizeof value_), what); \
  } while (0)
#define SET_LAYOUT(attribute, type, value)                                                                         \
  do {                                                                                                             \
    type value_ = (type)(value);                                                                                   \
    TRY_LT(lt.MatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_##attribute, &value_, sizeof value_), what); \
  } while (0)
#define PREFER(attribute, type, value)                                                                               \
  do {                                                                                                               \
    type value_ = (type)(value);                                                                                     \
    TRY_LT(lt.MatmulPreferenceSetAttribute(lt.preference, CUBLASLT_MATMUL_PREF_##attribute, &value_, sizeof value_), \
           what);                                                                                                    \
  } while (0)

static const char *const what = "describing a product";

// Of a row-major matrix [rows, cols].
static tarn_status describe_matrix(cublasLtMatrixLayout_t layout, tarn__dtype dtype, int64_t rows, int64_t cols,
                                   int64_t ld, int64_t batch, int64_t stride) {
  SET_LAYOUT(TYPE, uint32_t, data_type(dtype));
  SET_LAYOUT(ROWS, uint64_t, cols);
  SET_LAYOUT(COLS, uint64_t, rows);
  SET_LAYOUT(LD, int64_t, ld);
  SET_LAYOUT(BATCH_COUNT, int32_t, batch);
  SET_LAYOUT(STRIDED_BATCH_OFFSET, int64_t, batch > 1 ? stride : 0);
  return TARN_STATUS_OK;
}

static tarn_status describe_matrices(const tarn__product *p, int64_t m, int64_t k) {
  TARN_TRY(
      describe_matrix(lt.a, p->dtype, p->transpose_a ? k : m, p->transpose_a ? m : k, p->lda, p->batch, p->stride_a));
  TARN_TRY(describe_matrix(lt.b, p->dtype, p->transpose_b ? p->n : k, p->transpose_b ? k : p->n, p->ldb, p->batch,
                           p->stride_b));
  return describe_matrix(lt.c, p->out, m, p->n, p->ldc, p->batch, p->stride_c);
}

static cublasLtEpilogue_t epilogue_of(const tarn__product *p) {
  const bool bias = p->bias != NULL;
  switch (p->epilogue) {
    case TARN__EPILOGUE_RELU:
      return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case TARN__EPILOGUE_GELU_TANH:
      if (p->z) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case TARN__EPILOGUE_NONE:
      break;
  }
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// `bias` is that of the way. The matrices change sides.
static tarn_status describe_product(const tarn__product *p, way how, const void *bias) {
  const bool tf32 = p->dtype == TARN__F32 && p->fp32 == TARN__FP32_TF32, whole = how != WAY_AFTER;
  SET(COMPUTE_TYPE, int32_t,
      p->dtype == TARN__F64 ? CUBLAS_COMPUTE_64F
      : tf32                ? CUBLAS_COMPUTE_32F_FAST_TF32
                            : CUBLAS_COMPUTE_32F);
  SET(SCALE_TYPE, int32_t, p->dtype == TARN__F64 ? CUDA_R_64F : CUDA_R_32F);
  SET(TRANSA, int32_t, p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  SET(TRANSB, int32_t, p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  SET(EPILOGUE, uint32_t, whole ? epilogue_of(p) : CUBLASLT_EPILOGUE_DEFAULT);
  SET(BIAS_POINTER, const void *, whole ? bias : NULL);
  SET(BIAS_DATA_TYPE, int32_t, data_type(p->out));
  SET(BIAS_BATCH_STRIDE, int64_t, 0);
  SET(EPILOGUE_AUX_POINTER, void *, whole ? p->z : NULL);
  SET(EPILOGUE_AUX_LD, int64_t, whole && p->z ? p->ldc : 0);
  SET(EPILOGUE_AUX_BATCH_STRIDE, int64_t, whole && p->z && p->batch > 1 ? p->stride_c : 0);
  return TARN_STATUS_OK;
}

// --- algorithms

// The library's first choice for a class; *found is false if it cannot compute it in this way. Sums are never added in
// an order that depends on the run.
static tarn_status ask(bool *found, choice *to, const tarn__product *p, way how, const void *bias) {
  const shape_class *shape = &to->shape;
  TARN_TRY(describe_matrices(p, shape->m, shape->k));
  TARN_TRY(describe_product(p, how, bias));
  PREFER(MAX_WORKSPACE_BYTES, uint64_t, WORKSPACE);
  PREFER(REDUCTION_SCHEME_MASK, uint32_t, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  PREFER(MIN_ALIGNMENT_A_BYTES, uint32_t, shape->align_b);
  PREFER(MIN_ALIGNMENT_B_BYTES, uint32_t, shape->align_a);
  PREFER(MIN_ALIGNMENT_C_BYTES, uint32_t, shape->align_c);
  PREFER(MIN_ALIGNMENT_D_BYTES, uint32_t, shape->align_c);
  cublasLtMatmulHeuristicResult_t result;
  memset(&result, 0, sizeof result);
  int count = 0;
  const cublasStatus_t status =
      lt.MatmulAlgoGetHeuristic(lt.handle, lt.product, lt.b, lt.a, lt.c, lt.c, lt.preference, 1, &result, &count);
  *found = status == CUBLAS_STATUS_SUCCESS && count > 0 && result.state == CUBLAS_STATUS_SUCCESS;
  if (!*found && status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE &&
      status != CUBLAS_STATUS_SUCCESS)
    return failed(status, "choosing an algorithm of a product");
  to->how = how;
  to->algorithm = result.algo;
  return TARN_STATUS_OK;
}

// Whether a way can be meant for a product.
static bool fits(const tarn__product *p, way how) {
  if (how == WAY_AFTER) return true;
  if (p->out == TARN__F64) return !p->bias && p->epilogue == TARN__EPILOGUE_NONE;
  // The library wants a bias of the type of C.
  const bool rounds = p->bias && p->out == TARN__BF16;
  return how == WAY_ROUNDED ? rounds && p->n * 2 <= TARN__PRODUCT_BIAS : !rounds;
}

static tarn_status choose(choice **out, const tarn__product *p, const void *rounded_bias, bool exact) {
  choice made;
  memset(&made, 0, sizeof made);
  made.shape = class_of(p, exact);
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < sizeof made.shape; i++)
    hash = (hash ^ ((const unsigned char *)&made.shape)[i]) * 1099511628211u;
  choice **chain = &choices[hash % CHAINS];
  for (*out = *chain; *out; *out = (*out)->next)
    if (memcmp(&(*out)->shape, &made.shape, sizeof made.shape) == 0) return TARN_STATUS_OK;
  bool found = false;
  for (int how = 0; how < WAYS && !found; how++)
    if (fits(p, (way)how)) TARN_TRY(ask(&found, &made, p, (way)how, how == WAY_ROUNDED ? rounded_bias : p->bias));
  TARN_REQUIRE(found, UNSUPPORTED, "%s: cuBLASLt has no product of [%lld, %lld] and [%lld, %lld] in %s",
               tarn__cuda_name(), (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n,
               tarn__dtype_name(p->dtype));
  *out = (choice *)malloc(sizeof **out);
  TARN_REQUIRE(*out, MEMORY, "out of memory");
  **out = made;
  (*out)->next = *chain;
  *chain = *out;
  return TARN_STATUS_OK;
}

static tarn_status run(cublasStatus_t *status, const tarn__product *p, const choice *with, char *room,
                       cudaStream_t stream) {
  tarn__bf16 *rounded_bias = (tarn__bf16 *)(room + WORKSPACE);
  if (with->how == WAY_ROUNDED)
    TARN__LAUNCH(round_bias_kernel, tarn__blocks(p->n, 256), 256, 0, stream, rounded_bias, p->bias, p->n);
  TARN_TRY(describe_matrices(p, p->m, p->k));
  TARN_TRY(describe_product(p, with->how, with->how == WAY_ROUNDED ? (const void *)rounded_bias : p->bias));
  const double alpha = (double)p->alpha, beta = (double)p->beta;
  const bool wide = p->dtype == TARN__F64;
  *status = lt.Matmul(lt.handle, lt.product, wide ? (const void *)&alpha : &p->alpha, p->b, lt.b, p->a, lt.a,
                      wide ? (const void *)&beta : &p->beta, p->c, lt.c, p->c, lt.c, &with->algorithm, room, WORKSPACE,
                      stream);
  return TARN_STATUS_OK;
}

static tarn_status multiply(const tarn__product *p, cudaStream_t stream, way *how) {
  choice *with = NULL;
  char *room = NULL;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  TARN_TRY(tarn__cuda_product_room(&room, stream));
  TARN_TRY(choose(&with, p, room + WORKSPACE, false));
  TARN_TRY(run(&status, p, with, room, stream));
  // An algorithm of the class need not be one of all its shapes.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
    TARN_TRY(choose(&with, p, room + WORKSPACE, true));
    TARN_TRY(run(&status, p, with, room, stream));
  }
  *how = with->how;
  return status == CUBLAS_STATUS_SUCCESS ? TARN_STATUS_OK : failed(status, "a product");
}

tarn_status tarn__cuda_product(const tarn__product *p, cudaStream_t stream) {
  way how = WAY_WHOLE;
  if (p->m == 0 || p->n == 0 || p->batch == 0) return TARN_STATUS_OK;
  if (p->k == 0) return finish(p, p->beta, stream);
  TARN_REQUIRE(p->dtype != TARN__F32 || p->fp32 == TARN__FP32_EXACT || p->fp32 == TARN__FP32_TF32, INTERNAL,
               "a product of a kind that the card does not have");
  pthread_mutex_lock(&lock);
  const tarn_status status = multiply(p, stream, &how);
  pthread_mutex_unlock(&lock);
  TARN_TRY(status);
  if (how != WAY_AFTER || (!p->bias && p->epilogue == TARN__EPILOGUE_NONE)) return TARN_STATUS_OK;
  return finish(p, 1.0f, stream);
}
