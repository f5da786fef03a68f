#include "dynamics/dynamics_page.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/machine.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/report_write.h"
#include "tarn/status.h"

void tarn_dynamics_report_default(tarn_dynamics_report_options *options) {
  *options = (tarn_dynamics_report_options){0};
}

tarn__chart_label tarn__dynamics_label(tarn__dynamics_page *page, size_t model) {
  const tarn_dynamics_model *m = &page->options->models[model];
  const char *note = m->info->trained ? tarn__report_text(&page->view, "after %lld updates", (long long)m->info->update)
                                      : "random weights";
  return (tarn__chart_label){.name = m->name, .note = m->info->layers > 0 ? note : NULL, .style = (int)model};
}

// The origin of the numbers, for the line under each figure.
static void describe(tarn__dynamics_page *page) {
  char date[TARN__DATE_TEXT], processor[TARN__PROCESSOR_TEXT];
  const tarn_dynamics_report_options *o = page->options;
  const tarn_dynamics_result *first = o->models[0].result;
  tarn__report *view = &page->view;
  tarn__date(date);
  tarn__processor(processor);
  const char *text = o->input ? tarn__report_text(view, "Text: %s; ", o->input) : "";
  text = tarn__report_text(view, "%s%lld iterations, %lld exponents, perturbations by exact Jacobian-vector products",
                           text, (long long)first->iterations, (long long)first->exponents);
  text = tarn__report_text(view, "%s; %.10s, %s, %d thread%s; tarn %s.", text, date, processor, first->threads,
                           first->threads == 1 ? "" : "s", tarn_version());
  view->origin = text;
  view->title = o->title              ? o->title
                : o->model_count == 1 ? tarn__report_text(view, "%s as a dynamical system", o->models[0].name)
                                      : tarn__report_text(view, "%zu models as dynamical systems", o->model_count);
}

static tarn_status summarise(tarn__dynamics_page *page) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(&page->view.arena, &memory, page->options->model_count, sizeof *page->summaries));
  page->summaries = memory;
  for (size_t i = 0; i < page->options->model_count; i++)
    TARN_TRY(tarn_dynamics_summarise(&page->summaries[i], page->options->models[i].result));
  return TARN_STATUS_OK;
}

static bool has_part(const tarn__dynamics_page *page, tarn__figure_part part) {
  for (size_t i = 0; i < page->figures.count; i++)
    if (page->figures.items[i].part == part) return true;
  return false;
}

static void table(tarn__buffer *out, const tarn__dynamics_page *page, int number) {
  if (page->tables[number].count == 0) return;
  tarn__page_element(out, "<h3>", page->tables[number].title, "</h3>\n");
  tarn__table_html(out, &page->tables[number]);
}

// A row for each of possibly hundreds of sentences: folded.
static void sentences(tarn__buffer *out, const tarn__dynamics_page *page) {
  const tarn__table *rows = &page->tables[TARN__DYNAMICS_SENTENCES];
  if (rows->count == 0) return;
  tarn__buffer_format(out, "<details id=\"sentences\"><summary>%s: %d rows</summary>\n", rows->title, (int)rows->count);
  tarn__table_html(out, rows);
  tarn__buffer_add(out, "</details>\n");
}

// Medians and figures first, which most readers want.
static void html(tarn__buffer *out, const tarn__dynamics_page *page) {
  static const struct {
    tarn__figure_part part;
    tarn__page_link link;
  } parts[] = {{TARN__FIGURE_EXPONENTS, {"exponents", "Exponents"}},
               {TARN__FIGURE_TOKENS, {"tokens", "Tokens"}},
               {TARN__FIGURE_PLANES, {"trajectories", "Trajectories"}},
               {TARN__FIGURE_SERIES, {"series", "Over trainings and spectral radii"}}};
  enum { PARTS = sizeof parts / sizeof *parts };
  tarn__page_link links[PARTS + 2] = {{"medians", "Medians"}};
  size_t count = 1;
  for (size_t i = 0; i < PARTS; i++)
    if (has_part(page, parts[i].part)) links[count++] = parts[i].link;
  links[count++] = (tarn__page_link){"tables", "Tables"};
  tarn__page_open(out, page->view.title, page->view.origin, links, count);
  tarn__buffer_add(out, "<h2 id=\"medians\">Medians</h2>\n");
  table(out, page, TARN__DYNAMICS_MEDIANS);
  for (size_t i = 0; i < PARTS; i++) {
    if (!has_part(page, parts[i].part)) continue;
    tarn__buffer_format(out, "<h2 id=\"%s\">%s</h2>\n", parts[i].link.id, parts[i].link.text);
    tarn__page_figures(out, &page->figures, page->view.origin, parts[i].part);
  }
  tarn__buffer_add(out, "<h2 id=\"tables\">Tables</h2>\n");
  table(out, page, TARN__DYNAMICS_MODELS);
  table(out, page, TARN__DYNAMICS_TRAINING);
  table(out, page, TARN__DYNAMICS_RADII);
  sentences(out, page);
  tarn__page_close(out);
}

static void markdown(tarn__buffer *out, const tarn__dynamics_page *page) {
  tarn__buffer_add(out, "# ");
  tarn__markup_markdown(out, page->view.title);
  tarn__buffer_add(out, "\n\n");
  tarn__markup_markdown(out, page->view.origin);
  tarn__buffer_add(out, "\n");
  for (int t = 0; t < TARN__DYNAMICS_TABLES; t++) {
    if (page->tables[t].count == 0) continue;
    tarn__buffer_format(out, "\n## %s\n\n", page->tables[t].title);
    tarn__table_markdown(out, &page->tables[t]);
  }
  tarn__report_markdown_figures(out, &page->figures, page->view.origin);
}

static tarn_status save_all(tarn__dynamics_page *page, tarn__buffer *text) {
  const struct {
    const char *name;
    void (*make)(tarn__buffer *out, const tarn__dynamics_page *page);
    bool there;
  } files[] = {{"sentences.csv", tarn__dynamics_sentences_csv, true},
               {"iterations.csv", tarn__dynamics_iterations_csv, true},
               {"training.csv", tarn__dynamics_training_csv, page->options->moment_count > 0},
               {"radii.csv", tarn__dynamics_radii_csv, page->options->scan != NULL},
               {"dynamics.md", markdown, true},
               {"dynamics.html", html, true}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    if (!files[i].there) continue;
    tarn__buffer_reset(text);
    files[i].make(text, page);
    TARN_TRY(tarn__report_save(&page->view, page->options->output, files[i].name, text));
  }
  return TARN_STATUS_OK;
}

static tarn_status write_all(tarn__dynamics_page *page, tarn__buffer *text) {
  describe(page);
  TARN_TRY(summarise(page));
  TARN_TRY(tarn__dynamics_tables(page));
  TARN_TRY(tarn__dynamics_figures(page));
  TARN_TRY(tarn__report_save_figures(&page->view, page->options->output, &page->figures));
  return save_all(page, text);
}

tarn_status tarn_dynamics_report_write(const tarn_dynamics_report_options *options) {
  TARN_REQUIRE(options->output && *options->output, USAGE, "the folder of the report is missing");
  TARN_REQUIRE(options->model_count > 0, USAGE, "there is no model to report");
  tarn__dynamics_page page = {.options = options};
  tarn__buffer text = {0};
  tarn_status status = write_all(&page, &text);
  tarn__buffer_close(&text);
  tarn__report_figures_close(&page.figures);
  tarn__arena_close(&page.view.arena);
  return status;
}
