// Labels images.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/work.h"
#include "comm/ranks.h"
#include "data/image_source.h"
#include "ops/pixels.h"
#include "score/classifier_share.h"
#include "tarn/images.h"
#include "task/images.h"
#include "text/patches.h"

// The images that are computed together, in the classifier's arrays.
typedef struct filling {
  int64_t images, most;  // so far, and the number that fits
  int64_t rows;          // of an image: its patches, and the class token if there is one
  int64_t bytes;         // of a patch
  int64_t done;          // images of earlier batches
  uint8_t *pixels;       // of all rows
  char **names;          // of the images; NULL: in IDX
} filling;

static bool has_first(const tarn_classifier *c) { return c->first >= 0; }

static tarn_status check_size(const tarn_classifier *c, const tarn__image_source *source) {
  const tarn_config_image *image = &c->checkpoint->config->image;
  const tarn__image_size *size = &source->image.size;
  TARN_REQUIRE(size->height == image->height && size->width == image->width && size->channels == image->channels, DATA,
               "%s: an image of %d x %d pixels with %d channel%s, but the images of %s have %lld x %lld with %lld",
               source->name, size->height, size->width, size->channels, size->channels == 1 ? "" : "s",
               c->checkpoint->path, (long long)image->height, (long long)image->width, (long long)image->channels);
  return TARN_STATUS_OK;
}

// All images have the same rows, which are filled in once.
static tarn_status open_filling(tarn_classifier *c, filling *f) {
  const tarn_config_image *image = &c->checkpoint->config->image;
  const tarn__image_size size = tarn__image_of_model(image);
  void *memory;
  f->rows = tarn__image_patches(size, (int32_t)image->patch) + has_first(c);
  f->bytes = tarn__patch_bytes(size, (int32_t)image->patch);
  f->most = c->options.max_tokens / f->rows < 1 ? 1 : c->options.max_tokens / f->rows;
  const size_t rows = (size_t)(f->most * f->rows), images = (size_t)f->most;
  TARN_TRY(tarn__grow(&c->ids, &c->ids_room, rows, sizeof *c->ids));
  TARN_TRY(tarn__grow(&c->positions, &c->positions_room, rows, sizeof *c->positions));
  TARN_TRY(tarn__grow(&c->offsets, &c->offsets_room, images + 1, sizeof *c->offsets));
  TARN_TRY(tarn__grow(&c->selected, &c->selected_room, images, sizeof *c->selected));
  TARN_TRY(tarn__grow(&c->zeros, &c->zeros_room, images, sizeof *c->zeros));
  for (int64_t i = 0; i <= f->most; i++) c->offsets[i] = (int32_t)(i * f->rows);
  for (size_t r = 0; r < rows; r++)
    c->ids[r] = has_first(c) && r % (size_t)f->rows == 0 ? TARN__PATCH_CLS : TARN__PATCH;
  memset(c->zeros, 0, images * sizeof *c->zeros);
  tarn__packed_positions(c->positions, c->offsets, f->most);
  tarn__pooled_rows(c->selected, c->offsets, f->most, c->checkpoint->config->head.pool);
  TARN_TRY(
      tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)tarn__pixel_words((int64_t)rows * f->bytes), sizeof(int32_t)));
  f->pixels = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, images, sizeof *f->names));
  f->names = memory;
  memset(f->names, 0, images * sizeof *f->names);
  return TARN_STATUS_OK;
}

static void close_filling(filling *f) {
  for (int64_t i = 0; f->names && i < f->most; i++) tarn__free(f->names[i]);
  tarn__free(f->names);
  tarn__free(f->pixels);
}

// Adds an image to the batch.
static tarn_status add_image(tarn_classifier *c, filling *f, const tarn__image_source *source) {
  const int64_t row = f->images * f->rows + has_first(c);
  char **name = &f->names[f->images++];
  TARN_TRY(check_size(c, source));
  tarn__image_cut(f->pixels + row * f->bytes, source->image.pixels, source->image.size,
                  (int32_t)c->checkpoint->config->image.patch);
  tarn__free(*name);
  *name = NULL;
  return source->is_idx ? TARN_STATUS_OK : tarn__strdup(name, source->name);
}

static tarn_status run_batch(tarn_classifier *c, filling *f, tarn_classify_sink sink, void *user) {
  const tarn__batch batch = {.source = {.sentences = f->images},
                             .target = {.sentences = f->images,
                                        .rows = f->images * f->rows,
                                        .longest = f->rows,
                                        .ids = c->ids,
                                        .positions = c->positions,
                                        .offsets = c->offsets,
                                        .pixels = (const int32_t *)(const void *)f->pixels},
                             .predictions = f->images,
                             .selected = c->selected,
                             .targets = c->zeros};  // unknown; the loss computed from them is ignored
  const float *answers;
  double loss;
  if (f->images == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__classifier_run(c, &batch, &answers, &loss));
  for (int64_t i = 0; i < f->images; i++) {
    tarn_classify_result result = {.text = f->names[i], .length = f->names[i] ? strlen(f->names[i]) : 0};
    tarn__classifier_tell(c, &result, answers, i);
    TARN_TRY(sink(user, ++f->done, &result));
  }
  f->images = 0;
  return TARN_STATUS_OK;
}

static tarn_status run(tarn_classifier *c, filling *f, tarn__image_source *source, tarn__work *work,
                       tarn_classify_sink sink, void *user) {
  TARN_TRY(open_filling(c, f));
  for (;;) {
    TARN_TRY(tarn__image_source_next(source));
    if (source->ended) return run_batch(c, f, sink, user);
    TARN_TRY(add_image(c, f, source));
    if (f->images == f->most) TARN_TRY(run_batch(c, f, sink, user));
    tarn__work_at(work, (double)f->done, source->share);
  }
}

tarn_status tarn_classifier_images(tarn_classifier *c, const char *path, tarn_classify_sink sink, void *user) {
  const tarn_verb *verb = tarn_classifier_verb(c);
  filling f = {0};
  tarn__image_source source;
  TARN_TRY(tarn__ranks_must_be_one(c->options.ranks, "tarn_classifier_images()"));
  TARN_REQUIRE(verb->images, USAGE, "%s: it is %s, which reads text (tarn %s)", c->checkpoint->path,
               tarn__config_task(c->checkpoint->config)->model, verb->word);
  const tarn__image_options options = {.images = path, .channels = (int)c->checkpoint->config->image.channels};
  TARN_TRY(tarn__image_source_open(&source, &options));
  tarn__work work;
  tarn__work_begin(&work, verb->doing, "images");
  const tarn_status status = run(c, &f, &source, &work, sink, user);
  tarn__work_end(&work);
  tarn__image_source_close(&source);
  close_filling(&f);
  return status;
}
