// The op fourier: the discrete Fourier transform as a token mixer (FNet: Lee-Thorp et al. 2021, arXiv 2105.03824), over
// packed sentences. A sentence X of n rows and d columns becomes the real part of its transform along tokens and along
// features, which are exact for any n and d:
//   Y = Re(F_n X F_d) = C_n X C_d - S_n X S_d,   C_n[i][k] = cos(2 pi i k / n),  S_n[i][k] = sin(2 pi i k / n)
// It is symmetric, so its gradient is the same transform of dY; it keeps nothing and has no weights.
//
// As X is real, columns j and d - j of X C_d are equal and those of X S_d opposite, and likewise rows i and n - i of
// the result: devices compute d / 2 + 1 columns and n / 2 + 1 rows of cosines, (d - 1) / 2 and (n - 1) / 2 of sines,
// and these are counted as operations.
#ifndef TARN_OPS_FOURIER_H
#define TARN_OPS_FOURIER_H

#include "base/host_device.h"
#include "graph/graph.h"

// y [R, d]; offsets: I32 [1, sentences + 1]; longest: upper bound of the rows of a sentence, for scratch.
tarn__tensor *tarn__fourier(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, int64_t longest);

typedef struct tarn__fourier_attr {
  int64_t longest;
} tarn__fourier_attr;

// PREVIOUS: the result is added to it, in its memory; NULL: nothing.
enum { TARN__FOURIER_X, TARN__FOURIER_OFFSETS, TARN__FOURIER_PREVIOUS };

// The number of cosines among n lines of a transform; the others are the sines of the frequencies 1 to n - cosines.
static inline TARN__HOST_DEVICE int64_t tarn__fourier_cosines(int64_t n) { return n / 2 + 1; }
static inline TARN__HOST_DEVICE int64_t tarn__fourier_sines(int64_t n) { return (n - 1) / 2; }

#endif
