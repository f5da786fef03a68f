// Echo state networks over their spectral radius and leak rate.
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "base/work.h"
#include "dynamics/drive.h"
#include "dynamics/memory_capacity.h"
#include "states/states.h"

enum { MOST_POINTS = 100000, MOST_DELAYS = 10000, DEFAULT_DELAYS = 1000 };

void tarn_dynamics_scan_default(tarn_dynamics_scan_options *options) {
  *options = (tarn_dynamics_scan_options){.samples = 2000, .ridge = 1e-8, .input_scaling = 0.1};
}

void tarn_dynamics_scan_close(tarn_dynamics_scan **scan) {
  if (!*scan) return;
  tarn__free((*scan)->points);
  tarn__free((*scan)->capacities);
  tarn__free(*scan);
  *scan = NULL;
}

typedef struct scanning {
  tarn_dynamics *dynamics;
  const tarn_dynamics_scan_options *options;
  tarn_dynamics_options run;  // of each trajectory
  tarn__cell_map cell;        // of the current point; its memory belongs to the dynamics, except noise_in
  double radius;              // of the stored matrix
  tarn__drive free, driven;
  tarn_dynamics_scan *scan;
} scanning;

static tarn_status check_values(const char *what, const double *values, size_t count, bool zero, double most) {
  TARN_REQUIRE(!values || count > 0, USAGE, "%s are to be tried, and there are none", what);
  for (size_t i = 0; values && i < count; i++)
    TARN_REQUIRE((zero ? values[i] >= 0.0 : values[i] > 0.0) && values[i] <= most, USAGE,
                 "%s: %.10g is not %s 0 and at most %.10g", what, values[i], zero ? "at least" : "above", most);
  return TARN_STATUS_OK;
}

static tarn_status check(const tarn_dynamics *d, const tarn_dynamics_scan_options *o) {
  TARN_REQUIRE(d->info.map == TARN_DYNAMICS_MAP_RECURRENCE && d->cell.spec.cell == TARN__CELL_ECHO, USAGE,
               "%s%sonly an echo state network has a spectral radius and a leak rate to go over", d->info.path,
               *d->info.path ? ": " : "");
  TARN_TRY(check_values("spectral radii", o->spectral_radii, o->radius_count, true, 1000.0));
  TARN_TRY(check_values("leak rates", o->leak_rates, o->leak_count, false, 1.0));
  const double points =
      (o->spectral_radii ? (double)o->radius_count : 1.0) * (o->leak_rates ? (double)o->leak_count : 1.0);
  TARN_REQUIRE(points <= MOST_POINTS, USAGE, "%.0f points are more than %d", points, MOST_POINTS);
  TARN_REQUIRE(o->delays >= -1 && o->delays <= MOST_DELAYS, USAGE, "the largest delay is 1 .. %d, not %lld",
               MOST_DELAYS, (long long)o->delays);
  TARN_REQUIRE(o->samples >= 100 && o->samples <= 1000000, USAGE, "samples are 100 .. 10^6, not %lld",
               (long long)o->samples);
  TARN_REQUIRE(o->ridge >= 0.0 && isfinite(o->ridge), USAGE, "ridge is at least 0, not %g", o->ridge);
  TARN_REQUIRE(o->input_scaling > 0.0 && isfinite(o->input_scaling), USAGE, "input_scaling is above 0, not %g",
               o->input_scaling);
  return TARN_STATUS_OK;
}

static tarn_status open_scan(scanning *s, tarn_dynamics_scan **out) {
  const tarn_dynamics_scan_options *o = s->options;
  const int64_t units = s->cell.spec.hidden;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_dynamics_scan)));
  tarn_dynamics_scan *scan = *out = s->scan = memory;
  scan->units = units;
  scan->samples = o->samples;
  scan->delays = o->delays ? o->delays : 2 * units < DEFAULT_DELAYS ? 2 * units : DEFAULT_DELAYS;
  if (o->delays < 0) scan->delays = 0;
  scan->count = (o->spectral_radii ? o->radius_count : 1) * (o->leak_rates ? o->leak_count : 1);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, scan->count, sizeof *scan->points));
  scan->points = memory;
  if (scan->delays == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, scan->count * (size_t)scan->delays, sizeof(double)));
  scan->capacities = memory;
  return TARN_STATUS_OK;
}

// The input weights of noise, and both kinds of drive, shared by all points.
static tarn_status open_drives(scanning *s) {
  const tarn_dynamics *d = s->dynamics;
  const bool text = d->states && d->states->summary.sentences > 0;
  tarn__random random;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)s->cell.spec.hidden, sizeof(double)));
  s->cell.noise_in = memory;
  tarn__random_init(&random, s->run.seed, 0x4459494eu);
  for (int64_t i = 0; i < s->cell.spec.hidden; i++)
    s->cell.noise_in[i] = s->options->input_scaling * (2.0 * tarn__random_uniform(&random) - 1.0);
  TARN_TRY(tarn__drive_open(&s->free, d, s->run.iterations, TARN_DYNAMICS_DRIVE_FREE));
  return tarn__drive_open(&s->driven, d, s->run.iterations,
                          text ? TARN_DYNAMICS_DRIVE_TEXT : TARN_DYNAMICS_DRIVE_NOISE);
}

// The median of the largest exponents, and the synchronisation of the two starts.
static tarn_status run_drive(const scanning *s, const tarn__drive *drive, double *median, tarn_dynamics_point *point) {
  tarn_dynamics_result *result;
  tarn_dynamics_spread spread;
  void *memory = NULL;
  TARN_TRY(tarn__drive_run(drive, &result, &s->cell, &s->run));
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)result->count, sizeof(double));
  if (status == TARN_STATUS_OK) {
    double *first = memory;
    int64_t together = 0;
    for (int64_t i = 0; i < result->count; i++) {
      first[i] = result->sentences[i].exponents[0];
      together += result->sentences[i].starts.synchronised;
    }
    tarn__dynamics_spread_of(&spread, first, result->count);
    *median = spread.median;
    if (point) point->share_synchronised = (double)together / (double)result->count;
    if (point) point->diverged = result->diverged;
  }
  tarn__free(memory);
  tarn_dynamics_result_close(&result);
  return status;
}

static tarn_status run_memory(const scanning *s, size_t index, tarn_dynamics_point *point) {
  const int64_t delays = s->scan->delays;
  const tarn__memory_task task = {delays, s->scan->samples, s->options->ridge, s->run.seed, s->run.max_memory};
  point->memory_capacity = NAN;
  if (delays == 0) return TARN_STATUS_OK;
  double *capacities = s->scan->capacities + index * (size_t)delays;
  TARN_TRY(tarn__memory_capacity(capacities, &s->cell, &task));
  point->memory_capacity = 0.0;
  for (int64_t k = 0; k < delays; k++) point->memory_capacity += capacities[k];
  return TARN_STATUS_OK;
}

static tarn_status run_points(scanning *s, tarn__work *work) {
  const tarn_dynamics_scan_options *o = s->options;
  const tarn_dynamics_options *outer = &s->dynamics->options;
  const size_t radii = o->spectral_radii ? o->radius_count : 1;
  for (size_t i = 0; i < s->scan->count; i++) {
    tarn_dynamics_point *point = &s->scan->points[i];
    point->spectral_radius = o->spectral_radii ? o->spectral_radii[i % radii] : s->dynamics->info.spectral_radius;
    point->leak_rate = o->leak_rates ? o->leak_rates[i / radii] : s->dynamics->info.leak_rate;
    s->cell.spec.leak = point->leak_rate;
    s->cell.factor = point->spectral_radius > 0.0 ? point->spectral_radius / s->radius : 0.0;
    TARN_TRY(run_drive(s, &s->free, &point->free, NULL));
    TARN_TRY(run_drive(s, &s->driven, &point->driven, point));
    TARN_TRY(run_memory(s, i, point));
    tarn__work_at(work, (double)(i + 1), (double)(i + 1) / (double)s->scan->count);
    if (outer->progress) TARN_TRY(outer->progress(outer->user, (int64_t)(i + 1), (int64_t)s->scan->count));
  }
  return TARN_STATUS_OK;
}

static tarn_status run_scan(scanning *s, tarn_dynamics_scan **scan) {
  tarn__work work;
  const tarn_dynamics_scan_options *o = s->options;
  for (size_t i = 0; o->spectral_radii && i < o->radius_count; i++)
    TARN_REQUIRE(s->radius > 0.0 || o->spectral_radii[i] == 0.0, NUMERIC,
                 "a matrix of spectral radius 0 cannot be scaled to another one, %.10g", o->spectral_radii[i]);
  TARN_TRY(tarn__dynamics_iterations(s->dynamics, &s->run.iterations));
  TARN_TRY(open_scan(s, scan));
  TARN_TRY(open_drives(s));
  tarn__work_begin(&work, "going over echo state networks", "points");
  const tarn_status status = run_points(s, &work);
  tarn__work_end(&work);
  return status;
}

tarn_status tarn_dynamics_scan_run(tarn_dynamics *d, tarn_dynamics_scan **scan,
                                   const tarn_dynamics_scan_options *options) {
  scanning s = {.dynamics = d, .options = options, .run = d->options, .cell = d->cell};
  *scan = NULL;
  TARN_TRY(check(d, options));
  tarn__threads_set(d->options.threads);
  s.radius = d->info.spectral_radius / d->cell.factor;
  s.run.exponents = 1;
  s.run.kept = 0;
  s.run.progress = NULL;
  if (s.run.apart == 0.0) s.run.apart = 0.1;
  s.cell.noise_in = NULL;
  const tarn_status status = run_scan(&s, scan);
  tarn__drive_close(&s.free);
  tarn__drive_close(&s.driven);
  tarn__free(s.cell.noise_in);
  if (status != TARN_STATUS_OK) tarn_dynamics_scan_close(scan);
  return status;
}
