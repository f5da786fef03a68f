// Memory traffic of nodes.
#include "graph/entries.h"
#include "graph/graph.h"

double tarn__tensor_bytes(const tarn__tensor *tensor) {
  if (!tensor) return 0.0;
  if (tensor->param && tensor->param->entries > 0) return (double)tarn__param_value_bytes(tensor->param);
  const tarn__rounding rounding = tensor->param ? tensor->param->decoding.rounding : TARN__ROUNDING_NONE;
  const double each = rounding == TARN__ROUNDING_INT8   ? 1.0
                      : rounding == TARN__ROUNDING_INT4 ? 17.0 / 32.0  // with the factor of a group
                                                        : (double)tarn__dtype_size(tensor->dtype);
  return (double)tensor->rows * (double)tensor->cols * each;
}

static const tarn__tensor *owner(const tarn__tensor *tensor) {
  while (tensor->shares) tensor = tensor->shares;
  return tensor;
}

// Whether an earlier input is the same matrix, such as queries and keys of one product.
static bool counted(const tarn__node *node, int input) {
  const tarn__tensor *tensor = node->in[input];
  for (int i = 0; i < input; i++) {
    const tarn__tensor *other = node->in[i];
    if (other && owner(other) == owner(tensor) && (!tensor->param || tensor->param == other->param)) return true;
  }
  return false;
}

static double gradient_bytes(const tarn__param *param) {
  const double size = param->dtype == TARN__F64 ? sizeof(double) : sizeof(float);
  return (double)param->rows * (double)param->cols * size * (param->training.grad_written ? 2.0 : 1.0);
}

double tarn__update_bytes(const tarn__param *param) {
  const double count = (double)param->rows * (double)param->cols;
  const double real = param->dtype == TARN__F64 ? sizeof(double) : sizeof(float);
  const bool copy = param->value != (const void *)param->training.master;
  const double moments = 4.0 * (double)tarn__moment_bytes(param->training.moments, (size_t)count);
  return count * (3.0 * real + (copy ? (double)tarn__dtype_size(param->dtype) : 0.0)) + moments;
}

double tarn__node_bytes(const tarn__node *node) {
  if (node->op->bytes) return node->op->bytes(node);
  double bytes = 0.0;
  for (int i = 0; i < TARN__MAX_INPUTS; i++)
    if (node->in[i] && !counted(node, i)) bytes += tarn__tensor_bytes(node->in[i]);
  for (int i = 0; i < TARN__MAX_OUTPUTS; i++) bytes += tarn__tensor_bytes(node->out[i]);
  for (int i = 0; i < TARN__MAX_PARAM_GRADS; i++)
    if (node->dparam[i]) bytes += gradient_bytes(node->dparam[i]);
  return bytes;
}
