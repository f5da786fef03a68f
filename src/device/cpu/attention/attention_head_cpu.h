// One head of one sequence: common code of the families of attention kernels.
#ifndef TARN_DEVICE_CPU_ATTENTION_ATTENTION_HEAD_CPU_H
#define TARN_DEVICE_CPU_ATTENTION_ATTENTION_HEAD_CPU_H

#include <math.h>

#include "device/cpu/attention/attention_sums_cpu.h"
#include "device/variant.h"
#include "ops/attention.h"

enum {
  TARN__ATTENTION_RANGES = 4,
  TARN__ATTENTION_LINES = 20,          // cache lines prefetched at a time
  TARN__ATTENTION_AHEAD = 256 * 1024,  // bytes: longer sequences are not worth it
  TARN__ATTENTION_WHOLE = 64,          // kernels process queries or keys in divisors of this many at once
};

// Memory to be prefetched.
typedef struct tarn__attention_range {
  const char *at, *end;
} tarn__attention_range;

// One head of one sequence, and the scratch of the thread that computes it.
typedef struct tarn__attention_head {
  const tarn__attention_spec *spec;
  int64_t query, queries, key, keys;  // first row and number of rows
  int64_t column, width;              // of the head, within q or the result
  int64_t kv_column;                  // of its keys and values, within k or v
  bool group_first, group_last;       // of the heads that share keys and values, whose gradients are summed in scratch
  int64_t row, key_row;               // strides of padded rows in scratch; attention_cpu.c only
  float scale;
  double slope;               // ALiBi: subtracted from scaled scores for each position of distance; 0: none
  const float *table;         // of the head in tarn__attention_extras.biases, at distance 0; NULL: none
  int64_t reach;              // of the table
  const float *bias;          // see tarn__attention_biases(); NULL: none
  tarn__attention_sums sums;  // of gradients of scores by distance; rows NULL: not wanted
  tarn__dropout dropout;
  const tarn__exec *exec;
  float *next;  // free scratch
  tarn__attention_range range[TARN__ATTENTION_RANGES];
  int ranges;
} tarn__attention_head;

// item: sequence number times heads, plus head number. slopes: from tarn__attention_slopes(). biases: the table, or
// NULL.
static inline tarn__attention_head tarn__attention_head_of(const tarn__exec *exec, const tarn__attention_attr *attr,
                                                           const int32_t *query_offsets, const int32_t *key_offsets,
                                                           const double *slopes, const tarn__tensor *biases,
                                                           int64_t item, float *memory) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t s = item / spec->heads, head = item % spec->heads, width = spec->d / spec->heads;
  const int64_t group = spec->heads / attr->kv_heads;
  return (tarn__attention_head){
      .spec = spec,
      .query = query_offsets[s],
      .queries = query_offsets[s + 1] - query_offsets[s],
      .key = key_offsets[s],
      .keys = key_offsets[s + 1] - key_offsets[s],
      .column = head * width,
      .width = width,
      .kv_column = head / group * width,
      .group_first = head % group == 0,
      .group_last = head % group == group - 1,
      .scale = 1.0f / sqrtf((float)width),
      .slope = slopes[head],
      .table = biases ? (const float *)biases->data + head * biases->cols + attr->reach : NULL,
      .reach = attr->reach,
      .dropout = attr->dropout,
      .exec = exec,
      .next = memory};
}

// First block of the dropout numbers of key j, a multiple of TARN__DROPOUT_BLOCK.
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

// Floats of scratch used by tarn__attention_biases().
static inline int64_t tarn__attention_bias_floats(const tarn__attention_attr *attr) {
  return attr->spec.alibi > 0 || attr->reach >= 0 ? 2 * tarn__attention_reach(attr->spec.longest) : 0;
}

// The largest distance with separate gradients.
static inline int64_t tarn__attention_farthest(int64_t keys, int64_t reach) {
  const int64_t most = keys > 0 ? keys - 1 : 0;
  return most < reach ? most : reach;
}

// Additional floats of a backward pass, including those of the sums by distance.
static inline int64_t tarn__attention_backward_bias_floats(const tarn__attention_attr *attr) {
  const int64_t farthest = tarn__attention_farthest(attr->spec.longest, attr->reach);
  return tarn__attention_bias_floats(attr) + (attr->reach >= 0 ? tarn__attention_sums_floats(farthest) + 16 : 0);
}

// The table's biases; `sign` is that of distances n from query to key.
static inline void tarn__attention_table(const tarn__attention_head *h, float *bias, int reach, int sign) {
  const float factor = sqrtf((float)h->width);
  const int most = (int)h->reach;
  for (int n = -reach; n < reach; n++) {
    const int near = n < -most ? -most : n > most ? most : n;
    bias[n] = factor * h->table[sign * near];
  }
}

// Computes the biases: h->bias[n], n from -reach to reach - 1, is added to the scores of query and key at distance n,
// before scaling. So one load reads the biases for a register of neighbouring queries or keys. sign: 1 if n counts from
// the query to the key, -1 from the key to the query.
static inline void tarn__attention_biases(tarn__attention_head *h, int sign) {
  if (h->slope <= 0 && !h->table) return;
  const int reach = (int)tarn__attention_reach(h->keys);
  const float slope = (float)(h->slope * sqrt((double)h->width));
  float *bias = tarn__attention_take(h, 2 * reach) + reach;
  if (h->table) {
    tarn__attention_table(h, bias, reach, sign);
    h->bias = bias;
    return;
  }
  for (int n = -reach; n < reach; n++) bias[n] = -slope * fabsf((float)n);
  h->bias = bias;
}

// Begins the sums by distance of a backward pass that wants them.
static inline void tarn__attention_begin_sums(tarn__attention_head *h, const tarn__attention_backward *b) {
  if (!b->dbiases || h->keys == 0) return;
  const int64_t farthest = tarn__attention_farthest(h->keys, h->reach);
  tarn__attention_sums_begin(&h->sums, tarn__attention_take(h, tarn__attention_sums_floats(farthest)), farthest);
}

// Writes them to their place among the sums of all sequences. The gradients of scores were scaled.
static inline void tarn__attention_end_sums(const tarn__attention_head *h, const tarn__attention_backward *b,
                                            int sign) {
  if (!h->sums.rows) return;
  float *out = (float *)b->bias_sums->data + 2 * (h->spec->heads * h->query + h->column / h->width * h->keys);
  tarn__attention_sums_end(&h->sums, out, sqrtf((float)h->width), sign);
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

// Prefetches some of the data that the heads of the next sequence will read. The columns of one head are short pieces
// far apart, which the hardware prefetcher does not recognise; whole rows, in slices that the heads of this sequence
// prefetch between their steps, arrive at memory bandwidth.
static inline void tarn__attention_fetch(tarn__attention_head *h) {
  int lines = TARN__ATTENTION_LINES;
  for (int i = 0; i < h->ranges; i++) {
    tarn__attention_range *range = &h->range[i];
    for (; lines > 0 && range->at < range->end; lines--, range->at += 64) __builtin_prefetch(range->at);
  }
}

// The kernels for BF16 tensors: in attention_pairs_cpu.c if the instruction
// set multiplies pairs of bf16, in attention_tiles_amx.c if it has tiles. Floats are the scratch per thread.
#if defined(__AVX512BF16__)
enum { TARN__ATTENTION_LEAST_WIDTH = 8 };  // of heads that they are faster for
int64_t tarn__attention_pairs_floats(const tarn__attention_attr *attr);
int64_t tarn__attention_pairs_backward_floats(const tarn__attention_attr *attr);
void tarn__attention_pairs_forward(tarn__attention_head *h, const tarn__node *node);
void tarn__attention_pairs_backward(tarn__attention_head *h, const tarn__attention_backward *b);
int64_t tarn__attention_tiles_floats(const tarn__attention_attr *attr);
int64_t tarn__attention_tiles_backward_floats(const tarn__attention_attr *attr);
// Called by each thread before its first head and after its last: configuring tiles takes as long as a head's softmax.
void tarn__attention_tiles_begin(void);
void tarn__attention_tiles_end(void);
void tarn__attention_tiles_forward(tarn__attention_head *h, const tarn__node *node);
void tarn__attention_tiles_backward(tarn__attention_head *h, const tarn__attention_backward *b);
#endif

#endif
