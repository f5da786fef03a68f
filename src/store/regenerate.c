#include "store/regenerate.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/work.h"
#include "graph/entries.h"
#include "init/reservoir.h"
#include "tarn/process.h"

static tarn_limits limits = {.max_operations = TARN_LIMITS_OPERATIONS, .max_memory = TARN_LIMITS_MEMORY};

void tarn_limits_default(tarn_limits *out) {
  *out = (tarn_limits){.max_operations = TARN_LIMITS_OPERATIONS, .max_memory = TARN_LIMITS_MEMORY};
}

void tarn_limits_set(const tarn_limits *given) { limits = *given; }

// Steps per number, measured in units of the arithmetic of orthogonal matrices: uniform and normal draws, and locating
// an entry of a graph in memory.
enum { UNIFORM = 20, NORMAL = 80, PLACE = 30 };
// Operations above which a long duration is announced at the start, and seconds otherwise.
static const double MANY = 1e10, LONG = 2.0, OFTEN = 1.0;

// Householder reflections of n columns of m >= n rows, to factor and to form (orthogonal.c).
static tarn__regenerate_cost cost_of_orthogonal(double rows, double cols, double blocks) {
  const double block = rows / blocks, m = fmax(block, cols), n = fmin(block, cols);
  return (tarn__regenerate_cost){blocks * (NORMAL * m * n + 4.0 * m * n * n - 4.0 / 3.0 * n * n * n),
                                 16.0 * m * n + 8.0 * n};
}

// A visit to every pair, and draws for joined ones. A unit of a small world that is joined to nearly all others draws
// many times until it finds a new one.
static tarn__regenerate_cost cost_of_reservoir(double n, const tarn__reservoir *reservoir) {
  const double pairs = n * n, entries = (1.0 - reservoir->sparsity) * pairs;
  double operations = (UNIFORM + 4) * pairs + (NORMAL + PLACE) * entries;
  if (reservoir->topology == TARN__TOPOLOGY_SMALL_WORLD)
    operations += 0.05 * entries * (UNIFORM + PLACE) * n / fmax(1.0, n - 1.0 - entries / n);
  if (reservoir->topology == TARN__TOPOLOGY_SCALE_FREE) operations += entries * 2.0 * (UNIFORM + PLACE);
  return (tarn__regenerate_cost){operations, 48.0 * entries + 24.0 * n};
}

tarn__regenerate_cost tarn__regenerate_param(const tarn__param *param) {
  const double rows = (double)param->rows, cols = (double)param->cols, count = rows * cols;
  tarn__regenerate_cost cost = {count, 0};
  switch (param->init.kind) {
    case TARN__INIT_ZERO:
    case TARN__INIT_ONE:
    case TARN__INIT_CONSTANT:
      break;
    case TARN__INIT_NORMAL:
      cost.operations = NORMAL * count;
      break;
    case TARN__INIT_UNIFORM:
    case TARN__INIT_RANGE:
    case TARN__INIT_XAVIER:
    case TARN__INIT_SIGNS:
      cost.operations = UNIFORM * count;
      break;
    case TARN__INIT_HADAMARD:  // a transform of each row of the identity
      cost = (tarn__regenerate_cost){count * (UNIFORM + 8.0 * log2(fmax(rows, cols) + 2.0)), 16.0 * count};
      break;
    case TARN__INIT_ORTHOGONAL:
      cost = cost_of_orthogonal(rows, cols, param->init.blocks > 1 ? param->init.blocks : 1);
      break;
    case TARN__INIT_FEATURES:  // orthogonal blocks, and as many normal numbers again
      cost = cost_of_orthogonal(ceil(rows / cols) * cols, cols, ceil(rows / cols));
      cost.operations += NORMAL * count;
      break;
    case TARN__INIT_RESERVOIR:
      if (param->init.gain > 0) cost = cost_of_reservoir(rows, param->reservoir);
      break;
  }
  if (param->sparsity > 0.0) cost.operations += UNIFORM * count;
  // Temporary memory of the values, all of them or the entries.
  const bool sparse = param->entries > 0 && param->reservoir;
  cost.bytes += sparse ? (double)tarn__param_value_bytes(param) : count * sizeof(float);
  return cost;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

tarn__regenerate_cost tarn__regenerate_all(const tarn__model *model) {
  tarn__regenerate_cost all = {0};
  enum { MOST = 64 };
  double largest[MOST + 1] = {0};  // in descending order
  const size_t at_once = tarn__threads() < MOST ? (size_t)tarn__threads() : MOST;
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    if (param->trained || param->mapped.value || param->mapped.rounded) continue;
    const tarn__regenerate_cost cost = tarn__regenerate_param(param);
    all.operations += cost.operations;
    largest[at_once] = cost.bytes;
    qsort(largest, at_once + 1, sizeof *largest, by_size);
  }
  for (size_t i = 0; i < at_once; i++) all.bytes += largest[i];
  return all;
}

tarn_status tarn__regenerate_check(const tarn__model *model, const char *file, bool recipes) {
  if (!recipes) return TARN_STATUS_OK;
  tarn__model_size size;
  tarn__model_measure(model, &size);
  const tarn__regenerate_cost cost = tarn__regenerate_all(model);
  const double bytes = cost.bytes + (double)size.frozen_bytes;
  TARN_REQUIRE(limits.max_memory <= 0 || bytes <= limits.max_memory, MEMORY,
               "%s: its frozen weights, which are computed from a line of text, take %.3g bytes of memory, more than "
               "the %.3g of --max-memory; raise it if you trust the file",
               file, bytes, limits.max_memory);
  TARN_REQUIRE(limits.max_operations <= 0 || cost.operations <= limits.max_operations, DATA,
               "%s: computing its frozen weights again takes %.3g operations, more than the %.3g of --max-operations; "
               "raise it if you trust the file",
               file, cost.operations, limits.max_operations);
  return TARN_STATUS_OK;
}

typedef struct progress {
  pthread_mutex_t lock;
  const char *file;
  double done, operations;
  double begun, told;  // on the clock
  double last;         // the last report; -1: none
  tarn__work work;
} progress;

static void tell(progress *p, double done) {
  p->last = done;
  limits.on_progress(limits.user, p->file, done, p->operations);
}

static void note(void *user, const tarn__param *param) {
  progress *p = user;
  pthread_mutex_lock(&p->lock);
  const double now = tarn__seconds();
  p->done = fmin(p->done + tarn__regenerate_param(param).operations, p->operations);
  tarn__work_at(&p->work, p->done, p->done / p->operations);
  const bool is_long = now - p->begun > LONG || p->operations > MANY;
  if (limits.on_progress && is_long && now - p->told > OFTEN) {
    p->told = now;
    tell(p, p->done);
  }
  pthread_mutex_unlock(&p->lock);
}

tarn_status tarn__regenerate(tarn__model *model, uint64_t seed, const char *file) {
  progress p = {
      .file = file, .operations = tarn__regenerate_all(model).operations, .begun = tarn__seconds(), .last = -1};
  pthread_mutex_init(&p.lock, NULL);
  tarn__work_begin(&p.work, "computing frozen weights", "operations");
  if (limits.on_progress && p.operations > MANY) tell(&p, 0);
  p.told = p.begun;
  tarn_status status = tarn__model_initialise_told(model, seed, note, &p);
  tarn__work_end(&p.work);
  pthread_mutex_destroy(&p.lock);
  // The final report removes the display, even after a failure.
  if (p.last >= 0 && p.last < p.operations) tell(&p, p.operations);
  return status;
}
