// The measures with all their digits, for other programs. Unknown values are empty fields.
#include <math.h>
#include <stddef.h>
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

// The statistics of a row, in the order of their columns.
static const struct {
  const char *name;
  size_t offset;
} statistics[] = {
#define STATISTIC(field) \
  { #field, offsetof(tarn_results_row, field) }
    STATISTIC(aucc),
    STATISTIC(aucc_mean),
    STATISTIC(best),
    STATISTIC(best_seconds),
    STATISTIC(min_loss),
    STATISTIC(min_loss_seconds),
    STATISTIC(min_train_loss),
    STATISTIC(min_train_loss_seconds),
    STATISTIC(epoch_train_loss),
    STATISTIC(epoch_seconds),
    STATISTIC(budget_step),
    STATISTIC(budget_epoch),
    STATISTIC(test_bleu),
    STATISTIC(test_chrf),
    STATISTIC(test_blimp),
    STATISTIC(test_score),
    STATISTIC(peak_bytes)};

static void results_head(tarn__buffer *out, const tarn__report *view) {
  static const char *const parts[] = {"difference", "low", "high", "p", "comparisons", "verdict"};
  tarn__buffer_add(out, "model,frozen_layers,encoder,decoder,baseline,runs,finished,failed,metric,budget_seconds,");
  tarn__buffer_add(out, "parameters,trained_parameters,frozen_parameters,shared_parameters,planned_bytes,");
  for (size_t m = 0; m < sizeof statistics / sizeof *statistics; m++)
    tarn__buffer_format(out, "%s_mean,%s_sd,%s_runs,", statistics[m].name, statistics[m].name, statistics[m].name);
  tarn__buffer_add(out, "regular,time_ratio,regular_deep,time_ratio_deep,");
  for (int m = 0; m < TARN_RESULTS_JUDGED_SCORES; m++)
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
      tarn__buffer_format(out, "%s_%s,", view->table->judged[m].key, parts[k]);
  end_line(out);
}

// The verdicts on a row's scores; p is that after the correction.
static void verdicts(tarn__buffer *out, const tarn__report *view, size_t row) {
  for (int m = 0; m < TARN_RESULTS_JUDGED_SCORES; m++) {
    const tarn_results_judged *judged = &view->table->judged[m];
    const tarn_results_verdict *v = &judged->verdicts[row];
    if (row == view->table->baseline || v->basis == TARN_RESULTS_NO_SCORES) {
      tarn__buffer_add(out, ",,,,,,");
      continue;
    }
    const double values[] = {v->difference, v->low, v->high, v->p};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) real(out, values[k]);
    whole(out, (int64_t)judged->comparisons);
    field(out, v->words);
  }
}

static void ratio(tarn__buffer *out, const tarn__report *view, size_t regular, double value) {
  field(out, regular < view->count ? view->results->groups[regular].name : "");
  real(out, value);
}

void tarn__report_results_csv(tarn__buffer *out, const tarn__report *view) {
  results_head(out, view);
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
    const int64_t sizes[] = {run ? run->parameters : -1, run ? run->trained_parameters : -1,
                             run ? run->frozen_parameters : -1, run ? run->shared_parameters : -1,
                             run ? run->planned_bytes : -1};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) whole(out, sizes[k]);
    for (size_t m = 0; m < sizeof statistics / sizeof *statistics; m++)
      statistic(out, row ? (const void *)((const char *)row + statistics[m].offset) : NULL);
    ratio(out, view, row ? row->regular : view->count, row ? row->time_ratio : NAN);
    ratio(out, view, row ? row->regular_deep : view->count, row ? row->time_ratio_deep : NAN);
    verdicts(out, view, i);
    end_line(out);
  }
}

void tarn__report_runs_csv(tarn__buffer *out, const tarn__report *view) {
  tarn__buffer_add(
      out,
      "model,frozen_layers,seed,path,state,message,config_changed,log_changed,log_accepted,log_accepted_update,end,"
      "seconds,updates,"
      "epochs,clock,threads,parameters,"
      "trained_parameters,frozen_parameters,shared_parameters,planned_bytes,peak_bytes,aucc,aucc_mean,held,"
      "assumed_start,best,best_seconds,best_update,min_loss,min_loss_seconds,min_train_loss,min_train_loss_seconds,"
      "epoch_train_loss,epoch_seconds,budget_step,"
      "budget_epoch,test_bleu,test_chrf,test_blimp,test_score,test_measure,test_checkpoint\n");
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
      field(out, run->config_changed);
      field(out, run->log_changed);
      field(out, run->log_accepted);
      whole(out, run->log_accepted_step);
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
      const double reals[] = {m->min_loss,         m->min_loss_seconds, m->min_train_loss, m->min_train_loss_seconds,
                              m->epoch_train_loss, m->epoch_seconds,    m->budget_step,    m->budget_epoch,
                              run->test_bleu,      run->test_chrf,      run->test_blimp,   m->test_score};
      for (size_t r = 0; r < sizeof reals / sizeof *reals; r++) real(out, reals[r]);
      field(out, view->table->test_measure && !isnan(m->test_score) ? view->table->test_measure->word : "");
      field(out, run->test_checkpoint);
      end_line(out);
    }
  }
}
