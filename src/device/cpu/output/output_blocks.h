// The output layer's loss and gradients in fp32, on every instruction set, exact or through tiles, without storing the
// logits of all words (output_blocks_node.c describes the order of the steps).
//
// A row's logits l_w are converted to weights e_w = exp(l_w - shift) immediately, as in output_tiles.h: the gradients
// are linear in e_w / sum, so the factor 1 / sum can be applied when the sum over all words is known.
#ifndef TARN_DEVICE_CPU_OUTPUT_OUTPUT_BLOCKS_H
#define TARN_DEVICE_CPU_OUTPUT_OUTPUT_BLOCKS_H

#include "device/variant.h"
#include "graph/graph.h"

typedef struct tarn__output_blocks_kernels {
  // Converts logits x to weights exp(x - shift), at most 2^126, so that a sum of weights that is too large is detected.
  // sums += {weights, logits}.
  void (*weigh)(float *x, int64_t n, float shift, double sums[2]);
  float (*largest)(const float *x, int64_t n);  // -FLT_MAX for n = 0
  float (*dot)(const float *x, const float *y, int64_t n);
  // sums[j] = the sum over rows r of factors[r] rows[r][j]; rows [count, n]. NULL: factors of 1.
  void (*add_rows)(float *sums, const float *rows, const float *factors, int64_t count, int64_t n);
  // dx[j] = factor * sums[j] + wanted * table[j] - offset * table_sums[j]; table_sums NULL: without the last.
  void (*finish_dx)(float *dx, const float *sums, const float *table, const float *table_sums, const float factors[3],
                    int64_t n);
} tarn__output_blocks_kernels;
TARN__TABLES(tarn__output_blocks_kernels);

// The node itself, if tarn__output_blocks_fit().
bool tarn__output_blocks_fit(const tarn__node *node);
size_t tarn__output_blocks_scratch(const tarn__node *node, int threads);
void tarn__output_blocks_run(const tarn__exec *exec, const tarn__node *node);

#endif
