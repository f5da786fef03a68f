#include "tarn/lab/results.h"

#include <stdio.h>

#include "base/file.h"
#include "report/pdf.h"
#include "report/report_write.h"

void tarn_report_default(tarn_report_options *options) { *options = (tarn_report_options){0}; }

tarn_status tarn__report_save(tarn__report *view, const char *folder, const char *name, const tarn__buffer *text) {
  const char *path = tarn__report_text(view, "%s/%s", folder, name);
  TARN_TRY(view->status);
  TARN_TRY(text->status);
  return tarn__file_write(path, text->data, text->used);
}

tarn_status tarn__report_save_figures(tarn__report *view, const char *folder, const tarn__figures *list) {
  const char *figures = tarn__report_text(view, "%s/figures", folder);
  TARN_TRY(view->status);
  TARN_TRY(tarn__mkdir(figures));
  for (size_t i = 0; i < list->count; i++) {
    const tarn__figure *figure = &list->items[i];
    TARN_TRY(tarn__report_save(view, figures, tarn__report_text(view, "%s.svg", figure->name), &figure->file));
  }
  return TARN_STATUS_OK;
}

// Creates one document in `text`, after clearing it, and writes it.
static tarn_status save_texts(const tarn__report_parts *parts, const char *folder, tarn__buffer *text) {
  tarn__report *view = parts->view;
  tarn__report_results_csv(text, view);
  TARN_TRY(tarn__report_save(view, folder, "results.csv", text));
  tarn__buffer_reset(text);
  tarn__report_runs_csv(text, view);
  TARN_TRY(tarn__report_save(view, folder, "runs.csv", text));
  tarn__buffer_reset(text);
  tarn__report_latex(text, parts);
  TARN_TRY(tarn__report_save(view, folder, "report.tex", text));
  tarn__buffer_reset(text);
  tarn__report_markdown(text, parts);
  TARN_TRY(tarn__report_save(view, folder, "report.md", text));
  tarn__buffer_reset(text);
  tarn__report_html(text, parts);
  return tarn__report_save(view, folder, "report.html", text);
}

static tarn_status write_report(tarn__report_parts *parts, const tarn_report_options *options, tarn__buffer *text) {
  tarn__report *view = parts->view;
  TARN_TRY(tarn__report_tables(parts->tables, view));
  TARN_TRY(tarn__report_summary(&parts->summary, view));
  TARN_TRY(tarn__report_examples(&parts->examples, view));
  TARN_TRY(tarn__report_figures(&parts->figures, view));
  TARN_TRY(tarn__report_save_figures(view, options->output, &parts->figures));
  return save_texts(parts, options->output, text);
}

static tarn_status write_pdfs(tarn__report_parts *parts, const tarn_report_options *options, tarn__buffer *pdf) {
  tarn__report *view = parts->view;
  TARN_TRY(tarn__pdf_there());
  TARN_TRY(tarn__report_figures(&parts->figures, view));
  const char *figures = tarn__report_text(view, "%s/figures", options->output);
  TARN_TRY(view->status);
  TARN_TRY(tarn__mkdir(figures));
  for (size_t i = 0; i < parts->figures.count; i++) {
    const tarn__figure *figure = &parts->figures.items[i];
    tarn__buffer_reset(pdf);
    TARN_TRY(tarn__pdf_make(pdf, figure->file.data, figure->file.used, view->date));
    TARN_TRY(tarn__report_save(view, figures, tarn__report_text(view, "%s.pdf", figure->name), pdf));
  }
  return TARN_STATUS_OK;
}

typedef tarn_status (*writer)(tarn__report_parts *parts, const tarn_report_options *options, tarn__buffer *text);

static tarn_status write_with(writer write, const tarn_results *results, const tarn_results_table *table,
                              const tarn_report_options *options) {
  TARN_REQUIRE(options->output && *options->output, USAGE, "the folder of the report is missing");
  TARN_REQUIRE(results->group_count > 0 && table->row_count > 0, USAGE, "there is nothing to report");
  tarn__report view = {0};
  tarn__report_parts parts = {.view = &view};
  tarn__buffer text = {0};
  tarn_status status = tarn__report_view_open(&view, results, table, options->title);
  if (status == TARN_STATUS_OK) status = write(&parts, options, &text);
  tarn__buffer_close(&text);
  tarn__report_figures_close(&parts.figures);
  tarn__report_view_close(&view);
  return status;
}

tarn_status tarn_report_write(const tarn_results *results, const tarn_results_table *table,
                              const tarn_report_options *options) {
  return write_with(write_report, results, table, options);
}

tarn_status tarn_report_write_pdf(const tarn_results *results, const tarn_results_table *table,
                                  const tarn_report_options *options) {
  return write_with(write_pdfs, results, table, options);
}
