// Recurrences on a card, in one of two ways that the size of the weight decides:
//   resident  one launch for all steps: a block holds the states of a few sentences in shared memory, and each of its
//             threads the gates of one unit; the weight comes from shared memory or L2. For weights that L2 gives fast
//             enough: no barrier is wider than a block.
//   stepwise  for each step one product of all sentences and one small kernel, in the order of decreasing lengths, so
//             that those still running are a prefix. For large weights, and for those stored as their entries, except
//             for a few series (recurrence_reservoir_cuda.cu).
// States, and the gradients that flow back in time, are in fp32.
//
// A sequence is a sentence, or for tangents a sentence of one direction of theirs: number k sentences + s.
#ifndef TARN_DEVICE_CUDA_RECURRENCE_RECURRENCE_LOOP_H
#define TARN_DEVICE_CUDA_RECURRENCE_RECURRENCE_LOOP_H

#include "device/cuda/cuda.h"

extern "C" {
#include "ops/recurrence.h"
}

// The columns of a direction of recurrence; data NULL: absent.
typedef struct tarn__lane {
  void *data;
  int64_t ld;
} tarn__lane;

// Numbers in fp32 by sentences; data NULL: absent. `rows` from one direction of tangents to the next.
typedef struct tarn__states {
  float *data;
  int64_t ld, rows;
} tarn__states;

// One direction of recurrence. Forward reads x and writes y, gates and extra; the others read these. A tangent reads
// dx and writes dy; backward reads dy and writes dx, du and first.
typedef struct tarn__side {
  const tarn__tensor *weight;
  const void *resident;  // the weight as the resident loop reads it: transposed for forward and tangents
  const float *bias;
  float *bias_sums;  // backward, where its gradient is wanted: of blocks or of sequences, [*, width]; else NULL
  tarn__lane x, y, gates, extra, dy, dx, du, first;
  bool reverse;
} tarn__side;

typedef enum tarn__pass { TARN__PASS_FORWARD, TARN__PASS_TANGENT, TARN__PASS_BACKWARD } tarn__pass;

typedef struct tarn__loop {
  tarn__cell cell;
  int64_t n, width;  // width: gates * n
  int sides;
  bool relu, accumulate;  // accumulate: dx is added to
  float leak;
  const float *leaks;  // NULL: leak for all units
  const int32_t *offsets, *order;
  int64_t sentences, sequences, rows;  // rows: of the forward pass
  tarn__states start;                  // states before the first step
  tarn__states begin, end;             // what the loop begins and ends with: states, or their tangents
  tarn__side side[2];
  tarn__fp32 fp32;
  // Stepwise: scratch, by places in the order. The operand of products is in the type of the activations.
  float *state, *cell_state, *u;
  void *operand;
} tarn__loop;

// Whether a loop is resident.
bool tarn__loop_resident(const tarn__tensor *weight);
// Sequences of a block of the resident loop, and blocks of one side.
int tarn__loop_group(const tarn__loop *l);
int64_t tarn__loop_blocks(const tarn__loop *l);

// order[place] = number of a sequence, by decreasing length.
tarn_status tarn__loop_order(int32_t *order, const tarn__loop *l, cudaStream_t stream);
// to [cols, rows] = from^T
tarn_status tarn__loop_transpose(void *to, const void *from, tarn__dtype dtype, int64_t rows, int64_t cols,
                                 cudaStream_t stream);
tarn_status tarn__loop_run(const tarn__loop *l, tarn__pass pass, tarn__dtype dtype, cudaStream_t stream);
// `offsets`: in host memory. `sparse`: of each side, for weights stored as entries; for backward transposed.
struct tarn__sparse_rows;
tarn_status tarn__loop_steps(const tarn__loop *l, tarn__pass pass, tarn__dtype dtype, const int32_t *offsets,
                             const struct tarn__sparse_rows *sparse, cudaStream_t stream);

// A frozen sparse matrix in CSR format (graph/entries.h), in device memory.
typedef struct tarn__sparse_rows {
  const int32_t *starts, *columns;
  const float *values;
  int64_t rows;
} tarn__sparse_rows;

tarn__sparse_rows tarn__sparse_of(const tarn__tensor *weight);
// c[q c_ld + i c_step] = sum_j W_ij a[q + j a_ld], for q < count, added to what is there if `accumulate`.
typedef struct tarn__sparse_product {
  tarn__sparse_rows matrix;
  const void *a;
  int64_t a_ld, count;
  float *c;
  int64_t c_ld, c_step;
  bool accumulate;
} tarn__sparse_product;
tarn_status tarn__cuda_sparse_product(const tarn__sparse_product *product, tarn__dtype dtype, cudaStream_t stream);
// A loop of a few series over reservoirs that are stored as their entries, forward only.
bool tarn__reservoir_fits(const tarn__loop *l);
tarn_status tarn__reservoir_run(const tarn__loop *l, tarn__dtype dtype, const tarn__sparse_rows sparse[2],
                                cudaStream_t stream);

// The transposed of a square matrix, entries of a row by increasing column, in `room` of
// tarn__sparse_transpose_bytes().
tarn_status tarn__sparse_transpose(tarn__sparse_rows *transposed, const tarn__tensor *weight, void *room,
                                   cudaStream_t stream);
size_t tarn__sparse_transpose_bytes(const tarn__tensor *weight);

#endif
