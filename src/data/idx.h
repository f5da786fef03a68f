// IDX files, the format of MNIST (LeCun et al. 1998): bytes as an array [count], or [count, height, width] or [count,
// height, width, channels], behind a header of big-endian numbers; compressed or not.
#ifndef TARN_DATA_IDX_H
#define TARN_DATA_IDX_H

#include <stdbool.h>

#include "base/input.h"
#include "data/image_cut.h"

// Zero-initialise or open; close accepts both.
typedef struct tarn__idx {
  tarn__input input;
  int64_t count;          // images or labels
  tarn__image_size size;  // of an image; of labels 1 x 1
  int64_t read;           // so far
} tarn__idx;

// Opens a file of images or of labels. Fails with IO, or DATA: it begins with other bytes than such a file, has no
// images, or images of an impossible size.
tarn_status tarn__idx_open(tarn__idx *idx, const char *path, bool labels) TARN_CHECKED;
void tarn__idx_close(tarn__idx *idx);
// Reads the next image or label, tarn__image_bytes(size) bytes. Fails with DATA if the file ends within it.
tarn_status tarn__idx_next(tarn__idx *idx, uint8_t *bytes) TARN_CHECKED;
// Fails with DATA if bytes follow.
tarn_status tarn__idx_finish(tarn__idx *idx) TARN_CHECKED;

#endif
