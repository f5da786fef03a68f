// Checks of ops: the fast kernels against the reference in double, and the gradients of the reference against finite
// differences. A test describes a small model by one build function, which is run once for every graph:
//
//   static void build(check *c, tarn__graph *graph, const void *spec) {
//     tarn__tensor *x = check_input(c, graph, 17, 24, 1.0, true);      // random, wants a gradient
//     tarn__param *w = check_param(c, 8, 24, 0.2, true);               // random, trained
//     check_output(c, tarn__linear(graph, x, w, NULL, TARN__RELU));    // summed with random weights into the loss
//   }
//   ... check_kernels(build, spec, "linear 17 x 24", 1e-5, 2e-2);  check_gradients(build, spec, "linear", 1e-7);
//
// Include it after cmocka.h.
#ifndef TARN_TESTS_KERNEL_CHECK_H
#define TARN_TESTS_KERNEL_CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "base/threads.h"
#include "device/devices.h"
#include "device/stream.h"
#include "graph/graph.h"
#include "kernels/bits_check.h"

enum { CHECK_MAX = 12, CHECK_THREADS = 2 };

typedef enum check_kind { CHECK_INPUT, CHECK_PARAM, CHECK_INTS } check_kind;

// An input or parameter: the values as doubles that bf16 holds exactly, so that all kernels start from equal numbers.
typedef struct check_item {
  check_kind kind;
  int64_t rows, cols;
  bool wants_grad;
  double *value;
  double *grad;  // of the last run; NULL without
  void *data;    // the values in the dtype of the run, or int32_t for INTS
  tarn__tensor *tensor;
  tarn__param param;
} check_item;

typedef struct check {
  check_item item[CHECK_MAX];
  int items, next;  // next: counts the calls during one build
  tarn__tensor *output[CHECK_MAX];
  double *output_value[CHECK_MAX];  // of the last run
  size_t output_size[CHECK_MAX];
  int outputs;
  tarn__tensor *loss;  // set by check_loss(), else summed from the outputs
  bool own_loss;
  double loss_value;
  double *output_weight[CHECK_MAX];  // of the sum
  tarn__random random;
  tarn__dtype dtype;
  void (*after)(const tarn__graph *graph);  // told of each run while its tensors are there; NULL: nobody
} check;

typedef void (*check_build)(check *c, tarn__graph *graph, const void *spec);

static inline void check_ok(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("status %d: %s", (int)status, tarn_error_message());
}

static inline void *check_alloc(size_t count, size_t size) {
  void *memory = NULL;
  check_ok(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, size));
  return memory;
}

static inline void check_store(void *data, tarn__dtype dtype, size_t i, double value) {
  if (dtype == TARN__F64)
    ((double *)data)[i] = value;
  else if (dtype == TARN__F32)
    ((float *)data)[i] = (float)value;
  else if (dtype == TARN__BF16)
    ((uint16_t *)data)[i] = tarn__bf16_from_f32((float)value);
  else
    ((int32_t *)data)[i] = (int32_t)value;
}

static inline double check_load(const void *data, tarn__dtype dtype, size_t i) {
  if (dtype == TARN__F64) return ((const double *)data)[i];
  if (dtype == TARN__F32) return ((const float *)data)[i];
  if (dtype == TARN__BF16) return tarn__bf16_to_f32(((const uint16_t *)data)[i]);
  return ((const int32_t *)data)[i];
}

// The device under test: that of TARN_DEVICE ("cuda"), else the processor.
static inline const tarn__device *check_device(void) {
  static const tarn__device *device;
  const char *name = getenv("TARN_DEVICE");
  if (device == NULL) {
    setenv("TARN_CUDA_MANAGED", "1", 1);  // its memory is the host's too
    device = &tarn__device_cpu;
    if (name != NULL) check_ok(tarn__device_find(&device, name));
  }
  return device;
}

// Zeroed memory that the device under test and the host read and write, in turns.
static inline void *check_shared(size_t bytes) {
  void *memory = NULL;
  check_ok(tarn__device_allocate(check_device(), &memory, TARN__MEMORY_OTHER, bytes, 1));
  return memory;
}

static inline void check_shared_free(void *memory) { tarn__device_free(check_device(), memory); }

// The item of this call: made at the first build, the same one at every later build.
static inline check_item *check_next(check *c, check_kind kind, int64_t rows, int64_t cols, double scale, bool grad) {
  assert_true(c->next < CHECK_MAX);
  check_item *item = &c->item[c->next++];
  if (c->next > c->items) {
    c->items = c->next;
    size_t n = (size_t)(rows * cols);
    *item = (check_item){.kind = kind, .rows = rows, .cols = cols, .wants_grad = grad};
    item->value = check_alloc(n, sizeof(double));
    item->grad = check_alloc(n, sizeof(double));
    item->data = check_shared(n * sizeof(double));
    for (size_t i = 0; i < n; i++) {
      float value = (float)(scale * tarn__random_normal(&c->random));
      item->value[i] = tarn__bf16_to_f32(tarn__bf16_from_f32(value));
    }
  }
  return item;
}

// A random matrix of activations, normal with standard deviation `scale`.
static inline tarn__tensor *check_input(check *c, tarn__graph *graph, int64_t rows, int64_t cols, double scale,
                                        bool grad) {
  check_item *item = check_next(c, CHECK_INPUT, rows, cols, scale, grad);
  for (size_t i = 0; i < (size_t)(rows * cols); i++) check_store(item->data, graph->dtype, i, item->value[i]);
  item->tensor = tarn__graph_external(graph, graph->dtype, rows, cols, item->data, "check input");
  item->tensor->needs_grad = grad && graph->training;
  return item->tensor;
}

// An I32 row of the given numbers.
static inline tarn__tensor *check_ints(check *c, tarn__graph *graph, const int32_t *ints, int64_t n) {
  check_item *item = check_next(c, CHECK_INTS, 1, n, 0.0, false);
  memcpy(item->data, ints, (size_t)n * sizeof *ints);
  return item->tensor = tarn__graph_input(graph, n, item->data, "check ints");
}

// A random parameter; `mean` is added by check_param_around(), for gains of norms.
static inline tarn__param *check_param_around(check *c, int64_t rows, int64_t cols, double mean, double scale,
                                              bool trained) {
  bool first = c->next == c->items;
  check_item *item = check_next(c, CHECK_PARAM, rows, cols, scale, trained);
  size_t n = (size_t)(rows * cols);
  for (size_t i = 0; first && i < n; i++)
    item->value[i] = tarn__bf16_to_f32(tarn__bf16_from_f32((float)(item->value[i] + mean)));
  tarn__dtype dtype = c->dtype == TARN__BF16 && rows == 1 ? TARN__F32 : c->dtype;
  for (size_t i = 0; i < n; i++) check_store(item->data, dtype, i, item->value[i]);
  void *grad = item->param.training.grad;
  if (trained && grad == NULL) grad = check_shared(n * sizeof(double));
  item->param = (tarn__param){.name = "check param",
                              .rows = rows,
                              .cols = cols,
                              .trained = trained,
                              .uses = 1,
                              .dtype = dtype,
                              .value = item->data,
                              .training.grad = grad};
  return &item->param;
}

static inline tarn__param *check_param(check *c, int64_t rows, int64_t cols, double scale, bool trained) {
  return check_param_around(c, rows, cols, 0.0, scale, trained);
}

// A result to compare; it enters the loss with random weights.
static inline void check_output(check *c, tarn__tensor *tensor) {
  assert_true(c->outputs < CHECK_MAX);
  tensor->keep = true;
  c->output[c->outputs++] = tensor;
}

// The F64 [1, *] result of an op that is itself a loss; its first element is differentiated.
static inline void check_loss(check *c, tarn__tensor *loss) {
  loss->keep = true;
  c->loss = loss;
}

// The loss of outputs without one of their own: sum of weight * output. An op like any other.
static tarn_status check_sum_run(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  TARN_TRY(tarn__device_synchronise(check_device()));
  check *c = *(check **)node->attr;
  double loss = 0.0;
  for (int k = 0; k < c->outputs; k++) {
    const tarn__tensor *y = node->in[k];
    for (size_t i = 0; i < (size_t)(y->rows * y->cols); i++)
      loss += c->output_weight[k][i] * check_load(y->data, y->dtype, i);
  }
  *(double *)node->out[0]->data = loss;
  return TARN_STATUS_OK;
}

typedef struct check_seed_attr {
  check *c;
  int output;
} check_seed_attr;

static tarn_status check_seed_run(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  TARN_TRY(tarn__device_synchronise(check_device()));
  const check_seed_attr *attr = node->attr;
  const tarn__tensor *dy = node->out[0];
  for (size_t i = 0; i < (size_t)(dy->rows * dy->cols); i++)
    check_store(dy->data, dy->dtype, i, attr->c->output_weight[attr->output][i]);
  return TARN_STATUS_OK;
}

enum { CHECK_SEED = TARN__OPS, CHECK_SUM, CHECK_OPS };  // numbers of ops of a test, behind those of every device

// Gives the graph a device that is the one it has, with kernels for two ops of a test. One graph at a time.
static inline void check_extend(tarn__graph *graph, tarn__kernel seed, tarn__kernel sum) {
  static tarn__device_kernel kernels[CHECK_OPS];
  static tarn__device_type type;
  static tarn__device device;
  memcpy(kernels, graph->kernels, TARN__OPS * sizeof *kernels);
  kernels[CHECK_SEED] = (tarn__device_kernel){.run = seed};
  kernels[CHECK_SUM] = (tarn__device_kernel){.run = sum};
  type = *graph->device->type;
  type.ops = CHECK_OPS;
  type.kernels[graph->dtype] = graph->kernels = kernels;
  device = *graph->device;
  device.type = &type;
  graph->device = &device;
}

static const tarn__op check_seed_op = {.id = CHECK_SEED, .name = "check_seed"};

static void check_sum_grad(tarn__graph *graph, tarn__node *node) {
  check *c = *(check **)node->attr;
  for (int k = 0; k < c->outputs; k++) {
    tarn__tensor *y = node->in[k];
    if (!y->needs_grad) continue;
    tarn__node *seed = tarn__graph_node(graph, &check_seed_op, sizeof(check_seed_attr));
    *(check_seed_attr *)seed->attr = (check_seed_attr){c, k};
    seed->out[0] = tarn__graph_tensor(graph, y->dtype, y->rows, y->cols, "check seed");
    tarn__graph_emit(graph, seed);
    tarn__grad_add(graph, y, seed->out[0]);
  }
}

static const tarn__op check_sum_op = {.id = CHECK_SUM, .name = "check_sum", .grad = check_sum_grad};

static inline void check_sum(check *c, tarn__graph *graph) {
  check_extend(graph, check_seed_run, check_sum_run);
  tarn__node *node = tarn__graph_node(graph, &check_sum_op, sizeof(check *));
  *(check **)node->attr = c;
  for (int k = 0; k < c->outputs; k++) {
    tarn__tensor *y = node->in[k] = c->output[k];
    size_t n = (size_t)(y->rows * y->cols);
    if (c->output_weight[k] != NULL) continue;
    c->output_weight[k] = check_alloc(n, sizeof(double));
    c->output_value[k] = check_alloc(n, sizeof(double));
    c->output_size[k] = n;
    for (size_t i = 0; i < n; i++)
      c->output_weight[k][i] = tarn__bf16_to_f32(tarn__bf16_from_f32((float)tarn__random_normal(&c->random)));
  }
  c->loss = node->out[0] = tarn__graph_tensor(graph, TARN__F64, 1, 2, "check loss");
  c->loss->keep = true;
  tarn__graph_emit(graph, node);
}

static inline void check_read_item(check_item *item, bool training) {
  if (item->kind == CHECK_INTS || !item->wants_grad || !training) return;
  bool param = item->kind == CHECK_PARAM;
  const tarn__tensor *grad = param ? NULL : item->tensor->grad;
  if (param && !item->param.training.grad_written) fail_msg("no kernel wrote the gradient of a trained parameter");
  if (!param && grad == NULL) fail_msg("an input that wants a gradient got none");
  tarn__dtype dtype = !param ? grad->dtype : item->param.dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  const void *data = param ? item->param.training.grad : grad->data;
  for (size_t i = 0; i < (size_t)(item->rows * item->cols); i++) item->grad[i] = check_load(data, dtype, i);
}

// What the fast kernels computed goes on the record of bits.
static inline void check_record(const check *c, bool training) {
  if (c->own_loss) bits_add(&c->loss_value, 1);
  for (int k = 0; k < c->outputs; k++)
    if (c->output_value[k] != NULL) bits_add(c->output_value[k], c->output_size[k]);
  for (int i = 0; training && i < c->items; i++)
    if (c->item[i].wants_grad) bits_add(c->item[i].grad, (size_t)(c->item[i].rows * c->item[i].cols));
  bits_trace(c->dtype == TARN__BF16 ? "bf16" : "f32");
}

// Builds, differentiates (if training), plans and runs the model once; results are in item[].grad, output_value[] and
// loss_value. The workspace starts full of NaNs, so that nothing may rely on what it finds there.
static inline void check_run(check *c, check_build build, const void *spec, const tarn__device *device,
                             tarn__dtype dtype, bool training) {
  tarn__graph graph = {0};
  c->next = c->outputs = 0;
  c->loss = NULL;
  c->dtype = dtype;
  tarn__graph_begin(&graph, device, dtype, training, CHECK_THREADS);
  build(c, &graph, spec);
  c->own_loss = c->loss != NULL;
  if (!c->own_loss) check_sum(c, &graph);
  if (training) tarn__graph_differentiate(&graph, c->loss);
  for (int i = 0; i < c->items; i++)
    if (c->item[i].tensor != NULL && c->item[i].tensor->grad != NULL) c->item[i].tensor->grad->keep = true;
  check_ok(tarn__graph_plan(&graph));
  uint8_t *workspace = check_shared(graph.workspace_bytes);
  memset(workspace, 0xFF, graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  tarn__exec exec = {.threads = CHECK_THREADS, .spread = true, .seed = 7, .step = 3};
  check_ok(tarn__graph_run(&graph, &exec));
  check_ok(tarn__device_synchronise(check_device()));
  if (c->after) c->after(&graph);
  for (int i = 0; i < c->items; i++) check_read_item(&c->item[i], training);
  for (int k = 0; k < c->outputs; k++)
    for (size_t i = 0; c->output_value[k] != NULL && i < c->output_size[k]; i++)
      c->output_value[k][i] = check_load(c->output[k]->data, c->output[k]->dtype, i);
  c->loss_value = *(const double *)c->loss->data;
  if (device == check_device()) check_record(c, training);
  for (int i = 0; i < c->items; i++) c->item[i].tensor = NULL;
  check_shared_free(workspace);
  tarn__graph_close(&graph);
}

// Plans, binds and runs a graph that was built by hand, copies its result y and closes it.
static inline tarn_status check_result(void *out, tarn__graph *graph, tarn__tensor *y) {
  y->keep = true;
  tarn_status status = tarn__graph_plan(graph);
  void *workspace = check_shared(graph->workspace_bytes);
  if (status == TARN_STATUS_OK) {
    tarn__graph_bind(graph, workspace);
    status = tarn__graph_run(graph, &(tarn__exec){.threads = graph->threads, .spread = true});
    if (status == TARN_STATUS_OK) status = tarn__device_synchronise(check_device());
  }
  if (status == TARN_STATUS_OK) memcpy(out, y->data, (size_t)(y->rows * y->cols) * tarn__dtype_size(y->dtype));
  check_shared_free(workspace);
  tarn__graph_close(graph);
  return status;
}

static inline void check_open(check *c) {
  *c = (check){0};
  tarn__random_init(&c->random, 20, 1);
}

static inline void check_close(check *c) {
  for (int i = 0; i < c->items; i++) {
    tarn__free(c->item[i].value);
    tarn__free(c->item[i].grad);
    check_shared_free(c->item[i].data);
    check_shared_free(c->item[i].param.training.grad);
  }
  for (int k = 0; k < CHECK_MAX; k++) {
    tarn__free(c->output_weight[k]);
    tarn__free(c->output_value[k]);
  }
}

// |a - b| <= tolerance * (|b| + root mean square of b) for every element.
static inline void check_close_to(const double *a, const double *b, size_t n, double tolerance, const char *name,
                                  const char *what, int which) {
  double squares = 0.0, worst = -1.0;
  size_t where = 0;
  for (size_t i = 0; i < n; i++) squares += b[i] * b[i];
  double rms = n > 0 ? sqrt(squares / (double)n) : 0.0;
  for (size_t i = 0; i < n; i++) {
    double error = fabs(a[i] - b[i]) / (fabs(b[i]) + rms + 1e-30);
    if (!(error <= worst)) worst = error, where = i;
    if (isnan(error)) break;
  }
  if (n > 0 && !(worst <= tolerance))
    fail_msg("%s: %s %d: element %zu is %.9g, expected %.9g (relative error %.3g, allowed %.3g)", name, what, which,
             where, a[where], b[where], worst, tolerance);
}

static inline void check_same(const check *a, const check *b, bool training, double tolerance, const char *name) {
  // The sum of outputs with random signs says nothing that the outputs do not say.
  if (b->own_loss) check_close_to(&a->loss_value, &b->loss_value, 1, tolerance, name, "loss", 0);
  for (int k = 0; k < b->outputs; k++)
    if (b->output_value[k] != NULL)
      check_close_to(a->output_value[k], b->output_value[k], b->output_size[k], tolerance, name, "output", k);
  for (int i = 0; training && i < b->items; i++)
    if (b->item[i].wants_grad)
      check_close_to(a->item[i].grad, b->item[i].grad, (size_t)(b->item[i].rows * b->item[i].cols), tolerance, name,
                     "gradient of item", i);
}

// Whether this case leaves the comparison with the reference to the record of bits.
static inline bool check_proven(void) {
  static int cases;
  return bits_prove() && (getenv(BITS_PROVE) || cases++ % 3 != 0);
}

// Whether this case belongs to another process, each of which runs a share of all: TARN_TEST_SHARE is "1/3" in the
// first of three.
static inline bool check_elsewhere(void) {
  static int cases;
  int share, shares;
  const char *text = getenv("TARN_TEST_SHARE");
  if (text == NULL || sscanf(text, "%d/%d", &share, &shares) != 2 || shares < 1) return false;
  return cases++ % shares != share % shares;
}

// Runs the fast kernels alone.
static inline void check_bits_only(check_build build, const void *spec, bool training, bool bf16) {
  check tried;
  check_open(&tried);
  check_run(&tried, build, spec, check_device(), TARN__F32, training);
  if (bf16) check_run(&tried, build, spec, check_device(), TARN__BF16, training);
  check_close(&tried);
}

// The reference in float, the fast kernels in F32 and in BF16 against the reference in double.
static inline void check_kernels_mode(check_build build, const void *spec, const char *name, bool training,
                                      double tolerance_f32, double tolerance_bf16) {
  if (check_elsewhere()) return;
  if (check_proven()) {
    check_bits_only(build, spec, training, tolerance_bf16 > 0.0);
    return;
  }
  check exact, tried;
  check_open(&exact);
  check_open(&tried);
  char text[160];
  check_run(&exact, build, spec, &tarn__device_reference, TARN__F64, training);
  if (check_device() == &tarn__device_cpu) {  // once is enough
    check_run(&tried, build, spec, &tarn__device_reference, TARN__F32, training);
    snprintf(text, sizeof text, "%s, reference f32", name);
    check_same(&tried, &exact, training, tolerance_f32, text);
  }
  check_run(&tried, build, spec, check_device(), TARN__F32, training);
  snprintf(text, sizeof text, "%s, %s f32", name, check_device()->name);
  check_same(&tried, &exact, training, tolerance_f32, text);
  if (tolerance_bf16 > 0.0) {
    check_run(&tried, build, spec, check_device(), TARN__BF16, training);
    snprintf(text, sizeof text, "%s, %s bf16", name, check_device()->name);
    check_same(&tried, &exact, training, tolerance_bf16, text);
  }
  check_close(&exact);
  check_close(&tried);
}

// With gradients; a tolerance of 0 for bf16 leaves bf16 out.
static inline void check_kernels(check_build build, const void *spec, const char *name, double tolerance_f32,
                                 double tolerance_bf16) {
  check_kernels_mode(build, spec, name, true, tolerance_f32, tolerance_bf16);
}

// The gradients of the reference in double against 4-point finite differences, at up to 24 elements of every input and
// parameter that wants one.
static inline void check_gradients(check_build build, const void *spec, const char *name, double tolerance) {
  enum { POINTS = 4, ELEMENTS = 24 };
  if (check_device() != &tarn__device_cpu) return;  // says nothing about a device
  static const double at[POINTS] = {1.0, -1.0, 2.0, -2.0}, weight[POINTS] = {8.0, -8.0, -1.0, 1.0};
  const double h = 1e-5;
  check c;
  check_open(&c);
  check_run(&c, build, spec, &tarn__device_reference, TARN__F64, true);
  tarn__random random;
  tarn__random_init(&random, 5, 2);
  int checked = 0;
  for (int k = 0; k < c.items; k++) {
    check_item *item = &c.item[k];
    if (!item->wants_grad || item->kind == CHECK_INTS) continue;
    checked++;
    check_run(&c, build, spec, &tarn__device_reference, TARN__F64, true);  // the last one was at other values
    size_t n = (size_t)(item->rows * item->cols), count = n < ELEMENTS ? n : ELEMENTS;
    double *expected = check_alloc(count, sizeof(double)), *found = check_alloc(count, sizeof(double));
    size_t *element = check_alloc(count, sizeof(size_t));
    for (size_t e = 0; e < count; e++) {
      element[e] = n <= ELEMENTS ? e : (size_t)tarn__random_below(&random, n);
      found[e] = item->grad[element[e]];
    }
    for (size_t e = 0; e < count; e++) {
      double kept = item->value[element[e]];
      for (int p = 0; p < POINTS; p++) {
        item->value[element[e]] = kept + at[p] * h;
        check_run(&c, build, spec, &tarn__device_reference, TARN__F64, true);
        expected[e] += weight[p] * c.loss_value / (12.0 * h);
      }
      item->value[element[e]] = kept;
    }
    check_close_to(found, expected, count, tolerance, name, "gradient of item", k);
    tarn__free(expected);
    tarn__free(found);
    tarn__free(element);
  }
  if (checked == 0) fail_msg("%s: nothing in it wants a gradient", name);
  check_close(&c);
}

// All tests, and then the record of bits.
static inline int check_run_all(int (*run)(void)) {
  tarn__threads_set(CHECK_THREADS);  // as every user of the library does: denormal numbers are flushed
  const int failures = run();
  return failures != 0 || bits_so_far.count == 0 ? failures : bits_end(bits_program());
}

// For main(): runs all tests once for every instruction set of this machine, or for the one that TARN_ISA names. It is
// read once a process, so each gets its own; waiting threads sleep, because tests share the machine.
static inline int check_each_isa(int (*run)(void)) {
#ifdef TARN_ARM
  static const char *const names[] = {"portable", "neon", "neon_dot", "neon_bf16", "sve_256", "sve_512"};
#else
  static const char *const names[] = {"portable", "avx2", "avx512", "avx512_bf16", "amx"};
#endif
  const char *wanted = getenv("TARN_ISA");
  if (getenv("TARN_DEVICE") != NULL) return check_run_all(run);
  if (wanted != NULL && getenv("TARN_EACH_ISA") && strcmp(wanted, tarn__isa_name()) != 0) {
    printf("%s: not of this machine or this build\n", wanted);  // would be another one's tests again
    return 0;
  }
  if (wanted != NULL) return check_run_all(run);
  int failures = 0;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      setenv("TARN_ISA", names[i], 1);
      setenv("TARN_EACH_ISA", "1", 1);
      if (i > 0) setenv(BITS_PROVE, "1", 1);
      setenv("OMP_WAIT_POLICY", "passive", 1);
      execl("/proc/self/exe", "test", (char *)NULL);
      _exit(127);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      fprintf(stderr, "TARN_ISA=%s: failed\n", names[i]);
      failures++;
    }
  }
  return failures;
}

#endif
