// Rotary positions, linear biases, average pooling and RMSNorm against transformers and PyTorch (make_parts.py).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"
#include "shadow_device.h"
#include "store/safetensors.h"

enum { HEADS = 2, WIDTH = 16, SMALL_POSITIONS = 9, MOST = 16 * 128 };

static tarn__safetensors golden;

static const tarn__stored *stored(const char *kind, const char *name) {
  char key[64];
  snprintf(key, sizeof key, "%s/%s", kind, name);
  const tarn__stored *t = tarn__safetensors_find(&golden, *kind ? key : name);
  if (!t) fail_msg("%s is not in parts.safetensors", key);
  return t;
}

static double number(const char *kind, const char *name) {
  char key[64];
  snprintf(key, sizeof key, "%s/%s", kind, name);
  const char *text = tarn__safetensors_text(&golden, key);
  if (!text) fail_msg("%s is not in parts.safetensors", key);
  return strtod(text, NULL);
}

// In which the ops are tried: double by the reference, fp32 by both, and by the fast kernels on memory that the
// host cannot touch. The last is not for nodes of this test's own, which write where the host does.
static const struct way {
  const tarn__device *device;
  tarn__dtype dtype;
  double tolerance;
} ways[] = {{&tarn__device_reference, TARN__F64, 1e-12},
            {&tarn__device_reference, TARN__F32, 1e-6},
            {&tarn__device_cpu, TARN__F32, 1e-6},
            {&shadow_device, TARN__F32, 1e-6}};
enum { WAYS = sizeof ways / sizeof ways[0], HOST_WAYS = WAYS - 1 };

static void *block;  // of the device, with the values of an input

// The values of a file's tensor of floats in the dtype of a graph, whose arena they live in.
static tarn__tensor *input(tarn__graph *graph, const tarn__stored *t) {
  const size_t n = (size_t)(t->shape[0] * t->shape[1]);
  void *data;
  assert_int_equal(t->bytes, n * sizeof(float));
  check_ok(tarn__arena_alloc(&graph->arena, &data, n, sizeof(double)));
  for (size_t i = 0; i < n; i++) check_store(data, graph->dtype, i, (double)((const float *)t->data)[i]);
  if (!graph->device->type->host_memory) {
    check_ok(tarn__device_allocate(graph->device, &block, TARN__MEMORY_OTHER, n, tarn__dtype_size(graph->dtype)));
    check_ok(tarn__device_put(graph->device, block, data, n * tarn__dtype_size(graph->dtype)));
    data = block;
  }
  return tarn__graph_external(graph, graph->dtype, t->shape[0], t->shape[1], data, t->name);
}

static tarn__tensor *ints(tarn__graph *graph, const int32_t *data, int64_t n) {
  return tarn__graph_input(graph, n, data, "ints");
}

// Runs a graph and copies a tensor of it.
static void run_graph(double *found, tarn__graph *graph, tarn__tensor *y) {
  y->keep = true;
  check_ok(tarn__graph_plan(graph));
  void *workspace, *values;
  tarn__host_room room = {0};
  check_ok(tarn__device_allocate(graph->device, &workspace, TARN__MEMORY_OTHER, graph->workspace_bytes, 1));
  tarn__graph_bind(graph, workspace);
  check_ok(tarn__graph_run(graph, &(tarn__exec){.threads = graph->threads}));
  assert_true(y->rows * y->cols <= MOST);
  check_ok(tarn__graph_read(graph, &values, y, &room));
  for (size_t i = 0; i < (size_t)(y->rows * y->cols); i++) found[i] = check_load(values, y->dtype, i);
  tarn__host_room_close(&room);
  tarn__device_free(graph->device, workspace);
  if (block) tarn__device_free(graph->device, block);
  block = NULL;
  tarn__graph_close(graph);
}

static void expect(const double *found, const tarn__stored *t, size_t first, size_t n, double tolerance) {
  for (size_t i = 0; i < n; i++) {
    const tarn__dtype dtype = strcmp(t->dtype, "F64") == 0 ? TARN__F64 : TARN__F32;
    const double expected = check_load(t->data, dtype, first + i);
    if (!(fabs(found[first + i] - expected) <= tolerance))
      fail_msg("%s[%zu]: %.15g, expected %.15g", t->name, first + i, found[first + i], expected);
  }
}

// What transformers computes in fp32 is compared in the rows whose positions are small.
static void rotary(void **state) {
  (void)state;
  static const char *const names[] = {"llama", "llama3", "neox"};
  static double found[MOST];
  const tarn__stored *positions = stored("", "positions");
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
    for (int w = 0; w < WAYS; w++) {
      tarn__graph graph = {0};
      tarn__graph_begin(&graph, ways[w].device, ways[w].dtype, false, 2);
      tarn__tensor *x = input(&graph, stored("x", names[k]));
      const size_t cols = (size_t)x->cols;
      const tarn__rotary_spec spec = {.heads = 2 * HEADS,
                                      .width = WIDTH,
                                      .rotated = (int64_t)number("rotated", names[k]),
                                      .base = number("base", names[k])};
      run_graph(found, &graph, tarn__rotary(&graph, x, ints(&graph, positions->data, positions->shape[0]), spec));
      expect(found, stored("rotary", names[k]), 0, (size_t)positions->shape[0] * cols, ways[w].tolerance);
      for (size_t r = 0; r < (size_t)positions->shape[0]; r++)
        if (((const int32_t *)positions->data)[r] < SMALL_POSITIONS)
          expect(found, stored("rotary32", names[k]), r * cols, cols, 1e-6);
    }
}

// Offsets of the sentences, `offsets` having room for them; returns how many they are.
static int64_t sentences(int32_t offsets[16]) {
  const tarn__stored *lengths = stored("", "lengths");
  const int64_t n = lengths->shape[0];
  for (int64_t s = 0; s < n; s++) offsets[s + 1] = offsets[s] + ((const int32_t *)lengths->data)[s];
  return n;
}

static void alibi(void **state) {
  (void)state;
  static const char *const names[] = {"bloom4", "bloom6", "mpt4", "mpt5"};
  static double found[MOST];
  int32_t offsets[16] = {0};
  const int64_t n = sentences(offsets);
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
    for (int w = 0; w < WAYS; w++) {
      tarn__graph graph = {0};
      tarn__graph_begin(&graph, ways[w].device, ways[w].dtype, false, 2);
      tarn__tensor *x = input(&graph, stored("x", names[k])), *at = ints(&graph, offsets, n + 1);
      const int64_t d = x->cols / 3;
      const tarn__attention_spec spec = {.heads = (int)number("heads", names[k]),
                                         .d = d,
                                         .key_column = d,
                                         .value_column = 2 * d,
                                         .causal = (int)number("causal", names[k]),
                                         .longest = 9,
                                         .alibi = number("exponent", names[k])};
      const size_t count = (size_t)(x->rows * d);
      run_graph(found, &graph, tarn__attention(&graph, x, x, at, at, spec));
      expect(found, stored("alibi", names[k]), 0, count, ways[w].tolerance);
    }
}

static void pooling(void **state) {
  (void)state;
  static const struct {
    const char *name;
    tarn__pooling_spec spec;
  } cases[] = {{"1", {1, 0}},       {"3", {3, 1}},       {"5", {5, 2}},
               {"3causal", {3, 2}}, {"4causal", {4, 3}}, {"20causal", {20, 19}}};
  static double found[MOST];
  int32_t offsets[16] = {0};
  const int64_t n = sentences(offsets);
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
    for (int w = 0; w < WAYS; w++) {
      tarn__graph graph = {0};
      tarn__graph_begin(&graph, ways[w].device, ways[w].dtype, false, 2);
      tarn__tensor *x = input(&graph, stored("x", "pooling"));
      const size_t count = (size_t)(x->rows * x->cols);
      run_graph(found, &graph, tarn__pooling(&graph, x, ints(&graph, offsets, n + 1), cases[k].spec));
      expect(found, stored("pooling", cases[k].name), 0, count, ways[w].tolerance);
    }
}

// A loss whose gradient with respect to y is the dy that PyTorch went back from; its own number does not matter.
static tarn_status run_loss(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  *(double *)node->out[0]->data = 0.0;
  return TARN_STATUS_OK;
}

static tarn_status run_dy(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->out[0];
  const float *values = *(const float *const *)node->attr;
  for (size_t i = 0; i < (size_t)(dy->rows * dy->cols); i++) check_store(dy->data, dy->dtype, i, (double)values[i]);
  return TARN_STATUS_OK;
}

static const tarn__op op_dy = {.id = CHECK_SEED, .name = "dy"};

static void grad_loss(tarn__graph *graph, tarn__node *node) {
  tarn__node *dy = tarn__graph_node(graph, &op_dy, sizeof(float *));
  memcpy(dy->attr, node->attr, sizeof(float *));
  dy->out[0] = tarn__graph_tensor(graph, node->in[0]->dtype, node->in[0]->rows, node->in[0]->cols, "dy");
  tarn__graph_emit(graph, dy);
  tarn__grad_add(graph, node->in[0], dy->out[0]);
}

static const tarn__op op_loss = {.id = CHECK_SUM, .name = "loss", .grad = grad_loss};

static void rms(void **state) {
  (void)state;
  const tarn__stored *gain = stored("gain", "rms"), *dy = stored("dy", "rms");
  const size_t d = (size_t)gain->shape[0], n = (size_t)dy->shape[0] * d;
  for (int w = 0; w < HOST_WAYS; w++) {
    static double found[MOST], value[MOST], grad[MOST];
    for (int which = 0; which < 2; which++) {
      tarn__graph graph = {0};
      tarn__graph_begin(&graph, ways[w].device, ways[w].dtype, true, 2);
      check_extend(&graph, run_dy, run_loss);
      for (size_t i = 0; i < d; i++) check_store(value, ways[w].dtype, i, (double)((const float *)gain->data)[i]);
      tarn__param param = {.name = "gain", .rows = 1, .cols = (int64_t)d, .trained = true, .dtype = ways[w].dtype};
      param.value = value, param.training.grad = grad;
      tarn__tensor *x = input(&graph, stored("x", "rms"));
      x->needs_grad = true;
      tarn__tensor *y = tarn__residual_norm(&graph, x, NULL, 0.0,
                                            (tarn__norm){.form = TARN__NORM_RMS, .epsilon = 1e-6, .gain = &param})
                            .y;
      tarn__node *loss = tarn__graph_node(&graph, &op_loss, sizeof(float *));
      memcpy(loss->attr, &dy->data, sizeof(float *));
      loss->in[0] = y;
      loss->out[0] = tarn__graph_tensor(&graph, TARN__F64, 1, 2, "loss");
      tarn__graph_emit(&graph, loss);
      tarn__graph_differentiate(&graph, loss->out[0]);
      run_graph(found, &graph, which ? x->grad : y);
      expect(found, stored("rms", which ? "dx" : "y"), 0, n, 2.0 * ways[w].tolerance);
      for (size_t i = 0; i < d; i++) found[i] = check_load(grad, ways[w].dtype, i);
      expect(found, stored("rms", "dgain"), 0, d, 2.0 * ways[w].tolerance);
    }
  }
}

static int open_golden(void **state) {
  (void)state;
  return tarn__safetensors_open(&golden, TARN_SOURCE_DIR "/tests/golden/parts.safetensors") != TARN_STATUS_OK;
}

static int close_golden(void **state) {
  (void)state;
  tarn__safetensors_close(&golden);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rotary), cmocka_unit_test(alibi), cmocka_unit_test(pooling),
                                     cmocka_unit_test(rms)};
  return cmocka_run_group_tests(tests, open_golden, close_golden);
}
