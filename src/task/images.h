// Sets of images as their models read them.
#ifndef TARN_TASK_IMAGES_H
#define TARN_TASK_IMAGES_H

#include "data/image_cut.h"
#include "task/task.h"

// The size of the images of a model.
static inline tarn__image_size tarn__image_of_model(const tarn_config_image *image) {
  return (tarn__image_size){(int32_t)image->height, (int32_t)image->width, (int32_t)image->channels};
}

// The size of the images of a shard, for the training set: fills in what is 0. Fails as tarn__shard_open() does, or
// with DATA if it holds none.
tarn_status tarn__image_of_shard(tarn_config_image *image, const char *prefix) TARN_CHECKED;

// As tarn__shard_open(), for the models of a description: images are cut into its patches. Fails also with DATA if the
// set holds images and the model reads text, or the other way round, or images of another size than the model's.
tarn_status tarn__task_shard_open(tarn__shard *shard, const char *prefix, const tarn_config *config) TARN_CHECKED;

#endif
