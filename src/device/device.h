// A device: what a computation runs on. It is a context: memory, streams (device/stream.h) and the kernels of ops.
// Graphs and models hold a pointer to it and know nothing else of it. What all devices of a kind have in common is a
// type, in a folder of its own (src/device/NAME/); devices.c lists the types.
//
// What a device is asked for it does in the order of each stream, and may answer before it has done it. Who wants to
// know waits (tarn__device_synchronise()); only copies out and what returns a number to the host wait by themselves.
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

typedef struct tarn__device tarn__device;
typedef struct tarn__device_stream tarn__device_stream;
typedef struct tarn__device_event tarn__device_event;

// Computes a node of a graph (graph/graph.h) whose tensors lie in the memory of the device, on exec->stream.
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

// Parameters that an optimiser updates together: the list, and what a device keeps of it (optim/param_table.h).
struct tarn__param_table;

// What an update is decided by, in the memory of the device (device/step_numbers.h).
struct tarn__step_numbers;
struct tarn__step_rule;

typedef struct tarn__device_type {
  const char *name;
  bool host_memory;  // its memory is the host's, which may read and write it as it likes (device/transfer.h)
  bool accelerator;  // it has an energy meter of its own, which does not count the host's processor
  int ops;           // kernels of each type that follows
  // For graphs that compute in a type: the kernels of all ops, by number (device/op_list.h); NULL: the device does not
  // compute in that type.
  const tarn__device_kernel *kernels[TARN__DTYPES];

  // --- the context
  // The device of this type with a number, from 0: the same one each time, which lives as long as the process. Fails
  // with USAGE where there is none of that number, and with UNSUPPORTED where it cannot be used; each time in one line.
  tarn_status (*open)(const tarn__device **device, int ordinal) TARN_CHECKED;
  // Which of its kernels are in use, where there is a choice ("avx2"): what computes with others may round differently.
  const char *(*variant)(const tarn__device *device);
  // Whether it can compute a node of an op that it has a kernel for: what is lacking, as words behind "needs"; NULL:
  // nothing. NULL itself: it can compute all of them.
  const char *(*lacks)(const tarn__device *device, const struct tarn__node *node);
  // What it lacks for products of fp32 that are not EXACT, in the same words. NULL: it has none of them.
  const char *(*split_lacks)(const tarn__device *device);
  // Measures the peaks with so many threads, in a fraction of a second; NULL: none is known. Fails with MEMORY.
  tarn_status (*peaks)(const tarn__device *device, tarn__device_peaks *peaks, int threads) TARN_CHECKED;

  // --- memory
  // Aligned to 64 bytes and zeroed; 0 bytes give a valid pointer; free accepts NULL and waits for what uses it. Fails
  // with MEMORY.
  tarn_status (*allocate)(const tarn__device *device, void **out, tarn__memory_kind kind, size_t count,
                          size_t size) TARN_CHECKED;
  void (*free)(const tarn__device *device, void *memory);
  // Bytes that a program can still take, and that there are; 0: not known.
  tarn_status (*memory)(const tarn__device *device, size_t *available, size_t *total) TARN_CHECKED;

  // --- streams and events; NULL, all of them: nothing is ever under way (device/stream.h says what each does)
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
  // From the host's memory into that of the device: `from` may be used again when this returns, but for `send`, which
  // reads memory of `staging_allocate` while the stream works. And back: copy_out waits until the bytes are there.
  tarn_status (*copy_in)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                         size_t bytes) TARN_CHECKED;
  tarn_status (*send)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                      size_t bytes) TARN_CHECKED;
  tarn_status (*copy_out)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                          size_t bytes) TARN_CHECKED;
  // Between places of the device's memory that do not overlap.
  tarn_status (*copy)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                      size_t bytes) TARN_CHECKED;
  // Sets all bytes of a place there to one value.
  tarn_status (*fill)(const tarn__device *device, tarn__device_stream *stream, void *to, unsigned char byte,
                      size_t bytes) TARN_CHECKED;
  // Row i of `from`, of so many bytes, becomes row numbers[i] of `to` for every i < rows with numbers[i] >= 0. The
  // numbers rise from one such row to the next and none is above its i; `to` is `from` or elsewhere. They are in the
  // host's memory and go with the call.
  tarn_status (*move_rows)(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                           size_t bytes, const int32_t *numbers, int64_t rows) TARN_CHECKED;
  // Memory of the host that copies read without waiting (pinned); NULL: any is.
  tarn_status (*staging_allocate)(const tarn__device *device, void **out, size_t bytes) TARN_CHECKED;
  void (*staging_free)(const tarn__device *device, void *memory);

  // --- packed weights
  // The weights of products y = x weight^T may be packed once into the order in which products read them, where they
  // are used often: the bytes that it takes, and the packing. Both NULL: products read weights as they lie.
  size_t (*pack_bytes)(const tarn__device *device, const tarn__device_weight *weight);
  tarn_status (*pack)(const tarn__device *device, void *packed, const tarn__device_weight *weight,
                      int threads) TARN_CHECKED;
  // Rounds a weight in F32 to INT8 as `pack` does, in the order of its rows: values [rows, cols] and scales [rows],
  // which together mean values[i][j] * scales[i]. There wherever `pack` is.
  tarn_status (*quantise)(const tarn__device *device, signed char *values, float *scales,
                          const tarn__device_weight *weight, int threads) TARN_CHECKED;

  // --- parameters, outside of graphs. Their arrays lie in the device's memory; what is known to be zero of a gradient
  // (used_rows) is not read.
  // What the device keeps of a table besides the list, made anew for the parameters that move now (optim/adam.h); it is
  // freed with `free`. NULL: it reads the list.
  tarn_status (*table)(const tarn__device *device, struct tarn__param_table *table) TARN_CHECKED;
  // *norm, in the device's memory: the Euclidean norm of the gradients of those that move, added up in double in a
  // fixed order. Infinite or NaN if one of them is.
  tarn_status (*grad_norm)(const tarn__device *device, double *norm, const struct tarn__param_table *table,
                           int threads) TARN_CHECKED;
  // The functions of device/step_numbers.h.
  tarn_status (*add_loss)(const tarn__device *device, struct tarn__step_numbers *numbers,
                          const double *loss) TARN_CHECKED;
  tarn_status (*decide)(const tarn__device *device, struct tarn__step_numbers *numbers,
                        const struct tarn__step_rule *rule) TARN_CHECKED;
  // An update of those that move by Adam, as optim/adam.h writes it: the moments, the fp32 copy and what kernels read.
  // With `numbers` there is none if they say that it has failed, and where factors->clips gradients are multiplied by
  // their factor instead of factors->gradient.
  tarn_status (*adam_step)(const tarn__device *device, const struct tarn__param_table *table,
                           const struct tarn__adam_factors *factors, const struct tarn__step_numbers *numbers,
                           int threads) TARN_CHECKED;
  // grad_sum += grad, of those that move and have one.
  tarn_status (*grad_sum_add)(const tarn__device *device, const struct tarn__param_table *table,
                              int threads) TARN_CHECKED;
  // *sum += |x[0]|, |x[1]| and so on, one after the other in double: AutoFreeze's norms.
  tarn_status (*absolute_sum)(const tarn__device *device, double *sum, const float *x, size_t n) TARN_CHECKED;
  // sums[i] += (float)(weight * values[i]), the product in double: means of checkpoints. Values need not be aligned.
  tarn_status (*add_scaled)(const tarn__device *device, float *sums, const void *values, size_t n,
                            double weight) TARN_CHECKED;

  // --- ridge regression (optim/ridge.h), in double
  // The samples that wait are added to the products, from the diagonal on, and to the totals; what is left of the
  // diagonal is never read. The result does not depend on the number of threads.
  tarn_status (*ridge_add)(const tarn__device *device, const struct tarn__ridge *ridge) TARN_CHECKED;
  // Rows `first` and so on of a matrix [*, inputs] there become the next `count` samples that wait; F32, or BF16 where
  // the device computes in that.
  tarn_status (*ridge_take)(const tarn__device *device, const struct tarn__ridge *ridge, const void *rows,
                            tarn__dtype dtype, int64_t first, int64_t count) TARN_CHECKED;
  // U in place of the upper triangle of A = U'U, [n, n]; *done: false where a pivot is not above `least`.
  tarn_status (*cholesky)(const tarn__device *device, bool *done, double *a, int64_t n, double least) TARN_CHECKED;
} tarn__device_type;

struct tarn__device {
  const tarn__device_type *type;
  const char *name;  // the type's, and the number where there are several ("cuda:1")
  int ordinal;
  void *state;  // the type's own
};

static inline tarn_status tarn__device_allocate(const tarn__device *device, void **out, tarn__memory_kind kind,
                                                size_t count, size_t size) {
  return device->type->allocate(device, out, kind, count, size);
}
static inline void tarn__device_free(const tarn__device *device, void *memory) { device->type->free(device, memory); }
static inline const tarn__device_kernel *tarn__device_kernels(const tarn__device *device, tarn__dtype dtype) {
  return device->type->kernels[dtype];
}
static inline const char *tarn__device_variant(const tarn__device *device) { return device->type->variant(device); }
static inline tarn_status tarn__device_absolute_sum(const tarn__device *device, double *sum, const float *x, size_t n) {
  return device->type->absolute_sum(device, sum, x, n);
}
static inline tarn_status tarn__device_add_scaled(const tarn__device *device, float *sums, const void *values, size_t n,
                                                  double weight) {
  return device->type->add_scaled(device, sums, values, n, weight);
}
// Whether a device packs weights.
static inline bool tarn__device_packs(const tarn__device *device) { return device->type->pack != NULL; }
// Bytes that a program can still take of a device's memory; 0: not known.
size_t tarn__device_available(const tarn__device *device);
// What is lacking for products of fp32 that are not EXACT, as words behind "needs"; NULL: nothing.
const char *tarn__device_split_lacks(const tarn__device *device);

#endif
