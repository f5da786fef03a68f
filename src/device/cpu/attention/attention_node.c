#include <string.h>

#include "device/cpu/attention/relative_attention_kernels.h"
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/node_tables.h"
#include "ops/attention.h"
#include "ops/rotary.h"

// Zeroes the columns of a gradient tensor that attention does not write (the tensor holds more than q, k and v). begin,
// width: of the `count` parts that it writes.
static void zero_other_columns(const tarn__tensor *tensor, const int64_t *begin, const int64_t *width, int count) {
  int64_t written = 0;
  for (int i = 0; i < count; i++) written += width[i];
  if (tensor->cols == written) return;
  const size_t size = tarn__dtype_size(tensor->dtype);
  for (int64_t r = 0; r < tensor->rows; r++) {
    int64_t c = 0;
    while (c < tensor->cols) {
      int64_t next = tensor->cols, resume = tensor->cols;
      for (int i = 0; i < count; i++)
        if (begin[i] >= c && begin[i] < next) next = begin[i], resume = begin[i] + width[i];
      memset((char *)tensor->data + (size_t)(r * tensor->cols + c) * size, 0, (size_t)(next - c) * size);
      c = resume;
    }
  }
}

void tarn__cpu_attention_zero_unwritten(const tarn__node *node) {
  const tarn__attention_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__attention_backward b = tarn__attention_backward_of(node);
  const int64_t kv = tarn__attention_kv_width(attr);
  const int64_t begin[] = {spec->query_column, spec->key_column, spec->value_column}, width[] = {spec->d, kv, kv};
  if (b.dqueries && b.dqueries == b.dkeys_values) {
    if (!b.add_queries) zero_other_columns(b.dqueries, begin, width, 3);
    return;
  }
  if (b.dqueries && !b.add_queries) zero_other_columns(b.dqueries, begin, width, 1);
  if (b.dkeys_values && !b.add_keys_values) zero_other_columns(b.dkeys_values, begin + 1, width + 1, 2);
}

// Whether a rotation of the tensor of queries, of keys, or of both turns all of their heads and nothing else.
static bool turns_heads(const tarn__node *rotary, const tarn__attention_attr *attr, bool queries, bool keys) {
  const tarn__rotary_spec *turned = &((const tarn__rotary_attr *)rotary->attr)->spec;
  const tarn__attention_spec *spec = &attr->spec;
  if (turned->width != spec->d / spec->heads) return false;
  if (queries && keys)
    return turned->column == spec->query_column && spec->key_column == spec->query_column + spec->d &&
           turned->heads == spec->heads + attr->kv_heads;
  if (queries) return turned->column == spec->query_column && turned->heads == spec->heads;
  return keys && turned->column == spec->key_column && turned->heads == attr->kv_heads;
}

// Rotations right before self-attention and, of gradients, right behind it. In the forward pass a head of keys must
// belong to one head of queries, which turns it.
bool tarn__cpu_attention_joins(const tarn__node *node, const tarn__node *other, bool before) {
  const bool forward = node->op->id == TARN__OP_ATTENTION && other->op->id == TARN__OP_ROTARY && before;
  if (!forward &&
      !(node->op->id == TARN__OP_ATTENTION_BACKWARD && other->op->id == TARN__OP_ROTARY_BACKWARD && !before))
    return false;
  const tarn__attention_attr *attr = node->attr;
  if (forward && attr->kv_heads != attr->spec.heads) return false;
  if (node->in[TARN__ATTENTION_QUERY_OFFSETS] != tarn__attention_key_offsets(node)) return false;
  if (forward) {
    const tarn__tensor *y = other->out[0];
    return turns_heads(other, attr, y == node->in[TARN__ATTENTION_QUERIES], y == node->in[TARN__ATTENTION_KEYS_VALUES]);
  }
  const tarn__attention_backward b = tarn__attention_backward_of(node);
  const tarn__tensor *dy = other->in[TARN__ROTARY_X];
  return turns_heads(other, attr, dy == b.dqueries, dy == b.dkeys_values);
}

tarn_status tarn__cpu_attention_backward(const tarn__exec *exec, const tarn__node *node) {
  TARN_TRY(TARN__TABLE_NOW(tarn__attention_kernels)->backward(exec, node));
  tarn__cpu_attention_zero_unwritten(node);
  return TARN_STATUS_OK;
}
