// tarn_weights: a model's values, to look at.
#include <string.h>

#include "base/memory.h"
#include "store/checkpoint.h"
#include "tarn/checkpoint.h"

struct tarn__weights_memory {
  tarn_weights all;
  tarn__checkpoint *checkpoint;
  tarn_weight *items;
};

static tarn_status list(struct tarn__weights_memory *memory) {
  const tarn__model *model = memory->checkpoint->model;
  void *items;
  TARN_TRY(tarn__alloc(&items, TARN__MEMORY_OTHER, model->param_count, sizeof *memory->items));
  memory->items = items;
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const void *values = param->mapped.value ? param->mapped.value : param->value;
    TARN_REQUIRE(param->dtype == TARN__F32 && values != NULL, UNSUPPORTED, "%s: %s is not held in fp32",
                 memory->checkpoint->path, param->name);
    memory->items[i] = (tarn_weight){param->name, param->rows, param->cols, param->trained, values};
  }
  memory->all = (tarn_weights){memory->items, model->param_count, memory};
  return TARN_STATUS_OK;
}

tarn_status tarn_weights_open(tarn_weights **weights, const char *path) {
  *weights = NULL;
  tarn_checkpoint_info *info;
  TARN_TRY(tarn_checkpoint_info_open(&info, path));
  const bool exact = strcmp(info->precision, "fp32") == 0;
  const tarn_status status =
      exact ? TARN_STATUS_OK
            : tarn__fail(TARN_STATUS_UNSUPPORTED, "%s: its matrices are in %s; weights are looked at in files of fp32",
                         path, info->precision);
  tarn_checkpoint_info_close(&info);
  TARN_TRY(status);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(struct tarn__weights_memory)));
  struct tarn__weights_memory *m = memory;
  *m = (struct tarn__weights_memory){.all.memory = m};
  tarn_translate_precision precision = TARN_TRANSLATE_PRECISION_FP32;
  tarn_status opened = tarn__checkpoint_open_use(&m->checkpoint, path, &precision, NULL);
  if (opened == TARN_STATUS_OK) opened = list(m);
  *weights = &m->all;
  if (opened != TARN_STATUS_OK) tarn_weights_close(weights);
  return opened;
}

void tarn_weights_close(tarn_weights **weights) {
  if (!*weights) return;
  struct tarn__weights_memory *memory = (*weights)->memory;
  tarn__checkpoint_close(&memory->checkpoint);
  tarn__free(memory->items);
  tarn__free(memory);
  *weights = NULL;
}
