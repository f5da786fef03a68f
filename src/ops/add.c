#include "ops/add.h"

#include "device/cpu/isa.h"
#include "device/variant.h"
#include "ops/ops.h"

static tarn_status add_cpu(const tarn__exec *exec, const tarn__node *node) {
  return TARN__TABLE_NOW(tarn__add_kernels)->add(exec, node);
}

const tarn__op tarn__op_add = {.name = "add",
                               .in_place = true,
                               .inplace_out = 0,
                               .inplace_in = 0,
                               .reference_f32 = tarn__add_ref_f32,
                               .reference_f64 = tarn__add_ref_f64,
                               .cpu = add_cpu};
