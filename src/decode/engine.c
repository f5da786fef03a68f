#include "decode/engine.h"

#include "base/memory.h"
#include "task/task.h"

const tarn__engine *tarn__engine_of(const tarn_config *config) {
  static const tarn__engine *const engines[TARN__DECODING_COUNT] = {[TARN__DECODING_TOKENS] = &tarn__token_engine,
                                                                    [TARN__DECODING_MASKS] = &tarn__mask_engine,
                                                                    [TARN__DECODING_EDITS] = &tarn__edit_engine};
  return engines[tarn__config_task(config)->decoding];
}

tarn_status tarn__engine_plan_encode(size_t *bytes, const tarn__model *model, int64_t sentences, int64_t rows) {
  void *offsets;
  void *cross;
  TARN_TRY(tarn__alloc(&offsets, TARN__MEMORY_OTHER, (size_t)sentences + 1, sizeof(int32_t)));
  tarn_status status = tarn__alloc(&cross, TARN__MEMORY_OTHER, (size_t)model->decoder.count, sizeof(tarn__tensor *));
  int32_t *at = offsets;
  for (int64_t s = 0; s <= sentences; s++) at[s] = (int32_t)(rows * s / sentences);
  tarn__graph graph = {0};
  if (status == TARN_STATUS_OK) {
    tarn__packed source = {.sentences = sentences, .rows = rows, .longest = rows / sentences + 1, .offsets = at};
    tarn__model_begin(model, &graph, false, 1);
    tarn__model_build_encode(model, &graph, &source, cross);
    status = tarn__graph_plan(&graph);
    *bytes = graph.workspace_bytes;
  }
  tarn__graph_close(&graph);
  tarn__free(cross);
  tarn__free(offsets);
  return status;
}
