// Patches of images as rows of numbers (Dosovitskiy et al. 2021).
#ifndef TARN_OPS_PIXELS_H
#define TARN_OPS_PIXELS_H

#include "base/host_device.h"
#include "base/pixel_words.h"
#include "graph/graph.h"

// x [R, width] in the type of activations: the pixels of row r as numbers from -1 (byte 0) to 1 (byte 255), or zeros if
// it is no patch (ids[r] = 0: the class token). bytes: the R * width bytes of all rows, in integers of four bytes each,
// the last one filled up (a graph's inputs are integers). ids: I32 [1, R]. There is no gradient: images are data.
tarn__tensor *tarn__pixels(tarn__graph *graph, tarn__tensor *bytes, tarn__tensor *ids, int64_t width);

// The number of a byte, rounded to fp32.
static inline TARN__HOST_DEVICE double tarn__pixel_value(uint8_t byte) { return ((double)byte - 127.5) / 127.5; }

enum { TARN__PIXELS_BYTES, TARN__PIXELS_IDS };

#endif
