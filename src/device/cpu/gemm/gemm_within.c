#include "device/cpu/gemm/gemm_within.h"

char *tarn__gemm_element(const void *data, tarn__dtype dtype, int64_t index) {
  char *first = (char *)(uintptr_t)data;  // NULL while the graph is only planned
  return index ? first + index * (int64_t)tarn__dtype_size(dtype) : first;
}

// The first `rows` rows of a product of rows, or terms of a product of columns, and those from `rows` on.
static tarn__gemm head_of(const tarn__gemm *g, int64_t rows) {
  tarn__gemm head = *g;
  *(g->transpose_a ? &head.k : &head.m) = rows;
  return head;
}

static tarn__gemm tail_of(const tarn__gemm *g, int64_t rows) {
  tarn__gemm tail = *g;
  tail.a = tarn__gemm_element(g->a, g->dtype, rows * g->lda);
  if (g->transpose_a) {
    tail.k -= rows;
    tail.b = tarn__gemm_element(g->b, g->dtype, rows * g->ldb);
    tail.accumulate = true;
  } else {
    tail.m -= rows;
    tail.c = tarn__gemm_element(g->c, g->c_dtype, rows * g->ldc);
  }
  return tail;
}

static int64_t rows_of(const tarn__gemm *g) { return g->transpose_a ? g->k : g->m; }

void tarn__gemm_run_within(const tarn__gemm *gemm, int threads, void *scratch, size_t bytes) {
  tarn__gemm product = *gemm;
  while (rows_of(&product) > 0) {
    tarn__gemm head = product;
    while (rows_of(&head) > 1 && tarn__gemm_scratch(&head, threads) > bytes)
      head = head_of(&product, (rows_of(&head) + 1) / 2);
    tarn__gemm_run(&head, threads, scratch);
    product = tail_of(&product, rows_of(&head));
  }
}

size_t tarn__gemm_scratch_within(const tarn__gemm *gemm, int threads) {
  size_t most = 0;
  for (int64_t rows = rows_of(gemm); rows > 0; rows /= 2) {
    const tarn__gemm part = head_of(gemm, rows);
    const size_t bytes = tarn__gemm_scratch(&part, threads);
    if (bytes > most) most = bytes;
  }
  return most;
}
