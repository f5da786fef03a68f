// Laws of families, their intervals, predictions and differences.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/work.h"
#include "report/fit_memory.h"

void tarn_fit_default(tarn_fit_options *options) {
  *options = (tarn_fit_options){
      .axes = {TARN_FIT_PARAMETERS}, .axis_count = 1, .huber = 1e-3, .resamples = 1000, .seed = 12345};
}

static tarn_status check(const tarn_fit_options *o) {
  TARN_REQUIRE(o->axis_count >= 1 && o->axis_count <= TARN_FIT_MOST_AXES, USAGE, "a law has 1 or 2 axes, not %zu",
               o->axis_count);
  for (size_t k = 0; k < o->axis_count; k++)
    TARN_REQUIRE((unsigned)o->axes[k] < TARN_FIT_AXES, USAGE, "there is no axis %d", (int)o->axes[k]);
  TARN_REQUIRE(o->axis_count == 1 || o->axes[0] != o->axes[1], USAGE, "the two axes of a law are %s both",
               tarn_fit_axis_name(o->axes[0]));
  TARN_REQUIRE(o->resamples == 0 || (o->resamples >= TARN_SIGNIFICANCE_LEAST && o->resamples <= TARN_SIGNIFICANCE_MOST),
               USAGE, "the bootstrap takes 0, or %d to %d, resamples, not %lld", TARN_SIGNIFICANCE_LEAST,
               TARN_SIGNIFICANCE_MOST, (long long)o->resamples);
  TARN_REQUIRE(isfinite(o->huber) && o->huber > 0, USAGE, "the Huber loss turns at a difference above 0, not %g",
               o->huber);
  for (size_t i = 0; i < o->predict_count * o->axis_count; i++)
    TARN_REQUIRE(isfinite(o->predict[i]) && o->predict[i] > 0, USAGE, "a size to predict is above 0, not %g",
                 o->predict[i]);
  return TARN_STATUS_OK;
}

// --- intervals

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

tarn_fit_value tarn__fit_interval(struct tarn__fit_memory *m, double value) {
  size_t count = 0;
  const size_t all = (size_t)m->public.resamples;
  for (size_t r = 0; r < all; r++)
    if (!isnan(m->values[r])) m->values[count++] = m->values[r];
  if (all == 0 || 2 * count < all) return (tarn_fit_value){value, NAN, NAN};
  qsort(m->values, count, sizeof *m->values, by_value);
  const size_t cut = (size_t)(0.025 * (double)count);
  return (tarn_fit_value){value, m->values[cut], m->values[count - 1 - cut]};
}

// A number of a law, from its own values and those of every resample.
typedef double (*number_of)(const tarn__law *law, const void *user);

static tarn_fit_value interval_of(struct tarn__fit_memory *m, const tarn__fit_family *family, number_of number,
                                  const void *user) {
  for (int64_t r = 0; r < m->public.resamples; r++) m->values[r] = number(&family->resampled[r], user);
  return tarn__fit_interval(m, number(&family->law, user));
}

static double a_of(const tarn__law *law, const void *axis) { return exp(tarn__law_log_a(law, *(const size_t *)axis)); }
static double b_of(const tarn__law *law, const void *axis) { return law->b[*(const size_t *)axis]; }
static double c_of(const tarn__law *law, const void *user) {
  (void)user;
  return exp(law->log_c);
}
// The mean at several places.
typedef struct places {
  const tarn_fit_point *points;
  size_t count;
} places;

static double loss_of(const tarn__law *law, const void *x);
static double mean_loss_of(const tarn__law *law, const void *user) {
  const places *all = user;
  double sum = 0;
  for (size_t i = 0; i < all->count; i++) sum += loss_of(law, all->points[i].x);
  return sum / (double)all->count;
}

static double loss_of(const tarn__law *law, const void *x) {
  double log_x[TARN_FIT_MOST_AXES];
  for (size_t k = 0; k < law->axes; k++) log_x[k] = log(((const double *)x)[k]);
  return exp(tarn__law_at(law, log_x));
}

// --- the law of a family

static tarn__law_points points_of(const struct tarn__fit_memory *m, const tarn__fit_family *family) {
  return (tarn__law_points){family->log_x, family->log_loss, family->count, m->public.axis_count, m->options.huber};
}

// Fills `resampled` by fits to the law with residuals drawn anew. Family f draws from streams of its own.
static tarn_status bootstrap(struct tarn__fit_memory *m, tarn__fit_family *family, size_t f) {
  void *memory;
  const size_t n = family->count, unknowns = 2 * m->public.axis_count + 1;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, (size_t)m->public.resamples, sizeof *family->resampled));
  family->resampled = memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, 3 * n, sizeof(double)));
  double *fitted = memory, *residual = fitted + n, *drawn = residual + n, mean = 0;
  const double scale = n > unknowns ? sqrt((double)n / (double)(n - unknowns)) : 1;
  for (size_t i = 0; i < n; i++) {
    fitted[i] = tarn__law_at(&family->law, family->log_x + i * m->public.axis_count);
    residual[i] = scale * (family->log_loss[i] - fitted[i]);
    mean += residual[i] / (double)n;
  }
  tarn__law_points points = points_of(m, family);
  points.log_loss = drawn;
  tarn__work work;
  tarn__work_begin(&work, "resampling", "resamples");
  for (int64_t r = 0; r < m->public.resamples; r++) {
    tarn__random random;
    tarn__work_at(&work, (double)r, (double)r / (double)m->public.resamples);
    tarn__random_init(&random, m->options.seed + f, (uint32_t)r);
    for (size_t i = 0; i < n; i++) drawn[i] = fitted[i] + residual[tarn__random_below(&random, n)] - mean;
    family->resampled[r] = family->law;
    tarn__law_refit(&family->resampled[r], &points);
  }
  tarn__work_end(&work);
  return TARN_STATUS_OK;
}

static double largest(const tarn__fit_family *family, size_t axis) {
  double most = 0;
  for (size_t i = 0; i < family->count; i++) most = fmax(most, family->points[i].x[axis]);
  return most;
}

// The largest size of the first axis against the law of the others.
static tarn_status check_largest(struct tarn__fit_memory *m, tarn_fit_law *out, const tarn__fit_family *family) {
  const size_t axes = m->public.axis_count, n = family->count;
  const double most = largest(family, 0);
  double sum = 0;
  size_t left = 0, taken = 0;
  void *memory;
  out->checked_x = out->checked_loss = NAN;
  out->checked = (tarn_fit_value){NAN, NAN, NAN};
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, 2 * n, sizeof(tarn_fit_point)));
  tarn__fit_family rest = {.name = family->name, .points = memory};
  tarn_fit_point *most_points = rest.points + n;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, n * (axes + 1), sizeof(double)));
  rest.log_x = memory, rest.log_loss = rest.log_x + n * axes;
  for (size_t i = 0; i < n; i++) {
    const tarn_fit_point *p = &family->points[i];
    if (p->x[0] >= 0.98 * most) {
      sum += p->loss;
      most_points[taken++] = *p;
      continue;
    }
    rest.points[left] = *p;
    memcpy(rest.log_x + left * axes, family->log_x + i * axes, axes * sizeof(double));
    rest.log_loss[left++] = family->log_loss[i];
  }
  rest.count = left;
  if (!tarn__fit_has_sizes(rest.points, left, axes)) return TARN_STATUS_OK;
  const tarn__law_points points = points_of(m, &rest);
  tarn__law_fit(&rest.law, &points);
  TARN_TRY(bootstrap(m, &rest, SIZE_MAX / 2));
  out->checked_x = most;
  out->checked_loss = sum / (double)taken;
  out->checked = interval_of(m, &rest, mean_loss_of, &(places){most_points, taken});
  return TARN_STATUS_OK;
}

static tarn_status predict(struct tarn__fit_memory *m, tarn_fit_law *out, const tarn__fit_family *family) {
  void *memory;
  const size_t axes = m->public.axis_count;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, m->public.prediction_count, sizeof *out->predictions));
  tarn_fit_prediction *predictions = memory;
  for (size_t i = 0; i < m->public.prediction_count; i++) {
    predictions[i] = (tarn_fit_prediction){.x = {0}};
    memcpy(predictions[i].x, m->options.predict + i * axes, axes * sizeof(double));
    predictions[i].loss = interval_of(m, family, loss_of, predictions[i].x);
  }
  out->predictions = predictions;
  return TARN_STATUS_OK;
}

static tarn_status fit_family(struct tarn__fit_memory *m, tarn_fit_law *out, size_t f) {
  tarn__fit_family *family = &m->families[f];
  const tarn__law_points points = points_of(m, family);
  double squares = 0;
  tarn__law_fit(&family->law, &points);
  TARN_TRY(bootstrap(m, family, f));
  *out = (tarn_fit_law){.family = family->name,
                        .points = family->points,
                        .point_count = family->count,
                        .size_count = family->sizes,
                        .at_bound = tarn__law_at_bound(&family->law)};
  for (size_t k = 0; k < m->public.axis_count; k++) {
    out->a[k] = interval_of(m, family, a_of, &k);
    out->b[k] = interval_of(m, family, b_of, &k);
  }
  out->c = interval_of(m, family, c_of, NULL);
  for (size_t i = 0; i < family->count; i++)
    squares += pow(tarn__law_at(&family->law, family->log_x + i * m->public.axis_count) - family->log_loss[i], 2);
  out->residual = sqrt(squares / (double)family->count);
  TARN_TRY(predict(m, out, family));
  return check_largest(m, out, family);
}

// --- differences

static tarn_fit_value difference(struct tarn__fit_memory *m, const tarn__fit_family *a, const tarn__fit_family *b,
                                 number_of number, const void *user) {
  for (int64_t r = 0; r < m->public.resamples; r++)
    m->values[r] = number(&b->resampled[r], user) - number(&a->resampled[r], user);
  return tarn__fit_interval(m, number(&b->law, user) - number(&a->law, user));
}

// How many times the first law's size the second one needs for its loss at log x.
static double size_ratio(const tarn__law *first, const tarn__law *second, double log_x) {
  return exp(tarn__law_inverse(second, tarn__law_at(first, &log_x)) - log_x);
}

static void compare(struct tarn__fit_memory *m, tarn_fit_pair *pair) {
  const tarn__fit_family *a = &m->families[pair->first], *b = &m->families[pair->second];
  for (size_t k = 0; k < m->public.axis_count; k++) pair->exponent[k] = difference(m, a, b, b_of, &k);
  pair->offset = difference(m, a, b, c_of, NULL);
  pair->at = NAN;
  pair->size = (tarn_fit_value){NAN, NAN, NAN};
  if (m->public.axis_count > 1) return;
  pair->at = fmin(largest(a, 0), largest(b, 0));
  for (int64_t r = 0; r < m->public.resamples; r++) {
    const double ratio = size_ratio(&a->resampled[r], &b->resampled[r], log(pair->at));
    m->values[r] = isnan(ratio) ? INFINITY : ratio;  // no size is large enough
  }
  pair->size = tarn__fit_interval(m, size_ratio(&a->law, &b->law, log(pair->at)));
}

// --- all

static tarn_status default_predictions(struct tarn__fit_memory *m) {
  static const double times[] = {2, 4, 10};
  enum { TIMES = sizeof times / sizeof *times };
  const size_t axes = m->public.axis_count;
  void *memory;
  m->public.prediction_count = m->options.predict_count;
  if (m->options.predict_count > 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, TIMES * axes, sizeof(double)));
  double *sizes = memory;
  for (size_t k = 0; k < axes; k++) {
    double most = 0;
    for (size_t f = 0; f < m->options.family_count; f++) most = fmax(most, largest(&m->families[f], k));
    for (size_t i = 0; i < TIMES; i++) sizes[i * axes + k] = times[i] * most;
  }
  m->options.predict = sizes;
  m->public.prediction_count = TIMES;
  return TARN_STATUS_OK;
}

static tarn_status build(struct tarn__fit_memory *m) {
  void *memory;
  tarn_fit *fit = &m->public;
  TARN_TRY(check(&m->options));
  memcpy(fit->axes, m->options.axes, sizeof fit->axes);
  fit->axis_count = m->options.axis_count;
  fit->resamples = m->options.resamples;
  TARN_TRY(tarn__fit_collect(m));
  const size_t count = m->options.family_count;
  TARN_TRY(default_predictions(m));
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, (size_t)fit->resamples + 1, sizeof *m->values));
  m->values = memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, count, sizeof(tarn_fit_law)));
  tarn_fit_law *laws = memory;
  for (size_t f = 0; f < count; f++) TARN_TRY(fit_family(m, &laws[f], f));
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, count, sizeof(tarn_fit_pair)));
  tarn_fit_pair *pairs = memory;
  for (size_t f = 1; f < count; f++) {
    pairs[f - 1] = (tarn_fit_pair){.first = 0, .second = f};
    compare(m, &pairs[f - 1]);
  }
  fit->laws = laws, fit->law_count = count;
  fit->pairs = pairs, fit->pair_count = count - 1;
  fit->notes = m->notes;
  return TARN_STATUS_OK;
}

tarn_status tarn_fit_make(tarn_fit **fit, const tarn_results *results, const tarn_fit_options *options) {
  void *memory;
  *fit = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(struct tarn__fit_memory)));
  struct tarn__fit_memory *m = memory;
  m->public.memory = m;
  m->results = results;
  tarn_fit_default(&m->options);
  if (options) m->options = *options;
  const tarn_status status = build(m);
  *fit = &m->public;
  if (status != TARN_STATUS_OK) tarn_fit_close(fit);
  return status;
}

void tarn_fit_close(tarn_fit **fit) {
  if (!*fit) return;
  struct tarn__fit_memory *m = (*fit)->memory;
  tarn__free(m->notes);
  tarn__arena_close(&m->arena);
  tarn__free(m);
  *fit = NULL;
}
