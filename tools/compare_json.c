#include "compare_json.h"

#include <stdio.h>

#include "json_output.h"

static json_t *whole(int64_t value) { return value < 0 ? json_null() : json_integer(value); }
static json_t *text(const char *value) { return json_output_text(value); }

// Takes over the object and the list; NULL unless all items of the list are there: one that memory lacks for is not.
static json_t *with_list(json_t *object, const char *key, json_t *list, size_t count) {
  bool all = json_array_size(list) == count;
  bool set = json_object_set_new(object, key, list) == 0;  // takes the list over in any case
  if (all && set) return object;
  json_decref(object);
  return NULL;
}

static json_t *statistic(const tarn_results_statistic *s) {
  return json_pack("{s:o?, s:o?, s:I}", "mean", json_output_real(s->mean), "sd", json_output_real(s->sd), "runs",
                   (json_int_t)s->count);
}

static json_t *significance(const tarn_results_significance *s) {
  return json_pack("{s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?}", "difference", json_output_real(s->difference), "low",
                   json_output_real(s->low), "high", json_output_real(s->high), "wins", json_output_real(s->wins), "p",
                   json_output_real(s->p), "p_two_sided", json_output_real(s->p_two_sided), "p_sacrebleu",
                   json_output_real(s->p_sacrebleu));
}

static json_t *run_object(const tarn_results_run *run, const tarn_results_measures *m) {
  json_t *o = json_pack("{s:o, s:I, s:s}", "path", text(run->path), "seed", (json_int_t)run->seed, "state",
                        tarn_results_state_name(run->state));
  if (run->message) json_object_set_new(o, "message", text(run->message));
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
  json_object_set_new(o, "epoch_seconds", json_output_real(m->epoch_seconds));
  json_object_set_new(o, "budget_step", json_output_real(m->budget_step));
  json_object_set_new(o, "budget_epoch", json_output_real(m->budget_epoch));
  json_object_set_new(o, "test_bleu", json_output_real(run->test_bleu));
  json_object_set_new(o, "test_chrf", json_output_real(run->test_chrf));
  json_object_set_new(o, "test_blimp", json_output_real(run->test_blimp));
  json_object_set_new(o, "parameters", whole(run->parameters));
  json_object_set_new(o, "trained_parameters", whole(run->trained_parameters));
  json_object_set_new(o, "frozen_parameters", whole(run->frozen_parameters));
  json_object_set_new(o, "shared_parameters", whole(run->shared_parameters));
  json_object_set_new(o, "peak_bytes", whole(run->peak_bytes));
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
  json_object_set_new(o, "aucc", statistic(&row->aucc));
  json_object_set_new(o, "aucc_mean", statistic(&row->aucc_mean));
  json_object_set_new(o, "best", statistic(&row->best));
  json_object_set_new(o, "best_seconds", statistic(&row->best_seconds));
  json_object_set_new(o, "regular",
                      text(row->regular < results->group_count ? results->groups[row->regular].name : NULL));
  json_object_set_new(o, "time_ratio", json_output_real(row->time_ratio));
  json_object_set_new(o, "min_loss", statistic(&row->min_loss));
  json_object_set_new(o, "min_loss_seconds", statistic(&row->min_loss_seconds));
  json_object_set_new(o, "epoch_seconds", statistic(&row->epoch_seconds));
  json_object_set_new(o, "budget_step", statistic(&row->budget_step));
  json_object_set_new(o, "budget_epoch", statistic(&row->budget_epoch));
  json_object_set_new(o, "test_bleu", statistic(&row->test_bleu));
  json_object_set_new(o, "test_blimp", statistic(&row->test_blimp));
  json_object_set_new(o, "peak_bytes", statistic(&row->peak_bytes));
  json_t *seeds = json_array();
  for (size_t i = 0; i < row->seed_count; i++) {
    json_t *one = significance(&row->per_seed[i]);
    json_object_set_new(one, "seed", json_integer(row->seeds[i]));
    json_array_append_new(seeds, one);
  }
  json_t *pooled = row->seed_count ? significance(&row->pooled) : json_null();
  json_object_set_new(o, "significance", json_pack("{s:o?, s:o?}", "pooled", pooled, "seeds", seeds));
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
  json_t *object = json_pack("{s:o, s:b, s:f, s:o?, s:o}", "metric", text(t->metric), "less_is_better", (int)t->less,
                             "budget_seconds", t->budget, "clock", text(t->clock), "baseline",
                             text(results->groups[t->rows[t->baseline].group].name));
  object = with_list(object, "configurations", rows, t->row_count);
  object = with_list(object, "notes", notes, t->note_count);
  return json_output_print(command, stdout, object, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
}
