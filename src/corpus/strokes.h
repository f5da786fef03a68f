// The drawings as strokes, and their pixels.
#ifndef TARN_CORPUS_STROKES_H
#define TARN_CORPUS_STROKES_H

#include <stdint.h>

#include "base/random.h"
#include "tarn/lab/drawings.h"

// Classes of a kind of drawings.
int tarn__strokes_classes(tarn_drawings_what what);
// Draws an image of a class, [size, size] bytes, white on black: its strokes are bent, slanted, turned, scaled and
// moved at random, beside some strokes that belong to nothing, and all pixels get noise.
void tarn__strokes_draw(uint8_t *pixels, int size, tarn_drawings_what what, int class, tarn__random *random);

#endif
