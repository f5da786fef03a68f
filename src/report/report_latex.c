#include "report/markup.h"
#include "report/report_write.h"

// Without the figure files the document still has its tables, with a placeholder for each figure.
static void figure(tarn__buffer *out, const tarn__report *view, const tarn__figure *figure) {
  tarn__buffer_format(out,
                      "\\begin{figure}\n\\centering\n\\IfFileExists{\\tarnfigures/%s.pdf}%%\n"
                      "{\\includegraphics[width=\\linewidth]{\\tarnfigures/%s.pdf}}%%\n"
                      "{\\fbox{tarn report --pdf writes \\detokenize{%s.pdf}}}\n\\caption{",
                      figure->name, figure->name, figure->name);
  tarn__markup_latex(out, figure->title);
  tarn__buffer_add(out, ". ");
  tarn__markup_latex(out, figure->caption);
  tarn__buffer_add(out, " ");
  tarn__markup_latex(out, view->origin);
  tarn__buffer_format(out, "}\n\\label{fig:%s}\n\\end{figure}\n\n", figure->name);
}

void tarn__report_latex(tarn__buffer *out, const tarn__report_parts *parts) {
  tarn__buffer_add(
      out,
      "% A report by tarn. Needs \\usepackage{booktabs,graphicx}. If the figures are in another folder than "
      "figures,\n% say where before this file: \\newcommand{\\tarnfigures}{report/figures}\n"
      "\\providecommand{\\tarnfigures}{figures}\n\n");
  for (int t = 0; t < TARN__REPORT_TABLES - 1; t++)
    if (parts->tables[t].count > 0) tarn__table_latex(out, &parts->tables[t]);
  for (size_t i = 0; i < parts->figures.count; i++) figure(out, parts->view, &parts->figures.items[i]);
}
