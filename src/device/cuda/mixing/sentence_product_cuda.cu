// Products within sentences: a tile of the result of a sentence and head per block.
#include "device/cuda/mixing/columns.h"
#include "device/cuda/mixing/tile_product.h"

extern "C" {
#include "ops/sentence_product.h"
}

// A matrix of one head of one sentence.
template <typename T>
struct matrix {
  T *data;
  int64_t step;  // elements from row to row
};

template <typename T>
struct task {
  matrix<T> a, x, z;
  int64_t h, d;  // rows of z, and columns of x, of a head
  const int32_t *offset;
  int64_t tiles;  // of the rows of a result, per sentence
  bool add;
};

template <typename T>
static __device__ __forceinline__ void put(const matrix<T> &c, float (&sums)[4][4], int64_t row, int64_t rows,
                                           int64_t column, int64_t columns, bool add) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      const int64_t r = row + tarn__tile_row(i), k = column + tarn__tile_column(j);
      if (r >= rows || k >= columns) continue;
      T *to = c.data + r * c.step + k;
      tarn__set(to, add ? tarn__get(*to) + sums[i][j] : sums[i][j]);
    }
}

template <typename T, int form>
static __global__ void __launch_bounds__(TARN__TILE_SIDE_THREADS) sentence_product_kernel(task<T> t) {
  TARN__SHARED(float, shared);
  const int64_t s = blockIdx.x / t.tiles, row = blockIdx.x % t.tiles * TARN__TILE_SIDE, g = blockIdx.z;
  const int64_t column = (int64_t)blockIdx.y * TARN__TILE_SIDE, first = t.offset[s], n = t.offset[s + 1] - first;
  const matrix<T> a = {t.a.data + first * t.a.step + g * t.h, t.a.step};
  const matrix<T> x = {t.x.data + first * t.x.step + g * t.d, t.x.step};
  const matrix<T> z = {t.z.data + s * t.h * t.z.step + g * t.d, t.z.step};
  float sums[4][4];
  if (form != TARN__SENTENCE_FORM_OUTER && row >= n) return;
  if (form == TARN__SENTENCE_FORM_OUTER) {  // z = a^T x
    tarn__tile_product<false, false>(
        sums, [&](int64_t i, int64_t r) { return tarn__get(a.data[r * a.step + i]); },
        [&](int64_t j, int64_t r) { return tarn__get(x.data[r * x.step + j]); }, row, t.h, column, t.d, n, shared);
    put(z, sums, row, t.h, column, t.d, t.add);
  } else if (form == TARN__SENTENCE_FORM_PRODUCT) {  // x = a z
    tarn__tile_product<true, false>(
        sums, [&](int64_t r, int64_t i) { return tarn__get(a.data[r * a.step + i]); },
        [&](int64_t j, int64_t i) { return tarn__get(z.data[i * z.step + j]); }, row, n, column, t.d, t.h, shared);
    put(x, sums, row, n, column, t.d, t.add);
  } else {  // a = x z^T
    tarn__tile_product<true, true>(
        sums, [&](int64_t r, int64_t j) { return tarn__get(x.data[r * x.step + j]); },
        [&](int64_t i, int64_t j) { return tarn__get(z.data[i * z.step + j]); }, row, n, column, t.h, t.d, shared);
    put(a, sums, row, n, column, t.h, t.add);
  }
}

template <typename T, int form>
static tarn_status run(const tarn__node *node, const tarn__sentence_task *of, cudaStream_t stream) {
  const tarn__sentence_spec *spec = (const tarn__sentence_spec *)node->attr;
  const tarn__tensor *offsets = node->in[TARN__SENTENCE_OFFSETS];
  const int64_t h = of->a->cols / spec->heads, d = spec->d / spec->heads;
  const int64_t rows = form == TARN__SENTENCE_FORM_OUTER ? h : tarn__longest_sentence(offsets);
  const int64_t columns = form == TARN__SENTENCE_FORM_WEIGHTS ? h : d;
  const task<T> t = {{(T *)of->a->data, of->a->cols},
                     {(T *)of->x->data + of->column, of->x->cols},
                     {(T *)of->z->data, of->z->cols},
                     h,
                     d,
                     (const int32_t *)offsets->data,
                     (rows + TARN__TILE_SIDE - 1) / TARN__TILE_SIDE,
                     of->add};
  // Columns of x that are not read have zero gradients.
  if (form == TARN__SENTENCE_FORM_PRODUCT && !of->add && of->x->cols != spec->d)
    TARN__CUDA(cudaMemsetAsync(of->x->data, 0, (size_t)(of->x->rows * of->x->cols) * sizeof(T), stream),
               "clearing a gradient");
  TARN__LAUNCH(
      (sentence_product_kernel<T, form>),
      dim3((unsigned)((offsets->cols - 1) * t.tiles), tarn__blocks(columns, TARN__TILE_SIDE), (unsigned)spec->heads),
      TARN__TILE_SIDE_THREADS, TARN__TILE_FLOATS * sizeof(float), stream, t);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status run_all(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  tarn__sentence_task tasks[2];
  const int count = tarn__sentence_tasks(tasks, node);
  for (int i = 0; i < count; i++) {
    if (tasks[i].form == TARN__SENTENCE_FORM_OUTER)
      TARN_TRY((run<T, TARN__SENTENCE_FORM_OUTER>(node, &tasks[i], stream)));
    else if (tasks[i].form == TARN__SENTENCE_FORM_PRODUCT)
      TARN_TRY((run<T, TARN__SENTENCE_FORM_PRODUCT>(node, &tasks[i], stream)));
    else
      TARN_TRY((run<T, TARN__SENTENCE_FORM_WEIGHTS>(node, &tasks[i], stream)));
  }
  return TARN_STATUS_OK;
}

static tarn_status sentence_product_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(run_all, node->in[TARN__SENTENCE_A]->dtype, exec, node);
}

void tarn__cuda_sentence_product_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_SENTENCE_OUTER].run = sentence_product_node;
  kernels[TARN__OP_SENTENCE_OUTER_BACKWARD].run = sentence_product_node;
  kernels[TARN__OP_SENTENCE_PRODUCT].run = sentence_product_node;
  kernels[TARN__OP_SENTENCE_PRODUCT_BACKWARD].run = sentence_product_node;
}
