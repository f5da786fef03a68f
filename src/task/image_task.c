// Classification of images (ViT: Dosovitskiy et al. 2021): an encoder reads the patches of an image, behind a class
// token unless the final states are averaged.
#include <stdio.h>
#include <string.h>

#include "task/images.h"
#include "task/labelled.h"
#include "text/patches.h"

static const tarn_verb verb = {.word = "recognise",
                               .doing = "recognising",
                               .summary = "Print the labels of images with their probabilities.",
                               .models = "an image classifier",
                               .images = true};

tarn_status tarn__image_of_shard(tarn_config_image *image, const char *prefix) {
  tarn__shard shard;
  TARN_TRY(tarn__shard_open(&shard, prefix));
  tarn_status status = TARN_STATUS_OK;
  if (!shard.image.height)
    status =
        tarn__fail(TARN_STATUS_DATA, "%s: it holds no images; tarn prepare --images makes sets of images", shard.path);
  if (image->height == 0) image->height = shard.image.height;
  if (image->width == 0) image->width = shard.image.width;
  if (image->channels == 0) image->channels = shard.image.channels;
  status = tarn__shard_judge(&shard, status);
  tarn__shard_close(&shard);
  return status;
}

static tarn_status check_shard(tarn__shard *shard, const tarn_config *config) {
  const tarn_config_image *image = &config->image;
  const tarn__image_size *has = &shard->image;
  const tarn__task *task = tarn__config_task(config);
  if (!(task->sections >> TARN__TASK_IMAGE & 1u)) {
    TARN_REQUIRE(!has->height, DATA, "%s: it holds images, and %s reads text", shard->path, task->model);
    return TARN_STATUS_OK;
  }
  TARN_REQUIRE(has->height, DATA, "%s: it holds no images; tarn prepare --images makes sets of images", shard->path);
  TARN_REQUIRE(has->height == image->height && has->width == image->width && has->channels == image->channels, DATA,
               "%s: its images have %d x %d pixels of %d channel%s, and those of the model %lld x %lld of %lld",
               shard->path, has->height, has->width, has->channels, has->channels == 1 ? "" : "s",
               (long long)image->height, (long long)image->width, (long long)image->channels);
  tarn__shard_cut(shard, (int32_t)image->patch);
  return TARN_STATUS_OK;
}

tarn_status tarn__task_shard_open(tarn__shard *shard, const char *prefix, const tarn_config *config) {
  TARN_TRY(tarn__shard_open(shard, prefix));
  const tarn_status status = check_shard(shard, config);
  if (status != TARN_STATUS_OK) tarn__shard_close(shard);
  return status;
}

// The largest size of a patch that divides images, and is at most an eighth of their sides.
static int64_t usual_patch(const tarn_config_image *image) {
  int64_t best = 1;
  for (int64_t p = 2; 8 * p <= image->height + 7 && 8 * p <= image->width + 7; p++)
    if (image->height % p == 0 && image->width % p == 0) best = p;
  return best;
}

static tarn_status resolve_image(tarn_config *config, const tarn__task_keys *keys) {
  const tarn_config_image *image = &config->image;
  tarn_config_model *model = &config->model;
  char text[TARN__TASK_TEXT];
  if (!image->height || !image->width || !image->channels)
    return keys->fail(keys->root,
                      !image->height  ? "image.height"
                      : !image->width ? "image.width"
                                      : "image.channels",
                      "the size of the images is not known; give it, or data.train");
  if (image->channels == 2) return keys->fail(keys->root, "image.channels", "choose 1 (grey) or 3 (colour)");
  if (!tarn__image_size_fits(image->height, image->width, image->channels))
    return keys->fail(keys->root, "image.height", "an image has " TARN__IMAGE_LIMITS);
  if (image->height % image->patch != 0 || image->width % image->patch != 0) {
    snprintf(text, sizeof text,
             "patches of %d x %d pixels do not cover images of %d x %d; choose a divisor, such as %d",
             (int)image->patch, (int)image->patch, (int)image->height, (int)image->width, (int)usual_patch(image));
    return keys->fail(keys->root, "image.patch", text);
  }
  const int64_t patches = tarn__image_patches(tarn__image_of_model(image), (int32_t)image->patch);
  const int64_t rows = patches + (config->head.pool == TARN_POOL_CLS);
  if (rows > 1048576) return keys->fail(keys->root, "image.patch", "an image has at most 1048575 patches");
  if (!keys->given(keys->root, "model.max_length")) model->max_length = rows < 2 ? 2 : rows;
  if (model->max_length < rows) {
    snprintf(text, sizeof text, "an image has %d patches%s, which is more; leave it out", (int)patches,
             config->head.pool == TARN_POOL_CLS ? " and a class token" : "");
    return keys->fail(keys->root, "model.max_length", text);
  }
  return TARN_STATUS_OK;
}

static tarn_status resolve_embeddings(tarn_config *config, const tarn__task_keys *keys) {
  tarn_config_model *model = &config->model;
  if (!keys->given(keys->root, "model.embeddings")) model->embeddings = TARN_EMBEDDINGS_NONE;
  if (model->embeddings != TARN_EMBEDDINGS_NONE)
    return keys->fail(keys->root, "model.embeddings", "patches are not predicted; leave it out");
  if (model->adaptive_input_cutoffs > 0)
    return keys->fail(keys->root, "model.adaptive_input_cutoff", "patches are not words; leave it out");
  // The embeddings of patches are products, which have their own scale.
  if (!keys->given(keys->root, "model.embedding_scale")) model->embedding_scale = false;
  return tarn__labelled_check_embeddings(config, keys);
}

static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  tarn_config_data *data = &config->data;
  if (config->head.pool == TARN_POOL_COUNT) config->head.pool = TARN_POOL_CLS;
  if (config->head.pool != TARN_POOL_CLS && config->head.pool != TARN_POOL_MEAN)
    return keys->fail(keys->root, "head.pool", "choose cls, which is the class token, or mean");
  if (data->vocab && strcmp(data->vocab, TARN__PATCHES_NAME) != 0)
    return keys->fail(keys->root, "data.vocab", "images have no vocabulary; leave it out");
  if (data->target_vocab && strcmp(data->target_vocab, TARN__PATCHES_NAME) != 0)
    return keys->fail(keys->root, "data.target_vocab", "images have no vocabulary; leave it out");
  data->vocab = TARN__PATCHES_NAME;
  TARN_TRY(resolve_image(config, keys));
  TARN_TRY(resolve_embeddings(config, keys));
  TARN_TRY(tarn__labelled_check(config, keys));
  if (config->valid.metric == TARN__METRIC_COUNT) config->valid.metric = TARN__METRIC_ACCURACY;
  return TARN_STATUS_OK;
}

// A vector for the class token, and one for all patches, which is the bias of their projection.
static tarn_status declare_tables(const tarn__task_site *site, tarn__task_weights *weights) {
  tarn__declare *declare = site->declare;
  const tarn_config_image *image = site->image;
  const bool trained = site->model->frozen_embeddings == TARN_FROZEN_EMBEDDINGS_NONE;
  const int64_t width = image->patch * image->patch * image->channels;
  const tarn__init init = {TARN__INIT_NORMAL, site->model->embedding_std, 1};
  weights->target_table =
      tarn__declare_param(declare, "input.weight", site->target_vocab, declare->d_model, trained, init);
  const tarn__init linear = {TARN__INIT_XAVIER, 1.0, 1};
  weights->patches = tarn__declare_param(declare, "patches.weight", declare->d_model, width, trained, linear);
  return declare->status;
}

static tarn_status first_token(int32_t *first, const tarn_config *config, const tarn_vocab *vocab) {
  (void)vocab;
  *first = config->head.pool == TARN_POOL_CLS ? TARN__PATCH_CLS : -1;
  return TARN_STATUS_OK;
}

static bool diverged(char is[TARN__TASK_TEXT], double value, int64_t words) {
  (void)words;
  if (!(value >= 1000.0)) return false;
  snprintf(is, TARN__TASK_TEXT, "%.4g nats an image, where equal chances for all classes have less than 10,", value);
  return true;
}

static const tarn__task images = {.name = "image-classification",
                                  .model = "an image classifier",
                                  .models = "image classifiers (model.task: image-classification)",
                                  .task = TARN__LEARNS_IMAGES,
                                  .architecture = TARN_ARCHITECTURE_ENCODER,
                                  .stack_count = 1,
                                  .stacks = {{.id = TARN__STACK_ENCODER, .side = TARN__SIDE_TARGET}},
                                  .other_stacks = "an encoder has no decoder; leave out the section decoder",
                                  .head = true,
                                  .labelled = TARN__LABELLED_SENTENCES,
                                  .uses = 1u << TARN__USE_LABEL,
                                  .verb = &verb,
                                  .embeddings = 1u << TARN_EMBEDDINGS_NONE,
                                  .sections = 1u << TARN__TASK_HEAD | 1u << TARN__TASK_IMAGE,
                                  .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_CLASSES,
                                  .declare_tables = declare_tables,
                                  .declare_output = tarn__labelled_classes,
                                  .pooled_input = tarn__labelled_pooled,
                                  .loss = tarn__labelled_class_loss,
                                  .first = first_token,
                                  .batches = tarn__labelled_batches,
                                  .most_predictions = tarn__labelled_predictions,
                                  .watched = TARN__METRIC_NLL,
                                  .diverged = diverged,
                                  .tally = tarn__labelled_tally,
                                  .count = tarn__labelled_count,
                                  .resolve = resolve};
const tarn__task *const tarn__tasks_images[] = {&images, NULL};
