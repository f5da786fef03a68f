// Times one period of a shared encoder with forward-mode derivatives, as `tarn dynamics` iterates it.
//   bench_dynamics fp32|split6|split3|fp64 THREADS PERIODS [profile]
// The period is that of two post-norm layers of attention and a feed-forward part with ReLU, d_model 512, ffn 1024, 8
// heads, over 20 sentences of 20 tokens, with 8 directions; weights are packed once. Each period reads the states and
// directions that the previous one wrote. Prints one line of JSON:
//   {"precision", "threads", "periods", "seconds": median of a period, "workspace_mb", "peak_mb", "parts": [...]}
// parts (with `profile`): seconds of each op in a period.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/threads.h"
#include "device/devices.h"
#include "graph/tangents.h"
#include "ops/ops.h"

enum { D = 512, FFN = 1024, HEADS = 8, LENGTH = 20, SENTENCES = 20, ROWS = LENGTH * SENTENCES, DIRECTIONS = 8 };
enum { LAYERS = 2, MOST_PARAMS = 64, MOST_NODES = 256 };

typedef struct bench {
  tarn__arena arena;
  tarn__graph graph;
  tarn__dtype dtype;
  tarn__random random;
  tarn__param params[MOST_PARAMS];
  int param_count;
  tarn_status status;  // of the first allocation that failed
} bench;

static void *take(bench *b, size_t count, size_t size) {
  void *memory = NULL;
  const tarn_status status = tarn__arena_alloc(&b->arena, &memory, count, size);
  if (b->status == TARN_STATUS_OK) b->status = status;
  return memory;
}

static void fill(bench *b, void *data, size_t count, double mean, double scale) {
  for (size_t i = 0; data && i < count; i++) {
    const double value = mean + scale * tarn__random_normal(&b->random);
    if (b->dtype == TARN__F64)
      ((double *)data)[i] = value;
    else
      ((float *)data)[i] = (float)value;
  }
}

static tarn__param *param(bench *b, int64_t rows, int64_t cols, double mean, double scale) {
  tarn__param *p = &b->params[b->param_count++];
  *p = (tarn__param){.name = "bench param", .rows = rows, .cols = cols, .uses = 1, .dtype = b->dtype};
  p->value = take(b, (size_t)(rows * cols), tarn__dtype_size(b->dtype));
  fill(b, p->value, (size_t)(rows * cols), mean, scale);
  return p;
}

static tarn__tensor *linear(bench *b, tarn__tensor *x, int64_t out, tarn__activation form) {
  tarn__param *weight = param(b, out, x->cols, 0.0, sqrt(2.0 / (double)(out + x->cols)));
  return tarn__linear(&b->graph, x, weight, param(b, 1, out, 0.0, 0.1), form);
}

static tarn__tensor *norm(bench *b, tarn__tensor *x, tarn__tensor *branch) {
  const tarn__norm norm = {
      .form = TARN__NORM_LAYER, .epsilon = 1e-5, .gain = param(b, 1, D, 1.0, 0.1), .bias = param(b, 1, D, 0.0, 0.1)};
  return tarn__residual_norm(&b->graph, x, branch, 0.0, norm).y;
}

static tarn__tensor *period(bench *b, tarn__tensor *x) {
  static int32_t offsets[SENTENCES + 1];
  for (int s = 0; s <= SENTENCES; s++) offsets[s] = s * LENGTH;
  tarn__tensor *at = tarn__graph_input(&b->graph, SENTENCES + 1, offsets, "offsets");
  const tarn__attention_spec spec = {.heads = HEADS, .d = D, .key_column = D, .value_column = 2 * D, .longest = LENGTH};
  for (int layer = 0; layer < LAYERS; layer++) {
    tarn__tensor *qkv = linear(b, x, 3 * D, TARN__IDENTITY);
    x = norm(b, x, linear(b, tarn__attention(&b->graph, qkv, qkv, at, at, spec), D, TARN__IDENTITY));
    x = norm(b, x, linear(b, linear(b, x, FFN, TARN__RELU), D, TARN__IDENTITY));
  }
  return x;
}

// A period as a graph whose results replace its inputs.
typedef struct map {
  tarn__tensor *x, *y;
} map;

// Packs the weights for products, once for all periods.
static tarn_status pack(bench *b, tarn__fp32 fp32, int threads) {
  const tarn__device *device = b->graph.device;
  for (int i = 0; device->type->pack && i < b->param_count; i++) {
    tarn__param *p = &b->params[i];
    const tarn__device_weight weight = {
        .value = p->value, .rows = p->rows, .cols = p->cols, .dtype = p->dtype, .fp32 = fp32};
    if (p->rows == 1) continue;
    void *packed = take(b, device->type->pack_bytes(device, &weight) + 64, 1);
    TARN_TRY(b->status);
    packed = (void *)(((uintptr_t)packed + 63) & ~(uintptr_t)63);
    TARN_TRY(device->type->pack(device, packed, &weight, threads));
    p->decoding.packed = packed;
  }
  return TARN_STATUS_OK;
}

static tarn_status open_map(bench *b, map *m, tarn__fp32 fp32, int threads) {
  const tarn__device *device = b->dtype == TARN__F64 ? &tarn__device_reference : &tarn__device_cpu;
  tarn__graph_begin(&b->graph, device, b->dtype, false, threads);
  b->graph.fp32 = fp32;
  void *x = take(b, (size_t)ROWS * D, tarn__dtype_size(b->dtype));
  void *directions = take(b, (size_t)DIRECTIONS * ROWS * D, tarn__dtype_size(b->dtype));
  fill(b, x, (size_t)ROWS * D, 0.0, 1.0);
  fill(b, directions, (size_t)DIRECTIONS * ROWS * D, 0.0, 1.0);
  m->x = tarn__graph_external(&b->graph, b->dtype, ROWS, D, x, "x");
  m->x->tangent = tarn__graph_external(&b->graph, b->dtype, (int64_t)DIRECTIONS * ROWS, D, directions, "directions");
  m->y = period(b, m->x);
  tarn__graph_push(&b->graph, DIRECTIONS);
  TARN_TRY(b->status);
  TARN_TRY(pack(b, fp32, threads));
  m->y->keep = true;
  if (m->y->tangent) m->y->tangent->keep = true;
  TARN_TRY(tarn__graph_plan(&b->graph));
  void *workspace = take(b, b->graph.workspace_bytes, 1);
  TARN_TRY(b->status);
  tarn__graph_bind(&b->graph, workspace);
  return TARN_STATUS_OK;
}

static void carry(const tarn__tensor *to, const tarn__tensor *from) {
  memcpy(to->data, from->data, (size_t)(from->rows * from->cols) * tarn__dtype_size(from->dtype));
}

// Runs all nodes; adds the seconds of each to `times` if not NULL.
static tarn_status run_once(bench *b, const map *m, int threads, double *times) {
  const tarn__exec exec = {.threads = threads, .seed = 1, .step = 1};
  if (!times) {
    TARN_TRY(tarn__graph_run(&b->graph, &exec));
  } else {
    for (size_t n = 0; n < b->graph.node_count; n++) {
      const double start = tarn__seconds();
      TARN_TRY(b->graph.kernels[b->graph.nodes[n]->op->id].run(&exec, b->graph.nodes[n]));
      times[n] += tarn__seconds() - start;
    }
  }
  carry(m->x, m->y);
  carry(m->x->tangent, m->y->tangent);
  return TARN_STATUS_OK;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The output rows of a node, which distinguish the forward pass from its tangents.
static int64_t rows_of(const tarn__node *node) { return (node->out[0] ? node->out[0] : node->out[1])->rows; }

static void print_parts(const bench *b, const double *times, int periods) {
  bool printed[MOST_NODES] = {false};
  printf(", \"parts\": [");
  for (size_t n = 0; n < b->graph.node_count; n++) {
    double seconds = 0.0, flops = 0.0;
    if (printed[n]) continue;
    for (size_t k = n; k < b->graph.node_count; k++) {
      const tarn__node *node = b->graph.nodes[k];
      if (node->op != b->graph.nodes[n]->op || rows_of(node) != rows_of(b->graph.nodes[n])) continue;
      seconds += times[k] / periods;
      if (node->op->flops) flops += node->op->flops(node);
      printed[k] = true;
    }
    printf("%s{\"op\": \"%s\", \"rows\": %lld, \"ms\": %.4g, \"gflop\": %.4g}", n == 0 ? "" : ", ",
           b->graph.nodes[n]->op->name, (long long)rows_of(b->graph.nodes[n]), 1e3 * seconds, flops / 1e9);
  }
  printf("]");
}

static tarn_status measure(bench *b, const char *precision, tarn__fp32 fp32, int threads, int periods, bool profile) {
  map m;
  static double times[MOST_NODES];
  TARN_TRY(open_map(b, &m, fp32, threads));
  TARN_REQUIRE(b->graph.node_count <= MOST_NODES, INTERNAL, "more nodes than %d", MOST_NODES);
  double *seconds = take(b, (size_t)periods, sizeof *seconds);
  TARN_TRY(b->status);
  TARN_TRY(run_once(b, &m, threads, NULL));
  for (int i = 0; i < periods; i++) {
    const double start = tarn__seconds();
    TARN_TRY(run_once(b, &m, threads, profile ? times : NULL));
    seconds[i] = tarn__seconds() - start;
  }
  qsort(seconds, (size_t)periods, sizeof *seconds, compare);
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf(
      "{\"precision\": \"%s\", \"threads\": %d, \"periods\": %d, \"seconds\": %.6g, \"workspace_mb\": %.1f, "
      "\"peak_mb\": %.1f",
      precision, threads, periods, seconds[periods / 2], (double)b->graph.workspace_bytes / 1e6,
      (double)usage.ru_maxrss * 1024.0 / 1e6);
  if (profile) print_parts(b, times, periods);
  printf("}\n");
  return TARN_STATUS_OK;
}

int main(int argc, char **argv) {
  static const struct {
    const char *word;
    tarn__dtype dtype;
    tarn__fp32 fp32;
  } precisions[] = {{"fp32", TARN__F32, TARN__FP32_EXACT},
                    {"split6", TARN__F32, TARN__FP32_SPLIT6},
                    {"split3", TARN__F32, TARN__FP32_SPLIT3},
                    {"fp64", TARN__F64, TARN__FP32_EXACT}};
  const int threads = argc > 2 ? atoi(argv[2]) : 0, periods = argc > 3 ? atoi(argv[3]) : 0;
  for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
    if (argc < 4 || threads < 1 || periods < 1 || strcmp(argv[1], precisions[i].word) != 0) continue;
    static bench b;
    b.dtype = precisions[i].dtype;
    tarn__random_init(&b.random, 1, 1);
    tarn__threads_set(threads);
    const tarn_status status = measure(&b, argv[1], precisions[i].fp32, threads, periods, argc > 4);
    if (status != TARN_STATUS_OK) fprintf(stderr, "bench_dynamics: %s\n", tarn_error_message());
    tarn__graph_close(&b.graph);
    tarn__arena_close(&b.arena);
    return status == TARN_STATUS_OK ? 0 : 1;
  }
  fprintf(stderr, "usage: bench_dynamics fp32|split6|split3|fp64 THREADS PERIODS [profile]\n");
  return 2;
}
