// Plain C reference.
#include "device/reference/reference_kernels.h"
#include "ops/token_linear.h"

typedef TARN_REAL real;

static real *values(const tarn__tensor *tensor) { return tensor->data; }

// W[i][k] with the causal mask applied.
static real weight_at(const tarn__token_attr *attr, const tarn__tensor *weight, int64_t i, int64_t k) {
  return attr->spec.causal && k > i ? 0 : values(weight)[i * weight->cols + k];
}

static tarn__token_sentence sentence(const tarn__token_attr *attr, const tarn__tensor *offsets, int64_t s) {
  const int32_t *offset = offsets->data;
  return tarn__token_sentence_of(attr, s, offset[s], offset[s + 1] - offset[s]);
}

// Element i of a bias; 0 without one.
static real bias_at(const tarn__node *node, int64_t i) {
  const tarn__tensor *bias = node->in[TARN__TOKENS_BIAS];
  return bias ? values(bias)[i] : 0;
}

// Computes element `at` of the result from z.
static void finish(const tarn__node *node, int64_t at, real z) {
  const tarn__tensor *gate = node->in[TARN__TOKENS_GATE], *added = node->in[TARN__TOKENS_ADDED];
  if (added) z += values(added)[at];
  if (node->out[TARN__TOKENS_Z]) values(node->out[TARN__TOKENS_Z])[at] = z;
  values(node->out[TARN__TOKENS_Y])[at] = gate ? values(gate)[at] * z : z;
}

tarn_status TARN__REF(tarn__token_linear_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__token_attr *attr = node->attr;
  const tarn__tensor *x = node->in[TARN__TOKENS_X], *offsets = node->in[TARN__TOKENS_OFFSETS];
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const tarn__token_sentence at = sentence(attr, offsets, s);
    for (int64_t i = 0; i < at.out; i++)
      for (int64_t c = 0; c < x->cols; c++) {
        real z = 0;
        for (int64_t k = 0; k < at.in; k++)
          z += weight_at(attr, node->in[TARN__TOKENS_WEIGHT], i, k) * values(x)[(at.in_row + k) * x->cols + c];
        finish(node, (at.out_row + i) * x->cols + c, z + bias_at(node, i));
      }
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__token_linear_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__TOKENS_X], *weight = node->in[TARN__TOKENS_WEIGHT];
  const int32_t *list = node->in[TARN__TOKENS_ROWS]->data, *range = node->in[TARN__TOKENS_RANGES]->data;
  const int64_t d = node->out[0]->cols, column = ((const tarn__token_attr *)node->attr)->column;
  for (int64_t r = 0; r < node->out[0]->rows; r++) {
    const int64_t count = range[2 * r + 1] - range[2 * r];
    for (int64_t c = 0; c < d; c++) {
      real z = 0;
      for (int64_t k = 0; k < count; k++)
        z += values(weight)[(count - 1) * weight->cols + k] * values(x)[list[range[2 * r] + k] * x->cols + column + c];
      finish(node, r * d + c, z + bias_at(node, count - 1));
    }
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__token_linear_dx_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__token_attr *attr = node->attr;
  const tarn__tensor *dy = node->in[TARN__TOKENS_DX_DY], *offsets = node->in[TARN__TOKENS_DX_OFFSETS];
  const tarn__tensor *dgate = node->out[TARN__TOKENS_DGATE], *dx = node->out[TARN__TOKENS_DX];
  const tarn__tensor *dz = node->out[TARN__TOKENS_DZ] ? node->out[TARN__TOKENS_DZ] : dy;
  for (int64_t i = 0; dgate && i < dy->rows * dy->cols; i++) {
    const real g = values(dy)[i] * values(node->in[TARN__TOKENS_DX_Z])[i];
    values(dgate)[i] = node->in[TARN__TOKENS_DX_PREVIOUS_GATE] ? values(dgate)[i] + g : g;
  }
  for (int64_t i = 0; dz != dy && i < dy->rows * dy->cols; i++)
    values(dz)[i] = values(dy)[i] * values(node->in[TARN__TOKENS_DX_GATE])[i];
  for (int64_t s = 0; dx && s + 1 < offsets->cols; s++) {
    const tarn__token_sentence at = sentence(attr, offsets, s);
    for (int64_t k = 0; k < at.in; k++)
      for (int64_t c = 0; c < dx->cols; c++) {
        real g = 0, *to = values(dx) + (at.in_row + k) * dx->cols + c;
        for (int64_t i = 0; i < at.out; i++)
          g += weight_at(attr, node->in[TARN__TOKENS_DX_WEIGHT], i, k) * values(dz)[(at.out_row + i) * dx->cols + c];
        *to = node->in[TARN__TOKENS_DX_PREVIOUS] ? *to + g : g;
      }
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__token_linear_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dz = node->in[TARN__TOKENS_TANGENT_DZ], *dadded = node->in[TARN__TOKENS_TANGENT_DADDED];
  const tarn__tensor *gate = node->in[TARN__TOKENS_TANGENT_GATE], *dgate = node->in[TARN__TOKENS_TANGENT_DGATE];
  const int64_t size = gate->rows * gate->cols;
  for (int64_t i = 0; i < node->out[0]->rows * gate->cols; i++) {
    real sum = (dz ? values(dz)[i] : 0) + (dadded ? values(dadded)[i] : 0);
    sum *= values(gate)[i % size];
    if (dgate) sum += values(dgate)[i] * values(node->in[TARN__TOKENS_TANGENT_Z])[i % size];
    values(node->out[0])[i] = sum;
  }
  return TARN_STATUS_OK;
}

// The gradient of a parameter to add to, cleared first if this is the first addition.
static real *gradient_of(tarn__param *param) {
  if (!param) return NULL;
  real *grad = param->training.grad;
  if (!tarn__param_accumulate(param))
    for (int64_t i = 0; i < param->rows * param->cols; i++) grad[i] = 0;
  return grad;
}

tarn_status TARN__REF(tarn__token_linear_dweight_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__token_attr *attr = node->attr;
  const tarn__tensor *dz = node->in[TARN__TOKENS_DWEIGHT_DZ], *x = node->in[TARN__TOKENS_DWEIGHT_X];
  const tarn__tensor *offsets = node->in[TARN__TOKENS_DWEIGHT_OFFSETS];
  real *dweight = gradient_of(node->dparam[0]), *dbias = gradient_of(node->dparam[1]);
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const tarn__token_sentence at = sentence(attr, offsets, s);
    for (int64_t i = 0; i < at.out; i++) {
      const real *row = values(dz) + (at.out_row + i) * dz->cols;
      for (int64_t c = 0; dbias && c < dz->cols; c++) dbias[i] += row[c];
      for (int64_t k = 0; dweight && k < (attr->spec.causal ? i + 1 : at.in); k++)
        for (int64_t c = 0; c < dz->cols; c++)
          dweight[i * node->dparam[0]->cols + k] += row[c] * values(x)[(at.in_row + k) * dz->cols + c];
    }
  }
  return TARN_STATUS_OK;
}
