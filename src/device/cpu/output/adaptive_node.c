// Copies, additions and merges of a few numbers per row; other nodes compute the products and softmaxes.
#include "device/cpu/output/adaptive_kernels.h"

#include <math.h>
#include <string.h>

#include "ops/adaptive.h"

tarn_status tarn__cpu_adaptive_rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
  const size_t bytes = (size_t)y->cols * tarn__dtype_size(y->dtype);
  const int32_t *to = node->in[TARN__ADAPTIVE_ROWS]->data;
  for (int k = 0; k < TARN__ADAPTIVE_PARTS && node->in[k]; k++) {
    const char *x = node->in[k]->data;
    const int64_t rows = node->in[k]->rows;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
    for (int64_t i = 0; i < rows; i++) memcpy((char *)y->data + (size_t)to[i] * bytes, x + (size_t)i * bytes, bytes);
    to += rows;
  }
  return TARN_STATUS_OK;
}

// In the order of the parts, for any number of threads.
tarn_status tarn__cpu_loss_sum(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *rows = node->in[TARN__ADAPTIVE_ROWS];
  double *out = node->out[0]->data;
  const int32_t *to = rows ? rows->data : NULL;
  memcpy(out, node->in[0]->data, 2 * (size_t)node->out[0]->rows * sizeof *out);
  for (int k = 1; k < TARN__ADAPTIVE_PARTS && node->in[k]; k++) {
    const double *loss = node->in[k]->data;
    for (int64_t i = 0; i < node->in[k]->rows; i++) {
      double *sum = out + (to ? 2 * (int64_t)to[i] : 0);
      sum[0] += loss[2 * i];
      sum[1] += loss[2 * i + 1];
    }
    if (to) to += node->in[k]->rows;
  }
  return TARN_STATUS_OK;
}

static void all_words(const tarn__node *node, int tails, int64_t r) {
  const tarn__tensor *head = node->in[0];
  const int64_t shortlist = head->cols - tails;
  const float *own = (const float *)head->data + r * head->cols;
  float *out = (float *)node->out[0]->data + r * node->out[0]->cols;
  memcpy(out, own, (size_t)shortlist * sizeof *out);
  out += shortlist;
  for (int k = 0; k < tails; k++) {
    const tarn__tensor *tail = node->in[k + 1];
    const float *x = (const float *)tail->data + r * tail->cols, of_class = own[shortlist + k];
#pragma omp simd
    for (int64_t v = 0; v < tail->cols; v++) out[v] = of_class + x[v];
    out += tail->cols;
  }
}

// Both lists are sorted, and so is the result: by decreasing value, ties by increasing id.
static void merge(const tarn__node *node, int64_t r) {
  const tarn__adaptive_merge *m = &((const tarn__adaptive_attr *)node->attr)->merge;
  const int64_t count = node->in[TARN__ADAPTIVE_IDS]->cols, most = node->in[TARN__ADAPTIVE_TAIL_IDS]->cols;
  const float *values = (const float *)node->in[TARN__ADAPTIVE_VALUES]->data + r * (count + 1);
  const int32_t *ids = (const int32_t *)node->in[TARN__ADAPTIVE_IDS]->data + r * count;
  const float *tail = (const float *)node->in[TARN__ADAPTIVE_TAIL_VALUES]->data + r * (most + 1);
  const int32_t *tail_ids = (const int32_t *)node->in[TARN__ADAPTIVE_TAIL_IDS]->data + r * most;
  float *to = (float *)node->out[0]->data + r * count;
  int32_t *to_ids = (int32_t *)node->out[1]->data + r * (count - 1);
  const int64_t base = m->shortlist > 0 ? m->shortlist : m->words;
  int64_t of_class = 0, i = 0, j = 0, n = 0;
  while (of_class < count && ids[of_class] != base + m->tail) of_class++;
  const bool found = of_class < count;
  // If the tail has no entries, neither has the row.
  const bool none = found && tail_ids[0] < 0;
  for (; n < count - 1 && !none; n++) {
    if (i == of_class) i++;
    const bool own = i < count && ids[i] >= 0, other = found && j < most && tail_ids[j] >= 0;
    if (!own && !other) break;
    const int64_t id = own ? ids[i] + (ids[i] >= base ? m->words - base : 0) : -1;
    const int64_t word = other ? m->first + tail_ids[j] : -1;
    const float value = other ? values[of_class] + tail[j] : 0.0f;
    const bool takes = other && (!own || value > values[i] || (value == values[i] && word < id));
    to[n] = takes ? value : values[i];
    to_ids[n] = (int32_t)(takes ? word : id);
    if (takes)
      j++;
    else
      i++;
  }
  for (; n < count - 1; n++) {
    to[n] = -INFINITY;
    to_ids[n] = -1;
  }
  to[count - 1] = values[count] + (m->always || none ? tail[most] : 0.0f);
}

tarn_status tarn__cpu_adaptive_scores(const tarn__exec *exec, const tarn__node *node) {
  const bool top = ((const tarn__adaptive_attr *)node->attr)->top;
  int tails = 0;
  while (!top && tails + 1 < TARN__ADAPTIVE_PARTS && node->in[tails + 1]) tails++;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int64_t r = 0; r < node->out[0]->rows; r++) {
    if (top)
      merge(node, r);
    else
      all_words(node, tails, r);
  }
  return TARN_STATUS_OK;
}
