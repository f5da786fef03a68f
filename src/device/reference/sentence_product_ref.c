// Plain C reference.
#include "device/reference/reference_kernels.h"
#include "ops/sentence_product.h"

typedef TARN_REAL real;

// The tensors of a head of a sentence: a [rows, h], x [rows, d], z [h, d].
typedef struct head {
  real *a, *x, *z;
  int64_t rows, h, d, a_stride, x_stride, z_stride;
} head;

static void outer(const head *p, bool add) {
  for (int64_t i = 0; i < p->h; i++)
    for (int64_t j = 0; j < p->d; j++) {
      real sum = 0;
      for (int64_t r = 0; r < p->rows; r++) sum += p->a[r * p->a_stride + i] * p->x[r * p->x_stride + j];
      real *z = &p->z[i * p->z_stride + j];
      *z = add ? *z + sum : sum;
    }
}

static void product(const head *p, bool add) {
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t j = 0; j < p->d; j++) {
      real sum = 0;
      for (int64_t i = 0; i < p->h; i++) sum += p->a[r * p->a_stride + i] * p->z[i * p->z_stride + j];
      real *x = &p->x[r * p->x_stride + j];
      *x = add ? *x + sum : sum;
    }
}

static void weights(const head *p, bool add) {
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t i = 0; i < p->h; i++) {
      real sum = 0;
      for (int64_t j = 0; j < p->d; j++) sum += p->x[r * p->x_stride + j] * p->z[i * p->z_stride + j];
      real *a = &p->a[r * p->a_stride + i];
      *a = add ? *a + sum : sum;
    }
}

static void run_task(const tarn__node *node, const tarn__sentence_task *task) {
  const tarn__sentence_spec *spec = node->attr;
  const tarn__tensor *offsets = node->in[TARN__SENTENCE_OFFSETS];
  const int32_t *offset = offsets->data;
  // Columns of x that are not read have zero gradients.
  if (task->form == TARN__SENTENCE_FORM_PRODUCT && !task->add)
    for (int64_t i = 0; i < task->x->rows * task->x->cols; i++) ((real *)task->x->data)[i] = 0;
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    for (int64_t g = 0; g < spec->heads; g++) {
      const int64_t h = task->a->cols / spec->heads, d = spec->d / spec->heads, first = offset[s];
      const head p = {.a = (real *)task->a->data + first * task->a->cols + g * h,
                      .x = (real *)task->x->data + first * task->x->cols + task->column + g * d,
                      .z = (real *)task->z->data + s * h * task->z->cols + g * d,
                      .rows = offset[s + 1] - first,
                      .h = h,
                      .d = d,
                      .a_stride = task->a->cols,
                      .x_stride = task->x->cols,
                      .z_stride = task->z->cols};
      if (task->form == TARN__SENTENCE_FORM_OUTER)
        outer(&p, task->add);
      else if (task->form == TARN__SENTENCE_FORM_PRODUCT)
        product(&p, task->add);
      else
        weights(&p, task->add);
    }
}

tarn_status TARN__REF(tarn__sentence_product_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  tarn__sentence_task tasks[2];
  const int count = tarn__sentence_tasks(tasks, node);
  for (int i = 0; i < count; i++) run_task(node, &tasks[i]);
  return TARN_STATUS_OK;
}
