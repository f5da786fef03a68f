// The recurrent matrices of echo state networks, in models of sentences and of series of numbers: a graph, normal
// weights on its edges, scaled to a spectral radius.
//
// Entry (i, j) is the weight from unit j to unit i. With n units and sparsity s there are about (1 - s) n edges per
// unit:
//   random       every entry, a unit's own among them, with probability 1 - s (Gilbert 1959, Erdos and Renyi 1959; the
//                Bernoulli mask of Ueda et al.)
//   small_world  a ring on which each unit knows its k nearest, k the even number next to (1 - s) n; each of the
//                n k / 2 pairs is rewired at one end with probability 0.1, which is where paths are short and
//                neighbourhoods still dense (Watts and Strogatz 1998); both directions of a pair have weights of their
//                own
//   scale_free   growth from a complete graph of m + 1 units, each new unit knowing m others drawn in proportion to how
//                many they know (Barabasi and Albert 1999); m gives the number of entries next to (1 - s) n^2; both
//                directions of a pair have weights of their own
//   ring         unit i hears the k units before it, k next to (1 - s) n and at least 1; 1: the simple cycle reservoir
//                (Rodan and Tino 2011)
#ifndef TARN_INIT_RESERVOIR_H
#define TARN_INIT_RESERVOIR_H

#include "base/random.h"
#include "base/sparse.h"
#include "graph/param.h"

// The graph with weights from a normal distribution of deviation 1. Fails with MEMORY.
tarn_status tarn__reservoir_graph(tarn__sparse *matrix, int64_t n, const tarn__reservoir *reservoir,
                                  tarn__random *random) TARN_CHECKED;

// The graph with its weights times *factor, which, if 0, is determined so that the spectral radius becomes `radius`;
// see tarn__spectral_factor(), also for its failures. A radius of 0 gives a matrix without edges, and leaves *factor 0.
// Equal generators and factors give equal bits on every machine. After a failure there is no matrix to close.
tarn_status tarn__reservoir_matrix(tarn__sparse *matrix, double *factor, int64_t n, double radius,
                                   const tarn__reservoir *reservoir, tarn__random *random) TARN_CHECKED;
// The same as values [n, n], rounded to float.
tarn_status tarn__reservoir_values(float *values, double *factor, int64_t n, double radius,
                                   const tarn__reservoir *reservoir, tarn__random *random) TARN_CHECKED;

#endif
