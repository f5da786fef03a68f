// Fast kernels of routing. Bound by the dot products of rows with the router, whose matrix stays in the L1 cache.
#include <string.h>

#include "device/cpu/experts/experts_kernels.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "ops/route.h"

enum {
  LANES = TARN__VEC_LANES,
  BLOCK = 8,  // experts whose sums are in registers together, and registers of a row of dx
  ROWS = 4    // whose gradients of the router are added together
};

// The scratch of a thread, in floats: rows of x times their noise, the random numbers of the noise, numbers of experts,
// and sums of the router's gradient. For noisy gating, whose second matrix counts as
// additional experts: the quantities of a row, if they are not stored elsewhere, and its h; derivatives of its losses.
typedef struct room {
  float *x, *numbers, *logits, *dweight, *row, *h;
  double *importance, *load;
  int64_t stride;  // of rows of x
} room;

// Rows of both matrices.
static int64_t products_of(const tarn__node *node) {
  return node->in[TARN__ROUTE_WEIGHT]->rows * (node->in[TARN__ROUTE_NOISE] ? 2 : 1);
}

static int64_t numbers_of(const tarn__node *node) {
  const int64_t d = node->in[TARN__ROUTE_X]->cols, products = products_of(node);
  return (int64_t)tarn__dropout_room(d > products ? d : products);
}

static size_t noisy_floats(const tarn__node *node) {
  const int64_t experts = node->in[TARN__ROUTE_WEIGHT]->rows;
  return node->in[TARN__ROUTE_NOISE] ? tarn__row_floats(3 * experts) + 5 * tarn__row_floats(experts) : 0;
}

static size_t part_floats(const tarn__node *node) {
  const int64_t d = node->in[TARN__ROUTE_X]->cols, products = products_of(node);
  return ROWS * tarn__row_floats(d) + tarn__row_floats(numbers_of(node)) + (ROWS + 1) * tarn__row_floats(products) +
         tarn__row_floats(products * d) + noisy_floats(node);
}

static size_t scratch(const tarn__node *node, int threads) {
  return part_floats(node) * sizeof(float) * (size_t)threads;
}

static room room_of(const tarn__node *node, int part) {
  const int64_t d = node->in[TARN__ROUTE_X]->cols, products = products_of(node);
  const size_t experts = tarn__row_floats(node->in[TARN__ROUTE_WEIGHT]->rows);
  room own = {.x = (float *)node->scratch + part_floats(node) * (size_t)part, .stride = (int64_t)tarn__row_floats(d)};
  own.numbers = own.x + ROWS * tarn__row_floats(d);
  own.logits = own.numbers + tarn__row_floats(numbers_of(node));
  own.dweight = own.logits + (ROWS + 1) * tarn__row_floats(products);
  if (!node->in[TARN__ROUTE_NOISE]) return own;
  own.h = own.dweight + tarn__row_floats(products * d);
  own.importance = (double *)(void *)(own.h + experts);
  own.load = (double *)(void *)(own.h + 3 * experts);
  own.row = own.h + 5 * experts;
  return own;
}

// The noise factors of a row's elements: numbers drawn for them times `step`, plus `least`. drawn NULL: none.
typedef struct jitter {
  const uint16_t *drawn;
  float step, least;
} jitter;

static jitter draw_jitter(const room *own, const tarn__exec *exec, const tarn__node *node, int64_t r) {
  const tarn__route_attr *attr = node->attr;
  if (!attr->noisy) return (jitter){0};
  const float noise = (float)attr->spec.noise, step = noise / 32768.0f;
  uint16_t *drawn = (uint16_t *)(void *)own->numbers;
  tarn__dropout_numbers(drawn, exec, attr->site, r, 0, node->in[TARN__ROUTE_X]->cols);
  return (jitter){drawn, step, 1.0f - noise + 0.5f * step};
}

// Those of the elements from c on. What is drawn is followed by room for a register.
TARN__VEC_INLINE tarn__vec factors_at(const jitter *j, int64_t c) {
  const tarn__vec drawn = __builtin_convertvector(tarn__vec_load_u16(j->drawn + c), tarn__vec);
  return tarn__vec_fma(drawn, tarn__vec_all(j->step), tarn__vec_all(j->least));
}

// Row r of an array, times its noise factors if it has any.
TARN__VEC_INLINE void read_typed(float *row, const jitter *j, const void *x, tarn__dtype dtype, int64_t d, int64_t r) {
#define STEP(c, n)                                                \
  {                                                               \
    tarn__vec v = tarn__vec_read_first(x, dtype, r * d + (c), n); \
    if (j->drawn) v *= factors_at(j, c);                          \
    tarn__vec_write_first(row, TARN__F32, c, v, n);               \
  }
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

static void read_row(float *row, const jitter *j, const tarn__tensor *x, int64_t r) {
  x->dtype == TARN__BF16 ? read_typed(row, j, x->data, TARN__BF16, x->cols, r)
                         : read_typed(row, j, x->data, TARN__F32, x->cols, r);
}

// The dot products of a row with `n` rows of a matrix.
TARN__VEC_INLINE void dots(float *out, const float *x, const void *matrix, tarn__dtype dtype, int64_t d, int64_t first,
                           int64_t n) {
  tarn__vec sums[BLOCK] = {{0}};
#define STEP(c, count)                                                                                        \
  {                                                                                                           \
    const tarn__vec v = tarn__vec_read_first(x, TARN__F32, c, count);                                         \
    for (int64_t i = 0; i < n; i++)                                                                           \
      sums[i] = tarn__vec_fma(v, tarn__vec_read_first(matrix, dtype, (first + i) * d + (c), count), sums[i]); \
  }
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
  for (int64_t i = 0; i < n; i++) out[i] = tarn__vec_sum_lanes(sums[i])[0];
}

TARN__VEC_INLINE void all_dots(float *out, const float *x, const void *matrix, tarn__dtype dtype, int64_t d,
                               int64_t rows) {
  int64_t e = 0;
  for (; e + BLOCK <= rows; e += BLOCK) dots(out + e, x, matrix, dtype, d, e, BLOCK);
  for (; e < rows; e++) dots(out + e, x, matrix, dtype, d, e, 1);
}

static void softmax(float *p, int64_t n) {
  const float most = tarn__row_max(p, n);
  float sum = 0.0f;
#pragma omp simd
  for (int64_t e = 0; e < n; e++) p[e] = tarn__row_exp(p[e] - most);
  for (int64_t e = 0; e < n; e++) sum += p[e];
  for (int64_t e = 0; e < n; e++) p[e] /= sum;
}

// The most probable experts, by decreasing probability, ties by index.
static void choose(int32_t *chosen, const float *p, int64_t experts, int64_t choices) {
  int64_t count = 0;
  for (int32_t e = 0; e < experts; e++) {
    int64_t at = count;
    while (at > 0 && p[e] > p[chosen[at - 1]]) at--;
    if (at >= choices) continue;
    const int64_t last = count < choices ? count++ : choices - 1;
    for (int64_t j = last; j > at; j--) chosen[j] = chosen[j - 1];
    chosen[at] = e;
  }
}

// x times a matrix of experts.
static void logits_of(float *out, const float *x, const tarn__tensor *weight) {
  if (weight->dtype == TARN__BF16)
    all_dots(out, x, weight->data, TARN__BF16, weight->cols, weight->rows);
  else
    all_dots(out, x, weight->data, TARN__F32, weight->cols, weight->rows);
}

// --- noisy gating

// The quantities of a row: c, a = x noise^T, n, and h = c + n s.
typedef struct noisy {
  const float *c, *a, *n;
  float *h;
} noisy;

static float noise_of(float a) { return (float)tarn__route_softplus((double)a); }

static noisy read_noisy(const float *kept, const room *own, int64_t experts) {
  const noisy row = {kept, kept + experts, kept + 2 * experts, own->h};
  for (int64_t e = 0; e < experts; e++) row.h[e] = tarn__fma(row.n[e], noise_of(row.a[e]), row.c[e]);
  return row;
}

static noisy row_of(const tarn__node *node, const room *own, int64_t r) {
  const int64_t experts = node->in[TARN__ROUTE_WEIGHT]->rows;
  return read_noisy((const float *)node->in[TARN__ROUTE_P]->data + r * 3 * experts, own, experts);
}

// The softmax of the chosen h.
static void noisy_gates(float *gates, const float *h, const int32_t *chosen, int64_t choices) {
  float sum = 0.0f;
  for (int64_t j = 0; j < choices; j++) sum += gates[j] = tarn__row_exp(h[chosen[j]] - h[chosen[0]]);
  for (int64_t j = 0; j < choices; j++) gates[j] /= sum;
}

// The choices and gates of row r, which is in own->x.
static void forward_noisy(float *gates, int32_t *chosen, const tarn__exec *exec, const tarn__node *node,
                          const room *own, int64_t r) {
  const tarn__tensor *weight = node->in[TARN__ROUTE_WEIGHT], *kept = node->out[TARN__ROUTE_PROBABILITIES];
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = weight->rows;
  float *row = kept ? (float *)kept->data + r * 3 * experts : own->row;
  uint16_t *drawn = (uint16_t *)(void *)own->numbers;
  logits_of(row, own->x, weight);
  logits_of(row + experts, own->x, node->in[TARN__ROUTE_NOISE]);
  tarn__dropout_numbers(drawn, exec, attr->site, r, 0, 2 * experts);
  for (int64_t e = 0; e < experts; e++)
    row[2 * experts + e] = (float)tarn__route_normal(drawn[2 * e], drawn[2 * e + 1]);
  const noisy made = read_noisy(row, own, experts);
  choose(chosen, made.h, experts, attr->spec.choices);
  noisy_gates(gates, made.h, chosen, attr->spec.choices);
}

// The rival of expert e among the k + 1 largest h (`chosen`): the k-th largest of the others.
static int32_t rival_of(const int32_t *chosen, int64_t choices, int32_t e) {
  for (int64_t j = 0; j < choices; j++)
    if (chosen[j] == e) return chosen[choices];
  return chosen[choices - 1];
}

// Derivatives of both losses with respect to the importance and the load of each expert.
static void loss_derivatives(const tarn__node *node, const room *own) {
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = node->in[TARN__ROUTE_WEIGHT]->rows, choices = attr->spec.choices;
  int32_t chosen[TARN__ROUTE_MOST_CHOICES + 1];
  float gates[TARN__ROUTE_MOST_CHOICES];
  for (int64_t e = 0; e < experts; e++) own->importance[e] = own->load[e] = 0.0;
  for (int64_t r = 0; r < node->in[TARN__ROUTE_X]->rows; r++) {
    const noisy row = row_of(node, own, r);
    choose(chosen, row.h, experts, choices + 1);
    noisy_gates(gates, row.h, chosen, choices);
    for (int64_t j = 0; j < choices; j++) own->importance[chosen[j]] += (double)gates[j];
    for (int32_t e = 0; attr->spec.load > 0.0 && e < experts; e++)
      own->load[e] +=
          tarn__route_below((double)((row.c[e] - row.h[rival_of(chosen, choices, e)]) / noise_of(row.a[e])));
  }
  tarn__route_variation(own->importance, experts, attr->spec.importance * attr->spec.share);
  tarn__route_variation(own->load, experts, attr->spec.load * attr->spec.share);
}

// The gradients of row r with respect to c, followed by those to a. `losses`: the room that holds the derivatives.
static void noisy_gradient(float *dc, const tarn__node *node, const room *own, const room *losses, int64_t r) {
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = node->in[TARN__ROUTE_WEIGHT]->rows, choices = attr->spec.choices;
  const noisy row = row_of(node, own, r);
  const float *dgates = (const float *)node->in[TARN__ROUTE_DGATES]->data + r * choices;
  float *da = dc + experts, gates[TARN__ROUTE_MOST_CHOICES], wanted[TARN__ROUTE_MOST_CHOICES], mean = 0.0f;
  int32_t chosen[TARN__ROUTE_MOST_CHOICES + 1];
  choose(chosen, row.h, experts, choices + 1);
  noisy_gates(gates, row.h, chosen, choices);
  for (int64_t j = 0; j < choices; j++) {
    wanted[j] = dgates[j] + (float)losses->importance[chosen[j]];
    mean = tarn__fma(gates[j], wanted[j], mean);
  }
  // First dc is the gradient of h, and da that of P with respect to c; then the separate gradient of c is added.
  memset(dc, 0, 2 * (size_t)experts * sizeof *dc);
  for (int64_t j = 0; j < choices; j++) dc[chosen[j]] = gates[j] * (wanted[j] - mean);
  for (int32_t e = 0; attr->spec.load > 0.0 && e < experts; e++) {
    const int32_t rival = rival_of(chosen, choices, e);
    const float s = noise_of(row.a[e]), z = (row.c[e] - row.h[rival]) / s;
    da[e] = (float)(losses->load[e] * tarn__route_density((double)z)) / s;
    dc[rival] -= da[e];
  }
  for (int32_t e = 0; e < experts; e++) {
    const float own_share = da[e], z = (row.c[e] - row.h[rival_of(chosen, choices, e)]) / noise_of(row.a[e]);
    da[e] = (dc[e] * row.n[e] - own_share * z) * (float)tarn__route_sigmoid((double)row.a[e]);
    dc[e] += own_share;
  }
}

// --- forward

static void forward_row(const tarn__exec *exec, const tarn__node *node, const room *own, int64_t r) {
  const tarn__tensor *weight = node->in[TARN__ROUTE_WEIGHT], *kept = node->out[TARN__ROUTE_PROBABILITIES];
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = weight->rows, choices = attr->spec.choices;
  float *p = kept ? (float *)kept->data + r * experts : own->logits;
  float *gates = (float *)node->out[TARN__ROUTE_GATES]->data + r * choices, sum = 0.0f;
  int32_t *chosen = (int32_t *)node->out[TARN__ROUTE_PLACES]->data + r * choices;
  const jitter noise = draw_jitter(own, exec, node, r);
  read_row(own->x, &noise, node->in[TARN__ROUTE_X], r);
  if (node->in[TARN__ROUTE_NOISE]) {
    forward_noisy(gates, chosen, exec, node, own, r);
    return;
  }
  logits_of(p, own->x, weight);
  softmax(p, experts);
  choose(chosen, p, experts, choices);
  for (int64_t j = 0; j < choices; j++) sum += gates[j] = p[chosen[j]];
  for (int64_t j = 0; attr->spec.normalise && j < choices; j++) gates[j] /= sum;
}

// Sorts rows by expert from the choices, which are in `places`. `next` has room for one number per expert.
static void give_places(int32_t *places, int32_t *offsets, int32_t *next, int64_t rows, int64_t choices,
                        int64_t experts, int64_t most) {
  memset(next, 0, (size_t)experts * sizeof *next);
  for (int64_t i = 0; i < rows * choices; i++) next[places[i]]++;
  offsets[0] = 0;
  for (int64_t e = 0; e < experts; e++) {
    offsets[e + 1] = offsets[e] + (int32_t)(next[e] < most ? next[e] : most);
    next[e] = offsets[e];
  }
  for (int64_t j = 0; j < choices; j++)
    for (int64_t i = j; i < rows * choices; i += choices) {
      const int32_t e = places[i];
      places[i] = next[e] < offsets[e + 1] ? next[e]++ : -1;
    }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->in[TARN__ROUTE_X]->rows;
  const tarn__route_attr *attr = node->attr;
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int part = 0; part < exec->threads; part++) {
    const room own = room_of(node, part);
    const int64_t last = rows * (part + 1) / exec->threads;
    for (int64_t r = rows * part / exec->threads; r < last; r++) forward_row(exec, node, &own, r);
  }
  give_places(node->out[TARN__ROUTE_PLACES]->data, node->out[TARN__ROUTE_OFFSETS]->data,
              (int32_t *)(void *)room_of(node, 0).logits, rows, attr->spec.choices, node->in[TARN__ROUTE_WEIGHT]->rows,
              attr->room);
  return TARN_STATUS_OK;
}

// The number of rows that have each expert as their first choice, as floats.
static void count_first(float *first, const tarn__node *node) {
  const int64_t rows = node->in[TARN__ROUTE_X]->rows, experts = node->in[TARN__ROUTE_WEIGHT]->rows;
  for (int64_t e = 0; e < experts; e++) first[e] = 0.0f;
  for (int64_t r = 0; r < rows; r++) {
    int32_t best = 0;
    choose(&best, (const float *)node->in[TARN__ROUTE_P]->data + r * experts, experts, 1);
    first[best] += 1.0f;
  }
}

// The gradient of row r with respect to its logits.
static void row_gradient(float *dlogits, const tarn__node *node, const float *first, int64_t r) {
  const tarn__route_attr *attr = node->attr;
  const int64_t rows = node->in[TARN__ROUTE_X]->rows, experts = node->in[TARN__ROUTE_WEIGHT]->rows;
  const int64_t choices = attr->spec.choices;
  const float *p = (const float *)node->in[TARN__ROUTE_P]->data + r * experts;
  const float *dgates = (const float *)node->in[TARN__ROUTE_DGATES]->data + r * choices;
  const float balance =
      (float)(attr->spec.balance * attr->spec.share * (double)experts / ((double)rows * (double)rows));
  int32_t chosen[TARN__ROUTE_MOST_CHOICES];
  choose(chosen, p, experts, choices);
  float sum = 0.0f, mean = 0.0f, dot = 0.0f;
  for (int64_t j = 0; j < choices; j++) sum += p[chosen[j]];
  for (int64_t j = 0; j < choices; j++) mean += dgates[j] * p[chosen[j]] / sum;
  for (int64_t e = 0; e < experts; e++) dlogits[e] = balance * first[e];
  for (int64_t j = 0; j < choices; j++)
    dlogits[chosen[j]] += attr->spec.normalise ? (dgates[j] - mean) / sum : dgates[j];
  for (int64_t e = 0; e < experts; e++) dot = tarn__fma(p[e], dlogits[e], dot);
  for (int64_t e = 0; e < experts; e++) dlogits[e] = p[e] * (dlogits[e] - dot);
}

// sums += columns [c, c + n) of the rows of a matrix, times the gradients of their logits, in `count` registers; n is
// LANES, except for a single register at the end of a row.
TARN__VEC_INLINE void add_experts(tarn__vec *sums, const float *dlogits, const tarn__tensor *matrix, tarn__dtype dtype,
                                  int64_t c, int64_t n, int64_t count) {
  for (int64_t e = 0; e < matrix->rows; e++)
    for (int64_t i = 0; i < count; i++)
      sums[i] = tarn__vec_axpy(dlogits[e],
                               tarn__vec_read_first(matrix->data, dtype, e * matrix->cols + c + i * LANES, n), sums[i]);
}

// dx of row r from the gradient of its logits.
TARN__VEC_INLINE void dx_row(const tarn__node *node, const float *dlogits, const jitter *j, tarn__dtype dtype,
                             tarn__dtype weight_dtype, int64_t r) {
  const tarn__tensor *weight = node->in[TARN__ROUTE_WEIGHT], *noise = node->in[TARN__ROUTE_NOISE], *dx = node->out[0];
  const int64_t d = weight->cols;
#define STEP(c, n, count)                                                                          \
  {                                                                                                \
    tarn__vec sums[BLOCK] = {{0}};                                                                 \
    add_experts(sums, dlogits, weight, weight_dtype, c, n, count);                                 \
    if (noise) add_experts(sums, dlogits + weight->rows, noise, weight_dtype, c, n, count);        \
    for (int64_t i = 0; i < (count); i++) {                                                        \
      const int64_t at = r * d + (c) + i * LANES;                                                  \
      if (j->drawn) sums[i] *= factors_at(j, (c) + i * LANES);                                     \
      if (node->in[TARN__ROUTE_PREVIOUS]) sums[i] += tarn__vec_read_first(dx->data, dtype, at, n); \
      tarn__vec_write_first(dx->data, dtype, at, sums[i], n);                                      \
    }                                                                                              \
  }
  int64_t c = 0;
  for (; c + BLOCK * LANES <= d; c += BLOCK * LANES) STEP(c, LANES, BLOCK)
  for (; c + LANES <= d; c += LANES) STEP(c, LANES, 1)
  if (c < d) STEP(c, d - c, 1)
#undef STEP
}

static void write_dx(const tarn__node *node, const float *dlogits, const jitter *j, int64_t r) {
  const tarn__dtype weight = node->in[TARN__ROUTE_WEIGHT]->dtype;
  if (node->out[0]->dtype == TARN__F32)
    dx_row(node, dlogits, j, TARN__F32, TARN__F32, r);
  else if (weight == TARN__F32)
    dx_row(node, dlogits, j, TARN__BF16, TARN__F32, r);
  else
    dx_row(node, dlogits, j, TARN__BF16, TARN__BF16, r);
}

// sums [experts, d] += the products of the gradients of ROWS rows and the rows.
static void add_dweight(const room *own, const float *dlogits, int64_t logits_stride, int64_t experts, int64_t d) {
  for (int64_t e = 0; e < experts; e++) {
    float *sums = own->dweight + e * d;
    float g[ROWS];
    for (int i = 0; i < ROWS; i++) g[i] = dlogits[i * logits_stride + e];
#define STEP(c, n)                                                                                      \
  {                                                                                                     \
    tarn__vec sum = tarn__vec_read_first(sums, TARN__F32, c, n);                                        \
    for (int i = 0; i < ROWS; i++)                                                                      \
      sum = tarn__vec_axpy(g[i], tarn__vec_read_first(own->x + i * own->stride, TARN__F32, c, n), sum); \
    tarn__vec_write_first(sums, TARN__F32, c, sum, n);                                                  \
  }
    TARN__VEC_EACH(0, d, STEP);
#undef STEP
  }
}

// Rows [first_row, last) of a part, ROWS at a time; the last step is padded with zeros.
static void backward_part(const tarn__exec *exec, const tarn__node *node, const room *own, const float *first,
                          int64_t first_row, int64_t last) {
  const int64_t d = node->in[TARN__ROUTE_X]->cols, experts = products_of(node);
  const int64_t stride = (int64_t)tarn__row_floats(experts);
  const bool weights = node->dparam[0] || node->dparam[1];
  const room losses = room_of(node, 0);
  float *dlogits = own->logits + stride;
  if (weights) memset(own->dweight, 0, (size_t)(experts * d) * sizeof(float));
  for (int64_t begin = first_row; begin < last; begin += ROWS) {
    for (int i = 0; i < ROWS; i++) {
      const int64_t r = begin + i;
      float *x = own->x + i * own->stride;
      if (r >= last) {
        memset(dlogits + i * stride, 0, (size_t)experts * sizeof(float));
        memset(x, 0, (size_t)d * sizeof *x);
        continue;
      }
      if (node->in[TARN__ROUTE_NOISE])
        noisy_gradient(dlogits + i * stride, node, own, &losses, r);
      else
        row_gradient(dlogits + i * stride, node, first, r);
      const jitter noise = draw_jitter(own, exec, node, r);
      if (weights) read_row(x, &noise, node->in[TARN__ROUTE_X], r);
      if (node->out[0]) write_dx(node, dlogits + i * stride, &noise, r);
    }
    if (!weights) continue;
    add_dweight(own, dlogits, stride, experts, d);
  }
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->in[TARN__ROUTE_X]->rows, experts = node->in[TARN__ROUTE_WEIGHT]->rows;
  const int64_t n = experts * node->in[TARN__ROUTE_X]->cols;
  const room shared = room_of(node, 0);
  if (node->in[TARN__ROUTE_NOISE])
    loss_derivatives(node, &shared);
  else
    count_first(shared.logits, node);
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int part = 0; part < exec->threads; part++) {
    const room own = room_of(node, part);
    backward_part(exec, node, &own, shared.logits, rows * part / exec->threads, rows * (part + 1) / exec->threads);
  }
  for (int i = 0; i < 2; i++) {
    tarn__param *param = node->dparam[i];
    if (!param) continue;
    float *grad = param->training.grad;
    if (!tarn__param_accumulate(param)) memset(grad, 0, (size_t)n * sizeof *grad);
    for (int part = 0; part < exec->threads; part++) tarn__row_add(grad, room_of(node, part).dweight + i * n, n);
  }
  return TARN_STATUS_OK;
}

// A row of a tangent of noisy gating, which is in own->x.
static void push_noisy(float *dgates, const tarn__node *node, const room *own, int64_t r) {
  const tarn__tensor *weight = node->in[TARN__ROUTE_WEIGHT];
  const int64_t experts = weight->rows, choices = ((const tarn__route_attr *)node->attr)->spec.choices;
  const noisy row = row_of(node, own, r);
  float *dc = own->logits, *da = dc + experts, gates[TARN__ROUTE_MOST_CHOICES], mean = 0.0f;
  int32_t chosen[TARN__ROUTE_MOST_CHOICES];
  logits_of(dc, own->x, weight);
  logits_of(da, own->x, node->in[TARN__ROUTE_NOISE]);
  choose(chosen, row.h, experts, choices);
  noisy_gates(gates, row.h, chosen, choices);
  for (int64_t j = 0; j < choices; j++) {
    const int32_t e = chosen[j];
    dgates[j] = tarn__fma(da[e] * row.n[e], (float)tarn__route_sigmoid((double)row.a[e]), dc[e]);
    mean = tarn__fma(gates[j], dgates[j], mean);
  }
  for (int64_t j = 0; j < choices; j++) dgates[j] = gates[j] * (dgates[j] - mean);
}

// Row `row` of a tangent, which belongs to row r of the forward pass. The logits' tangents become those of all
// probabilities.
static void tangent_row(const tarn__exec *exec, const tarn__node *node, const room *own, int64_t row, int64_t r) {
  const tarn__tensor *weight = node->in[TARN__ROUTE_WEIGHT], *dx = node->in[TARN__ROUTE_DX];
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = weight->rows, choices = attr->spec.choices, d = weight->cols;
  const float *p = (const float *)node->in[TARN__ROUTE_P]->data + r * experts;
  float *dp = own->logits, *dgates = (float *)node->out[0]->data + row * choices;
  int32_t chosen[TARN__ROUTE_MOST_CHOICES];
  float mean = 0.0f, sum = 0.0f, moved = 0.0f;
  const jitter noise = draw_jitter(own, exec, node, r);
  read_row(own->x, &noise, dx, row);
  if (node->in[TARN__ROUTE_NOISE]) {
    push_noisy(dgates, node, own, r);
    return;
  }
  all_dots(dp, own->x, weight->data, TARN__F32, d, experts);
  choose(chosen, p, experts, choices);
  for (int64_t e = 0; e < experts; e++) mean = tarn__fma(p[e], dp[e], mean);
  for (int64_t e = 0; e < experts; e++) dp[e] = p[e] * (dp[e] - mean);
  for (int64_t j = 0; j < choices; j++) sum += p[chosen[j]], moved += dp[chosen[j]];
  for (int64_t j = 0; j < choices; j++) {
    const float of_choice = dp[chosen[j]];
    dgates[j] = attr->spec.normalise ? (of_choice - p[chosen[j]] / sum * moved) / sum : of_choice;
  }
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->in[TARN__ROUTE_X]->rows, all = node->out[0]->rows;
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int part = 0; part < exec->threads; part++) {
    const room own = room_of(node, part);
    const int64_t last = all * (part + 1) / exec->threads;
    for (int64_t r = all * part / exec->threads; r < last; r++) tangent_row(exec, node, &own, r, r % rows);
  }
  return TARN_STATUS_OK;
}

const tarn__route_kernels TARN__FAST(tarn__route_kernels) = {forward, backward, tangent, scratch};
