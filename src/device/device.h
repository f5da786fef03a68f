// A device: the hardware a computation runs on. It is a context: memory, streams (device/stream.h) and the kernels of
// ops. Graphs and models hold a pointer to it and know nothing else about it. A device type holds what all devices of
// one kind share; each type has its own folder (src/device/NAME/), and devices.h lists the types.
//
// Calls are asynchronous: a device executes them in the order of each stream, and a call may return before its work is
// done. tarn__device_synchronise() waits for it. Only copies to the host, and calls that return a number to the host,
// wait by themselves.
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
struct tarn__peers;
struct tarn__peers_sum;
struct tarn__ridge;

typedef struct tarn__device tarn__device;
typedef struct tarn__device_stream tarn__device_stream;
typedef struct tarn__device_event tarn__device_event;

// Computes a node of a graph (graph/graph.h) whose tensors are in device memory, on exec->stream.
typedef tarn_status (*tarn__kernel)(const struct tarn__exec *exec, const struct tarn__node *node);

// The weight of a product, [rows, cols] at `value`, F32 or BF16, and how it is rounded.
typedef struct tarn__device_weight {
  const void *value;
  int64_t rows, cols;
  tarn__dtype dtype;
  tarn__rounding rounding;
  tarn__fp32 fp32;  // of the products that will read it, if F32
  // float [rows]: `value` is already rounded, with these scales: with INT8 to signed bytes, with INT4 to the rows of
  // int4.h. Else NULL.
  const void *scales;
} tarn__device_weight;

// A device's implementation of an op.
typedef struct tarn__device_kernel {
  tarn__kernel run;  // NULL: the device cannot compute the op
  // Bytes of scratch in the workspace for a node with `threads` threads; NULL: none.
  size_t (*scratch)(const struct tarn__node *node, int threads);
} tarn__device_kernel;

// Peak rates per second; 0: unknown.
enum { TARN__PEAK_SETS = 4 };
typedef struct tarn__device_peaks {
  double flops[TARN__DTYPES];      // floating-point operations of products, by element type
  double bytes;                    // memory traffic that misses all caches
  double cached[TARN__PEAK_SETS];  // the same of a working set of 2^18, 2^20, 2^22 and 2^24 bytes, used again and again
} tarn__device_peaks;

// Parameters that an optimiser updates together: the list, and the device's own copy of it (optim/param_table.h).
struct tarn__param_table;

// The numbers that decide an update, in device memory (device/step_numbers.h).
struct tarn__step_numbers;
struct tarn__step_rule;

typedef struct tarn__device_type {
  const char *name;
  bool host_memory;  // its memory is host memory, which the host may read and write freely (device/transfer.h)
  bool accelerator;  // it has an energy meter of its own, which excludes the host's processor
  int ops;           // kernels in each table of `kernels`
  // What libraries take of the device's memory beyond what is allocated here: for each stream that computes products,
  // and for the peers of a process.
  size_t stream_bytes, peers_bytes;
  // Per compute type: the kernels of all ops, by number (device/op_list.h); NULL: the device does not compute in that
  // type.
  const tarn__device_kernel *kernels[TARN__DTYPES];

  // --- context
  // Returns device number `ordinal` of this type, from 0: always the same object, which lives as long as the process.
  // -1: any; processes that were started together each take one of their own. Fails with USAGE if there is no such
  // number, and with UNSUPPORTED if the device cannot be used; the message is one line.
  tarn_status (*open)(const tarn__device **device, int ordinal) TARN_CHECKED;
  // The kernel variant in use, if there are several ("avx2"). Variants may round differently.
  const char *(*variant)(const tarn__device *device);
  // Checks whether the device can compute a node of an op that it has a kernel for. Returns the missing feature, worded
  // to follow "needs"; NULL: nothing is missing. If this is NULL, the device can compute all such nodes.
  const char *(*lacks)(const tarn__device *device, const struct tarn__node *node);
  // Whether the kernel of a node also does, if it is told so by node->joined, the work of another one that is in place
  // and next to it: `other` writes what the node reads (before), or reads what the node writes. NULL: never.
  bool (*joins)(const struct tarn__node *node, const struct tarn__node *other, bool before);
  // The feature missing for fp32 products of a kind that is not EXACT, worded likewise. If this is NULL, the device has
  // no such products.
  const char *(*fp32_lacks)(const tarn__device *device, tarn__fp32 fp32);
  // Measures the peaks with `threads` threads, in a fraction of a second; NULL: the peaks are unknown. Fails with
  // MEMORY.
  tarn_status (*peaks)(const tarn__device *device, tarn__device_peaks *peaks, int threads) TARN_CHECKED;
  // Floating-point operations a second that `threads` threads reach now in the loop of peaks.flops[F32], over a few
  // milliseconds, interruptions included; NULL: it cannot be measured.
  double (*flops_now)(const tarn__device *device, int threads);

  // --- memory
  // Aligned to 64 bytes and zeroed; 0 bytes give a valid pointer. free accepts NULL and waits for all uses. Fails with
  // MEMORY.
  tarn_status (*allocate)(const tarn__device *device, void **out, tarn__memory_kind kind, size_t count,
                          size_t size) TARN_CHECKED;
  void (*free)(const tarn__device *device, void *memory);
  // Bytes available to a program, and in total; 0: unknown.
  tarn_status (*memory)(const tarn__device *device, size_t *available, size_t *total) TARN_CHECKED;

  // --- streams and events (device/stream.h documents each); all NULL: the device is synchronous
  tarn_status (*stream_open)(const tarn__device *device, tarn__device_stream **stream) TARN_CHECKED;
  void (*stream_close)(const tarn__device *device, tarn__device_stream *stream);
  tarn_status (*event_open)(const tarn__device *device, tarn__device_event **event) TARN_CHECKED;
  void (*event_close)(const tarn__device *device, tarn__device_event *event);
  tarn_status (*record)(const tarn__device *device, tarn__device_event *event,
                        tarn__device_stream *stream) TARN_CHECKED;
  tarn_status (*await)(const tarn__device *device, tarn__device_stream *stream, tarn__device_event *event) TARN_CHECKED;
  tarn_status (*synchronise_event)(const tarn__device *device, tarn__device_event *event) TARN_CHECKED;
  tarn_status (*synchronise)(const tarn__device *device, tarn__device_stream *stream) TARN_CHECKED;

  // --- copies, on a stream
  // From host memory to device memory. `from` may be reused on return, except with `send`, which reads memory of
  // `staging_allocate` asynchronously. copy_out goes the other way and waits until the bytes have arrived.
  tarn_status (*copy_in)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                         size_t bytes) TARN_CHECKED;
  tarn_status (*send)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                      size_t bytes) TARN_CHECKED;
  tarn_status (*copy_out)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                          size_t bytes) TARN_CHECKED;
  // Within device memory; the ranges do not overlap.
  tarn_status (*copy)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                      size_t bytes) TARN_CHECKED;
  // Sets all bytes of a range of device memory to one value.
  tarn_status (*fill)(const tarn__device *device, tarn__device_stream *stream, void *to, unsigned char byte,
                      size_t bytes) TARN_CHECKED;
  // Row i of `from`, of `bytes` bytes, becomes row numbers[i] of `to` for every i < rows with numbers[i] >= 0. These
  // numbers are strictly increasing, and none exceeds its i. `to` may equal `from`. `numbers` is in host memory and is
  // copied by the call.
  tarn_status (*move_rows)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                           size_t bytes, const int32_t *numbers, int64_t rows) TARN_CHECKED;
  // Host memory that copies can read asynchronously (pinned); NULL: any host memory will do.
  tarn_status (*staging_allocate)(const tarn__device *device, void **out, size_t bytes) TARN_CHECKED;
  void (*staging_free)(const tarn__device *device, void *memory);

  // --- packed weights
  // Frequently used weights of products y = x weight^T can be packed once into the layout that products read: the size
  // in bytes, and the packing. Both NULL: products read weights in their original layout.
  size_t (*pack_bytes)(const tarn__device *device, const tarn__device_weight *weight);
  tarn_status (*pack)(const tarn__device *device, void *packed, const tarn__device_weight *weight,
                      int threads) TARN_CHECKED;
  // Rounds an F32 weight as `pack` does, in row order, with float scales [rows]. INT8: signed bytes [rows, cols],
  // which represent values[i][j] * scales[i]. INT4: the rows of int4.h. Present whenever `pack` is.
  tarn_status (*quantise)(const tarn__device *device, void *values, void *scales, const tarn__device_weight *weight,
                          int threads) TARN_CHECKED;

  // --- parameters, outside graphs. Their arrays are in device memory; rows of a gradient that are known to be zero
  // (used_rows) are not read.
  // Builds the device's copy of a table, for the parameters that are trained now (optim/adam.h); it is freed with
  // `free`. NULL: the device reads the list.
  tarn_status (*table)(const tarn__device *device, struct tarn__param_table *table) TARN_CHECKED;
  // *norm, in device memory: the Euclidean norm of the gradients of the trained parameters, summed in double in a fixed
  // order. Infinite or NaN if any gradient is.
  tarn_status (*grad_norm)(const tarn__device *device, double *norm, const struct tarn__param_table *table,
                           int threads) TARN_CHECKED;
  // The functions of device/step_numbers.h.
  tarn_status (*add_loss)(const tarn__device *device, struct tarn__step_numbers *numbers,
                          const double *loss) TARN_CHECKED;
  tarn_status (*decide)(const tarn__device *device, struct tarn__step_numbers *numbers,
                        const struct tarn__step_rule *rule) TARN_CHECKED;
  // An Adam update of the trained parameters, as in optim/adam.h: the moments, the fp32 master copy, and the values
  // that kernels read. With `numbers`, nothing is updated if they record a failure, and with factors->clips the
  // gradients are multiplied by the factor in `numbers` instead of factors->gradient.
  tarn_status (*adam_step)(const tarn__device *device, const struct tarn__param_table *table,
                           const struct tarn__adam_factors *factors, const struct tarn__step_numbers *numbers,
                           int threads) TARN_CHECKED;
  // grad_sum += grad, for the trained parameters that have one.
  tarn_status (*grad_sum_add)(const tarn__device *device, const struct tarn__param_table *table,
                              int threads) TARN_CHECKED;
  // *sum += |x[0]| + |x[1]| + ..., in double: AutoFreeze's norms. In sequence on devices with the host's memory; others
  // add x up in a fixed order of their own, which depends on n alone, and wait for the result.
  tarn_status (*absolute_sum)(const tarn__device *device, double *sum, const float *x, size_t n) TARN_CHECKED;
  // sums[i] += (float)(weight * values[i]), with the product in double: averages of checkpoints. Values may be
  // unaligned.
  tarn_status (*add_scaled)(const tarn__device *device, float *sums, const void *values, size_t n,
                            double weight) TARN_CHECKED;

  // --- devices of other processes (device/peers.h); all NULL: they are not reached
  // One process makes the identity of a group [TARN__PEERS_ID]; all of them join it, together. Fails with UNSUPPORTED
  // if a library is missing.
  tarn_status (*peers_identify)(const tarn__device *device, unsigned char *identity) TARN_CHECKED;
  tarn_status (*peers_join)(const tarn__device *device, struct tarn__peers **peers, const unsigned char *identity,
                            int rank, int size) TARN_CHECKED;
  // After a failure the others are not waited for.
  void (*peers_leave)(const tarn__device *device, struct tarn__peers *peers);
  // All processes make the same sums in the same order. Waits until the sum is done. Fails with IO if a process is
  // lost.
  tarn_status (*peers_sum)(const tarn__device *device, struct tarn__peers *peers, tarn__device_stream *stream,
                           const struct tarn__peers_sum *sum) TARN_CHECKED;

  // --- ridge regression (optim/ridge.h), in double
  // Adds the pending samples to the products, on and above the diagonal, and to the totals; elements below the diagonal
  // are never read. The result does not depend on the number of threads.
  tarn_status (*ridge_add)(const tarn__device *device, const struct tarn__ridge *ridge) TARN_CHECKED;
  // Rows `first` onwards of a device matrix [*, inputs] become the next `count` pending samples; F32, or BF16 if the
  // device computes in it.
  tarn_status (*ridge_take)(const tarn__device *device, const struct tarn__ridge *ridge, const void *rows,
                            tarn__dtype dtype, int64_t first, int64_t count) TARN_CHECKED;
  // Overwrites the upper triangle of A = U'U, [n, n], with U; *done: false if a pivot is not above `least`.
  tarn_status (*cholesky)(const tarn__device *device, bool *done, double *a, int64_t n, double least) TARN_CHECKED;
} tarn__device_type;

struct tarn__device {
  const tarn__device_type *type;
  const char *name;  // the type's name, with the number if there are several ("cuda:1")
  int ordinal;
  void *state;  // private to the type
};

static inline tarn_status tarn__device_allocate(const tarn__device *device, void **out, tarn__memory_kind kind,
                                                size_t count, size_t size) {
  return device->type->allocate(device, out, kind, count, size);
}
static inline void tarn__device_free(const tarn__device *device, void *memory) { device->type->free(device, memory); }
static inline const char *tarn__device_variant(const tarn__device *device) { return device->type->variant(device); }
static inline tarn_status tarn__device_absolute_sum(const tarn__device *device, double *sum, const float *x, size_t n) {
  return device->type->absolute_sum(device, sum, x, n);
}
static inline tarn_status tarn__device_add_scaled(const tarn__device *device, float *sums, const void *values, size_t n,
                                                  double weight) {
  return device->type->add_scaled(device, sums, values, n, weight);
}
// Bytes of device memory available to a program; 0: unknown.
size_t tarn__device_available(const tarn__device *device);
// The feature missing for fp32 products of a kind, worded to follow "needs"; NULL: nothing is missing.
const char *tarn__device_fp32_lacks(const tarn__device *device, tarn__fp32 fp32);

#endif
