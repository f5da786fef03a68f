#include "sweep/queue_choose.h"

#include <math.h>

#include "significance/sequential.h"

static size_t next_look(const tarn_sequential_verdict *v) { return v->looks; }

static bool is_open(const tarn__queue_lane *lane, size_t variant) {
  const tarn_sequential_verdict *v = &lane->verdicts[variant];
  return variant != lane->baseline && v->decision == TARN_SEQUENTIAL_OPEN && !lane->unaffordable[variant] &&
         next_look(v) < lane->design->look_count;
}

double tarn__queue_gain(const tarn_sequential_verdict *v, const tarn_sequential_design *design, size_t look) {
  const double kept = (double)v->seeds / (double)design->looks[look];
  if (!(v->error > 0)) return 1 - kept;  // by the seeds alone, as long as nothing is known of the variance
  const double seeds = v->seed_error * v->seed_error, all = v->error * v->error;
  return seeds * (1 - kept) / all;
}

static bool is_own(const tarn__queue_lane *lane, size_t variant, size_t seed) {
  return lane->shares == 0 || (variant + seed) % lane->shares == lane->share;
}

tarn__queue_need tarn__queue_look_need(const tarn__queue_lane *lane, size_t variant, size_t look) {
  const size_t sides[] = {lane->baseline, variant};
  tarn__queue_need need = {0};
  for (size_t side = 0; side < 2; side++)
    for (size_t s = 0; s < (size_t)lane->design->looks[look] && s < lane->seeds; s++) {
      const size_t run = sides[side] * lane->seeds + s;
      if (lane->states[run] == TARN__QUEUE_OVER) continue;
      need.runs++;
      need.seconds += lane->seconds[run];
      if (!is_own(lane, sides[side], s)) continue;
      need.own_seconds += lane->seconds[run];
      need.longest = fmax(need.longest, lane->seconds[run]);
    }
  return need;
}

// What a run is worth, and the comparison that gives it most.
static double value_of(tarn__queue_pick *pick, const tarn__queue_lane *lane, size_t variant, size_t seed) {
  double sum = 0, most = -1;
  for (size_t c = 0; c < lane->variants; c++) {
    if (!is_open(lane, c) || (variant != lane->baseline && c != variant)) continue;
    const size_t look = next_look(&lane->verdicts[c]);
    if ((int64_t)seed >= lane->design->looks[look]) continue;
    const tarn__queue_need need = tarn__queue_look_need(lane, c, look);
    const double gain = tarn__queue_gain(&lane->verdicts[c], lane->design, look), value = gain / need.seconds;
    pick->comparisons++;
    sum += value;
    if (value <= most) continue;
    most = value;
    pick->compared = c;
    pick->gain = gain;
    pick->look_runs = need.runs;
    pick->look_seconds = need.seconds;
  }
  return sum;
}

// What a run is worth to the other sweeps that have it too, and do not need another one for it.
static double value_elsewhere(tarn__queue_pick *pick, const tarn__queue_lane *lanes, size_t count) {
  const tarn__queue_lane *own = &lanes[pick->lane];
  const uint64_t key = own->keys ? own->keys[pick->variant * own->seeds + pick->seed] : 0;
  double sum = 0;
  for (size_t l = 0; l < count && key != 0; l++) {
    const tarn__queue_lane *lane = &lanes[l];
    if (l == pick->lane || lane->left_out || !lane->keys) continue;
    for (size_t run = 0; run < lane->variants * lane->seeds; run++) {
      tarn__queue_pick other = {0};
      if (lane->keys[run] != key || lane->states[run] != TARN__QUEUE_READY) continue;
      sum += value_of(&other, lane, run / lane->seeds, run % lane->seeds);
      pick->comparisons += other.comparisons;
    }
  }
  return sum;
}

// Of equal runs, which may be one and the same in two sweeps, the one that less is left of, because it was begun. Their
// sums may differ by rounding.
static bool is_first(double value, double seconds, double most, double least) {
  static const double ROUNDING = 1e-9;
  if (most < 0 || fabs(value - most) > ROUNDING * most) return value > most;
  return seconds < least;
}

bool tarn__queue_choose(tarn__queue_pick *pick, const tarn__queue_lane *lanes, size_t count) {
  double most = -1, least = 0;
  for (size_t l = 0; l < count; l++) {
    const tarn__queue_lane *lane = &lanes[l];
    for (size_t s = 0; s < lane->seeds && !lane->full && !lane->left_out; s++)
      for (size_t v = 0; v < lane->variants; v++) {
        tarn__queue_pick found = {.lane = l, .variant = v, .seed = s};
        if (lane->states[v * lane->seeds + s] != TARN__QUEUE_READY) continue;
        if (!is_own(lane, v, s)) continue;
        double value = value_of(&found, lane, v, s);
        if (found.comparisons == 0) continue;
        value += value_elsewhere(&found, lanes, count);
        const double seconds = lane->seconds[v * lane->seeds + s];
        if (!is_first(value, seconds, most, least)) continue;
        most = value;
        least = seconds;
        *pick = found;
      }
  }
  return most >= 0;
}

tarn_status tarn__queue_unaffordable(bool *unaffordable, double *chance, const tarn__queue_lane *lane, size_t variant,
                                     double seconds, double longest) {
  const tarn_sequential_design *design = lane->design;
  const tarn_sequential_verdict *v = &lane->verdicts[variant];
  size_t look = next_look(v), decided = 0, equal = 0;
  *unaffordable = false;
  *chance = NAN;
  if (!is_open(lane, variant)) return TARN_STATUS_OK;
  const tarn__queue_need need = tarn__queue_look_need(lane, variant, look);
  *unaffordable = need.own_seconds > seconds || need.longest > longest;
  if (*unaffordable) return TARN_STATUS_OK;
  while (look + 1 < design->look_count && tarn__queue_look_need(lane, variant, look + 1).own_seconds <= seconds) look++;
  for (size_t i = 0; i < lane->variants; i++) {
    decided += i != lane->baseline && lane->verdicts[i].p <= design->alpha;
    equal += i != lane->baseline && lane->verdicts[i].p_equal <= design->alpha;
  }
  TARN_TRY(tarn__sequential_chance(chance, v, design, look, decided, equal));
  *unaffordable = *chance < design->futility;
  return TARN_STATUS_OK;
}
