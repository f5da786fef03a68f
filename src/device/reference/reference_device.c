// One entry for both types: they differ in nothing but the table of kernels, which are compiled from the same files.
#include "device/devices.h"
#include "device/host_memory.h"
#include "device/op_list.h"
#include "optim/adam.h"

extern const tarn__device_kernel tarn__reference_kernels_f32[TARN__OPS], tarn__reference_kernels_f64[TARN__OPS];

static const char *variant(void) { return "reference"; }

const tarn__device tarn__device_reference = {
    .name = "reference",
    .variant = variant,
    .ops = TARN__OPS,
    .kernels = {[TARN__F32] = tarn__reference_kernels_f32, [TARN__F64] = tarn__reference_kernels_f64},
    TARN__HOST_MEMORY,
    TARN__HOST_OPTIMISER};
