// Linear attention for single rows, each of which follows the rows in a cache.
#include <omp.h>
#include <string.h>

#include "device/cpu/attention/linear_attention_kernels.h"
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/isa/isa.h"
#include "ops/linear_attention.h"

// For exponents, per thread: features of a row in the type of activations, twice, and factors of its state.
static size_t row_bytes(const tarn__linear_attention_spec *spec) {
  return spec->exponents ? 3 * (((size_t)spec->features * sizeof(float) + 63) & ~(size_t)63) : 0;
}

size_t tarn__cpu_linear_attention_rows_scratch(const tarn__node *node, int threads) {
  return row_bytes(&((const tarn__linear_attention_rows_attr *)node->attr)->spec) * (size_t)threads;
}

// Converts the exponents q and k of a head of a row to features relative to the new state, whose levels are written;
// returns the factors of the old state.
static const float *raise_row(tarn__band *q, tarn__band *k, tarn__dtype dtype, const float *before, float *after,
                              void *scratch, const tarn__linear_attention_spec *spec) {
  const tarn__linear_attention_kernels *kernels = TARN__TABLE_NOW(tarn__linear_attention_kernels);
  const int64_t m = spec->features, z = m * spec->width;
  const size_t part = row_bytes(spec) / 3;
  float *levels = after + z + m, *lifts = scratch;
  for (int64_t f = 0; f < m; f++) levels[f] = before && before[z + f] != 0.0f ? before[z + m + f] : TARN__LEVEL_LOWEST;
  memcpy(lifts, levels, (size_t)m * sizeof(float));
  kernels->highest(levels, *k, true);
  kernels->lift(lifts, levels, lifts, m);
  const tarn__band own_q = {(char *)scratch + part, dtype, m, 1, m},
                   own_k = {(char *)scratch + 2 * part, dtype, m, 1, m};
  kernels->raise(own_q, *q, levels, true);
  kernels->raise(own_k, *k, levels, false);
  *q = own_q, *k = own_k;
  return lifts;
}

// A head of a row reads and writes all of its state, so a step is memory-bound.
tarn_status tarn__cpu_linear_attention_rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__linear_attention_rows_attr *attr = node->attr;
  const tarn__linear_attention_spec *spec = &attr->spec;
  const tarn__tensor *phi = node->in[TARN__LINEAR_ATTENTION_PHI], *v = node->in[TARN__LINEAR_ATTENTION_VALUES];
  const tarn__tensor *cache = node->in[TARN__LINEAR_ATTENTION_CACHE], *y = node->out[0];
  const int64_t m = spec->features, width = spec->width, size = tarn__linear_attention_head_state(spec);
  float *states = cache->data;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t item = 0; item < y->rows * spec->heads; item++) {
    const int64_t i = item / spec->heads, h = item % spec->heads, row = tarn__linear_attention_before(node, i);
    const float *before = row < 0 ? NULL : states + row * cache->cols + h * size, *factors = NULL;
    float *after = states + (attr->first_row + i) * cache->cols + h * size;
    tarn__band q = tarn__band_of(phi, i, 1, h * m, m), k = tarn__band_of(phi, i, 1, (spec->heads + h) * m, m);
    if (spec->exponents)
      factors = raise_row(&q, &k, v->dtype, before, after,
                          (char *)node->scratch + row_bytes(spec) * (size_t)omp_get_thread_num(), spec);
    TARN__TABLE_NOW(tarn__linear_attention_kernels)
        ->step(tarn__band_of(y, i, 1, h * width, width).data, q.data, k.data,
               tarn__band_of(v, i, 1, spec->value_column + h * width, width).data, v->dtype, before, factors, after, m,
               width);
  }
  return TARN_STATUS_OK;
}
