// Weights in the order in which products read them, for decoding: its steps have few rows, so packing in every product
// would cost more than the product.
#include "base/map.h"
#include "device/int4.h"
#include "model/model.h"
#include "task/bands.h"

// Weights of linear layers, and the output table; not tables used only for lookups, vectors, signs, stacks of matrices,
// or parameters stored as entries.
static bool is_factor(const tarn__model *model, const tarn__param *param) {
  if (tarn__weights_predict(&model->weights, param)) return true;
  return param->rows > 1 && param->out == 0 && param->entries == 0 && !tarn__weights_look_up(&model->weights, param) &&
         param != model->source_positions && param != model->target_positions && param != model->segments;
}

// Tables of vocabularies are INT8 where other weights are INT4: their error would go into every logit, and lookups read
// them too. So are rows too long for INT4.
tarn__rounding tarn__model_rounding(const tarn__model *model, const tarn__param *param, tarn__rounding rounding) {
  const bool table = tarn__weights_predict(&model->weights, param) || tarn__weights_look_up(&model->weights, param);
  const bool fine = table || param->cols > TARN__INT4_MOST_TERMS;
  return fine && rounding == TARN__ROUNDING_INT4 ? TARN__ROUNDING_INT8 : rounding;
}

static tarn__device_weight weight_of(const tarn__model *model, const tarn__param *param, tarn__rounding rounding) {
  const tarn__param_mapped *mapped = &param->mapped;
  return (tarn__device_weight){
      .value = mapped->rounded ? mapped->rounded : param->value,
      .rows = param->rows,
      .cols = param->cols,
      .dtype = param->dtype,
      .rounding = mapped->rounded ? mapped->rounding : tarn__model_rounding(model, param, rounding),
      .scales = mapped->scales,
      .fp32 = model->fp32};
}

// Vocabularies used for lookups.
static bool is_table(const tarn__model *model, const tarn__param *param) {
  return tarn__weights_look_up(&model->weights, param);
}

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static size_t rounded_bytes(const tarn__param *param) { return aligned((size_t)(param->rows * param->cols)); }

// Bytes of a table rounded for lookups; 0 if it is not rounded, or already rounded in a file.
static size_t table_bytes(const tarn__model *model, const tarn__param *param, tarn__rounding rounding) {
  if (rounding == TARN__ROUNDING_NONE || !param->rounds || !is_table(model, param) || param->mapped.rounded) return 0;
  return rounded_bytes(param) + aligned((size_t)param->rows * sizeof(float));
}

// Points lookups to the file's table, or rounds it into `memory`, which has table_bytes().
static tarn_status round_table(const tarn__model *model, tarn__param *param, char *memory, int threads) {
  tarn__param_decoding *decoding = &param->decoding;
  if (!param->rounds || !is_table(model, param)) return TARN_STATUS_OK;
  decoding->rounded = param->mapped.rounded;
  decoding->scales = param->mapped.scales;
  if (decoding->rounded) return TARN_STATUS_OK;
  float *scales = (float *)(void *)(memory + rounded_bytes(param));
  const tarn__device_weight weight = weight_of(model, param, TARN__ROUNDING_INT8);
  TARN_TRY(model->device->type->quantise(model->device, (signed char *)memory, scales, &weight, threads));
  decoding->rounded = (const signed char *)memory;
  decoding->scales = scales;
  return TARN_STATUS_OK;
}

// Products no longer read the values, so the mapped file's pages can be given back; lookups read the few that they need
// again.
static void release(const tarn__model *model, const tarn__param *param) {
  if (!model->map) return;
  const size_t count = (size_t)(param->rows * param->cols);
  const bool int4 = param->mapped.rounding == TARN__ROUNDING_INT4;
  const size_t bytes = int4 ? (size_t)(param->rows * tarn__int4_bytes(param->cols)) : count;
  if (param->mapped.rounded) tarn__map_release_part(model->map, param->mapped.rounded, bytes);
  if (param->mapped.value)
    tarn__map_release_part(model->map, param->mapped.value, count * tarn__dtype_size(param->dtype));
}

tarn__rounding tarn__rounding_of(tarn_translate_precision precision) {
  return precision == TARN_TRANSLATE_PRECISION_INT8   ? TARN__ROUNDING_INT8
         : precision == TARN_TRANSLATE_PRECISION_INT4 ? TARN__ROUNDING_INT4
                                                      : TARN__ROUNDING_NONE;
}

tarn_status tarn__model_pack_check(const tarn__model *model, tarn__rounding rounding) {
  TARN_REQUIRE(rounding == TARN__ROUNDING_NONE || model->device->type->pack, UNSUPPORTED,
               "the device %s has no products of INT8 or INT4", model->device->name);
  return TARN_STATUS_OK;
}

size_t tarn__model_pack_bytes(const tarn__model *model, tarn__rounding rounding) {
  size_t bytes = 0;
  for (size_t i = 0; model->device->type->pack && i < model->param_count; i++) {
    const tarn__device_weight weight = weight_of(model, model->params[i], rounding);
    if (is_factor(model, model->params[i])) bytes += model->device->type->pack_bytes(model->device, &weight);
    bytes += table_bytes(model, model->params[i], rounding);
  }
  return bytes;
}

tarn_status tarn__model_pack(const tarn__model *model, void *memory, tarn__rounding rounding, int threads) {
  char *at = memory;
  for (size_t i = 0; model->device->type->pack && i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    if (rounding != TARN__ROUNDING_NONE) TARN_TRY(round_table(model, param, at, threads));
    at += table_bytes(model, param, rounding);
    if (!is_factor(model, param)) continue;
    const tarn__device_weight weight = weight_of(model, param, rounding);
    TARN_TRY(model->device->type->pack(model->device, at, &weight, threads));
    param->decoding.packed = at;
    param->decoding.rounding = weight.rounding;
    at += model->device->type->pack_bytes(model->device, &weight);
    release(model, param);
  }
  return TARN_STATUS_OK;
}

void tarn__model_unpack(const tarn__model *model) {
  for (size_t i = 0; i < model->param_count; i++) {
    model->params[i]->decoding = (tarn__param_decoding){0};
  }
}
