// Tables: models, sentences, a training, spectral radii.
#include <inttypes.h>
#include <math.h>

#include "dynamics/dynamics_page.h"

enum { SHOWN = 100 };  // sentences; sentences.csv has all

static const char *number(tarn__dynamics_page *page, double value, int decimals) {
  if (value == -INFINITY) return "\xE2\x88\x92\xE2\x88\x9E";
  return tarn__report_number(&page->view, value, decimals);
}

static const char *count(tarn__dynamics_page *page, int64_t value) {
  return tarn__report_number(&page->view, value < 0 ? NAN : (double)value, 0);
}

// "0.12 [0.08, 0.19]": the median and the quartiles.
static const char *spread(tarn__dynamics_page *page, const tarn_dynamics_spread *s, int decimals) {
  const char *median = number(page, s->count > 0 ? s->median : NAN, decimals);
  if (s->count < 2) return median;
  return tarn__report_text(&page->view, "%s [%s, %s]", median, number(page, s->lower, decimals),
                           number(page, s->upper, decimals));
}

// "12 contracting, 8 transient"
static const char *tally(tarn__dynamics_page *page, const int64_t *counts, int words, const char *(*name)(int word)) {
  const char *text = "";
  for (int w = 0; w < words; w++)
    if (counts[w] > 0)
      text = tarn__report_text(&page->view, "%s%s%" PRId64 " %s", text, *text ? ", " : "", counts[w], name(w));
  return *text ? text : number(page, NAN, 0);
}

static const char *verdict_word(int word) { return tarn_dynamics_verdict_name((tarn_dynamics_verdict)word); }

static const char *settling_word(int word) {
  return word == TARN_DYNAMICS_SETTLING_NONE      ? "nothing"
         : word == TARN_DYNAMICS_SETTLING_UNKNOWN ? "not asked"
                                                  : tarn_dynamics_settling_name((tarn_dynamics_settling)word);
}

static const char *became_one(tarn__dynamics_page *page, int64_t all, int64_t ones, const tarn_dynamics_spread *when,
                              const tarn_dynamics_spread *offset) {
  if (all == 0) return number(page, NAN, 0);
  const char *share = tarn__report_text(&page->view, "%" PRId64 " of %" PRId64, ones, all);
  if (when->count > 0) share = tarn__report_text(&page->view, "%s, at %s", share, number(page, when->median, 0));
  if (offset->count > 0) share = tarn__report_text(&page->view, "%s; %.2g apart", share, offset->median);
  return share;
}

// Columns about perturbations and the end, for all sentences or for one.
#define BEHAVIOUR_COLUMNS                                                                     \
  {"largest exponent", false, 0}, {"Kaplan-Yorke dimension", false, 0}, {"growth", false, 0}, \
      {"expansion ends", false, 0}, {"perturbations", true, 0}, {                             \
    "settles on", true, 0                                                                     \
  }

// These columns, for all sentences.
static void behaviour(tarn__dynamics_page *page, const char **cells, const tarn_dynamics_summary *s) {
  tarn__report *view = &page->view;
  cells[0] = spread(page, &s->exponent, 4);
  if (s->vanished > 0) cells[0] = tarn__report_text(view, "%s; %" PRId64 " vanish", cells[0], s->vanished);
  cells[1] = spread(page, &s->kaplan_yorke, 2);
  if (s->kaplan_yorke_least > 0)
    cells[1] = tarn__report_text(view, "%s; of %" PRId64 " at least", cells[1], s->kaplan_yorke_least);
  cells[2] = spread(page, &s->growth, 2);
  cells[3] = spread(page, &s->expansion_end, 0);
  cells[4] = tally(page, s->verdicts, TARN_DYNAMICS_VERDICT_COUNT, verdict_word);
  cells[5] = tally(page, s->settlings, TARN_DYNAMICS_SETTLING_COUNT, settling_word);
}

static tarn_status models(tarn__dynamics_page *page, tarn__table *table) {
  tarn__report *view = &page->view;
  *table = (tarn__table){.id = "models",
                         .title = "Models",
                         .caption = "What is iterated, and how it was computed.",
                         .columns = {{"model", true, 0},
                                     {"map", true, 0},
                                     {"computed in", true, 0},
                                     {"sentences", false, 0},
                                     {"iterations", false, 0},
                                     {"of the model itself", false, 0},
                                     {"left out of exponents", false, 0}}};
  TARN_TRY(tarn__table_open(table, view, page->options->model_count));
  for (size_t i = 0; i < table->count; i++) {
    const tarn_dynamics_model *model = &page->options->models[i];
    const char **cells = table->rows[i].cells;
    cells[0] = model->name;
    cells[1] = model->info->text;
    cells[2] =
        tarn__report_text(view, "%s (%s)", tarn_dynamics_precision_name(model->info->precision), model->info->device);
    if (model->info->products != TARN_FP32_EXACT)
      cells[2] = tarn__report_text(view, "%s, products by %s", cells[2], tarn_fp32_name(model->info->products));
    cells[3] = count(page, model->result->count);
    cells[4] = count(page, model->result->iterations);
    if (model->info->depth > 0) cells[5] = count(page, model->info->depth);
    cells[6] = count(page, model->result->discard);
  }
  return view->status;
}

static tarn_status medians(tarn__dynamics_page *page, tarn__table *table) {
  tarn__report *view = &page->view;
  *table = (tarn__table){
      .id = "medians",
      .title = "Over sentences",
      .caption =
          "Medians over sentences, with quartiles. Exponents are natural logarithms per iteration; growth is the "
          "logarithm of how much an infinitesimal perturbation grew at the most, and expansion ends where it was "
          "greatest. Contracting: the largest exponent is at most 0, and perturbations never grew e-fold; "
          "transient: at most 0, but they did; expanding: above 0; drifting: above 0, but no more than the "
          "state itself grows. Of those that became one the median iteration "
          "is given, of the others the median of what is left between them, relative to the state's norm.",
      .columns = {{"model", true, 0},
                  BEHAVIOUR_COLUMNS,
                  {"two starts became one", true, 0},
                  {"tokens became one", true, 0},
                  {"participation ratio at the start", false, 0},
                  {"and at the end", false, 0}}};
  TARN_TRY(tarn__table_open(table, view, page->options->model_count));
  for (size_t i = 0; i < table->count; i++) {
    const tarn_dynamics_summary *s = &page->summaries[i];
    const char **cells = table->rows[i].cells;
    cells[0] = page->options->models[i].name;
    behaviour(page, cells + 1, s);
    cells[7] = became_one(page, s->starts, s->starts_synchronised, &s->starts_iteration, &s->starts_offset);
    cells[8] = became_one(page, s->tokens, s->tokens_synchronised, &s->tokens_iteration, &s->tokens_offset);
    cells[9] = spread(page, &s->participation_start, 2);
    cells[10] = spread(page, &s->participation, 2);
  }
  return view->status;
}

static const char *settles(tarn__dynamics_page *page, const tarn_dynamics_sentence *s) {
  if (s->settling == TARN_DYNAMICS_SETTLING_DIVERGED)
    return tarn__report_text(&page->view, "diverged at %" PRId64, s->diverged);
  if (s->settling == TARN_DYNAMICS_SETTLING_CYCLE)
    return tarn__report_text(&page->view, "cycle of %" PRId64 " from %" PRId64, s->period, s->settled);
  if (s->settling == TARN_DYNAMICS_SETTLING_FIXED_POINT)
    return tarn__report_text(&page->view, "fixed point from %" PRId64, s->settled);
  return settling_word((int)s->settling);
}

static const char *synchrony(tarn__dynamics_page *page, const tarn_dynamics_synchrony *s) {
  if (!s->there) return number(page, NAN, 0);
  if (s->synchronised) return tarn__report_text(&page->view, "at %" PRId64, s->iteration);
  return tarn__report_text(&page->view, "%.2g apart", s->offset);
}

static void fill_sentence(tarn__dynamics_page *page, const char **cells, const tarn_dynamics_model *model,
                          const tarn_dynamics_sentence *s) {
  const bool measured = model->result->exponents > 0;
  cells[0] = model->name;
  cells[1] = count(page, s->line);
  cells[2] = count(page, s->tokens);
  cells[3] = count(page, s->iterations);
  cells[4] = number(page, measured ? s->exponents[0] : NAN, 4);
  cells[5] = tarn__report_text(&page->view, "%s%s", measured && s->kaplan_yorke_least ? "\xE2\x89\xA5 " : "",
                               number(page, measured ? s->kaplan_yorke : NAN, 2));
  cells[6] = number(page, measured ? s->growth : NAN, 2);
  cells[7] = count(page, measured ? s->expansion_end : -1);
  cells[8] = tarn_dynamics_verdict_name(s->verdict);
  cells[9] = settles(page, s);
  cells[10] = synchrony(page, &s->starts);
  cells[11] = synchrony(page, &s->between_tokens);
  cells[12] = number(page, s->participation[s->iterations], 2);
}

static tarn_status sentences(tarn__dynamics_page *page, tarn__table *table) {
  tarn__report *view = &page->view;
  size_t all = 0, next = 0;
  for (size_t i = 0; i < page->options->model_count; i++) all += (size_t)page->options->models[i].result->count;
  *table = (tarn__table){.id = "sentences",
                         .title = "Sentences",
                         .caption = "",
                         .columns = {{"model", true, 0},
                                     {"line", false, 0},
                                     {"tokens", false, 0},
                                     {"iterations", false, 0},
                                     BEHAVIOUR_COLUMNS,
                                     {"two starts became one", true, 0},
                                     {"tokens became one", true, 0},
                                     {"participation ratio at the end", false, 0}}};
  TARN_TRY(tarn__table_open(table, view, all < SHOWN ? all : SHOWN));
  for (size_t i = 0; i < page->options->model_count; i++) {
    const tarn_dynamics_model *model = &page->options->models[i];
    for (int64_t k = 0; k < model->result->count && next < table->count; k++)
      fill_sentence(page, table->rows[next++].cells, model, &model->result->sentences[k]);
  }
  table->caption = all > SHOWN
                       ? tarn__report_text(view, "The first %d of %zu; sentences.csv has all.", (int)SHOWN, all)
                       : "sentences.csv has all exponents, and iterations.csv what is measured after every iteration.";
  return view->status;
}

static tarn_status training(tarn__dynamics_page *page, tarn__table *table) {
  tarn__report *view = &page->view;
  *table = (tarn__table){.id = "training",
                         .title = "Over the training",
                         .caption = "The numbered checkpoints of the run, each on the same sentences.",
                         .columns = {{"update", false, 0}, BEHAVIOUR_COLUMNS}};
  TARN_TRY(tarn__table_open(table, view, page->options->moment_count));
  for (size_t i = 0; i < table->count; i++) {
    const tarn_dynamics_moment *moment = &page->options->moments[i];
    const char **cells = table->rows[i].cells;
    cells[0] = count(page, moment->update);
    behaviour(page, cells + 1, &moment->summary);
  }
  return view->status;
}

static tarn_status radii(tarn__dynamics_page *page, tarn__table *table) {
  tarn__report *view = &page->view;
  const tarn_dynamics_scan *scan = page->options->scan;
  *table = (tarn__table){.id = "radii",
                         .title = "Echo state property",
                         .caption =
                             "The reservoir with its recurrent matrix scaled to each spectral radius. Free: "
                             "without input; driven: by the text, or by noise where there is none. Where all "
                             "driven pairs of starts become one, it has the echo state property.",
                         .columns = {{"leak rate", false, 0},
                                     {"spectral radius", false, 0},
                                     {"largest exponent, free", false, 0},
                                     {"largest exponent, driven", false, 0},
                                     {"share of starts that became one", false, 0},
                                     {"memory capacity", false, 0},
                                     {"diverged", false, 0}}};
  TARN_TRY(tarn__table_open(table, view, scan ? scan->count : 0));
  for (size_t i = 0; i < table->count; i++) {
    const tarn_dynamics_point *p = &scan->points[i];
    const char **cells = table->rows[i].cells;
    cells[0] = number(page, p->leak_rate, 3);
    cells[1] = number(page, p->spectral_radius, 3);
    cells[2] = number(page, p->free, 4);
    cells[3] = number(page, p->driven, 4);
    cells[4] = number(page, p->share_synchronised, 2);
    cells[5] = number(page, p->memory_capacity, 2);
    cells[6] = count(page, p->diverged);
  }
  return view->status;
}

tarn_status tarn__dynamics_tables(tarn__dynamics_page *page) {
  TARN_TRY(models(page, &page->tables[TARN__DYNAMICS_MODELS]));
  TARN_TRY(medians(page, &page->tables[TARN__DYNAMICS_MEDIANS]));
  TARN_TRY(sentences(page, &page->tables[TARN__DYNAMICS_SENTENCES]));
  TARN_TRY(training(page, &page->tables[TARN__DYNAMICS_TRAINING]));
  return radii(page, &page->tables[TARN__DYNAMICS_RADII]);
}
