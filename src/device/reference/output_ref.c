#include <math.h>

#include "device/reference/reference_kernels.h"
#include "ops/output.h"

typedef TARN_REAL real;

// Computes the logits of row r; returns the log of the sum of their exponentials.
static real row_logits(real *logits, const tarn__node *node, int64_t r) {
  const tarn__tensor *x = node->in[0], *table = node->in[1], *bias = node->in[2];
  int64_t words = table->rows, d = table->cols;
  real most = -(real)INFINITY, sum = 0;
  for (int64_t j = 0; j < words; j++) {
    real logit = bias != NULL ? ((const real *)bias->data)[j] : 0;
    for (int64_t i = 0; i < d; i++)
      logit += ((const real *)x->data)[r * d + i] * ((const real *)table->data)[j * d + i];
    logits[j] = logit;
    if (!(logit <= most)) most = logit;
  }
  for (int64_t j = 0; j < words; j++) sum += (real)exp((double)(logits[j] - most));
  return most + (real)log((double)sum);
}

// The gradients of a parameter are added to its buffer, which is cleared first if it is empty.
static void begin_gradient(tarn__param *param) {
  if (param == NULL || tarn__param_accumulate(param)) return;
  for (int64_t i = 0; i < param->rows * param->cols; i++) ((real *)param->training.grad)[i] = 0;
}

static void row_gradients(const tarn__node *node, const real *dlogits, int64_t r) {
  const tarn__tensor *x = node->in[0], *table = node->in[1], *dx = node->out[1];
  tarn__param *dtable = node->dparam[0], *dbias = node->dparam[1];
  int64_t words = table->rows, d = table->cols;
  for (int64_t j = 0; dtable != NULL && j < words; j++)
    for (int64_t i = 0; i < d; i++)
      ((real *)dtable->training.grad)[j * d + i] += dlogits[j] * ((const real *)x->data)[r * d + i];
  for (int64_t j = 0; dbias != NULL && j < words; j++) ((real *)dbias->training.grad)[j] += dlogits[j];
  // Last, because dx may overwrite x.
  for (int64_t i = 0; dx != NULL && i < d; i++) {
    real sum = 0;
    for (int64_t j = 0; j < words; j++) sum += dlogits[j] * ((const real *)table->data)[j * d + i];
    ((real *)dx->data)[r * d + i] = sum;
  }
}

tarn_status TARN__REF(tarn__output_loss_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__output_attr *attr = node->attr;
  const tarn__tensor *x = node->in[0], *table = node->in[1];
  const int32_t *targets = node->in[3]->data;
  bool wants_grad = node->out[1] != NULL || node->dparam[0] != NULL || node->dparam[1] != NULL;
  real *logits = node->scratch;
  double *loss = node->out[0]->data;
  double *rows = node->out[2] != NULL ? node->out[2]->data : NULL;
  int64_t words = table->rows;
  begin_gradient(node->dparam[0]);
  begin_gradient(node->dparam[1]);
  loss[0] = loss[1] = 0.0;
  for (int64_t r = 0; r < x->rows; r++) {
    real log_sum = row_logits(logits, node, r);
    double nll = (double)(log_sum - logits[targets[r]]), all = 0.0;
    for (int64_t j = 0; j < words; j++) all += (double)(log_sum - logits[j]);
    loss[1] += nll;
    double smoothed = (1.0 - attr->smoothing) * nll + attr->smoothing * all / (double)words;
    loss[0] += smoothed;
    if (rows) {
      rows[2 * r] = smoothed;
      rows[2 * r + 1] = nll;
    }
    if (!wants_grad) continue;
    for (int64_t j = 0; j < words; j++) {
      double wanted = attr->smoothing / (double)words + (j == targets[r] ? 1.0 - attr->smoothing : 0.0);
      logits[j] = (real)((exp((double)(logits[j] - log_sum)) - wanted) * attr->grad_scale);
    }
    row_gradients(node, logits, r);
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__output_log_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__output_log_attr *attr = node->attr;
  int64_t words = node->in[1]->rows;
  for (int64_t r = 0; r < node->in[0]->rows; r++) {
    real *row = (real *)node->out[0]->data + r * words;
    real log_sum = row_logits(row, node, r);
    if (attr->raw) continue;
    for (int64_t j = 0; j < words; j++) row[j] -= log_sum;
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__output_loss_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(node->in[1]->rows) * sizeof(real);
}
