// The words with the largest logits of each row, most likely first, of equally likely ones the lower id first.
//
// Every thread finds the best of its words. The k-th best of these is a lower bound of the k-th best word, and hardly
// more than k words reach it: these are collected and put in order by counting. Where too many do, the bound is
// searched for exactly.
#include "device/cuda/output/output_rows.h"
#include "device/cuda/output/output_select.h"

// Words that can be put in order in shared memory.
enum { KEYS = 2048 };

struct row_keys {
  const float *logits;
  __device__ uint64_t operator()(int64_t i) const { return tarn__key_of(logits[i], (int32_t)i); }
};

typedef struct top_shared {
  uint64_t keys[KEYS];
  double sums[TARN__WARP_SIZE];
  int counts[TARN__WARP_SIZE], found;
  uint64_t least;
} top_shared;

// A key that at least `best` words reach, if there are so many words.
static __device__ uint64_t lower_bound(const row_keys &key_at, const tarn__top_rows &w, top_shared *s) {
  if (threadIdx.x == 0) s->least = 1;
  if (w.best > (int64_t)blockDim.x) {
    __syncthreads();
    return 1;
  }
  uint64_t own = 0;
  for (int64_t i = threadIdx.x; i < w.words; i += blockDim.x) {
    const uint64_t key = key_at(i);
    if (key > own) own = key;
  }
  s->keys[threadIdx.x] = own;
  __syncthreads();
  if (own != 0 && tarn__key_rank(s->keys, (int)blockDim.x, own) == w.best - 1) s->least = own;
  __syncthreads();
  return s->least;
}

// A word that is number `rank` of its row.
static __device__ void put(const tarn__top_rows &w, int64_t row, int64_t rank, uint64_t key, float log_sum) {
  w.values[row * (w.best + 1) + rank] = tarn__key_value(key) - log_sum;
  w.ids[row * w.best + rank] = tarn__key_id(key);
}

// One block a row.
static __global__ void top_kernel(tarn__top_rows w) {
  TARN__SHARED(top_shared, s);
  const int64_t row = blockIdx.x;
  const row_keys key_at = {w.logits + row * w.ld};
  float log_sum = 0.0f;
  if (w.normalise) {
    const tarn__softmax all = tarn__softmax_of(key_at.logits, w.words, w.ld % 4 == 0, s->sums);
    log_sum = all.most + logf(all.sum);
  }
  uint64_t least = lower_bound(key_at, w, s);
  int found = tarn__key_collect(s->keys, KEYS, key_at, w.words, least, ~(uint64_t)0, &s->found);
  const int wanted = found < w.best ? found : (int)w.best;
  if (found > KEYS && wanted > 0) {
    least = tarn__key_threshold(key_at, w.words, wanted, ~(uint64_t)0, s->counts);
    found = wanted <= KEYS ? tarn__key_collect(s->keys, KEYS, key_at, w.words, least, ~(uint64_t)0, &s->found) : wanted;
  }
  if (found <= KEYS) {
    for (int i = threadIdx.x; i < found; i += blockDim.x) {
      const int rank = tarn__key_rank(s->keys, found, s->keys[i]);
      if (rank < w.best) put(w, row, rank, s->keys[i], log_sum);
    }
  } else {
    for (int64_t i = threadIdx.x; i < w.words; i += blockDim.x) {
      const uint64_t key = key_at(i);
      if (key < least || key == 0) continue;
      int64_t rank = 0;
      for (int64_t j = 0; j < w.words; j++) rank += key_at(j) > key;
      put(w, row, rank, key, log_sum);
    }
  }
  for (int64_t i = wanted + threadIdx.x; i < w.best; i += blockDim.x) {
    w.values[row * (w.best + 1) + i] = -INFINITY;
    w.ids[row * w.best + i] = -1;
  }
  if (threadIdx.x == 0) w.values[row * (w.best + 1) + w.best] = key_at.logits[w.always] - log_sum;
}

tarn_status tarn__cuda_top_rows(const tarn__top_rows *top, cudaStream_t stream) {
  const unsigned threads = top->words <= 512 ? 64 : top->words <= 4096 ? 256 : 1024;
  TARN__LAUNCH(top_kernel, (unsigned)top->rows, threads, sizeof(top_shared), stream, *top);
  return TARN_STATUS_OK;
}
