// Products of groups of rows, each with its own B: for experts. The number of rows in a group is known only when they
// run (gemm_within.h). Every element has the same bits as in a separate product (gemm.h).
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_GROUPS_H
#define TARN_DEVICE_CPU_GEMM_GEMM_GROUPS_H

#include "device/cpu/gemm/gemm.h"

// The products differ in m or, with transpose_a, in k, and in their pointers. One without rows or terms leaves its C
// unchanged. None has `packed` or int8.
typedef struct tarn__gemm_groups {
  int64_t count;
  tarn__gemm (*product)(const void *user, int64_t group);
  const void *user;
} tarn__gemm_groups;

// Bytes of scratch; `most` has the shape of the products and the maximum total of rows.
size_t tarn__gemm_groups_scratch(const tarn__gemm *most, int threads);
// Computes them with `threads` threads and `bytes` bytes of scratch, aligned to 64 bytes.
void tarn__gemm_groups_run(const tarn__gemm_groups *groups, int threads, void *scratch, size_t bytes);

// An implementation that runs all of them together.
typedef struct tarn__gemm_groups_way {
  size_t (*scratch)(const tarn__gemm *most, int threads);
  void (*run)(const tarn__gemm_groups *groups, int threads, void *scratch, size_t bytes);
} tarn__gemm_groups_way;

// For BF16 by tiles (gemm_tiles.c).
extern const tarn__gemm_groups_way tarn__gemm_tiles_groups;

#endif
