// Light and dynamic convolution: a block computes the kernels of its row and applies them to the rows around.
#include "device/cuda/mixing/columns.h"

extern "C" {
#include "ops/depthwise_conv.h"
}

// What all passes know: sizes, where rows are (sentences, or a list with the range of each row), and the logits, which
// are one row of a parameter or a row of T each.
template <typename T>
struct conv {
  int heads, width;
  int64_t before, cols;
  const int32_t *offset, *list, *range;
  int64_t sentences;
  const float *one;
  const T *each;
  tarn__mask mask;
};

// The rows [first, end) that the taps of a row may read, and the row that its tap 0 is. In a list, places in the list.
typedef struct taps {
  int64_t first, end, zero;
} taps;

template <typename T>
static __device__ __forceinline__ taps taps_of(const conv<T> &w, int64_t r) {
  if (w.list) return {w.range[2 * r], w.range[2 * r + 1], w.range[2 * r + 1] - w.width};
  const int64_t s = tarn__sentence_of(w.offset, w.sentences, r);
  return {w.offset[s], w.offset[s + 1], r - w.before};
}

template <typename T>
static __device__ __forceinline__ float logit_of(const conv<T> &w, int64_t r, int i) {
  return w.one ? w.one[i] : tarn__get(w.each[r * w.heads * w.width + i]);
}

// The kernels of row r: softmax in p, and with dropout in `masked`; both [heads * width], and may be one.
template <typename T>
static __device__ void kernels_of_row(float *p, float *masked, const conv<T> &w, int64_t r) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int warps = (int)blockDim.x / TARN__WARP_SIZE, size = w.heads * w.width;
  for (int h = warp; h < w.heads; h += warps) {
    float most = -INFINITY, sum = 0.0f;
    for (int k = lane; k < w.width; k += TARN__WARP_SIZE) most = fmaxf(most, logit_of(w, r, h * w.width + k));
    most = tarn__warp_max(most);
    for (int k = lane; k < w.width; k += TARN__WARP_SIZE) {
      const float e = expf(logit_of(w, r, h * w.width + k) - most);
      p[h * w.width + k] = e;
      sum += e;
    }
    sum = tarn__warp_sum(sum);
    for (int k = lane; k < w.width; k += TARN__WARP_SIZE) p[h * w.width + k] /= sum;
  }
  __syncthreads();
  if (p == masked) return;
  for (int b = (int)threadIdx.x; b * TARN__DROPOUT_BLOCK < size; b += (int)blockDim.x) {
    uint32_t words[4];
    tarn__mask_words(words, w.mask, (uint32_t)r, (uint32_t)b);
    for (int i = 0; i < TARN__DROPOUT_BLOCK; i++) {
      const int at = b * TARN__DROPOUT_BLOCK + i;
      const bool kept = (words[i / 2] >> (16 * (i % 2)) & 0xFFFFu) >= w.mask.threshold;
      if (at < size) masked[at] = kept ? w.mask.scale * p[at] : 0.0f;
    }
  }
  __syncthreads();
}

// Arrays of a block: p, and a second one where dropout makes the kernels differ from it.
template <typename T>
static size_t kernels_bytes(const conv<T> &w) {
  return (size_t)((w.mask.threshold ? 2 : 1) * w.heads * w.width) * sizeof(float);
}

template <typename T, int N>
static __global__ void depthwise_conv_kernel(T *y, const T *x, conv<T> w) {
  TARN__SHARED(float, p);
  float *kernels = w.mask.threshold ? p + w.heads * w.width : p;
  const int64_t r = blockIdx.x, channels = w.cols / w.heads;
  const taps at = taps_of(w, r);
  const int from = at.zero < at.first ? (int)(at.first - at.zero) : 0;
  const int to = at.zero + w.width > at.end ? (int)(at.end - at.zero) : w.width;
  kernels_of_row(p, kernels, w, r);
  for (int64_t c = (int64_t)threadIdx.x * N; c < w.cols; c += (int64_t)blockDim.x * N) {
    const float *own = kernels + c / channels * w.width;
    float sum[N] = {}, row[N];
    for (int k = from; k < to; k++) {
      tarn__load(row, x + (w.list ? w.list[at.zero + k] : at.zero + k) * w.cols + c);
      for (int i = 0; i < N; i++) sum[i] += own[k] * row[i];
    }
    tarn__store(y + r * w.cols + c, sum);
  }
}

// For the backward pass: the kernels of a row, in global memory. p NULL: only with dropout.
template <typename T>
static __global__ void conv_kernels_kernel(float *p, float *masked, conv<T> w) {
  TARN__SHARED(float, room);
  const int size = w.heads * w.width;
  float *kernels = w.mask.threshold ? room + size : room;
  const int64_t r = blockIdx.x;
  kernels_of_row(room, kernels, w, r);
  for (int i = (int)threadIdx.x; i < size; i += (int)blockDim.x) {
    if (p) p[r * size + i] = room[i];
    masked[r * size + i] = kernels[i];
  }
}

// dx of row j from the rows whose taps read it; `step` is the distance of their kernels, 0 if all have one.
template <typename T, int N>
static __global__ void conv_dx_kernel(T *dx, const T *dy, const float *kernels, int64_t step, conv<T> w, bool add) {
  const int64_t j = blockIdx.x, channels = w.cols / w.heads;
  const taps at = taps_of(w, j);
  for (int64_t c = (int64_t)threadIdx.x * N; c < w.cols; c += (int64_t)blockDim.x * N) {
    const float *own = kernels + c / channels * w.width;
    float sum[N] = {}, row[N];
    if (add) tarn__load(sum, dx + j * w.cols + c);
    for (int k = 0; k < w.width; k++) {
      const int64_t r = j - k + w.before;
      if (r < at.first || r >= at.end) continue;
      tarn__load(row, dy + r * w.cols + c);
      for (int i = 0; i < N; i++) sum[i] += own[r * step + k] * row[i];
    }
    tarn__store(dx + j * w.cols + c, sum);
  }
}

// The gradients of the logits of 16 rows and one head: lane k of a warp has tap k of two rows, 32 taps at a time. The
// channels of the rows and of those that their taps read pass through shared memory, 32 at a time.
static const int ROWS = 16, WARPS = 8, TAPS = 32, CHANNELS = 32, READ = ROWS + TAPS - 1, STRIDE = CHANNELS + 1;

typedef struct logits_gradient {
  const float *p, *kernels;
  int64_t step;  // between the kernels of two rows
  int64_t rows;
  float *gradient;  // [rows, heads * width]
} logits_gradient;

// The products of dy and the rows that 32 taps from `first_tap` on read, for two rows of this warp.
template <typename T>
static __device__ void tap_products(float product[2], float *shared, const T *x, const T *dy, const conv<T> &w,
                                    int64_t first_row, int first_tap, int h, int64_t rows) {
  float *read = shared, *own = shared + READ * STRIDE;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t channels = w.cols / w.heads, top = first_row - w.before + first_tap;
  product[0] = product[1] = 0.0f;
  for (int64_t c0 = 0; c0 < channels; c0 += CHANNELS) {
    const bool within = c0 + lane < channels;
    const int64_t column = h * channels + c0 + lane;
    __syncthreads();
    for (int i = warp; i < READ; i += WARPS) {
      const bool is = within && top + i >= 0 && top + i < rows;
      read[i * STRIDE + lane] = is ? tarn__get(x[(top + i) * w.cols + column]) : 0.0f;
    }
    for (int i = warp; i < ROWS; i += WARPS) {
      const bool is = within && first_row + i < rows;
      own[i * CHANNELS + lane] = is ? tarn__get(dy[(first_row + i) * w.cols + column]) : 0.0f;
    }
    __syncthreads();
    for (int i = 0; i < 2; i++) {
      const float *a = own + (warp + WARPS * i) * CHANNELS, *b = read + (warp + WARPS * i + lane) * STRIDE;
      for (int c = 0; c < CHANNELS; c++) product[i] += a[c] * b[c];
    }
  }
}

template <typename T>
static __global__ void __launch_bounds__(256)
    conv_dlogits_kernel(T *dlogits, const T *x, const T *dy, conv<T> w, logits_gradient g, bool add) {
  TARN__SHARED(float, shared);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE, h = (int)blockIdx.y;
  const int64_t first_row = (int64_t)blockIdx.x * ROWS, size = (int64_t)w.heads * w.width;
  float sum[2] = {}, product[2];
  for (int first_tap = 0; first_tap < w.width; first_tap += TAPS) {
    tap_products(product, shared, x, dy, w, first_row, first_tap, h, g.rows);
    for (int i = 0; i < 2; i++) {
      const int64_t r = first_row + warp + WARPS * i;
      const int k = first_tap + lane;
      if (r >= g.rows || k >= w.width) continue;
      const taps at = taps_of(w, r);
      const bool is = at.zero + k >= at.first && at.zero + k < at.end;
      const float weighted = is ? g.kernels[r * g.step + h * w.width + k] * product[i] : 0.0f;
      g.gradient[r * size + h * w.width + k] = weighted;
      sum[i] += weighted;
    }
  }
  for (int i = 0; i < 2; i++) {
    const int64_t r = first_row + warp + WARPS * i;
    const float total = tarn__warp_sum(sum[i]);
    for (int k = lane; k < w.width && r < g.rows; k += TARN__WARP_SIZE) {
      const int64_t at = r * size + h * w.width + k;
      const float d = g.gradient[at] - g.p[r * g.step + h * w.width + k] * total;
      if (dlogits)
        tarn__set(dlogits + at, add ? tarn__get(dlogits[at]) + d : d);
      else
        g.gradient[at] = d;
    }
  }
}

// One row of one direction; a tangent is NULL if zero.
template <typename T, int N>
static __global__ void conv_tangent_kernel(T *dy, const T *x, const T *dx, const T *dlogits, conv<T> w, int64_t rows) {
  TARN__SHARED(float, p);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int warps = (int)blockDim.x / TARN__WARP_SIZE, size = w.heads * w.width;
  float *kernels = w.mask.threshold ? p + size : p, *moved = p + 2 * size;
  const int64_t row = blockIdx.x, r = row % rows, block = row - r, channels = w.cols / w.heads;
  const taps at = taps_of(w, r);
  kernels_of_row(p, kernels, w, r);
  for (int h = warp; h < w.heads && dlogits; h += warps) {
    const int64_t first = row * size + h * w.width;
    float mean = 0.0f;
    for (int k = lane; k < w.width; k += TARN__WARP_SIZE) mean += p[h * w.width + k] * tarn__get(dlogits[first + k]);
    mean = tarn__warp_sum(mean);
    for (int k = lane; k < w.width; k += TARN__WARP_SIZE)
      moved[h * w.width + k] = kernels[h * w.width + k] * (tarn__get(dlogits[first + k]) - mean);
  }
  __syncthreads();
  for (int64_t c = (int64_t)threadIdx.x * N; c < w.cols; c += (int64_t)blockDim.x * N) {
    const int64_t own = c / channels * w.width;
    float sum[N] = {}, values[N];
    for (int k = 0; k < w.width; k++) {
      const int64_t from = at.zero + k;
      if (from < at.first || from >= at.end) continue;
      if (dx) tarn__load(values, dx + (block + from) * w.cols + c);
      for (int i = 0; i < N && dx; i++) sum[i] += kernels[own + k] * values[i];
      if (dlogits) tarn__load(values, x + from * w.cols + c);
      for (int i = 0; i < N && dlogits; i++) sum[i] += moved[own + k] * values[i];
    }
    tarn__store(dy + row * w.cols + c, sum);
  }
}

// --- the host's side

template <typename T>
static conv<T> conv_of(const tarn__exec *exec, const tarn__node *node, int64_t cols, bool single) {
  const tarn__conv_attr *attr = (const tarn__conv_attr *)node->attr;
  const tarn__tensor *logits = node->in[TARN__CONV_LOGITS];
  conv<T> w = {};
  w.heads = (int)attr->spec.heads;
  w.width = (int)attr->spec.width;
  w.before = attr->spec.before;
  w.cols = cols;
  if (single) {
    w.list = (const int32_t *)node->in[TARN__CONV_ROWS]->data;
    w.range = (const int32_t *)node->in[TARN__CONV_RANGES]->data;
  } else {
    w.offset = (const int32_t *)node->in[TARN__CONV_OFFSETS]->data;
    w.sentences = node->in[TARN__CONV_OFFSETS]->cols - 1;
  }
  if (logits->param)  // a row of a parameter is fp32 in any case
    w.one = (const float *)logits->data;
  else
    w.each = (const T *)logits->data;
  w.mask = tarn__mask_of(attr->dropout, exec);
  return w;
}

// Whether four columns at a time are of one head, and their rows aligned.
template <typename T>
static bool in_fours(const conv<T> &w, const tarn__tensor *a, const tarn__tensor *b, const tarn__tensor *c) {
  return w.cols / w.heads % 4 == 0 && tarn__fours(a) && tarn__fours(b) && tarn__fours(c);
}

template <typename T, int N>
static tarn_status forward(const tarn__exec *exec, const tarn__node *node, const conv<T> &w) {
  TARN__LAUNCH((depthwise_conv_kernel<T, N>), (unsigned)node->out[0]->rows, tarn__row_threads(w.cols / N),
               kernels_bytes(w), tarn__cuda_stream(exec->stream), (T *)node->out[0]->data,
               (const T *)node->in[TARN__CONV_X]->data, w);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status forward_of(const tarn__exec *exec, const tarn__node *node) {
  const bool single = !node->in[TARN__CONV_OFFSETS];
  const conv<T> w = conv_of<T>(exec, node, node->in[TARN__CONV_X]->cols, single);
  return in_fours(w, node->in[TARN__CONV_X], node->out[0], nullptr) ? forward<T, 4>(exec, node, w)
                                                                    : forward<T, 1>(exec, node, w);
}

// Memory of the backward pass: the kernels of all rows, or of one if all are the same; p if it differs and gradients of
// the logits are wanted; then those, and room for their sums over rows.
typedef struct room {
  int64_t kernels, p, gradient, sums;  // numbers of floats
} room;

static room room_of(const tarn__node *node) {
  const tarn__conv_attr *attr = (const tarn__conv_attr *)node->attr;
  const int64_t size = attr->spec.heads * attr->spec.width, rows = node->in[TARN__CONV_DY]->rows;
  const bool one = node->in[TARN__CONV_LOGITS]->param && attr->dropout.threshold == 0;
  const bool learns = node->dparam[0] || node->out[TARN__CONV_DLOGITS];
  const int64_t kernels = (one ? 1 : rows) * size;
  return {kernels, learns && attr->dropout.threshold ? kernels : 0, learns ? rows * size : 0,
          node->dparam[0] ? tarn__part_count(rows) * size : 0};
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const room r = room_of(node);
  return (size_t)(r.kernels + r.p + r.gradient + r.sums) * sizeof(float);
}

template <typename T, int N>
static tarn_status dx_of(const tarn__node *node, const conv<T> &w, const float *kernels, int64_t step,
                         cudaStream_t stream) {
  const tarn__tensor *dy = node->in[TARN__CONV_DY];
  TARN__LAUNCH((conv_dx_kernel<T, N>), (unsigned)dy->rows, tarn__row_threads(w.cols / N), 0, stream,
               (T *)node->out[TARN__CONV_DX]->data, (const T *)dy->data, kernels, step, w,
               node->in[TARN__CONV_PREVIOUS] != NULL);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__CONV_DY], *dx = node->out[TARN__CONV_DX];
  const tarn__tensor *dlogits = node->out[TARN__CONV_DLOGITS];
  const conv<T> w = conv_of<T>(exec, node, dy->cols, false);
  const room r = room_of(node);
  const int64_t size = (int64_t)w.heads * w.width, rows = dy->rows, step = r.kernels > size ? size : 0;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  float *kernels = (float *)node->scratch, *p = r.p ? kernels + r.kernels : (float *)nullptr;
  float *gradient = kernels + r.kernels + r.p;
  if (rows > 0)
    TARN__LAUNCH(conv_kernels_kernel<T>, (unsigned)(r.kernels / size), 128, kernels_bytes(w), stream, p, kernels, w);
  if (dx && in_fours(w, dx, dy, nullptr))
    TARN_TRY((dx_of<T, 4>(node, w, kernels, step, stream)));
  else if (dx)
    TARN_TRY((dx_of<T, 1>(node, w, kernels, step, stream)));
  if (!dlogits && !node->dparam[0]) return TARN_STATUS_OK;
  const logits_gradient g = {p ? p : kernels, kernels, step, rows, gradient};
  TARN__LAUNCH(conv_dlogits_kernel<T>, dim3(tarn__blocks(rows, ROWS), (unsigned)w.heads), 256,
               (READ * STRIDE + ROWS * CHANNELS) * sizeof(float), stream, dlogits ? (T *)dlogits->data : (T *)nullptr,
               (const T *)node->in[TARN__CONV_X]->data, (const T *)dy->data, w, g,
               node->in[TARN__CONV_PREVIOUS_LOGITS] != NULL);
  if (!node->dparam[0]) return TARN_STATUS_OK;
  const bool add = tarn__param_accumulate(node->dparam[0]) != 0;
  return tarn__cuda_sum_rows((float *)node->dparam[0]->training.grad, gradient, rows, size, add, gradient + r.gradient,
                             stream);
}

template <typename T, int N>
static tarn_status tangent(const tarn__exec *exec, const tarn__node *node, const conv<T> &w) {
  const tarn__tensor *x = node->in[TARN__CONV_X], *dx = node->in[TARN__CONV_TANGENT_X];
  const tarn__tensor *dlogits = node->in[TARN__CONV_TANGENT_LOGITS];
  TARN__LAUNCH((conv_tangent_kernel<T, N>), (unsigned)node->out[0]->rows, tarn__row_threads(w.cols / N),
               (size_t)(3 * w.heads * w.width) * sizeof(float), tarn__cuda_stream(exec->stream),
               (T *)node->out[0]->data, (const T *)x->data, dx ? (const T *)dx->data : (const T *)nullptr,
               dlogits ? (const T *)dlogits->data : (const T *)nullptr, w, x->rows);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status tangent_of(const tarn__exec *exec, const tarn__node *node) {
  const conv<T> w = conv_of<T>(exec, node, node->in[TARN__CONV_X]->cols, false);
  return in_fours(w, node->in[TARN__CONV_X], node->in[TARN__CONV_TANGENT_X], node->out[0])
             ? tangent<T, 4>(exec, node, w)
             : tangent<T, 1>(exec, node, w);
}

static tarn_status forward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(forward_of, node->out[0]->dtype, exec, node);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__CONV_DY]->dtype, exec, node);
}

static tarn_status tangent_node(const tarn__exec *exec, const tarn__node *node) {
  return tangent_of<float>(exec, node);  // graphs with tangents are fp32
}

// The kernels of a row, and before dropout, or their tangents.
const char *tarn__cuda_depthwise_conv_lacks(const tarn__node *node) {
  const int op = node->op->id;
  if (op != TARN__OP_DEPTHWISE_CONV && op != TARN__OP_DEPTHWISE_CONV_BACKWARD && op != TARN__OP_DEPTHWISE_CONV_ROWS &&
      op != TARN__OP_DEPTHWISE_CONV_TANGENT)
    return NULL;
  const tarn__conv_attr *attr = (const tarn__conv_attr *)node->attr;
  const int64_t times = op == TARN__OP_DEPTHWISE_CONV_TANGENT ? 3 : attr->dropout.threshold ? 2 : 1;
  return tarn__cuda_at_most("kernels", "taps of all heads", attr->spec.heads * attr->spec.width,
                            [&](int64_t count) { return (size_t)(times * count) * sizeof(float); });
}

void tarn__cuda_depthwise_conv_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_DEPTHWISE_CONV].run = forward_node;
  kernels[TARN__OP_DEPTHWISE_CONV_ROWS].run = forward_node;
  kernels[TARN__OP_DEPTHWISE_CONV_BACKWARD].run = backward_node;
  kernels[TARN__OP_DEPTHWISE_CONV_BACKWARD].scratch = backward_scratch;
  kernels[TARN__OP_DEPTHWISE_CONV_TANGENT].run = tangent_node;
}
