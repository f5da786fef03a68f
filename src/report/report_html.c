// The page. Everything is in it: style, pictures, tables, configurations.
#include <string.h>

#include "report/markup.h"
#include "report/report_write.h"

static const char style[] =
    ":root{color-scheme:light dark;--paper:#fff;--panel:#fff;--ink:#1b2027;--soft:#535c66;--line:#dde2e7;"
    "--strong:#f3f6f9;--bad:#b3261e}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--paper:#0f1114;--panel:#16191d;--ink:#e8ebee;--soft:#a7b0ba;"
    "--line:#353b42;--strong:#1f242a;--bad:#ff8f84}}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif}\n"
    "main{max-width:1900px;margin:0 auto;padding:24px 20px 64px;box-sizing:border-box}\n"
    "h1{font-size:1.75rem;line-height:1.2;margin:8px 0 16px;overflow-wrap:anywhere}h2{font-size:1.3rem;margin:44px 0 "
    "10px}"
    "h3{font-size:1.05rem;margin:28px 0 8px}\n"
    "p,ul{max-width:76ch}li{margin:6px 0;overflow-wrap:anywhere}.soft,.caption,figcaption,.origin{color:var(--soft)}"
    "nav a{margin-right:14px}a{color:inherit}.origin{display:block;font-size:.8125rem;max-width:84ch}\n"
    // Side by side where the window is wide.
    ".columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,540px),1fr));gap:0 44px;align-items:"
    "start}"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,590px),1fr));gap:28px 24px;"
    "align-items:start}"
    "figure{margin:0;min-width:0}figcaption{font-size:.9rem;margin-top:6px;max-width:84ch}"
    // Letters stay readable on a phone: a picture that is wider than the window is moved sideways.
    ".picture{overflow-x:auto;background:var(--panel);border:1px solid var(--line);border-radius:6px}"
    ".picture svg{display:block;width:100%;min-width:590px;height:auto}"
    ".models{display:flex;flex-wrap:wrap;gap:20px}.models figure{width:min-content;max-width:100%}"
    ".models .picture svg{width:auto;min-width:0}"
    ".key{display:flex;flex-wrap:wrap;gap:6px 22px;align-items:center;margin:0 0 14px}.key svg{vertical-align:-2px}\n"
    ".table{display:flex;flex-wrap:wrap;gap:0 36px;align-items:flex-start}.wide{max-width:100%}"
    ".table .caption{flex:1 1 44ch}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.875rem;"
    "font-variant-numeric:tabular-nums}.caption{font-size:.9rem;"
    "line-height:1.45;margin:8px 0 26px;max-width:84ch}\n"
    "th,td{padding:7px 8px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th.text,td.text{text-align:left}td.text{max-width:30ch;white-space:normal}td.frozen{min-width:15ch}"
    "thead th{vertical-align:bottom;white-space:normal;color:var(--soft);font-weight:600;max-width:13ch;"
    "border-bottom:2px solid var(--line)}\n"
    "tbody th{font-weight:600;position:sticky;left:0;background:var(--paper);white-space:normal;overflow-wrap:anywhere;"
    "min-width:14ch;max-width:28ch}tr.baseline td,tr.baseline th{"
    "background:var(--strong)}tr.failed td{color:var(--bad)}tr.open td{color:var(--soft)}\n"
    ".texts{display:grid;grid-template-columns:fit-content(22ch) 1fr;gap:2px 16px;margin:0 0 26px}"
    ".texts dt{color:var(--soft);overflow-wrap:anywhere}.texts dd{margin:0;overflow-wrap:anywhere}\n"
    "details{margin:8px 0;border:1px solid var(--line);border-radius:6px;padding:8px 12px}summary{cursor:pointer;"
    "overflow-wrap:anywhere}"
    "pre{overflow-x:auto;font:13px/1.45 ui-monospace,'DejaVu Sans Mono',monospace;margin:10px 0 2px}\n"
    "@media (max-width:600px){main{padding:12px 14px 40px}tbody th{max-width:14ch}ul{padding-left:20px}"
    ".texts{grid-template-columns:1fr}.texts dd{margin:0 0 6px}}\n"
    "@media print{body{font-size:11pt}main{max-width:none;padding:0}figure,table,tr{break-inside:avoid}"
    "h2,h3{break-after:avoid}.wide,.picture{overflow:visible}.picture svg{min-width:0}.charts{display:block}"
    "figure{margin-bottom:20px}table{font-size:7.5pt}th,td{padding:3px 4px;white-space:normal}"
    "nav{display:none}tbody th{position:static}}\n";

static void element(tarn__buffer *out, const char *open, const char *text, const char *close) {
  tarn__buffer_add(out, open);
  tarn__markup_xml(out, text);
  tarn__buffer_add(out, close);
}

static bool has_part(const tarn__figures *figures, tarn__figure_part part) {
  for (size_t i = 0; i < figures->count; i++) {
    if (figures->items[i].part == part) return true;
  }
  return false;
}

static void figures_of(tarn__buffer *out, const tarn__report_parts *parts, tarn__figure_part part) {
  const tarn__figures *figures = &parts->figures;
  tarn__buffer_format(out, "<div class=\"%s\">\n", part == TARN__FIGURE_MODELS ? "models" : "charts");
  for (size_t i = 0; i < figures->count; i++) {
    const tarn__figure *figure = &figures->items[i];
    if (figure->part != part) continue;
    tarn__buffer_format(out, "<figure id=\"%s\"><div class=\"picture\" tabindex=\"0\">\n", figure->name);
    tarn__buffer_put(out, figure->page.data, figure->page.used);
    element(out, "</div><figcaption>", figure->caption, " ");
    element(out, "<span class=\"origin\">", parts->view->origin, "</span></figcaption></figure>\n");
  }
  tarn__buffer_add(out, "</div>\n");
}

static void head(tarn__buffer *out, const tarn__report_parts *parts) {
  const tarn__report *view = parts->view;
  tarn__buffer_add(out,
                   "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                   "<link rel=\"icon\" href=\"data:,\"/>\n");
  element(out, "<title>", view->title, "</title>\n");
  // The style has no markup in it, so it stands as it is in HTML and in XML alike.
  tarn__buffer_format(out, "<style>\n%s%s</style>\n</head>\n<body><main>\n", style, tarn__svg_style);
  element(out, "<h1>", view->title, "</h1>\n");
  element(out, "<p class=\"origin\">", view->origin, "</p>\n");
  tarn__buffer_add(out, "<nav><a href=\"#summary\">Summary</a><a href=\"#tables\">Tables</a>");
  tarn__buffer_add(out,
                   "<a href=\"#models\">Models</a><a href=\"#curves\">Curves</a><a href=\"#sums\">Areas and "
                   "sizes</a>");
  if (parts->examples.count > 0) tarn__buffer_add(out, "<a href=\"#translations\">Translations</a>");
  tarn__buffer_add(out, "<a href=\"#configurations\">Configurations</a></nav>\n");
}

static void summary(tarn__buffer *out, const tarn__report_parts *parts) {
  const tarn_results_table *table = parts->view->table;
  tarn__buffer_add(out, "<h2 id=\"summary\">Summary</h2>\n<div class=\"columns\"><ul>\n");
  for (size_t i = 0; i < parts->summary.count; i++) element(out, "<li>", parts->summary.sentences[i], "</li>\n");
  tarn__buffer_add(out, "</ul>\n");
  if (table->note_count > 0) {
    tarn__buffer_add(out, "<div><p>To be kept in mind:</p>\n<ul class=\"soft\">\n");
    for (size_t i = 0; i < table->note_count; i++) element(out, "<li>", table->notes[i], "</li>\n");
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
  figures_of(out, parts, TARN__FIGURE_MODELS);
}

static void examples(tarn__buffer *out, const tarn__report_parts *parts) {
  const tarn__examples *examples = &parts->examples;
  if (examples->count == 0) return;
  tarn__buffer_add(out, "<h2 id=\"translations\">Translations</h2>\n");
  element(out, "<p class=\"soft\">", examples->caption, "</p>\n<div class=\"columns\">\n");
  for (size_t i = 0; i < examples->count; i++) {
    tarn__buffer_add(out, "<dl class=\"texts\">\n");
    for (size_t k = 0; k < examples->lines; k++) {
      element(out, "<dt>", examples->names[k], "</dt>");
      element(out, "<dd>", examples->items[i].texts[k], "</dd>\n");
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
    element(out, "<strong>", group->name, "</strong>");
    if (group->changes && *group->changes) element(out, ": ", group->changes, "");
    tarn__buffer_add(out, "</summary>\n");
    if (group->equalized && *group->equalized) element(out, "<p>Equalized to the base: ", group->equalized, ".</p>\n");
    const tarn_results_run *run = NULL;
    for (size_t k = 0; k < group->run_count && !run; k++) {
      if (view->results->runs[group->runs[k]].config_text) run = &view->results->runs[group->runs[k]];
    }
    if (run) {
      tarn__buffer_format(out,
                          "<p class=\"soft\">The resolved configuration of seed %lld; the other seeds differ in "
                          "train.seed only.</p>\n",
                          (long long)run->seed);
      element(out, "<pre>", run->config_text, "</pre>\n");
    } else {
      tarn__buffer_add(out, "<p class=\"soft\">No run of it has begun.</p>\n");
    }
    tarn__buffer_add(out, "</details>\n");
  }
}

void tarn__report_html(tarn__buffer *out, const tarn__report_parts *parts) {
  head(out, parts);
  summary(out, parts);
  tarn__buffer_add(
      out,
      "<h2 id=\"tables\">Tables</h2>\n<p class=\"soft\">Bold is what is decided: the value is better than "
      "each other one of its column, with p, counted for all these comparisons, of 0.05 or less (of counts "
      "of parameters: it is the least). The baseline's row is shaded.</p>\n");
  for (int t = 0; t < TARN__REPORT_TABLES - 1; t++) {
    if (parts->tables[t].count == 0) continue;
    element(out, "<h3>", parts->tables[t].title, "</h3>\n");
    tarn__table_html(out, &parts->tables[t]);
  }
  models(out, parts);
  tarn__buffer_add(out, "<h2 id=\"curves\">Curves</h2>\n");
  figures_of(out, parts, TARN__FIGURE_CURVES);
  tarn__buffer_add(out, "<h2 id=\"sums\">Areas and sizes</h2>\n");
  figures_of(out, parts, TARN__FIGURE_SUMS);
  if (has_part(&parts->figures, TARN__FIGURE_BACKSKIP)) {
    tarn__buffer_add(out, "<h2 id=\"backskip\">Backskipping</h2>\n");
    figures_of(out, parts, TARN__FIGURE_BACKSKIP);
  }
  examples(out, parts);
  tarn__buffer_add(out, "<h2 id=\"every-run\">Runs</h2>\n");
  tarn__table_html(out, &parts->tables[TARN__REPORT_TABLES - 1]);
  configurations(out, parts);
  element(out, "<p class=\"soft\">Written by ", "tarn " TARN_VERSION, ".</p>\n</main></body></html>\n");
}
