// Kernels that compute whole nodes, compiled once for each instruction set: a table per op and set. Tables of kernels
// that compute a part of a node are in separate headers (linear_kernels.h and others).
#ifndef TARN_DEVICE_CPU_NODE_TABLES_H
#define TARN_DEVICE_CPU_NODE_TABLES_H

#include "device/variant.h"
#include "graph/graph.h"
#include "ops/depthwise_conv.h"
#include "ops/ops.h"

typedef struct tarn__add_kernels {
  tarn__kernel add;
} tarn__add_kernels;
TARN__TABLES(tarn__add_kernels);

typedef struct tarn__attention_kernels {
  tarn__kernel forward, backward;
  size_t (*scratch)(const tarn__node *node, int threads);  // bytes
  size_t (*backward_scratch)(const tarn__node *node, int threads);
} tarn__attention_kernels;
TARN__TABLES(tarn__attention_kernels);

typedef struct tarn__attention_rows_kernels {
  tarn__kernel forward;
  size_t (*scratch)(const tarn__attention_spec *spec, int threads);  // bytes
} tarn__attention_rows_kernels;
TARN__TABLES(tarn__attention_rows_kernels);

typedef struct tarn__channel_conv_kernels {
  tarn__kernel forward, backward;
} tarn__channel_conv_kernels;
TARN__TABLES(tarn__channel_conv_kernels);

typedef struct tarn__conv_kernels {
  tarn__kernel forward, backward;
  size_t (*scratch)(const tarn__conv_spec *spec, int64_t d, tarn__dtype dtype, int threads);  // bytes, for both
} tarn__conv_kernels;
TARN__TABLES(tarn__conv_kernels);

typedef struct tarn__dropout_kernels {
  tarn__kernel apply;
} tarn__dropout_kernels;
TARN__TABLES(tarn__dropout_kernels);

typedef struct tarn__embedding_kernels {
  tarn__kernel forward, backward;
  size_t (*scratch)(int64_t cols, int threads);  // bytes, for both
} tarn__embedding_kernels;
TARN__TABLES(tarn__embedding_kernels);

// Rows of floats of scratch per thread: forward and tangents 4, backward 11.
enum { TARN__GC_FORWARD_ROWS = 4, TARN__GC_BACKWARD_ROWS = 11 };

typedef struct tarn__gated_conv_kernels {
  tarn__kernel forward, backward, tangent;
} tarn__gated_conv_kernels;
TARN__TABLES(tarn__gated_conv_kernels);

typedef struct tarn__glu_kernels {
  tarn__kernel forward, backward;
} tarn__glu_kernels;
TARN__TABLES(tarn__glu_kernels);

typedef struct tarn__neighbours_kernels {
  tarn__kernel forward, backward;
} tarn__neighbours_kernels;
TARN__TABLES(tarn__neighbours_kernels);

typedef struct tarn__pooling_kernels {
  tarn__kernel forward, backward;
  size_t (*scratch)(const tarn__node *node, int threads);  // bytes, for both
} tarn__pooling_kernels;
TARN__TABLES(tarn__pooling_kernels);

typedef struct tarn__residual_norm_kernels {
  tarn__kernel forward, backward;
  size_t (*scratch)(int64_t cols, int threads);  // bytes, for both
} tarn__residual_norm_kernels;
TARN__TABLES(tarn__residual_norm_kernels);

// Cosines and sines of the angles of all positions from `least` on, for a node of rotary that is joined to another.
typedef struct tarn__rotary_table {
  const tarn__node *node;
  const float *angles;
  int32_t least;
} tarn__rotary_table;

typedef struct tarn__rotary_kernels {
  tarn__kernel forward;
  size_t (*scratch)(const tarn__node *node, int threads);  // bytes
  // A table of at most `most` positions: its bytes, and the table in such memory; false: there are more positions.
  size_t (*table_bytes)(const tarn__node *node, int64_t most);
  bool (*table)(tarn__rotary_table *table, const tarn__node *node, float *memory, int64_t most, int threads);
  // Turns a head of the node in rows [first, last), in place.
  void (*turn)(const tarn__rotary_table *table, int64_t head, int64_t first, int64_t last);
} tarn__rotary_kernels;
TARN__TABLES(tarn__rotary_kernels);

typedef struct tarn__sentence_mean_kernels {
  tarn__kernel forward, backward;
} tarn__sentence_mean_kernels;
TARN__TABLES(tarn__sentence_mean_kernels);

typedef struct tarn__stand_in_kernels {
  tarn__kernel copy, add, measure;
} tarn__stand_in_kernels;
TARN__TABLES(tarn__stand_in_kernels);

typedef struct tarn__tanh_kernels {
  tarn__kernel forward, backward;
} tarn__tanh_kernels;
TARN__TABLES(tarn__tanh_kernels);

typedef struct tarn__widen_kernels {
  tarn__kernel forward, backward;
} tarn__widen_kernels;
TARN__TABLES(tarn__widen_kernels);

#endif
