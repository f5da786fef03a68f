// The page of a comparison: summary, tables, models, pictures, configurations.
#include <string.h>

#include "report/page.h"
#include "report/report_write.h"

static bool has_part(const tarn__figures *figures, tarn__figure_part part) {
  for (size_t i = 0; i < figures->count; i++) {
    if (figures->items[i].part == part) return true;
  }
  return false;
}

static void head(tarn__buffer *out, const tarn__report_parts *parts) {
  tarn__page_link links[7] = {{"summary", "Summary"},
                              {"tables", "Tables"},
                              {"models", "Models"},
                              {"curves", "Curves"},
                              {"sums", "Areas and sizes"}};
  size_t count = 5;
  if (parts->examples.count > 0) links[count++] = (tarn__page_link){"translations", "Translations"};
  links[count++] = (tarn__page_link){"configurations", "Configurations"};
  tarn__page_open(out, parts->view->title, parts->view->origin, links, count);
}

static void summary(tarn__buffer *out, const tarn__report_parts *parts) {
  const tarn_results_table *table = parts->view->table;
  tarn__buffer_add(out, "<h2 id=\"summary\">Summary</h2>\n<div class=\"columns\"><ul>\n");
  for (size_t i = 0; i < parts->summary.count; i++)
    tarn__page_element(out, "<li>", parts->summary.sentences[i], "</li>\n");
  tarn__buffer_add(out, "</ul>\n");
  if (table->note_count > 0) {
    tarn__buffer_add(out, "<div><p>To be kept in mind:</p>\n<ul class=\"soft\">\n");
    for (size_t i = 0; i < table->note_count; i++) tarn__page_element(out, "<li>", table->notes[i], "</li>\n");
    tarn__buffer_add(out, "</ul></div>\n");
  }
  tarn__buffer_add(out, "</div>\n");
}

static void models(tarn__buffer *out, const tarn__report_parts *parts) {
  tarn__buffer_add(out,
                   "<h2 id=\"models\">Models</h2>\n<p>Each box is a layer, the lowest next to the embeddings. Layers "
                   "that are joined by a line have the same weights. The label of every curve, bar and point repeats "
                   "its model as a row of boxes: the encoder from the bottom to the top, a bar, the decoder.</p>\n"
                   "<p class=\"key\"><span><svg class=\"c2\" width=\"26\" height=\"16\" aria-hidden=\"true\"><rect "
                   "width=\"26\" height=\"16\" fill=\"currentColor\"/></svg> trained</span> "
                   "<span><svg class=\"c1\" width=\"26\" height=\"16\" aria-hidden=\"true\"><rect x=\".75\" y=\".75\" "
                   "width=\"24.5\" height=\"14.5\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\"/><path "
                   "d=\"M1 8L8 1M1 15L15 1M8 15L22 1M15 15L25 5M22 15L25 12\" stroke=\"currentColor\"/></svg> frozen: "
                   "random, never trained</span></p>\n");
  tarn__page_figures(out, &parts->figures, parts->view->origin, TARN__FIGURE_MODELS);
}

static void examples(tarn__buffer *out, const tarn__report_parts *parts) {
  const tarn__examples *examples = &parts->examples;
  if (examples->count == 0) return;
  tarn__buffer_add(out, "<h2 id=\"translations\">Translations</h2>\n");
  tarn__page_element(out, "<p class=\"soft\">", examples->caption, "</p>\n<div class=\"columns\">\n");
  for (size_t i = 0; i < examples->count; i++) {
    tarn__buffer_add(out, "<dl class=\"texts\">\n");
    for (size_t k = 0; k < examples->lines; k++) {
      tarn__page_element(out, "<dt>", examples->names[k], "</dt>");
      tarn__page_element(out, "<dd>", examples->items[i].texts[k], "</dd>\n");
    }
    tarn__buffer_add(out, "</dl>\n");
  }
  tarn__buffer_add(out, "</div>\n");
}

static void configurations(tarn__buffer *out, const tarn__report_parts *parts) {
  const tarn__report *view = parts->view;
  tarn__buffer_add(out, "<h2 id=\"configurations\">Configurations</h2>\n");
  for (size_t i = 0; i < view->count; i++) {
    const tarn_results_group *group = view->entries[i].group;
    tarn__buffer_add(out, "<details><summary>");
    tarn__page_element(out, "<strong>", group->name, "</strong>");
    if (group->changes && *group->changes) tarn__page_element(out, ": ", group->changes, "");
    tarn__buffer_add(out, "</summary>\n");
    if (group->equalized && *group->equalized)
      tarn__page_element(out, "<p>Equalized to the base: ", group->equalized, ".</p>\n");
    const tarn_results_run *run = NULL;
    for (size_t k = 0; k < group->run_count && !run; k++) {
      if (view->results->runs[group->runs[k]].config_text) run = &view->results->runs[group->runs[k]];
    }
    if (run) {
      tarn__buffer_format(out,
                          "<p class=\"soft\">The resolved configuration of seed %lld; the other seeds differ in "
                          "train.seed only.</p>\n",
                          (long long)run->seed);
      tarn__page_element(out, "<pre>", run->config_text, "</pre>\n");
    } else {
      tarn__buffer_add(out, "<p class=\"soft\">No run of it has begun.</p>\n");
    }
    tarn__buffer_add(out, "</details>\n");
  }
}

// The existing tables, from number `first`, at most `most`; without that of runs, which comes last.
static void tables(tarn__buffer *out, const tarn__report_parts *parts, int first, int most) {
  int number = 0;
  for (int t = 0; t < TARN__REPORT_TABLES - 1; t++) {
    if (parts->tables[t].count == 0) continue;
    if (number >= first && number < first + most) {
      tarn__page_element(out, "<h3>", parts->tables[t].title, "</h3>\n");
      tarn__table_html(out, &parts->tables[t]);
    }
    number++;
  }
}

static int table_count(const tarn__report_parts *parts) {
  int count = 0;
  for (int t = 0; t < TARN__REPORT_TABLES - 1; t++) count += parts->tables[t].count > 0;
  return count;
}

void tarn__report_html(tarn__buffer *out, const tarn__report_parts *parts) {
  enum { BEFORE_CURVES = 3 };
  head(out, parts);
  summary(out, parts);
  tarn__buffer_add(
      out,
      "<h2 id=\"tables\">Tables</h2>\n<p class=\"soft\">Bold is what is decided: the value is better than "
      "each other one of its column, with p, counted for all these comparisons, of 0.05 or less (of counts "
      "of parameters: it is the least). The baseline's row is shaded.</p>\n");
  tables(out, parts, 0, BEFORE_CURVES);
  models(out, parts);
  tarn__buffer_add(out, "<h2 id=\"curves\">Curves</h2>\n");
  tarn__page_figures(out, &parts->figures, parts->view->origin, TARN__FIGURE_CURVES);
  tarn__buffer_add(out, "<h2 id=\"sums\">Areas and sizes</h2>\n");
  tarn__page_figures(out, &parts->figures, parts->view->origin, TARN__FIGURE_SUMS);
  if (has_part(&parts->figures, TARN__FIGURE_BACKSKIP)) {
    tarn__buffer_add(out, "<h2 id=\"backskip\">Backskipping</h2>\n");
    tarn__page_figures(out, &parts->figures, parts->view->origin, TARN__FIGURE_BACKSKIP);
  }
  if (table_count(parts) > BEFORE_CURVES) {
    tarn__buffer_add(out, "<h2 id=\"more-tables\">Further tables</h2>\n");
    tables(out, parts, BEFORE_CURVES, TARN__REPORT_TABLES);
  }
  examples(out, parts);
  tarn__buffer_add(out, "<h2 id=\"every-run\">Runs</h2>\n");
  tarn__table_html(out, &parts->tables[TARN__REPORT_TABLES - 1]);
  configurations(out, parts);
  tarn__page_close(out);
}
