#include "report/measures.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "description/description.h"
#include "significance/aucc.h"
#include "tarn/measure.h"

void tarn__measures_blank(tarn_results_measures *m) {
  *m = (tarn_results_measures){.aucc = NAN,
                               .aucc_mean = NAN,
                               .best = NAN,
                               .best_seconds = NAN,
                               .best_epoch = NAN,
                               .best_step = -1,
                               .min_loss = NAN,
                               .min_loss_seconds = NAN,
                               .min_loss_step = -1,
                               .epoch_seconds = NAN,
                               .budget_step = NAN,
                               .budget_epoch = NAN,
                               .test_bleu = NAN,
                               .test_chrf = NAN,
                               .test_blimp = NAN,
                               .test_score = NAN,
                               .exponent = NAN,
                               .min_train_loss = NAN,
                               .min_train_loss_seconds = NAN,
                               .epoch_train_loss = NAN,
                               .min_train_loss_step = -1,
                               .peak_bytes = NAN,
                               .joules = NAN,
                               .epoch_joules = NAN,
                               .best_joules = NAN,
                               .co2_grams = NAN,
                               .token_operations = NAN,
                               .operations = NAN,
                               .best_operations = NAN,
                               .moved_bytes = NAN};
}

const tarn_results_set *tarn__results_set_of(const tarn_results_run *run, const char *score) {
  for (size_t i = 0; i < run->set_count; i++) {
    const size_t length = strlen(run->sets[i].name);
    if (strncmp(score, run->sets[i].name, length) == 0 && score[length] == '/') return &run->sets[i];
  }
  return NULL;
}

bool tarn__measures_ends_at(const tarn_results_run *run, double budget) {
  double own = run->config->train.max_minutes * 60;
  return strcmp(run->end, "minutes") == 0 && fabs(own - budget) <= 1e-6 * budget;
}

// The best point of the training up to T-hat, the first one of ties; NULL if there is none. The untrained model of step
// 0 does not count, even if all later ones are worse.
static const tarn_results_point *best_point(const tarn_results_series *series, const tarn_results_run *run,
                                            double budget) {
  double limit = tarn__measures_ends_at(run, budget) ? INFINITY : budget;
  const tarn_results_point *best = NULL;
  for (size_t i = 0; i < series->count && series->points[i].seconds <= limit; i++) {
    const tarn_results_point *p = &series->points[i];
    if (p->step == 0) continue;
    if (!best || (series->less ? p->value < best->value : p->value > best->value)) best = p;
  }
  return best;
}

// Whether a run improved on its first validation, that of the untrained model if there is one. Otherwise the time to
// the best, or to the smallest loss, would not measure progress, and would be shorter the earlier the first validation.
static bool has_learnt(const tarn_results_series *series, const tarn_results_point *best) {
  const double first = series->points[0].value;
  return series->less ? best->value < first : best->value > first;
}

static tarn_status measure_area(tarn_results_measures *m, const tarn_results_run *run,
                                const tarn_results_series *series, double budget) {
  const tarn_results_point *points = series->points;
  const tarn_results_point *end = &points[series->count - 1];
  double start = points[0].value;
  m->held = budget - end->seconds > 0.01 * budget;
  m->assumed_start = points[0].step > 0;
  if (m->assumed_start) {
    const tarn_measure *measure = tarn_measure_find(series->name);
    const bool from_zero = measure && measure->from_zero;
    TARN_REQUIRE(from_zero || (strncmp(series->name, "valid/", 6) != 0 && !tarn__results_set_of(run, series->name)),
                 DATA, "%s: the area under %s needs a validation at time 0; train with valid.at_start: yes", run->path,
                 series->name);
    if (from_zero) start = 0;
  }
  double area = tarn__curve_area(points, series->count, start, budget);
  double sign = series->less ? -1 : 1;
  m->aucc = sign * area / 60;
  m->aucc_mean = sign * area / budget;
  TARN_REQUIRE(isfinite(m->aucc), NUMERIC, "%s: the area under %s is not a finite number", run->path, series->name);
  return TARN_STATUS_OK;
}

// Step and epoch at T-hat, from all points of all series that have them.
static void measure_position(tarn_results_measures *m, const tarn_results_run *run, double budget) {
  tarn_results_point before = {0};
  tarn_results_point after = {.seconds = run->seconds, .step = run->step, .epoch = run->epoch};
  for (size_t s = 0; s < run->series_count; s++) {
    for (size_t i = 0; i < run->series[s].count; i++) {
      const tarn_results_point *p = &run->series[s].points[i];
      if (isnan(p->epoch)) continue;
      if (p->seconds <= budget && p->step >= before.step) before = *p;
      if (p->seconds > budget && p->step < after.step) after = *p;
    }
  }
  if (after.seconds <= budget) before = after;
  double length = after.seconds - before.seconds;
  double share = length > 0 ? (budget - before.seconds) / length : 0;
  m->budget_step = (double)before.step + share * (double)(after.step - before.step);
  m->budget_epoch = before.epoch + share * (after.epoch - before.epoch);
}

// Number of updates of complete windows: those between two lines, or fewer if the training never got that far.
static int64_t window_updates(const tarn_results_series *loss, const tarn_results_run *run) {
  int64_t longest = 0;
  for (size_t i = 0; i < loss->count; i++) {
    const int64_t updates = loss->points[i].step - (i > 0 ? loss->points[i - 1].step : 0);
    if (updates > longest) longest = updates;
  }
  const int64_t every = run->config->train.log_every;
  return longest < every ? longest : every;
}

// The line with the smallest training loss up to T-hat. The last line of a training may cover one update, and after a
// resumption the next one only a few: their losses vary more, so their minimum is not meaningful.
static const tarn_results_point *least_window(const tarn_results_series *loss, const tarn_results_run *run,
                                              double budget, const tarn_results_point **first) {
  const double limit = tarn__measures_ends_at(run, budget) ? INFINITY : budget;
  const int64_t whole = window_updates(loss, run);
  const tarn_results_point *best = NULL;
  int64_t before = 0;
  for (size_t i = 0; i < loss->count && loss->points[i].seconds <= limit; i++) {
    const tarn_results_point *p = &loss->points[i];
    const bool counts = p->step > 0 && p->step - before >= whole;
    if (counts && !best) *first = p;
    if (counts && (!best || p->value < best->value)) best = p;
    before = p->step;
  }
  return best;
}

// The smallest training loss, and its mean over the last epoch. A line of the log is the mean over the updates since
// the previous line, so it is weighted by the part of the epoch between the two. If the loss only rose, the smallest is
// on the first line, at a time determined by train.log_every, so there is no time to the minimum.
static void measure_training(tarn_results_measures *m, const tarn_results_run *run, double budget) {
  const tarn_results_series *loss = tarn_results_find(run, "train/loss");
  if (!loss || !best_point(loss, run, budget)) return;
  const tarn_results_point *first = NULL;
  const tarn_results_point *least = least_window(loss, run, budget, &first);
  if (least) {
    m->min_train_loss = least->value;
    if (least->value < first->value) m->min_train_loss_seconds = least->seconds;
    m->min_train_loss_step = least->step;
  }
  double limit = tarn__measures_ends_at(run, budget) ? INFINITY : budget;
  double end = NAN;
  for (size_t i = 0; i < loss->count && loss->points[i].seconds <= limit; i++) end = loss->points[i].epoch;
  double before = 0;
  double weights = 0;
  double sum = 0;
  for (size_t i = 0; i < loss->count && loss->points[i].seconds <= limit; i++) {
    const tarn_results_point *p = &loss->points[i];
    double weight = p->epoch - fmax(before, end - 1);
    before = p->epoch;
    if (!(weight > 0)) continue;  // before the last epoch, or a log without epochs
    weights += weight;
    sum += weight * p->value;
  }
  if (weights > 0) m->epoch_train_loss = sum / weights;
}

int64_t tarn__measures_exponent_step(const tarn_results_run *run, double budget) {
  const double limit = tarn__measures_ends_at(run, budget) ? INFINITY : budget;
  int64_t last = -1;
  for (size_t s = 0; s < run->series_count; s++) {
    const tarn_results_series *series = &run->series[s];
    if (strncmp(series->name, "dynamics/", 9) != 0) continue;
    for (size_t i = 0; i < series->count && series->points[i].seconds <= limit; i++)
      if (series->points[i].step > last) last = series->points[i].step;
  }
  return last;
}

double tarn__measures_at(const tarn_results_run *run, const char *name, int64_t step) {
  const tarn_results_series *series = tarn_results_find(run, name);
  for (size_t i = 0; series && i < series->count; i++)
    if (series->points[i].step == step) return series->points[i].value;
  return NAN;
}

// The cost until the best validation is known only for the validation chosen by valid.metric.
static void measure_cost(tarn_results_measures *m, const tarn_results_run *run) {
  const tarn_cost *cost = &run->cost;
  const bool same = m->best_step >= 0 && m->best_step == run->best_update;
  m->joules = cost->joules;
  m->epoch_joules = cost->epoch_joules;
  if (same) m->best_joules = cost->best_joules;
  m->co2_grams = cost->co2_grams;
  m->token_operations = cost->token_operations;
  m->operations = cost->operations;
  if (same) m->best_operations = cost->best_operations;
  m->moved_bytes = cost->moved_bytes;
}

tarn_status tarn__measures_of(tarn_results_measures *m, const tarn_results_run *run, const tarn_results_series *series,
                              double budget) {
  tarn__measures_blank(m);
  TARN_TRY(measure_area(m, run, series, budget));
  const tarn_results_point *best = best_point(series, run, budget);
  if (best) {
    m->best = best->value;
    if (has_learnt(series, best)) m->best_seconds = best->seconds;
    m->best_step = best->step;
    m->best_epoch = best->epoch;
  }
  const tarn_results_series *loss = tarn_results_find(run, "valid/loss");
  const tarn_results_point *least = loss ? best_point(loss, run, budget) : NULL;
  if (least) {
    m->min_loss = least->value;
    if (has_learnt(loss, least)) m->min_loss_seconds = least->seconds;
    m->min_loss_step = least->step;
  }
  measure_training(m, run, budget);
  m->exponent = tarn__measures_at(run, "dynamics/exponent", tarn__measures_exponent_step(run, budget));
  if (run->epoch > 0) m->epoch_seconds = run->seconds / run->epoch;
  measure_position(m, run, budget);
  measure_cost(m, run);
  m->test_bleu = run->test_bleu;
  m->test_chrf = run->test_chrf;
  m->test_blimp = run->test_blimp;
  if (run->peak_bytes >= 0) m->peak_bytes = (double)run->peak_bytes;
  return TARN_STATUS_OK;
}
