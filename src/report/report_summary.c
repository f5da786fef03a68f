// The summary in words. Only the table's verdicts decide whether a difference is significant.
#include <math.h>
#include <string.h>

#include "report/report_write.h"
#include "significance/verdict.h"

static void say(tarn__summary *summary, const char *sentence) {
  if (summary->count < TARN__REPORT_SENTENCES && *sentence) summary->sentences[summary->count++] = sentence;
}

static const char *plural(size_t count) { return count == 1 ? "" : "s"; }

typedef const tarn_results_statistic *(*measure)(const tarn_results_row *row);
static const tarn_results_statistic *aucc_of(const tarn_results_row *row) { return &row->aucc_mean; }
static const tarn_results_statistic *best_of(const tarn_results_row *row) { return &row->best; }
static const tarn_results_statistic *test_of(const tarn_results_row *row) { return &row->test_bleu; }
static const tarn_results_statistic *chrf_of(const tarn_results_row *row) { return &row->test_chrf; }
static const tarn_results_statistic *blimp_of(const tarn_results_row *row) { return &row->test_blimp; }
static const tarn_results_statistic *score_of(const tarn_results_row *row) { return &row->test_score; }
static const tarn_results_statistic *steps_of(const tarn_results_row *row) { return &row->budget_step; }

// The best configuration by a measure, or NULL.
static const tarn__report_entry *winner(const tarn__report *view, measure of, bool less) {
  const tarn__report_entry *best = NULL;
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    if (!entry->row || of(entry->row)->count == 0) continue;
    double sign = less ? -1 : 1;
    if (!best || sign * of(entry->row)->mean > sign * of(best->row)->mean) best = entry;
  }
  return best;
}

// "model2 (encoder 1 3 of 4 frozen)"
static const char *named(tarn__report *view, const tarn__report_entry *entry) {
  return tarn__report_text(view, "%s (%s)", entry->group->name, entry->label.note);
}

static void say_extent(tarn__summary *summary, tarn__report *view) {
  size_t finished = 0, failed = 0;
  for (size_t i = 0; i < view->count; i++) {
    finished += view->entries[i].group->finished;
    failed += view->entries[i].group->failed;
  }
  size_t total = view->results->run_count;
  const char *state = failed ? tarn__report_text(view, ", %zu failed", failed) : "";
  if (total > finished + failed)
    state = tarn__report_text(view, "%s, %zu unfinished", state, total - finished - failed);
  say(summary,
      tarn__report_text(view,
                        "%zu configuration%s, %zu run%s (%zu finished%s), compared by %s over %s of training "
                        "(%s clock). The baseline is %s.",
                        view->count, plural(view->count), total, plural(total), finished, state, view->score,
                        view->budget, view->table->clock ? view->table->clock : "wall", named(view, view->baseline)));
}

// Describes the baseline by the verdicts on single models against it.
static const char *against_models(tarn__report *view, const tarn_results_judged *judged) {
  const char *text = "";
  for (size_t i = 0; i < view->count; i++) {
    char p[TARN_RESULTS_P_TEXT];
    const tarn_results_verdict *v = &judged->verdicts[i];
    if (i == view->table->baseline || v->basis != TARN_RESULTS_MODELS) continue;
    const char *word = v->decision == TARN_RESULTS_WORSE    ? "better"
                       : v->decision == TARN_RESULTS_BETTER ? "worse"
                                                            : "undecided";
    tarn_results_p(p, v->p);
    text = tarn__report_text(view, "%s; against %s it is %s, of these two models (p %s%s)", text,
                             view->entries[i].group->name, word, *p == '<' ? "" : "= ", p);
  }
  return text;
}

// Whether all verdicts on a measure are about single models, one seed per side.
static bool has_models_only(const tarn__report *view, const tarn_results_judged *judged) {
  size_t models = 0;
  for (size_t i = 0; i < view->count; i++) {
    const tarn_results_verdict *v = &judged->verdicts[i];
    if (i == view->table->baseline || v->basis == TARN_RESULTS_NO_SCORES) continue;
    if (v->basis != TARN_RESULTS_MODELS) return false;
    models++;
  }
  return models > 0;
}

static void say_winner(tarn__summary *summary, tarn__report *view, tarn_results_judged_measure about, measure of) {
  int decimals;
  const tarn_results_judged *judged = &view->table->judged[about];
  const char *what = tarn__report_judged(view, about, &decimals);
  const tarn__report_entry *best = winner(view, of, judged->less);
  if (!best) return;
  const char *text = tarn__report_text(view, "%s mean %s: %s with %s", judged->less ? "Lowest" : "Highest", what,
                                       named(view, best), tarn__report_spread(view, of(best->row), 1, decimals));
  const tarn_results_verdict *verdict = &judged->verdicts[best - view->entries];
  if (best != view->baseline && verdict->basis != TARN_RESULTS_NO_SCORES)
    text = tarn__report_text(view, "%s; against the baseline's %s that is %s: %s", text,
                             tarn__report_spread(view, of(view->baseline->row), 1, decimals),
                             tarn__report_difference(view, verdict, decimals), verdict->words);
  if (best == view->baseline) text = tarn__report_text(view, "%s%s", text, against_models(view, judged));
  const bool leads = judged->leader == (size_t)(best - view->entries);
  if (leads)
    text = tarn__report_text(view, "%s. It is decided to be better than every other", text);
  else if (has_models_only(view, judged))
    text = tarn__report_text(view, "%s. With one seed each, nothing is decided about the configurations", text);
  else if (judged->rows > 1 && !judged->planned)
    text = tarn__report_text(view, "%s. It is not decided that it is better than all others", text);
  say(summary, tarn__report_text(view, "%s.", text));
}

// The configurations with the same verdict: "half (+1.03 [+0.50, +1.59], p = 0.010), ...".
static const char *with_words(tarn__report *view, tarn_results_judged_measure about, const char *words) {
  int decimals;
  const char *text = "";
  tarn__report_judged(view, about, &decimals);
  for (size_t i = 0; i < view->count; i++) {
    const tarn_results_verdict *v = &view->table->judged[about].verdicts[i];
    if (i == view->table->baseline || strcmp(v->words, words) != 0) continue;
    text = tarn__report_text(view, "%s%s%s (%s)", text, *text ? ", " : "", view->entries[i].group->name,
                             tarn__report_difference(view, v, decimals));
  }
  return text;
}

// All verdicts on a measure, grouped, in the order of the decisions.
static void say_verdicts(tarn__summary *summary, tarn__report *view, tarn_results_judged_measure about) {
  static const tarn_results_decision order[] = {TARN_RESULTS_BETTER, TARN_RESULTS_WORSE, TARN_RESULTS_UNDECIDED,
                                                TARN_RESULTS_NONE};
  int decimals;
  const tarn_results_judged *judged = &view->table->judged[about];
  const char *what = tarn__report_judged(view, about, &decimals);
  const char *text = "";
  for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
    for (size_t i = 0; i < view->count; i++) {
      const tarn_results_verdict *v = &judged->verdicts[i];
      if (i == view->table->baseline || v->decision != order[k] || v->basis == TARN_RESULTS_NO_SCORES) continue;
      bool said = false;
      for (size_t j = 0; j < i; j++)
        said |= j != view->table->baseline && strcmp(judged->verdicts[j].words, v->words) == 0;
      if (!said)
        text =
            tarn__report_text(view, "%s%s %s: %s", text, *text ? ";" : "", v->words, with_words(view, about, v->words));
    }
  }
  if (!*text) return;
  const char *count = "";
  if (judged->comparisons > 0)
    count = tarn__report_text(view, ", %zu comparison%s (Holm%s)", judged->comparisons, plural(judged->comparisons),
                              judged->planned ? ", up to the latest look of the sequential design" : "");
  say(summary, tarn__report_text(view, "Verdicts on %s against the baseline%s:%s.", what, count, text));
}

static void say_speed(tarn__summary *summary, tarn__report *view) {
  const tarn__report_entry *fast = winner(view, steps_of, false);
  if (fast && fast != view->baseline && view->baseline->row && steps_of(view->baseline->row)->mean > 0) {
    double mine = steps_of(fast->row)->mean;
    double base = steps_of(view->baseline->row)->mean;
    say(summary, tarn__report_text(view, "Most updates in %s: %s with %s, %.2f times the baseline's %s.", view->budget,
                                   named(view, fast), tarn__report_number(view, mine, 0), mine / base,
                                   tarn__report_number(view, base, 0)));
  }
}

// The times to the best that are in the mean of a configuration.
static tarn__verdict_side times_of(tarn__report *view, size_t group) {
  const tarn_results_group *g = &view->results->groups[group];
  tarn__verdict_side side = {0};
  void *memory = NULL;
  if (view->status == TARN_STATUS_OK)
    view->status = tarn__arena_alloc(&view->arena, &memory, g->run_count, sizeof(double));
  double *times = memory;
  for (size_t i = 0; i < g->run_count && view->status == TARN_STATUS_OK; i++) {
    const tarn_results_measures *m = &view->table->measures[g->runs[i]];
    if (!m->elsewhere && !isnan(m->best_seconds)) times[side.runs++] = m->best_seconds;
  }
  side.scores = times;
  return side;
}

// Whether the times to the best of two configurations, the most distant of `pairs`, differ decidedly: Welch's test, p
// multiplied by the number of pairs.
static const char *time_words(tarn__report *view, size_t group, size_t regular, size_t pairs) {
  tarn_results_verdict v = {0};
  const tarn__verdict_test test = {.less = true};
  const tarn__verdict_side a = times_of(view, group), b = times_of(view, regular);
  if (view->status != TARN_STATUS_OK) return "";
  tarn__verdict_of(&v, &a, &b, &test);
  if (isnan(v.p_single)) return "no verdict";
  char p[TARN_RESULTS_P_TEXT];
  const double corrected = fmin(1, v.p_single * (double)pairs);
  tarn_results_p(p, corrected);
  return tarn__report_text(view, "%s, p %s%s, corrected for %zu such model%s",
                           corrected <= 0.05 ? "decided" : "undecided", *p == '<' ? "" : "= ", p, pairs, plural(pairs));
}

static void say_soonest(tarn__summary *summary, tarn__report *view) {
  const tarn__report_entry *soon = NULL;
  size_t pairs = 0;
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    if (!entry->row || isnan(entry->row->time_ratio) ||
        entry->group->encoder.frozen + entry->group->decoder.frozen == 0)
      continue;
    pairs++;
    if (!soon || entry->row->time_ratio < soon->row->time_ratio) soon = entry;
  }
  if (!soon) return;
  say(summary,
      tarn__report_text(view,
                        "Of models with frozen layers %s has the least time to its best %s compared with "
                        "that of its regular model, which has as many updatable layers: %.2f times that of %s (%s).",
                        named(view, soon), view->score, soon->row->time_ratio,
                        view->results->groups[soon->row->regular].name,
                        time_words(view, soon->row->group, soon->row->regular, pairs)));
}

tarn_status tarn__report_summary(tarn__summary *summary, tarn__report *view) {
  static const struct {
    tarn_results_judged_measure about;
    measure of;
  } scores[] = {{TARN_RESULTS_JUDGED_AUCC, aucc_of},        {TARN_RESULTS_JUDGED_BEST, best_of},
                {TARN_RESULTS_JUDGED_TEST_BLEU, test_of},   {TARN_RESULTS_JUDGED_TEST_CHRF, chrf_of},
                {TARN_RESULTS_JUDGED_TEST_BLIMP, blimp_of}, {TARN_RESULTS_JUDGED_TEST_SCORE, score_of}};
  *summary = (tarn__summary){0};
  say_extent(summary, view);
  for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
    say_winner(summary, view, scores[i].about, scores[i].of);
    if (scores[i].about < TARN_RESULTS_JUDGED_BEST) say_verdicts(summary, view, scores[i].about);
  }
  say_speed(summary, view);
  say_soonest(summary, view);
  return view->status;
}
