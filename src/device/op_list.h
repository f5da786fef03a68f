// The ops that a device may have kernels for: one line each here and in the table of every device. The number of an op
// is its place in those tables.
#ifndef TARN_DEVICE_OP_LIST_H
#define TARN_DEVICE_OP_LIST_H

// MARK computes nothing: it stands for a place in the graph that has a gradient rule of its own (parts/backskip.c).
#define TARN__OP_LIST(X)       \
  X(ACTIVATION)                \
  X(ADD)                       \
  X(ATTENTION)                 \
  X(ATTENTION_BACKWARD)        \
  X(ATTENTION_ROWS)            \
  X(BIAS_TABLE)                \
  X(BIAS_TABLE_BACKWARD)       \
  X(CACHE_APPEND)              \
  X(DEPTHWISE_CONV)            \
  X(DEPTHWISE_CONV_BACKWARD)   \
  X(DEPTHWISE_CONV_ROWS)       \
  X(DROPOUT)                   \
  X(DROPOUT_BACKWARD)          \
  X(EMBEDDING)                 \
  X(EMBEDDING_BACKWARD)        \
  X(FEATURE_MAP)               \
  X(FEATURE_MAP_BACKWARD)      \
  X(FOURIER)                   \
  X(GATED_CONV)                \
  X(GATED_CONV_BACKWARD)       \
  X(GATHER_ROWS)               \
  X(GATHER_ROWS_BACKWARD)      \
  X(GLU)                       \
  X(GLU_BACKWARD)              \
  X(GROUPED_LINEAR)            \
  X(GROUPED_LINEAR_DWEIGHT)    \
  X(GROUPED_LINEAR_DX)         \
  X(HADAMARD)                  \
  X(HADAMARD_DX)               \
  X(LINEAR)                    \
  X(LINEAR_ATTENTION)          \
  X(LINEAR_ATTENTION_BACKWARD) \
  X(LINEAR_ATTENTION_ROWS)     \
  X(LINEAR_DWEIGHT)            \
  X(LINEAR_DX)                 \
  X(LINEAR_DZ)                 \
  X(MARK)                      \
  X(NORM)                      \
  X(OUTPUT_LOG_PROBABILITIES)  \
  X(OUTPUT_LOSS)               \
  X(OUTPUT_MIXTURE)            \
  X(OUTPUT_TOP)                \
  X(POOLING)                   \
  X(POOLING_BACKWARD)          \
  X(POOLING_ROWS)              \
  X(PRODUCT_KEYS)              \
  X(PRODUCT_KEYS_BACKWARD)     \
  X(RECURRENCE)                \
  X(RECURRENCE_BACKWARD)       \
  X(RECURRENCE_DWEIGHT)        \
  X(RECURRENCE_ROWS)           \
  X(RESIDUAL_BACKWARD)         \
  X(RESIDUAL_NORM)             \
  X(RESIDUAL_NORM_BACKWARD)    \
  X(ROTARY)                    \
  X(ROTARY_BACKWARD)           \
  X(ROUTE)                     \
  X(ROUTE_BACKWARD)            \
  X(SCALE)                     \
  X(SCALE_BACKWARD)            \
  X(SELECT_ROWS)               \
  X(SELECT_ROWS_BACKWARD)      \
  X(SENTENCE_MEAN)             \
  X(SENTENCE_MEAN_BACKWARD)    \
  X(SENTENCE_OUTER)            \
  X(SENTENCE_OUTER_BACKWARD)   \
  X(SENTENCE_PRODUCT)          \
  X(SENTENCE_PRODUCT_BACKWARD) \
  X(SQUARED_ERROR)             \
  X(STAND_IN_ADD)              \
  X(STAND_IN_COPY)             \
  X(STAND_IN_MEASURE)          \
  X(SYNTHESIS)                 \
  X(SYNTHESIS_BACKWARD)        \
  X(SYNTHESIS_ROWS)            \
  X(TANH)                      \
  X(TANH_BACKWARD)             \
  X(TOKEN_LINEAR)              \
  X(TOKEN_LINEAR_DWEIGHT)      \
  X(TOKEN_LINEAR_DX)           \
  X(TOKEN_LINEAR_ROWS)         \
  X(UPDATE)                    \
  X(WEIGHTED_ROWS)             \
  X(WEIGHTED_ROWS_BACKWARD)

#define TARN__OP_NUMBER(word) TARN__OP_##word,
typedef enum tarn__op_id { TARN__OP_LIST(TARN__OP_NUMBER) TARN__OPS } tarn__op_id;
#undef TARN__OP_NUMBER

#endif
