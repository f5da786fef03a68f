// Images from a file in IDX, a file in PNG, a folder of these, or a table that lists files in PNG; with or without
// labels. All images of a source have one size.
#ifndef TARN_DATA_IMAGE_SOURCE_H
#define TARN_DATA_IMAGE_SOURCE_H

#include "data/idx.h"
#include "data/labelled_table.h"
#include "data/png_file.h"

typedef struct tarn__image_options {
  const char *images;  // a file or folder; with a table the column of the paths, which are relative to its folder
  // With labels, each image has one: of IDX files that of the file `labels`, in a folder the name of its subfolder, in
  // a table that of the column `labels`.
  bool labelled;
  const char *labels;
  const char *table;  // NULL: none
  bool header;        // of the table, as its delimiter, for tarn__labelled_columns
  char delimiter;
  int channels;  // 1 or 3, into which PNG files are converted, and which IDX files must have; 0: those of the first
} tarn__image_options;

// Zero-initialise or open; close accepts both.
typedef struct tarn__image_source {
  bool ended;         // there is no current image
  tarn__image image;  // the current one
  const char *name;   // its file, or that of IDX; valid until the next
  bool is_idx;        // the images are in IDX
  int64_t number;     // from 1
  const char *label;  // [label_length]; NULL: none
  size_t label_length;
  double share;     // of the source read so far
  int64_t skipped;  // files and folders of a folder that were passed over: no PNG by their names; hidden ones apart
  // Private.
  tarn__image_options options;
  tarn__idx idx, idx_labels;
  tarn__labelled_table table;
  char **paths;  // of a folder
  size_t path_count, path_room;
  char label_room[8], *path_now, *first_name;
  tarn__image_size size;
} tarn__image_source;

// Fails with IO, USAGE, or DATA: a file that is neither of the two formats, no images, a class without images, labels
// that are missing, an IDX file of other channels.
tarn_status tarn__image_source_open(tarn__image_source *source, const tarn__image_options *options) TARN_CHECKED;
void tarn__image_source_close(tarn__image_source *source);
// Goes to the next image. Fails also with DATA: a broken file, another size than that of the first image, different
// numbers of images and labels.
tarn_status tarn__image_source_next(tarn__image_source *source) TARN_CHECKED;

#endif
