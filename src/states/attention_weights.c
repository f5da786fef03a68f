#include "states/attention_weights.h"

#include <math.h>

#include "base/memory.h"
#include "ops/attention.h"

// A thread's unit of work: a head of a sentence.
typedef struct head {
  int64_t queries, keys, width;
  bool causal;
  float scale, slope;
  const float *biases;                  // by distance from the query to the key, of distance 0; NULL: none
  int64_t reach;                        // of them, or of relative keys
  const tarn__states_matrix *relative;  // relative keys; values NULL: none
  float *near;                          // products of the current query with each of them [2 reach + 1]
  float *transposed;                    // its keys [width, keys]
  float *query;                         // [width]
} head;

static int64_t clipped(const head *h, int64_t distance) {
  return distance < -h->reach ? -h->reach : distance > h->reach ? h->reach : distance;
}

static void compare_relative(const head *h) {
  for (int64_t n = 0; n <= 2 * h->reach; n++) {
    h->near[n] = 0.0F;
    for (int64_t c = 0; c < h->width; c++)
      h->near[n] += h->query[c] * tarn__states_value(h->relative, n * h->width + c);
  }
}

// The softmax of the scores of query i, in p [keys]. Sums over the columns of a head run from the first to the last,
// for many keys at a time.
static void weights_of(float *p, const head *h, int64_t i) {
  const int64_t seen = h->causal ? i + 1 : h->keys;
  float most = -INFINITY, sum = 0.0F;
  for (int64_t j = 0; j < h->keys; j++) p[j] = 0.0F;
  for (int64_t c = 0; c < h->width; c++) {
    const float q = h->query[c];
    const float *k = h->transposed + c * h->keys;
    for (int64_t j = 0; j < seen; j++) p[j] += q * k[j];
  }
  if (h->relative->values) compare_relative(h);
  for (int64_t j = 0; j < seen; j++) {
    if (h->relative->values) p[j] += h->near[h->reach + clipped(h, j - i)];
    p[j] = p[j] * h->scale - h->slope * (float)(j < i ? i - j : j - i);
    if (h->biases) p[j] += h->biases[clipped(h, j - i)];
    if (p[j] > most) most = p[j];
  }
  for (int64_t j = 0; j < seen; j++) {
    p[j] = (float)exp((double)(p[j] - most));
    sum += p[j];
  }
  for (int64_t j = 0; j < seen; j++) p[j] /= sum;
}

tarn_status tarn__states_attention(float *out, const tarn__states_matrix *queries, int64_t q_row, int64_t query_count,
                                   const tarn__states_matrix *keys, int64_t k_row, int64_t key_count,
                                   const tarn__attention_spec *spec, const tarn__states_extras *extras, int threads) {
  const int64_t width = spec->d / spec->heads, room = width * (key_count + 1) + 2 * extras->reach + 1;
  const int group = extras->kv_heads > 0 ? spec->heads / extras->kv_heads : 1;
  double slopes[TARN__ATTENTION_HEADS];
  void *memory;
  tarn__attention_slopes(spec, slopes);
  if (threads > spec->heads) threads = spec->heads;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)room * (size_t)spec->heads, sizeof(float)));
  float *scratch = memory;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int n = 0; n < spec->heads; n++) {
    head h = {.queries = query_count, .keys = key_count, .width = width, .causal = spec->causal};
    h.scale = (float)(1.0 / sqrt((double)width));
    h.slope = (float)slopes[n];
    h.reach = extras->relative.values ? extras->reach : extras->biases.cols / 2;
    h.relative = &extras->relative;
    if (extras->biases.values) h.biases = (const float *)extras->biases.values + n * extras->biases.cols + h.reach;
    h.transposed = scratch + n * room;
    h.query = h.transposed + width * key_count;
    h.near = h.query + width;
    for (int64_t j = 0; j < key_count; j++)
      for (int64_t c = 0; c < width; c++)
        h.transposed[c * key_count + j] =
            tarn__states_value(keys, (k_row + j) * keys->cols + spec->key_column + n / group * width + c);
    for (int64_t i = 0; i < query_count; i++) {
      for (int64_t c = 0; c < width; c++)
        h.query[c] = tarn__states_value(queries, (q_row + i) * queries->cols + spec->query_column + n * width + c);
      weights_of(out + (n * query_count + i) * key_count, &h, i);
    }
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}
