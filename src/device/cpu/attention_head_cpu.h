// What the two families of attention kernels share: one head of one sequence.
#ifndef TARN_DEVICE_CPU_ATTENTION_HEAD_CPU_H
#define TARN_DEVICE_CPU_ATTENTION_HEAD_CPU_H

#include <math.h>

#include "device/variant.h"
#include "ops/attention.h"

enum {
  TARN__ATTENTION_RANGES = 4,
  TARN__ATTENTION_LINES = 20,          // cache lines asked for at a time
  TARN__ATTENTION_AHEAD = 256 * 1024,  // bytes: longer sequences are not worth it
  TARN__ATTENTION_WHOLE = 64,          // queries or keys that a kernel works on at once are parts of so many
};

// Memory to be asked for ahead of time.
typedef struct tarn__attention_range {
  const char *at, *end;
} tarn__attention_range;

// One head of one sequence, and the scratch of the thread that computes it.
typedef struct tarn__attention_head {
  const tarn__attention_spec *spec;
  int64_t query, queries, key, keys;  // first row and number of rows
  int64_t column, width;              // of the head, within q, k, v or the result
  int64_t row, key_row;               // steps of padded rows in scratch; attention_cpu.c only
  float scale;
  double slope;       // ALiBi: what each position of distance subtracts from scaled scores; 0: none
  const float *bias;  // see tarn__attention_biases(); NULL: there are none
  tarn__dropout dropout;
  const tarn__exec *exec;
  float *next;  // scratch not yet given out
  tarn__attention_range range[TARN__ATTENTION_RANGES];
  int ranges;
} tarn__attention_head;

// item: number of the sequence times heads, plus number of the head. slopes: of tarn__attention_slopes().
static inline tarn__attention_head tarn__attention_head_of(const tarn__exec *exec, const tarn__attention_attr *attr,
                                                           const int32_t *query_offsets, const int32_t *key_offsets,
                                                           const double *slopes, int64_t item, float *memory) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t s = item / spec->heads, width = spec->d / spec->heads;
  return (tarn__attention_head){.spec = spec,
                                .query = query_offsets[s],
                                .queries = query_offsets[s + 1] - query_offsets[s],
                                .key = key_offsets[s],
                                .keys = key_offsets[s + 1] - key_offsets[s],
                                .column = item % spec->heads * width,
                                .width = width,
                                .scale = 1.0f / sqrtf((float)width),
                                .slope = slopes[item % spec->heads],
                                .dropout = attr->dropout,
                                .exec = exec,
                                .next = memory};
}

// First block of the numbers of dropout of key j, a multiple of TARN__DROPOUT_BLOCK.
static inline int64_t tarn__attention_block(const tarn__attention_head *h, int64_t j) {
  return tarn__attention_column(h->column / h->width, j) / TARN__DROPOUT_BLOCK;
}

static inline float *tarn__attention_take(tarn__attention_head *h, int64_t floats) {
  float *memory = h->next;
  h->next += (floats + 15) / 16 * 16;
  return memory;
}

static inline int64_t tarn__attention_reach(int64_t keys) {
  return (keys + TARN__ATTENTION_WHOLE - 1) / TARN__ATTENTION_WHOLE * TARN__ATTENTION_WHOLE;
}

// Floats of scratch that tarn__attention_biases() takes.
static inline int64_t tarn__attention_bias_floats(const tarn__attention_spec *spec) {
  return spec->alibi > 0 ? 2 * tarn__attention_reach(spec->longest) : 0;
}

// Makes the biases: h->bias[n], n from -reach to reach - 1, is added to the scores of query and key that are n apart,
// before they are scaled. So one load has the biases of a register of neighbouring queries or keys.
static inline void tarn__attention_biases(tarn__attention_head *h) {
  if (h->slope <= 0) return;
  const int reach = (int)tarn__attention_reach(h->keys);
  const float slope = (float)(h->slope * sqrt((double)h->width));
  float *bias = tarn__attention_take(h, 2 * reach) + reach;
  for (int n = -reach; n < reach; n++) bias[n] = -slope * fabsf((float)n);
  h->bias = bias;
}

// Part `item % heads` of `heads` of the rows of a sequence.
static inline tarn__attention_range tarn__attention_slice(const tarn__attention_spec *spec, const tarn__tensor *tensor,
                                                          const int32_t *offsets, int64_t item) {
  const int64_t s = item / spec->heads, slice = item % spec->heads;
  const int64_t step = tensor->cols * (int64_t)tarn__dtype_size(tensor->dtype);
  const int64_t bytes = (offsets[s + 1] - offsets[s]) * step;
  if (bytes > TARN__ATTENTION_AHEAD) return (tarn__attention_range){NULL, NULL};
  const char *base = (const char *)tensor->data + offsets[s] * step;
  return (tarn__attention_range){base + bytes * slice / spec->heads, base + bytes * (slice + 1) / spec->heads};
}

// Asks for some of what the heads of the next sequence will read. The columns of one head are short pieces far apart,
// which the processor does not see coming; whole rows, in slices that the heads of this sequence ask for between their
// steps, come at the speed of the memory.
static inline void tarn__attention_fetch(tarn__attention_head *h) {
  int lines = TARN__ATTENTION_LINES;
  for (int i = 0; i < h->ranges; i++) {
    tarn__attention_range *range = &h->range[i];
    for (; lines > 0 && range->at < range->end; lines--, range->at += 64) __builtin_prefetch(range->at);
  }
}

// The kernels for BF16 tensors and heads whose width is a multiple of 32: of attention_pairs_cpu.c where the
// instruction set multiplies pairs of bf16, of attention_tiles_amx.c where it has tiles. Floats are the scratch of one
// thread.
#if defined(__AVX512BF16__)
int64_t tarn__attention_pairs_floats(const tarn__attention_spec *spec);
int64_t tarn__attention_pairs_backward_floats(const tarn__attention_spec *spec);
void tarn__attention_pairs_forward(tarn__attention_head *h, const tarn__node *node);
void tarn__attention_pairs_backward(tarn__attention_head *h, const tarn__attention_backward *b);
int64_t tarn__attention_tiles_floats(const tarn__attention_spec *spec);
int64_t tarn__attention_tiles_backward_floats(const tarn__attention_spec *spec);
// A thread begins before its first head and ends after its last: to say how tiles are used takes as long as a head's
// softmax.
void tarn__attention_tiles_begin(void);
void tarn__attention_tiles_end(void);
void tarn__attention_tiles_forward(tarn__attention_head *h, const tarn__node *node);
void tarn__attention_tiles_backward(tarn__attention_head *h, const tarn__attention_backward *b);
#endif

#endif
