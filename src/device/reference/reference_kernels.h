// The plain C kernels, for files that are compiled in float and in double (cmake/kernels.cmake). They are slow and
// simple, and the standard for every other device.
#ifndef TARN_DEVICE_REFERENCE_REFERENCE_KERNELS_H
#define TARN_DEVICE_REFERENCE_REFERENCE_KERNELS_H

#include "device/op_list.h"
#include "device/variant.h"
#include "graph/graph.h"
#include "ops/ops.h"

struct tarn__attention_attr;
struct tarn__attention_backward;

#define TARN__REF_KERNEL(name) tarn_status TARN__REF(name)(const tarn__exec *exec, const tarn__node *node)
TARN__REF_KERNEL(tarn__adaptive_rows_ref);
TARN__REF_KERNEL(tarn__adaptive_scores_ref);
TARN__REF_KERNEL(tarn__add_ref);
TARN__REF_KERNEL(tarn__attention_ref);
TARN__REF_KERNEL(tarn__attention_backward_ref);
TARN__REF_KERNEL(tarn__attention_rows_ref);
TARN__REF_KERNEL(tarn__attention_tangent_ref);
TARN__REF_KERNEL(tarn__bias_table_ref);
TARN__REF_KERNEL(tarn__bias_table_backward_ref);
TARN__REF_KERNEL(tarn__cache_append_ref);
TARN__REF_KERNEL(tarn__conv_ref);
TARN__REF_KERNEL(tarn__conv_backward_ref);
TARN__REF_KERNEL(tarn__deletions_ref);
TARN__REF_KERNEL(tarn__dropout_ref);
TARN__REF_KERNEL(tarn__embedding_ref);
TARN__REF_KERNEL(tarn__embedding_backward_ref);
TARN__REF_KERNEL(tarn__feature_map_ref);
TARN__REF_KERNEL(tarn__feature_map_backward_ref);
TARN__REF_KERNEL(tarn__fourier_ref);
TARN__REF_KERNEL(tarn__gated_conv_ref);
TARN__REF_KERNEL(tarn__gated_conv_backward_ref);
TARN__REF_KERNEL(tarn__activation_ref);
TARN__REF_KERNEL(tarn__activation_tangent_ref);
TARN__REF_KERNEL(tarn__glu_ref);
TARN__REF_KERNEL(tarn__glu_backward_ref);
TARN__REF_KERNEL(tarn__glu_tangent_ref);
TARN__REF_KERNEL(tarn__sentence_mean_ref);
TARN__REF_KERNEL(tarn__sentence_mean_backward_ref);
TARN__REF_KERNEL(tarn__sentence_product_ref);
TARN__REF_KERNEL(tarn__squared_error_ref);
TARN__REF_KERNEL(tarn__scale_ref);
TARN__REF_KERNEL(tarn__scale_backward_ref);
TARN__REF_KERNEL(tarn__tanh_ref);
TARN__REF_KERNEL(tarn__tanh_backward_ref);
TARN__REF_KERNEL(tarn__hadamard_ref);
TARN__REF_KERNEL(tarn__hadamard_dx_ref);
TARN__REF_KERNEL(tarn__linear_attention_ref);
TARN__REF_KERNEL(tarn__linear_attention_backward_ref);
TARN__REF_KERNEL(tarn__linear_attention_rows_ref);
TARN__REF_KERNEL(tarn__halting_ref);
TARN__REF_KERNEL(tarn__halting_backward_ref);
TARN__REF_KERNEL(tarn__halting_tangent_ref);
TARN__REF_KERNEL(tarn__linear_ref);
TARN__REF_KERNEL(tarn__linear_dweight_ref);
TARN__REF_KERNEL(tarn__linear_dx_ref);
TARN__REF_KERNEL(tarn__linear_dz_ref);
TARN__REF_KERNEL(tarn__relative_attention_ref);
TARN__REF_KERNEL(tarn__relative_attention_backward_ref);
TARN__REF_KERNEL(tarn__relative_attention_tangent_ref);
TARN__REF_KERNEL(tarn__residual_norm_ref);
TARN__REF_KERNEL(tarn__loss_sum_ref);
TARN__REF_KERNEL(tarn__output_log_ref);
TARN__REF_KERNEL(tarn__output_loss_ref);
TARN__REF_KERNEL(tarn__output_top_ref);
TARN__REF_KERNEL(tarn__adjust_ref);
TARN__REF_KERNEL(tarn__best_ref);
TARN__REF_KERNEL(tarn__pick_ref);
TARN__REF_KERNEL(tarn__sample_ref);
TARN__REF_KERNEL(tarn__output_mixture_ref);
TARN__REF_KERNEL(tarn__pixels_ref);
TARN__REF_KERNEL(tarn__channel_conv_ref);
TARN__REF_KERNEL(tarn__channel_conv_backward_ref);
TARN__REF_KERNEL(tarn__neighbours_ref);
TARN__REF_KERNEL(tarn__neighbours_backward_ref);
TARN__REF_KERNEL(tarn__widen_ref);
TARN__REF_KERNEL(tarn__widen_backward_ref);
TARN__REF_KERNEL(tarn__pooling_ref);
TARN__REF_KERNEL(tarn__pooling_backward_ref);
TARN__REF_KERNEL(tarn__recurrence_ref);
TARN__REF_KERNEL(tarn__recurrence_backward_ref);
TARN__REF_KERNEL(tarn__recurrence_dweight_ref);
TARN__REF_KERNEL(tarn__recurrence_rows_ref);
TARN__REF_KERNEL(tarn__sparse_linear_ref);
TARN__REF_KERNEL(tarn__residual_norm_backward_ref);
TARN__REF_KERNEL(tarn__residual_norm_tangent_ref);
TARN__REF_KERNEL(tarn__rotary_ref);
TARN__REF_KERNEL(tarn__select_rows_ref);
TARN__REF_KERNEL(tarn__select_rows_backward_ref);
TARN__REF_KERNEL(tarn__stand_in_add_ref);
TARN__REF_KERNEL(tarn__stand_in_copy_ref);
TARN__REF_KERNEL(tarn__stand_in_measure_ref);
TARN__REF_KERNEL(tarn__token_linear_ref);
TARN__REF_KERNEL(tarn__token_linear_dweight_ref);
TARN__REF_KERNEL(tarn__token_linear_dx_ref);
TARN__REF_KERNEL(tarn__token_linear_rows_ref);
TARN__REF_KERNEL(tarn__swish_beta_ref);
TARN__REF_KERNEL(tarn__swish_beta_backward_ref);
TARN__REF_KERNEL(tarn__synthesis_ref);
TARN__REF_KERNEL(tarn__synthesis_backward_ref);
TARN__REF_KERNEL(tarn__synthesis_rows_ref);
TARN__REF_KERNEL(tarn__update_ref);
TARN__REF_KERNEL(tarn__conv_tangent_ref);
TARN__REF_KERNEL(tarn__feature_map_tangent_ref);
TARN__REF_KERNEL(tarn__gated_conv_tangent_ref);
TARN__REF_KERNEL(tarn__linear_attention_tangent_ref);
TARN__REF_KERNEL(tarn__output_tangent_ref);
TARN__REF_KERNEL(tarn__product_keys_tangent_ref);
TARN__REF_KERNEL(tarn__recurrence_tangent_ref);
TARN__REF_KERNEL(tarn__route_tangent_ref);
TARN__REF_KERNEL(tarn__synthesis_tangent_ref);
TARN__REF_KERNEL(tarn__tanh_tangent_ref);
TARN__REF_KERNEL(tarn__token_linear_tangent_ref);
TARN__REF_KERNEL(tarn__weighted_rows_tangent_ref);
TARN__REF_KERNEL(tarn__gather_rows_ref);
TARN__REF_KERNEL(tarn__gather_rows_backward_ref);
TARN__REF_KERNEL(tarn__grouped_linear_ref);
TARN__REF_KERNEL(tarn__grouped_dweight_ref);
TARN__REF_KERNEL(tarn__grouped_dx_ref);
TARN__REF_KERNEL(tarn__product_keys_ref);
TARN__REF_KERNEL(tarn__product_keys_backward_ref);
TARN__REF_KERNEL(tarn__route_ref);
TARN__REF_KERNEL(tarn__route_backward_ref);
TARN__REF_KERNEL(tarn__weighted_rows_ref);
TARN__REF_KERNEL(tarn__weighted_rows_backward_ref);
#undef TARN__REF_KERNEL

#define TARN__REF_SCRATCH(name) size_t TARN__REF(name)(const tarn__node *node, int threads)
TARN__REF_SCRATCH(tarn__attention_ref_scratch);
TARN__REF_SCRATCH(tarn__attention_backward_ref_scratch);
TARN__REF_SCRATCH(tarn__attention_rows_ref_scratch);
TARN__REF_SCRATCH(tarn__attention_tangent_ref_scratch);
TARN__REF_SCRATCH(tarn__bias_table_ref_scratch);
TARN__REF_SCRATCH(tarn__conv_ref_scratch);
TARN__REF_SCRATCH(tarn__fourier_ref_scratch);
TARN__REF_SCRATCH(tarn__hadamard_ref_scratch);
TARN__REF_SCRATCH(tarn__hadamard_dx_ref_scratch);
TARN__REF_SCRATCH(tarn__linear_attention_ref_scratch);
TARN__REF_SCRATCH(tarn__residual_norm_ref_scratch);
TARN__REF_SCRATCH(tarn__residual_norm_tangent_ref_scratch);
TARN__REF_SCRATCH(tarn__output_loss_ref_scratch);
TARN__REF_SCRATCH(tarn__output_top_ref_scratch);
TARN__REF_SCRATCH(tarn__sample_ref_scratch);
TARN__REF_SCRATCH(tarn__output_mixture_ref_scratch);
TARN__REF_SCRATCH(tarn__recurrence_ref_scratch);
TARN__REF_SCRATCH(tarn__product_keys_ref_scratch);
TARN__REF_SCRATCH(tarn__route_ref_scratch);
TARN__REF_SCRATCH(tarn__recurrence_rows_ref_scratch);
TARN__REF_SCRATCH(tarn__synthesis_ref_scratch);
#undef TARN__REF_SCRATCH

// Zeroes the columns of the gradients of queries, keys and values that no attention writes.
void TARN__REF(tarn__attention_zero_unwritten)(const struct tarn__attention_attr *attr,
                                               const struct tarn__attention_backward *b);

// An activation of one number, other than identity and relu, and its derivative.
TARN_REAL TARN__REF(tarn__activation_value)(TARN_REAL x, tarn__activation form);
TARN_REAL TARN__REF(tarn__activation_slope)(TARN_REAL x, tarn__activation form);

// Takes gradients through an activation before which there was `saved`, in place (ops/linear.h).
void TARN__REF(tarn__linear_slope)(TARN_REAL *dz, const TARN_REAL *saved, tarn__activation activation, int64_t count);

extern const tarn__device_kernel TARN__REF(tarn__reference_kernels)[TARN__OPS];

#endif
