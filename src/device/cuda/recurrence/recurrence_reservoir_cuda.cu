// Echo state networks whose reservoir is stored as its entries, for a few long series: one launch for all steps, a
// block a series, with its states in shared memory and the entries from L2. With more series, or entries than L2 gives
// a block in the time of two launches, steps are launched one by one.
#include "device/cuda/recurrence/recurrence_entries.h"
#include "device/cuda/recurrence/recurrence_units.h"

enum { THREADS = 1024, GROUPS = THREADS / TARN__SHARES, MOST_UNITS = 8 << 10, MOST_ENTRIES = 64 << 10 };

bool tarn__reservoir_fits(const tarn__loop *l) {
  bool fits = l->n <= MOST_UNITS && l->sequences * l->sides <= tarn__cuda_processors();
  for (int i = 0; i < l->sides; i++) {
    const int64_t entries = l->side[i].weight->param->entries;
    fits = fits && entries > 0 && entries <= MOST_ENTRIES;
  }
  return fits;
}

struct shared_states {
  const float *states;
  __device__ float operator()(int32_t j) const { return states[j]; }
};

// blockIdx.y: the side. Sixteen lanes have a unit, the first of which computes its step.
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    reservoir_kernel(tarn__loop l, tarn__sparse_rows first, tarn__sparse_rows second) {
  TARN__SHARED(float, state);  // [n], and twice [n] as the sums read it
  const tarn__side &d = l.side[blockIdx.y];
  const tarn__sparse_rows &m = blockIdx.y == 0 ? first : second;
  const int n = (int)l.n, lane = (int)threadIdx.x % TARN__SHARES, group = (int)threadIdx.x / TARN__SHARES;
  const int64_t number = l.order[blockIdx.x], length = tarn__length_of(l, number);
  const tarn__at begin = tarn__place_of(l, d, number, 0);
  for (int j = (int)threadIdx.x; j < n; j += (int)blockDim.x) {
    state[j] = l.begin.data ? l.begin.data[begin.begin * l.begin.ld + j] : 0.0f;
    state[n + j] = tarn__rounded<T>(state[j]);
  }
  __syncthreads();
  for (int64_t t = 0; t < length; t++) {
    const shared_states old = {state + (1 + t % 2) * n};
    float *now = state + (1 + (t + 1) % 2) * n;
    for (int from = 0; from < n; from += GROUPS) {
      const int j = from + group;
      float c = 0.0f, u = tarn__entries_sum<TARN__SHARES, 1>(m, j < n ? j : 0, lane, old);
      if (lane > 0 || j >= n) continue;
      state[j] = tarn__forward_unit<T, TARN__CELL_ECHO>(l, d, tarn__place_of(l, d, number, t), j, &u, state[j], &c);
      now[j] = tarn__rounded<T>(state[j]);
    }
    __syncthreads();
  }
  for (int j = (int)threadIdx.x; l.end.data && j < n; j += (int)blockDim.x)
    l.end.data[begin.end * l.end.ld + j] = state[j];
}

template <typename T>
static tarn_status run(const tarn__loop *l, const tarn__sparse_rows sparse[2], cudaStream_t stream) {
  TARN__LAUNCH(reservoir_kernel<T>, dim3((unsigned)l->sequences, (unsigned)l->sides), (unsigned)THREADS,
               (size_t)(3 * l->n) * sizeof(float), stream, *l, sparse[0], sparse[1]);
  return TARN_STATUS_OK;
}

tarn_status tarn__reservoir_run(const tarn__loop *l, tarn__dtype dtype, const tarn__sparse_rows sparse[2],
                                cudaStream_t stream) {
  return TARN__BY_DTYPE(run, dtype, l, sparse, stream);
}
