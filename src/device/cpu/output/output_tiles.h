// The output layer's loss and gradients by tiles of BF16, without storing logits (output_amx.c; output_tiles_node.c
// describes the order of the steps). A tile is 16 lines of 64 bytes; packed operands are sequences of pairs of tiles,
// of 32 rows, words or columns each, padded with zeros.
//
// A row's logits l_w are converted to weights e_w = exp(l_w - shift) immediately, before their sum is known:
//   nll = log(e_t + sum of e_w over w != t) + shift - l_t,   p_w = e_w / sum
// The gradients are linear in p, so the factor scale / sum is applied later: for dx when the sum over all words is
// known, and for the gradient of the table to x. The shift is the target's own logit, which makes e_t = 1; if a row's
// sum would become too large that way, it is the largest logit. The target is excluded from the weights, since p_t - 1
// must not have the rounding error of p_t, and smoothing, which is equal for all words, is a sum over the columns of
// the table or the rows of x.
#ifndef TARN_DEVICE_CPU_OUTPUT_OUTPUT_TILES_H
#define TARN_DEVICE_CPU_OUTPUT_OUTPUT_TILES_H

#include "graph/graph.h"

enum {
  TARN__OUTPUT_PAIR = 32,            // rows, words or columns of a pair of tiles
  TARN__OUTPUT_PAIR_NUMBERS = 1024,  // numbers of BF16 of a pair
  TARN__OUTPUT_VISIT = 16            // pairs of words after which dx is updated
};

// A block of rows against all words. Arrays of rows have whole pairs.
typedef struct tarn__output_block {
  int64_t pairs;               // of rows
  int64_t words, width_pairs;  // of the table, and of its columns
  const uint16_t *x;           // [pairs][width_pairs] pairs of tiles: 16 rows of 32 columns each
  // [pairs of words][width_pairs]: 16 pairs of columns by 16 words each; and, or NULL, for each visit
  // [width_pairs][pairs of words of the visit]: 16 pairs of words by 16 columns each
  const uint16_t *table, *table_dx;
  const float *bias;       // [words] or NULL
  const int32_t *targets;  // -1: a row that does not exist
  const float *shift;
  float *sum;         // of the weights
  float *most;        // largest logit, computed instead of everything else; or NULL
  uint16_t *weights;  // or NULL: [pairs of words][weights_pairs], of which [.][0, pairs) are written; see
                      // tarn__output_weight_place()
  int64_t weights_pairs;
  uint16_t *own;  // [pairs][TARN__OUTPUT_VISIT] pairs, scratch for the weights of one visit; with table_dx
  float *dx;      // [pairs][width_pairs][2][2][16][16] sums over all words; with table_dx
  float *lanes;   // [rows][16] scratch
} tarn__output_block;
void tarn__output_amx_block(const tarn__output_block *block);

// The position of a weight among those of a pair of rows and a pair of words. A line holds consecutive words of two
// rows, in the order in which two registers of 16-bit numbers are interleaved.
static inline int64_t tarn__output_weight_place(int64_t row, int64_t word) {
  const int64_t tile = word / 4 % 2, column = word / 8 * 4 + word % 4;
  return tile * 512 + row / 2 * 32 + column * 2 + row % 2;
}

// Packs rows [0, rows) of x for blocks.
void tarn__output_amx_pack_rows(uint16_t *out, const uint16_t *x, int64_t rows, int64_t d);
// Packs words [0, count) of one visit for blocks; dx may be NULL.
void tarn__output_amx_pack_words(uint16_t *out, uint16_t *dx, const uint16_t *table, int64_t count, int64_t d);
// Packs rows [0, rows) of x, each times its factor, for the gradient of the table: [width_pairs][pairs], of which
// [.][0, pairs of these rows) are written: 16 columns of 32 rows each. bias: adds a column pair with the factors.
void tarn__output_amx_pack_scaled(uint16_t *out, const uint16_t *x, const float *factors, int64_t rows, int64_t d,
                                  int64_t pairs, bool bias);

// Gradients of the table and of the bias from the words' weights.
typedef struct tarn__output_words {
  int64_t first, count;         // the first word, a multiple of 32, and pairs of words
  int64_t words, d, pairs;      // of the table, and its columns; pairs of rows
  int64_t x_pairs;              // pairs of rows between two columns in x, and between two words in the weights
  const uint16_t *weights, *x;  // of these words; all scaled rows
  const float *offset;          // [d] added to each word's gradient, or NULL
  float *table, *bias;          // gradients, or NULL; of all words
  bool table_accumulate, bias_accumulate;
  float bias_offset;
  float *sums;  // [width_pairs + 1][count] pairs, scratch
} tarn__output_words;
void tarn__output_amx_words(const tarn__output_words *words);

// sums[j] of the numbers in column j of rows [0, rows).
void tarn__output_amx_column_sums(float *sums, const uint16_t *x, int64_t rows, int64_t d);
float tarn__output_amx_dot(const uint16_t *x, const uint16_t *y, int64_t d);
float tarn__output_amx_dot_floats(const uint16_t *x, const float *y, int64_t d);
// dx[j] = factor * sums of row `row` of a block + wanted * table[j] - offset * table_sums[j]
void tarn__output_amx_finish_dx(uint16_t *dx, const tarn__output_block *block, int64_t row, int64_t d, float factor,
                                float wanted, const uint16_t *table, float offset, const float *table_sums);

// The node itself, if tarn__output_tiles_fit().
bool tarn__output_tiles_fit(const tarn__node *node);
size_t tarn__output_tiles_scratch(const tarn__node *node, int threads);
void tarn__output_tiles_run(const tarn__exec *exec, const tarn__node *node);

#endif
