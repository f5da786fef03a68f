// Images in PNG, read by libpng. Builds without it refuse them.
#ifndef TARN_DATA_PNG_FILE_H
#define TARN_DATA_PNG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "data/image_cut.h"

// Zero-initialise it; the caller frees `pixels` with tarn__free().
typedef struct tarn__image {
  tarn__image_size size;
  uint8_t *pixels;  // [height, width, channels]
  size_t room;
} tarn__image;

// Whether it is a regular file that begins as a PNG does.
bool tarn__png_is(const char *path);
// Reads an image of 8 bits a channel (more are rounded), on black where it is transparent. channels: 1 or 3, into which
// it is converted; 0: 1 if it is grey, else 3. libpng converts in linear light: colours into grey, transparent pixels
// on black, and what gAMA asks for. Fails with IO, DATA (a broken PNG, a special file, one of more than 2^28 bytes, or
// an image that does not fit), UNSUPPORTED or MEMORY; lines begin with the path.
tarn_status tarn__png_read(tarn__image *image, const char *path, int channels) TARN_CHECKED;
// The same for the bytes of a file.
tarn_status tarn__png_decode(tarn__image *image, const void *bytes, size_t size, int channels) TARN_CHECKED;

#endif
