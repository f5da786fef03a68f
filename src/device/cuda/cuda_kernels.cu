#include "device/cuda/cuda_kernels.h"

tarn__device_kernel tarn__cuda_kernels[TARN__OPS];

static tarn_status mark(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  (void)node;
  return TARN_STATUS_OK;
}

void tarn__cuda_kernels_fill(void) {
  tarn__cuda_kernels[TARN__OP_MARK].run = mark;
#define FILL(name) tarn__cuda_##name##_entries(tarn__cuda_kernels);
  TARN__CUDA_FAMILIES(FILL)
#undef FILL
}

const char *tarn__cuda_lacks(const tarn__device *device, const tarn__node *node) {
  (void)device;
  const char *lacks = tarn__cuda_hadamard_lacks(node);
  if (!lacks) lacks = tarn__cuda_norm_lacks(node);
  if (!lacks) lacks = tarn__cuda_attention_lacks(node);
  return lacks ? lacks : tarn__cuda_linear_attention_lacks(node);
}
