// All numbers with full precision, for other programs.
#include <math.h>

#include "dynamics/dynamics_page.h"
#include "report/csv_fields.h"

static int64_t most_exponents(const tarn__dynamics_page *page) {
  int64_t most = 0;
  for (size_t i = 0; i < page->options->model_count; i++)
    if (page->options->models[i].result->exponents > most) most = page->options->models[i].result->exponents;
  return most;
}

static void synchrony(tarn__buffer *out, const tarn_dynamics_synchrony *s) {
  tarn__csv_whole(out, s->there && s->synchronised ? s->iteration : -1);
  tarn__csv_real(out, s->there ? s->offset : NAN);
  tarn__csv_real(out, s->there ? s->wander : NAN);
}

static void sentence(tarn__buffer *out, const tarn_dynamics_model *model, const tarn_dynamics_sentence *s,
                     int64_t exponents) {
  const tarn_dynamics_result *r = model->result;
  const bool measured = r->exponents > 0;
  tarn__csv_text(out, model->name);
  const int64_t sizes[] = {s->line, s->tokens, s->dimensions, s->iterations, s->diverged, s->counted};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) tarn__csv_whole(out, sizes[i]);
  for (int64_t k = 0; k < exponents; k++) tarn__csv_real(out, k < r->exponents ? s->exponents[k] : NAN);
  tarn__csv_real(out, measured ? s->kaplan_yorke : NAN);
  tarn__csv_text(out, !measured ? NULL : s->kaplan_yorke_least ? "yes" : "no");
  tarn__csv_real(out, measured ? s->state_growth : NAN);
  tarn__csv_real(out, measured ? s->growth : NAN);
  tarn__csv_whole(out, measured ? s->expansion_end : -1);
  tarn__csv_text(out, tarn_dynamics_verdict_name(s->verdict));
  tarn__csv_text(out, tarn_dynamics_settling_name(s->settling));
  tarn__csv_whole(out, s->period > 0 ? s->period : -1);
  tarn__csv_whole(out, s->settled);
  tarn__csv_real(out, s->residual);
  synchrony(out, &s->starts);
  tarn__csv_whole(out, s->starts.there ? s->starts.lag : -1);
  synchrony(out, &s->between_tokens);
  tarn__csv_end(out);
}

void tarn__dynamics_sentences_csv(tarn__buffer *out, const tarn__dynamics_page *page) {
  const int64_t exponents = most_exponents(page);
  tarn__buffer_add(out, "model,line,tokens,dimensions,iterations,diverged,counted,");
  for (int64_t k = 1; k <= exponents; k++) tarn__buffer_format(out, "exponent_%lld,", (long long)k);
  tarn__buffer_add(
      out,
      "kaplan_yorke,kaplan_yorke_least,state_growth,growth,expansion_end,verdict,settling,period,settled,residual,"
      "starts_iteration,starts_offset,starts_wander,starts_lag,tokens_iteration,tokens_offset,"
      "tokens_wander\n");
  for (size_t i = 0; i < page->options->model_count; i++) {
    const tarn_dynamics_model *model = &page->options->models[i];
    for (int64_t k = 0; k < model->result->count; k++) sentence(out, model, &model->result->sentences[k], exponents);
  }
}

static void iterations(tarn__buffer *out, const tarn_dynamics_model *model, const tarn_dynamics_sentence *s,
                       int64_t exponents) {
  const int64_t own = model->result->exponents;
  const double *const measures[] = {s->norm,         s->step,          s->start_distance, s->token_distance,
                                    s->token_cosine, s->participation, s->rank_collapse};
  for (int64_t t = 0; t <= s->iterations; t++) {
    tarn__csv_text(out, model->name);
    tarn__csv_whole(out, s->line);
    tarn__csv_whole(out, t);
    for (int64_t k = 0; k < exponents; k++) tarn__csv_real(out, t > 0 && k < own ? s->local[(t - 1) * own + k] : NAN);
    tarn__csv_real(out, t > 0 && own > 0 ? s->finite_time[(t - 1) * own] : NAN);
    for (size_t k = 0; k < sizeof measures / sizeof *measures; k++) tarn__csv_real(out, measures[k][t]);
    tarn__csv_end(out);
  }
}

void tarn__dynamics_iterations_csv(tarn__buffer *out, const tarn__dynamics_page *page) {
  const int64_t exponents = most_exponents(page);
  tarn__buffer_add(out, "model,line,iteration,");
  for (int64_t k = 1; k <= exponents; k++) tarn__buffer_format(out, "local_%lld,", (long long)k);
  tarn__buffer_add(out,
                   "finite_time_1,norm,step,start_distance,token_distance,token_cosine,participation,rank_collapse\n");
  for (size_t i = 0; i < page->options->model_count; i++) {
    const tarn_dynamics_model *model = &page->options->models[i];
    for (int64_t k = 0; k < model->result->count; k++) iterations(out, model, &model->result->sentences[k], exponents);
  }
}

static void spread(tarn__buffer *out, const tarn_dynamics_spread *s) {
  const double values[] = {s->median, s->lower, s->upper, s->mean, s->deviation};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) tarn__csv_real(out, s->count > 0 ? values[i] : NAN);
  tarn__csv_whole(out, s->count);
}

void tarn__dynamics_training_csv(tarn__buffer *out, const tarn__dynamics_page *page) {
  static const char *const names[] = {"exponent",      "kaplan_yorke",  "growth",
                                      "expansion_end", "participation", "token_distance"};
  tarn__buffer_add(out, "update,sentences,");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    tarn__buffer_format(out, "%s_median,%s_lower,%s_upper,%s_mean,%s_sd,%s_count,", names[i], names[i], names[i],
                        names[i], names[i], names[i]);
  for (int v = 0; v < TARN_DYNAMICS_VERDICT_COUNT; v++)
    tarn__buffer_format(out, "%s,", tarn_dynamics_verdict_name((tarn_dynamics_verdict)v));
  tarn__csv_end(out);
  for (size_t i = 0; i < page->options->moment_count; i++) {
    const tarn_dynamics_summary *s = &page->options->moments[i].summary;
    const tarn_dynamics_spread *const spreads[] = {&s->exponent,      &s->kaplan_yorke,  &s->growth,
                                                   &s->expansion_end, &s->participation, &s->token_distance};
    tarn__csv_whole(out, page->options->moments[i].update);
    tarn__csv_whole(out, s->sentences);
    for (size_t k = 0; k < sizeof spreads / sizeof *spreads; k++) spread(out, spreads[k]);
    for (int v = 0; v < TARN_DYNAMICS_VERDICT_COUNT; v++) tarn__csv_whole(out, s->verdicts[v]);
    tarn__csv_end(out);
  }
}

void tarn__dynamics_radii_csv(tarn__buffer *out, const tarn__dynamics_page *page) {
  const tarn_dynamics_scan *scan = page->options->scan;
  tarn__buffer_add(out, "leak_rate,spectral_radius,free,driven,share_synchronised,memory_capacity,diverged\n");
  for (size_t i = 0; i < scan->count; i++) {
    const tarn_dynamics_point *p = &scan->points[i];
    const double values[] = {p->leak_rate, p->spectral_radius,    p->free,
                             p->driven,    p->share_synchronised, p->memory_capacity};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) tarn__csv_real(out, values[k]);
    tarn__csv_whole(out, p->diverged);
    tarn__csv_end(out);
  }
}
