// The products of src/device/cuda/product.h in plain loops, with sums in double so that no order of additions matters.
#include <vector>

#include "cuda_host.h"
#include "device/cuda/product.h"

namespace {

double element(const void *x, tarn__dtype dtype, int64_t i) {
  if (dtype == TARN__BF16) return __bfloat162float(((const tarn__bf16 *)x)[i]);
  return dtype == TARN__F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

void store(void *x, tarn__dtype dtype, int64_t i, double value) {
  if (dtype == TARN__BF16)
    ((tarn__bf16 *)x)[i] = __float2bfloat16_rn((float)value);
  else if (dtype == TARN__F64)
    ((double *)x)[i] = value;
  else
    ((float *)x)[i] = (float)value;
}

// One product; A and B are copied into rows and columns, so that the sums run along memory.
void one(const tarn__product *p, int64_t batch) {
  std::vector<double> a((size_t)(p->m * p->k)), b((size_t)(p->n * p->k));
  const int64_t from_a = batch * p->stride_a, from_b = batch * p->stride_b, from_c = batch * p->stride_c;
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t l = 0; l < p->k; l++)
      a[(size_t)(i * p->k + l)] = element(p->a, p->dtype, from_a + (p->transpose_a ? l * p->lda + i : i * p->lda + l));
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t l = 0; l < p->k; l++)
      b[(size_t)(j * p->k + l)] = element(p->b, p->dtype, from_b + (p->transpose_b ? j * p->ldb + l : l * p->ldb + j));
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) {
      const double *x = a.data() + i * p->k, *y = b.data() + j * p->k;
      double sum = 0.0;
      for (int64_t l = 0; l < p->k; l++) sum += x[l] * y[l];
      const int64_t at = from_c + i * p->ldc + j;
      sum *= (double)p->alpha;
      if (p->beta != 0.0f) sum += (double)p->beta * element(p->c, p->out, at);
      if (p->bias) sum += (double)p->bias[j];
      if (p->epilogue == TARN__EPILOGUE_RELU && sum < 0.0) sum = 0.0;
      if (p->epilogue == TARN__EPILOGUE_GELU_TANH) {
        if (p->z) store(p->z, p->out, at, sum);
        sum *= 0.5 * (1.0 + tanh(0.79788456080286535588 * (sum + 0.044715 * sum * sum * sum)));
      }
      store(p->c, p->out, at, sum);
    }
}

}  // namespace

// There is no library to find.
tarn_status tarn__cuda_product_open(void) { return TARN_STATUS_OK; }

tarn_status tarn__cuda_product(const tarn__product *product, cudaStream_t stream) {
  char *room = nullptr;  // not used, but taken as on a card
  TARN_TRY(tarn__cuda_product_room(&room, stream));
  TARN__CUDA(tarn__host_queue(stream), "multiplying");
  for (int64_t b = 0; b < product->batch; b++) one(product, b);
  return TARN_STATUS_OK;
}
