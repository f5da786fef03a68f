// Images as bytes, and their patches (Dosovitskiy et al. 2021).
#ifndef TARN_DATA_IMAGE_CUT_H
#define TARN_DATA_IMAGE_CUT_H

#include <stdbool.h>
#include <stdint.h>

// Sizes in pixels; an image is [height, width, channels] bytes. height 0: there is no image.
typedef struct tarn__image_size {
  int32_t height, width, channels;  // channels: 1 or 3
} tarn__image_size;

enum {
  TARN__IMAGE_MOST = 1 << 24,  // bytes of an image
  TARN__IMAGE_SIDE = 8192      // pixels of a side, as image.height and image.width say, which stand in checkpoints
};
#define TARN__IMAGE_LIMITS "at most 8192 pixels a side and 16777216 bytes"  // for messages

// Whether there may be images of this size, from a file that can say anything.
static inline bool tarn__image_size_fits(int64_t height, int64_t width, int64_t channels) {
  return height >= 1 && height <= TARN__IMAGE_SIDE && width >= 1 && width <= TARN__IMAGE_SIDE &&
         (channels == 1 || channels == 3) && height * width * channels <= TARN__IMAGE_MOST;
}

static inline int64_t tarn__image_bytes(tarn__image_size size) {
  return (int64_t)size.height * size.width * size.channels;
}
static inline int64_t tarn__image_patches(tarn__image_size size, int32_t patch) {
  return (int64_t)(size.height / patch) * (size.width / patch);
}
static inline int64_t tarn__patch_bytes(tarn__image_size size, int32_t patch) {
  return (int64_t)patch * patch * size.channels;
}

// Cuts an image into patches of patch x patch pixels, row by row, which must cover it: patches [patches, channels,
// patch, patch], the order of the weights of a convolution, as other programs have them.
void tarn__image_cut(uint8_t *patches, const uint8_t *image, tarn__image_size size, int32_t patch);

#endif
