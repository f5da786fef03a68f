// Products of BF16 by tiles of a matrix extension: operands packed tile by tile, the kernel that multiplies them, and
// the execution of a tarn__gemm by it (gemm_tiles.c, called by gemm.c).
//
// Lines are rows of A or columns of B. 32 lines make a panel, 32 terms of k a step: two consecutive tiles of 1 KB each,
// 16 lines of A as [line][term], or 16 columns of B as [pair of terms][column]. Missing elements are zero. Sixteen
// steps of a panel make a chunk, 32 KB; a packed operand is [chunk][panel][step][1024 elements]. So a kernel reads B
// sequentially, from the L2 cache by loads that bypass L1, where a chunk of a panel of A stays (of 48 KB).
//
// A step of a block of 2 x 2 tiles of sums is four tile loads and four multiplications of 16 cycles each, a sixteenth
// of 512 terms. Sums continue from chunk to chunk in fp32, so the length of a chunk does not affect the result.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_TILES_H
#define TARN_DEVICE_CPU_GEMM_GEMM_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cpu/gemm/gemm_kernels.h"

enum {
  TARN__TILES_LINES = 32,
  TARN__TILES_TERMS = 32,         // of a step
  TARN__TILES_STEP_BYTES = 2048,  // of a step of a panel
  TARN__TILES_CHUNK_STEPS = 16,
  TARN__TILES_FEW = 2,     // rows whose sums of two panels fit the vector registers
  TARN__TILES_SUMS = 1024  // of a panel of A with one of B, in fp32: four tiles, [rows / 16][columns / 16][16][16]
};

// At most 32 lines, and any number of terms, to be packed as the steps of one panel.
typedef struct tarn__tiles_lines {
  const uint16_t *from;
  int64_t ld;  // elements between two lines or, if they are strided, between two terms
  int64_t lines, terms;
  bool across;  // false: a line is contiguous; true: strided
  bool is_b;
  float *sums;  // of strided lines of A: to each the sum of its terms is added; NULL: none
} tarn__tiles_lines;

// The use of complete sums: C = act(sums + bias), or C += sums.
typedef struct tarn__tiles_finish {
  void *c;  // of the first row, first column
  int64_t ldc;
  tarn__dtype c_dtype;
  const float *bias;  // of the columns, or NULL
  bool accumulate, relu;
} tarn__tiles_finish;

// Memory that will be read soon: rows of `width` bytes, `stride` bytes apart. Every step of a multiplication prefetches
// `lines` cache lines of it, from `at` on; `end` is the end of the row at `at`.
typedef struct tarn__tiles_ahead {
  const char *at, *end;
  int64_t width, stride, lines;
} tarn__tiles_ahead;

// Sums of one panel of A with panels of B over some steps.
typedef struct tarn__tiles_block {
  const void *a, *b;
  int64_t a_row, a_step;             // bytes between two rows of A and between two of its steps
  int64_t rows, columns, steps;      // at most 32 rows
  int64_t b_stride;                  // bytes between two panels of B
  float *sums;                       // TARN__TILES_SUMS for each panel of B; read only with `add`
  bool add;                          // add to the sums
  tarn__tiles_ahead *ahead[2];       // or NULL
  const tarn__tiles_finish *finish;  // NULL: the sums are written to `sums`; else they go to C, and `sums` is only read
} tarn__tiles_block;

// In gemm_amx.c. begin and end enclose a thread's multiplications.
void tarn__tiles_begin(void);
void tarn__tiles_end(void);
void tarn__tiles_multiply(const tarn__tiles_block *block);
// In gemm_few_amx.c: the same for at most TARN__TILES_FEW rows. Not enclosed, and without `ahead`.
void tarn__tiles_multiply_few(const tarn__tiles_block *block);
void tarn__tiles_pack(void *out, const tarn__tiles_lines *lines);

// The implementation of products of BF16 (gemm_tiles.c).
extern const tarn__gemm_way tarn__gemm_tiles;

#endif
