// Times the ops of a training step at the shapes of the models, forward and backward.
//   bench_kernels CASE fp32|split6|split3|bf16 THREADS      or bench_kernels --list
// split6 and split3 are fp32 through tiles (train.fp32), where the processor has them.
// A case is a graph of one op on 4,096 rows, or the optimiser's pass. Every node is timed separately, after an
// uncounted run; prints medians as one line of JSON:
//   {"case", "precision", "threads", "rows", "parts": [{"op", "seconds", "flops", "bytes"}]}
// Most cases have this number of rows; a step of a recurrence has 32. flops is 0 if operations are not counted.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "device/devices.h"
#include "graph/graph.h"
#include "ops/hadamard.h"
#include "ops/ops.h"
#include "optim/adam.h"

enum { ROWS = 4096, WORDS = 10000, LEAST_RUNS = 5, MOST_RUNS = 100, MOST_NODES = 16, MOST_PARAMS = 4 };

// The contents of a case; its memory is in the arena until the end of the program.
typedef struct bench {
  tarn__arena arena;
  tarn__graph graph;
  tarn__dtype dtype;
  tarn__fp32 fp32;
  int threads;
  tarn__param params[MOST_PARAMS];
  int param_count;
  tarn_status status;  // of the first allocation that failed
} bench;

typedef struct bench_case {
  const char *name;
  tarn__tensor *(*build)(bench *b, const struct bench_case *c);  // returns the output, or the loss
  int64_t d, out;                                                // widths of input and output; of a head
  int length;                                                    // tokens of a sentence, for attention; tarn__moments
  bool flag;                                                     // relu; causal
} bench_case;

static void *take(bench *b, size_t count, size_t size) {
  void *memory = NULL;
  tarn_status status = tarn__arena_alloc(&b->arena, &memory, count, size);
  if (b->status == TARN_STATUS_OK) b->status = status;
  return memory;
}

// Uniform numbers in +-scale; a simple rule is enough to measure speed.
static void fill(void *data, tarn__dtype dtype, size_t count, double scale) {
  uint32_t state = 12345;
  for (size_t i = 0; data && i < count; i++) {
    state = state * 1664525u + 1013904223u;
    float value = (float)(scale * ((double)(state >> 8) / 8388608.0 - 1.0));
    if (dtype == TARN__BF16)
      ((uint16_t *)data)[i] = tarn__bf16_from_f32(value);
    else
      ((float *)data)[i] = value;
  }
}

static tarn__tensor *input(bench *b, int64_t cols) {
  size_t count = (size_t)(ROWS * cols);
  void *data = take(b, count, tarn__dtype_size(b->dtype));
  fill(data, b->dtype, count, 1.0);
  tarn__tensor *x = tarn__graph_external(&b->graph, b->dtype, ROWS, cols, data, "bench input");
  x->needs_grad = true;
  return x;
}

static tarn__param *param(bench *b, int64_t rows, int64_t cols) {
  size_t count = (size_t)(rows * cols);
  tarn__param *p = &b->params[b->param_count++];
  *p = (tarn__param){.name = "bench param", .rows = rows, .cols = cols, .trained = true, .uses = 1};
  p->dtype = rows == 1 ? TARN__F32 : b->dtype;
  p->training.master = take(b, count, sizeof(float));
  p->value = p->dtype == TARN__F32 ? p->training.master : take(b, count, tarn__dtype_size(p->dtype));
  p->training.grad = take(b, count, sizeof(float));
  double scale = sqrt(6.0 / (double)(rows + cols));
  fill(p->training.master, TARN__F32, count, scale);
  fill(p->value, p->dtype, count, scale);
  return p;
}

// I32 numbers first, first + step, ... modulo `limit`.
static tarn__tensor *numbers(bench *b, int64_t count, int64_t step, int64_t limit) {
  int32_t *data = take(b, (size_t)count, sizeof *data);
  for (int64_t i = 0; data && i < count; i++) data[i] = (int32_t)(i * step % limit);
  return tarn__graph_input(&b->graph, count, data, "bench numbers");
}

// --- the cases -------------------------------------------------------------------------------------------------------

static tarn__tensor *build_linear(bench *b, const bench_case *c) {
  tarn__tensor *x = input(b, c->d);
  tarn__param *weight = param(b, c->out, c->d);
  return tarn__linear(&b->graph, x, weight, param(b, 1, c->out), c->flag ? TARN__RELU : TARN__IDENTITY);
}

// The parameter holds the signs; they are frozen, so the backward pass is only the input gradient.
static tarn__tensor *build_hadamard(bench *b, const bench_case *c) {
  const int blocks = (int)(c->out / c->d);
  tarn__hadamard_shape shape = tarn__hadamard_shape_of(c->out, c->d, blocks);
  tarn__tensor *x = input(b, c->d);
  tarn__param *signs = param(b, tarn__hadamard_sign_rows(&shape), shape.width);
  tarn__param *bias = param(b, 1, c->out);
  signs->dtype = TARN__F32;
  signs->value = signs->training.master;
  signs->trained = bias->trained = false;
  signs->out = c->out;
  signs->in = c->d;
  signs->init.blocks = blocks;
  for (int64_t i = 0; signs->training.master && i < signs->rows * signs->cols; i++)
    signs->training.master[i] = signs->training.master[i] < 0 ? -1.0f : 1.0f;
  return tarn__hadamard(&b->graph, x, signs, bias, TARN__IDENTITY);
}

static tarn__tensor *build_output(bench *b, const bench_case *c) {
  static const double grad_scale = 1.0 / ROWS;
  tarn__tensor *x = input(b, c->d);
  tarn__param *table = param(b, c->out, c->d);
  return tarn__output_loss(&b->graph, x, table, NULL, numbers(b, ROWS, 7919, c->out), 0.1, grad_scale);
}

// A step of a recurrence: the product of the states of 32 sentences with the matrix of all gates.
static tarn__tensor *build_step(bench *b, const bench_case *c) {
  tarn__tensor *x = input(b, c->d);
  x->rows = 32;
  return tarn__linear(&b->graph, x, param(b, c->out, c->d), NULL, TARN__IDENTITY);
}

static tarn__tensor *attention(bench *b, const bench_case *c, double alibi) {
  const int64_t sentences = ROWS / c->length;
  tarn__tensor *qkv = input(b, 3 * c->d);
  qkv->rows = sentences * c->length;
  tarn__tensor *offsets = numbers(b, sentences + 1, c->length, INT32_MAX);
  tarn__attention_spec spec = {.heads = (int)(c->d / c->out),
                               .d = c->d,
                               .key_column = c->d,
                               .value_column = 2 * c->d,
                               .causal = c->flag,
                               .longest = c->length,
                               .alibi = alibi};
  return tarn__attention(&b->graph, qkv, qkv, offsets, offsets, spec);
}

static tarn__tensor *build_attention(bench *b, const bench_case *c) { return attention(b, c, 0.0); }

static tarn__tensor *build_alibi(bench *b, const bench_case *c) { return attention(b, c, 8.0); }

static tarn__tensor *build_glu(bench *b, const bench_case *c) {
  return tarn__glu(&b->graph, input(b, 2 * c->d), TARN__SIGMOID);
}

// Sentences of 20, 4 heads, `out` taps; `flag`: dynamic.
static tarn__tensor *build_conv(bench *b, const bench_case *c) {
  const int64_t kernels = 4 * c->out, length = 20;
  tarn__tensor *x = input(b, c->d);
  tarn__tensor *logits = c->flag ? input(b, kernels) : tarn__graph_param(&b->graph, param(b, 1, kernels));
  x->rows = ROWS / length * length;
  if (c->flag) logits->rows = x->rows;
  tarn__conv_spec spec = {.heads = 4, .width = c->out, .before = (c->out - 1) / 2};
  return tarn__depthwise_conv(&b->graph, x, logits, numbers(b, ROWS / length + 1, length, INT32_MAX), spec, 0.1);
}

static tarn__tensor *build_residual(bench *b, const bench_case *c) {
  tarn__tensor *x = input(b, c->d);
  tarn__tensor *branch = input(b, c->d);
  tarn__norm norm = {.form = c->flag ? TARN__NORM_RMS : TARN__NORM_LAYER, .epsilon = 1e-5, .gain = param(b, 1, c->d)};
  if (norm.form == TARN__NORM_LAYER) norm.bias = param(b, 1, c->d);
  return tarn__residual_norm(&b->graph, x, branch, 0.3, norm).y;
}

// Sentences of 20, windows of `out` tokens.
static tarn__tensor *build_pooling(bench *b, const bench_case *c) {
  const int64_t length = 20;
  tarn__tensor *x = input(b, c->d);
  x->rows = ROWS / length * length;
  return tarn__pooling(&b->graph, x, numbers(b, ROWS / length + 1, length, INT32_MAX),
                       (tarn__pooling_spec){.width = c->out, .before = (c->out - 1) / 2});
}

// Queries and keys of `out` columns each, in heads of 64.
static tarn__tensor *build_rotary(bench *b, const bench_case *c) {
  const tarn__rotary_spec spec = {.heads = 2 * c->out / 64, .width = 64, .rotated = 64, .base = 10000.0};
  return tarn__rotary(&b->graph, input(b, c->d), numbers(b, ROWS, 1, 20), spec);
}

static tarn__tensor *build_embedding(bench *b, const bench_case *c) {
  tarn__tensor *ids = numbers(b, ROWS, 7919, WORDS);
  return tarn__embedding(&b->graph, ids, numbers(b, ROWS, 1, 20), param(b, WORDS, c->d), NULL, sqrt((double)c->d), 0.3);
}

static const bench_case cases[] = {{"linear-qkv", build_linear, 512, 1536, 0, false},
                                   {"linear-out", build_linear, 512, 512, 0, false},
                                   {"linear-ffn-in", build_linear, 512, 1024, 0, true},
                                   {"linear-ffn-out", build_linear, 1024, 512, 0, false},
                                   {"linear-qkv-256", build_linear, 256, 768, 0, false},
                                   {"hadamard-qkv", build_hadamard, 512, 1536, 0, false},
                                   {"output", build_output, 512, WORDS, 0, false},
                                   {"output-50257", build_output, 512, 50257, 0, false},
                                   {"step-gru", build_step, 512, 1536, 0, false},
                                   {"step-lstm", build_step, 512, 2048, 0, false},
                                   {"step-esn", build_step, 512, 512, 0, false},
                                   {"attention-20", build_attention, 512, 128, 20, false},
                                   {"attention-causal-20", build_attention, 512, 128, 20, true},
                                   {"attention-256", build_attention, 512, 128, 256, false},
                                   {"attention-512", build_attention, 512, 64, 512, false},
                                   {"attention-1024", build_attention, 512, 64, 1024, false},
                                   {"attention-2048", build_attention, 512, 64, 2048, false},
                                   {"attention-4096", build_attention, 512, 64, 4096, false},
                                   {"attention-causal-512", build_attention, 512, 64, 512, true},
                                   {"attention-causal-1024", build_attention, 512, 64, 1024, true},
                                   {"attention-causal-2048", build_attention, 512, 64, 2048, true},
                                   {"attention-causal-4096", build_attention, 512, 64, 4096, true},
                                   {"attention-alibi-20", build_alibi, 512, 128, 20, false},
                                   {"attention-alibi-512", build_alibi, 512, 64, 512, false},
                                   {"attention-alibi-causal-512", build_alibi, 512, 64, 512, true},
                                   {"attention-alibi-causal-2048", build_alibi, 512, 64, 2048, true},
                                   {"residual-norm", build_residual, 512, 512, 0, false},
                                   {"residual-rms-norm", build_residual, 512, 512, 0, true},
                                   {"glu", build_glu, 512, 512, 0, false},
                                   {"light-conv-7", build_conv, 512, 7, 0, false},
                                   {"light-conv-31", build_conv, 512, 31, 0, false},
                                   {"dynamic-conv-7", build_conv, 512, 7, 0, true},
                                   {"dynamic-conv-31", build_conv, 512, 31, 0, true},
                                   {"pooling-3", build_pooling, 512, 3, 0, false},
                                   {"pooling-31", build_pooling, 512, 31, 0, false},
                                   {"rotary", build_rotary, 1536, 512, 0, false},
                                   {"embedding", build_embedding, 512, 512, 0, false},
                                   {"adam", NULL, 512, WORDS, 0, false},
                                   {"adam-50257", NULL, 512, 50257, 0, false},
                                   {"adam-50257-bf16-moments", NULL, 512, 50257, TARN__MOMENTS_BF16, false},
                                   {"adam-50257-fp8-moments", NULL, 512, 50257, TARN__MOMENTS_F8, false}};
enum { CASES = sizeof cases / sizeof cases[0] };

// --- the loss of a case without its own: gives the output a gradient, copied so that it can be overwritten -----------

static tarn_status run_sink(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  memset(node->out[0]->data, 0, 2 * sizeof(double));
  return TARN_STATUS_OK;
}

static tarn_status run_seed(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->out[0];
  memcpy(dy->data, *(void **)node->attr, (size_t)(dy->rows * dy->cols) * tarn__dtype_size(dy->dtype));
  return TARN_STATUS_OK;
}

enum { BENCH_SEED = TARN__OPS, BENCH_SINK, BENCH_OPS };  // after the ops of every device

static const tarn__op seed_op = {.id = BENCH_SEED, .name = "bench_seed"};

static void sink_gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *y = node->in[0];
  tarn__node *seed = tarn__graph_node(graph, &seed_op, sizeof(void *));
  *(void **)seed->attr = *(void **)node->attr;
  seed->out[0] = tarn__graph_tensor(graph, y->dtype, y->rows, y->cols, "bench gradient");
  tarn__graph_emit(graph, seed);
  tarn__grad_add(graph, y, seed->out[0]);
}

static const tarn__op sink_op = {.id = BENCH_SINK, .name = "bench_sink", .grad = sink_gradient};

// The CPU device with kernels for the ops seed and sink.
static const tarn__device *own_device(void) {
  static tarn__device_kernel kernels[BENCH_OPS];
  static tarn__device_type type;
  static tarn__device device;
  memcpy(kernels, tarn__device_cpu.type->kernels[TARN__F32], TARN__OPS * sizeof *kernels);
  kernels[BENCH_SEED] = (tarn__device_kernel){.run = run_seed};
  kernels[BENCH_SINK] = (tarn__device_kernel){.run = run_sink};
  type = *tarn__device_cpu.type;
  type.ops = BENCH_OPS;
  type.kernels[TARN__F32] = type.kernels[TARN__BF16] = kernels;
  device = (tarn__device){.type = &type, .name = "cpu"};
  return &device;
}

static tarn__tensor *sink(bench *b, tarn__tensor *y) {
  size_t count = (size_t)(y->rows * y->cols);
  void *gradient = take(b, count, tarn__dtype_size(y->dtype));
  fill(gradient, y->dtype, count, 1e-3);
  tarn__node *node = tarn__graph_node(&b->graph, &sink_op, sizeof(void *));
  *(void **)node->attr = gradient;
  node->in[0] = y;
  node->out[0] = tarn__graph_tensor(&b->graph, TARN__F64, 1, 2, "bench loss");
  tarn__graph_emit(&b->graph, node);
  return node->out[0];
}

// --- times -----------------------------------------------------------------------------------------------------------

typedef struct timing {
  double seconds[MOST_RUNS];
} timing;

static int compare(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(timing *t, int runs) {
  qsort(t->seconds, (size_t)runs, sizeof t->seconds[0], compare);
  return t->seconds[runs / 2];
}

static void print_part(bool first, const char *op, double seconds, double flops, double bytes) {
  printf("%s{\"op\": \"%s\", \"seconds\": %.6g, \"flops\": %.9g, \"bytes\": %.9g}", first ? "" : ", ", op, seconds,
         flops, bytes);
}

static bool enough(int run, double start) {
  return run >= MOST_RUNS || (run >= LEAST_RUNS && tarn__seconds() - start > 0.5);
}

static tarn_status run_once(bench *b, timing *times, int run) {
  const tarn__exec exec = {.threads = b->threads, .seed = 1, .step = 1};
  for (int i = 0; i < b->param_count; i++) b->params[i].training.grad_written = false;
  for (size_t n = 0; n < b->graph.node_count; n++) {
    const tarn__node *node = b->graph.nodes[n];
    double start = tarn__seconds();
    TARN_TRY(b->graph.kernels[node->op->id].run(&exec, node));
    if (run >= 0) times[n].seconds[run] = tarn__seconds() - start;
  }
  return TARN_STATUS_OK;
}

static void print_graph(const bench *b, timing *times, int runs) {
  bool first = true;
  for (size_t n = 0; n < b->graph.node_count; n++) {
    const tarn__node *node = b->graph.nodes[n];
    if (node->op == &sink_op || node->op == &seed_op) continue;
    double flops = node->op->flops ? node->op->flops(node) : 0;
    if (node->op->gradient_flops) flops += node->op->gradient_flops(node);
    print_part(first, node->op->name, median(&times[n], runs), flops, 0);
    first = false;
  }
}

static tarn_status measure_graph(bench *b, const bench_case *c) {
  static timing times[MOST_NODES];
  tarn__graph_begin(&b->graph, own_device(), b->dtype, true, b->threads);
  b->graph.fp32 = b->fp32;
  tarn__tensor *out = c->build(b, c);
  tarn__tensor *loss = out->dtype == TARN__F64 ? out : sink(b, out);
  TARN_TRY(b->status);
  loss->keep = true;
  tarn__graph_differentiate(&b->graph, loss);
  TARN_TRY(tarn__graph_plan(&b->graph));
  void *workspace = take(b, b->graph.workspace_bytes, 1);
  TARN_TRY(b->status);
  TARN_REQUIRE(b->graph.node_count <= MOST_NODES, INTERNAL, "%s has more nodes than %d", c->name, MOST_NODES);
  tarn__graph_bind(&b->graph, workspace);
  TARN_TRY(run_once(b, times, -1));
  int runs = 0;
  for (double start = tarn__seconds(); !enough(runs, start); runs++) TARN_TRY(run_once(b, times, runs));
  print_graph(b, times, runs);
  return TARN_STATUS_OK;
}

// Reads both moments, master copy and gradient, and writes the first three; in bf16 also the copy for products.
static tarn_status measure_adam(bench *b, const bench_case *c) {
  static timing times;
  static const tarn__adam_options options = {5e-4, 0.9, 0.98, 1e-8, 1e-4, true, 1};
  tarn__param *p = param(b, c->out, c->d);
  p->training.moments = (tarn__moments)c->length;
  const size_t moment = tarn__moment_bytes(p->training.moments, (size_t)(p->rows * p->cols));
  p->training.moment1 = take(b, moment, 1);
  p->training.moment2 = take(b, moment, 1);
  TARN_TRY(b->status);
  fill(p->training.grad, TARN__F32, (size_t)(p->rows * p->cols), 1e-3);
  p->training.grad_written = true;
  tarn__param *const list[] = {p};
  tarn__param_table table = {.params = list, .count = 1};
  int runs = 0;
  TARN_TRY(tarn__adam_step(&tarn__device_cpu, &table, &options, 1, 1.0, NULL, b->threads));
  for (double begin = tarn__seconds(); !enough(runs, begin); runs++) {
    double start = tarn__seconds();
    TARN_TRY(tarn__adam_step(&tarn__device_cpu, &table, &options, runs + 2, 1.0, NULL, b->threads));
    times.seconds[runs] = tarn__seconds() - start;
  }
  const int bytes = 12 + (b->dtype == TARN__BF16 ? 2 : 0);
  print_part(true, "adam", median(&times, runs), 0, (double)(p->rows * p->cols) * bytes + 4 * (double)moment);
  return TARN_STATUS_OK;
}

static const bench_case *find_case(const char *name) {
  for (int i = 0; i < CASES; i++)
    if (strcmp(cases[i].name, name) == 0) return &cases[i];
  return NULL;
}

static bool set_precision(bench *b, const char *name) {
  static const struct {
    const char *name;
    tarn__dtype dtype;
    tarn__fp32 fp32;
  } all[] = {{"fp32", TARN__F32, TARN__FP32_EXACT},
             {"split6", TARN__F32, TARN__FP32_SPLIT6},
             {"split3", TARN__F32, TARN__FP32_SPLIT3},
             {"bf16", TARN__BF16, TARN__FP32_EXACT}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(all[i].name, name) == 0) {
      b->dtype = all[i].dtype;
      b->fp32 = all[i].fp32;
      return true;
    }
  return false;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (int i = 0; i < CASES; i++) printf("%s\n", cases[i].name);
    return 0;
  }
  const bench_case *c = argc == 4 ? find_case(argv[1]) : NULL;
  static bench b;
  const bool known = c && set_precision(&b, argv[2]);
  int threads = c ? atoi(argv[3]) : 0;
  if (!known || threads < 1 || threads > 1024) {
    fprintf(stderr, "usage: bench_kernels CASE fp32|split6|split3|bf16 THREADS, or bench_kernels --list\n");
    return 2;
  }
  if (b.fp32 != TARN__FP32_EXACT && tarn__device_fp32_lacks(&tarn__device_cpu, TARN__FP32_SPLIT6) != NULL) {
    fprintf(stderr, "bench_kernels: %s: the processor has no tiles\n", argv[2]);
    return 1;
  }
  b.threads = threads;
  tarn__threads_set(threads);
  printf("{\"case\": \"%s\", \"precision\": \"%s\", \"threads\": %d, \"rows\": %d, \"parts\": [", c->name, argv[2],
         threads, ROWS);
  tarn_status status = c->build ? measure_graph(&b, c) : measure_adam(&b, c);
  printf("]}\n");
  if (status != TARN_STATUS_OK) fprintf(stderr, "bench_kernels: %s: %s\n", c->name, tarn_error_message());
  tarn__graph_close(&b.graph);
  tarn__arena_close(&b.arena);
  return status == TARN_STATUS_OK ? 0 : 1;
}
