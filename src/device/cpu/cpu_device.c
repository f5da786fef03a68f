#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/gemm_int4.h"
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
                      .int8 = weight->rounding == TARN__ROUNDING_INT8,
                      .int4 = weight->rounding == TARN__ROUNDING_INT4,
                      .b_scales = weight->scales,
                      .fp32 = weight->fp32};
}

static size_t pack_bytes(const tarn__device *device, const tarn__device_weight *weight) {
  (void)device;
  const tarn__gemm product = product_of(weight);
  return tarn__gemm_pack_bytes(&product);
}

static tarn_status pack(const tarn__device *device, void *packed, const tarn__device_weight *weight, int threads) {
  (void)device;
  const tarn__gemm product = product_of(weight);
  tarn__gemm_pack(packed, &product, threads);
  return TARN_STATUS_OK;
}

static tarn_status quantise(const tarn__device *device, void *values, void *scales, const tarn__device_weight *weight,
                            int threads) {
  (void)device;
  const tarn__gemm product = product_of(weight);
  if (product.int4)
    tarn__gemm_round_int4(values, scales, &product, threads);
  else
    tarn__gemm_quantise(values, scales, &product, threads);
  return TARN_STATUS_OK;
}

static const char *fp32_lacks(const tarn__device *device, tarn__fp32 fp32) {
  (void)device;
  if (fp32 == TARN__FP32_TF32) return "the tensor cores of a card (the device cuda)";
  return tarn__gemm_split_there() ? NULL : "matrix tiles (amx_tile and amx_bf16 in /proc/cpuinfo)";
}

static const char *variant(const tarn__device *device) {
  (void)device;
  return tarn__isa_name();
}

static tarn_status peaks(const tarn__device *device, tarn__device_peaks *peaks, int threads) {
  (void)device;
  return tarn__cpu_peaks(peaks, threads);
}

static double flops_now(const tarn__device *device, int threads) {
  (void)device;
  return tarn__cpu_flops_now(threads);
}

static tarn_status open(const tarn__device **device, int ordinal) {
  return tarn__host_open(device, &tarn__device_cpu, ordinal);
}

const tarn__device_type tarn__cpu_type = {
    .name = "cpu",
    .ops = TARN__OPS,
    .kernels = {[TARN__F32] = tarn__cpu_kernels, [TARN__BF16] = tarn__cpu_kernels},
    .open = open,
    .variant = variant,
    .joins = tarn__cpu_attention_joins,
    .fp32_lacks = fp32_lacks,
    .peaks = peaks,
    .flops_now = flops_now,
    TARN__HOST_MEMORY,
    .pack_bytes = pack_bytes,
    .pack = pack,
    .quantise = quantise,
    .grad_norm = tarn__cpu_grad_norm,
    .adam_step = tarn__cpu_adam_step,
    .grad_sum_add = tarn__cpu_grad_sum_add,
    .ridge_add = tarn__cpu_ridge_add,
    .ridge_take = tarn__cpu_ridge_take,
    .cholesky = tarn__cpu_cholesky};

const tarn__device tarn__device_cpu = {.type = &tarn__cpu_type, .name = "cpu"};
