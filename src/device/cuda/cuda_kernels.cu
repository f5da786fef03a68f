#include "device/cuda/cuda_kernels.h"

#include <stdio.h>

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

const char *tarn__cuda_limit(const char *what, int64_t most, const char *of, int64_t count) {
  static thread_local char text[128];
  snprintf(text, sizeof text, "%s of at most %lld %s, not %lld", what, (long long)most, of, (long long)count);
  return text;
}

const char *tarn__cuda_lacks(const tarn__device *device, const tarn__node *node) {
  (void)device;
  const char *lacks = NULL;
#define ASK(name) \
  if (!lacks) lacks = tarn__cuda_##name##_lacks(node);
  TARN__CUDA_LIMITED(ASK)
#undef ASK
  return lacks;
}
