#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/gemm_split.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/peak_kernels.h"
#include "device/cpu/optim/adam_kernels.h"
#include "device/cpu/optim/ridge_kernels.h"
#include "device/devices.h"
#include "device/host_memory.h"

static tarn__gemm product_of(const tarn__device_weight *weight) {
  return (tarn__gemm){.m = 1,
                      .n = weight->rows,
                      .k = weight->cols,
                      .b = weight->value,
                      .ldb = weight->cols,
                      .dtype = weight->dtype,
                      .transpose_b = true,
                      .int8 = weight->int8,
                      .b_scales = weight->scales,
                      .fp32 = weight->fp32};
}

static size_t pack_bytes(const tarn__device_weight *weight) {
  const tarn__gemm product = product_of(weight);
  return tarn__gemm_pack_bytes(&product);
}

static tarn_status pack(void *packed, const tarn__device_weight *weight, int threads) {
  const tarn__gemm product = product_of(weight);
  tarn__gemm_pack(packed, &product, threads);
  return TARN_STATUS_OK;
}

static tarn_status quantise(signed char *values, float *scales, const tarn__device_weight *weight, int threads) {
  const tarn__gemm product = product_of(weight);
  tarn__gemm_quantise(values, scales, &product, threads);
  return TARN_STATUS_OK;
}

static const char *split_lacks(void) {
  return tarn__gemm_split_there() ? NULL : "matrix tiles (amx_tile and amx_bf16 in /proc/cpuinfo)";
}

const tarn__device tarn__device_cpu = {.name = "cpu",
                                       .variant = tarn__isa_name,
                                       .ops = TARN__OPS,
                                       .kernels = {[TARN__F32] = tarn__cpu_kernels, [TARN__BF16] = tarn__cpu_kernels},
                                       .split_lacks = split_lacks,
                                       TARN__HOST_MEMORY,
                                       .grad_norm = tarn__cpu_grad_norm,
                                       .adam_step = tarn__cpu_adam_step,
                                       .grad_sum_add = tarn__cpu_grad_sum_add,
                                       .ridge_add = tarn__cpu_ridge_add,
                                       .ridge_take = tarn__cpu_ridge_take,
                                       .cholesky = tarn__cpu_cholesky,
                                       .peaks = tarn__cpu_peaks,
                                       .pack_bytes = pack_bytes,
                                       .pack = pack,
                                       .quantise = quantise};
