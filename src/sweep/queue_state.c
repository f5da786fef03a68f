// What a queue knows of its sweeps: from their records, and of interrupted trainings from their logs.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "report/run_read.h"
#include "run/names.h"
#include "significance/sequential.h"
#include "sweep/queue_memory.h"
#include "tarn/lab/results.h"

static const double WAIT_FOR_RECORDS = 5;

// A number that changes when runs are added to the records, by this queue or by git.
static uint64_t look_at(const tarn__queue_sweep *s) {
  uint64_t sum = 14695981039346656037u;
  for (size_t v = 0; v <= s->outline->variant_count; v++) {
    char path[PATH_MAX];
    struct stat info;
    const char *name = v < s->outline->variant_count ? s->outline->variants[v].name : TARN__SWEEP_JSON;
    if (tarn__path_join(path, s->public->folder, name) != TARN_STATUS_OK || stat(path, &info) != 0) continue;
    const uint64_t parts[] = {v, (uint64_t)info.st_mtim.tv_sec, (uint64_t)info.st_mtim.tv_nsec, (uint64_t)info.st_ino};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) sum = (sum ^ parts[i]) * 1099511628211u;
  }
  return sum | 1;  // 0: never read
}

static bool same_design(const tarn_sequential_design *a, const tarn_sequential_design *b) {
  return a->max_seeds == b->max_seeds && a->look_count == b->look_count && a->alpha == b->alpha &&
         a->spending == b->spending && a->equivalence == b->equivalence && a->futility == b->futility &&
         memcmp(a->looks, b->looks, sizeof a->looks) == 0 && strcmp(a->measure, b->measure) == 0;
}

static size_t variant_of(const tarn_sweep *sweep, const char *name) {
  size_t v = 0;
  while (v < sweep->variant_count && strcmp(sweep->variants[v].name, name) != 0) v++;
  return v;
}

static size_t seed_of(const tarn_sweep *sweep, int64_t seed) {
  size_t i = 0;
  while (i < sweep->seed_count && sweep->seeds[i] != seed) i++;
  return i;
}

// A finished run without its test's scores: the test failed, or its file is gone, and no look could be taken.
static tarn_status check_test(const tarn__queue_sweep *s, const tarn_results_run *run) {
  char path[PATH_MAX];
  if (strncmp(s->public->design.measure, "test_", 5) != 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__path_join(path, run->path, TARN__RUN_TEST));
  TARN_REQUIRE(tarn__file_exists(path), DATA,
               "%s: the run is finished, but has no " TARN__RUN_TEST "; put it back, or repeat it with --retry-failed",
               run->path);
  return TARN_STATUS_OK;
}

// Whether it failed, or its test did.
static bool is_failed(const tarn__queue_sweep *s, const tarn_results_run *run) {
  const tarn_sweep *o = s->outline;
  const bool tested = o->test_source || o->test_blimp || o->test_labelled || o->test_text;
  return run->state == TARN_RESULTS_FAILED || (tested && !tarn__run_is_tested(run));
}

// The runs that are over, and what runs of each variant take: 0 where none is known.
static tarn_status take_runs(tarn__queue_sweep *s, const tarn_results *results, double *cost, bool retry) {
  const tarn_sweep *sweep = s->outline;
  double all = 0, sum = 0;
  for (size_t g = 0; g < results->group_count; g++) {
    const tarn_results_group *group = &results->groups[g];
    const size_t v = variant_of(sweep, group->name);
    size_t timed = 0;
    if (v == sweep->variant_count) continue;
    for (size_t i = 0; i < group->run_count; i++) {
      const tarn_results_run *run = &results->runs[group->runs[i]];
      const size_t seed = seed_of(sweep, run->seed);
      if (seed == sweep->seed_count || (run->state != TARN_RESULTS_FINISHED && run->state != TARN_RESULTS_FAILED))
        continue;
      const size_t index = v * sweep->seed_count + seed;
      const bool over = !retry || s->retried[index], failed = is_failed(s, run);
      if (!failed || over) s->states[index] = TARN__QUEUE_OVER;
      if (failed && over && run->state == TARN_RESULTS_FINISHED) TARN_TRY(check_test(s, run));
      s->recorded[index] = !failed && run->version && strcmp(run->version, tarn_version()) == 0;
      if (!failed && run->data_hash) snprintf(s->data[v], sizeof s->data[v], "%s", run->data_hash);
      if (run->state != TARN_RESULTS_FINISHED || !(run->seconds > 0)) continue;
      cost[v] += run->seconds;
      timed++;
    }
    sum += cost[v];
    all += (double)timed;
    if (timed > 0) cost[v] /= (double)timed;
    s->public->finished += group->finished;
    s->public->failed += group->failed;
  }
  for (size_t v = 0; v < sweep->variant_count; v++)
    if (cost[v] == 0 && all > 0) cost[v] = sum / all;
  return TARN_STATUS_OK;
}

// Trainings that were interrupted have less before them; those that nothing is known of count alike.
static tarn_status take_seconds(tarn__queue_sweep *s, const double *cost) {
  const tarn_sweep *sweep = s->outline;
  for (size_t v = 0; v < sweep->variant_count; v++)
    for (size_t i = 0; i < sweep->seed_count; i++) {
      const size_t index = v * sweep->seed_count + i;
      const double whole = cost[v] > 0 ? cost[v] : s->forecast[v] > 0 ? s->forecast[v] : 1;
      tarn_sweep_run run = {.variant = v, .seed = sweep->seeds[i]};
      char path[PATH_MAX];
      int64_t offset = 0;
      s->seconds[index] = whole;
      if (s->states[index] == TARN__QUEUE_OVER) continue;
      TARN_REQUIRE(snprintf(path, sizeof path, "%s/" TARN__RUN_SEED_PATH, s->runs, sweep->variants[v].name,
                            (long long)run.seed) < (int)sizeof path,
                   IO, "%s: the path is too long", s->runs);
      run.path = path;
      if (tarn__file_exists(path) && tarn__sweep_read_log(sweep, &run, &offset))
        s->seconds[index] = fmax(whole - run.seconds, whole / 20);
    }
  return TARN_STATUS_OK;
}

static tarn_status take_verdicts(tarn__queue_sweep *s, const tarn_results *results) {
  tarn_results_table *table = NULL;
  TARN_TRY(tarn_results_compare(&table, results, NULL));
  for (size_t i = 0; table->sequential && i < table->row_count; i++) {
    const size_t v = variant_of(s->outline, results->groups[table->rows[i].group].name);
    if (v < s->outline->variant_count && v != s->outline->baseline) s->verdicts[v] = table->sequential[i];
  }
  tarn_results_table_close(&table);
  return TARN_STATUS_OK;
}

// A plan comes before the runs that it looks at: alpha, looks and seeds that were chosen afterwards would decide by
// what had been seen.
static tarn_status check_plan(const tarn__queue_sweep *s, const tarn_results *results) {
  const bool planned = results->sequential.max_seeds > 0;
  size_t finished = 0;
  for (size_t g = 0; g < results->group_count; g++) finished += results->groups[g].finished;
  TARN_REQUIRE(planned || finished == 0, USAGE,
               "%s/" TARN__SWEEP_FILE ": sequential was added after runs were recorded (" TARN__SWEEP_JSON
               " has none); record elsewhere",
               s->public->folder);
  TARN_REQUIRE(!planned || (same_design(&results->sequential, &s->public->design) &&
                            results->seed_count == s->outline->seed_count &&
                            memcmp(results->seeds, s->outline->seeds, results->seed_count * sizeof(int64_t)) == 0),
               USAGE,
               "%s/" TARN__SWEEP_FILE ": sequential or seeds are not those of its records (" TARN__SWEEP_JSON
               "): the looks at recorded runs were planned otherwise; put them back, or record elsewhere",
               s->public->folder);
  TARN_REQUIRE(results->baseline < results->group_count, DATA, "%s/" TARN__SWEEP_JSON ": it has no baseline",
               s->public->folder);
  TARN_REQUIRE(strcmp(results->groups[results->baseline].name, s->public->baseline) == 0, USAGE,
               "%s/" TARN__SWEEP_FILE
               ": the baseline is %s, but the records are of %s; put it back, or record elsewhere",
               s->public->folder, s->public->baseline, results->groups[results->baseline].name);
  return TARN_STATUS_OK;
}

static tarn_status read_records(tarn__queue_sweep *s, double *cost, bool retry) {
  char path[PATH_MAX];
  tarn_results *results = NULL;
  TARN_TRY(tarn__path_join(path, s->public->folder, TARN__SWEEP_JSON));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn_results_open(&results, &s->public->folder, 1));
  tarn_status status = check_plan(s, results);
  if (status == TARN_STATUS_OK) status = take_runs(s, results, cost, retry);
  if (status == TARN_STATUS_OK && s->public->finished > 0) status = take_verdicts(s, results);
  tarn_results_close(&results);
  return status;
}

static void forget(struct tarn__queue_memory *q, tarn__queue_sweep *s) {
  const tarn_sweep *sweep = s->outline;
  memset(s->states, 0, sweep->variant_count * sweep->seed_count * sizeof *s->states);
  memset(s->recorded, 0, sweep->variant_count * sweep->seed_count * sizeof *s->recorded);
  memset(s->data, 0, sweep->variant_count * sizeof *s->data);
  for (size_t i = 0; i < q->places; i++)
    if (q->jobs[i].pid && &q->sweeps[q->jobs[i].sweep] == s)
      s->states[q->jobs[i].variant * sweep->seed_count + q->jobs[i].seed] = TARN__QUEUE_RUNNING;
  for (size_t v = 0; v < sweep->variant_count; v++)
    tarn__sequential_blank(&s->verdicts[v], &s->public->design, sweep->variant_count - 1);
  s->public->finished = s->public->failed = 0;
}

// "undecided, look 2 of 10 at 4 seeds: +0.12 [-0.4, +0.64], p 0.310, of equivalence 0.080".
static void tell_verdict(const struct tarn__queue_memory *q, size_t index, const tarn_queue_comparison *c) {
  char words[TARN_SEQUENTIAL_TEXT], text[2 * TARN__QUEUE_TEXT], p[TARN_RESULTS_P_TEXT], range[64] = "", equal[64] = "";
  const tarn_sequential_verdict *v = &c->verdict;
  tarn_sequential_words(words, v, &q->views[index].design);
  tarn_results_p(p, v->p_equal);
  if (*p) snprintf(equal, sizeof equal, ", of equivalence %s", p);
  tarn_results_p(p, v->p);
  if (!isnan(v->low)) snprintf(range, sizeof range, " [%+.3g, %+.3g]", v->low, v->high);
  snprintf(text, sizeof text, "%s, look %zu of %zu at %lld seeds: %+.3g%s, p %s%s", words, v->looks,
           q->views[index].design.look_count, (long long)v->seeds, v->difference, range, p, equal);
  tarn__queue_tell(q, TARN_QUEUE_EVENT_VERDICT, index, c->variant, -1, text);
}

// While a queue works, git may be writing records: what cannot be read for some seconds is damaged.
static tarn_status wait_for_records(struct tarn__queue_memory *q, size_t index, bool working) {
  tarn__queue_sweep *s = &q->sweeps[index];
  const double now = tarn__seconds();
  if (!working || (s->unread_since > 0 && now - s->unread_since > WAIT_FOR_RECORDS))
    return tarn__queue_leave(q, index, tarn_error_message());
  if (s->unread_since == 0) s->unread_since = now;
  s->seen = 0;
  return TARN_STATUS_OK;
}

tarn_status tarn__queue_read(struct tarn__queue_memory *q, size_t index, bool tell) {
  tarn__queue_sweep *s = &q->sweeps[index];
  void *memory;
  const uint64_t now = look_at(s);
  if (now == s->seen) return TARN_STATUS_OK;
  s->seen = now;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, s->outline->variant_count, sizeof(double)));
  forget(q, s);
  tarn_status status = read_records(s, memory, q->options.retry_failed);
  const tarn_status timed = status == TARN_STATUS_OK ? take_seconds(s, memory) : TARN_STATUS_OK;
  tarn__free(memory);
  TARN_TRY(timed);
  if (status == TARN_STATUS_MEMORY) return status;
  if (status != TARN_STATUS_OK) return wait_for_records(q, index, tell);
  s->unread_since = 0;
  for (size_t v = 0, i = 0; v < s->outline->variant_count; v++) {
    if (v == s->outline->baseline) continue;
    tarn_queue_comparison *c = &s->comparisons[i++];
    const bool changed = c->verdict.looks != s->verdicts[v].looks || c->verdict.decision != s->verdicts[v].decision;
    c->verdict = s->verdicts[v];
    if (changed && tell && c->verdict.looks > 0) tell_verdict(q, index, c);
  }
  return TARN_STATUS_OK;
}

// --- the next run

// Seconds of training that the rest of the budget allows a sweep, if it had all of it.
static double allowed(const struct tarn__queue_memory *q, const tarn__queue_sweep *s, double *run) {
  const double left = q->until - tarn__seconds(), overhead = q->trained > 0 ? fmax(q->wall / q->trained, 1) : 1;
  const int64_t together = q->cores / s->outline->threads > 1 ? q->cores / s->outline->threads : 1;
  *run = fmax(left, 0) / overhead;
  return *run * (double)(together < s->outline->parallel ? together : s->outline->parallel);
}

static void set_words(tarn_queue_comparison *c, const tarn__queue_sweep *s, char *text, double seconds, double chance) {
  char words[TARN_SEQUENTIAL_TEXT];
  tarn_sequential_words(words, &c->verdict, &s->public->design);
  snprintf(text, TARN__QUEUE_TEXT, "%s", words);
  if (c->unaffordable && isnan(chance))
    snprintf(text, TARN__QUEUE_TEXT, "closed by the budget: the next look takes %.3g s, %.3g s are left",
             c->look_seconds, seconds);
  else if (c->unaffordable)
    snprintf(text, TARN__QUEUE_TEXT, "closed by the budget: the chance of a verdict within it is %.0f %%",
             100 * chance);
  c->words = text;
}

// Closes what the budget does not allow, and opens what it does.
static tarn_status apply_budget(struct tarn__queue_memory *q, size_t index) {
  tarn__queue_sweep *s = &q->sweeps[index];
  double run;
  const double seconds = allowed(q, s, &run);
  for (size_t v = 0, i = 0; v < s->outline->variant_count; v++) {
    if (v == s->outline->baseline) continue;
    tarn_queue_comparison *c = &s->comparisons[i];
    double chance = NAN;
    s->unaffordable[v] = false;
    c->look_seconds = 0;
    if (c->verdict.decision == TARN_SEQUENTIAL_OPEN)
      c->look_seconds = tarn__queue_look_need(&q->lanes[index], v, c->verdict.looks).seconds;
    if (isfinite(q->until))
      TARN_TRY(tarn__queue_unaffordable(&s->unaffordable[v], &chance, &q->lanes[index], v, seconds, run));
    c->unaffordable = s->unaffordable[v];
    set_words(c, s, s->words[i++], seconds, chance);
  }
  return TARN_STATUS_OK;
}

static bool has_place(const struct tarn__queue_memory *q, const tarn__queue_sweep *s) {
  int64_t used = 0, running = 0;
  for (size_t i = 0; i < q->places; i++) {
    if (!q->jobs[i].pid) continue;
    running++;
    used += q->sweeps[q->jobs[i].sweep].outline->threads;
  }
  return running == 0 ||
         (s->running < s->outline->parallel && used + s->outline->threads <= q->cores && running < (int64_t)q->places);
}

// "for the first look at other (3 seeds): 6 runs, 0.5 h in all; 2 more comparisons need this one", "for the look at
// other at 5 seeds: 2 runs, 36 s in all, which reduce its variance by 25 %; so far +0.22, standard error 0.13, chance
// of a verdict 28 %".
static void give_reason(struct tarn__queue_memory *q, const tarn__queue_pick *pick) {
  const tarn__queue_sweep *s = &q->sweeps[pick->lane];
  const tarn_sequential_verdict *v = &s->verdicts[pick->compared];
  const char *name = s->outline->variants[pick->compared].name;
  char look[TARN__QUEUE_TEXT / 2], state[160] = "", others[80] = "", chance[64] = "";
  const double time = pick->look_seconds;
  if (v->looks == 0)
    snprintf(look, sizeof look, "for the first look at %s (%lld seeds)", name, (long long)v->next_seeds);
  else
    snprintf(look, sizeof look, "for the look at %s at %lld seeds", name, (long long)v->next_seeds);
  if (!isnan(v->chance)) snprintf(chance, sizeof chance, ", chance of a verdict %.0f %%", 100 * v->chance);
  if (v->error > 0)
    snprintf(state, sizeof state, ", which reduce%s its variance by %.0f %%; so far %+.2g, standard error %.2g%s",
             pick->look_runs == 1 ? "s" : "", 100 * pick->gain, v->difference, v->error, chance);
  if (pick->comparisons > 1)
    snprintf(others, sizeof others, "; %zu more comparison%s this one", pick->comparisons - 1,
             pick->comparisons == 2 ? " needs" : "s need");
  const tarn__queue_sweep *source = s->sources[pick->variant * s->outline->seed_count + pick->seed];
  snprintf(q->reason, sizeof q->reason, "%s%s%s%s: %zu run%s, %.3g %s in all%s%s", source ? "copied from " : "",
           source ? source->public->folder : "", source ? ", " : "", look, pick->look_runs,
           pick->look_runs == 1 ? "" : "s",
           time < 120    ? time
           : time < 7200 ? time / 60
                         : time / 3600,
           time < 120    ? "s"
           : time < 7200 ? "min"
                         : "h",
           state, others);
}

tarn_status tarn__queue_next(struct tarn__queue_memory *q, tarn__queue_pick *pick, bool *found) {
  for (size_t i = 0; i < q->public.count; i++) {
    if (!q->sweeps[i].outline || !q->sweeps[i].states) {
      q->lanes[i] = (tarn__queue_lane){.left_out = true};
      continue;
    }
    TARN_TRY(tarn__queue_await(q, i));
    TARN_TRY(tarn__queue_twins(q, i));
    TARN_TRY(apply_budget(q, i));
    q->lanes[i].left_out = q->views[i].problem != NULL;
    q->lanes[i].full = q->sweeps[i].unrecorded || q->sweeps[i].unread_since > 0 || !has_place(q, &q->sweeps[i]);
  }
  q->public.next = (tarn_queue_choice){.sweep = q->public.count};
  *found = tarn__queue_choose(pick, q->lanes, q->public.count);
  if (!*found) return TARN_STATUS_OK;
  const tarn__queue_sweep *s = &q->sweeps[pick->lane];
  give_reason(q, pick);
  const double seconds = s->seconds[pick->variant * s->outline->seed_count + pick->seed];
  q->public.next = (tarn_queue_choice){.sweep = pick->lane,
                                       .variant = s->outline->variants[pick->variant].name,
                                       .seed = s->outline->seeds[pick->seed],
                                       .seconds = seconds,
                                       .reason = q->reason};
  double run;
  allowed(q, s, &run);
  *found = seconds <= run;
  return TARN_STATUS_OK;
}
