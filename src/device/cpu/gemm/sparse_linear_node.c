// Products of rows with a weight in CSR format. Threads take as many rows at a time as the kernels process together.
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/spmm.h"
#include "device/cpu/isa/row_cpu.h"
#include "ops/sparse_linear.h"

enum { WIDE = TARN__SPMM_WIDE };

// The scratch: the transpose, if needed, and for each thread the panel and the result of its rows.
typedef struct layout {
  tarn__spmm_rows transpose;
  size_t shared, panel, result;
  bool turned;
} layout;

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static layout layout_of(const tarn__node *node, char *base) {
  const tarn__tensor *weight = node->in[TARN__SPARSE_LINEAR_WEIGHT];
  const int64_t from = node->in[TARN__SPARSE_LINEAR_X]->cols, to = node->out[0]->cols;
  layout l = {.turned = ((const tarn__sparse_linear_attr *)node->attr)->transpose};
  l.panel = aligned((size_t)tarn__spmm_scratch(from) * sizeof(float));
  l.result = aligned((size_t)(to * WIDE) * sizeof(float));
  if (!l.turned) return l;
  const size_t starts = aligned((size_t)(weight->cols + 1) * sizeof(int32_t));
  const size_t each = aligned((size_t)weight->param->entries * sizeof(int32_t));
  l.transpose.room = weight->param->entries;
  if (base) {
    l.transpose.starts = (int32_t *)(void *)base;
    l.transpose.columns = (int32_t *)(void *)(base + starts);
    l.transpose.values = (float *)(void *)(base + starts + each);
  }
  l.shared = starts + 2 * each;
  return l;
}

size_t tarn__cpu_sparse_linear_scratch(const tarn__node *node, int threads) {
  const layout l = layout_of(node, NULL);
  return l.shared + (size_t)threads * (l.panel + l.result);
}

// Rows [first, first + count), at most WIDE of them; memory: of the thread.
static void run_rows(const tarn__node *node, const tarn__spmm_rows *matrix, int64_t first, int64_t count,
                     const layout *l, char *memory) {
  const tarn__tensor *x = node->in[TARN__SPARSE_LINEAR_X], *y = node->out[0];
  const int64_t from = x->cols, to = y->cols;
  const bool accumulate = node->in[TARN__SPARSE_LINEAR_PREVIOUS] != NULL, direct = y->dtype == TARN__F32;
  float *result = direct ? (float *)y->data + first * to : (float *)(void *)(memory + l->panel);
  for (int64_t i = 0; i < count && accumulate && !direct; i++)
    tarn__row_copy(result + i * to, y->data, y->dtype, (first + i) * to, to);
  const tarn__spmm product = {.matrix = matrix,
                              .a = (const char *)x->data + (size_t)(first * from) * tarn__dtype_size(x->dtype),
                              .m = count,
                              .lda = from,
                              .ldc = to,
                              .dtype = x->dtype,
                              .accumulate = accumulate,
                              .c = result,
                              .scratch = (float *)(void *)memory};
  tarn__spmm_run(&product, 1);
  for (int64_t i = 0; i < count && !direct; i++)
    tarn__row_write(y->data, y->dtype, (first + i) * to, to, result + i * to);
}

tarn_status tarn__cpu_sparse_linear(const tarn__exec *exec, const tarn__node *node) {
  char *base = node->scratch;
  layout l = layout_of(node, base);
  tarn__spmm_rows matrix = tarn__spmm_of(node->in[TARN__SPARSE_LINEAR_WEIGHT]);
  if (l.turned) {
    tarn__spmm_transpose(&l.transpose, &matrix);
    matrix = l.transpose;
  }
  const int64_t rows = node->in[TARN__SPARSE_LINEAR_X]->rows, parts = (rows + WIDE - 1) / WIDE;
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    char *memory = base + l.shared + (size_t)which * (l.panel + l.result);
    for (int64_t part = parts * which / exec->threads; part < parts * (which + 1) / exec->threads; part++) {
      const int64_t left = rows - part * WIDE;
      run_rows(node, &matrix, part * WIDE, left < WIDE ? left : WIDE, &l, memory);
    }
  }
  return TARN_STATUS_OK;
}
