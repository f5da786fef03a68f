#include "data/image_cut.h"

void tarn__image_cut(uint8_t *patches, const uint8_t *image, tarn__image_size size, int32_t patch) {
  const int64_t line = (int64_t)size.width * size.channels;
  for (int32_t top = 0; top < size.height; top += patch)
    for (int32_t left = 0; left < size.width; left += patch)
      for (int32_t c = 0; c < size.channels; c++)
        for (int32_t y = 0; y < patch; y++) {
          const uint8_t *from = image + (top + y) * line + (int64_t)left * size.channels + c;
          for (int32_t x = 0; x < patch; x++) *patches++ = from[(int64_t)x * size.channels];
        }
}
