// The kernels of the CUDA device for nodes of a graph, in families: a folder or file of this folder that fills its
// entries of the table.
#ifndef TARN_DEVICE_CUDA_CUDA_KERNELS_H
#define TARN_DEVICE_CUDA_CUDA_KERNELS_H

#include "device/cuda/cuda.h"

// Each family has one function, void tarn__cuda_NAME_entries(tarn__device_kernel *kernels), which sets kernels[op] for
// its ops.
#define TARN__CUDA_FAMILIES(FAMILY) \
  FAMILY(activation)                \
  FAMILY(adaptive)                  \
  FAMILY(add)                       \
  FAMILY(attention)                 \
  FAMILY(channel_conv)              \
  FAMILY(deletions)                 \
  FAMILY(depthwise_conv)            \
  FAMILY(dropout)                   \
  FAMILY(embedding)                 \
  FAMILY(feature_map)               \
  FAMILY(fourier)                   \
  FAMILY(gated_conv)                \
  FAMILY(glu)                       \
  FAMILY(grouped)                   \
  FAMILY(hadamard)                  \
  FAMILY(halting)                   \
  FAMILY(linear)                    \
  FAMILY(linear_attention)          \
  FAMILY(neighbours)                \
  FAMILY(norm_backward)             \
  FAMILY(norm_tangent)              \
  FAMILY(output)                    \
  FAMILY(output_mixture)            \
  FAMILY(output_tangent)            \
  FAMILY(pick)                      \
  FAMILY(pixels)                    \
  FAMILY(pooling)                   \
  FAMILY(product_keys)              \
  FAMILY(recurrence)                \
  FAMILY(recurrence_rows)           \
  FAMILY(relative_attention)        \
  FAMILY(residual_norm)             \
  FAMILY(route)                     \
  FAMILY(route_backward)            \
  FAMILY(sample)                    \
  FAMILY(scale)                     \
  FAMILY(select)                    \
  FAMILY(sentence_mean)             \
  FAMILY(sentence_product)          \
  FAMILY(sparse_linear)             \
  FAMILY(squared_error)             \
  FAMILY(stand_in)                  \
  FAMILY(swish_beta)                \
  FAMILY(synthesis)                 \
  FAMILY(tanh)                      \
  FAMILY(token_linear)              \
  FAMILY(update)                    \
  FAMILY(weighted_rows)             \
  FAMILY(widen)

#define TARN__CUDA_FAMILY(name) void tarn__cuda_##name##_entries(tarn__device_kernel *kernels);
TARN__CUDA_FAMILIES(TARN__CUDA_FAMILY)
#undef TARN__CUDA_FAMILY

// The table: complete after tarn__cuda_kernels_fill().
extern tarn__device_kernel tarn__cuda_kernels[TARN__OPS];
void tarn__cuda_kernels_fill(void);

// A feature that a node needs and the device lacks, worded to follow "needs"; NULL: none. Of families, and of all.
#define TARN__CUDA_LIMITED(FAMILY) \
  FAMILY(attention)                \
  FAMILY(attention_rows)           \
  FAMILY(depthwise_conv)           \
  FAMILY(hadamard)                 \
  FAMILY(linear_attention)         \
  FAMILY(norm)                     \
  FAMILY(product_keys)             \
  FAMILY(route)
#define TARN__CUDA_LACKS(name) const char *tarn__cuda_##name##_lacks(const tarn__node *node);
TARN__CUDA_LIMITED(TARN__CUDA_LACKS)
#undef TARN__CUDA_LACKS
const char *tarn__cuda_lacks(const tarn__device *device, const tarn__node *node);

// The words of a limit: "heads of at most 1570 features, not 2000". Valid until the thread's next call.
const char *tarn__cuda_limit(const char *what, int64_t most, const char *of, int64_t count);
// The same for the limit that shared memory sets, or NULL if there is room; bytes(n): of a block, for n of them.
template <typename Bytes>
static inline const char *tarn__cuda_at_most(const char *what, const char *of, int64_t count, const Bytes &bytes) {
  int64_t most = count;
  while (most > 0 && (size_t)bytes(most) > tarn__cuda_shared()) most--;
  return most == count ? NULL : tarn__cuda_limit(what, most, of, count);
}

#endif
