#include "task/task.h"

bool tarn__task_part_at(const tarn_config *config, int index, tarn__task_part *part) {
  tarn_embeddings share = config->model.embeddings;
  tarn_frozen_embeddings frozen = config->model.frozen_embeddings;
  const tarn__task *task = tarn__config_task(config);
  bool text = !task->source;
  bool both = frozen == TARN_FROZEN_EMBEDDINGS_BOTH;
  bool single = share == TARN_EMBEDDINGS_ALL ||
                (text && (share == TARN_EMBEDDINGS_DECODER || share == TARN_EMBEDDINGS_ENCODER_OUTPUT));
  bool apart = share == TARN_EMBEDDINGS_NONE || share == TARN_EMBEDDINGS_ENCODER_DECODER;
  bool learned = tarn__position_of(&config->model.positions)->declare != NULL;
  const char *const names[TARN__TASK_PARTS] = {text ? "embeddings.input" : "embeddings.source",
                                               "embeddings.target",
                                               "embeddings.output",
                                               "output",
                                               "embeddings.source_positions",
                                               text ? "embeddings.positions" : "embeddings.target_positions",
                                               "embeddings.segments",
                                               "embeddings.source_norm",
                                               text ? "embeddings.norm" : "embeddings.target_norm",
                                               "embeddings.patches"};
  const bool own[TARN__TASK_PARTS] = {
      true,
      !text && !single && share != TARN_EMBEDDINGS_ENCODER_DECODER,
      apart && !task->labelled,
      config->model.output_bias || config->model.output_rank > 0 || config->model.output_mixtures > 0 || task->head ||
          (config->model.adaptive_softmax_cutoffs > 0 && !config->model.tie_adaptive_proj && !task->labelled),
      learned && !text,
      learned,
      config->model.segments > 0,
      config->model.embedding_norm && !text,
      config->model.embedding_norm,
      (task->sections >> TARN__TASK_IMAGE & 1u) != 0};
  const bool trained[TARN__TASK_PARTS] = {
      single || (text ? frozen == TARN_FROZEN_EMBEDDINGS_NONE : !both && frozen != TARN_FROZEN_EMBEDDINGS_ENCODER),
      !both && frozen != TARN_FROZEN_EMBEDDINGS_DECODER,
      true,
      true,
      !both && frozen != TARN_FROZEN_EMBEDDINGS_ENCODER,
      text ? frozen == TARN_FROZEN_EMBEDDINGS_NONE : !both && frozen != TARN_FROZEN_EMBEDDINGS_DECODER,
      frozen == TARN_FROZEN_EMBEDDINGS_NONE,
      true,
      true,
      frozen == TARN_FROZEN_EMBEDDINGS_NONE};
  *part = (tarn__task_part){.name = single && index == 0 ? "embeddings" : names[index], .trained = trained[index]};
  return own[index];
}
