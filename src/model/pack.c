// Weights in the order in which products read them, for decoding: its steps have few rows, so packing for every product
// would cost more than the product.
#include "model/model.h"

// Weights of linear layers, and the output table; not tables that are only looked up in, vectors and signs.
static bool is_factor(const tarn__model *model, const tarn__param *param) {
  if (param == model->weights.output_table) return true;
  return param->rows > 1 && param->init.kind != TARN__INIT_SIGNS && param != model->weights.source_table &&
         param != model->weights.target_table && param != model->source_positions && param != model->target_positions &&
         param != model->segments;
}

static tarn__device_weight weight_of(const tarn__model *model, const tarn__param *param, bool int8) {
  return (tarn__device_weight){.value = param->value,
                               .rows = param->rows,
                               .cols = param->cols,
                               .dtype = param->dtype,
                               .int8 = int8,
                               .fp32 = model->fp32};
}

tarn_status tarn__model_pack_check(const tarn__model *model, bool int8) {
  TARN_REQUIRE(!int8 || model->device->pack, UNSUPPORTED, "the device %s has no products of INT8", model->device->name);
  return TARN_STATUS_OK;
}

size_t tarn__model_pack_bytes(const tarn__model *model, bool int8) {
  size_t bytes = 0;
  for (size_t i = 0; model->device->pack && i < model->param_count; i++) {
    const tarn__device_weight weight = weight_of(model, model->params[i], int8);
    if (is_factor(model, model->params[i])) bytes += model->device->pack_bytes(&weight);
  }
  return bytes;
}

tarn_status tarn__model_pack(const tarn__model *model, void *memory, bool int8, int threads) {
  char *at = memory;
  for (size_t i = 0; model->device->pack && i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    if (!is_factor(model, param)) continue;
    const tarn__device_weight weight = weight_of(model, param, int8);
    TARN_TRY(model->device->pack(at, &weight, threads));
    param->decoding.packed = at;
    param->decoding.packed_int8 = int8;
    at += model->device->pack_bytes(&weight);
  }
  return TARN_STATUS_OK;
}

void tarn__model_unpack(const tarn__model *model) {
  for (size_t i = 0; i < model->param_count; i++) {
    model->params[i]->decoding.packed = NULL;
    model->params[i]->decoding.packed_int8 = false;
  }
}
