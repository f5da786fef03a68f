// Weights in the order in which products read them, for decoding: its steps have few rows, so packing for every product
// would cost more than the product.
#include "base/memory.h"
#include "device/cpu/gemm.h"
#include "model/model.h"

// Weights of linear layers, and the output table; not tables that are only looked up in, vectors and signs.
static bool is_factor(const tarn__model *model, const tarn__param *param) {
  if (param == model->output_table) return true;
  return param->rows > 1 && param->init.kind != TARN__INIT_SIGNS && param != model->source_table &&
         param != model->target_table && param != model->source_positions && param != model->target_positions;
}

static tarn__gemm product_of(const tarn__param *param, bool int8) {
  return (tarn__gemm){.m = 1,
                      .n = param->rows,
                      .k = param->cols,
                      .b = param->value,
                      .ldb = param->cols,
                      .dtype = param->dtype,
                      .transpose_b = true,
                      .int8 = int8};
}

size_t tarn__model_pack_bytes(const tarn__model *model, bool int8) {
  size_t bytes = 0;
  for (size_t i = 0; i < model->param_count; i++) {
    tarn__gemm product = product_of(model->params[i], int8);
    if (is_factor(model, model->params[i])) bytes += tarn__gemm_pack_bytes(&product);
  }
  return bytes;
}

void tarn__model_pack(const tarn__model *model, void *memory, bool int8, int threads) {
  char *at = memory;
  for (size_t i = 0; i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    if (!is_factor(model, param)) continue;
    tarn__gemm product = product_of(param, int8);
    tarn__gemm_pack(at, &product, threads);
    param->packed = at;
    param->packed_int8 = int8;
    at += tarn__gemm_pack_bytes(&product);
  }
}

void tarn__model_unpack(const tarn__model *model) {
  for (size_t i = 0; i < model->param_count; i++) {
    model->params[i]->packed = NULL;
    model->params[i]->packed_int8 = false;
  }
}
