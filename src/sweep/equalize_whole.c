// Equal sizes by a whole number. The measure rises with the number, so its place among the numbers is found by halves.
#include <math.h>
#include <string.h>

#include "sweep/spec.h"
#include "train/plan_config.h"

typedef struct search {
  tarn_sweep *sweep;
  const tarn__sweep_goal *goal;
  tarn__sweep_whole *whole;
} search;

// The variant's edits with the changes for a number; the caller frees the list, even after a failure.
static tarn_status edit(const search *s, tarn__sweep_edits *edits, int64_t number) {
  const tarn__sweep_edits *own = &s->sweep->memory->edits[s->goal->variant];
  const char *changes[TARN__SWEEP_CHANGES];
  size_t count = 0;
  TARN_TRY(tarn__grow(&edits->items, &edits->capacity, own->count + 1, sizeof *edits->items));
  if (own->count > 0) memcpy(edits->items, own->items, own->count * sizeof *edits->items);
  edits->count = own->count;
  TARN_TRY(s->whole->changes(s->sweep, s->whole, number, changes, &count));
  for (size_t i = 0; i < count; i++) TARN_TRY(tarn__sweep_add_text(edits, changes[i]));
  return TARN_STATUS_OK;
}

// The variant with one of the numbers. A configuration that is refused has no measure: NAN.
static tarn_status measure(const search *s, double *value, int64_t number) {
  tarn__sweep_edits edits = {0};
  tarn_config *config = NULL;
  tarn__planned planned;
  tarn_plan_options options = {0};
  *value = NAN;
  tarn_status status = edit(s, &edits, number);
  if (status == TARN_STATUS_OK) {
    status = tarn__sweep_config(s->sweep, &config, &edits, s->sweep->seeds[0]);
    if (status == TARN_STATUS_USAGE) {
      tarn__free(edits.items);
      return TARN_STATUS_OK;
    }
  }
  tarn__free(edits.items);
  if (status == TARN_STATUS_OK) status = tarn__plan_ranks(&planned, config, &options, 1);
  if (status == TARN_STATUS_OK) {
    *value = tarn__sweep_measure(&planned.plan, s->goal->by);
    tarn__planned_close(&planned);
  }
  tarn_config_close(&config);
  return status;
}

// The number at *at or, as long as they are refused and removed, the next one above or, at the end, below; NAN: none is
// left in [first, last). `last` and the place of now shrink with the list.
static tarn_status measure_at(search *s, double *value, size_t *at, size_t first, size_t *last) {
  tarn__sweep_whole *whole = s->whole;
  for (*value = NAN; first < *last;) {
    if (*at >= *last) *at = *last - 1;
    TARN_TRY(measure(s, value, whole->numbers[*at]));
    if (!isnan(*value)) return TARN_STATUS_OK;
    memmove(whole->numbers + *at, whole->numbers + *at + 1, (whole->count - *at - 1) * sizeof *whole->numbers);
    whole->count--;
    (*last)--;
    if (*at < whole->now) whole->now--;
  }
  return TARN_STATUS_OK;
}

// Two neighbours in the list with the goal between them, or its end twice.
typedef struct pair {
  size_t low, high;
  double below, above;
} pair;

// Goes up from now in growing steps, then by halves.
static tarn_status search_up(search *s, pair *found) {
  *found = (pair){s->whole->now, s->whole->now, s->goal->now, s->goal->now};
  for (size_t step = 1; found->above < s->goal->base; step *= 2) {
    size_t last = s->whole->count, at = found->high + step;
    double value;
    *found = (pair){found->high, found->high, found->above, found->above};
    TARN_TRY(measure_at(s, &value, &at, found->high + 1, &last));
    if (isnan(value)) return TARN_STATUS_OK;  // the end
    found->high = at;
    found->above = value;
  }
  return TARN_STATUS_OK;
}

static tarn_status search_down(search *s, pair *found) {
  size_t last = s->whole->now, at = 0;
  double value;
  *found = (pair){s->whole->now, s->whole->now, s->goal->now, s->goal->now};
  TARN_TRY(measure_at(s, &value, &at, 0, &last));
  if (isnan(value)) return TARN_STATUS_OK;
  *found = (pair){at, s->whole->now, value, s->goal->now};
  return TARN_STATUS_OK;
}

static tarn_status halve(search *s, pair *found) {
  while (found->high > found->low + 1) {
    size_t last = found->high, at = found->low + (found->high - found->low) / 2;
    const size_t count = s->whole->count;
    double value;
    TARN_TRY(measure_at(s, &value, &at, found->low + 1, &last));
    found->high -= count - s->whole->count;
    if (isnan(value)) break;
    if (value < s->goal->base)
      found->low = at, found->below = value;
    else
      found->high = at, found->above = value;
  }
  return TARN_STATUS_OK;
}

// Why the nearest number is not near enough.
static tarn_status say_bound(const search *s, const pair *found) {
  tarn_sweep_variant *variant = &s->sweep->memory->variants[s->goal->variant];
  const double base = s->goal->base;
  const int64_t low = s->whole->numbers[found->low], high = s->whole->numbers[found->high];
  if (fabs(variant->measure - base) <= TARN__SWEEP_NEAR * base) return TARN_STATUS_OK;
  if (found->below > base)
    return tarn__sweep_text(s->sweep, &variant->bound, "the least %s is %lld", s->whole->what, (long long)low);
  if (found->above < base)
    return tarn__sweep_text(s->sweep, &variant->bound, "the greatest %s is %lld", s->whole->what, (long long)high);
  return tarn__sweep_text(s->sweep, &variant->bound, "the %s is whole: %lld is %.1f %% below, %lld is %.1f %% above",
                          s->whole->what, (long long)low, 100 * (base - found->below) / base, (long long)high,
                          100 * (found->above - base) / base);
}

// Whether the measure depends on the number at all: whether it is another one somewhere from now on, in growing steps
// to the end, or at the beginning. Neighbours may have the measure of now, as one stack follows the other in steps.
static tarn_status depends(search *s, bool *yes) {
  tarn__sweep_whole *whole = s->whole;
  size_t last = whole->now, at = 0;
  double value;
  TARN_TRY(measure_at(s, &value, &at, 0, &last));
  *yes = !isnan(value) && value != s->goal->now;
  for (size_t step = 1; !*yes; step *= 2) {
    last = whole->count, at = whole->now + step;
    TARN_TRY(measure_at(s, &value, &at, whole->now + 1, &last));
    *yes = !isnan(value) && value != s->goal->now;
    if (isnan(value) || at + 1 == whole->count) break;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_trade_whole(tarn_sweep *sweep, const tarn__sweep_goal *goal, tarn__sweep_whole *whole) {
  tarn_sweep_variant *variant = &sweep->memory->variants[goal->variant];
  search s = {sweep, goal, whole};
  bool yes;
  pair found;
  TARN_TRY(depends(&s, &yes));
  if (!yes)
    return tarn__sweep_text(sweep, &variant->bound,
                            whole->count > 1 ? "the %s does not change that" : "the %s can be no other", whole->what);
  TARN_TRY(goal->now < goal->base ? search_up(&s, &found) : search_down(&s, &found));
  if (found.below < goal->base && found.above >= goal->base) TARN_TRY(halve(&s, &found));
  const bool lower = fabs(found.below - goal->base) <= fabs(found.above - goal->base);
  variant->measure = lower ? found.below : found.above;
  // Of the numbers of one measure, that of now changes least.
  const size_t best = variant->measure == goal->now ? whole->now : lower ? found.low : found.high;
  if (best != whole->now) {
    const char *changes[TARN__SWEEP_CHANGES];
    size_t count = 0;
    TARN_TRY(whole->changes(sweep, whole, whole->numbers[best], changes, &count));
    for (size_t i = 0; i < count; i++) TARN_TRY(tarn__sweep_adjust(sweep, goal->variant, changes[i], count));
  }
  return say_bound(&s, &found);
}
