// A set of images that the library draws: digits or simple shapes with random strokes, places, sizes, slants and noise,
// for trying image classifiers without a download. A linear model of the pixels is well below 98 % (docs/vision.md).
#ifndef TARN_LAB_DRAWINGS_H
#define TARN_LAB_DRAWINGS_H

#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What is drawn.
typedef enum tarn_drawings_what {
  TARN_DRAWINGS_DIGITS,  // 0 to 9
  TARN_DRAWINGS_SHAPES   // circle, square, triangle, cross, star, heart: labels 0 to 5
} tarn_drawings_what;

typedef struct tarn_drawings_options {
  const char *output;       // folder, created if missing; required
  tarn_drawings_what what;  // default: digits
  uint64_t seed;            // default 1; equal options give equal files on every machine
  int64_t images;           // for training, 1 .. 1000000; default 20000
  int64_t held_out;         // for validation, and the same number for the test, 1 .. 100000; default 2000
  int size;                 // height and width in pixels, 16 .. 128; default 28
} tarn_drawings_options;

TARN_API void tarn_drawings_default(tarn_drawings_options *options);

// Writes IDX files, the format of MNIST: {train,valid,test}-images.idx, grey on black, and
// {train,valid,test}-labels.idx. The sets are drawn one after the other from one stream of random numbers. Fails with
// USAGE (options) or IO.
TARN_API tarn_status tarn_drawings_write(const tarn_drawings_options *options) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
