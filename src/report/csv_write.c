// Writes all measures with full precision, for other programs. Unknown values are empty fields.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "report/csv_fields.h"
#include "report/report_table.h"

static void statistic(tarn__buffer *out, const tarn_results_statistic *s) {
  if (!s || s->count == 0) {
    tarn__buffer_add(out, ",,,");
    return;
  }
  tarn__csv_real(out, s->mean);
  tarn__csv_real(out, s->sd);
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
    STATISTIC(exponent),
    STATISTIC(peak_bytes),
    STATISTIC(joules),
    STATISTIC(epoch_joules),
    STATISTIC(best_joules),
    STATISTIC(co2_grams),
    STATISTIC(token_operations),
    STATISTIC(operations),
    STATISTIC(best_operations),
    STATISTIC(moved_bytes)};

static void results_head(tarn__buffer *out, const tarn__report *view) {
  static const char *const parts[] = {"difference", "low", "high", "p", "comparisons", "verdict"};
  tarn__buffer_add(
      out, "model,frozen_layers,encoder,decoder,baseline,runs,finished,failed,metric,budget_seconds,processor,");
  tarn__buffer_add(out, "parameters,trained_parameters,frozen_parameters,shared_parameters,planned_bytes,");
  for (size_t m = 0; m < sizeof statistics / sizeof *statistics; m++)
    tarn__buffer_format(out, "%s_mean,%s_sd,%s_runs,", statistics[m].name, statistics[m].name, statistics[m].name);
  tarn__buffer_add(out, "regular,time_ratio,regular_deep,time_ratio_deep,");
  for (int m = 0; m < TARN_RESULTS_JUDGED_SCORES; m++)
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
      tarn__buffer_format(out, "%s_%s,", view->table->judged[m].key, parts[k]);
  tarn__csv_end(out);
}

// The verdicts on a row's scores; p is the corrected one.
static void verdicts(tarn__buffer *out, const tarn__report *view, size_t row) {
  for (int m = 0; m < TARN_RESULTS_JUDGED_SCORES; m++) {
    const tarn_results_judged *judged = &view->table->judged[m];
    const tarn_results_verdict *v = &judged->verdicts[row];
    if (row == view->table->baseline || v->basis == TARN_RESULTS_NO_SCORES) {
      tarn__buffer_add(out, ",,,,,,");
      continue;
    }
    const double values[] = {v->difference, v->low, v->high, v->p};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) tarn__csv_real(out, values[k]);
    tarn__csv_whole(out, (int64_t)judged->comparisons);
    tarn__csv_text(out, v->words);
  }
}

static void ratio(tarn__buffer *out, const tarn__report *view, size_t regular, double value) {
  tarn__csv_text(out, regular < view->count ? view->results->groups[regular].name : "");
  tarn__csv_real(out, value);
}

void tarn__report_results_csv(tarn__buffer *out, const tarn__report *view) {
  results_head(out, view);
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    const tarn_results_group *group = entry->group;
    const tarn_results_row *row = entry->row;
    const tarn_results_run *run = tarn__report_first(view, group, tarn__report_has_sizes);
    tarn__csv_text(out, group->name);
    tarn__csv_text(out, entry->label.note);
    tarn__csv_text(out, group->encoder.pattern);
    tarn__csv_text(out, group->decoder.pattern);
    tarn__buffer_format(out, "%s,%zu,%zu,%zu,", entry == view->baseline ? "yes" : "no", group->run_count,
                        group->finished, group->failed);
    tarn__csv_text(out, view->table->metric);
    tarn__csv_real(out, view->table->budget);
    tarn__csv_text(out, view->table->processor);
    const int64_t sizes[] = {run ? run->parameters : -1, run ? run->trained_parameters : -1,
                             run ? run->frozen_parameters : -1, run ? run->shared_parameters : -1,
                             run ? run->planned_bytes : -1};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) tarn__csv_whole(out, sizes[k]);
    for (size_t m = 0; m < sizeof statistics / sizeof *statistics; m++)
      statistic(out, row ? (const void *)((const char *)row + statistics[m].offset) : NULL);
    ratio(out, view, row ? row->regular : view->count, row ? row->time_ratio : NAN);
    ratio(out, view, row ? row->regular_deep : view->count, row ? row->time_ratio_deep : NAN);
    verdicts(out, view, i);
    tarn__csv_end(out);
  }
}

void tarn__report_runs_csv(tarn__buffer *out, const tarn__report *view) {
  tarn__buffer_add(
      out,
      "model,frozen_layers,seed,path,state,message,config_changed,log_changed,log_accepted,log_accepted_update,end,"
      "seconds,updates,"
      "epochs,clock,processor,kernels,threads,elsewhere,parameters,"
      "trained_parameters,frozen_parameters,shared_parameters,planned_bytes,peak_bytes,aucc,aucc_mean,held,"
      "assumed_start,best,best_seconds,best_update,min_loss,min_loss_seconds,min_train_loss,min_train_loss_seconds,"
      "epoch_train_loss,epoch_seconds,budget_step,"
      "budget_epoch,test_bleu,test_chrf,test_blimp,test_score,test_measure,test_checkpoint,exponent,"
      "energy_source,joules,epoch_joules,best_joules,co2_grams,token_operations,operations,best_operations,"
      "moved_bytes\n");
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    for (size_t k = 0; k < entry->group->run_count; k++) {
      const tarn_results_run *run = &view->results->runs[entry->group->runs[k]];
      const tarn_results_measures *m = &view->table->measures[entry->group->runs[k]];
      tarn__csv_text(out, entry->group->name);
      tarn__csv_text(out, entry->label.note);
      tarn__buffer_format(out, "%lld,", (long long)run->seed);
      tarn__csv_text(out, run->path);
      tarn__csv_text(out, tarn_results_state_name(run->state));
      tarn__csv_text(out, run->message);
      tarn__csv_text(out, run->config_changed);
      tarn__csv_text(out, run->log_changed);
      tarn__csv_text(out, run->log_accepted);
      tarn__csv_whole(out, run->log_accepted_step);
      tarn__csv_text(out, run->end);
      tarn__csv_real(out, run->seconds);
      tarn__csv_whole(out, run->step);
      tarn__csv_real(out, run->epoch);
      tarn__csv_text(out, run->clock);
      tarn__csv_text(out, run->processor);
      tarn__csv_text(out, run->kernels);
      tarn__csv_whole(out, run->threads);
      tarn__csv_text(out, m->elsewhere ? "yes" : "no");
      const int64_t sizes[] = {run->parameters,        run->trained_parameters, run->frozen_parameters,
                               run->shared_parameters, run->planned_bytes,      run->peak_bytes};
      for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) tarn__csv_whole(out, sizes[s]);
      tarn__csv_real(out, m->aucc);
      tarn__csv_real(out, m->aucc_mean);
      bool finished = run->state == TARN_RESULTS_FINISHED;
      tarn__csv_text(out, !finished ? "" : m->held ? "yes" : "no");
      tarn__csv_text(out, !finished ? "" : m->assumed_start ? "yes" : "no");
      tarn__csv_real(out, m->best);
      tarn__csv_real(out, m->best_seconds);
      tarn__csv_whole(out, m->best_step);
      const double reals[] = {m->min_loss,         m->min_loss_seconds, m->min_train_loss, m->min_train_loss_seconds,
                              m->epoch_train_loss, m->epoch_seconds,    m->budget_step,    m->budget_epoch,
                              run->test_bleu,      run->test_chrf,      run->test_blimp,   m->test_score};
      for (size_t r = 0; r < sizeof reals / sizeof *reals; r++) tarn__csv_real(out, reals[r]);
      tarn__csv_text(out, view->table->test_measure && !isnan(m->test_score) ? view->table->test_measure->word : "");
      tarn__csv_text(out, run->test_checkpoint);
      tarn__csv_real(out, m->exponent);
      tarn__csv_text(out, run->cost.source);
      const double costs[] = {m->joules,           m->epoch_joules, m->best_joules,     m->co2_grams,
                              m->token_operations, m->operations,   m->best_operations, m->moved_bytes};
      for (size_t c = 0; c < sizeof costs / sizeof *costs; c++) tarn__csv_real(out, costs[c]);
      tarn__csv_end(out);
    }
  }
}
