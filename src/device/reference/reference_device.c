// One entry for both types: they differ in nothing but the table of kernels, which are compiled from the same files.
#include "device/devices.h"
#include "device/host_memory.h"
#include "graph/graph.h"

static tarn__kernel kernel(const tarn__op *op, tarn__dtype dtype) {
  return dtype == TARN__F64 ? op->reference_f64 : op->reference_f32;
}

const tarn__device tarn__device_reference = {
    .name = "reference", .kernel = kernel, .computes = {[TARN__F32] = true, [TARN__F64] = true}, TARN__HOST_MEMORY};
