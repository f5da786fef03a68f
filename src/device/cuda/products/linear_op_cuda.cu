// The op linear and its gradients: products of product.h, with the activation as part of the product where it can be.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/product.h"
#include "device/cuda/products/activation_op_cuda.h"

extern "C" {
#include "ops/activation.h"
#include "ops/linear.h"
}

// y = act(x weight^T + bias). An activation that keeps z is that of the z which is stored, as on the processor; only
// the one that cuBLASLt has takes it as it was before rounding.
template <typename T>
static tarn_status linear(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0], *weight = node->in[1], *bias = node->in[2];
  const tarn__tensor *y = node->out[TARN__LINEAR_Y], *z = node->out[TARN__LINEAR_Z];
  const tarn__activation form = ((const tarn__linear_attr *)node->attr)->activation;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const bool after = tarn__keeps_z(form) && form != TARN__GELU_TANH;
  tarn__product product = {};
  product.m = x->rows;
  product.n = y->cols;
  product.k = x->cols;
  product.a = x->data;
  product.b = weight->data;
  product.c = after && z ? z->data : y->data;
  product.lda = x->cols;
  product.ldb = weight->cols;
  product.ldc = y->cols;
  product.transpose_b = true;
  product.dtype = x->dtype;
  product.out = y->dtype;
  product.fp32 = node->fp32;
  product.alpha = 1.0f;
  product.bias = bias ? (const float *)bias->data : nullptr;
  product.epilogue = form == TARN__RELU        ? TARN__EPILOGUE_RELU
                     : form == TARN__GELU_TANH ? TARN__EPILOGUE_GELU_TANH
                                               : TARN__EPILOGUE_NONE;
  product.z = form == TARN__GELU_TANH && z ? z->data : nullptr;
  product.batch = 1;
  TARN_TRY(tarn__cuda_product(&product, stream));
  if (!after) return TARN_STATUS_OK;
  return tarn__cuda_activate((T *)y->data, (const T *)product.c, y->rows * y->cols, form, stream);
}

static tarn_status linear_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(linear, node->in[0]->dtype, exec, node);
}

// dx (+)= dz weight, then through an activation
static tarn_status dx_node(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dz = node->in[0], *weight = node->in[1], *dx = node->out[0];
  tarn__product product = {};
  product.m = dz->rows;
  product.n = dx->cols;
  product.k = dz->cols;
  product.a = dz->data;
  product.b = weight->data;
  product.c = dx->data;
  product.lda = dz->cols;
  product.ldb = weight->cols;
  product.ldc = dx->cols;
  product.dtype = dz->dtype;
  product.out = dx->dtype;
  product.fp32 = node->fp32;
  product.alpha = 1.0f;
  product.beta = node->in[TARN__LINEAR_DX_PREVIOUS] ? 1.0f : 0.0f;
  product.batch = 1;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  TARN_TRY(tarn__cuda_product(&product, stream));
  const tarn__tensor *saved = node->in[TARN__LINEAR_DX_SAVED];
  if (!saved) return TARN_STATUS_OK;
  return tarn__cuda_through_activation(dx, saved, ((const tarn__linear_attr *)node->attr)->activation, nullptr, nullptr,
                                       stream);
}

// dweight (+)= dz^T x, and the sums of the columns of dz
static tarn_status dweight_node(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dz = node->in[0], *x = node->in[1];
  tarn__product product = {};
  product.m = dz->cols;
  product.n = x->cols;
  product.k = x->rows;
  product.a = dz->data;
  product.b = x->data;
  product.c = node->dparam[0]->training.grad;
  product.lda = dz->cols;
  product.ldb = x->cols;
  product.ldc = x->cols;
  product.transpose_a = true;
  product.dtype = dz->dtype;
  product.out = TARN__F32;
  product.fp32 = node->fp32;
  product.alpha = 1.0f;
  product.beta = tarn__param_accumulate(node->dparam[0]) ? 1.0f : 0.0f;
  product.batch = 1;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  if (node->dparam[1])
    TARN_TRY(tarn__cuda_through_activation(dz, nullptr, TARN__IDENTITY, node->dparam[1], node->scratch, stream));
  return tarn__cuda_product(&product, stream);
}

static size_t dweight_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return tarn__cuda_bias_scratch(node->in[0], node->dparam[1]);
}

void tarn__cuda_linear_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_LINEAR].run = linear_node;
  kernels[TARN__OP_LINEAR_DX].run = dx_node;
  kernels[TARN__OP_LINEAR_DWEIGHT] = {dweight_node, dweight_scratch};
}
