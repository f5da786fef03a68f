// Which run a queue takes next, and what a budget does not allow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "significance/sequential.h"
#include "sweep/queue_choose.h"

enum { VARIANTS = 3, SEEDS = 6, RUNS = VARIANTS * SEEDS };

static const tarn_sequential_design DESIGN = {
    .max_seeds = 6, .looks = {3, 4, 6}, .look_count = 3, .measure = "best", .alpha = 0.05, .futility = 0.1};

// A sweep of a baseline and two variants.
typedef struct sweep {
  tarn__queue_state states[RUNS];
  double seconds[RUNS];
  tarn_sequential_verdict verdicts[VARIANTS];
  bool unaffordable[VARIANTS];
  tarn__queue_lane lane;
} sweep;

static void make(sweep *s, double seconds) {
  memset(s, 0, sizeof *s);
  for (size_t i = 0; i < RUNS; i++) s->seconds[i] = seconds;
  for (size_t v = 0; v < VARIANTS; v++) tarn__sequential_blank(&s->verdicts[v], &DESIGN, VARIANTS - 1);
  s->lane = (tarn__queue_lane){.design = &DESIGN,
                               .variants = VARIANTS,
                               .seeds = SEEDS,
                               .baseline = 0,
                               .states = s->states,
                               .seconds = s->seconds,
                               .verdicts = s->verdicts,
                               .unaffordable = s->unaffordable};
}

// Seeds that all variants have, with a look at them.
static void finish(sweep *s, size_t seeds) {
  for (size_t v = 0; v < VARIANTS; v++)
    for (size_t i = 0; i < seeds; i++) s->states[v * SEEDS + i] = TARN__QUEUE_OVER;
  for (size_t v = 1; v < VARIANTS; v++) {
    tarn_sequential_verdict *verdict = &s->verdicts[v];
    verdict->looks = seeds == 3 ? 1 : 2;
    verdict->seeds = (int64_t)seeds;
    verdict->difference = 0.5;
    verdict->error = verdict->seed_error = 0.5;
    verdict->freedom = 4;
  }
}

static void is(const tarn__queue_pick *pick, size_t lane, size_t variant, size_t seed) {
  if (pick->lane == lane && pick->variant == variant && pick->seed == seed) return;
  print_error("run %zu of variant %zu of sweep %zu\n", pick->seed, pick->variant, pick->lane);
  fail();
}

static void rounds(void **state) {
  sweep s;
  tarn__queue_pick pick;
  (void)state;
  make(&s, 10);
  // The baseline's runs serve both comparisons, then those of a variant, seed by seed; never beyond the next look.
  for (size_t i = 0; i < 9; i++) {
    assert_true(tarn__queue_choose(&pick, &s.lane, 1));
    is(&pick, 0, i < 3 ? 0 : pick.variant, i < 3 ? i : pick.seed);
    assert_int_equal(pick.comparisons, i < 3 ? 2 : 1);
    assert_true(pick.seed < 3);
    s.states[pick.variant * SEEDS + pick.seed] = TARN__QUEUE_RUNNING;
  }
  assert_false(tarn__queue_choose(&pick, &s.lane, 1));
  make(&s, 10);
  finish(&s, 3);
  assert_true(tarn__queue_choose(&pick, &s.lane, 1));
  is(&pick, 0, 0, 3);
  assert_true(pick.look_runs == 2 && pick.look_seconds == 20 && fabs(pick.gain - 0.25) < 1e-12);
  s.lane.full = true;
  assert_false(tarn__queue_choose(&pick, &s.lane, 1));
}

static void worth(void **state) {
  sweep cheap, dear;
  tarn__queue_pick pick;
  (void)state;
  make(&cheap, 10);
  make(&dear, 20);
  finish(&cheap, 3);
  finish(&dear, 3);
  tarn__queue_lane lanes[] = {dear.lane, cheap.lane};
  assert_true(tarn__queue_choose(&pick, lanes, 2));
  is(&pick, 1, 0, 3);
  // The same time for less of the variance, most of which test items add.
  for (size_t v = 1; v < VARIANTS; v++) cheap.verdicts[v].seed_error = 0.5 * cheap.verdicts[v].error;
  assert_true(tarn__queue_choose(&pick, lanes, 2));
  is(&pick, 0, 0, 3);
  assert_true(fabs(tarn__queue_gain(&cheap.verdicts[1], &DESIGN, 1) - 0.0625) < 1e-12);
  // What is decided or closed needs nothing.
  dear.verdicts[1].decision = TARN_SEQUENTIAL_BETTER;
  dear.verdicts[2].decision = TARN_SEQUENTIAL_HOPELESS;
  assert_true(tarn__queue_choose(&pick, lanes, 2));
  is(&pick, 1, 0, 3);
  cheap.unaffordable[1] = true;
  cheap.states[3] = TARN__QUEUE_OVER;
  assert_true(tarn__queue_choose(&pick, lanes, 2));
  is(&pick, 1, 2, 3);
  assert_int_equal(pick.compared, 2);
  cheap.verdicts[2].decision = TARN_SEQUENTIAL_EQUIVALENT;
  assert_false(tarn__queue_choose(&pick, lanes, 2));
}

// An interrupted training has less before it, and makes the look it belongs to cheaper.
static void interrupted(void **state) {
  sweep s;
  tarn__queue_pick pick;
  (void)state;
  make(&s, 10);
  finish(&s, 3);
  s.states[3] = TARN__QUEUE_OVER;
  s.seconds[2 * SEEDS + 3] = 1;
  assert_true(tarn__queue_choose(&pick, &s.lane, 1));
  is(&pick, 0, 2, 3);
  assert_true(pick.look_seconds == 1 && pick.look_runs == 1);
}

static bool unaffordable(const sweep *s, double seconds, double longest, double *chance) {
  bool closed;
  assert_int_equal(tarn__queue_unaffordable(&closed, chance, &s->lane, 1, seconds, longest), TARN_STATUS_OK);
  return closed;
}

static void budget(void **state) {
  sweep s;
  double chance, later;
  (void)state;
  make(&s, 10);
  finish(&s, 3);
  s.verdicts[1].difference = 2;
  assert_true(unaffordable(&s, 19, 19, &chance) && isnan(chance));
  assert_true(unaffordable(&s, 40, 9, &chance) && isnan(chance));
  // Two more runs reach the look at 4 seeds, six that at 6, where there is more chance.
  assert_false(unaffordable(&s, 20, 20, &chance));
  assert_false(unaffordable(&s, 60, 20, &later));
  assert_true(later > chance && chance > 0.1);
  s.verdicts[1].difference = 0;
  assert_true(unaffordable(&s, 20, 20, &chance) && chance < 0.1);
  s.verdicts[1].decision = TARN_SEQUENTIAL_WORSE;
  assert_false(unaffordable(&s, 1, 1, &chance));
}

// A run that two sweeps have is worth the sum, also where a run of one alone would come first.
static void common_runs_count_for_all(void **state) {
  uint64_t keys[2][RUNS] = {{0}};
  sweep first, second;
  tarn__queue_pick pick;
  (void)state;
  make(&first, 10);
  make(&second, 10);
  // Only the comparison of variant 1 is open, of which the baseline is there.
  for (int i = 0; i < 2; i++) {
    sweep *s = i == 0 ? &first : &second;
    for (size_t seed = 0; seed < SEEDS; seed++) s->states[seed] = TARN__QUEUE_OVER;
    s->verdicts[2].decision = TARN_SEQUENTIAL_FULL;
    s->lane.keys = keys[i];
  }
  const tarn__queue_lane lanes[] = {first.lane, second.lane};
  assert_true(tarn__queue_choose(&pick, lanes, 2));
  is(&pick, 0, 1, 0);
  assert_int_equal(pick.comparisons, 1);
  keys[0][SEEDS + 2] = keys[1][SEEDS + 1] = 5;
  assert_true(tarn__queue_choose(&pick, lanes, 2));
  is(&pick, 0, 1, 2);
  assert_int_equal(pick.comparisons, 2);
  // Where it was begun it goes on.
  second.seconds[SEEDS + 1] = 4;
  first.seconds[SEEDS + 2] = 10;
  assert_true(tarn__queue_choose(&pick, lanes, 2));
  is(&pick, 1, 1, 1);
  second.seconds[SEEDS + 1] = 10;
  // A sweep of which no run is taken gains nothing by it.
  tarn__queue_lane without[] = {first.lane, second.lane};
  without[1].left_out = true;
  assert_true(tarn__queue_choose(&pick, without, 2));
  is(&pick, 0, 1, 0);
  // What the other has at work, or over, is worth nothing more to it.
  second.states[SEEDS + 1] = TARN__QUEUE_RUNNING;
  assert_true(tarn__queue_choose(&pick, lanes, 2));
  is(&pick, 0, 1, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rounds), cmocka_unit_test(worth), cmocka_unit_test(interrupted),
                                     cmocka_unit_test(budget), cmocka_unit_test(common_runs_count_for_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
