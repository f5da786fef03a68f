// Use of images: tarn/images.h, and the drawings that stand for them, tarn/lab/drawings.h.
#include "api_models.h"
#include "tarn/images.h"
#include "tarn/lab/drawings.h"

static void use_tarn_drawings_default(void) {
  tarn_drawings_options options;
  memset(&options, 0xFF, sizeof options);
  tarn_drawings_default(&options);
  assert_null(options.output);
  assert_true(options.what == TARN_DRAWINGS_DIGITS && options.seed == 1 && options.images == 20000);
  assert_true(options.held_out == 2000 && options.size == 28);
}

static void use_tarn_drawings_write(void) {
  tarn_drawings_options options;
  tarn_drawings_default(&options);
  refuses(tarn_drawings_write(&options), TARN_STATUS_USAGE, "an output folder is needed");
  options.output = "some/drawn";
  options.held_out = 5;
  options.size = 129;
  refuses(tarn_drawings_write(&options), TARN_STATUS_USAGE, "16 to 128 pixels a side, not 129");
  options.size = 16;
  options.images = 0;
  refuses(tarn_drawings_write(&options), TARN_STATUS_USAGE, "the number of images is 1 to 1000000, not 0");
  options.images = 10;
  options.what = (tarn_drawings_what)2;
  refuses(tarn_drawings_write(&options), TARN_STATUS_USAGE, "no drawings of kind 2");
  options.what = TARN_DRAWINGS_SHAPES;
  works(tarn_drawings_write(&options));
}

static void use_tarn_images_default(void) {
  tarn_images_options options;
  memset(&options, 0xFF, sizeof options);
  tarn_images_default(&options);
  assert_null(options.images);
  assert_null(options.labels_from);
  assert_int_equal(options.channels, 0);
}

static tarn_images_options drawn(void) {
  tarn_images_options options;
  tarn_images_default(&options);
  options.images = "drawn/train-images.idx";
  options.labels = "drawn/train-labels.idx";
  options.output = "images";
  return options;
}

static void use_tarn_images_prepare(void) {
  tarn_images_options options = drawn();
  tarn_images_result result;
  works(tarn_images_prepare(&result, &options));
  assert_true(result.images == 60 && result.height == 16 && result.width == 16 && result.channels == 1);
  assert_true(result.classes == 10 && result.most >= 6 && result.most < 60 && result.skipped == 0);
  options.channels = 3;
  refuses(tarn_images_prepare(&result, &options), TARN_STATUS_DATA, "have 1 channel, not 3");
  options.channels = 2;
  refuses(tarn_images_prepare(&result, &options), TARN_STATUS_USAGE, "not 2");
  options = drawn();
  options.output = NULL;
  refuses(tarn_images_prepare(&result, &options), TARN_STATUS_USAGE, "output");
  options = drawn();
  options.images = NULL;
  refuses(tarn_images_prepare(&result, &options), TARN_STATUS_USAGE, "images are needed");
  options = drawn();
  options.labels = NULL;
  refuses(tarn_images_prepare(&result, &options), TARN_STATUS_USAGE, "labels of an IDX file are missing");
  options = drawn();
  options.images = "missing";
  refuses(tarn_images_prepare(&result, &options), TARN_STATUS_IO, "missing: ");
  options.images = "drawn/train-labels.idx";
  refuses(tarn_images_prepare(&result, &options), TARN_STATUS_DATA, "not an IDX file of images");
  options = drawn();
  options.labels = "drawn/test-labels.idx";
  refuses(tarn_images_prepare(&result, &options), TARN_STATUS_DATA, "60 images, but drawn/test-labels.idx has 20");
}

static tarn_status count_to(void *user, int64_t number, const tarn_classify_result *result) {
  int64_t *left = user;
  assert_true(number > 0 && result->order[0] >= 0 && !result->text);
  return --*left == 0 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static void use_tarn_classifier_images(void) {
  tarn_classify_options options;
  tarn_classifier *classifier;
  int64_t left = 100;
  tarn_classify_default(&options);
  options.threads = 1;
  works(tarn_classifier_open(&classifier, "run", &options));
  assert_true(tarn_classifier_verb(classifier)->images);
  works(tarn_classifier_images(classifier, "drawn/test-images.idx", count_to, &left));
  assert_int_equal(left, 80);
  left = 3;
  assert_int_equal(tarn_classifier_images(classifier, "drawn/test-images.idx", count_to, &left),
                   TARN_STATUS_INTERRUPTED);
  refuses(tarn_classifier_images(classifier, "missing", count_to, &left), TARN_STATUS_IO, "missing: ");
  refuses(tarn_classifier_images(classifier, "large/test-images.idx", count_to, &left), TARN_STATUS_DATA,
          "an image of 20 x 20 pixels");
  refuses(tarn_classifier_lines(classifier, (const char *const[]){"w6"}, (const size_t[]){2}, 1, count_to, &left),
          TARN_STATUS_USAGE, "reads no text");
  refuses(tarn_classifier_file(classifier, "drawn/test-images.idx", count_to, &left), TARN_STATUS_USAGE,
          "reads no text");
  tarn_classifier_close(&classifier);
}

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  tarn_drawings_options options;
  tarn_drawings_default(&options);
  options.output = "drawn";
  options.images = 60;
  options.held_out = 20;
  options.size = 16;
  works(tarn_drawings_write(&options));
  options.output = "large";
  options.size = 20;
  works(tarn_drawings_write(&options));
  const tarn_images_options images = drawn();
  tarn_images_result result;
  works(tarn_images_prepare(&result, &images));
  api_run(
      "model: { task: image-classification, d_model: 16, dropout: 0 }\n"
      "encoder: { layers: L }\n" API_KINDS "data: { train: images }\n" API_TRAIN,
      "run");
  return 0;
}

int main(void) {
  static const char *const headers[] = {"images.h", "lab/drawings.h", NULL};
  static const api_use uses[] = {USE(tarn_images_default), USE(tarn_images_prepare), USE(tarn_classifier_images),
                                 USE(tarn_drawings_default), USE(tarn_drawings_write)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
