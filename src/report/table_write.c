// Tables as HTML, Markdown and LaTeX.
#include <string.h>

#include "report/markup.h"
#include "report/report_table.h"

static bool shown(const tarn__table *table, int column) {
  for (size_t i = 0; i < table->count; i++) {
    if (strcmp(table->rows[i].cells[column], "\xE2\x80\x93") != 0) return true;
  }
  return false;
}

static bool is_bold(const tarn__table *table, size_t row, int column) { return table->columns[column].bold == row + 1; }

static const char *class_of(const tarn__table *table, int column) {
  if (strcmp(table->columns[column].head, "frozen layers") == 0) return " class=\"text frozen\"";
  return table->columns[column].text ? " class=\"text\"" : "";
}

// An interval or quartiles after a number go below it, so that wide tables fit into a page.
static void add_cell(tarn__buffer *out, const tarn__table *table, int column, const char *text) {
  char number[64];
  const char *interval = table->columns[column].text ? NULL : strstr(text, " [");
  const size_t length = interval ? (size_t)(interval - text) : 0;
  if (interval && length < sizeof number) {
    memcpy(number, text, length);
    number[length] = '\0';
    tarn__markup_xml(out, number);
    tarn__buffer_add(out, "<br/>");
    text = interval + 1;
  }
  tarn__markup_xml(out, text);
}

void tarn__table_html(tarn__buffer *out, const tarn__table *table) {
  tarn__buffer_format(out,
                      "<div class=\"table\"><div class=\"wide\" tabindex=\"0\"><table id=\"%s\" "
                      "aria-describedby=\"%s-text\">\n<thead><tr>",
                      table->id, table->id);
  for (int c = 0; c < table->width; c++) {
    if (!shown(table, c)) continue;
    tarn__buffer_format(out, "<th scope=\"col\"%s>", table->columns[c].text ? " class=\"text\"" : "");
    tarn__markup_xml(out, table->columns[c].head);
    tarn__buffer_add(out, "</th>");
  }
  tarn__buffer_add(out, "</tr></thead>\n<tbody>\n");
  for (size_t i = 0; i < table->count; i++) {
    const tarn__table_row *row = &table->rows[i];
    const char *state = row->failed ? " class=\"failed\"" : row->open ? " class=\"open\"" : "";
    tarn__buffer_format(out, "<tr%s>", row->baseline && !*state ? " class=\"baseline\"" : state);
    for (int c = 0; c < table->width; c++) {
      if (!shown(table, c)) continue;
      const char *tag = c == 0 ? "th scope=\"row\"" : "td";
      tarn__buffer_format(out, "<%s%s>", tag, class_of(table, c));
      if (is_bold(table, i, c)) tarn__buffer_add(out, "<strong>");
      add_cell(out, table, c, row->cells[c]);
      if (is_bold(table, i, c)) tarn__buffer_add(out, "</strong>");
      tarn__buffer_add(out, c == 0 ? "</th>" : "</td>");
    }
    tarn__buffer_add(out, "</tr>\n");
  }
  tarn__buffer_format(out, "</tbody></table></div>\n<p class=\"caption\" id=\"%s-text\">", table->id);
  tarn__markup_xml(out, table->caption);
  tarn__buffer_add(out, "</p></div>\n");
}

void tarn__table_markdown(tarn__buffer *out, const tarn__table *table) {
  tarn__buffer_add(out, "|");
  for (int c = 0; c < table->width; c++) {
    if (!shown(table, c)) continue;
    tarn__buffer_add(out, " ");
    tarn__markup_markdown(out, table->columns[c].head);
    tarn__buffer_add(out, " |");
  }
  tarn__buffer_add(out, "\n|");
  for (int c = 0; c < table->width; c++) {
    if (shown(table, c)) tarn__buffer_add(out, table->columns[c].text ? " --- |" : " ---: |");
  }
  tarn__buffer_add(out, "\n");
  for (size_t i = 0; i < table->count; i++) {
    tarn__buffer_add(out, "|");
    for (int c = 0; c < table->width; c++) {
      if (!shown(table, c)) continue;
      const char *mark = is_bold(table, i, c) ? "**" : "";
      tarn__buffer_format(out, " %s", mark);
      tarn__markup_markdown(out, table->rows[i].cells[c]);
      tarn__buffer_format(out, "%s |", mark);
    }
    tarn__buffer_add(out, "\n");
  }
  tarn__buffer_add(out, "\n");
  tarn__markup_markdown(out, table->caption);
  tarn__buffer_add(out, "\n\n");
}

void tarn__table_latex(tarn__buffer *out, const tarn__table *table) {
  tarn__buffer_add(out, "\\begin{table}\n\\centering\n\\resizebox{\\textwidth}{!}{%\n\\begin{tabular}{");
  for (int c = 0; c < table->width; c++) {
    if (shown(table, c)) tarn__buffer_add(out, table->columns[c].text ? "l" : "r");
  }
  tarn__buffer_add(out, "}\n\\toprule\n");
  bool first = true;
  for (int c = 0; c < table->width; c++) {
    if (!shown(table, c)) continue;
    if (!first) tarn__buffer_add(out, " & ");
    tarn__markup_latex(out, table->columns[c].head);
    first = false;
  }
  tarn__buffer_add(out, " \\\\\n\\midrule\n");
  for (size_t i = 0; i < table->count; i++) {
    first = true;
    tarn__buffer_add(out, "{}");  // otherwise a [ or * after a line end or \midrule would become its argument
    for (int c = 0; c < table->width; c++) {
      if (!shown(table, c)) continue;
      if (!first) tarn__buffer_add(out, " & ");
      bool bold = is_bold(table, i, c);
      if (bold) tarn__buffer_add(out, "\\textbf{");
      tarn__markup_latex(out, table->rows[i].cells[c]);
      if (bold) tarn__buffer_add(out, "}");
      first = false;
    }
    tarn__buffer_add(out, " \\\\\n");
  }
  tarn__buffer_add(out, "\\bottomrule\n\\end{tabular}}\n\\caption{");
  tarn__markup_latex(out, table->title);
  tarn__buffer_add(out, ". ");
  tarn__markup_latex(out, table->caption);
  tarn__buffer_format(out, "}\n\\label{tab:%s}\n\\end{table}\n\n", table->id);
}
