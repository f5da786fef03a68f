// Packed sentences: the concatenated rows of all sentences, with offsets. There is no padding.
#ifndef TARN_DATA_PACKED_H
#define TARN_DATA_PACKED_H

#include <stdint.h>

// The caller owns the memory. Pointers may be NULL if a graph is only planned.
typedef struct tarn__packed {
  int64_t sentences, rows;
  int64_t longest;           // upper bound of the tokens of one sentence
  const int32_t *ids;        // [rows]
  const int32_t *positions;  // [rows], position of each token in its sentence, from 0
  const int32_t *offsets;    // [sentences + 1]
  const int32_t *segments;   // [rows], for models with segments: that of each token, from 0
  const int32_t *pixels;     // for images: the bytes of the patches of all rows (data/image_cut.h), four in an integer
} tarn__packed;

// positions[r] of packed sentences from their offsets.
static inline void tarn__packed_positions(int32_t *positions, const int32_t *offsets, int64_t sentences) {
  for (int64_t s = 0; s < sentences; s++)
    for (int32_t r = offsets[s]; r < offsets[s + 1]; r++) positions[r] = r - offsets[s];
}

#endif
