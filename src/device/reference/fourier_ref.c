// Plain C reference: the defining sums, first along features and then along tokens.
#include "ops/fourier.h"

#include <math.h>

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

// Re(F_n z) of complex rows, the transforms of the rows of x along features.
static void sentence(real *y, const real *z, int64_t n, int64_t d, bool add) {
  const double turn = 6.28318530717958647692;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < d; j++) {
      real sum = 0;
      for (int64_t k = 0; k < n; k++) {
        const double angle = turn * (double)(i * k % n) / (double)n;
        sum += (real)cos(angle) * z[2 * (k * d + j)] + (real)sin(angle) * z[2 * (k * d + j) + 1];
      }
      y[i * d + j] = add ? y[i * d + j] + sum : sum;
    }
}

tarn_status TARN__REF(tarn__fourier_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__FOURIER_X], *offsets = node->in[TARN__FOURIER_OFFSETS], *y = node->out[0];
  const int64_t d = y->cols;
  const int32_t *offset = offsets->data;
  real *z = node->scratch;  // [longest, d] real and imaginary parts
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const int64_t n = offset[s + 1] - offset[s];
    const real *from = (const real *)x->data + offset[s] * d;
    for (int64_t r = 0; r < n; r++)
      for (int64_t j = 0; j < d; j++) {
        real re = 0, im = 0;
        for (int64_t k = 0; k < d; k++) {
          const double angle = 6.28318530717958647692 * (double)(j * k % d) / (double)d;
          re += (real)cos(angle) * from[r * d + k];
          im -= (real)sin(angle) * from[r * d + k];
        }
        z[2 * (r * d + j)] = re;
        z[2 * (r * d + j) + 1] = im;
      }
    sentence((real *)y->data + offset[s] * d, z, n, d, node->in[TARN__FOURIER_PREVIOUS] != NULL);
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__fourier_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(((const tarn__fourier_attr *)node->attr)->longest * node->out[0]->cols) * 2 * sizeof(real);
}
