// Inside of gemm_split: operands of fp32 as tiles of bf16 parts, and the kernel that multiplies them.
//
// A number x is the sum of its parts: x1 = bf16(x), x2 = bf16(x - x1) and, where there are three, x3 = x - x1 - x2,
// which leaves nothing. Terms of k are taken 32 at a time: a step. A tile is one part of one step of 16 lines (rows of
// A or columns of B), 16 rows of 64 bytes; in each unit of 32 bits lie term t and term t + 16 of the step, of A as
// [line][unit], of B as [unit][line]. Tiles of a group of 16 lines follow one another as [step][part]. What is left of
// a last step, and of a last group, is zero.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_SPLIT_KERNELS_H
#define TARN_DEVICE_CPU_GEMM_GEMM_SPLIT_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

enum {
  TARN__SPLIT_GROUP = 16,
  TARN__SPLIT_STEP = 32,
  TARN__SPLIT_TILE = 1024,  // bytes
  TARN__SPLIT_STEPS = 4     // of one block of k, at most: so that 32 rows stay in the L1 cache
};

// Lines of one block of k.
typedef struct tarn__split_lines {
  const float *from;    // first element
  int64_t ld;           // distance in elements of two lines (along), or of two terms of k (across)
  int64_t count, k;     // lines; elements of each, at most TARN__SPLIT_STEPS steps
  int64_t group_bytes;  // distance of two groups in the packed form
  int parts;            // 2 or 3
  bool across;          // false: a line lies along the memory; true: across it
  bool right;           // columns of B; else rows of A
} tarn__split_lines;

// C [m, n] (+)= A B over one block of k.
typedef struct tarn__split_block {
  const char *a, *b;  // packed; groups lie steps * parts tiles apart, and of B there is an even number of them
  int64_t m, n, steps;
  int parts;
  float *c;
  int64_t ldc;
  const float *bias;      // [n] or NULL: added at the end
  bool accumulate, relu;  // adds to C; C = max(C, 0) at the end
} tarn__split_block;

typedef struct tarn__split_kernels {
  void (*pack)(char *out, const tarn__split_lines *lines);  // out: aligned to 64 bytes
  void (*multiply)(const tarn__split_block *block);
} tarn__split_kernels;

extern const tarn__split_kernels tarn__split_kernels_amx;

#endif
