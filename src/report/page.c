// The frame of a page and its style.
#include "report/page.h"

#include "report/markup.h"

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
    // Side by side in a wide window.
    ".columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,540px),1fr));gap:0 44px;align-items:"
    "start}"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,590px),1fr));gap:28px 24px;"
    "align-items:start}"
    "figure{margin:0;min-width:0}figcaption{font-size:.9rem;margin-top:6px;max-width:84ch}"
    // Letters stay readable on a phone: a picture wider than the window scrolls sideways.
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
    "details table{font-size:.8rem}"
    "th,td{padding:7px 6px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th.text,td.text{text-align:left}td.text{max-width:30ch;white-space:normal}td.frozen{min-width:15ch}"
    "thead th{vertical-align:bottom;white-space:normal;color:var(--soft);font-weight:600;max-width:13ch;"
    "border-bottom:2px solid var(--line)}\n"
    "tbody "
    "th{font-weight:600;position:sticky;left:0;background:var(--paper);white-space:normal;overflow-wrap:break-word;"
    "min-width:12ch;max-width:28ch}tr.baseline td,tr.baseline th{"
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

void tarn__page_element(tarn__buffer *out, const char *open, const char *text, const char *close) {
  tarn__buffer_add(out, open);
  tarn__markup_xml(out, text);
  tarn__buffer_add(out, close);
}

void tarn__page_figures(tarn__buffer *out, const tarn__figures *figures, const char *origin, tarn__figure_part part) {
  tarn__buffer_format(out, "<div class=\"%s\">\n", part == TARN__FIGURE_MODELS ? "models" : "charts");
  for (size_t i = 0; i < figures->count; i++) {
    const tarn__figure *figure = &figures->items[i];
    if (figure->part != part) continue;
    tarn__buffer_format(out, "<figure id=\"%s\"><div class=\"picture\" tabindex=\"0\">\n", figure->name);
    tarn__buffer_put(out, figure->page.data, figure->page.used);
    tarn__page_element(out, "</div><figcaption>", figure->caption, " ");
    tarn__page_element(out, "<span class=\"origin\">", origin, "</span></figcaption></figure>\n");
  }
  tarn__buffer_add(out, "</div>\n");
}

void tarn__page_open(tarn__buffer *out, const char *title, const char *origin, const tarn__page_link *links,
                     size_t count) {
  tarn__buffer_add(out,
                   "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                   "<link rel=\"icon\" href=\"data:,\"/>\n");
  tarn__page_element(out, "<title>", title, "</title>\n");
  // The style contains no markup, so it needs no escaping in HTML and XML.
  tarn__buffer_format(out, "<style>\n%s%s</style>\n</head>\n<body><main>\n", style, tarn__svg_style);
  tarn__page_element(out, "<h1>", title, "</h1>\n");
  tarn__page_element(out, "<p class=\"origin\">", origin, "</p>\n<nav>");
  for (size_t i = 0; i < count; i++) tarn__buffer_format(out, "<a href=\"#%s\">%s</a>", links[i].id, links[i].text);
  tarn__buffer_add(out, "</nav>\n");
}

void tarn__page_close(tarn__buffer *out) {
  tarn__page_element(out, "<p class=\"soft\">Written by ", "tarn " TARN_VERSION, ".</p>\n</main></body></html>\n");
}
