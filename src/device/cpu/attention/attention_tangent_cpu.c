// Fast kernels: one head of one sequence at a time, with all directions, in fp32 in the scratch of a thread.
//
//   once             S = Q K^T,  P = softmax(S)
//   each direction   dS = dQ K^T + Q dK^T,  dP = P (dS - rowsum(P dS)),  dO = dP V + P dV
//   dropout          M P instead of P and M dP instead of dP in dO; M is 0 or 1 / (1 - p)
//
// in blocks of queries, as in attention_cpu.c.
#include <omp.h>

#include "device/cpu/attention/attention_blocks_cpu.h"
#include "device/cpu/rows/tangent_kernels.h"
#include "graph/tangents.h"

typedef tarn__attention_head head;

// Scratch of a head: transposed keys and values of the forward pass, those of a direction, and a block's rows.
typedef struct buffers {
  float *k, *v, *dk, *dv, *q, *dq, *out, *p, *masked, *dp;
} buffers;

static int64_t floats_of(const tarn__attention_attr *attr) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t row = tarn__tile_pad(spec->d / spec->heads), keys = tarn__tile_pad(spec->longest);
  const int64_t key_row = keys + TARN__TILE_PAD, block = TARN__ATTENTION_BLOCK;
  const int64_t floats = 2 * row * key_row + 2 * keys * row + 3 * block * row + 3 * block * key_row;
  return (floats + tarn__attention_bias_floats(attr) + 15) / 16 * 16;
}

static size_t scratch(const tarn__attention_attr *attr, int threads) {
  return (size_t)floats_of(attr) * sizeof(float) * (size_t)threads;
}

// A head whose rows are those of direction `direction`, or of the forward pass (-1), which precede them.
static head at_direction(const head *h, int64_t direction, int64_t query_rows, int64_t key_rows) {
  head moved = *h;
  moved.query += direction * query_rows;
  moved.key += direction * key_rows;
  return moved;
}

// Loads keys into `transposed` [width, keys], using `rows`.
static void load_transposed(const head *h, float *transposed, float *rows, const tarn__tensor *tensor) {
  tarn__attention_load_keys(h, rows, tensor, h->spec->key_column);
  tarn__tile_transpose(transposed, h->key_row, rows, h->row, tarn__tile_pad(h->keys), h->row);
}

// Replaces dS by dP, from P and dS.
static void softmax_tangent(const head *h, float *ds, const float *p, int64_t first, int64_t rows) {
  for (int64_t i = 0; i < rows; i++, p += h->key_row, ds += h->key_row) {
    const int64_t n = tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows));
    tarn__vec sum = {0};
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES)
      sum = tarn__vec_fma(tarn__vec_load(p + j), tarn__vec_load(ds + j), sum);
    sum = tarn__vec_sum_lanes(sum);
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES)
      tarn__vec_store(ds + j, tarn__vec_load(p + j) * (tarn__vec_load(ds + j) - sum) * h->scale);
  }
}

static void direction_block(const head *h, const head *moved, const tarn__node *node, const buffers *f, int64_t first,
                            int64_t rows) {
  const tarn__tensor *dqueries = node->in[TARN__ATTENTION_TANGENT_QUERIES];
  const tarn__tensor *dkv = node->in[TARN__ATTENTION_TANGENT_KEYS_VALUES];
  if (dqueries) {
    tarn__attention_load(moved, f->dq, dqueries, moved->query + first, h->spec->query_column + h->column, rows);
    tarn__attention_scores(h, f->dp, f->dq, f->k, first, rows, false);
  }
  if (dkv) {
    load_transposed(moved, f->dk, f->dv, dkv);
    tarn__attention_scores(h, f->dp, f->q, f->dk, first, rows, dqueries != NULL);
    tarn__attention_load_keys(moved, f->dv, dkv, h->spec->value_column);
  }
  softmax_tangent(h, f->dp, f->p, first, rows);
  const bool dropped = h->dropout.threshold > 0;
  if (dropped) tarn__attention_drop(h, f->dp, NULL, first, rows);
  tarn__attention_sum_rows(h, f->out, f->dp, f->v, first, rows, false);
  if (dkv) tarn__attention_sum_rows(h, f->out, dropped ? f->masked : f->p, f->dv, first, rows, true);
  tarn__attention_store(moved, node->out[0], moved->query + first, h->column, rows, f->out);
}

static void block(const head *h, const tarn__node *node, const buffers *f, int64_t first, int64_t rows) {
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const int64_t directions = tarn__tangent_directions(node->out[0], queries->rows);
  tarn__attention_load(h, f->q, queries, h->query + first, h->spec->query_column + h->column, rows);
  tarn__attention_scores(h, f->p, f->q, f->k, first, rows, false);
  tarn__attention_add_biases(h, f->p, first, rows);
  tarn__attention_softmax(h, f->p, first, rows);
  if (h->dropout.threshold > 0) {
    memcpy(f->masked, f->p, (size_t)(rows * h->key_row) * sizeof *f->p);
    tarn__attention_drop(h, f->masked, NULL, first, rows);
  }
  for (int64_t k = 0; k < directions; k++) {
    const head moved = at_direction(h, k, queries->rows, kv->rows);
    direction_block(h, &moved, node, f, first, rows);
  }
}

static void run_head(head *h, const tarn__node *node) {
  tarn__attention_begin(h);
  const tarn__tensor *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const int64_t padded = tarn__tile_pad(h->keys), rows = TARN__ATTENTION_BLOCK;
  buffers f;
  f.k = tarn__attention_take(h, h->row * h->key_row), f.dk = tarn__attention_take(h, h->row * h->key_row);
  f.v = tarn__attention_take(h, padded * h->row), f.dv = tarn__attention_take(h, padded * h->row);
  f.q = tarn__attention_take(h, rows * h->row), f.dq = tarn__attention_take(h, rows * h->row);
  f.out = tarn__attention_take(h, rows * h->row), f.p = tarn__attention_take(h, rows * h->key_row);
  f.masked = tarn__attention_take(h, rows * h->key_row), f.dp = tarn__attention_take(h, rows * h->key_row);
  load_transposed(h, f.k, f.v, kv);
  tarn__attention_load_keys(h, f.v, kv, h->spec->value_column);
  for (int64_t first = 0; first < h->queries; first += rows)
    block(h, node, &f, first, tarn__attention_smaller(h->queries - first, rows));
}

static tarn_status run(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_attr *attr = node->attr;
  const int32_t *query_offsets = node->in[TARN__ATTENTION_QUERY_OFFSETS]->data;
  const int32_t *key_offsets = node->in[TARN__ATTENTION_KEY_OFFSETS]->data;
  const int64_t floats = floats_of(attr);
  const int64_t items = (node->in[TARN__ATTENTION_QUERY_OFFSETS]->cols - 1) * attr->spec.heads;
  double slopes[TARN__ATTENTION_HEADS];
  tarn__attention_slopes(&attr->spec, slopes);
#pragma omp parallel for num_threads(exec->threads) schedule(guided, attr->spec.heads)
  for (int64_t item = 0; item < items; item++) {
    head h = tarn__attention_head_of(exec, attr, query_offsets, key_offsets, slopes, node->in[TARN__ATTENTION_BIASES],
                                     item, (float *)node->scratch + omp_get_thread_num() * floats);
    run_head(&h, node);
  }
  return TARN_STATUS_OK;
}

const tarn__attention_tangent_kernels TARN__FAST(tarn__attention_tangent_kernels) = {run, scratch};
