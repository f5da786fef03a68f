// What the files of linear attention share on the host.
#ifndef TARN_DEVICE_CUDA_ATTENTION_LINEAR_ATTENTION_H
#define TARN_DEVICE_CUDA_ATTENTION_LINEAR_ATTENTION_H

#include "device/cuda/attention/linear_states.h"

// Bytes of shared memory of a warp with a state of so many features.
static inline size_t tarn__linear_bytes(int64_t features) {
  return (size_t)(features * TARN__LINEAR_SUMS) * sizeof(float);
}

template <typename T, typename P>
static tarn__linear<T, P> tarn__linear_of(const tarn__node *node, const tarn__linear_attention_spec *spec) {
  const tarn__tensor *phi = node->in[TARN__LINEAR_ATTENTION_PHI], *values = node->in[TARN__LINEAR_ATTENTION_VALUES];
  const bool rows = node->op->id == TARN__OP_LINEAR_ATTENTION_ROWS;
  const tarn__tensor *start = rows ? NULL : node->in[TARN__LINEAR_ATTENTION_START];
  tarn__linear<T, P> w = {};
  w.phi = (const P *)phi->data;
  w.values = (const T *)values->data + spec->value_column;
  w.offset = rows ? (const int32_t *)nullptr : (const int32_t *)node->in[TARN__LINEAR_ATTENTION_OFFSETS]->data;
  w.start = start ? (const float *)start->data : (const float *)nullptr;
  w.phi_step = phi->cols;
  w.value_step = values->cols;
  w.heads = spec->heads;
  w.width = spec->width;
  w.features = spec->features;
  w.size = tarn__linear_attention_head_state(spec);
  w.causal = spec->causal != 0;
  w.exponents = spec->exponents != 0;
  return w;
}

// A warp for every 32 of `across` numbers of every head of every sentence, `times` times.
static inline dim3 tarn__linear_blocks(const tarn__node *node, const tarn__linear_attention_spec *spec, int64_t times,
                                       int64_t across) {
  const int64_t sentences = node->in[TARN__LINEAR_ATTENTION_OFFSETS]->cols - 1;
  return dim3((unsigned)(times * sentences), (unsigned)spec->heads, tarn__blocks(across, TARN__WARP_SIZE));
}

// Calls f<T, P> of a node: exponents are fp32 for all types of values.
#define TARN__LINEAR_BY_DTYPE(f, exec, node)                                                              \
  ((node)->in[TARN__LINEAR_ATTENTION_VALUES]->dtype != TARN__BF16 ? f<float, float>(exec, node)           \
   : (node)->in[TARN__LINEAR_ATTENTION_PHI]->dtype == TARN__BF16  ? f<tarn__bf16, tarn__bf16>(exec, node) \
                                                                  : f<tarn__bf16, float>(exec, node))

void tarn__cuda_linear_attention_backward_entries(tarn__device_kernel *kernels);

#endif
