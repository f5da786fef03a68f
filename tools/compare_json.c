#include "compare_json.h"

#include <stdio.h>

#include "json_output.h"

static json_t *whole(int64_t value) { return value < 0 ? json_null() : json_integer(value); }
static json_t *text(const char *value) { return json_output_text(value); }

// Takes ownership of object and list; returns NULL unless the list is complete: items without memory are missing from
// it.
static json_t *with_list(json_t *object, const char *key, json_t *list, size_t count) {
  bool all = json_array_size(list) == count;
  bool set = json_object_set_new(object, key, list) == 0;  // takes ownership of the list in any case
  if (all && set) return object;
  json_decref(object);
  return NULL;
}

static json_t *statistic(const tarn_results_statistic *s) {
  return json_pack("{s:o?, s:o?, s:I}", "mean", json_output_real(s->mean), "sd", json_output_real(s->sd), "runs",
                   (json_int_t)s->count);
}

static json_t *verdict(const tarn_results_verdict *v) {
  static const char *const decisions[] = {[TARN_RESULTS_NONE] = "none",
                                          [TARN_RESULTS_UNDECIDED] = "undecided",
                                          [TARN_RESULTS_BETTER] = "better",
                                          [TARN_RESULTS_WORSE] = "worse"};
  json_t *seeds = json_array();
  for (size_t i = 0; i < v->seed_count; i++)
    json_array_append_new(seeds, json_pack("{s:I, s:o?}", "seed", (json_int_t)v->seeds[i], "difference",
                                           json_output_real(v->by_seed[i])));
  json_t *o = json_pack("{s:s, s:s, s:I, s:I}", "decision", decisions[v->decision], "words", v->words, "runs",
                        (json_int_t)v->runs, "baseline_runs", (json_int_t)v->other_runs);
  json_object_set_new(o, "difference", json_output_real(v->difference));
  json_object_set_new(o, "low", json_output_real(v->low));
  json_object_set_new(o, "high", json_output_real(v->high));
  json_object_set_new(o, "error", json_output_real(v->error));
  json_object_set_new(o, "freedom", json_output_real(v->freedom));
  json_object_set_new(o, "p", json_output_real(v->p));
  json_object_set_new(o, "p_single", json_output_real(v->p_single));
  json_object_set_new(o, "comparisons", json_integer((json_int_t)v->comparisons));
  return with_list(o, "seeds", seeds, v->seed_count);
}

static bool is_told(const tarn_results_table *t, int measure, size_t row) {
  return row != t->baseline && t->judged[measure].verdicts[row].basis != TARN_RESULTS_NO_SCORES;
}

// The verdicts on a row, by measure, for the measures that it has.
static json_t *verdicts(const tarn_results_table *t, size_t row) {
  json_t *o = json_object();
  for (int m = 0; m < TARN_RESULTS_JUDGED_MEASURES; m++)
    if (is_told(t, m, row)) json_object_set_new(o, t->judged[m].key, verdict(&t->judged[m].verdicts[row]));
  return o;
}

static json_t *design(const tarn_results *results, const tarn_results_table *t) {
  const tarn_sequential_design *d = &results->sequential;
  if (!t->sequential) return json_null();
  json_t *looks = json_array();
  for (size_t k = 0; k < d->look_count; k++) json_array_append_new(looks, json_integer(d->looks[k]));
  json_t *o = json_pack("{s:s, s:I, s:f, s:s, s:f, s:f}", "measure", d->measure, "max_seeds", (json_int_t)d->max_seeds,
                        "alpha", d->alpha, "spending", tarn_sequential_spending_name(d->spending), "equivalence",
                        d->equivalence, "futility", d->futility);
  if (t->judged[t->sequential_measure].neutral) json_object_set_new(o, "neutral", json_true());
  return with_list(o, "looks", looks, d->look_count);
}

static json_t *sequential(const tarn_results *results, const tarn_results_table *t, size_t row) {
  const tarn_sequential_verdict *v = &t->sequential[row];
  char words[TARN_SEQUENTIAL_TEXT];
  if (row == t->baseline) return json_null();
  tarn_sequential_words(words, v, &results->sequential);
  json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:I}", "decision", tarn_sequential_decision_name(v->decision), "words",
                        words, "looks", (json_int_t)v->looks, "seeds", (json_int_t)v->seeds, "comparisons",
                        (json_int_t)v->comparisons);
  json_object_set_new(o, "next_seeds", v->next_seeds ? json_integer(v->next_seeds) : json_null());
  json_object_set_new(o, "difference", json_output_real(v->difference));
  json_object_set_new(o, "error", json_output_real(v->error));
  json_object_set_new(o, "freedom", json_output_real(v->freedom));
  json_object_set_new(o, "low", json_output_real(v->low));
  json_object_set_new(o, "high", json_output_real(v->high));
  json_object_set_new(o, "p", json_output_real(v->p));
  json_object_set_new(o, "p_single", json_output_real(v->p_single));
  json_object_set_new(o, "p_equal", json_output_real(v->p_equal));
  json_object_set_new(o, "p_equal_single", json_output_real(v->p_equal_single));
  json_object_set_new(o, "chance", json_output_real(v->chance));
  return o;
}

// The leading row of each measure, if there is one.
static json_t *leaders(const tarn_results *results, const tarn_results_table *t) {
  json_t *o = json_object();
  for (int m = 0; m < TARN_RESULTS_JUDGED_MEASURES; m++) {
    size_t row = t->judged[m].leader;
    if (row < t->row_count) json_object_set_new(o, t->judged[m].key, text(results->groups[t->rows[row].group].name));
  }
  return o;
}

static json_t *run_object(const tarn_results_run *run, const tarn_results_measures *m) {
  json_t *o = json_pack("{s:o, s:I, s:s}", "path", text(run->path), "seed", (json_int_t)run->seed, "state",
                        tarn_results_state_name(run->state));
  if (run->message) json_object_set_new(o, "message", text(run->message));
  if (run->config_changed) json_object_set_new(o, "config_changed", text(run->config_changed));
  if (run->log_changed) json_object_set_new(o, "log_changed", text(run->log_changed));
  if (run->log_accepted) json_object_set_new(o, "log_accepted", text(run->log_accepted));
  if (run->log_accepted) json_object_set_new(o, "log_accepted_step", json_integer(run->log_accepted_step));
  if (run->reused) json_object_set_new(o, "reused", text(run->reused));
  json_object_set_new(o, "processor", text(run->processor));
  json_object_set_new(o, "kernels", text(run->kernels));
  json_object_set_new(o, "threads", whole(run->threads));
  json_object_set_new(o, "elsewhere", json_boolean(m->elsewhere));
  json_object_set_new(o, "aucc", json_output_real(m->aucc));
  json_object_set_new(o, "aucc_mean", json_output_real(m->aucc_mean));
  json_object_set_new(o, "held", json_boolean(m->held));
  json_object_set_new(o, "assumed_start", json_boolean(m->assumed_start));
  json_object_set_new(o, "best", json_output_real(m->best));
  json_object_set_new(o, "best_seconds", json_output_real(m->best_seconds));
  json_object_set_new(o, "best_step", whole(m->best_step));
  json_object_set_new(o, "best_epoch", json_output_real(m->best_epoch));
  json_object_set_new(o, "min_loss", json_output_real(m->min_loss));
  json_object_set_new(o, "min_loss_seconds", json_output_real(m->min_loss_seconds));
  json_object_set_new(o, "min_loss_step", whole(m->min_loss_step));
  json_object_set_new(o, "min_train_loss", json_output_real(m->min_train_loss));
  json_object_set_new(o, "min_train_loss_seconds", json_output_real(m->min_train_loss_seconds));
  json_object_set_new(o, "min_train_loss_step", whole(m->min_train_loss_step));
  json_object_set_new(o, "epoch_train_loss", json_output_real(m->epoch_train_loss));
  json_object_set_new(o, "epoch_seconds", json_output_real(m->epoch_seconds));
  json_object_set_new(o, "budget_step", json_output_real(m->budget_step));
  json_object_set_new(o, "budget_epoch", json_output_real(m->budget_epoch));
  json_object_set_new(o, "test_bleu", json_output_real(run->test_bleu));
  json_object_set_new(o, "test_chrf", json_output_real(run->test_chrf));
  json_object_set_new(o, "test_blimp", json_output_real(run->test_blimp));
  json_object_set_new(o, "test_score", json_output_real(m->test_score));
  json_object_set_new(o, "exponent", json_output_real(m->exponent));
  json_object_set_new(o, "test_checkpoint", text(run->test_checkpoint));
  json_object_set_new(o, "parameters", whole(run->parameters));
  json_object_set_new(o, "trained_parameters", whole(run->trained_parameters));
  json_object_set_new(o, "frozen_parameters", whole(run->frozen_parameters));
  json_object_set_new(o, "shared_parameters", whole(run->shared_parameters));
  json_object_set_new(o, "peak_bytes", whole(run->peak_bytes));
  json_object_set_new(o, "energy_source", text(run->cost.source));
  json_object_set_new(o, "joules", json_output_real(m->joules));
  json_object_set_new(o, "epoch_joules", json_output_real(m->epoch_joules));
  json_object_set_new(o, "best_joules", json_output_real(m->best_joules));
  json_object_set_new(o, "co2_grams", json_output_real(m->co2_grams));
  json_object_set_new(o, "token_operations", json_output_real(m->token_operations));
  json_object_set_new(o, "operations", json_output_real(m->operations));
  json_object_set_new(o, "best_operations", json_output_real(m->best_operations));
  json_object_set_new(o, "moved_bytes", json_output_real(m->moved_bytes));
  return o;
}

static json_t *stack_object(const tarn_results_stack *stack) {
  return json_pack("{s:o?, s:i, s:i}", "layers", text(stack->pattern), "trained", (int)stack->trained, "frozen",
                   (int)stack->frozen);
}

static json_t *row_object(const tarn_results *results, const tarn_results_table *t, const tarn_results_row *row) {
  const tarn_results_group *group = &results->groups[row->group];
  json_t *o = json_pack("{s:o, s:b, s:I, s:I, s:o?, s:o?}", "name", text(group->name), "baseline", (int)row->baseline,
                        "finished", (json_int_t)group->finished, "failed", (json_int_t)group->failed, "encoder",
                        stack_object(&group->encoder), "decoder", stack_object(&group->decoder));
  json_object_set_new(o, "changes", text(group->changes));
  json_object_set_new(o, "equalized", text(group->equalized));
  json_object_set_new(o, "grid", text(group->grid));
  json_object_set_new(o, "aucc", statistic(&row->aucc));
  json_object_set_new(o, "aucc_mean", statistic(&row->aucc_mean));
  json_object_set_new(o, "best", statistic(&row->best));
  json_object_set_new(o, "best_seconds", statistic(&row->best_seconds));
  const char *regular = row->regular < results->group_count ? results->groups[row->regular].name : NULL;
  const char *deep = row->regular_deep < results->group_count ? results->groups[row->regular_deep].name : NULL;
  json_object_set_new(o, "regular", text(regular));
  json_object_set_new(o, "time_ratio", json_output_real(row->time_ratio));
  json_object_set_new(o, "regular_deep", text(deep));
  json_object_set_new(o, "time_ratio_deep", json_output_real(row->time_ratio_deep));
  json_object_set_new(o, "min_loss", statistic(&row->min_loss));
  json_object_set_new(o, "min_loss_seconds", statistic(&row->min_loss_seconds));
  json_object_set_new(o, "min_train_loss", statistic(&row->min_train_loss));
  json_object_set_new(o, "min_train_loss_seconds", statistic(&row->min_train_loss_seconds));
  json_object_set_new(o, "epoch_train_loss", statistic(&row->epoch_train_loss));
  json_object_set_new(o, "epoch_seconds", statistic(&row->epoch_seconds));
  json_object_set_new(o, "budget_step", statistic(&row->budget_step));
  json_object_set_new(o, "budget_epoch", statistic(&row->budget_epoch));
  json_object_set_new(o, "test_bleu", statistic(&row->test_bleu));
  json_object_set_new(o, "test_chrf", statistic(&row->test_chrf));
  json_object_set_new(o, "test_blimp", statistic(&row->test_blimp));
  json_object_set_new(o, "test_score", statistic(&row->test_score));
  json_object_set_new(o, "exponent", statistic(&row->exponent));
  json_object_set_new(o, "peak_bytes", statistic(&row->peak_bytes));
  json_object_set_new(o, "joules", statistic(&row->joules));
  json_object_set_new(o, "epoch_joules", statistic(&row->epoch_joules));
  json_object_set_new(o, "best_joules", statistic(&row->best_joules));
  json_object_set_new(o, "co2_grams", statistic(&row->co2_grams));
  json_object_set_new(o, "token_operations", statistic(&row->token_operations));
  json_object_set_new(o, "operations", statistic(&row->operations));
  json_object_set_new(o, "best_operations", statistic(&row->best_operations));
  json_object_set_new(o, "moved_bytes", statistic(&row->moved_bytes));
  json_object_set_new(o, "verdicts", verdicts(t, (size_t)(row - t->rows)));
  if (t->sequential) json_object_set_new(o, "sequential", sequential(results, t, (size_t)(row - t->rows)));
  json_t *runs = json_array();
  for (size_t i = 0; i < group->run_count; i++)
    json_array_append_new(runs, run_object(&results->runs[group->runs[i]], &t->measures[group->runs[i]]));
  return with_list(o, "runs", runs, group->run_count);
}

int compare_print_json(const cli_command *command, const tarn_results *results, const tarn_results_table *t) {
  json_t *rows = json_array();
  json_t *notes = json_array();
  for (size_t i = 0; i < t->row_count; i++) json_array_append_new(rows, row_object(results, t, &t->rows[i]));
  for (size_t i = 0; i < t->note_count; i++) json_array_append_new(notes, text(t->notes[i]));
  json_t *object = json_pack("{s:o, s:b, s:f, s:o?, s:o?, s:o}", "metric", text(t->metric), "less_is_better",
                             (int)t->less, "budget_seconds", t->budget, "processor", text(t->processor), "clock",
                             text(t->clock), "baseline", text(results->groups[t->rows[t->baseline].group].name));
  json_object_set_new(object, "test_measure", text(t->test_measure ? t->test_measure->word : NULL));
  json_object_set_new(object, "leaders", leaders(results, t));
  json_object_set_new(object, "sequential", design(results, t));
  object = with_list(object, "configurations", rows, t->row_count);
  object = with_list(object, "notes", notes, t->note_count);
  return json_output_print(command, stdout, object, JSON_COMPACT | JSON_REAL_PRECISION(12));
}
