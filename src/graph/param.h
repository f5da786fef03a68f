// A parameter: one matrix (or vector, rows == 1) of a model, trained or frozen. The flag `trained` alone determines
// what a frozen parameter lacks (gradient, moments, master copy, bytes in a checkpoint).
#ifndef TARN_GRAPH_PARAM_H
#define TARN_GRAPH_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "device/dtype.h"

// The initialisation. The value of element (i, j) is a function of (generator, seed, name, initialiser).
typedef enum tarn__init_kind {
  TARN__INIT_ZERO,
  TARN__INIT_ONE,
  TARN__INIT_CONSTANT,    // gain
  TARN__INIT_XAVIER,      // uniform in +-gain * sqrt(6 / (fan_in + fan_out))  (Glorot and Bengio 2010)
  TARN__INIT_ORTHOGONAL,  // Q of the QR decomposition of a normal matrix, times gain  (Saxe et al. 2013)
  TARN__INIT_HADAMARD,    // orthonormal, from random signs and Hadamard transforms  (Yu et al. 2016; ops/hadamard.h)
  TARN__INIT_SIGNS,       // 1 or -1: the factors of a TARN__INIT_HADAMARD matrix
  TARN__INIT_NORMAL,      // normal with standard deviation gain
  TARN__INIT_UNIFORM,     // uniform in +-gain
  TARN__INIT_RANGE,       // uniform from param->least to gain
  TARN__INIT_FEATURES,    // orthogonal random features, redrawn every param->redraw updates  (Choromanski et al. 2021)
  TARN__INIT_RESERVOIR    // normal on the edges of a random graph, scaled to the spectral radius gain
} tarn__init_kind;

typedef struct tarn__init {
  tarn__init_kind kind;
  double gain;
  int blocks;  // the rows are divided into this many equal blocks (query, key, value), each initialised separately; at
               // least 1
} tarn__init;

// The recurrent matrix of an echo state network (init/reservoir.h).
typedef enum tarn__topology {
  TARN__TOPOLOGY_RANDOM,
  TARN__TOPOLOGY_SMALL_WORLD,
  TARN__TOPOLOGY_SCALE_FREE,
  TARN__TOPOLOGY_RING
} tarn__topology;
typedef struct tarn__reservoir {
  tarn__topology topology;
  double sparsity;   // fraction of its entries that are 0
  const char *kind;  // of the layer, for messages
} tarn__reservoir;

// The role of a parameter in its model.
typedef enum tarn__param_role {
  TARN__ROLE_EMBEDDINGS,    // tables of inputs and positions, and parameters applied to their sum
  TARN__ROLE_OUTPUT_TABLE,  // a table used by the output layer alone
  TARN__ROLE_OUTPUT,        // other parameters of the output layer or head
  TARN__ROLE_LAYER,         // of one set of layers
  TARN__ROLE_SHARED,        // of all layers of one kind in a stack
  TARN__ROLE_STACK,         // of a stack: its final norm, its table of biases
  TARN__ROLE_HELPER         // for training only, not part of the model
} tarn__param_role;

// Formats of Adam's moments (optim/moments.h).
typedef enum tarn__moments {
  TARN__MOMENTS_F32,
  TARN__MOMENTS_BF16,  // rounded at random
  TARN__MOMENTS_F8     // the same, in blocks with one scale each
} tarn__moments;

enum {
  TARN__MOMENT_BLOCK = 256,     // elements of a block of F8
  TARN__MOMENT_SCALE = 4,       // bytes of its scale
  TARN__MOMENT_LEAST_UNIT = 16  // exponent field of the least scale: so that no subnormal float is computed with
};

// Whether a block can have this scale: 0 before its first update, then a power of two or infinity.
static inline bool tarn__moment_is_scale(float scale) {
  uint32_t bits;
  memcpy(&bits, &scale, sizeof bits);
  return bits == 0 || ((bits & 0x807FFFFFu) == 0 && bits >> 23 >= TARN__MOMENT_LEAST_UNIT);
}

// Bytes of a moment of so many elements. Blocks of F8 are whole.
static inline size_t tarn__moment_bytes(tarn__moments moments, size_t count) {
  const size_t blocks = (count + TARN__MOMENT_BLOCK - 1) / TARN__MOMENT_BLOCK;
  if (moments == TARN__MOMENTS_F8) return blocks * (TARN__MOMENT_SCALE + TARN__MOMENT_BLOCK);
  return count * (moments == TARN__MOMENTS_BF16 ? sizeof(uint16_t) : sizeof(float));
}

// Moments can be divided between elements whose index is a multiple of it: blocks of random numbers, or of F8.
static inline int64_t tarn__moment_divisor(tarn__moments moments) {
  return moments == TARN__MOMENTS_F8 ? TARN__MOMENT_BLOCK : 8;
}

// The state of a parameter during training, in addition to its value; all NULL and false otherwise. In the memory of
// the parameter's device.
typedef struct tarn__param_training {
  float *master;                  // the fp32 copy that the optimiser updates; equal to `value` in fp32
  void *grad;                     // float [rows, cols]; double when dtype is F64
  bool grad_written;              // false: the next kernel that adds to `grad` overwrites it instead
  bool planned;                   // `grad` is in the workspace while a graph runs (graph/update.h)
  struct tarn__tensor *gradient;  // while updates are inserted into a graph: that tensor, and the last node that adds
  size_t last;                    // to it or reads the parameter
  uint8_t *used_rows;  // [rows], for a table that only embedding reads, else NULL: 0 for rows of `grad` that are zero,
                       // so that they need not be cleared or read; set it to 1 if other code wrote to `grad`
  void *moment1, *moment2;  // while an optimiser exists; tarn__moment_bytes() each
  tarn__moments moments;
  uint32_t number;  // its index among the parameters of the model, which makes their random numbers differ
  float *grad_sum;  // sum of the gradients since AutoFreeze's last test, for parameters that it tests; else NULL
  // With a sharded optimiser (train.shard_optimiser): the elements that this rank updates, as a separate parameter. It
  // owns what the whole then lacks: moments, grad_sum, and the master copy of a bf16 parameter. Else NULL.
  struct tarn__param *part;
  int64_t first;  // of a part: its first element in the whole, a multiple of tarn__moment_divisor(); else 0
} tarn__param_training;

// Its state during decoding.
typedef struct tarn__param_decoding {
  const void *packed;  // `value` packed by the device for products y = x value^T (device/device.h); NULL: not packed
  tarn__rounding rounding;  // of what is packed
  // A table that lookups read as INT8, [rows, cols] with one scale per row, while the model is packed that way; else
  // NULL.
  const signed char *rounded;
  const float *scales;
} tarn__param_decoding;

// Values in a mapped file, which take no memory of the model; all NULL if the values are in memory.
typedef struct tarn__param_mapped {
  const void *value;    // of the parameter's dtype
  const void *rounded;  // as `rounding` says; then there is no other value
  // float [rows], finite and not negative; in memory. Of signed bytes [rows, cols], or of the rows of device/int4.h.
  const void *scales;
  tarn__rounding rounding;
} tarn__param_mapped;

// Grouped by lifetime: declared when a model is opened, known after initialisation, the value itself, and the additions
// of training and decoding.
typedef struct tarn__param {
  const char *name;    // "encoder.layer1.self_attn.qkv.weight"
  int64_t rows, cols;  // a weight of a linear layer is [out, in]; a vector is [1, n]
  int64_t out, in;     // for signs, and for stacks of matrices that are not one factor of a product: the shape of the
                       // matrix that they represent, of each matrix; else 0
  bool vector;         // a vector, even if a matrix could have rows == 1
  tarn__param_role role;
  int stack;  // for LAYER, SHARED and STACK: the number of the stack (tarn__stack_id)
  bool trained;
  bool stopped;  // no longer trained (train.freeze): no gradient and no update, but stored as before
  int uses;      // number of places in the model that use it; more than 1: shared
  tarn__init init;
  double last_gain;  // factor on the last of init's blocks, such as the values after queries and keys; 0: none
  int64_t redraw;    // for TARN__INIT_FEATURES: updates between redraws; 0: never
  uint32_t draw;     // number of the draw in `value`; 0 for all others
  const tarn__reservoir *reservoir;  // for TARN__INIT_RESERVOIR; else NULL
  double least;                      // for TARN__INIT_RANGE
  double sparsity;  // fraction of its entries, chosen by seed, that are set to 0 after initialisation; 0 for
                    // reservoirs, which have their own
  int64_t entries;  // for a frozen matrix stored in CSR format (graph/entries.h): its capacity in entries; 0: dense
  double factor;    // for TARN__INIT_RESERVOIR: the factor that scales its normal values to the spectral radius; 0: not
                    // yet known
  char hash[TARN__HASH_TEXT];  // frozen only: hash of its fp32 values, set at initialisation; recorded in checkpoints
  // The device whose memory holds everything below; NULL: the host. The host accesses it only through
  // device/transfer.h.
  const struct tarn__device *device;
  tarn__dtype dtype;  // of `value`: F32, BF16 (matrices only; vectors and signs stay F32) or F64 (reference in double)
  void *value;        // [rows, cols], read by kernels; or its entries
  tarn__param_training training;  // of a trained parameter
  tarn__param_decoding decoding;
  tarn__param_mapped mapped;
  // In use its values are read only by products of packed weights and by lookups in vocabularies, so integers can
  // replace them (model/rounded.c): INT8 or, unless it is such a table, INT4 as well. NONE: nothing can.
  tarn__rounding rounds;
} tarn__param;

// Whether a step computes its gradient and the optimiser updates it.
static inline bool tarn__param_learns(const tarn__param *param) { return param->trained && !param->stopped; }

#endif
