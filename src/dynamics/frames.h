// Frames: k perturbations of a system, kept orthonormal.
#ifndef TARN_DYNAMICS_FRAMES_H
#define TARN_DYNAMICS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

// Vectors v_0 .. v_{k-1} of n numbers; v_i begins at vectors + i * stride. They are replaced by the Q of their QR
// factorisation, whose R has the diagonal `diagonal` [k] (NULL: not wanted), all entries at least 0: Gram and Schmidt's
// method in its modified form, every vector projected twice, after which it is orthogonal to the others to the last
// bits (Giraud, Langou and Rozloznik 2005). A vector that vanishes (its entry is 0) or is not finite (NAN) is replaced
// by a random one. k <= n.
void tarn__frame_orthonormalise(double *vectors, int64_t stride, int64_t n, int64_t k, double *diagonal,
                                tarn__random *random);

// A random orthonormal frame.
void tarn__frame_random(double *vectors, int64_t stride, int64_t n, int64_t k, tarn__random *random);

#endif
