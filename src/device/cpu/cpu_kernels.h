// Kernels of the processor for nodes of a graph. Most kernels process whole nodes and are compiled for each instruction
// set (node_tables.h); the ones here first divide a node into products and rows (NAME_node.c). Scratch sizes are in
// bytes.
#ifndef TARN_DEVICE_CPU_CPU_KERNELS_H
#define TARN_DEVICE_CPU_CPU_KERNELS_H

#include "device/op_list.h"
#include "graph/graph.h"

tarn_status tarn__cpu_attention_backward(const tarn__exec *exec, const tarn__node *node);
bool tarn__cpu_attention_joins(const tarn__node *node, const tarn__node *other, bool before);
tarn_status tarn__cpu_bias_table(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_bias_table_backward(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_cache_append(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_activation(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_feature_map(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_feature_map_backward(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_feature_map_tangent(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_hadamard(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_hadamard_dx(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_halting(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_halting_backward(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_halting_tangent(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_linear(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_linear_attention(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_linear_attention_backward(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_linear_attention_rows(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_linear_attention_tangent(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_linear_dweight(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_linear_dx(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_linear_dz(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_output_log(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_output_loss(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_output_top(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_deletions(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_pixels(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_sample(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_adjust(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_best(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_pick(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_recurrence(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_recurrence_backward(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_recurrence_dweight(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_recurrence_rows(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_sparse_linear(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_select_rows(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_select_rows_backward(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_sentence_product(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_squared_error(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_synthesis(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_synthesis_backward(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_synthesis_rows(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_synthesis_tangent(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_update(const tarn__exec *exec, const tarn__node *node);

size_t tarn__cpu_bias_table_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_feature_map_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_hadamard_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_linear_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_linear_attention_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_linear_attention_rows_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_linear_dweight_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_linear_dx_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_linear_dz_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_output_log_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_output_loss_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_output_top_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_sample_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_pick_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_recurrence_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_recurrence_backward_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_recurrence_dweight_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_recurrence_rows_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_sparse_linear_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_sentence_product_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_synthesis_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_synthesis_rows_scratch(const tarn__node *node, int threads);

// One line per op.
extern const tarn__device_kernel tarn__cpu_kernels[TARN__OPS];

#endif
