#include "ops/output_mixture.h"

#include <math.h>

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

// Arrays in the scratch: logits [K, V], log p [V], and for each softmax the log of its prior divided by its sum.
typedef struct row {
  real *logits, *log_p, *shift;
  int64_t words, mixtures, width;
} row;

static row row_of(const tarn__node *node) {
  const tarn__tensor *table = node->in[TARN__MIXTURE_TABLE];
  row r = {.words = table->rows, .mixtures = node->in[TARN__MIXTURE_PRIOR]->cols, .width = table->cols};
  r.logits = node->scratch;
  r.log_p = r.logits + r.mixtures * r.words;
  r.shift = r.log_p + r.words;
  return r;
}

static double log_sum(const real *x, int64_t n, int64_t step, const real *add) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, (double)x[i * step] + (add ? (double)add[i] : 0));
  for (int64_t i = 0; i < n; i++) sum += exp((double)x[i * step] + (add ? (double)add[i] : 0) - most);
  return most + log(sum);
}

// shift_k = log pi_k - log sum_v exp(logits_kv), so that log p_v = log sum_k exp(logits_kv + shift_k).
static void fill(const row *w, const tarn__node *node, int64_t r) {
  const tarn__tensor *bias = node->in[TARN__MIXTURE_BIAS];
  const real *h = (const real *)node->in[TARN__MIXTURE_H]->data + r * w->mixtures * w->width;
  const real *table = node->in[TARN__MIXTURE_TABLE]->data;
  const real *prior = (const real *)node->in[TARN__MIXTURE_PRIOR]->data + r * w->mixtures;
  const double priors = log_sum(prior, w->mixtures, 1, NULL);
  for (int64_t k = 0; k < w->mixtures; k++) {
    for (int64_t v = 0; v < w->words; v++) {
      real sum = bias ? ((const real *)bias->data)[v] : 0;
      for (int64_t i = 0; i < w->width; i++) sum += h[k * w->width + i] * table[v * w->width + i];
      w->logits[k * w->words + v] = sum;
    }
    w->shift[k] = (real)((double)prior[k] - priors - log_sum(w->logits + k * w->words, w->words, 1, NULL));
  }
  for (int64_t v = 0; v < w->words; v++) w->log_p[v] = (real)log_sum(w->logits + v, w->mixtures, w->words, w->shift);
}

static double wanted(const tarn__mixture_attr *attr, const row *w, int64_t v, int32_t target) {
  return attr->smoothing / (double)w->words + (v == target ? 1.0 - attr->smoothing : 0.0);
}

// The share of softmax k in the probability of a word.
static double share(const row *w, int64_t k, int64_t v) {
  return exp((double)w->logits[k * w->words + v] + (double)w->shift[k] - (double)w->log_p[v]);
}

// Replaces logits by their gradients.
static void differentiate(const row *w, const tarn__node *node, int64_t r) {
  const tarn__mixture_attr *attr = node->attr;
  const int32_t target = ((const int32_t *)node->in[TARN__MIXTURE_TARGETS]->data)[r];
  const real *prior = (const real *)node->in[TARN__MIXTURE_PRIOR]->data + r * w->mixtures;
  const double priors = log_sum(prior, w->mixtures, 1, NULL);
  tarn__tensor *dprior = node->out[TARN__MIXTURE_DPRIOR];
  for (int64_t k = 0; k < w->mixtures; k++) {
    const double log_pi = (double)prior[k] - priors;
    double all = 0;
    for (int64_t v = 0; v < w->words; v++) all += wanted(attr, w, v, target) * share(w, k, v);
    if (dprior) ((real *)dprior->data)[r * w->mixtures + k] = (real)(attr->grad_scale * (exp(log_pi) - all));
    for (int64_t v = 0; v < w->words; v++) {
      const double part = share(w, k, v);
      const double s = exp((double)w->logits[k * w->words + v] + (double)w->shift[k] - log_pi);
      w->logits[k * w->words + v] = (real)(attr->grad_scale * (s * all - wanted(attr, w, v, target) * part));
    }
  }
}

static void begin_gradient(tarn__param *param) {
  if (!param || tarn__param_accumulate(param)) return;
  for (int64_t i = 0; i < param->rows * param->cols; i++) ((real *)param->training.grad)[i] = 0;
}

static void add_gradients(const row *w, const tarn__node *node, int64_t r) {
  const real *h = (const real *)node->in[TARN__MIXTURE_H]->data + r * w->mixtures * w->width;
  const real *table = node->in[TARN__MIXTURE_TABLE]->data;
  tarn__tensor *dh = node->out[TARN__MIXTURE_DH];
  for (int64_t k = 0; k < w->mixtures; k++)
    for (int64_t i = 0; i < w->width; i++) {
      real sum = 0;
      for (int64_t v = 0; v < w->words; v++) {
        const real d = w->logits[k * w->words + v];
        sum += d * table[v * w->width + i];
        if (node->dparam[0]) ((real *)node->dparam[0]->training.grad)[v * w->width + i] += d * h[k * w->width + i];
        if (node->dparam[1] && i == 0) ((real *)node->dparam[1]->training.grad)[v] += d;
      }
      if (dh) ((real *)dh->data)[(r * w->mixtures + k) * w->width + i] = sum;
    }
}

static void loss(const row *w, const tarn__node *node, int64_t r, double sums[2]) {
  const tarn__mixture_attr *attr = node->attr;
  const int32_t target = ((const int32_t *)node->in[TARN__MIXTURE_TARGETS]->data)[r];
  double smoothed = 0.0;
  for (int64_t v = 0; v < w->words; v++) smoothed -= wanted(attr, w, v, target) * (double)w->log_p[v];
  if (node->out[TARN__MIXTURE_ROWS]) {
    double *own = (double *)node->out[TARN__MIXTURE_ROWS]->data + 2 * r;
    own[0] = smoothed;
    own[1] = -(double)w->log_p[target];
  }
  sums[0] += smoothed;
  sums[1] -= (double)w->log_p[target];
  if (!node->out[TARN__MIXTURE_DH] && !node->out[TARN__MIXTURE_DPRIOR] && !node->dparam[0] && !node->dparam[1]) return;
  differentiate(w, node, r);
  add_gradients(w, node, r);
}

// The best words of a row, most likely first; ties are broken by lower id.
static void top(const row *w, const tarn__node *node, int64_t r) {
  const tarn__output_top_attr *attr = &((const tarn__mixture_attr *)node->attr)->top;
  real *values = (real *)node->out[0]->data + r * (attr->best + 1);
  int32_t *ids = (int32_t *)node->out[1]->data + r * attr->best;
  for (int64_t i = 0; i < attr->best; i++) {
    int64_t next = -1;
    for (int64_t v = 0; v < w->words; v++) {
      const int64_t before = i > 0 ? ids[i - 1] : -1;
      const bool behind =
          i == 0 ||
          (before >= 0 && (w->log_p[v] < w->log_p[before] || (w->log_p[v] == w->log_p[before] && v > before)));
      if (behind && (next < 0 || w->log_p[v] > w->log_p[next])) next = v;
    }
    ids[i] = (int32_t)next;
    values[i] = next < 0 ? -(real)INFINITY : w->log_p[next];
  }
  values[attr->best] = w->log_p[attr->always];
}

tarn_status TARN__REF(tarn__output_mixture_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__mixture_attr *attr = node->attr;
  const row w = row_of(node);
  double *sums = attr->mode == TARN__MIXTURE_LOSS ? node->out[TARN__MIXTURE_SUMS]->data : NULL;
  begin_gradient(node->dparam[0]);
  begin_gradient(node->dparam[1]);
  if (sums) sums[0] = sums[1] = 0.0;
  for (int64_t r = 0; r < node->in[TARN__MIXTURE_H]->rows; r++) {
    fill(&w, node, r);
    if (sums) loss(&w, node, r, sums);
    if (attr->mode == TARN__MIXTURE_TOP) top(&w, node, r);
    for (int64_t v = 0; attr->mode == TARN__MIXTURE_LOG && v < w.words; v++)
      ((real *)node->out[0]->data)[r * w.words + v] = w.log_p[v];
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__output_mixture_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  const int64_t words = node->in[TARN__MIXTURE_TABLE]->rows, mixtures = node->in[TARN__MIXTURE_PRIOR]->cols;
  return (size_t)((mixtures + 1) * words + mixtures) * sizeof(real);
}
