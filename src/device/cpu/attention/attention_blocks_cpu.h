// One head of one sequence in blocks of query rows, in fp32 in the scratch of a thread: common code of attention_cpu.c
// and attention_tangent_cpu.c. attention_cpu.c illustrates the products.
#ifndef TARN_DEVICE_CPU_ATTENTION_ATTENTION_BLOCKS_CPU_H
#define TARN_DEVICE_CPU_ATTENTION_ATTENTION_BLOCKS_CPU_H

#include <string.h>

#include "device/cpu/attention/attention_head_cpu.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/tile_cpu.h"

// Rows of a block of queries, and of a strip of a causal product; a block is a multiple of a strip.
enum { TARN__ATTENTION_STRIP = TARN__TILE_ROWS, TARN__ATTENTION_BLOCK = 8 * TARN__ATTENTION_STRIP };

// Keys whose dropout numbers a strip generates at once; a multiple of TARN__TILE_PAD.
enum { TARN__ATTENTION_DROPPED = 256 };

// Masked scores: far below every score, but finite.
#define TARN__ATTENTION_MASKED (-1e30f)

// Stride of rows that run over the keys; never a multiple of 512 bytes, which would map a column to few cache sets.
static inline int64_t tarn__attention_key_step(int64_t keys) {
  int64_t step = tarn__tile_pad(keys);
  return step % 128 == 0 ? step + TARN__TILE_PAD : step;
}

// n floats, a multiple of TARN__TILE_PAD, from an F32 or BF16 array.
static inline void tarn__attention_read(float *out, const void *data, tarn__dtype dtype, int64_t at, int64_t n) {
  if (dtype == TARN__F32) {
    const float *in = (const float *)data + at;
    for (int64_t c = 0; c < n; c += TARN__VEC_LANES) tarn__vec_store(out + c, tarn__vec_load(in + c));
    return;
  }
  const uint16_t *in = (const uint16_t *)data + at;
  for (int64_t c = 0; c < n; c += TARN__TILE_PAD) tarn__row_from_bf16(out + c, in + c, TARN__TILE_PAD);
}

// Copies rows of a tensor to rows of h->row floats, padded with zeros.
static inline void tarn__attention_load(const tarn__attention_head *h, float *out, const tarn__tensor *tensor,
                                        int64_t first, int64_t column, int64_t rows) {
  for (int64_t i = 0; i < rows; i++) {
    const int64_t at = (first + i) * tensor->cols + column;
    float *row = out + i * h->row;
    if (h->row == h->width) {
      tarn__attention_read(row, tensor->data, tensor->dtype, at, h->width);
      continue;
    }
    tarn__row_copy(row, tensor->data, tensor->dtype, at, h->width);
    for (int64_t c = h->width; c < h->row; c++) row[c] = 0.0f;
  }
}

// Loads the head's keys (or values); rows up to a multiple of TARN__TILE_PAD are zero.
static inline void tarn__attention_load_keys(const tarn__attention_head *h, float *out, const tarn__tensor *tensor,
                                             int64_t column) {
  tarn__attention_load(h, out, tensor, h->key, column + h->kv_column, h->keys);
  memset(out + h->keys * h->row, 0, (size_t)((tarn__tile_pad(h->keys) - h->keys) * h->row) * sizeof *out);
}

static inline void tarn__attention_store(const tarn__attention_head *h, const tarn__tensor *tensor, int64_t first,
                                         int64_t column, int64_t rows, const float *in) {
  for (int64_t i = 0; i < rows; i++)
    tarn__row_write(tensor->data, tensor->dtype, (first + i) * tensor->cols + column, h->width, in + i * h->row);
}

static inline int64_t tarn__attention_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Number of keys that the products of a block compute for its row i: those that the row's strip sees.
static inline int64_t tarn__attention_keys_of(const tarn__attention_head *h, int64_t first, int64_t i, int64_t rows) {
  return h->spec->causal ? first + tarn__attention_smaller(i - i % TARN__ATTENTION_STRIP + TARN__ATTENTION_STRIP, rows)
                         : h->keys;
}

// Rows of the next product: all at once, or one strip.
static inline int64_t tarn__attention_strip(const tarn__attention_head *h, int64_t left) {
  return h->spec->causal ? tarn__attention_smaller(TARN__ATTENTION_STRIP, left) : left;
}

// c [rows, keys] (+)= a [rows, width] b [width, keys]
static inline void tarn__attention_scores(const tarn__attention_head *h, float *c, const float *a, const float *b,
                                          int64_t first, int64_t rows, bool add) {
  for (int64_t i = 0, m; i < rows; i += m) {
    m = tarn__attention_strip(h, rows - i);
    tarn__tile_operands t = {.c = c + i * h->key_row, .a = a + i * h->row, .b = b};
    t.c_row = t.b_row = h->key_row, t.a_row = h->row, t.a_step = 1;
    tarn__tile_product(&t, m, tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows)), h->width, add);
  }
}

// Adds biases to the scores of a block, if there are any.
static inline void tarn__attention_add_biases(const tarn__attention_head *h, float *p, int64_t first, int64_t rows) {
  for (int64_t i = 0; h->bias && i < rows; i++) {
    const int64_t n = tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows));
    const float *bias = h->bias - (first + i);
    float *row = p + i * h->key_row;
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES)
      tarn__vec_store(row + j, tarn__vec_load(row + j) + tarn__vec_load(bias + j));
  }
}

// c [rows, width] (+)= p [rows, keys] b [keys, width]
static inline void tarn__attention_sum_rows(const tarn__attention_head *h, float *c, const float *p, const float *b,
                                            int64_t first, int64_t rows, bool add) {
  for (int64_t i = 0, m; i < rows; i += m) {
    m = tarn__attention_strip(h, rows - i);
    tarn__tile_operands t = {.c = c + i * h->row, .a = p + i * h->key_row, .b = b};
    t.c_row = t.b_row = h->row, t.a_row = h->key_row, t.a_step = 1;
    tarn__tile_product(&t, m, h->row, tarn__attention_keys_of(h, first, i, rows), add);
  }
}

// Converts scores of a block to probabilities; columns that were computed but are not seen become zero. Each step is
// done for all rows before the next one, so that the dependency chains of several rows overlap.
static inline void tarn__attention_softmax(const tarn__attention_head *h, float *p, int64_t first, int64_t rows) {
  tarn__vec shift[TARN__ATTENTION_BLOCK], factor[TARN__ATTENTION_BLOCK];
  for (int64_t i = 0; i < rows; i++) {
    const int64_t seen = h->spec->causal ? first + i + 1 : h->keys;
    const int64_t n = tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows));
    float *row = p + i * h->key_row;
    tarn__vec most = tarn__vec_all(TARN__ATTENTION_MASKED);
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES) {
      tarn__vec score = tarn__vec_load(row + j);
      if (j + TARN__VEC_LANES > seen)
        tarn__vec_store(row + j, score = tarn__vec_first(score, seen - j, TARN__ATTENTION_MASKED));
      most = tarn__vec_max(most, score);
    }
    shift[i] = tarn__vec_max_lane(most);
  }
  for (int64_t i = 0; i < rows; i++) {
    const int64_t n = tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows));
    float *row = p + i * h->key_row;
    const float most = shift[i][0], scale = h->scale;
    tarn__vec sum = {0};
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES) {
#pragma omp simd
      for (int64_t l = j; l < j + TARN__VEC_LANES; l++) row[l] = tarn__row_exp((row[l] - most) * scale);
      sum += tarn__vec_load(row + j);
    }
    factor[i] = 1.0f / tarn__vec_sum_lanes(sum);
  }
  for (int64_t i = 0; i < rows; i++) {
    const int64_t n = tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows));
    float *row = p + i * h->key_row;
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES) tarn__vec_store(row + j, tarn__vec_load(row + j) * factor[i]);
  }
}

// Applies dropout to a piece of a row of P. dp: the same piece of dP, or NULL.
static inline void tarn__attention_drop_piece(float *p, float *dp, const uint16_t *numbers, int64_t n,
                                              tarn__dropout dropout) {
  const float scale = (float)tarn__dropout_scale(dropout);
  const uint32_t threshold = dropout.threshold;
  if (dp) {
    for (int64_t j = 0; j < n; j++) dp[j] = numbers[j] >= threshold ? dp[j] * scale : 0.0f;
    for (int64_t j = 0; j < n; j++) p[j] = numbers[j] >= threshold ? p[j] : -p[j];
  } else {
    for (int64_t j = 0; j < n; j++) p[j] = numbers[j] >= threshold ? p[j] * scale : 0.0f;
  }
}

// Without dp, P becomes M P. With it, dP becomes M dP, and P becomes negative where M is 0.
static inline void tarn__attention_drop(const tarn__attention_head *h, float *p, float *dp, int64_t first,
                                        int64_t rows) {
  uint16_t numbers[(TARN__ATTENTION_STRIP * TARN__ATTENTION_DROPPED + TARN__DROPOUT_CHUNK - 1) / TARN__DROPOUT_CHUNK *
                   TARN__DROPOUT_CHUNK];
  for (int64_t i = 0; i < rows; i += TARN__ATTENTION_STRIP) {
    const int64_t keys = tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows));
    const int64_t m = tarn__attention_smaller(TARN__ATTENTION_STRIP, rows - i);
    for (int64_t j = 0; j < keys; j += TARN__ATTENTION_DROPPED) {
      const int64_t n = tarn__attention_smaller(TARN__ATTENTION_DROPPED, keys - j);
      tarn__dropout_matrix(numbers, h->exec, h->dropout.site, h->query + first + i, m, tarn__attention_block(h, j),
                           n / TARN__DROPOUT_BLOCK);
      for (int64_t r = 0; r < m; r++) {
        const int64_t at = (i + r) * h->key_row + j;
        tarn__attention_drop_piece(p + at, dp ? dp + at : NULL, numbers + r * n, n, h->dropout);
      }
    }
  }
}

static inline void tarn__attention_begin(tarn__attention_head *h) {
  h->row = tarn__tile_pad(h->width), h->key_row = tarn__attention_key_step(h->keys);
  tarn__attention_biases(h, 1);
}

#endif
