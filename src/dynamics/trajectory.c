#include "dynamics/trajectory.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "base/work.h"
#include "dynamics/exponents.h"
#include "dynamics/frames.h"
#include "dynamics/plane.h"
#include "dynamics/settling.h"
#include "dynamics/sums.h"
#include "dynamics/token_measures.h"

struct tarn__dynamics_memory {
  tarn__arena arena;
};

// The state of a system during the iteration.
typedef struct walk {
  tarn_dynamics_sentence *result;
  int64_t at, n;  // index of its first number in a state, and their number
  double scale;   // largest norm so far
  tarn__random random;
  double *diagonal;    // [k]
  double *signatures;  // [iterations + 1, TARN__SIGNATURE]
  double *collapsed;   // [iterations + 1]: token_distance, relative
  int64_t framed;      // iterations after the last QR
  bool over, overflowed;
} walk;

typedef struct trajectory {
  const tarn__iterated *map;
  const tarn_dynamics_options *options;
  tarn_dynamics_result *result;
  walk *systems;
  int64_t k, rows, numbers;  // numbers of a state of all systems
  int64_t slots;             // states in the ring
  double tolerance;
  double *state, *other, *perturbations, *centred, *ring, *projections;  // other NULL: no second start
  float *kept;
  bool *drawn;  // [kept + 1, systems]: whether a kept state is in the plane
  size_t bytes;
  bool planned;  // memory is counted, and only that of the systems taken
  tarn__arena arena;
} trajectory;

double tarn__trajectory_tolerance(const tarn_dynamics_options *options) {
  if (options->tolerance > 0.0) return options->tolerance;
  return options->precision == TARN_DYNAMICS_PRECISION_DOUBLE ? 1e-9 : 1e-5;
}

static int64_t iterations_of(const trajectory *t, int64_t index) {
  const int64_t *lengths = t->map->lengths, all = t->options->iterations;
  return lengths && lengths[index] < all ? lengths[index] : all;
}

static int64_t discard_of(const trajectory *t, int64_t iterations) {
  if (t->options->discard >= 0) return t->options->discard;
  return t->map->autonomous ? iterations / 2 : 0;
}

// Counts memory before it is taken.
static tarn_status count_bytes(trajectory *t, size_t count, size_t size) {
  size_t bytes;
  TARN_TRY(tarn__mul_size(&bytes, count, size));
  TARN_TRY(tarn__add_size(&t->bytes, t->bytes, bytes));
  const size_t most = t->options->max_memory;
  TARN_REQUIRE(most == 0 || t->bytes <= most, MEMORY,
               "the states and results need more than the %.1f MB that are allowed: allow more, or take fewer "
               "sentences, iterations, exponents or kept states, or a smaller longest period",
               (double)most / 1e6);
  return TARN_STATUS_OK;
}

// Takes memory that is freed with the trajectory. *out: a pointer.
static tarn_status take(trajectory *t, void *out, size_t count, size_t size) {
  void *memory = NULL;
  TARN_TRY(count_bytes(t, count, size));
  if (!t->planned) TARN_TRY(tarn__arena_alloc(&t->arena, &memory, count, size));
  memcpy(out, &memory, sizeof memory);
  return TARN_STATUS_OK;
}

// Takes an array of the result.
static tarn_status take_array(trajectory *t, double **out, int64_t count) {
  void *memory;
  *out = NULL;
  TARN_TRY(count_bytes(t, (size_t)count, sizeof(double)));
  if (t->planned) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(&t->result->memory->arena, &memory, (size_t)count, sizeof(double)));
  *out = memory;
  for (int64_t i = 0; i < count; i++) (*out)[i] = NAN;
  return TARN_STATUS_OK;
}

static tarn_status open_sentence(trajectory *t, int64_t index) {
  const tarn__iterated *map = t->map;
  walk *s = &t->systems[index];
  tarn_dynamics_sentence *r = s->result = &t->result->sentences[index];
  const int64_t n = iterations_of(t, index);
  *r = (tarn_dynamics_sentence){.line = map->lines ? map->lines[index] : index + 1,
                                .tokens = map->offsets[index + 1] - map->offsets[index],
                                .dimensions = tarn__iterated_dimensions(map, index),
                                .iterations = n,
                                .diverged = -1,
                                .settled = -1,
                                .settling = TARN_DYNAMICS_SETTLING_UNKNOWN,
                                .residual = NAN};
  s->at = map->offsets[index] * map->width;
  s->n = r->dimensions;
  tarn__random_init(&s->random, t->options->seed, 0x44590000u + (uint32_t)index);
  double **arrays[] = {&r->norm,         &r->step,          &r->start_distance, &r->token_distance,
                       &r->token_cosine, &r->participation, &r->rank_collapse,  &s->collapsed};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) TARN_TRY(take_array(t, arrays[i], n + 1));
  TARN_TRY(take_array(t, &r->exponents, t->k));
  TARN_TRY(take_array(t, &s->diagonal, t->k));
  TARN_TRY(take_array(t, &r->local, n * t->k));
  TARN_TRY(take_array(t, &r->finite_time, n * t->k));
  if (t->result->kept > 0) TARN_TRY(take_array(t, &r->plane, (t->result->kept + 1) * r->tokens * 2));
  return map->autonomous ? take(t, &s->signatures, (size_t)(n + 1) * TARN__SIGNATURE, sizeof(double)) : TARN_STATUS_OK;
}

static tarn_status open_result(trajectory *t, tarn_dynamics_result **out) {
  const tarn_dynamics_options *o = t->options;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_dynamics_result)));
  tarn_dynamics_result *r = *out = t->result = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(struct tarn__dynamics_memory)));
  r->memory = memory;
  TARN_TRY(tarn__arena_alloc(&r->memory->arena, &memory, (size_t)t->map->systems, sizeof *r->sentences));
  r->sentences = memory;
  r->count = t->map->systems;
  for (int64_t i = 0; i < r->count; i++)
    if (iterations_of(t, i) > r->iterations) r->iterations = iterations_of(t, i);
  r->exponents = t->k;
  r->every = o->every;
  r->discard = discard_of(t, r->iterations);
  r->longest_period = o->longest_period;
  r->tolerance = t->tolerance;
  r->apart = o->apart;
  r->kept = o->kept < r->iterations ? o->kept : r->iterations;
  r->threads = tarn__threads();
  return TARN_STATUS_OK;
}

static int64_t largest_system(const trajectory *t) {
  int64_t most = 0;
  for (int64_t i = 0; i < t->map->systems; i++)
    if (t->systems[i].n > most) most = t->systems[i].n;
  return most;
}

// Counted in advance, because the plane is computed last.
static tarn_status count_plane(trajectory *t) {
  const size_t most = t->options->max_memory;
  const size_t bytes = tarn__plane_bytes((t->result->kept + 1) * t->rows, t->map->width);
  TARN_TRY(tarn__add_size(&t->bytes, t->bytes, bytes));
  TARN_REQUIRE(
      most == 0 || t->bytes <= most, MEMORY,
      "the principal components of states of width %lld need %.1f MB, which is with the rest more than the %.1f "
      "MB that are allowed: allow more, or keep no states (kept 0)",
      (long long)t->map->width, (double)bytes / 1e6, (double)most / 1e6);
  return TARN_STATUS_OK;
}

static tarn_status open_states(trajectory *t, const double *start) {
  const size_t numbers = (size_t)t->numbers;
  t->slots = 1 + (t->map->autonomous ? t->options->longest_period : 1);
  TARN_TRY(take(t, &t->state, numbers, sizeof(double)));
  TARN_TRY(take(t, &t->centred, numbers, sizeof(double)));
  TARN_TRY(take(t, &t->ring, numbers * (size_t)t->slots, sizeof(double)));
  if (t->options->apart > 0.0) TARN_TRY(take(t, &t->other, numbers, sizeof(double)));
  if (t->k > 0) TARN_TRY(take(t, &t->perturbations, numbers * (size_t)t->k, sizeof(double)));
  if (t->result->kept > 0) {
    TARN_TRY(count_plane(t));
    TARN_TRY(take(t, &t->kept, numbers * (size_t)(t->result->kept + 1), sizeof(float)));
    TARN_TRY(take(t, &t->drawn, (size_t)((t->result->kept + 1) * t->result->count), sizeof *t->drawn));
  }
  const int64_t most = t->map->autonomous ? largest_system(t) : 0;
  if (most > 0) TARN_TRY(take(t, &t->projections, (size_t)most * TARN__SIGNATURE, sizeof(double)));
  if (t->planned) return TARN_STATUS_OK;
  memcpy(t->state, start, numbers * sizeof(double));
  tarn__random random;
  tarn__random_init(&random, t->options->seed, 0x44595052u);
  for (int64_t i = 0; i < most * TARN__SIGNATURE; i++)
    t->projections[i] = tarn__random_normal(&random) / sqrt(TARN__SIGNATURE);
  return TARN_STATUS_OK;
}

// The second start, at relative distance `apart`; from a zero state, at that root mean square distance.
static void start_other(trajectory *t, walk *s) {
  double *other = t->other + s->at;
  const double *state = t->state + s->at;
  double norm = sqrt(tarn__sum_product(state, state, s->n));
  if (!(norm > 0.0)) norm = sqrt((double)s->n);
  for (int64_t i = 0; i < s->n; i++) other[i] = tarn__random_normal(&s->random);
  const double factor = t->options->apart * norm / sqrt(tarn__sum_product(other, other, s->n));
  for (int64_t i = 0; i < s->n; i++) other[i] = state[i] + factor * other[i];
}

static void sign(const trajectory *t, walk *s, int64_t iteration) {
  const double *state = t->state + s->at;
  for (int i = 0; i < TARN__SIGNATURE; i++)
    s->signatures[iteration * TARN__SIGNATURE + i] = tarn__sum_product(t->projections + i * s->n, state, s->n);
}

// A diverged system continues as zeros, which are ignored.
static void stop(trajectory *t, walk *s) {
  s->over = true;
  for (int64_t i = 0; i < s->n; i++) t->state[s->at + i] = 0.0;
  for (int64_t i = 0; t->other && i < s->n; i++) t->other[s->at + i] = 0.0;
  for (int64_t j = 0; j < t->k; j++)
    for (int64_t i = 0; i < s->n; i++) t->perturbations[j * t->numbers + s->at + i] = 0.0;
}

// A recurrence may start from zeros, from which every state has relative distance 1.
static double relative(const walk *s, double distance) {
  if (!isfinite(distance)) return NAN;  // the second start has diverged
  if (!(distance > 0.0)) return distance;
  return s->scale > 0.0 ? distance / s->scale : 1.0;
}

// Measures the state of an iteration; 0 is the start.
static void observe(trajectory *t, walk *s, int64_t iteration) {
  tarn_dynamics_sentence *r = s->result;
  const double *state = t->state + s->at;
  const double square = tarn__sum_product(state, state, s->n), norm = sqrt(square);
  if (!isfinite(square)) {
    r->diverged = iteration;
    stop(t, s);
    return;
  }
  double *slot = t->ring + iteration % t->slots * t->numbers + s->at;
  const double *before = t->ring + (iteration + t->slots - 1) % t->slots * t->numbers + s->at;
  if (norm > s->scale) s->scale = norm;
  r->norm[iteration] = sqrt(square / (double)s->n);
  if (iteration > 0) r->step[iteration] = relative(s, sqrt(tarn__sum_difference(state, before, s->n)));
  if (t->other) r->start_distance[iteration] = relative(s, sqrt(tarn__sum_difference(state, t->other + s->at, s->n)));
  const tarn__token_measures m = tarn__token_measures_of(state, r->tokens, t->map->width, t->centred + s->at);
  r->token_distance[iteration] = m.distance;
  r->token_cosine[iteration] = m.cosine;
  r->participation[iteration] = m.participation;
  r->rank_collapse[iteration] = m.collapse;
  s->collapsed[iteration] = relative(s, m.distance * sqrt((double)r->tokens));
  if (t->map->autonomous) sign(t, s, iteration);
  memcpy(slot, state, (size_t)s->n * sizeof(double));
  if (iteration <= t->result->kept && t->kept)
    for (int64_t i = 0; i < s->n; i++) t->kept[iteration * t->numbers + s->at + i] = (float)state[i];
}

// The QR factorisation of a system's perturbations after an iteration.
static void reframe(trajectory *t, walk *s, int64_t iteration) {
  const int64_t k = t->k, span = iteration - s->framed;
  tarn__frame_orthonormalise(t->perturbations + s->at, t->numbers, s->n, k, s->diagonal, &s->random);
  for (int64_t j = 0; j < k; j++) {
    if (isnan(s->diagonal[j])) s->overflowed = true;
    for (int64_t i = s->framed; i < iteration; i++) s->result->local[i * k + j] = log(s->diagonal[j]) / (double)span;
  }
  s->framed = iteration;
}

static void begin(trajectory *t, walk *s) {
  if (t->k > 0) tarn__frame_random(t->perturbations + s->at, t->numbers, s->n, t->k, &s->random);
  if (t->other) start_other(t, s);
  observe(t, s, 0);
}

static void advance(trajectory *t, walk *s, int64_t iteration) {
  const bool last = iteration == s->result->iterations;
  if (s->over) return;
  observe(t, s, iteration);
  if (t->k > 0 && !s->over && (iteration % t->options->every == 0 || last)) reframe(t, s, iteration);
  if (last) s->over = true;
}

// All systems, each by one thread.
static void each(trajectory *t, void (*work)(trajectory *, walk *, int64_t), int64_t iteration) {
#pragma omp parallel for schedule(static) num_threads(tarn__threads()) if (t->numbers * (2 + t->k) >= 4096)
  for (int64_t i = 0; i < t->map->systems; i++) work(t, &t->systems[i], iteration);
}

static void begin_each(trajectory *t, walk *s, int64_t iteration) {
  (void)iteration;
  begin(t, s);
}

static tarn_status check_overflow(const trajectory *t) {
  for (int64_t i = 0; i < t->map->systems; i++)
    TARN_REQUIRE(!t->systems[i].overflowed, NUMERIC,
                 "sentence %lld: its perturbations overflow between two QR factorisations; make them orthonormal more "
                 "often than every %lld iterations, or compute in double",
                 (long long)t->systems[i].result->line, (long long)t->options->every);
  return TARN_STATUS_OK;
}

static tarn_status iterate(trajectory *t, tarn__work *work) {
  const tarn_dynamics_options *o = t->options;
  const int64_t all = t->result->iterations;
  each(t, begin_each, 0);
  for (int64_t i = 1; i <= all; i++) {
    TARN_TRY(t->map->step(t->map->self, t->state, t->perturbations, t->k, i - 1));
    if (t->other) TARN_TRY(t->map->step(t->map->self, t->other, NULL, 0, i - 1));
    each(t, advance, i);
    TARN_TRY(check_overflow(t));
    tarn__work_at(work, (double)i, (double)i / (double)all);
    if (o->progress) TARN_TRY(o->progress(o->user, i, all));
  }
  return TARN_STATUS_OK;
}

static void judge(trajectory *t, walk *s, int64_t unused) {
  (void)unused;
  tarn_dynamics_sentence *r = s->result;
  const tarn_dynamics_options *o = t->options;
  tarn__exponents_judge(r, t->k, discard_of(t, r->iterations));
  tarn__synchrony_judge(&r->starts, r->start_distance, r->iterations, o->longest_period, t->tolerance);
  tarn__synchrony_judge(&r->between_tokens, s->collapsed, r->iterations, o->longest_period, t->tolerance);
  if (r->diverged >= 0) r->settling = TARN_DYNAMICS_SETTLING_DIVERGED;
  if (r->diverged >= 0 || !t->map->autonomous) return;
  const tarn__tail tail = {.ring = t->ring + s->at,
                           .slots = t->slots,
                           .stride = t->numbers,
                           .n = s->n,
                           .last = r->iterations,
                           .scale = s->scale,
                           .tolerance = t->tolerance};
  tarn__settling_judge(r, &tail, s->signatures);
  if (t->other) r->starts.lag = tarn__lag_of(&tail, t->other + s->at);
}

// Whether a state was kept and is finite in fp32 too.
static bool is_drawn(const trajectory *t, int64_t index, int64_t iteration) {
  const tarn_dynamics_sentence *s = &t->result->sentences[index];
  const float *x = t->kept + iteration * t->numbers + t->systems[index].at;
  if (iteration > s->iterations || (s->diverged >= 0 && iteration >= s->diverged)) return false;
  for (int64_t i = 0; i < t->systems[index].n; i++)
    if (!isfinite(x[i])) return false;
  return true;
}

// Moves the drawn rows to the front, records their states, and returns their number.
static int64_t gather_kept(trajectory *t, bool *drawn) {
  const int64_t width = t->map->width;
  int64_t rows = 0;
  for (int64_t i = 0; i <= t->result->kept; i++)
    for (int64_t s = 0; s < t->result->count; s++, drawn++) {
      const walk *one = &t->systems[s];
      *drawn = is_drawn(t, s, i);
      if (!*drawn) continue;
      memmove(t->kept + rows * width, t->kept + i * t->numbers + one->at, (size_t)one->n * sizeof(float));
      rows += one->result->tokens;
    }
  return rows;
}

// The kept states in their plane. Values after a divergence or the end of a system stay NAN.
static tarn_status draw_plane(trajectory *t) {
  tarn_dynamics_result *r = t->result;
  const int64_t width = t->map->width;
  tarn__plane plane;
  if (!t->kept) return TARN_STATUS_OK;
  const bool *drawn = t->drawn;
  const int64_t rows = gather_kept(t, t->drawn);
  if (rows == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__plane_open(&plane, t->kept, rows, width));
  const float *x = t->kept;
  for (int64_t i = 0; i <= r->kept; i++)
    for (int64_t s = 0; s < r->count; s++) {
      const tarn_dynamics_sentence *one = &r->sentences[s];
      if (!*drawn++) continue;
      for (int64_t row = 0; row < one->tokens; row++, x += width)
        tarn__plane_place(&plane, one->plane + 2 * (i * one->tokens + row), x, width);
    }
  for (int i = 0; i < 2; i++) r->plane_share[i] = plane.share[i];
  tarn__plane_close(&plane);
  return TARN_STATUS_OK;
}

static tarn_status check(const trajectory *t) {
  const tarn__iterated *map = t->map;
  const int64_t discard = t->options->discard, iterations = t->result->iterations;
  for (int64_t i = 0; i < map->systems; i++) {
    const int64_t dimensions = tarn__iterated_dimensions(map, i);
    TARN_REQUIRE(t->k <= dimensions, USAGE,
                 "%lld exponents are asked for, and the state of sentence %lld has %lld dimensions", (long long)t->k,
                 (long long)(map->lines ? map->lines[i] : i + 1), (long long)dimensions);
  }
  TARN_REQUIRE(discard < iterations, USAGE, "the exponents leave out %lld iterations, and there are %lld",
               (long long)discard, (long long)iterations);
  return TARN_STATUS_OK;
}

// All that comes before the first iteration.
static tarn_status open_all(trajectory *t, tarn_dynamics_result **result, const double *start) {
  void *memory;
  TARN_TRY(open_result(t, result));
  TARN_TRY(check(t));
  TARN_TRY(count_bytes(t, (size_t)t->map->systems, sizeof(walk)));
  TARN_TRY(tarn__arena_alloc(&t->arena, &memory, (size_t)t->map->systems, sizeof(walk)));
  t->systems = memory;
  for (int64_t i = 0; i < t->map->systems; i++) TARN_TRY(open_sentence(t, i));
  return open_states(t, start);
}

static tarn_status run(trajectory *t, tarn_dynamics_result **result, const double *start) {
  tarn__work work;
  const double begun = tarn__seconds();
  TARN_TRY(open_all(t, result, start));
  tarn__work_begin(&work, "iterating", "iterations");
  const tarn_status status = iterate(t, &work);
  tarn__work_end(&work);
  TARN_TRY(status);
  each(t, judge, 0);
  TARN_TRY(draw_plane(t));
  for (int64_t i = 0; i < t->result->count; i++) t->result->diverged += t->result->sentences[i].diverged >= 0;
  t->result->memory_bytes = t->bytes;
  t->result->seconds = tarn__seconds() - begun;
  return TARN_STATUS_OK;
}

static trajectory trajectory_of(const tarn__iterated *map, const tarn_dynamics_options *options, size_t map_bytes) {
  trajectory t = {.map = map,
                  .options = options,
                  .k = options->exponents,
                  .rows = tarn__iterated_rows(map),
                  .tolerance = tarn__trajectory_tolerance(options),
                  .bytes = map_bytes};
  t.numbers = t.rows * map->width;
  return t;
}

tarn_status tarn__trajectory_run(tarn_dynamics_result **result, const tarn__iterated *map, const double *start,
                                 const tarn_dynamics_options *options, size_t map_bytes) {
  trajectory t = trajectory_of(map, options, map_bytes);
  *result = NULL;
  const tarn_status status = run(&t, result, start);
  tarn__arena_close(&t.arena);
  if (status != TARN_STATUS_OK) tarn_dynamics_result_close(result);
  return status;
}

tarn_status tarn__trajectory_check(const tarn__iterated *map, const tarn_dynamics_options *options, size_t map_bytes) {
  trajectory t = trajectory_of(map, options, map_bytes);
  tarn_dynamics_result *result = NULL;
  t.planned = true;
  const tarn_status status = open_all(&t, &result, NULL);
  tarn__arena_close(&t.arena);
  tarn_dynamics_result_close(&result);
  return status;
}

void tarn_dynamics_result_close(tarn_dynamics_result **result) {
  if (!*result) return;
  if ((*result)->memory) tarn__arena_close(&(*result)->memory->arena);
  tarn__free((*result)->memory);
  tarn__free(*result);
  *result = NULL;
}
