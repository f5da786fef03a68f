// Fast kernels. Sinusoids are recomputed for every row with a short vectorised sine: that costs about as much as the
// dropout mask, needs no table and works for every position.
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/dropout.h"
#include "ops/embedding.h"

// Scratch of one thread, in floats: two rows and the 16-bit numbers of dropout. The turns of position 1, in double,
// precede those of all threads.
static size_t thread_floats(int64_t d) {
  return 2 * tarn__row_floats(d) + tarn__dropout_room(d) * sizeof(uint16_t) / sizeof(float);
}

static size_t turns_floats(int64_t d) { return 2 * tarn__row_floats(d); }

static size_t scratch(int64_t d, int threads) {
  return (turns_floats(d) + thread_floats(d) * (size_t)threads) * sizeof(float);
}

// sum + sin(2 pi x) for x in [-1/4, 1/4]: its Taylor series in z = x^2, exact to 1e-9.
static inline float add_sin_turn(float sum, float x) {
  const float z = x * x;
  float p = 3.8199526f;
  p = tarn__fma(p, z, -15.094643f);
  p = tarn__fma(p, z, 42.058693f);
  p = tarn__fma(p, z, -76.705860f);
  p = tarn__fma(p, z, 81.605249f);
  p = tarn__fma(p, z, -41.341702f);
  p = tarn__fma(p, z, 6.2831853f);
  return tarn__fma(p, x, sum);
}

// row[i] = sin(position * turns[i]), row[half + i] = cos of the same, angles in turns. Whole turns are subtracted in
// double: adding 1.5 * 2^52 rounds to an integer.
static void add_position(float *row, double position, const double *turns, int64_t half) {
  float *second = row + half;
#pragma omp simd
  for (int64_t i = 0; i < half; i++) {
    const double whole = tarn__fma_double(position, turns[i], 6755399441055744.0) - 6755399441055744.0;
    const float x = (float)tarn__fma_double(position, turns[i], -whole);  // in [-1/2, 1/2]
    const float size = x < 0.0f ? -x : x;
    const float folded = size > 0.25f ? 0.5f - size : size;  // sin(pi - a) = sin(a)
    row[i] = add_sin_turn(row[i], x < 0.0f ? -folded : folded);
    second[i] = add_sin_turn(second[i], 0.25f - size);  // cos(a) = sin(pi / 2 - |a|)
  }
}

static void drop(float *row, uint16_t *numbers, const tarn__exec *exec, tarn__dropout dropout, int64_t r, int64_t d) {
  if (dropout.threshold == 0) return;
  const uint32_t threshold = dropout.threshold;
  const float scale = (float)tarn__dropout_scale(dropout);
  tarn__dropout_numbers(numbers, exec, dropout.site, r, 0, d);
#pragma omp simd
  for (int64_t i = 0; i < d; i++) row[i] = numbers[i] >= threshold ? row[i] * scale : 0.0f;
}

// Row `id` of a table, copied to `copy` or in place. For a table read as INT8: its integers times their scale.
static const float *table_row(const tarn__tensor *table, int64_t id, float *copy) {
  const int64_t d = table->cols;
  const tarn__param_decoding *decoding = &table->param->decoding;
  if (!decoding->rounded) return tarn__row_read(table->data, table->dtype, id * d, d, copy);
  const signed char *row = decoding->rounded + id * d;
  const float scale = decoding->scales[id];
#pragma omp simd
  for (int64_t i = 0; i < d; i++) copy[i] = scale * (float)row[i];
  return copy;
}

static void forward_row(const tarn__exec *exec, const tarn__node *node, float *scratch_rows, const double *turns,
                        int64_t r) {
  const tarn__tensor *y = node->out[0], *table = node->in[TARN__EMBEDDING_TABLE];
  const tarn__tensor *positions = node->in[TARN__EMBEDDING_POSITIONS], *learned = node->in[TARN__EMBEDDING_LEARNED];
  const tarn__embedding_attr *attr = node->attr;
  const int64_t d = y->cols, id = ((const int32_t *)node->in[TARN__EMBEDDING_IDS]->data)[r];
  const float scale = (float)attr->scale;
  const float *in = table->rows > 0 ? table_row(table, id, scratch_rows) : NULL;
  float *out = tarn__row_target(y->data, y->dtype, r * d, scratch_rows);
  if (!in) memset(out, 0, (size_t)d * sizeof *out);
#pragma omp simd
  for (int64_t i = 0; i < (in ? d : 0); i++) out[i] = scale * in[i];
  const int64_t place = positions ? ((const int32_t *)positions->data)[r] : 0;
  if (learned)
    tarn__row_add(out, tarn__row_read(learned->data, learned->dtype, place * d, d, scratch_rows + tarn__row_floats(d)),
                  d);
  else if (positions)
    add_position(out, (double)(place + attr->first + tarn__embedding_shift(attr, exec, r - place)), turns, d / 2);
  drop(out, (uint16_t *)(void *)(scratch_rows + 2 * tarn__row_floats(d)), exec, attr->dropout, r, d);
  tarn__row_write(y->data, y->dtype, r * d, d, out);
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
  const int64_t d = y->cols;
  const double steps = ((const tarn__embedding_attr *)node->attr)->steps;
  double *turns = node->scratch;
  float *rows = (float *)node->scratch + turns_floats(d);
  for (int64_t i = 0; i < d / 2; i++) turns[i] = tarn__embedding_turns(i, steps);
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int part = 0; part < exec->threads; part++) {
    const int64_t last = y->rows * (part + 1) / exec->threads;
    for (int64_t r = y->rows * part / exec->threads; r < last; r++)
      forward_row(exec, node, rows + (size_t)part * thread_floats(d), turns, r);
  }
  return TARN_STATUS_OK;
}

// Clears the rows used by the last update, if known, else all. Workspace memory contains nothing from the last update:
// there rows are cleared when they are first used.
static void clear_gradient(const tarn__exec *exec, const tarn__param *table) {
  const size_t row_bytes = (size_t)table->cols * sizeof(float);
  uint8_t *used = table->training.used_rows;
  if (used && table->training.planned) {
    memset(used, 0, (size_t)table->rows);
    return;
  }
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t v = 0; v < table->rows; v++) {
    if (used && !used[v]) continue;
    memset((char *)table->training.grad + (size_t)v * row_bytes, 0, row_bytes);
    if (used) used[v] = 0;
  }
}

// A row that occurs several times is cleared only at its first occurrence.
static void use_rows(tarn__param *table, const int32_t *ids, int64_t rows) {
  for (int64_t r = 0; table->training.used_rows && r < rows; r++) {
    if (table->training.planned && !table->training.used_rows[ids[r]])
      memset((float *)table->training.grad + ids[r] * table->cols, 0, (size_t)table->cols * sizeof(float));
    table->training.used_rows[ids[r]] = 1;
  }
}

// Each part owns the columns [first, last) of the table, so rows are added in order whatever the threads.
static void backward_part(const tarn__exec *exec, const tarn__node *node, float *scratch_rows, int64_t first,
                          int64_t last) {
  const tarn__tensor *dy = node->in[TARN__EMBEDDING_BACKWARD_DY];
  const tarn__embedding_attr *attr = node->attr;
  const int32_t *ids = node->in[TARN__EMBEDDING_BACKWARD_IDS]->data;
  const tarn__param *table = node->dparam[0];
  float *grad = table->training.grad;
  const int64_t d = dy->cols, n = last - first;
  uint16_t *numbers = (uint16_t *)(void *)(scratch_rows + 2 * tarn__row_floats(d));
  const uint32_t threshold = attr->dropout.threshold;
  const float scale = (float)(attr->scale * tarn__dropout_scale(attr->dropout));
  for (int64_t r = 0; r < dy->rows; r++) {
    const float *in = tarn__row_read(dy->data, dy->dtype, r * d + first, n, scratch_rows);
    float *out = grad + ids[r] * d + first;
    if (threshold == 0) {
      tarn__row_axpy(out, scale, in, n);
      continue;
    }
    tarn__dropout_numbers(numbers, exec, attr->dropout.site, r, first / TARN__DROPOUT_BLOCK, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = tarn__fma(numbers[i] >= threshold ? in[i] : 0.0f, scale, out[i]);
  }
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const int64_t d = node->in[TARN__EMBEDDING_BACKWARD_DY]->cols;
  const int32_t *ids = node->in[TARN__EMBEDDING_BACKWARD_IDS]->data;
  tarn__param *table = node->dparam[0];
  if (!tarn__param_accumulate(table)) clear_gradient(exec, table);
  use_rows(table, ids, node->in[TARN__EMBEDDING_BACKWARD_DY]->rows);
  float *rows = (float *)node->scratch + turns_floats(d);
  const int64_t blocks = (d + TARN__DROPOUT_BLOCK - 1) / TARN__DROPOUT_BLOCK;
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int part = 0; part < exec->threads; part++) {
    int64_t first = blocks * part / exec->threads * TARN__DROPOUT_BLOCK;
    int64_t last = blocks * (part + 1) / exec->threads * TARN__DROPOUT_BLOCK;
    if (last > d) last = d;
    if (first < last) backward_part(exec, node, rows + (size_t)part * thread_floats(d), first, last);
  }
  return TARN_STATUS_OK;
}

const tarn__embedding_kernels TARN__FAST(tarn__embedding_kernels) = {forward, backward, scratch};
