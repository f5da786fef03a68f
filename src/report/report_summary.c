// The summary in words. It says how large a difference is, and whether the spread over seeds or the bootstrap lets one
// believe in it.
#include <math.h>
#include <string.h>

#include "report/report_write.h"

#define SURE 0.05  // level of significance

static void say(tarn__summary *summary, const char *sentence) {
  if (summary->count < TARN__REPORT_SENTENCES && *sentence) summary->sentences[summary->count++] = sentence;
}

static const char *plural(size_t count) { return count == 1 ? "" : "s"; }

typedef const tarn_results_statistic *(*measure)(const tarn_results_row *row);
static const tarn_results_statistic *aucc_of(const tarn_results_row *row) { return &row->aucc_mean; }
static const tarn_results_statistic *best_of(const tarn_results_row *row) { return &row->best; }
static const tarn_results_statistic *test_of(const tarn_results_row *row) { return &row->test_bleu; }
static const tarn_results_statistic *blimp_of(const tarn_results_row *row) { return &row->test_blimp; }
static const tarn_results_statistic *steps_of(const tarn_results_row *row) { return &row->budget_step; }

// The configuration that is best in a measure, or NULL.
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

// How a difference of means stands to the spread over seeds.
static const char *against_spread(tarn__report *view, double difference, int decimals, const tarn_results_statistic *a,
                                  const tarn_results_statistic *b) {
  if (a->count < 2 || b->count < 2) return "; with one seed the spread is not known";
  double error = sqrt(a->sd * a->sd / (double)a->count + b->sd * b->sd / (double)b->count);
  if (fabs(difference) < 2 * error)
    return tarn__report_text(view, "; less than twice its standard error of %.*f over seeds, so too near to tell",
                             decimals, error);
  return tarn__report_text(view, "; its standard error over seeds is %.*f", decimals, error);
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

static void say_winner(tarn__summary *summary, tarn__report *view, measure of, bool less, int decimals,
                       const char *what) {
  const tarn__report_entry *best = winner(view, of, less);
  if (!best) return;
  const char *value = tarn__report_spread(view, of(best->row), 1, decimals);
  if (best == view->baseline || !view->baseline->row || of(view->baseline->row)->count == 0) {
    say(summary, tarn__report_text(view, "Best %s: %s with %s.", what, named(view, best), value));
    return;
  }
  const tarn_results_statistic *base = of(view->baseline->row);
  double difference = of(best->row)->mean - base->mean;
  say(summary, tarn__report_text(view, "Best %s: %s with %s, %.*f %s than the baseline's %s%s.", what,
                                 named(view, best), value, decimals, fabs(difference), difference < 0 ? "less" : "more",
                                 tarn__report_spread(view, base, 1, decimals),
                                 against_spread(view, difference, decimals, of(best->row), base)));
}

// Names of the configurations whose test BLEU differs from the baseline's: `sign` 1 better, -1 worse, 0 neither.
static const char *tested(tarn__report *view, int sign) {
  const char *text = "";
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    if (!entry->row || entry == view->baseline || entry->row->seed_count == 0) continue;
    const tarn_results_significance *s = &entry->row->pooled;
    if (isnan(s->p_two_sided)) continue;
    const char *p = tarn__report_p(view, s->p_two_sided);
    int found = fmax(s->p_two_sided, tarn__report_least_p(view)) > SURE ? 0 : s->difference > 0 ? 1 : -1;
    if (found != sign) continue;
    const char *mark = s->difference < 0 ? "\xE2\x88\x92" : "+";
    text = tarn__report_text(view, "%s%s%s (%s%.2f, p %s%s)", text, *text ? ", " : "", entry->group->name, mark,
                             fabs(s->difference), *p == '<' ? "" : "= ", p);
  }
  return text;
}

static void say_significance(tarn__summary *summary, tarn__report *view) {
  const char *better = tested(view, 1);
  const char *worse = tested(view, -1);
  const char *neither = tested(view, 0);
  if (!*better && !*worse && !*neither) return;
  say(summary,
      tarn__report_text(
          view, "Test BLEU against the baseline by paired bootstrap, at p of %g or less:%s%s%s%s%s%s%s%s.", SURE,
          *better ? " better " : "", better, *better && (*worse || *neither) ? ";" : "", *worse ? " worse " : "", worse,
          *worse && *neither ? ";" : "", *neither ? " no significant difference " : "", neither));
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
  const tarn__report_entry *soon = NULL;
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    if (!entry->row || isnan(entry->row->time_ratio) ||
        entry->group->encoder.frozen + entry->group->decoder.frozen == 0)
      continue;
    if (!soon || entry->row->time_ratio < soon->row->time_ratio) soon = entry;
  }
  if (!soon) return;
  const char *who = tarn__report_text(
      view,
      soon->row->time_ratio < 1 ? "Among models with frozen layers, %s saves the most time against its regular model"
                                : "No model with frozen layers saves time against its regular model; %s comes nearest",
      named(view, soon));
  say(summary,
      tarn__report_text(view,
                        "%s: it reaches its best %s in %.2f times the time of %s, which has as many updatable "
                        "layers.",
                        who, view->score, soon->row->time_ratio, view->results->groups[soon->row->regular].name));
}

tarn_status tarn__report_summary(tarn__summary *summary, tarn__report *view) {
  bool less = view->table->less;
  *summary = (tarn__summary){0};
  say_extent(summary, view);
  say_winner(summary, view, aucc_of, false, view->decimals, "area under the curve (AUCC / time)");
  say_winner(summary, view, best_of, less, view->decimals, view->score);
  say_winner(summary, view, test_of, false, 2, "test BLEU");
  say_winner(summary, view, blimp_of, false, 2, "BLiMP accuracy");
  say_significance(summary, view);
  say_speed(summary, view);
  return view->status;
}
