// Fast kernels. The rows are divided into one part per thread, regardless of sentences; a row is computed from the rows
// of its sentence alone, in the order of the taps. Channels are in registers, four at a time, while the taps are
// summed. In BF16 the rows that a kernel reaches are floats in a ring with as many rows as the kernel is wide, so that
// each is converted once; in F32 they are read in place. Kernels that are a function of the row use such a ring as
// well.
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"
#include "device/cpu/rows/tangent_kernels.h"
#include "graph/tangents.h"
#include "ops/depthwise_conv.h"
#include "ops/offsets.h"

enum { LANES = TARN__VEC_LANES };

// A tensor's rows as floats. Rows [next - width, next) of those requested are in the ring.
typedef struct window {
  const tarn__tensor *tensor;
  float *ring;  // BF16 only
  int64_t next;
} window;

typedef struct part {
  const tarn__exec *exec;
  const tarn__node *node;
  tarn__conv_spec spec;
  tarn__dropout dropout;
  float keep_scale;
  int64_t d, channels, kernels;  // channels of a head, size of a row's kernels
  size_t row_floats, kernel_floats;
  int64_t first, last;  // rows
  int64_t begin, end;   // the sentence of the current row
  float *shared;        // the softmax of logits common to all rows
  float *ring;          // [width][2 kernel_floats]: kernels with dropout, softmax
  int64_t next_kernel;  // like `next` of a window
  window x, dy;
  const float **rows, **weights;  // [width]: current taps; the weight of head h is weights[t][h * width]
  float *out, *previous;          // rows
  float *products, *sums;         // kernels: each weight times its gradient, per row and summed over rows
  uint16_t *numbers;              // for dropout
} part;

// Floats of the pieces of a part's scratch, in order.
enum { SHARED, RING, X_RING, DY_RING, POINTERS, OUT, PREVIOUS, PRODUCTS, SUMS, NUMBERS, PIECES };

static size_t pieces_of(size_t at[PIECES], const tarn__conv_spec *spec, int64_t d, tarn__dtype dtype) {
  const int64_t kernels = spec->heads * spec->width;
  const size_t row = tarn__row_floats(d), kernel = tarn__row_floats(kernels), width = (size_t)spec->width;
  const size_t window_floats = dtype == TARN__BF16 ? width * row : 0;
  const size_t size[PIECES] = {
      [SHARED] = kernel,
      [RING] = 2 * width * kernel,
      [X_RING] = window_floats,
      [DY_RING] = window_floats,
      [POINTERS] = tarn__row_floats((int64_t)(2 * width * sizeof(float *) / sizeof(float))),
      [OUT] = row,
      [PREVIOUS] = row,
      [PRODUCTS] = kernel,
      [SUMS] = kernel,
      [NUMBERS] = tarn__row_floats((int64_t)(tarn__dropout_room(kernels) * sizeof(uint16_t) / sizeof(float)))};
  size_t total = 0;
  for (int i = 0; i < PIECES; i++) {
    at[i] = total;
    total += size[i];
  }
  return total;
}

static size_t scratch(const tarn__conv_spec *spec, int64_t d, tarn__dtype dtype, int threads) {
  size_t at[PIECES];
  return pieces_of(at, spec, d, dtype) * sizeof(float) * (size_t)threads;
}

// Kernels before dropout: the softmax of row r of the logits.
static void softmax(float *p, const tarn__tensor *logits, int64_t r, const tarn__conv_spec *spec) {
  const int64_t kernels = spec->heads * spec->width;
  tarn__row_copy(p, logits->data, logits->dtype, r * kernels, kernels);
  for (int64_t h = 0; h < spec->heads; h++) {
    float *head = p + h * spec->width;
    float most = head[0];
    for (int64_t k = 1; k < spec->width; k++) most = head[k] > most ? head[k] : most;
    for (int64_t k = 0; k < spec->width; k++) head[k] -= most;
  }
  for (int64_t i = 0; i < kernels; i += LANES) {
    const tarn__vec x = tarn__vec_read_first(p, TARN__F32, i, kernels - i < LANES ? kernels - i : LANES);
    tarn__vec_store(p + i, tarn__vec_exp2(x * 1.44269504088896341f));
  }
  for (int64_t h = 0; h < spec->heads; h++) {
    float *head = p + h * spec->width;
    float sum = 0.0f;
    for (int64_t k = 0; k < spec->width; k++) sum += head[k];
    for (int64_t k = 0; k < spec->width; k++) head[k] /= sum;
  }
}

static part part_of(const tarn__exec *exec, const tarn__node *node, int which, int64_t rows, int64_t d,
                    tarn__dtype dtype) {
  const tarn__conv_attr *attr = node->attr;
  const tarn__tensor *logits = node->in[TARN__CONV_LOGITS];
  size_t at[PIECES];
  float *base = (float *)node->scratch + (size_t)which * pieces_of(at, &attr->spec, d, dtype);
  part p = {.exec = exec,
            .node = node,
            .spec = attr->spec,
            .dropout = attr->dropout,
            .keep_scale = (float)tarn__dropout_scale(attr->dropout),
            .d = d,
            .channels = d / attr->spec.heads,
            .kernels = attr->spec.heads * attr->spec.width,
            .row_floats = tarn__row_floats(d),
            .kernel_floats = tarn__row_floats(attr->spec.heads * attr->spec.width),
            .first = rows * which / exec->threads,
            .last = rows * (which + 1) / exec->threads,
            .ring = base + at[RING],
            .x = {node->in[TARN__CONV_X], base + at[X_RING], 0},
            .rows = (const float **)(void *)(base + at[POINTERS]),
            .out = base + at[OUT],
            .previous = base + at[PREVIOUS],
            .products = base + at[PRODUCTS],
            .sums = base + at[SUMS],
            .numbers = (uint16_t *)(void *)(base + at[NUMBERS])};
  p.weights = p.rows + p.spec.width;
  if (node->in[TARN__CONV_OFFSETS]) p.dy = (window){node->in[TARN__CONV_DY], base + at[DY_RING], 0};
  if (logits->param) {
    p.shared = base + at[SHARED];
    softmax(p.shared, logits, 0, &p.spec);
  }
  return p;
}

static const float *row_of(const part *p, const window *w, int64_t row) {
  if (w->tensor->dtype == TARN__F32) return (const float *)w->tensor->data + row * p->d;
  return w->ring + (size_t)(row % p->spec.width) * p->row_floats;
}

// Loads rows [first, last] of a tensor, at most `width` of them.
static void read_rows(const part *p, window *w, int64_t first, int64_t last) {
  if (w->tensor->dtype == TARN__F32) return;
  for (int64_t r = first > w->next ? first : w->next; r <= last; r++)
    tarn__row_from_bf16(w->ring + (size_t)(r % p->spec.width) * p->row_floats,
                        (const uint16_t *)w->tensor->data + r * p->d, p->d);
  w->next = last + 1;
}

// The kernels of a row, with dropout; and the softmax that they are computed from.
static const float *kernel_of(const part *p, int64_t row) {
  if (p->shared && p->dropout.threshold == 0) return p->shared;
  return p->ring + 2 * (size_t)(row % p->spec.width) * p->kernel_floats;
}

static const float *softmax_of(const part *p, int64_t row) {
  if (p->dropout.threshold == 0) return kernel_of(p, row);
  return p->shared ? p->shared : kernel_of(p, row) + p->kernel_floats;
}

// Computes the kernels of rows [first, last], at most `width` of them.
static void make_kernels(part *p, int64_t first, int64_t last) {
  const bool dropped = p->dropout.threshold != 0;
  if (p->shared && !dropped) return;
  for (int64_t r = first > p->next_kernel ? first : p->next_kernel; r <= last; r++) {
    float *kernel = p->ring + 2 * (size_t)(r % p->spec.width) * p->kernel_floats;
    float *probability = p->shared ? p->shared : kernel + (dropped ? p->kernel_floats : 0);
    if (!p->shared) softmax(probability, p->node->in[TARN__CONV_LOGITS], r, &p->spec);
    if (!dropped) continue;
    tarn__dropout_numbers(p->numbers, p->exec, p->dropout.site, r, 0, p->kernels);
    for (int64_t i = 0; i < p->kernels; i++)
      kernel[i] = p->numbers[i] >= p->dropout.threshold ? probability[i] * p->keep_scale : 0.0f;
  }
  p->next_kernel = last + 1;
}

// The first n lanes of `registers` registers of a row's sum over taps, from channel c of head h on.
TARN__VEC_INLINE void sum_taps(float *out, const part *p, int64_t taps, int64_t h, int64_t c, int registers,
                               int64_t n) {
  tarn__vec sum[4] = {{0}};
  for (int64_t t = 0; t < taps; t++) {
    const float weight = p->weights[t][h * p->spec.width];
    const float *row = p->rows[t] + c;
#pragma GCC unroll 4
    for (int v = 0; v < registers; v++)
      sum[v] = tarn__vec_axpy(weight, tarn__vec_read_first(row, TARN__F32, v * LANES, n), sum[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < registers; v++) tarn__vec_write_first(out, TARN__F32, c + v * LANES, sum[v], n);
}

static void sum_row(float *out, const part *p, int64_t taps) {
  for (int64_t h = 0; h < p->spec.heads; h++) {
    int64_t c = h * p->channels;
    const int64_t end = c + p->channels;
    for (; c + 4 * LANES <= end; c += 4 * LANES) sum_taps(out, p, taps, h, c, 4, LANES);
    for (; c + LANES <= end; c += LANES) sum_taps(out, p, taps, h, c, 1, LANES);
    if (c < end) sum_taps(out, p, taps, h, c, 1, end - c);
  }
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Finds the sentence of row r: that of the previous row, or the next one that has rows.
static void find_sentence(part *p, int64_t r) {
  if (r < p->end && r > p->first) return;
  const tarn__tensor *offsets = p->node->in[TARN__CONV_OFFSETS];
  const int64_t s = tarn__offsets_find(offsets, r);
  p->begin = ((const int32_t *)offsets->data)[s];
  p->end = ((const int32_t *)offsets->data)[s + 1];
}

// Lists the rows that row r sees; returns their number.
static int64_t taps_of_row(part *p, int64_t r) {
  find_sentence(p, r);
  const int64_t zero = r - p->spec.before;  // the row of tap 0
  const int64_t first = larger(p->begin, zero), last = smaller(p->end - 1, zero + p->spec.width - 1);
  read_rows(p, &p->x, first, last);
  make_kernels(p, r, r);
  for (int64_t j = first; j <= last; j++) {
    p->rows[j - first] = row_of(p, &p->x, j);
    p->weights[j - first] = kernel_of(p, r) + (j - zero);
  }
  return last - first + 1;
}

// The same for a row with an explicit list of rows.
static int64_t taps_of_list(part *p, int64_t r) {
  const tarn__tensor *x = p->x.tensor;
  const int32_t *list = p->node->in[TARN__CONV_ROWS]->data;
  const int32_t *range = (const int32_t *)p->node->in[TARN__CONV_RANGES]->data + 2 * r;
  const int64_t count = smaller(p->spec.width, range[1] - range[0]);
  make_kernels(p, r, r);
  for (int64_t t = 0; t < count; t++) {
    float *copy = p->x.ring + (size_t)t * p->row_floats;
    p->rows[t] = tarn__row_read(x->data, x->dtype, list[range[1] - count + t] * p->d, p->d, copy);
    p->weights[t] = kernel_of(p, r) + (p->spec.width - count + t);
  }
  return count;
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    part p = part_of(exec, node, which, y->rows, y->cols, y->dtype);
    for (int64_t r = p.first; r < p.last; r++) {
      const int64_t taps = node->in[TARN__CONV_OFFSETS] ? taps_of_row(&p, r) : taps_of_list(&p, r);
      float *out = tarn__row_target(y->data, y->dtype, r * p.d, p.out);
      sum_row(out, &p, taps);
      tarn__row_write(y->data, y->dtype, r * p.d, p.d, out);
    }
  }
  return TARN_STATUS_OK;
}

// The gradient of row r of x: contributions of all rows that see it.
static void backward_row(part *p, int64_t r) {
  const tarn__tensor *dx = p->node->out[TARN__CONV_DX];
  const int64_t most = r + p->spec.before;  // the row whose tap 0 it is
  const int64_t first = larger(p->begin, most - p->spec.width + 1), last = smaller(p->end - 1, most);
  read_rows(p, &p->dy, first, last);
  make_kernels(p, first, last);
  if (!dx) return;
  for (int64_t j = first; j <= last; j++) {
    p->rows[j - first] = row_of(p, &p->dy, j);
    p->weights[j - first] = kernel_of(p, j) + (most - j);
  }
  const bool add = p->node->in[TARN__CONV_PREVIOUS] != NULL;
  float *out = add ? p->out : tarn__row_target(dx->data, dx->dtype, r * p->d, p->out);
  sum_row(out, p, last - first + 1);
  if (add) tarn__row_add(out, tarn__row_read(dx->data, dx->dtype, r * p->d, p->d, p->previous), p->d);
  tarn__row_write(dx->data, dx->dtype, r * p->d, p->d, out);
}

static float dot(const float *a, const float *b, int64_t n) {
  tarn__vec sum = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) sum = tarn__vec_fma(tarn__vec_load(a + i), tarn__vec_load(b + i), sum);
  if (i < n)
    sum =
        tarn__vec_fma(tarn__vec_read_first(a, TARN__F32, i, n - i), tarn__vec_read_first(b, TARN__F32, i, n - i), sum);
  return tarn__vec_sum_lanes(sum)[0];
}

// products = weight times its gradient, for the kernels of row r.
static void weigh_gradient(part *p, int64_t r) {
  const int64_t zero = r - p->spec.before, width = p->spec.width;
  const int64_t first = larger(p->begin, zero), last = smaller(p->end - 1, zero + width - 1);
  const float *dy = row_of(p, &p->dy, r), *kernel = kernel_of(p, r);
  read_rows(p, &p->x, first, last);
  memset(p->products, 0, (size_t)p->kernels * sizeof *p->products);
  for (int64_t j = first; j <= last; j++) {
    const float *x = row_of(p, &p->x, j);
    for (int64_t h = 0; h < p->spec.heads; h++) {
      const int64_t at = h * width + (j - zero);
      p->products[at] = kernel[at] * dot(dy + h * p->channels, x + h * p->channels, p->channels);
    }
  }
}

// The gradient of logits x with p = softmax(x) is p dp - p sum(p dp); `products` is p dp and becomes it.
static void through_softmax(float *products, const float *probability, const tarn__conv_spec *spec) {
  for (int64_t h = 0; h < spec->heads; h++) {
    float *head = products + h * spec->width;
    float sum = 0.0f;
    for (int64_t k = 0; k < spec->width; k++) sum += head[k];
    for (int64_t k = 0; k < spec->width; k++) head[k] = tarn__fma(-probability[h * spec->width + k], sum, head[k]);
  }
}

// The gradient of row r of logits that are a tensor.
static void logits_row(part *p, int64_t r) {
  const tarn__tensor *dlogits = p->node->out[TARN__CONV_DLOGITS];
  through_softmax(p->products, softmax_of(p, r), &p->spec);
  if (p->node->in[TARN__CONV_PREVIOUS_LOGITS]) {
    tarn__row_copy(p->sums, dlogits->data, dlogits->dtype, r * p->kernels, p->kernels);
    tarn__row_add(p->products, p->sums, p->kernels);
  }
  tarn__row_write(dlogits->data, dlogits->dtype, r * p->kernels, p->kernels, p->products);
}

// The gradient of logits that are a parameter, from the sums of all parts.
static void add_to_parameter(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__CONV_DY];
  tarn__param *param = node->dparam[0];
  part all = part_of(exec, node, 0, dy->rows, dy->cols, dy->dtype);
  for (int which = 1; which < exec->threads; which++)
    tarn__row_add(all.sums, part_of(exec, node, which, dy->rows, dy->cols, dy->dtype).sums, all.kernels);
  through_softmax(all.sums, all.shared, &all.spec);
  if (tarn__param_accumulate(param))
    tarn__row_add(param->training.grad, all.sums, all.kernels);
  else
    memcpy(param->training.grad, all.sums, (size_t)all.kernels * sizeof *all.sums);
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__CONV_DY];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    part p = part_of(exec, node, which, dy->rows, dy->cols, dy->dtype);
    memset(p.sums, 0, p.kernel_floats * sizeof *p.sums);
    for (int64_t r = p.first; r < p.last; r++) {
      find_sentence(&p, r);
      backward_row(&p, r);
      if (!p.x.tensor) continue;
      weigh_gradient(&p, r);
      if (node->dparam[0])
        tarn__row_add(p.sums, p.products, p.kernels);
      else
        logits_row(&p, r);
    }
  }
  if (node->dparam[0]) add_to_parameter(exec, node);
  return TARN_STATUS_OK;
}

// Makes row `first` of an F32 tensor the first of the `taps` rows that row r sees.
static void point_at(part *p, const tarn__tensor *tensor, int64_t first, int64_t taps) {
  for (int64_t t = 0; t < taps; t++) p->rows[t] = (const float *)tensor->data + (first + t) * p->d;
}

// The tangents of row r's kernels: each weight times its logit's tangent minus the mean of these.
static void move_kernels(part *p, const float *dlogits, int64_t r) {
  const float *kernel = kernel_of(p, r), *probability = softmax_of(p, r);
  for (int64_t h = 0; h < p->spec.heads; h++) {
    const int64_t first = h * p->spec.width, last = first + p->spec.width;
    float mean = 0.0f;
    for (int64_t k = first; k < last; k++) mean = tarn__fma(probability[k], dlogits[k], mean);
    for (int64_t k = first; k < last; k++) p->products[k] = kernel[k] * (dlogits[k] - mean);
  }
}

// Row r in direction `direction`, with its kernels computed.
static void tangent_row(part *p, int64_t r, int64_t direction) {
  const tarn__tensor *dx = p->node->in[TARN__CONV_TANGENT_X], *dlogits = p->node->in[TARN__CONV_TANGENT_LOGITS];
  const int64_t rows = p->x.tensor->rows, zero = r - p->spec.before, first = larger(p->begin, zero);
  const int64_t taps = smaller(p->end - 1, zero + p->spec.width - 1) - first + 1;
  float *out = (float *)p->node->out[0]->data + (direction * rows + r) * p->d;
  if (dx) {
    point_at(p, dx, direction * rows + first, taps);
    for (int64_t t = 0; t < taps; t++) p->weights[t] = kernel_of(p, r) + (first - zero + t);
    sum_row(out, p, taps);
  }
  if (!dlogits) return;
  move_kernels(p, (const float *)dlogits->data + (direction * rows + r) * p->kernels, r);
  point_at(p, p->x.tensor, first, taps);
  for (int64_t t = 0; t < taps; t++) p->weights[t] = p->products + (first - zero + t);
  sum_row(dx ? p->previous : out, p, taps);
  if (dx) tarn__row_add(out, p->previous, p->d);
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__CONV_X];
  const int64_t directions = tarn__tangent_directions(node->out[0], x->rows);
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    part p = part_of(exec, node, which, x->rows, x->cols, x->dtype);
    for (int64_t r = p.first; r < p.last; r++) {
      find_sentence(&p, r);
      make_kernels(&p, r, r);
      for (int64_t k = 0; k < directions; k++) tangent_row(&p, r, k);
    }
  }
  return TARN_STATUS_OK;
}

const tarn__conv_kernels TARN__FAST(tarn__conv_kernels) = {forward, backward, scratch};
const tarn__conv_tangent_kernels TARN__FAST(tarn__conv_tangent_kernels) = {tangent};
