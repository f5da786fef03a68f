// Internals of gemm_split: fp32 operands as tiles of bf16 parts, and the kernel that multiplies them.
//
// A number x is the sum of its parts: x1 = bf16(x), x2 = bf16(x - x1) and, with three, x3 = x - x1 - x2, without a
// remainder. Terms of k are processed 32 at a time: a step. A tile is one part of one step of 16 lines (rows of A or
// columns of B), 16 rows of 64 bytes. Each unit of 32 bits contains terms t and t + 16 of the step, for A as
// [line][unit], for B as [unit][line]. Tiles of a group of 16 lines are ordered as [step][part]. Incomplete steps and
// groups are padded with zeros.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_SPLIT_KERNELS_H
#define TARN_DEVICE_CPU_GEMM_GEMM_SPLIT_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

enum {
  TARN__SPLIT_GROUP = 16,
  TARN__SPLIT_STEP = 32,
  TARN__SPLIT_TILE = 1024,  // bytes
  TARN__SPLIT_STEPS = 4     // maximum of one block of k, so that 32 rows stay in the L1 cache
};

// Lines of one block of k.
typedef struct tarn__split_lines {
  const float *from;    // first element
  int64_t ld;           // distance in elements between two lines (along), or between two terms of k (across)
  int64_t count, k;     // lines; elements of each, at most TARN__SPLIT_STEPS steps
  int64_t group_bytes;  // distance between two groups in the packed form
  int parts;            // 2 or 3
  bool across;          // false: a line is contiguous; true: strided
  bool right;           // columns of B; else rows of A
} tarn__split_lines;

// C [m, n] (+)= A B over one block of k.
typedef struct tarn__split_block {
  const char *a, *b;  // packed; groups are steps * parts tiles apart; B has an even number of them
  int64_t m, n, steps;
  int parts;
  float *c;
  int64_t ldc;
  const float *bias;      // [n] or NULL: added at the end
  bool accumulate, relu;  // add to C; C = max(C, 0) at the end
} tarn__split_block;

typedef struct tarn__split_kernels {
  void (*pack)(char *out, const tarn__split_lines *lines);  // out: aligned to 64 bytes
  void (*multiply)(const tarn__split_block *block);
} tarn__split_kernels;

extern const tarn__split_kernels tarn__split_kernels_amx;

#endif
