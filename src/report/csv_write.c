// The measures with all their digits, for other programs. Unknown values are empty fields.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/markup.h"
#include "report/report_table.h"

static void field(tarn__buffer *out, const char *text) {
  tarn__markup_csv(out, text ? text : "");
  tarn__buffer_add(out, ",");
}

// The shortest decimal number that reads back as the same double.
static void real(tarn__buffer *out, double value) {
  char text[40] = "";
  for (int digits = 6; digits <= 17 && !isnan(value); digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  field(out, text);
}

static void whole(tarn__buffer *out, int64_t value) {
  if (value < 0)
    tarn__buffer_add(out, ",");
  else
    tarn__buffer_format(out, "%lld,", (long long)value);
}

static void end_line(tarn__buffer *out) {
  if (out->status != TARN_STATUS_OK || out->used == 0) return;
  out->data[out->used - 1] = '\n';  // in place of the last comma
}

static void statistic(tarn__buffer *out, const tarn_results_statistic *s) {
  if (!s || s->count == 0) {
    tarn__buffer_add(out, ",,,");
    return;
  }
  real(out, s->mean);
  real(out, s->sd);
  tarn__buffer_format(out, "%zu,", s->count);
}

void tarn__report_results_csv(tarn__buffer *out, const tarn__report *view) {
  static const char *const measures[] = {"aucc",         "aucc_mean",        "best",          "best_seconds",
                                         "min_loss",     "min_loss_seconds", "epoch_seconds", "budget_step",
                                         "budget_epoch", "test_bleu",        "test_blimp",    "peak_bytes"};
  static const char *const pooled[] = {"difference", "low", "high", "wins", "p", "p_two_sided", "p_sacrebleu"};
  tarn__buffer_add(out, "model,frozen_layers,encoder,decoder,baseline,runs,finished,failed,metric,budget_seconds,");
  tarn__buffer_add(out, "parameters,trained_parameters,frozen_parameters,shared_parameters,planned_bytes,");
  for (size_t m = 0; m < sizeof measures / sizeof *measures; m++)
    tarn__buffer_format(out, "%s_mean,%s_sd,%s_runs,", measures[m], measures[m], measures[m]);
  tarn__buffer_add(out, "regular,time_ratio,");
  for (size_t m = 0; m < sizeof pooled / sizeof *pooled; m++) tarn__buffer_format(out, "significance_%s,", pooled[m]);
  end_line(out);
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    const tarn_results_group *group = entry->group;
    const tarn_results_row *row = entry->row;
    const tarn_results_run *run = tarn__report_first(view, group, tarn__report_has_sizes);
    field(out, group->name);
    field(out, entry->label.note);
    field(out, group->encoder.pattern);
    field(out, group->decoder.pattern);
    tarn__buffer_format(out, "%s,%zu,%zu,%zu,", entry == view->baseline ? "yes" : "no", group->run_count,
                        group->finished, group->failed);
    field(out, view->table->metric);
    real(out, view->table->budget);
    whole(out, run ? run->parameters : -1);
    whole(out, run ? run->trained_parameters : -1);
    whole(out, run ? run->frozen_parameters : -1);
    whole(out, run ? run->shared_parameters : -1);
    whole(out, run ? run->planned_bytes : -1);
    const tarn_results_statistic *const statistics[] = {
        row ? &row->aucc : NULL,          row ? &row->aucc_mean : NULL,   row ? &row->best : NULL,
        row ? &row->best_seconds : NULL,  row ? &row->min_loss : NULL,    row ? &row->min_loss_seconds : NULL,
        row ? &row->epoch_seconds : NULL, row ? &row->budget_step : NULL, row ? &row->budget_epoch : NULL,
        row ? &row->test_bleu : NULL,     row ? &row->test_blimp : NULL,  row ? &row->peak_bytes : NULL};
    for (size_t m = 0; m < sizeof statistics / sizeof *statistics; m++) statistic(out, statistics[m]);
    field(out, row && row->regular < view->count ? view->results->groups[row->regular].name : "");
    real(out, row ? row->time_ratio : NAN);
    bool known = row && row->seed_count > 0;
    const tarn_results_significance *s = known ? &row->pooled : NULL;
    const double values[] = {s ? s->difference : NAN, s ? s->low : NAN, s ? s->high : NAN,
                             s ? s->wins : NAN,       s ? s->p : NAN,   s ? s->p_two_sided : NAN,
                             s ? s->p_sacrebleu : NAN};
    for (size_t m = 0; m < sizeof values / sizeof *values; m++) real(out, values[m]);
    end_line(out);
  }
}

void tarn__report_runs_csv(tarn__buffer *out, const tarn__report *view) {
  tarn__buffer_add(
      out,
      "model,frozen_layers,seed,path,state,message,end,seconds,updates,epochs,clock,threads,parameters,"
      "trained_parameters,frozen_parameters,shared_parameters,planned_bytes,peak_bytes,aucc,aucc_mean,held,"
      "assumed_start,best,best_seconds,best_update,min_loss,min_loss_seconds,epoch_seconds,budget_step,"
      "budget_epoch,test_bleu,test_chrf,test_blimp\n");
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    for (size_t k = 0; k < entry->group->run_count; k++) {
      const tarn_results_run *run = &view->results->runs[entry->group->runs[k]];
      const tarn_results_measures *m = &view->table->measures[entry->group->runs[k]];
      field(out, entry->group->name);
      field(out, entry->label.note);
      tarn__buffer_format(out, "%lld,", (long long)run->seed);
      field(out, run->path);
      field(out, tarn_results_state_name(run->state));
      field(out, run->message);
      field(out, run->end);
      real(out, run->seconds);
      whole(out, run->step);
      real(out, run->epoch);
      field(out, run->clock);
      whole(out, run->threads);
      const int64_t sizes[] = {run->parameters,        run->trained_parameters, run->frozen_parameters,
                               run->shared_parameters, run->planned_bytes,      run->peak_bytes};
      for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) whole(out, sizes[s]);
      real(out, m->aucc);
      real(out, m->aucc_mean);
      bool finished = run->state == TARN_RESULTS_FINISHED;
      field(out, !finished ? "" : m->held ? "yes" : "no");
      field(out, !finished ? "" : m->assumed_start ? "yes" : "no");
      real(out, m->best);
      real(out, m->best_seconds);
      whole(out, m->best_step);
      const double reals[] = {m->min_loss,     m->min_loss_seconds, m->epoch_seconds, m->budget_step,
                              m->budget_epoch, run->test_bleu,      run->test_chrf,   run->test_blimp};
      for (size_t r = 0; r < sizeof reals / sizeof *reals; r++) real(out, reals[r]);
      end_line(out);
    }
  }
}
