// Images for classification: sets of them, made from files (docs/vision.md). A trained model is opened as a classifier
// (tarn/classify.h), and tarn_classifier_images() labels new ones.
#ifndef TARN_IMAGES_H
#define TARN_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/classify.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Images are files in PNG, or all in one IDX file, the format of MNIST, which may be compressed. All of a set have one
// size.
typedef struct tarn_images_options {
  // A folder with a subfolder of PNG files for each class, named after it; or an IDX file of bytes, [images, height,
  // width] or [images, height, width, channels] with 1 or 3 channels; or, with `table`, its column of the paths of PNG
  // files, which are relative to the table's folder. Required.
  const char *images;
  const char *labels;  // of IDX the file of labels, whose classes are their numbers; of a table the column. Default
                       // NULL, for a folder
  const char *table;   // a table as in tarn_labelled_options; default NULL: none
  const char *output;  // the shard is written to "<output>.tarn"; required
  const char *labels_from;  // shard of the training set, whose classes are used; default NULL: those found here
  bool header;              // the first line of the table is a header, even if both columns are numbers; default false
  char delimiter;           // of the table, as in tarn_labelled_options; default 0
  int channels;  // PNG files become grey (1) or coloured (3), IDX files must be so; default 0: as the first is
} tarn_images_options;

TARN_API void tarn_images_default(tarn_images_options *options);

typedef struct tarn_images_result {
  int64_t images;
  int height, width, channels;
  int32_t classes;
  int64_t most;     // images of the most frequent class
  int64_t skipped;  // files and folders that were passed over: in a folder of images, but no PNG by their names
} tarn_images_result;

// Writes the shard atomically: on failure an older file is unchanged. Pixels of more than 8 bits are rounded, and
// transparent ones are on black; libpng converts colours into grey in linear light. Fails with USAGE (options, labels
// that are missing), IO, UNSUPPORTED (this build reads no PNG), MEMORY, or DATA, naming the file: a broken PNG, an IDX
// file that begins with other bytes or is longer or shorter than its header says, different numbers of images and
// labels, images of several sizes, of more than 8192 pixels a side or more than 2^24 bytes, an IDX file of other
// `channels`, a class not in `labels_from`, a subfolder without PNG files, a single class.
TARN_API tarn_status tarn_images_prepare(tarn_images_result *result, const tarn_images_options *options) TARN_CHECKED;

// Labels the images of a file in PNG or IDX, or the PNG files of a folder or of its subfolders, in the order of their
// names. `number` of the sink counts from 1. Fails as above, with DATA if an image has another size than those of the
// model, with USAGE if the model reads text, NUMERIC (a result is not finite), or the sink's status.
TARN_API tarn_status tarn_classifier_images(tarn_classifier *classifier, const char *path, tarn_classify_sink sink,
                                            void *user) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
