#include "device/cpu/gemm/spmm.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/isa/isa.h"
#include "graph/entries.h"

enum {
  LEAST_TAKEN = 1 << 16,  // elements of a dense matrix from which several threads search for its entries
  LEAST_WORK = 1 << 15,   // entries of a product from which several threads compute it
  TURNED = 20,            // the cost of a row of the panel, and of a row of the result, in entries
  CUT = 16                // threads take rows in multiples of this: a cache line
};

int64_t tarn__spmm_room(int64_t n, double sparsity) {
  const double entries = 1.5 * (1.0 - sparsity) * (double)n * (double)n + 64.0 * (double)n;
  const double all = (double)n * (double)n;
  return (int64_t)fmin(entries, all);
}

// The first of n rows in part number `part`.
static int64_t even_cut(int64_t n, int64_t part, int64_t parts) {
  const int64_t row = (n + CUT - 1) / CUT * part / parts * CUT;
  return row < n ? row : n;
}

// Converts numbers of entries, starts[i + 1] for row i, to the beginnings of rows. Filling row i advances that to its
// end, where row i + 1 begins. False: insufficient room.
static bool add_up(tarn__spmm_rows *rows) {
  int64_t count = 0;
  rows->starts[0] = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    const int32_t entries = rows->starts[i + 1];
    rows->starts[i + 1] = (int32_t)count;
    count += entries;
    if (count > rows->room) return false;
  }
  return true;
}

bool tarn__spmm_take(tarn__spmm_rows *rows, const void *dense, tarn__dtype dtype, bool transpose, int threads) {
  const tarn__spmm_kernels *kernels = TARN__TABLE_NOW(tarn__spmm_kernels);
  const int64_t n = rows->n;
  const bool small = n * n < LEAST_TAKEN;
  bool fits = false;
#pragma omp parallel num_threads(small ? 1 : threads)
  {
    const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
    const int64_t first = even_cut(n, me, all), last = even_cut(n, me + 1, all);
    kernels->count(rows, dense, dtype, transpose, first, last);
#pragma omp barrier
#pragma omp single
    fits = add_up(rows);
    if (fits) kernels->fill(rows, dense, dtype, transpose, first, last);
  }
  return fits;
}

tarn__spmm_rows tarn__spmm_of(const tarn__tensor *weight) {
  const tarn__entries entries = tarn__entries_at(weight->param, weight->data);
  return (tarn__spmm_rows){.n = weight->rows,
                           .cols = weight->cols,
                           .room = weight->param->entries,
                           .starts = entries.starts,
                           .columns = entries.columns,
                           .values = entries.values};
}

void tarn__spmm_transpose(tarn__spmm_rows *to, const tarn__spmm_rows *from) {
  int32_t *next = to->starts + 1, before = 0;
  const int32_t entries = from->starts[from->n];
  to->n = from->cols;
  to->cols = from->n;
  memset(to->starts, 0, (size_t)(to->n + 1) * sizeof *to->starts);
  for (int32_t e = 0; e < entries; e++) next[from->columns[e]]++;
  for (int64_t i = 0; i < to->n; i++) {
    const int32_t count = next[i];
    next[i] = before;
    before += count;
  }
  for (int64_t i = 0; i < from->n; i++)
    for (int32_t e = from->starts[i]; e < from->starts[i + 1]; e++) {
      const int32_t at = next[from->columns[e]]++;
      to->columns[at] = (int32_t)i;
      to->values[at] = from->values[e];
    }
}

static int64_t work_until(const tarn__spmm_rows *matrix, int64_t row) { return matrix->starts[row] + TURNED * row; }

// The first row of the matrix in part number `part`: rows have different numbers of entries.
static int64_t fair_cut(const tarn__spmm_rows *matrix, int64_t part, int64_t parts) {
  const int64_t n = matrix->n, goal = work_until(matrix, n) / parts * part;
  int64_t low = 0, high = (n + CUT - 1) / CUT;
  if (part == parts) return n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (work_until(matrix, middle * CUT) < goal)
      low = middle + 1;
    else
      high = middle;
  }
  return low * CUT < n ? low * CUT : n;
}

// The work of thread `me` of `all`, with a barrier between the parts if there are several threads.
static void run_part(const tarn__spmm *product, int64_t me, int64_t all) {
  const tarn__spmm_kernels *kernels = TARN__TABLE_NOW(tarn__spmm_kernels);
  const int64_t cols = product->matrix->cols;
  const int64_t turn_first = even_cut(cols, me, all), turn_last = even_cut(cols, me + 1, all);
  const int64_t first_row = fair_cut(product->matrix, me, all), last_row = fair_cut(product->matrix, me + 1, all);
  for (int64_t first = 0; first < product->m; first += TARN__SPMM_WIDE) {
    const int64_t left = product->m - first, count = left < TARN__SPMM_WIDE ? left : TARN__SPMM_WIDE;
    if (first > 0) {
#pragma omp barrier
    }
    kernels->turn(product, first, count, turn_first, turn_last);
#pragma omp barrier
    kernels->multiply(product, first, count, first_row, last_row);
  }
}

void tarn__spmm_run(const tarn__spmm *product, int threads) {
  const tarn__spmm_rows *matrix = product->matrix;
  const bool small = work_until(matrix, matrix->n) + TURNED * matrix->cols < LEAST_WORK;
#pragma omp parallel num_threads(small ? 1 : threads)
  run_part(product, omp_get_thread_num(), omp_get_num_threads());
}
