#include "dynamics/memory_capacity.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "tarn/lab/series.h"

enum { LEFT_OUT = 500 };  // minimum of inputs before the first sample

typedef struct remembering {
  const tarn__cell_map *cell;
  const tarn__memory_task *task;
  int64_t units, before, all;  // inputs before the samples, and in total
  double *inputs;              // [all]
  double *states;              // [2 samples, units]
  double *targets;             // [samples, delays]
  double *weights, *bias;      // [units, delays], [delays]
  double *state, *work;
} remembering;

static tarn_status open(remembering *r, void **memory) {
  const int64_t delays = r->task->delays, samples = r->task->samples, units = r->units;
  const int64_t counts[] = {r->all,
                            2 * samples * units,
                            samples * delays,
                            units * delays,
                            delays,
                            tarn__cell_width(r->cell),
                            2 * tarn__cell_gates(r->cell) * units};
  double **const places[] = {&r->inputs, &r->states, &r->targets, &r->weights, &r->bias, &r->state, &r->work};
  int64_t sum = 0;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) sum += counts[i];
  const size_t most = r->task->max_memory;
  TARN_REQUIRE(
      most == 0 || (double)sum * 8.0 <= (double)most, MEMORY,
      "the memory capacity needs %.1f MB, and %.1f MB are allowed: allow more, or take fewer samples or delays",
      (double)sum * 8e-6, (double)most / 1e6);
  TARN_TRY(tarn__alloc(memory, TARN__MEMORY_OTHER, (size_t)sum, sizeof(double)));
  double *next = *memory;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    *places[i] = next;
    next += counts[i];
  }
  return TARN_STATUS_OK;
}

// The states after the inputs; *finite: all are.
static tarn_status listen(remembering *r, bool *finite) {
  tarn__cell_run run = {.cell = r->cell, .noise = r->inputs, .iterations = r->all, .systems = 1, .work = r->work};
  tarn__random random;
  *finite = true;
  tarn__random_init(&random, r->task->seed, 0x44594d43u);
  for (int64_t t = 0; t < r->all; t++) r->inputs[t] = 2.0 * tarn__random_uniform(&random) - 1.0;
  for (int64_t t = 0; t < r->all && *finite; t++) {
    TARN_TRY(tarn__cell_step(&run, r->state, NULL, 0, t));
    for (int64_t i = 0; i < r->units; i++) *finite &= isfinite(r->state[i]) != 0;
    if (t >= r->before) memcpy(r->states + (t - r->before) * r->units, r->state, (size_t)r->units * sizeof *r->state);
  }
  return TARN_STATUS_OK;
}

static double *target_of(const remembering *r, int64_t sample) { return r->inputs + r->before + sample; }

// The readouts of a state.
static void read_out(const remembering *r, double *out, const double *state) {
  const int64_t delays = r->task->delays;
  memcpy(out, r->bias, (size_t)delays * sizeof *out);
  for (int64_t i = 0; i < r->units; i++)
    for (int64_t k = 0; k < delays; k++) out[k] += state[i] * r->weights[i * delays + k];
}

// Squared correlations over the second half; the targets of the first are no longer needed.
static void correlate(const remembering *r, double *capacities) {
  const int64_t delays = r->task->delays, samples = r->task->samples;
  for (int64_t s = 0; s < samples; s++) read_out(r, r->targets + s * delays, r->states + (samples + s) * r->units);
  for (int64_t k = 0; k < delays; k++) {
    double u = 0.0, y = 0.0, uu = 0.0, yy = 0.0, uy = 0.0;
    for (int64_t s = 0; s < samples; s++) {
      u += *(target_of(r, samples + s) - k - 1) / (double)samples;
      y += r->targets[s * delays + k] / (double)samples;
    }
    for (int64_t s = 0; s < samples; s++) {
      const double du = *(target_of(r, samples + s) - k - 1) - u, dy = r->targets[s * delays + k] - y;
      uu += du * du;
      yy += dy * dy;
      uy += du * dy;
    }
    capacities[k] = uu > 0.0 && yy > 0.0 ? uy * uy / (uu * yy) : 0.0;
  }
}

static tarn_status measure(remembering *r, double *capacities) {
  const int64_t delays = r->task->delays, samples = r->task->samples;
  double used;
  bool finite;
  TARN_TRY(listen(r, &finite));
  for (int64_t k = 0; k < delays && !finite; k++) capacities[k] = NAN;
  if (!finite) return TARN_STATUS_OK;
  for (int64_t s = 0; s < samples; s++)
    for (int64_t k = 0; k < delays; k++) r->targets[s * delays + k] = *(target_of(r, s) - k - 1);
  TARN_TRY(
      tarn_ridge_regress(r->weights, r->bias, &used, r->states, r->targets, samples, r->units, delays, r->task->ridge));
  correlate(r, capacities);
  return TARN_STATUS_OK;
}

tarn_status tarn__memory_capacity(double *capacities, const tarn__cell_map *cell, const tarn__memory_task *task) {
  remembering r = {.cell = cell, .task = task, .units = cell->spec.hidden};
  void *memory = NULL;
  r.before = task->delays > LEFT_OUT ? task->delays : LEFT_OUT;
  r.all = r.before + 2 * task->samples;
  TARN_TRY(open(&r, &memory));
  const tarn_status status = measure(&r, capacities);
  tarn__free(memory);
  return status;
}
