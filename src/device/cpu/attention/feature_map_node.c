// Features of linear attention: threads process blocks of rows, head by head; those of the softmax kernel use a product
// with W, which is packed once.
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#include "device/cpu/attention/linear_attention_kernels.h"
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "ops/feature_map.h"

enum {
  BLOCK = 128,  // rows
  ROWS = 16     // steps for measuring the scratch of products with fewer rows
};

// x W^T of a block of rows or, `back`, g W. `packed`: whether W is packed.
static tarn__gemm product_of(const tarn__node *node, int64_t rows, bool back) {
  const tarn__feature_map_spec *spec = node->attr;
  const tarn__tensor *w = node->in[TARN__FEATURE_MAP_PROJECTION];
  return (tarn__gemm){.m = rows,
                      .n = back ? spec->width : spec->features,
                      .k = back ? spec->features : spec->width,
                      .b = w->data,
                      .lda = back ? spec->features : node->in[TARN__FEATURE_MAP_X]->cols,
                      .ldb = spec->width,
                      .ldc = back ? spec->width : spec->features,
                      .dtype = w->dtype,
                      .c_dtype = TARN__F32,
                      .fp32 = node->fp32,
                      .transpose_b = !back};
}

static bool is_backward(const tarn__node *node) { return node->op->id == TARN__OP_FEATURE_MAP_BACKWARD; }

// The scratch: W packed, and for each thread products, de as a factor, the sums of its rows, and scratch of a product.
typedef struct layout {
  size_t packed, products, weighed, sums, scratch;
} layout;

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static layout layout_of(const tarn__node *node) {
  const tarn__feature_map_spec *spec = node->attr;
  const bool back = is_backward(node);
  layout l = {0};
  if (!node->in[TARN__FEATURE_MAP_PROJECTION]) return l;
  tarn__gemm g = product_of(node, BLOCK, back);
  l.packed = aligned(tarn__gemm_pack_bytes(&g));
  g.packed = &g;  // any non-NULL value: W will be packed
  for (g.m = ROWS; g.m <= BLOCK; g.m += ROWS) {
    const size_t bytes = tarn__gemm_scratch(&g, 1);
    if (bytes > l.scratch) l.scratch = bytes;
  }
  l.scratch = aligned(l.scratch + l.scratch / 4);  // the last block may have any number of rows; multiply() checks
  l.products = aligned((size_t)(BLOCK * g.n) * sizeof(float));
  if (back) l.weighed = aligned((size_t)(BLOCK * spec->features) * tarn__dtype_size(g.dtype));
  l.sums = aligned(BLOCK * sizeof(float));
  return l;
}

static size_t own_bytes(const layout *l) { return l->products + l->weighed + l->sums + l->scratch; }

size_t tarn__cpu_feature_map_scratch(const tarn__node *node, int threads) {
  const layout l = layout_of(node);
  return l.packed + own_bytes(&l) * (size_t)threads;
}

// The state of a thread.
typedef struct work {
  const tarn__node *node;
  const tarn__linear_attention_kernels *kernels;
  tarn__gemm product;
  float *products, *sums;
  void *weighed, *scratch;
  size_t scratch_bytes;
  bool overrun;
} work;

static work work_of(const tarn__node *node, const layout *l, int thread) {
  char *own = (char *)node->scratch + l->packed + own_bytes(l) * (size_t)thread;
  return (work){.node = node,
                .kernels = TARN__TABLE_NOW(tarn__linear_attention_kernels),
                .products = (float *)(void *)own,
                .weighed = own + l->products,
                .sums = (float *)(void *)(own + l->products + l->weighed),
                .scratch = own + l->products + l->weighed + l->sums,
                .scratch_bytes = l->scratch};
}

static float scale_of(const tarn__feature_map_spec *spec) { return 1.0f / sqrtf(sqrtf((float)spec->width)); }

static void multiply(work *w, const void *rows, int64_t count) {
  w->product.m = count;
  w->product.a = rows;
  w->product.c = w->products;
  if (tarn__gemm_scratch(&w->product, 1) > w->scratch_bytes)
    w->overrun = true;
  else
    tarn__gemm_run(&w->product, 1, w->scratch);
}

static void forward_block(work *w, int64_t row, int64_t count, int64_t h) {
  const tarn__feature_map_spec *spec = w->node->attr;
  const tarn__band x =
      tarn__band_of(w->node->in[TARN__FEATURE_MAP_X], row, count, tarn__features_column(spec, h), spec->width);
  const tarn__band to = tarn__band_of(w->node->out[0], row, count, h * spec->features, spec->features);
  if (!w->node->in[TARN__FEATURE_MAP_PROJECTION]) {
    w->kernels->elu(to, x);
    return;
  }
  multiply(w, x.data, count);
  const tarn__band products = {w->products, TARN__F32, spec->features, count, spec->features};
  w->kernels->exponents(to, products, x, scale_of(spec), h < spec->heads);
}

// Columns of the gradient of x that no head writes are zeroed first, unless the heads add.
static void backward_block(work *w, int64_t row, int64_t count, int64_t h) {
  const tarn__feature_map_spec *spec = w->node->attr;
  const tarn__tensor *x = w->node->in[TARN__FEATURE_MAP_X], *dx = w->node->out[0];
  const bool add = w->node->in[TARN__FEATURE_MAP_PREVIOUS] != NULL;
  const int64_t column = tarn__features_column(spec, h), at = h * spec->features;
  const tarn__band to = tarn__band_of(dx, row, count, column, spec->width);
  const tarn__band phi = tarn__band_of(w->node->in[TARN__FEATURE_MAP_PHI], row, count, at, spec->features);
  const tarn__band dphi = tarn__band_of(w->node->in[TARN__FEATURE_MAP_DPHI], row, count, at, spec->features);
  if (h == 0 && !add)
    memset(tarn__band_of(dx, row, count, 0, dx->cols).data, 0,
           (size_t)(count * dx->cols) * tarn__dtype_size(dx->dtype));
  if (!w->node->in[TARN__FEATURE_MAP_PROJECTION]) {
    w->kernels->elu_back(to, phi, dphi, add);
    return;
  }
  const tarn__band g = {w->weighed, x->dtype, spec->features, count, spec->features};
  w->kernels->mask(g, dphi, NULL, false, w->sums);
  multiply(w, g.data, count);
  w->kernels->pull(to, (tarn__band){w->products, TARN__F32, spec->width, count, spec->width},
                   h < spec->heads ? NULL : w->sums, tarn__band_of(x, row, count, column, spec->width), scale_of(spec),
                   add);
}

// All directions of a block of rows of the forward pass.
static void tangent_block(work *w, int64_t row, int64_t count, int64_t h) {
  const tarn__feature_map_spec *spec = w->node->attr;
  const tarn__tensor *x = w->node->in[TARN__FEATURE_MAP_X], *dx = w->node->in[TARN__FEATURE_MAP_DX];
  const int64_t column = tarn__features_column(spec, h), at = h * spec->features;
  const tarn__band own = tarn__band_of(x, row, count, column, spec->width);
  const tarn__band phi = tarn__band_of(w->node->in[TARN__FEATURE_MAP_PHI], row, count, at, spec->features);
  for (int64_t moved_row = row; moved_row < dx->rows; moved_row += x->rows) {
    const tarn__band moved = tarn__band_of(dx, moved_row, count, column, spec->width);
    const tarn__band to = tarn__band_of(w->node->out[0], moved_row, count, at, spec->features);
    if (!w->node->in[TARN__FEATURE_MAP_PROJECTION]) {
      w->kernels->elu_back(to, phi, moved, false);
      continue;
    }
    multiply(w, moved.data, count);
    const tarn__band products = {w->products, TARN__F32, spec->features, count, spec->features};
    w->kernels->push(to, products, own, moved, scale_of(spec), h < spec->heads);
  }
}

static tarn_status run_all(const tarn__exec *exec, const tarn__node *node,
                           void (*block)(work *w, int64_t row, int64_t count, int64_t h)) {
  const tarn__feature_map_spec *spec = node->attr;
  const bool back = is_backward(node), by_product = node->in[TARN__FEATURE_MAP_PROJECTION];
  const int64_t rows = node->in[TARN__FEATURE_MAP_X]->rows, blocks = (rows + BLOCK - 1) / BLOCK;
  const layout l = layout_of(node);
  tarn__gemm product = {0};
  atomic_bool overrun = false;
  if (by_product) {
    product = product_of(node, BLOCK, back);
    tarn__gemm_pack(node->scratch, &product, exec->threads);
    product.packed = node->scratch;
  }
#pragma omp parallel num_threads(exec->threads)
  {
    work w = work_of(node, &l, omp_get_thread_num());
    w.product = product;
#pragma omp for schedule(static)
    for (int64_t b = 0; b < blocks; b++)
      for (int64_t h = 0; h < 2 * spec->heads; h++)
        block(&w, b * BLOCK, rows - b * BLOCK < BLOCK ? rows - b * BLOCK : BLOCK, h);
    if (w.overrun) atomic_store(&overrun, true);
  }
  TARN_REQUIRE(!atomic_load(&overrun), INTERNAL, "%s: a product needs more scratch than was planned", node->op->name);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_feature_map(const tarn__exec *exec, const tarn__node *node) {
  return run_all(exec, node, forward_block);
}

tarn_status tarn__cpu_feature_map_backward(const tarn__exec *exec, const tarn__node *node) {
  return run_all(exec, node, backward_block);
}

tarn_status tarn__cpu_feature_map_tangent(const tarn__exec *exec, const tarn__node *node) {
  return run_all(exec, node, tangent_block);
}
