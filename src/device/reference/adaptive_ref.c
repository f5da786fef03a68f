#include "ops/adaptive.h"

#include <math.h>

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__adaptive_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const int32_t *to = node->in[TARN__ADAPTIVE_ROWS]->data;
  const int64_t d = node->out[0]->cols;
  for (int k = 0; k < TARN__ADAPTIVE_PARTS && node->in[k]; k++) {
    const real *x = node->in[k]->data;
    for (int64_t i = 0; i < node->in[k]->rows * d; i++) ((real *)node->out[0]->data)[to[i / d] * d + i % d] = x[i];
    to += node->in[k]->rows;
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__loss_sum_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *rows = node->in[TARN__ADAPTIVE_ROWS];
  double *out = node->out[0]->data;
  const double *first = node->in[0]->data;
  const int32_t *to = rows ? rows->data : NULL;
  for (int64_t i = 0; i < 2 * node->out[0]->rows; i++) out[i] = first[i];
  for (int k = 1; k < TARN__ADAPTIVE_PARTS && node->in[k]; k++) {
    const double *x = node->in[k]->data;
    for (int64_t i = 0; i < 2 * node->in[k]->rows; i++) out[to ? 2 * (int64_t)to[i / 2] + i % 2 : i] += x[i];
    if (to) to += node->in[k]->rows;
  }
  return TARN_STATUS_OK;
}

static void all_words(const tarn__node *node, int64_t r) {
  int tails = 0;
  while (tails + 1 < TARN__ADAPTIVE_PARTS && node->in[tails + 1]) tails++;
  const tarn__tensor *head = node->in[0];
  const real *own = (const real *)head->data + r * head->cols;
  real *out = (real *)node->out[0]->data + r * node->out[0]->cols;
  for (int64_t v = 0; v < head->cols - tails; v++) *out++ = own[v];
  for (int k = 0; k < tails; k++) {
    const tarn__tensor *tail = node->in[k + 1];
    for (int64_t v = 0; v < tail->cols; v++)
      *out++ = own[head->cols - tails + k] + ((const real *)tail->data)[r * tail->cols + v];
  }
}

// Whether a word precedes another one: more probable, or equally probable and with a lower id.
static bool comes_before(real value, int64_t id, real than, int64_t than_id) {
  return value > than || (value == than && id < than_id);
}

static void merge(const tarn__node *node, int64_t r) {
  const tarn__adaptive_merge *m = &((const tarn__adaptive_attr *)node->attr)->merge;
  const int64_t count = node->in[TARN__ADAPTIVE_IDS]->cols, most = node->in[TARN__ADAPTIVE_TAIL_IDS]->cols;
  const real *values = (const real *)node->in[TARN__ADAPTIVE_VALUES]->data + r * (count + 1);
  const int32_t *ids = (const int32_t *)node->in[TARN__ADAPTIVE_IDS]->data + r * count;
  const real *tail = (const real *)node->in[TARN__ADAPTIVE_TAIL_VALUES]->data + r * (most + 1);
  const int32_t *tail_ids = (const int32_t *)node->in[TARN__ADAPTIVE_TAIL_IDS]->data + r * most;
  real *to = (real *)node->out[0]->data + r * count;
  int32_t *to_ids = (int32_t *)node->out[1]->data + r * (count - 1);
  const int64_t base = m->shortlist > 0 ? m->shortlist : m->words;
  int64_t of_class = -1, i = 0, j = 0;
  for (int64_t k = 0; k < count; k++)
    if (ids[k] == base + m->tail) of_class = k;
  const bool none = of_class >= 0 && tail_ids[0] < 0;
  for (int64_t n = 0; n < count - 1; n++) {
    while (i < count && i == of_class) i++;
    const bool own = !none && i < count && ids[i] >= 0;
    const bool other = !none && of_class >= 0 && j < most && tail_ids[j] >= 0;
    const int64_t id = own ? ids[i] + (ids[i] >= base ? m->words - base : 0) : -1;
    const int64_t word = other ? m->first + tail_ids[j] : -1;
    const real value = other ? values[of_class] + tail[j] : 0;
    const bool takes = other && (!own || comes_before(value, word, values[i], id));
    to[n] = takes ? value : own ? values[i] : -(real)INFINITY;
    to_ids[n] = (int32_t)(takes ? word : id);
    j += takes;
    i += !takes && own;
  }
  to[count - 1] = values[count] + (m->always || none ? tail[most] : 0);
}

tarn_status TARN__REF(tarn__adaptive_scores_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  for (int64_t r = 0; r < node->out[0]->rows; r++)
    if (((const tarn__adaptive_attr *)node->attr)->top)
      merge(node, r);
    else
      all_words(node, r);
  return TARN_STATUS_OK;
}
