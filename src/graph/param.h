// A parameter: one matrix (or vector, rows == 1) of a model, trained or frozen. Everything that a frozen parameter
// lacks (gradient, moments, master copy, bytes in a checkpoint) follows from its one flag `trained`.
#ifndef TARN_GRAPH_PARAM_H
#define TARN_GRAPH_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "device/dtype.h"

// How the first values are made. The value of element (i, j) is a function of (generator, seed, name, initialiser).
typedef enum tarn__init_kind {
  TARN__INIT_ZERO,
  TARN__INIT_ONE,
  TARN__INIT_CONSTANT,    // gain
  TARN__INIT_XAVIER,      // uniform in +-gain * sqrt(6 / (fan_in + fan_out))  (Glorot and Bengio 2010)
  TARN__INIT_ORTHOGONAL,  // Q of the QR decomposition of a normal matrix, times gain  (Saxe et al. 2013)
  TARN__INIT_HADAMARD,    // orthonormal, of random signs and Hadamard transforms  (Yu et al. 2016; ops/hadamard.h)
  TARN__INIT_SIGNS,       // 1 or -1: what a matrix of TARN__INIT_HADAMARD is made of
  TARN__INIT_NORMAL,      // normal with standard deviation gain
  TARN__INIT_UNIFORM,     // uniform in +-gain
  TARN__INIT_RANGE,       // uniform from param->least to gain
  TARN__INIT_FEATURES,    // orthogonal random features, redrawn every param->redraw updates  (Choromanski et al. 2021)
  TARN__INIT_RESERVOIR    // normal on the edges of a random graph, scaled to the spectral radius gain
} tarn__init_kind;

typedef struct tarn__init {
  tarn__init_kind kind;
  double gain;
  int blocks;  // the rows are cut into this many equal blocks (query, key, value), each initialised on its own; 1 or
               // more
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
  double sparsity;   // share of its entries that are 0
  const char *kind;  // of the layer, for messages
} tarn__reservoir;

// What a parameter is to its model.
typedef enum tarn__param_role {
  TARN__ROLE_EMBEDDINGS,    // tables of inputs and positions, and what is done to their sum
  TARN__ROLE_OUTPUT_TABLE,  // a table of the output layer alone
  TARN__ROLE_OUTPUT,        // what else belongs to the output layer or head
  TARN__ROLE_LAYER,         // of a set of layers
  TARN__ROLE_SHARED,        // of all layers of a kind in a stack
  TARN__ROLE_STACK,         // of a stack: its final norm, its table of biases
  TARN__ROLE_HELPER         // of training alone, no part of the model
} tarn__param_role;

// What a parameter has beside its value while a model is trained; all NULL and false otherwise. In the memory of the
// parameter's device.
typedef struct tarn__param_training {
  float *master;                  // the fp32 copy that the optimiser updates; equal to `value` in fp32
  void *grad;                     // float [rows, cols]; double when dtype is F64
  bool grad_written;              // false: the next kernel that adds to `grad` overwrites it instead
  bool planned;                   // `grad` is memory of the workspace, while a graph runs (graph/update.h)
  struct tarn__tensor *gradient;  // while the updates of a graph are placed: that memory, and the last node that adds
  size_t last;                    // to it or reads the parameter
  uint8_t *used_rows;  // [rows], of a table that only embedding reads, or NULL: 0 for rows of `grad` that are zero,
                       // so that nobody need clear or read them; set it to 1 where something else wrote to `grad`
  void *moment1, *moment2;  // while an optimiser exists; of type `moments`
  tarn__dtype moments;      // F32, or BF16: rounded at random (optim/moments.h)
  uint32_t number;          // its place among the parameters of the model, which tells their random numbers apart
  float *grad_sum;  // sum of the gradients since AutoFreeze's last test, of parameters that it looks at; else NULL
  // Where ranks share the optimiser (train.shard_optimiser): the elements that this rank updates, as a parameter of
  // their own, which has what the whole then lacks: moments, grad_sum, and the master copy of a parameter in bf16. Else
  // NULL.
  struct tarn__param *part;
  int64_t first;  // of a part: the element of the whole that it begins with, a multiple of 8 (optim/moments.h); else 0
} tarn__param_training;

// What it has while a model decodes.
typedef struct tarn__param_decoding {
  const void *packed;  // `value` as the device packs it for products y = x value^T (device/device.h); NULL: it is not
  bool packed_int8;    // it is packed as INT8
  // A table that lookups read as INT8, [rows, cols] with a scale for each row, while the model is packed so; else NULL.
  const signed char *rounded;
  const float *scales;
} tarn__param_decoding;

// The values of a parameter that lie where a file is mapped, and take no memory of the model; all NULL where they do.
typedef struct tarn__param_mapped {
  const void *value;           // of the parameter's dtype
  const signed char *rounded;  // as INT8 [rows, cols], with a scale for each row; then there is no other value
  const float *scales;         // [rows], finite and not negative; in memory
} tarn__param_mapped;

// Split by lifetime: what is declared when a model is opened, what is known once its first values are made, its value,
// and what training and decoding add.
typedef struct tarn__param {
  const char *name;    // "encoder.layer1.self_attn.qkv.weight"
  int64_t rows, cols;  // a weight of a linear layer is [out, in]; a vector is [1, n]
  int64_t out, in;     // of signs, and of stacks of matrices that are no factor of one product: the shape of the
                       // matrix that they stand for, of each matrix; else 0
  bool vector;         // no matrix, though rows is 1
  tarn__param_role role;
  int stack;  // of LAYER, SHARED and STACK: the number of the stack (tarn__stack_id)
  bool trained;
  bool stopped;  // trained, but not any more (train.freeze): no gradient and no update, though it is stored as before
  int uses;      // number of places of the model that use it; more than 1: shared
  tarn__init init;
  double last_gain;  // factor on the last of init's blocks, such as the values behind queries and keys; 0: none
  int64_t redraw;    // of TARN__INIT_FEATURES: updates after which it is drawn anew; 0: never
  uint32_t draw;     // number of the draw that `value` is of; always 0 but for those
  const tarn__reservoir *reservoir;  // of TARN__INIT_RESERVOIR; else NULL
  double least;                      // of TARN__INIT_RANGE
  double sparsity;  // share of its entries, drawn by seed, that are set to 0, whatever init says; 0 in reservoirs,
                    // which have one of their own
  int64_t entries;  // of a frozen matrix that is stored as its entries (graph/entries.h): how many there is room for;
                    // 0: all its values are stored
  double factor;    // of TARN__INIT_RESERVOIR: what scales its normal values to the spectral radius; 0: not known yet
  char hash[TARN__HASH_TEXT];  // frozen only: of its fp32 values, set as they are made; a checkpoint records it
  // In whose memory all that follows lies; NULL: the host's. The host reads and writes it by device/transfer.h alone.
  const struct tarn__device *device;
  tarn__dtype dtype;  // of `value`: F32, BF16 (matrices only; vectors and signs stay F32) or F64 (reference in double)
  void *value;        // [rows, cols], what kernels read; or its entries
  tarn__param_training training;  // of a trained one
  tarn__param_decoding decoding;
  tarn__param_mapped mapped;
  // Nothing reads its values when the model translates but products of packed weights and lookups in vocabularies, so
  // that INT8 may stand for them (model/rounded.c).
  bool rounds;
} tarn__param;

// Whether a step computes its gradient and the optimiser updates it.
static inline bool tarn__param_learns(const tarn__param *param) { return param->trained && !param->stopped; }

#endif
