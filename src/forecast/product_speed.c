// Estimates the speed of whole updates from that of a matrix product on this machine.
#include "forecast/product_speed.h"

#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "device/devices.h"
#include "model/model.h"
#include "ops/ops.h"

enum { ROWS = 1024, WIDEST = 2048 };  // of the product: rows of a typical batch; largest d_model
static const double SECONDS = 0.05;   // approximate duration of a measurement

// A product and its memory.
typedef struct product {
  const tarn__device *device;
  tarn__graph graph;
  tarn__param weight;
  void *x, *workspace;
} product;

// y [ROWS, 4 d] = x [ROWS, d] weight^T, the first product of a usual FFN.
static tarn_status open_product(product *p, int64_t d, tarn__dtype dtype, tarn__fp32 fp32, int threads) {
  const tarn__memory_kind kind = TARN__MEMORY_OTHER;
  const size_t size = tarn__dtype_size(dtype);
  p->weight = (tarn__param){.name = "weight", .rows = 4 * d, .cols = d, .dtype = dtype, .device = p->device};
  TARN_TRY(tarn__device_allocate(p->device, &p->x, kind, (size_t)(ROWS * d), size));
  TARN_TRY(tarn__device_allocate(p->device, &p->weight.value, kind, (size_t)(4 * d * d), size));
  tarn__graph_begin(&p->graph, p->device, dtype, false, threads);
  p->graph.fp32 = fp32;
  tarn__tensor *x = tarn__graph_external(&p->graph, dtype, ROWS, d, p->x, "x");
  tarn__linear(&p->graph, x, &p->weight, NULL, TARN__IDENTITY)->keep = true;
  TARN_TRY(tarn__graph_plan(&p->graph));
  TARN_TRY(tarn__device_allocate(p->device, &p->workspace, kind, p->graph.workspace_bytes, 1));
  tarn__graph_bind(&p->graph, p->workspace);
  return TARN_STATUS_OK;
}

static void close_product(product *p) {
  tarn__graph_close(&p->graph);
  tarn__device_free(p->device, p->x);
  tarn__device_free(p->device, p->weight.value);
  tarn__device_free(p->device, p->workspace);
}

// Seconds of one run: the minimum over a moment, because other work slows some runs down; or the mean over some time,
// including that work.
static tarn_status time_product(double *seconds, product *p, int threads, double during) {
  const tarn__exec exec = {.threads = threads};
  TARN_TRY(tarn__graph_run(&p->graph, &exec));  // pages, and the clock frequency of the wide instructions
  const double begun = tarn__seconds(), until = during > 0 ? during : SECONDS;
  double least = HUGE_VAL, runs = 0;
  for (double last = begun, now; last - begun < until; last = now) {
    TARN_TRY(tarn__graph_run(&p->graph, &exec));
    TARN_TRY(tarn__device_synchronise(p->device));
    now = tarn__seconds();
    if (now - last < least) least = now - last;
    runs++;
    *seconds = during > 0 ? (now - begun) / runs : least;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__product_speed(double *rate, int64_t d, tarn__dtype dtype, tarn__fp32 fp32, int threads,
                                double during) {
  product p = {0};
  double seconds = 0;
  if (d > WIDEST) d = WIDEST;
  TARN_TRY(tarn__device_default(&p.device, dtype));
  tarn_status status = open_product(&p, d, dtype, fp32, threads);
  if (status == TARN_STATUS_OK) status = time_product(&seconds, &p, threads, during);
  if (status == TARN_STATUS_OK) *rate = 2.0 * ROWS * 4.0 * (double)d * (double)d / seconds;
  close_product(&p);
  return status;
}

double tarn__tokens_of_run(const tarn_config *config, const tarn_plan *plan) {
  const tarn_config_train *train = &config->train;
  double tokens = train->max_epochs > 0 ? (double)train->max_epochs * plan->epoch_tokens : 0;
  if (train->max_updates == 0) return tokens;
  double update = (double)(plan->source_rows + plan->target_rows);
  double sentences = (double)train->max_sentences * (plan->source_length + plan->target_length);
  if (train->max_sentences > 0 && sentences < update) update = sentences;
  update *= (double)train->max_updates * (double)train->accumulate;
  return tokens > 0 && tokens < update ? tokens : update;
}
