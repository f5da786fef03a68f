#include "device/cpu/gemm.h"
#include "device/devices.h"
#include "device/host_memory.h"
#include "graph/graph.h"

static tarn__kernel kernel(const tarn__op *op, tarn__dtype dtype) {
  (void)dtype;
  return op->cpu;
}

static tarn__gemm product_of(const tarn__device_weight *weight) {
  return (tarn__gemm){.m = 1,
                      .n = weight->rows,
                      .k = weight->cols,
                      .b = weight->value,
                      .ldb = weight->cols,
                      .dtype = weight->dtype,
                      .transpose_b = true,
                      .int8 = weight->int8};
}

static size_t pack_bytes(const tarn__device_weight *weight) {
  const tarn__gemm product = product_of(weight);
  return tarn__gemm_pack_bytes(&product);
}

static void pack(void *packed, const tarn__device_weight *weight, int threads) {
  const tarn__gemm product = product_of(weight);
  tarn__gemm_pack(packed, &product, threads);
}

const tarn__device tarn__device_cpu = {.name = "cpu",
                                       .kernel = kernel,
                                       .computes = {[TARN__F32] = true, [TARN__BF16] = true},
                                       TARN__HOST_MEMORY,
                                       .pack_bytes = pack_bytes,
                                       .pack = pack};
