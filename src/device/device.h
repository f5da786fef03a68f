// A device: what a computation runs on. It gives memory and the kernels of ops; graphs and models hold a pointer to it
// and know nothing else of it. An entry is a constant in a folder of its own (src/device/NAME/), devices.c lists them.
#ifndef TARN_DEVICE_DEVICE_H
#define TARN_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/status.h"
#include "device/dtype.h"

struct tarn__adam_factors;
struct tarn__exec;
struct tarn__node;
struct tarn__param;
struct tarn__ridge;

// Computes a node of a graph (graph/graph.h) whose tensors lie in the memory of the device.
typedef tarn_status (*tarn__kernel)(const struct tarn__exec *exec, const struct tarn__node *node);

// The weight of a product, [rows, cols] at `value`, F32 or BF16; int8: to be rounded to INT8 with a scale for each row.
typedef struct tarn__device_weight {
  const void *value;
  int64_t rows, cols;
  tarn__dtype dtype;
  bool int8;
  tarn__fp32 fp32;      // of the products that will read it, in F32
  const float *scales;  // [rows], with int8: `value` is rounded already, signed bytes with these scales; else NULL
} tarn__device_weight;

// What a device has for an op.
typedef struct tarn__device_kernel {
  tarn__kernel run;  // NULL: the device cannot compute the op
  // Bytes of scratch in the workspace for a node with `threads` threads; NULL: none.
  size_t (*scratch)(const struct tarn__node *node, int threads);
} tarn__device_kernel;

// What a device does a second at most; 0: not known.
typedef struct tarn__device_peaks {
  double flops[TARN__DTYPES];  // floating-point operations of products, by the type of what is multiplied
  double bytes;                // to and from memory that no cache holds, two of three read
} tarn__device_peaks;

typedef struct tarn__device {
  const char *name;
  // Which of its kernels are in use, where there is a choice ("avx2"): what computes with others may round differently.
  const char *(*variant)(void);
  // For graphs that compute in a type: the kernels of all ops, by number (device/op_list.h), `ops` of them; NULL: the
  // device does not compute in that type.
  const tarn__device_kernel *kernels[TARN__DTYPES];
  int ops;
  // What it lacks for products of fp32 that are not EXACT, as words behind "needs"; NULL: nothing.
  const char *(*split_lacks)(void);
  bool host_memory;  // its memory is the host's, which may read and write it as it likes (device/transfer.h)
  // Memory is aligned to 64 bytes and zeroed; 0 bytes give a valid pointer; free accepts NULL. Fails with MEMORY.
  tarn_status (*allocate)(void **out, tarn__memory_kind kind, size_t count, size_t size) TARN_CHECKED;
  void (*free)(void *memory);
  // From the host's memory into that of the device, and back. Both come after all that was computed before.
  tarn_status (*copy_in)(void *to, const void *from, size_t bytes) TARN_CHECKED;
  tarn_status (*copy_out)(void *to, const void *from, size_t bytes) TARN_CHECKED;
  // Between places of the device's memory that do not overlap.
  tarn_status (*copy)(void *to, const void *from, size_t bytes) TARN_CHECKED;
  // Sets all bytes of a place there to one value.
  tarn_status (*fill)(void *to, unsigned char byte, size_t bytes) TARN_CHECKED;
  // The weights of products y = x weight^T may be packed once into the order in which products read them, where they
  // are used often: the bytes that it takes, and the packing. Both NULL: products read weights as they lie.
  size_t (*pack_bytes)(const tarn__device_weight *weight);
  tarn_status (*pack)(void *packed, const tarn__device_weight *weight, int threads) TARN_CHECKED;
  // Work on parameters outside of graphs, whose arrays lie in the device's memory. What is known to be zero of a
  // gradient (used_rows) is not read. The Euclidean norm of the gradients of those that move (optim/adam.h), added up
  // in double in a fixed order. Infinite or NaN if one of them is: test it with isfinite().
  double (*grad_norm)(struct tarn__param *const *params, size_t count, int threads);
  // An update of the same by Adam, as optim/adam.h writes it: the moments, the fp32 copy and what kernels read.
  void (*adam_step)(struct tarn__param *const *params, size_t count, const struct tarn__adam_factors *factors,
                    int threads);
  void (*grad_sum_add)(const struct tarn__param *param);  // grad_sum += grad
  // *sum += |x[0]|, |x[1]| and so on, one after the other in double: AutoFreeze's norms.
  tarn_status (*absolute_sum)(double *sum, const float *x, size_t n) TARN_CHECKED;
  // sums[i] += (float)(weight * values[i]), the product in double: means of checkpoints. Values need not be aligned.
  tarn_status (*add_scaled)(float *sums, const void *values, size_t n, double weight) TARN_CHECKED;
  // Ridge regression (optim/ridge.h), in double. The samples that wait are added to the products, from the diagonal on,
  // and to the totals; what is left of the diagonal is never read. The result does not depend on the number of threads.
  void (*ridge_add)(const struct tarn__ridge *ridge);
  // Rows `first` and so on of a matrix [*, inputs] there become the next `count` samples that wait; F32, or BF16 where
  // the device computes in that.
  void (*ridge_take)(const struct tarn__ridge *ridge, const void *rows, tarn__dtype dtype, int64_t first,
                     int64_t count);
  // U in place of the upper triangle of A = U'U, [n, n]; false where a pivot is not above `least`.
  bool (*cholesky)(double *a, int64_t n, double least);
  // Measures the peaks with so many threads, in a fraction of a second; NULL: none is known. Fails with MEMORY.
  tarn_status (*peaks)(tarn__device_peaks *peaks, int threads) TARN_CHECKED;
  // What the device is asked for it does in that order. It may answer before it has done it, but for copy_out and for
  // what returns a number. synchronise waits until all is over, and says whether something failed.
  tarn_status (*synchronise)(void) TARN_CHECKED;
  // Rounds a weight in F32 to INT8 as `pack` does, in the order of its rows: values [rows, cols] and scales [rows],
  // which together mean values[i][j] * scales[i]. There wherever `pack` is.
  tarn_status (*quantise)(signed char *values, float *scales, const tarn__device_weight *weight,
                          int threads) TARN_CHECKED;
} tarn__device;

#endif
