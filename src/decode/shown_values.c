#include "decode/shown_values.h"

#include <math.h>

#include "base/memory.h"
#include "ops/attention.h"

// A thread's unit of work: a head of a sentence.
typedef struct head {
  int64_t queries, keys, width;
  bool causal;
  float scale, slope;
  const float *biases;                 // by distance from the query to the key, of distance 0; NULL: none
  int64_t reach;                       // of them, or of relative keys
  const tarn__shown_matrix *relative;  // relative keys; values NULL: none
  float *near;                         // products of the current query with each of them [2 reach + 1]
  float *transposed;                   // its keys [width, keys]
  float *query;                        // [width]
} head;

static int64_t clipped(const head *h, int64_t distance) {
  return distance < -h->reach ? -h->reach : distance > h->reach ? h->reach : distance;
}

static void compare_relative(const head *h) {
  for (int64_t n = 0; n <= 2 * h->reach; n++) {
    h->near[n] = 0.0F;
    for (int64_t c = 0; c < h->width; c++) h->near[n] += h->query[c] * tarn__shown_value(h->relative, n * h->width + c);
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

static tarn_status read_tensor(const tarn__graph *graph, tarn__shown_matrix *matrix, const tarn__tensor *tensor,
                               tarn__host_room *room) {
  void *values;
  TARN_TRY(tarn__graph_read(graph, &values, tensor, room));
  *matrix = (tarn__shown_matrix){values, tensor->dtype, tensor->cols};
  return TARN_STATUS_OK;
}

tarn_status tarn__shown_read(tarn__shown_values *out, const tarn__graph *graph, const tarn__shown *shown) {
  const tarn__param *relative = shown->extras.relative.keys;
  out->shown = *shown;
  out->keys = out->biases = out->relative = (tarn__shown_matrix){0};
  TARN_TRY(read_tensor(graph, &out->values, shown->tensor, &out->values_room));
  if (shown->keys) TARN_TRY(read_tensor(graph, &out->keys, shown->keys, &out->keys_room));
  if (shown->extras.biases) TARN_TRY(read_tensor(graph, &out->biases, shown->extras.biases, &out->biases_room));
  if (!relative) return TARN_STATUS_OK;
  const size_t bytes = (size_t)(relative->rows * relative->cols) * tarn__dtype_size(relative->dtype);
  void *values;
  TARN_TRY(tarn__device_read(relative->device, &values, relative->value, bytes, &out->relative_room));
  out->relative = (tarn__shown_matrix){values, relative->dtype, relative->cols};
  return TARN_STATUS_OK;
}

void tarn__shown_values_close(tarn__shown_values *values) {
  tarn__host_room_close(&values->values_room);
  tarn__host_room_close(&values->keys_room);
  tarn__host_room_close(&values->biases_room);
  tarn__host_room_close(&values->relative_room);
  *values = (tarn__shown_values){0};
}

tarn_status tarn__shown_attention(float *out, const tarn__shown_values *from, int64_t q_row, int64_t query_count,
                                  int64_t k_row, int64_t key_count, int threads) {
  const tarn__attention_spec *spec = &from->shown.spec;
  const tarn__shown_matrix *queries = &from->values, *keys = &from->keys;
  const int kv_heads = from->shown.extras.kv_heads, group = kv_heads > 0 ? spec->heads / kv_heads : 1;
  const int64_t reach =
      from->shown.extras.relative.keys ? from->shown.extras.relative.keys->rows / 2 : from->biases.cols / 2;
  const int64_t width = spec->d / spec->heads, room = width * (key_count + 1) + 2 * reach + 1;
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
    h.reach = reach;
    h.relative = &from->relative;
    if (from->biases.values) h.biases = (const float *)from->biases.values + n * from->biases.cols + reach;
    h.transposed = scratch + n * room;
    h.query = h.transposed + width * key_count;
    h.near = h.query + width;
    for (int64_t j = 0; j < key_count; j++)
      for (int64_t c = 0; c < width; c++)
        h.transposed[c * key_count + j] =
            tarn__shown_value(keys, (k_row + j) * keys->cols + spec->key_column + n / group * width + c);
    for (int64_t i = 0; i < query_count; i++) {
      for (int64_t c = 0; c < width; c++)
        h.query[c] = tarn__shown_value(queries, (q_row + i) * queries->cols + spec->query_column + n * width + c);
      weights_of(out + (n * query_count + i) * key_count, &h, i);
    }
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}
