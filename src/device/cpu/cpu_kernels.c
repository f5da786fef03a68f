#include "device/cpu/cpu_kernels.h"

#include "device/cpu/attention/relative_attention_kernels.h"
#include "device/cpu/experts/experts_kernels.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/mixing/fourier_kernels.h"
#include "device/cpu/mixing/token_linear_kernels.h"
#include "device/cpu/node_tables.h"
#include "device/cpu/output/adaptive_kernels.h"
#include "device/cpu/output/output_mixture_kernels.h"
#include "device/cpu/recurrence/recurrence_tangent_kernels.h"
#include "device/cpu/rows/scale_kernels.h"
#include "device/cpu/rows/swish_beta_kernels.h"
#include "device/cpu/rows/tangent_kernels.h"
#include "ops/attention.h"
#include "ops/deletions.h"
#include "ops/embedding.h"
#include "ops/residual_norm.h"

static tarn_status mark(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  (void)node;
  return TARN_STATUS_OK;
}

// Calls the kernel of a node from the table of the instruction set in use.
#define NODE_OF(function, table, member)                                        \
  static tarn_status function(const tarn__exec *exec, const tarn__node *node) { \
    return TARN__TABLE_NOW(table)->member(exec, node);                          \
  }

NODE_OF(activation_tangent, tarn__activation_tangent_kernels, activation)
NODE_OF(add, tarn__add_kernels, add)
NODE_OF(attention_forward, tarn__attention_kernels, forward)
NODE_OF(attention_rows_forward, tarn__attention_rows_kernels, forward)
NODE_OF(attention_tangent, tarn__attention_tangent_kernels, run)
NODE_OF(channel_conv_backward, tarn__channel_conv_kernels, backward)
NODE_OF(channel_conv_forward, tarn__channel_conv_kernels, forward)
NODE_OF(conv_backward, tarn__conv_kernels, backward)
NODE_OF(conv_forward, tarn__conv_kernels, forward)
NODE_OF(conv_tangent, tarn__conv_tangent_kernels, run)
NODE_OF(dropout, tarn__dropout_kernels, apply)
NODE_OF(embedding_backward, tarn__embedding_kernels, backward)
NODE_OF(embedding_forward, tarn__embedding_kernels, forward)
NODE_OF(gated_conv_backward, tarn__gated_conv_kernels, backward)
NODE_OF(gated_conv_forward, tarn__gated_conv_kernels, forward)
NODE_OF(gated_conv_tangent, tarn__gated_conv_kernels, tangent)
NODE_OF(gather_rows, tarn__weighted_rows_kernels, gather)
NODE_OF(gather_rows_backward, tarn__weighted_rows_kernels, gather_backward)
NODE_OF(glu_backward, tarn__glu_kernels, backward)
NODE_OF(glu_forward, tarn__glu_kernels, forward)
NODE_OF(glu_tangent, tarn__activation_tangent_kernels, glu)
NODE_OF(neighbours_backward, tarn__neighbours_kernels, backward)
NODE_OF(neighbours_forward, tarn__neighbours_kernels, forward)
NODE_OF(norm_tangent, tarn__norm_tangent_kernels, run)
NODE_OF(pooling_backward, tarn__pooling_kernels, backward)
NODE_OF(pooling_forward, tarn__pooling_kernels, forward)
NODE_OF(product_keys_backward, tarn__product_keys_kernels, backward)
NODE_OF(output_tangent, tarn__output_tangent_kernels, run)
NODE_OF(product_keys_tangent, tarn__product_keys_kernels, tangent)
NODE_OF(residual_norm_backward, tarn__residual_norm_kernels, backward)
NODE_OF(residual_norm_forward, tarn__residual_norm_kernels, forward)
NODE_OF(rotary_forward, tarn__rotary_kernels, forward)
NODE_OF(scale_backward, tarn__scale_kernels, backward)
NODE_OF(scale_forward, tarn__scale_kernels, forward)
NODE_OF(route_backward, tarn__route_kernels, backward)
NODE_OF(route_forward, tarn__route_kernels, forward)
NODE_OF(route_tangent, tarn__route_kernels, tangent)
NODE_OF(sentence_mean_backward, tarn__sentence_mean_kernels, backward)
NODE_OF(sentence_mean_forward, tarn__sentence_mean_kernels, forward)
NODE_OF(stand_in_add, tarn__stand_in_kernels, add)
NODE_OF(stand_in_copy, tarn__stand_in_kernels, copy)
NODE_OF(stand_in_measure, tarn__stand_in_kernels, measure)
NODE_OF(swish_backward, tarn__swish_kernels, backward)
NODE_OF(swish_forward, tarn__swish_kernels, forward)
NODE_OF(tanh_backward, tarn__tanh_kernels, backward)
NODE_OF(tanh_forward, tarn__tanh_kernels, forward)
NODE_OF(tanh_tangent, tarn__gate_tangent_kernels, tanh)
NODE_OF(token_gate_tangent, tarn__gate_tangent_kernels, token_gate)
NODE_OF(weighted_rows_backward, tarn__weighted_rows_kernels, backward)
NODE_OF(weighted_rows_forward, tarn__weighted_rows_kernels, forward)
NODE_OF(weighted_rows_tangent, tarn__weighted_rows_kernels, tangent)
NODE_OF(widen_backward, tarn__widen_kernels, backward)
NODE_OF(widen_forward, tarn__widen_kernels, forward)
#undef NODE_OF

static size_t attention_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__attention_kernels)->scratch(node, threads);
}

static size_t attention_backward_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__attention_kernels)->backward_scratch(node, threads);
}

static size_t attention_rows_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__attention_rows_kernels)->scratch(node->attr, threads);
}

static size_t attention_tangent_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__attention_tangent_kernels)->scratch(node->attr, threads);
}

static size_t conv_scratch(const tarn__node *node, int threads) {
  const tarn__conv_attr *attr = node->attr;
  const tarn__tensor *any = node->in[TARN__CONV_X] ? node->in[TARN__CONV_X] : node->in[TARN__CONV_DY];
  return TARN__TABLE_NOW(tarn__conv_kernels)->scratch(&attr->spec, any->cols, any->dtype, threads);
}

static size_t embedding_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__embedding_kernels)->scratch(node->out[0]->cols, threads);
}

static size_t embedding_backward_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__embedding_kernels)->scratch(node->in[TARN__EMBEDDING_BACKWARD_DY]->cols, threads);
}

static size_t rows_of_floats(const tarn__node *node, int rows, int threads) {
  return (size_t)rows * tarn__row_floats(node->in[0]->cols) * sizeof(float) * (size_t)threads;
}

static size_t gated_conv_scratch(const tarn__node *node, int threads) {
  return rows_of_floats(node, TARN__GC_FORWARD_ROWS, threads);
}

static size_t gated_conv_backward_scratch(const tarn__node *node, int threads) {
  return rows_of_floats(node, TARN__GC_BACKWARD_ROWS, threads);
}

static size_t pooling_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__pooling_kernels)->scratch(node, threads);
}

static size_t residual_norm_scratch(const tarn__node *node, int threads) {
  const tarn__tensor *tensor = node->in[0] ? node->in[0] : node->in[1];
  return TARN__TABLE_NOW(tarn__residual_norm_kernels)->scratch(tensor->cols, threads);
}

static size_t output_tangent_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__output_tangent_kernels)->scratch(node, threads);
}

static size_t norm_tangent_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__norm_tangent_kernels)->scratch(node->in[TARN__RN_TANGENT_SAVED]->cols, threads);
}

static size_t rotary_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__rotary_kernels)->scratch(node, threads);
}

static size_t scale_scratch(const tarn__node *node, int threads) {
  (void)node;
  return TARN__TABLE_NOW(tarn__scale_kernels)->scratch(threads);
}

static size_t swish_scratch(const tarn__node *node, int threads) {
  (void)node;
  return TARN__TABLE_NOW(tarn__swish_kernels)->scratch(threads);
}

static size_t product_keys_backward_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__product_keys_kernels)->backward_scratch(node, threads);
}

static size_t route_scratch(const tarn__node *node, int threads) {
  return TARN__TABLE_NOW(tarn__route_kernels)->scratch(node, threads);
}

const tarn__device_kernel tarn__cpu_kernels[TARN__OPS] = {
    [TARN__OP_ACTIVATION] = {tarn__cpu_activation, NULL},
    [TARN__OP_ACTIVATION_TANGENT] = {activation_tangent, NULL},
    [TARN__OP_ADAPTIVE_ROWS] = {tarn__cpu_adaptive_rows, NULL},
    [TARN__OP_ADAPTIVE_SCORES] = {tarn__cpu_adaptive_scores, NULL},
    [TARN__OP_ADD] = {add, NULL},
    [TARN__OP_ATTENTION] = {attention_forward, attention_scratch},
    [TARN__OP_ATTENTION_BACKWARD] = {tarn__cpu_attention_backward, attention_backward_scratch},
    [TARN__OP_ATTENTION_ROWS] = {attention_rows_forward, attention_rows_scratch},
    [TARN__OP_ATTENTION_TANGENT] = {attention_tangent, attention_tangent_scratch},
    [TARN__OP_BIAS_TABLE] = {tarn__cpu_bias_table, tarn__cpu_bias_table_scratch},
    [TARN__OP_BIAS_TABLE_BACKWARD] = {tarn__cpu_bias_table_backward, tarn__cpu_bias_table_scratch},
    [TARN__OP_CACHE_APPEND] = {tarn__cpu_cache_append, NULL},
    [TARN__OP_CHANNEL_CONV] = {channel_conv_forward, NULL},
    [TARN__OP_CHANNEL_CONV_BACKWARD] = {channel_conv_backward, NULL},
    [TARN__OP_CHANNEL_CONV_ROWS] = {channel_conv_forward, NULL},
    [TARN__OP_DELETIONS] = {tarn__cpu_deletions, tarn__deletions_scratch},
    [TARN__OP_DEPTHWISE_CONV] = {conv_forward, conv_scratch},
    [TARN__OP_DEPTHWISE_CONV_BACKWARD] = {conv_backward, conv_scratch},
    [TARN__OP_DEPTHWISE_CONV_ROWS] = {conv_forward, conv_scratch},
    [TARN__OP_DEPTHWISE_CONV_TANGENT] = {conv_tangent, conv_scratch},
    [TARN__OP_DROPOUT] = {dropout, NULL},
    [TARN__OP_DROPOUT_BACKWARD] = {dropout, NULL},
    [TARN__OP_EMBEDDING] = {embedding_forward, embedding_scratch},
    [TARN__OP_EMBEDDING_BACKWARD] = {embedding_backward, embedding_backward_scratch},
    [TARN__OP_FEATURE_MAP] = {tarn__cpu_feature_map, tarn__cpu_feature_map_scratch},
    [TARN__OP_FEATURE_MAP_BACKWARD] = {tarn__cpu_feature_map_backward, tarn__cpu_feature_map_scratch},
    [TARN__OP_FEATURE_MAP_TANGENT] = {tarn__cpu_feature_map_tangent, tarn__cpu_feature_map_scratch},
    [TARN__OP_FOURIER] = {tarn__cpu_fourier, tarn__cpu_fourier_scratch},
    [TARN__OP_GATED_CONV] = {gated_conv_forward, gated_conv_scratch},
    [TARN__OP_GATED_CONV_BACKWARD] = {gated_conv_backward, gated_conv_backward_scratch},
    [TARN__OP_GATED_CONV_TANGENT] = {gated_conv_tangent, gated_conv_scratch},
    [TARN__OP_GATHER_ROWS] = {gather_rows, NULL},
    [TARN__OP_GATHER_ROWS_BACKWARD] = {gather_rows_backward, NULL},
    [TARN__OP_GLU] = {glu_forward, NULL},
    [TARN__OP_GLU_BACKWARD] = {glu_backward, NULL},
    [TARN__OP_GLU_TANGENT] = {glu_tangent, NULL},
    [TARN__OP_GROUPED_LINEAR] = {tarn__cpu_grouped_linear, tarn__cpu_grouped_linear_scratch},
    [TARN__OP_GROUPED_LINEAR_DWEIGHT] = {tarn__cpu_grouped_dweight, tarn__cpu_grouped_dweight_scratch},
    [TARN__OP_GROUPED_LINEAR_DX] = {tarn__cpu_grouped_dx, tarn__cpu_grouped_dx_scratch},
    [TARN__OP_HADAMARD] = {tarn__cpu_hadamard, tarn__cpu_hadamard_scratch},
    [TARN__OP_HADAMARD_DX] = {tarn__cpu_hadamard_dx, tarn__cpu_hadamard_scratch},
    [TARN__OP_HALTING] = {tarn__cpu_halting, NULL},
    [TARN__OP_HALTING_BACKWARD] = {tarn__cpu_halting_backward, NULL},
    [TARN__OP_HALTING_TANGENT] = {tarn__cpu_halting_tangent, NULL},
    [TARN__OP_LINEAR] = {tarn__cpu_linear, tarn__cpu_linear_scratch},
    [TARN__OP_LINEAR_ATTENTION] = {tarn__cpu_linear_attention, tarn__cpu_linear_attention_scratch},
    [TARN__OP_LINEAR_ATTENTION_BACKWARD] = {tarn__cpu_linear_attention_backward, tarn__cpu_linear_attention_scratch},
    [TARN__OP_LINEAR_ATTENTION_ROWS] = {tarn__cpu_linear_attention_rows, tarn__cpu_linear_attention_rows_scratch},
    [TARN__OP_LINEAR_ATTENTION_TANGENT] = {tarn__cpu_linear_attention_tangent, tarn__cpu_linear_attention_scratch},
    [TARN__OP_LINEAR_DWEIGHT] = {tarn__cpu_linear_dweight, tarn__cpu_linear_dweight_scratch},
    [TARN__OP_LINEAR_DX] = {tarn__cpu_linear_dx, tarn__cpu_linear_dx_scratch},
    [TARN__OP_LINEAR_DZ] = {tarn__cpu_linear_dz, tarn__cpu_linear_dz_scratch},
    [TARN__OP_LOSS_SUM] = {tarn__cpu_loss_sum, NULL},
    [TARN__OP_MARK] = {mark, NULL},
    [TARN__OP_NEIGHBOURS] = {neighbours_forward, NULL},
    [TARN__OP_NEIGHBOURS_BACKWARD] = {neighbours_backward, NULL},
    [TARN__OP_NORM] = {residual_norm_forward, residual_norm_scratch},
    [TARN__OP_NORM_TANGENT] = {norm_tangent, norm_tangent_scratch},
    [TARN__OP_OUTPUT_LOG_PROBABILITIES] = {tarn__cpu_output_log, tarn__cpu_output_log_scratch},
    [TARN__OP_OUTPUT_LOSS] = {tarn__cpu_output_loss, tarn__cpu_output_loss_scratch},
    [TARN__OP_OUTPUT_MIXTURE] = {tarn__cpu_output_mixture, tarn__cpu_output_mixture_scratch},
    [TARN__OP_OUTPUT_TANGENT] = {output_tangent, output_tangent_scratch},
    [TARN__OP_OUTPUT_TOP] = {tarn__cpu_output_top, tarn__cpu_output_top_scratch},
    [TARN__OP_PIXELS] = {tarn__cpu_pixels, NULL},
    [TARN__OP_POOLING] = {pooling_forward, pooling_scratch},
    [TARN__OP_POOLING_BACKWARD] = {pooling_backward, pooling_scratch},
    [TARN__OP_POOLING_ROWS] = {pooling_forward, pooling_scratch},
    [TARN__OP_PRODUCT_KEYS] = {tarn__cpu_product_keys, tarn__cpu_product_keys_scratch},
    [TARN__OP_PRODUCT_KEYS_BACKWARD] = {product_keys_backward, product_keys_backward_scratch},
    [TARN__OP_PRODUCT_KEYS_TANGENT] = {product_keys_tangent, NULL},
    [TARN__OP_RECURRENCE] = {tarn__cpu_recurrence, tarn__cpu_recurrence_scratch},
    [TARN__OP_RECURRENCE_BACKWARD] = {tarn__cpu_recurrence_backward, tarn__cpu_recurrence_backward_scratch},
    [TARN__OP_RECURRENCE_DWEIGHT] = {tarn__cpu_recurrence_dweight, tarn__cpu_recurrence_dweight_scratch},
    [TARN__OP_RECURRENCE_ROWS] = {tarn__cpu_recurrence_rows, tarn__cpu_recurrence_rows_scratch},
    [TARN__OP_RECURRENCE_TANGENT] = {tarn__cpu_recurrence_tangent, tarn__cpu_recurrence_tangent_scratch},
    [TARN__OP_RELATIVE_ATTENTION] = {tarn__cpu_relative_attention, tarn__cpu_relative_attention_scratch},
    [TARN__OP_RELATIVE_ATTENTION_BACKWARD] = {tarn__cpu_relative_attention_backward,
                                              tarn__cpu_relative_attention_scratch},
    [TARN__OP_RELATIVE_ATTENTION_ROWS] = {attention_rows_forward, attention_rows_scratch},
    [TARN__OP_RELATIVE_ATTENTION_TANGENT] = {tarn__cpu_relative_attention_tangent,
                                             tarn__cpu_relative_attention_scratch},
    [TARN__OP_RESIDUAL_BACKWARD] = {residual_norm_backward, residual_norm_scratch},
    [TARN__OP_RESIDUAL_NORM] = {residual_norm_forward, residual_norm_scratch},
    [TARN__OP_RESIDUAL_NORM_BACKWARD] = {residual_norm_backward, residual_norm_scratch},
    [TARN__OP_RESIDUAL_NORM_TANGENT] = {norm_tangent, norm_tangent_scratch},
    [TARN__OP_ROTARY] = {rotary_forward, rotary_scratch},
    [TARN__OP_ROTARY_BACKWARD] = {rotary_forward, rotary_scratch},
    [TARN__OP_SAMPLE] = {tarn__cpu_sample, tarn__cpu_sample_scratch},
    [TARN__OP_ADJUST_ROWS] = {tarn__cpu_adjust, NULL},
    [TARN__OP_BEST_ROWS] = {tarn__cpu_best, tarn__cpu_pick_scratch},
    [TARN__OP_PICK_ROWS] = {tarn__cpu_pick, tarn__cpu_pick_scratch},
    [TARN__OP_SCALE] = {scale_forward, NULL},
    [TARN__OP_SCALE_BACKWARD] = {scale_backward, scale_scratch},
    [TARN__OP_ROUTE] = {route_forward, route_scratch},
    [TARN__OP_ROUTE_BACKWARD] = {route_backward, route_scratch},
    [TARN__OP_ROUTE_TANGENT] = {route_tangent, route_scratch},
    [TARN__OP_SELECT_ROWS] = {tarn__cpu_select_rows, NULL},
    [TARN__OP_SELECT_ROWS_BACKWARD] = {tarn__cpu_select_rows_backward, NULL},
    [TARN__OP_SENTENCE_MEAN] = {sentence_mean_forward, NULL},
    [TARN__OP_SENTENCE_MEAN_BACKWARD] = {sentence_mean_backward, NULL},
    [TARN__OP_SENTENCE_OUTER] = {tarn__cpu_sentence_product, tarn__cpu_sentence_product_scratch},
    [TARN__OP_SENTENCE_OUTER_BACKWARD] = {tarn__cpu_sentence_product, tarn__cpu_sentence_product_scratch},
    [TARN__OP_SENTENCE_PRODUCT] = {tarn__cpu_sentence_product, tarn__cpu_sentence_product_scratch},
    [TARN__OP_SENTENCE_PRODUCT_BACKWARD] = {tarn__cpu_sentence_product, tarn__cpu_sentence_product_scratch},
    [TARN__OP_SPARSE_LINEAR] = {tarn__cpu_sparse_linear, tarn__cpu_sparse_linear_scratch},
    [TARN__OP_SQUARED_ERROR] = {tarn__cpu_squared_error, NULL},
    [TARN__OP_STAND_IN_ADD] = {stand_in_add, NULL},
    [TARN__OP_STAND_IN_COPY] = {stand_in_copy, NULL},
    [TARN__OP_STAND_IN_MEASURE] = {stand_in_measure, NULL},
    [TARN__OP_SWISH_BETA] = {swish_forward, NULL},
    [TARN__OP_SWISH_BETA_BACKWARD] = {swish_backward, swish_scratch},
    [TARN__OP_SYNTHESIS] = {tarn__cpu_synthesis, tarn__cpu_synthesis_scratch},
    [TARN__OP_SYNTHESIS_BACKWARD] = {tarn__cpu_synthesis_backward, tarn__cpu_synthesis_scratch},
    [TARN__OP_SYNTHESIS_ROWS] = {tarn__cpu_synthesis_rows, tarn__cpu_synthesis_rows_scratch},
    [TARN__OP_SYNTHESIS_TANGENT] = {tarn__cpu_synthesis_tangent, tarn__cpu_synthesis_scratch},
    [TARN__OP_TANH] = {tanh_forward, NULL},
    [TARN__OP_TANH_BACKWARD] = {tanh_backward, NULL},
    [TARN__OP_TANH_TANGENT] = {tanh_tangent, NULL},
    [TARN__OP_TOKEN_LINEAR] = {tarn__cpu_token_linear, tarn__cpu_token_linear_scratch},
    [TARN__OP_TOKEN_LINEAR_DWEIGHT] = {tarn__cpu_token_linear_dweight, tarn__cpu_token_linear_dweight_scratch},
    [TARN__OP_TOKEN_LINEAR_DX] = {tarn__cpu_token_linear_dx, tarn__cpu_token_linear_dx_scratch},
    [TARN__OP_TOKEN_LINEAR_ROWS] = {tarn__cpu_token_linear_rows, tarn__cpu_token_linear_rows_scratch},
    [TARN__OP_TOKEN_LINEAR_TANGENT] = {token_gate_tangent, NULL},
    [TARN__OP_UPDATE] = {tarn__cpu_update, NULL},
    [TARN__OP_WEIGHTED_ROWS] = {weighted_rows_forward, NULL},
    [TARN__OP_WEIGHTED_ROWS_BACKWARD] = {weighted_rows_backward, NULL},
    [TARN__OP_WEIGHTED_ROWS_TANGENT] = {weighted_rows_tangent, NULL},
    [TARN__OP_WIDEN] = {widen_forward, NULL},
    [TARN__OP_WIDEN_BACKWARD] = {widen_backward, NULL},
};
