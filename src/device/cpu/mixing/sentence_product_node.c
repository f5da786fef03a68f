// Products within sentences, by gemm.h: one for each sentence and head, computed by a single thread each if there are
// enough of them, and otherwise by all threads together. The bits of a product do not depend on its threads, so those
// of a sentence do not depend on its batch.
#include <omp.h>
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/row_cpu.h"
#include "ops/sentence_product.h"

// Element `at` of a tensor, whose data are NULL while the graph is planned.
static void *element(const tarn__tensor *tensor, int64_t at) {
  return tensor->data ? (char *)tensor->data + at * (int64_t)tarn__dtype_size(tensor->dtype) : NULL;
}

// The product of `rows` rows from row `first` on, which are sentence s, and head g.
static tarn__gemm product_of(const tarn__node *node, const tarn__sentence_task *task, int64_t first, int64_t rows,
                             int64_t s, int64_t g) {
  const tarn__sentence_spec *spec = node->attr;
  const int64_t h = task->a->cols / spec->heads, d = spec->d / spec->heads;
  void *a = element(task->a, first * task->a->cols + g * h);
  void *x = element(task->x, first * task->x->cols + task->column + g * d);
  void *z = element(task->z, s * h * task->z->cols + g * d);
  tarn__gemm product = {
      .dtype = task->a->dtype, .c_dtype = task->a->dtype, .fp32 = node->fp32, .accumulate = task->add};
  switch (task->form) {
    case TARN__SENTENCE_FORM_OUTER:
      product.m = h, product.n = d, product.k = rows;
      product.a = a, product.b = x, product.c = z;
      product.lda = task->a->cols, product.ldb = task->x->cols, product.ldc = task->z->cols;
      product.transpose_a = true;
      break;
    case TARN__SENTENCE_FORM_PRODUCT:
      product.m = rows, product.n = d, product.k = h;
      product.a = a, product.b = z, product.c = x;
      product.lda = task->a->cols, product.ldb = task->z->cols, product.ldc = task->x->cols;
      break;
    case TARN__SENTENCE_FORM_WEIGHTS:
      product.m = rows, product.n = h, product.k = d;
      product.a = x, product.b = z, product.c = a;
      product.lda = task->x->cols, product.ldb = task->z->cols, product.ldc = task->a->cols;
      product.transpose_b = true;
      break;
  }
  return product;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

// Maximum scratch of a single-threaded product, for any sentence.
static size_t scratch_of_one(const tarn__node *node, const tarn__sentence_task *task) {
  const int64_t longest = ((const tarn__sentence_spec *)node->attr)->longest;
  const tarn__gemm product = product_of(node, task, 0, longest, 0, 0);
  return (tarn__gemm_scratch_most(&product, 1, task->form == TARN__SENTENCE_FORM_OUTER) + 63) & ~(size_t)63;
}

// Whether each thread computes separate products.
static bool apart(const tarn__node *node, int threads) {
  const int64_t products =
      (node->in[TARN__SENTENCE_OFFSETS]->cols - 1) * ((const tarn__sentence_spec *)node->attr)->heads;
  return products >= threads;
}

size_t tarn__cpu_sentence_product_scratch(const tarn__node *node, int threads) {
  const int64_t longest = ((const tarn__sentence_spec *)node->attr)->longest;
  tarn__sentence_task tasks[2];
  const int count = tarn__sentence_tasks(tasks, node);
  size_t bytes = 0;
  for (int i = 0; i < count; i++) {
    const tarn__gemm product = product_of(node, &tasks[i], 0, longest, 0, 0);
    bytes = larger(bytes, apart(node, threads)
                              ? scratch_of_one(node, &tasks[i]) * (size_t)threads
                              : tarn__gemm_scratch_most(&product, threads, tasks[i].form == TARN__SENTENCE_FORM_OUTER));
  }
  return bytes;
}

static void run_task(const tarn__exec *exec, const tarn__node *node, const tarn__sentence_task *task) {
  const tarn__sentence_spec *spec = node->attr;
  const int32_t *offsets = node->in[TARN__SENTENCE_OFFSETS]->data;
  const int64_t products = (node->in[TARN__SENTENCE_OFFSETS]->cols - 1) * spec->heads;
  const bool own = apart(node, exec->threads);
  const size_t room = own ? scratch_of_one(node, task) : 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(own ? exec->threads : 1)
  for (int64_t p = 0; p < products; p++) {
    const int64_t s = p / spec->heads, first = offsets[s];
    const tarn__gemm product = product_of(node, task, first, offsets[s + 1] - first, s, p % spec->heads);
    tarn__gemm_run(&product, own ? 1 : exec->threads, (char *)node->scratch + room * (size_t)omp_get_thread_num());
  }
}

// Zeroes the columns of a gradient of x that the product has not read.
static void zero_beside(const tarn__node *node, const tarn__sentence_task *task) {
  const int64_t d = ((const tarn__sentence_spec *)node->attr)->d, after = task->x->cols - task->column - d;
  const size_t size = tarn__dtype_size(task->x->dtype);
  if (task->x->cols == d) return;
  for (int64_t r = 0; r < task->x->rows; r++) {
    memset(element(task->x, r * task->x->cols), 0, (size_t)task->column * size);
    memset(element(task->x, r * task->x->cols + task->column + d), 0, (size_t)after * size);
  }
}

tarn_status tarn__cpu_sentence_product(const tarn__exec *exec, const tarn__node *node) {
  tarn__sentence_task tasks[2];
  const int count = tarn__sentence_tasks(tasks, node);
  for (int i = 0; i < count; i++) {
    if (tasks[i].form == TARN__SENTENCE_FORM_PRODUCT && !tasks[i].add) zero_beside(node, &tasks[i]);
    run_task(exec, node, &tasks[i]);
  }
  return TARN_STATUS_OK;
}
