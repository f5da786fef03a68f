// The spectral radius of a matrix: the largest modulus of its eigenvalues, which for random matrices are mostly complex
// pairs.
//
// The matrix is split into the strongly connected components of its graph. A single unit and a simple ring have closed
// forms, a small component uses LAPACK (dgeev), a large one ARPACK (dnaupd), or LAPACK if ARPACK does not converge, for
// example when many eigenvalues lie on one circle. A matrix without a cycle is nilpotent and has exactly the radius 0.
//
// The last bits of a result depend on the BLAS that LAPACK uses and on its threads.
#ifndef TARN_INIT_SPECTRAL_RADIUS_H
#define TARN_INIT_SPECTRAL_RADIUS_H

#include "base/sparse.h"
#include "base/status.h"

// Relative error about 1e-10 for matrices that are not far from normal, about 1e-8 for more than 8192 units. Fails with
// DATA (an entry is not finite), MEMORY, or NUMERIC (LAPACK finds no eigenvalues, or a component that needs it has more
// than 8192 units).
tarn_status tarn__spectral_radius(double *radius, const tarn__sparse *matrix) TARN_CHECKED;
// The same for a dense matrix [n, n], row-major.
tarn_status tarn__spectral_radius_dense(double *radius, const double *matrix, int64_t n) TARN_CHECKED;

// The factor that gives the matrix the spectral radius `radius` (to 1e-6). It is rounded to 20 bits, so that machines
// whose LAPACKs differ in the last bits, which also depend on threads, agree on it. For a radius of 0 it is 0 for any
// matrix. Fails as above, with USAGE if `radius` is negative or not finite, and with DATA if the matrix has no edges or
// is nilpotent, so that no factor exists. A radius below 1e-7 of the Frobenius norm counts as nilpotent.
tarn_status tarn__spectral_factor(double *factor, const tarn__sparse *matrix, double radius) TARN_CHECKED;

#endif
