// Choosing from logits in memory, with the kernels of output_top.
#include "ops/pick.h"

#include <math.h>
#include <omp.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/output/output_top_kernels.h"

static const tarn__output_top_kernels *kernels(void) { return TARN__TABLE_NOW(tarn__output_top_kernels); }

// Of a thread: the parts of a row.
static int64_t room_of(const tarn__node *node) { return tarn__top_visits(node->in[TARN__PICK_LOGITS]->cols); }
static tarn__top_part *room_at(const tarn__node *node) {
  return (tarn__top_part *)node->scratch + room_of(node) * omp_get_thread_num();
}

size_t tarn__cpu_pick_scratch(const tarn__node *node, int threads) {
  return (size_t)room_of(node) * sizeof(tarn__top_part) * (size_t)threads;
}

tarn_status tarn__cpu_best(const tarn__exec *exec, const tarn__node *node) {
  const tarn__output_top_attr *attr = node->attr;
  const tarn__tensor *logits = node->in[TARN__PICK_LOGITS];
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int64_t r = 0; r < logits->rows; r++)
    kernels()->row((float *)node->out[0]->data + r * (attr->best + 1), (int32_t *)node->out[1]->data + r * attr->best,
                   (const float *)logits->data + r * logits->cols, logits->cols, attr, room_at(node));
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_pick(const tarn__exec *exec, const tarn__node *node) {
  const int32_t always = ((const tarn__pick_attr *)node->attr)->always;
  const tarn__tensor *logits = node->in[TARN__PICK_LOGITS], *wanted = node->in[TARN__PICK_IDS];
  const int32_t *numbers = node->in[TARN__PICK_NUMBERS]->data;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int64_t r = 0; r < wanted->rows; r++) {
    const float *row = (const float *)logits->data + numbers[r] * logits->cols;
    const float shift = kernels()->log_sum(row, logits->cols, room_at(node));
    const int32_t *ids = (const int32_t *)wanted->data + r * wanted->cols;
    float *values = (float *)node->out[0]->data + r * (wanted->cols + 1);
    for (int64_t i = 0; i < wanted->cols; i++)
      values[i] = ids[i] < 0 || ids[i] >= logits->cols ? -INFINITY : row[ids[i]] - shift;
    values[wanted->cols] = row[always] - shift;
  }
  return TARN_STATUS_OK;
}
