#include "model/transparent.h"

#include <stdio.h>

#include "ops/scale.h"

tarn_status tarn__transparent_declare(tarn__model *model, tarn__declare *declare, const tarn_stack *layers) {
  const tarn__init zero = {TARN__INIT_ZERO, 0.0, 1};
  void *memory;
  if (!layers->transparent_attention) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(&model->arena, &memory, (size_t)layers->count, sizeof(tarn__param *)));
  model->shares = memory;
  for (int i = 0; i < layers->count; i++) {
    char name[48];
    snprintf(name, sizeof name, "transparent.layer%d", i + 1);
    model->shares[i] = tarn__declare_param(declare, name, 1, model->encoder.count + 1, true, zero);
  }
  return declare->status;
}

tarn__tensor **tarn__transparent_outputs(const tarn__model *model, tarn__graph *graph) {
  void *memory = NULL;
  if (!model->shares || graph->status != TARN_STATUS_OK) return NULL;
  graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)model->encoder.count + 1, sizeof(tarn__tensor *));
  return memory;
}

tarn__tensor *tarn__transparent_memory(const tarn__model *model, tarn__graph *graph, tarn__tensor *const *outputs,
                                       int layer) {
  tarn__stream sum = {0};
  graph->label = model->decoder.layers[layer].label;
  for (int n = 0; n <= model->encoder.count; n++) {
    tarn__tensor *part = tarn__scale_share(graph, outputs[n], model->shares[layer], n);
    if (sum.x) part = tarn__stream_sum(graph, sum.x, part, 0.0);
    sum.x = part;
  }
  return tarn__stream_finish(graph, &sum, &model->encoder.norm);
}
