// The op deletions: a placeholder a thread, then a sentence a thread.
#include "device/cuda/cuda_kernels.h"

extern "C" {
#include "ops/deletions.h"
}

static __global__ void put_kernel(const tarn__deletions_view v) {
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < v.placeholders) tarn__deletions_put(&v, k);
}

static __global__ void find_kernel(const tarn__deletions_view v) {
  const int64_t s = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (s < v.sentences) tarn__deletions_find(&v, s);
}

static tarn_status deletions(const tarn__exec *exec, const tarn__node *node) {
  const tarn__deletions_view v = tarn__deletions_see(node);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const size_t bytes = (size_t)v.count * sizeof(int32_t);
  TARN__CUDA(cudaMemcpyAsync(v.filled, v.ids, bytes, cudaMemcpyDeviceToDevice, stream), "copying sentences");
  TARN__CUDA(cudaMemcpyAsync(v.whole, v.ids, bytes, cudaMemcpyDeviceToDevice, stream), "copying sentences");
  TARN__LAUNCH(put_kernel, tarn__blocks(v.placeholders, 256), 256, 0, stream, v);
  TARN__LAUNCH(find_kernel, tarn__blocks(v.sentences, 32), 32, 0, stream, v);
  return TARN_STATUS_OK;
}

void tarn__cuda_deletions_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_DELETIONS].run = deletions;
  kernels[TARN__OP_DELETIONS].scratch = tarn__deletions_scratch;
}
