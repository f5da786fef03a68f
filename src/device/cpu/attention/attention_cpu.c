// Fast kernels: one head of one sequence at a time, in fp32 in the scratch of a thread. (attention_pairs_cpu.c and
// attention_tiles_amx.c have others for bf16.)
//
//   forward    S = Q K^T,  P = tarn__attention_softmax(S),  O = P V
//   backward   recomputes S and P,  dP = dO V^T,  dS = P (dP - rowsum(P dP)),  dQ = dS K,  dK += dS^T Q,  dV += P^T dO
//   biases     S = Q K^T + B in both, B by the distance of query and key
//   dropout    M P instead of P in O and dV, M dP instead of dP; M is 0 or 1 / (1 - p), and computed both times
//
// Queries are processed in blocks of rows, so scratch is O(block x keys). Keys and values are converted once per head,
// with the transposed copies that make every product one with rows as right operand. In causal attention the products
// are divided into strips of rows, which skip most of the empty half:
//
//        keys ->                     strip of queries i .. i + 5: keys 0 .. i + 5
//        |####|    |
//        |########||                 strip of keys j .. j + 5 (dK, dV): queries j and later
//        |############|
#include <omp.h>
#include <string.h>

#include "device/cpu/attention/attention_blocks_cpu.h"
#include "device/cpu/attention/attention_head_cpu.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/tile_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/rotary.h"

typedef tarn__attention_head head;

static int64_t forward_floats(const tarn__attention_attr *attr) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t row = tarn__tile_pad(spec->d / spec->heads), keys = tarn__tile_pad(spec->longest);
  const int64_t key_row = keys + TARN__TILE_PAD;
  return row * key_row + keys * row + 2 * TARN__ATTENTION_BLOCK * row + TARN__ATTENTION_BLOCK * key_row +
         tarn__attention_bias_floats(attr);
}

static int64_t backward_floats(const tarn__attention_attr *attr) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t row = tarn__tile_pad(spec->d / spec->heads), keys = tarn__tile_pad(spec->longest);
  const int64_t key_row = keys + TARN__TILE_PAD;
  return 2 * row * key_row + 4 * keys * row + 3 * TARN__ATTENTION_BLOCK * row + 2 * TARN__ATTENTION_BLOCK * key_row +
         tarn__attention_backward_bias_floats(attr);
}

// The same for gradients, which may be added to the destination. Overwrites `in`.
static void store_gradient(const head *h, const tarn__tensor *tensor, bool add, int64_t first, int64_t column,
                           int64_t rows, float *in) {
  for (int64_t i = 0; add && i < rows; i++) {
    const int64_t at = (first + i) * tensor->cols + column;
    float *row = in + i * h->row;
    if (tensor->dtype == TARN__F32) {
      tarn__row_add(row, (const float *)tensor->data + at, h->width);
    } else {
      for (int64_t c = 0; c < h->width; c++) row[c] += tarn__bf16_to_f32(((const uint16_t *)tensor->data)[at + c]);
    }
  }
  tarn__attention_store(h, tensor, first, column, rows, in);
}

// c [keys, width] += p^T b, for p [rows, keys] and b [rows, width]. Keys not seen by an earlier block, or by another
// head of the group, are overwritten.
static void product_keys(const head *h, float *c, const float *p, const float *b, int64_t first, int64_t rows) {
  const int64_t keys = h->spec->causal ? first + rows : h->keys;
  for (int64_t j = 0, m; j < keys; j += m) {
    m = tarn__attention_strip(h, keys - j);
    const int64_t skip = h->spec->causal && j > first ? j - first : 0;  // these queries do not see key j
    tarn__tile_operands t = {.c = c + j * h->row, .a = p + skip * h->key_row + j, .b = b + skip * h->row};
    t.c_row = t.b_row = h->row, t.a_row = 1, t.a_step = h->key_row;
    tarn__tile_product(&t, m, h->row, rows - skip, !h->group_first || (h->spec->causal ? j < first : first > 0));
  }
}

static void forward_head(head *h, const tarn__node *node) {
  tarn__attention_begin(h);
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const tarn__tensor *out = node->out[0];
  const tarn__attention_spec *spec = h->spec;
  float *transposed = tarn__attention_take(h, h->row * h->key_row),
        *v = tarn__attention_take(h, tarn__tile_pad(h->keys) * h->row);
  float *q = tarn__attention_take(h, TARN__ATTENTION_BLOCK * h->row),
        *o = tarn__attention_take(h, TARN__ATTENTION_BLOCK * h->row),
        *p = tarn__attention_take(h, TARN__ATTENTION_BLOCK * h->key_row);
  tarn__attention_load_keys(h, v, kv, spec->key_column);
  tarn__tile_transpose(transposed, h->key_row, v, h->row, tarn__tile_pad(h->keys), h->row);
  tarn__attention_load_keys(h, v, kv, spec->value_column);
  for (int64_t first = 0; first < h->queries; first += TARN__ATTENTION_BLOCK) {
    const int64_t rows = tarn__attention_smaller(h->queries - first, TARN__ATTENTION_BLOCK);
    tarn__attention_load(h, q, queries, h->query + first, spec->query_column + h->column, rows);
    tarn__attention_scores(h, p, q, transposed, first, rows, false);
    tarn__attention_add_biases(h, p, first, rows);
    tarn__attention_softmax(h, p, first, rows);
    if (h->dropout.threshold > 0) tarn__attention_drop(h, p, NULL, first, rows);
    tarn__attention_sum_rows(h, o, p, v, first, rows, false);
    tarn__attention_store(h, out, h->query + first, h->column, rows, o);
  }
}

// Replaces dP by dS, from P and dP.
static void score_gradient(const head *h, float *dp, const float *p, int64_t first, int64_t rows) {
  for (int64_t i = 0; i < rows; i++, p += h->key_row, dp += h->key_row) {
    const int64_t n = tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows));
    tarn__vec sum = {0};
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES)
      sum = tarn__vec_fma(tarn__vec_load(p + j), tarn__vec_load(dp + j), sum);
    sum = tarn__vec_sum_lanes(sum);
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES)
      tarn__vec_store(dp + j, tarn__vec_load(p + j) * (tarn__vec_load(dp + j) - sum) * h->scale);
  }
}

// The same after tarn__attention_drop(); P becomes M P.
static void dropped_score_gradient(const head *h, float *dp, float *p, int64_t first, int64_t rows) {
  const float keep_scale = (float)tarn__dropout_scale(h->dropout);
  for (int64_t i = 0; i < rows; i++, p += h->key_row, dp += h->key_row) {
    const int64_t n = tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows));
    tarn__vec sum = {0};
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES)  // dropped elements contribute 0
      sum = tarn__vec_fma(tarn__vec_load(p + j), tarn__vec_load(dp + j), sum);
    sum = tarn__vec_sum_lanes(sum);
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES) {
      const tarn__vec weight = tarn__vec_load(p + j);
      tarn__vec_store(dp + j, tarn__vec_max(weight, -weight) * (tarn__vec_load(dp + j) - sum) * h->scale);
      tarn__vec_store(p + j, tarn__vec_max(weight, (tarn__vec){0}) * keep_scale);
    }
  }
}

// Adds dS to the sums by distance.
static void sum_distances(head *h, const float *ds, int64_t first, int64_t rows) {
  for (int64_t i = 0; i < rows; i++, ds += h->key_row) {
    const int64_t n = tarn__tile_pad(tarn__attention_keys_of(h, first, i, rows));
    for (int64_t j = 0; j < n; j += TARN__VEC_LANES)
      tarn__attention_sums_add(&h->sums, j - first - i, tarn__vec_load(ds + j));
  }
}

// Scratch of a backward head: keys and both transposed copies, gradients of keys and values, and a block's rows.
typedef struct buffers {
  float *k, *k_transposed, *v_transposed, *dk, *dv, *q, *dout, *dq, *p, *dp;
} buffers;

static void backward_block(head *h, const tarn__attention_backward *b, const buffers *f, int64_t first, int64_t rows) {
  tarn__attention_load(h, f->q, b->queries, h->query + first, h->spec->query_column + h->column, rows);
  tarn__attention_load(h, f->dout, b->dout, h->query + first, h->column, rows);
  tarn__attention_scores(h, f->p, f->q, f->k_transposed, first, rows, false);
  tarn__attention_add_biases(h, f->p, first, rows);
  tarn__attention_softmax(h, f->p, first, rows);
  tarn__attention_scores(h, f->dp, f->dout, f->v_transposed, first, rows, false);
  if (h->dropout.threshold > 0) {
    tarn__attention_drop(h, f->p, f->dp, first, rows);
    dropped_score_gradient(h, f->dp, f->p, first, rows);
  } else {
    score_gradient(h, f->dp, f->p, first, rows);
  }
  if (h->sums.rows) sum_distances(h, f->dp, first, rows);
  if (b->dkeys_values) {
    product_keys(h, f->dv, f->p, f->dout, first, rows);
    product_keys(h, f->dk, f->dp, f->q, first, rows);
  }
  if (b->dqueries) {
    tarn__attention_sum_rows(h, f->dq, f->dp, f->k, first, rows, false);
    store_gradient(h, b->dqueries, b->add_queries, h->query + first, h->spec->query_column + h->column, rows, f->dq);
  }
}

static void backward_head(head *h, const tarn__attention_backward *b) {
  tarn__attention_begin(h);
  const tarn__attention_spec *spec = h->spec;
  const int64_t padded = tarn__tile_pad(h->keys);
  buffers f;
  f.k_transposed = tarn__attention_take(h, h->row * h->key_row),
  f.v_transposed = tarn__attention_take(h, h->row * h->key_row);
  f.k = tarn__attention_take(h, padded * h->row), f.dk = tarn__attention_take(h, padded * h->row),
  f.dv = tarn__attention_take(h, padded * h->row);
  f.q = tarn__attention_take(h, TARN__ATTENTION_BLOCK * h->row),
  f.dout = tarn__attention_take(h, TARN__ATTENTION_BLOCK * h->row),
  f.dq = tarn__attention_take(h, TARN__ATTENTION_BLOCK * h->row);
  f.p = tarn__attention_take(h, TARN__ATTENTION_BLOCK * h->key_row),
  f.dp = tarn__attention_take(h, TARN__ATTENTION_BLOCK * h->key_row);
  tarn__attention_begin_sums(h, b);
  tarn__attention_load_keys(h, f.k, b->keys_values, spec->value_column);
  tarn__tile_transpose(f.v_transposed, h->key_row, f.k, h->row, padded, h->row);
  tarn__attention_load_keys(h, f.k, b->keys_values, spec->key_column);
  tarn__tile_transpose(f.k_transposed, h->key_row, f.k, h->row, padded, h->row);
  if (h->queries == 0) {
    memset(f.dk, 0, (size_t)(h->keys * h->row) * sizeof(float));
    memset(f.dv, 0, (size_t)(h->keys * h->row) * sizeof(float));
  }
  for (int64_t first = 0; first < h->queries; first += TARN__ATTENTION_BLOCK)
    backward_block(h, b, &f, first, tarn__attention_smaller(h->queries - first, TARN__ATTENTION_BLOCK));
  tarn__attention_end_sums(h, b, 1);
  if (!b->dkeys_values || !h->group_last) return;
  store_gradient(h, b->dkeys_values, b->add_keys_values, h->key, spec->key_column + h->kv_column, h->keys, f.dk);
  store_gradient(h, b->dkeys_values, b->add_keys_values, h->key, spec->value_column + h->kv_column, h->keys, f.dv);
}

// The kernels of a head, and floats of scratch per thread. begin and end: called once per thread; NULL: none.
typedef struct family {
  void (*forward)(head *h, const tarn__node *node);
  void (*backward)(head *h, const tarn__attention_backward *b);
  int64_t (*floats)(const tarn__attention_attr *attr);
  int64_t (*backward_floats)(const tarn__attention_attr *attr);
  void (*begin)(void), (*end)(void);
} family;

static family family_of(const tarn__attention_spec *spec, tarn__dtype dtype) {
#if defined(__AVX512BF16__)
  if (dtype == TARN__BF16 && spec->d / spec->heads >= TARN__ATTENTION_LEAST_WIDTH) {
#ifdef TARN_WITH_AMX
    if (tarn__isa_now() == TARN__ISA_AMX)
      return (family){tarn__attention_tiles_forward, tarn__attention_tiles_backward,
                      tarn__attention_tiles_floats,  tarn__attention_tiles_backward_floats,
                      tarn__attention_tiles_begin,   tarn__attention_tiles_end};
#endif
    return (family){tarn__attention_pairs_forward,
                    tarn__attention_pairs_backward,
                    tarn__attention_pairs_floats,
                    tarn__attention_pairs_backward_floats,
                    NULL,
                    NULL};
  }
#endif
  (void)spec, (void)dtype;
  return (family){forward_head, backward_head, forward_floats, backward_floats, NULL, NULL};
}

// The attributes of the node that contains this spec.
static const tarn__attention_attr *attr_of(const tarn__attention_spec *spec) {
  return (const tarn__attention_attr *)(const void *)spec;
}

// Floats between the scratch of one thread and the next: whole cache lines.
static int64_t apart(int64_t floats) { return (floats + 15) / 16 * 16; }

// Scratch of the node itself, without the tables of rotations joined to it. These kernels do not need `reference`
// bytes, the scratch of the reference; having at least these leaves the sizes of small plans as they were.
static size_t own_scratch(const tarn__attention_spec *spec, tarn__dtype dtype, int threads) {
  const size_t reference = (size_t)spec->longest * sizeof(double);
  const int64_t floats = apart(family_of(spec, dtype).floats(attr_of(spec)));
  const size_t bytes = (size_t)floats * sizeof(float) * (size_t)threads;
  return bytes > reference ? bytes : reference;
}

static size_t own_backward_scratch(const tarn__attention_spec *spec, tarn__dtype dtype, int threads) {
  const size_t width = (size_t)(spec->d / spec->heads), longest = (size_t)spec->longest;
  const size_t reference = (2 * longest + width + 2 * longest * width) * sizeof(double);
  const int64_t floats = apart(family_of(spec, dtype).backward_floats(attr_of(spec)));
  const size_t bytes = (size_t)floats * sizeof(float) * (size_t)threads;
  return bytes > reference ? bytes : reference;
}

// --- rotations of queries and keys, or of their gradients, that are joined to attention: each head of a sequence is
// turned right before (behind) it is read (written), while it is in the cache

typedef struct turning {
  tarn__rotary_table table[TARN__MOST_JOINED];
  int count;
} turning;

static size_t whole_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Scratch of the node itself, and behind it that of the tables.
static size_t with_tables(const tarn__node *node, size_t own) {
  const tarn__attention_spec *spec = node->attr;
  size_t bytes = own;
  for (int k = 0; k < TARN__MOST_JOINED && node->joined[k]; k++)
    bytes = whole_lines(bytes) + TARN__TABLE_NOW(tarn__rotary_kernels)->table_bytes(node->joined[k], spec->longest);
  return bytes;
}

static size_t scratch(const tarn__node *node, int threads) {
  return with_tables(node, own_scratch(node->attr, node->out[0]->dtype, threads));
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  return with_tables(node, own_backward_scratch(node->attr, node->in[TARN__ATTENTION_DO]->dtype, threads));
}

// Makes the tables, in the scratch behind the node's own; false: positions are too far apart for them.
static bool make_tables(turning *t, const tarn__exec *exec, const tarn__node *node, size_t own) {
  const tarn__attention_spec *spec = node->attr;
  *t = (turning){.count = 0};
  for (int k = 0; k < TARN__MOST_JOINED && node->joined[k]; k++) {
    const tarn__node *rotary = node->joined[k];
    own = whole_lines(own);
    if (!TARN__TABLE_NOW(tarn__rotary_kernels)
             ->table(&t->table[k], rotary, (float *)(void *)((char *)node->scratch + own), spec->longest,
                     exec->threads))
      return false;
    own += TARN__TABLE_NOW(tarn__rotary_kernels)->table_bytes(rotary, spec->longest);
    t->count++;
  }
  return true;
}

// The same as nodes of their own.
static tarn_status turn_all(const tarn__exec *exec, const tarn__node *node) {
  for (int k = 0; k < TARN__MOST_JOINED && node->joined[k]; k++)
    TARN_TRY(TARN__TABLE_NOW(tarn__rotary_kernels)->forward(exec, node->joined[k]));
  return TARN_STATUS_OK;
}

// Columns from `column` on, a head of queries or keys, in rows [first, first + rows) of a tensor.
static void turn_head(const turning *t, const tarn__tensor *tensor, int64_t column, int64_t first, int64_t rows) {
  for (int k = 0; k < t->count; k++) {
    const tarn__rotary_table *table = &t->table[k];
    const tarn__rotary_spec *spec = &((const tarn__rotary_attr *)table->node->attr)->spec;
    if (tensor && table->node->out[0]->data == tensor->data)
      TARN__TABLE_NOW(tarn__rotary_kernels)->turn(table, (column - spec->column) / spec->width, first, first + rows);
  }
}

// Sets the data to prefetch for the next sequence while this one is computed.
static void ahead(head *h, const tarn__tensor *tensor, const int32_t *offsets, int64_t item, int64_t items) {
  if (tensor && item + h->spec->heads < items)
    h->range[h->ranges++] = tarn__attention_slice(h->spec, tensor, offsets, item + h->spec->heads);
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  const int32_t *query_offsets = node->in[TARN__ATTENTION_QUERY_OFFSETS]->data;
  const int32_t *key_offsets = node->in[TARN__ATTENTION_KEY_OFFSETS]->data;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const family kernels = family_of(spec, node->out[0]->dtype);
  const int64_t floats = apart(kernels.floats(node->attr));
  const int64_t items = (node->in[TARN__ATTENTION_QUERY_OFFSETS]->cols - 1) * spec->heads;
  double slopes[TARN__ATTENTION_HEADS];
  turning turns;
  tarn__attention_slopes(spec, slopes);
  if (!make_tables(&turns, exec, node, own_scratch(spec, node->out[0]->dtype, exec->threads))) {
    turns.count = 0;
    TARN_TRY(turn_all(exec, node));
  }
#pragma omp parallel num_threads(exec->threads)
  {
    if (kernels.begin) kernels.begin();
#pragma omp for schedule(guided, spec->heads) nowait
    for (int64_t item = 0; item < items; item++) {
      float *memory = (float *)node->scratch + omp_get_thread_num() * floats;
      head h = tarn__attention_head_of(exec, node->attr, query_offsets, key_offsets, slopes,
                                       node->in[TARN__ATTENTION_BIASES], item, memory);
      ahead(&h, queries, query_offsets, item, items);
      if (kv != queries) ahead(&h, kv, key_offsets, item, items);
      ahead(&h, node->out[0], query_offsets, item, items);
      turn_head(&turns, queries, spec->query_column + h.column, h.query, h.queries);
      turn_head(&turns, kv, spec->key_column + h.kv_column, h.key, h.keys);
      kernels.forward(&h, node);
    }
    if (kernels.end) kernels.end();
  }
  return TARN_STATUS_OK;
}

// The heads of a sequence that share keys and values, one after another in one scratch, where these gradients are
// summed.
static void backward_group(const family *kernels, const tarn__exec *exec, const tarn__node *node,
                           const tarn__attention_backward *b, const turning *turns, const double *slopes, int64_t item,
                           float *memory) {
  const tarn__attention_attr *attr = node->attr;
  const int64_t heads = attr->spec.heads, group = heads / attr->kv_heads, items = b->sequences * heads;
  for (int64_t i = item * group; i < (item + 1) * group; i++) {
    head h = tarn__attention_head_of(exec, attr, b->query_offsets, b->key_offsets, slopes, b->biases, i, memory);
    ahead(&h, b->queries, b->query_offsets, i, items);
    if (b->keys_values != b->queries) ahead(&h, b->keys_values, b->key_offsets, i, items);
    ahead(&h, b->dout, b->query_offsets, i, items);
    kernels->backward(&h, b);
    turn_head(turns, b->dqueries, attr->spec.query_column + h.column, h.query, h.queries);
    if (h.group_last) turn_head(turns, b->dkeys_values, attr->spec.key_column + h.kv_column, h.key, h.keys);
  }
}

// Row h of the gradient of the biases: the sums of all sequences, in order.
static void sum_biases(const tarn__attention_backward *b, int64_t h) {
  const int64_t heads = b->dbiases->rows, cols = b->dbiases->cols, reach = cols / 2;
  float *out = (float *)b->dbiases->data + h * cols;
  memset(out, 0, (size_t)cols * sizeof *out);
  for (int64_t s = 0; s < b->sequences; s++) {
    const int64_t first = b->query_offsets[s], length = b->query_offsets[s + 1] - first;
    if (length == 0) continue;
    const float *in = (const float *)b->bias_sums->data + 2 * (heads * first + h * length);
    const int64_t farthest = tarn__attention_farthest(length, reach);
    for (int64_t c = 0; c <= 2 * farthest; c++) out[reach - farthest + c] += in[c];
  }
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__attention_backward b = tarn__attention_backward_of(node);
  const family kernels = family_of(spec, b.dout->dtype);
  const int64_t floats = apart(kernels.backward_floats(attr));
  const int64_t items = b.sequences * attr->kv_heads;
  double slopes[TARN__ATTENTION_HEADS];
  turning turns;
  tarn__attention_slopes(spec, slopes);
  const bool within = make_tables(&turns, exec, node, own_backward_scratch(spec, b.dout->dtype, exec->threads));
  if (!within) turns.count = 0;
#pragma omp parallel num_threads(exec->threads)
  {
    if (kernels.begin) kernels.begin();
#pragma omp for schedule(guided, attr->kv_heads) nowait
    for (int64_t item = 0; item < items; item++)
      backward_group(&kernels, exec, node, &b, &turns, slopes, item,
                     (float *)node->scratch + omp_get_thread_num() * floats);
    if (kernels.end) kernels.end();
  }
  if (!within) TARN_TRY(turn_all(exec, node));
  if (!b.dbiases) return TARN_STATUS_OK;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t h = 0; h < b.dbiases->rows; h++) sum_biases(&b, h);
  return TARN_STATUS_OK;
}

const tarn__attention_kernels TARN__FAST(tarn__attention_kernels) = {forward, backward, scratch, backward_scratch};
