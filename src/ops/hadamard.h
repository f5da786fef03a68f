// Structured orthogonal projections: the op hadamard.
//
// A square transform of width n is three rounds of random signs and a normalised Hadamard transform (Yu et al. 2016,
// "Orthogonal random features"; after Le, Sarlos and Smola 2013, "Fastfood"):
//   Q = H D3 H D2 H D1, D diagonal matrices of signs, H of order n, H H = I
// It costs 3 n log2 n additions instead of n^2 multiply-adds and keeps 3 n signs instead of n^2 weights.
// If n is no power of two there are six rounds, which transform the first, the last, the middle, and again the first,
// the last and the middle N elements instead of all n, N being the largest power of two below n. Each round is
// orthogonal, and so is Q.
//
// A block of rows [out, in] of a projection is composed of square transforms and has orthonormal rows (out <= in) or
// columns (out >= in):
//   out = k in       k transforms of width `in` over one another, each times 1 / sqrt(k)
//   in = k out       k transforms of width `out` side by side, each times 1 / sqrt(k): their sum
//   else             one transform of the larger width, the input filled up with zeros or the output cut
//
// Nodes:
//   hadamard     in: x, signs, bias or NULL                               out: y
//   hadamard_dx  in: dy, signs, y (relu) or NULL, gradient so far or NULL out: dx
#ifndef TARN_OPS_HADAMARD_H
#define TARN_OPS_HADAMARD_H

#include "base/host_device.h"
#include "base/status.h"
#include "graph/graph.h"

// How a projection is cut into square transforms. Transform t = b * parts + j is number j of block b; its signs D1, D2,
// .. are rows t * rounds, t * rounds + 1, .. of the signs, a matrix [rounds * blocks * parts, width].
typedef struct tarn__hadamard_shape {
  int64_t out, in;  // of one block
  int64_t blocks;   // blocks of `out` rows; all have the same input
  int64_t width;    // of a transform
  int64_t parts;    // transforms of a block
  int64_t window;   // elements transformed by a round: the largest power of two not above `width`
  int rounds;       // 3 if window is width, else 6
  double scale;     // 1 / sqrt(parts), times the gain of the signs' initialiser
} tarn__hadamard_shape;

// The shape of a matrix [out, in] whose rows are cut into `blocks` equal blocks. All sizes are 1 or more.
tarn__hadamard_shape tarn__hadamard_shape_of(int64_t out, int64_t in, int blocks);
// The same for the signs of a projection (param->out and param->in).
tarn__hadamard_shape tarn__hadamard_shape_signs(const tarn__param *signs);
static inline int64_t tarn__hadamard_sign_rows(const tarn__hadamard_shape *shape) {
  return shape->rounds * shape->blocks * shape->parts;
}

// The matrix [blocks * out, in] given by signs. Computed in double with sums of fixed order: equal bits on every
// machine.
tarn_status tarn__hadamard_dense(float *values, const float *signs, const tarn__hadamard_shape *shape) TARN_CHECKED;

// The elements of x and y that a transform reads and writes.
typedef struct tarn__hadamard_ends {
  int64_t in_at, in_count, out_at, out_count;
} tarn__hadamard_ends;

static inline TARN__HOST_DEVICE tarn__hadamard_ends tarn__hadamard_ends_of(const tarn__hadamard_shape *shape,
                                                                           int64_t transform) {
  int64_t block = transform / shape->parts, part = transform % shape->parts;
  bool side_by_side = shape->in > shape->out;
  return (tarn__hadamard_ends){.in_at = side_by_side ? part * shape->width : 0,
                               .in_count = shape->in < shape->width ? shape->in : shape->width,
                               .out_at = block * shape->out + (side_by_side ? 0 : part * shape->width),
                               .out_count = shape->out < shape->width ? shape->out : shape->width};
}

// The signs [rounds, width] of a transform, as an offset.
static inline TARN__HOST_DEVICE int64_t tarn__hadamard_signs_at(const tarn__hadamard_shape *shape, int64_t transform) {
  return transform * shape->rounds * shape->width;
}

// First element of the window of a round.
static inline TARN__HOST_DEVICE int64_t tarn__hadamard_start(const tarn__hadamard_shape *shape, int round) {
  int64_t rest = shape->width - shape->window;
  return round % 3 == 0 ? 0 : round % 3 == 1 ? rest : rest / 2;
}

// The attribute of both nodes; relu: only of hadamard.
typedef struct tarn__hadamard_attr {
  tarn__hadamard_shape shape;
  int relu;  // 0 or 1
} tarn__hadamard_attr;

#endif
