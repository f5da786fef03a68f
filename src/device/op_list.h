// The ops that a device may have kernels for: one line each here and in the table of every device. The number of an op
// is its place in those tables.
#ifndef TARN_DEVICE_OP_LIST_H
#define TARN_DEVICE_OP_LIST_H

// MARK computes nothing: it stands for a place in the graph that has a gradient rule of its own (parts/backskip.c).
#define TARN__OP_LIST(X)      \
  X(ACTIVATION)               \
  X(ADD)                      \
  X(ATTENTION)                \
  X(ATTENTION_BACKWARD)       \
  X(ATTENTION_ROWS)           \
  X(CACHE_APPEND)             \
  X(DEPTHWISE_CONV)           \
  X(DEPTHWISE_CONV_BACKWARD)  \
  X(DEPTHWISE_CONV_ROWS)      \
  X(DROPOUT)                  \
  X(DROPOUT_BACKWARD)         \
  X(EMBEDDING)                \
  X(EMBEDDING_BACKWARD)       \
  X(GATED_CONV)               \
  X(GATED_CONV_BACKWARD)      \
  X(GLU)                      \
  X(GLU_BACKWARD)             \
  X(HADAMARD)                 \
  X(HADAMARD_DX)              \
  X(LINEAR)                   \
  X(LINEAR_DWEIGHT)           \
  X(LINEAR_DX)                \
  X(LINEAR_DZ)                \
  X(MARK)                     \
  X(NORM)                     \
  X(OUTPUT_LOG_PROBABILITIES) \
  X(OUTPUT_LOSS)              \
  X(OUTPUT_TOP)               \
  X(POOLING)                  \
  X(POOLING_BACKWARD)         \
  X(POOLING_ROWS)             \
  X(RECURRENCE)               \
  X(RECURRENCE_BACKWARD)      \
  X(RECURRENCE_DWEIGHT)       \
  X(RECURRENCE_ROWS)          \
  X(RESIDUAL_BACKWARD)        \
  X(RESIDUAL_NORM)            \
  X(RESIDUAL_NORM_BACKWARD)   \
  X(ROTARY)                   \
  X(ROTARY_BACKWARD)          \
  X(SELECT_ROWS)              \
  X(SELECT_ROWS_BACKWARD)     \
  X(SENTENCE_MEAN)            \
  X(SENTENCE_MEAN_BACKWARD)   \
  X(SQUARED_ERROR)            \
  X(STAND_IN_ADD)             \
  X(STAND_IN_COPY)            \
  X(STAND_IN_MEASURE)         \
  X(TANH)                     \
  X(TANH_BACKWARD)            \
  X(UPDATE)

#define TARN__OP_NUMBER(word) TARN__OP_##word,
typedef enum tarn__op_id { TARN__OP_LIST(TARN__OP_NUMBER) TARN__OPS } tarn__op_id;
#undef TARN__OP_NUMBER

#endif
