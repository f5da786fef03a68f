#include "report/markup.h"
#include "report/report_write.h"

static void item(tarn__buffer *out, const char *text) {
  tarn__buffer_add(out, "- ");
  tarn__markup_markdown(out, text);
  tarn__buffer_add(out, "\n");
}

static void examples(tarn__buffer *out, const tarn__examples *all) {
  if (all->count == 0) return;
  tarn__buffer_add(out, "\n## Translations\n\n");
  tarn__markup_markdown(out, all->caption);
  tarn__buffer_add(out, "\n");
  for (size_t i = 0; i < all->count; i++) {
    tarn__buffer_add(out, "\n| | |\n| --- | --- |\n");
    for (size_t k = 0; k < all->lines; k++) {
      tarn__buffer_add(out, "| ");
      tarn__markup_markdown(out, all->names[k]);
      tarn__buffer_add(out, " | ");
      tarn__markup_markdown(out, all->items[i].texts[k]);
      tarn__buffer_add(out, " |\n");
    }
  }
}

void tarn__report_markdown_figures(tarn__buffer *out, const tarn__figures *figures, const char *origin) {
  tarn__buffer_add(out, "## Figures\n");
  for (size_t i = 0; i < figures->count; i++) {
    const tarn__figure *figure = &figures->items[i];
    tarn__buffer_add(out, "\n![");
    tarn__markup_markdown(out, figure->title);
    tarn__buffer_format(out, "](figures/%s.svg)\n\n", figure->name);
    tarn__markup_markdown(out, figure->caption);
    tarn__buffer_add(out, " ");
    tarn__markup_markdown(out, origin);
    tarn__buffer_add(out, "\n");
  }
}

void tarn__report_markdown(tarn__buffer *out, const tarn__report_parts *parts) {
  const tarn__report *view = parts->view;
  tarn__buffer_add(out, "# ");
  tarn__markup_markdown(out, view->title);
  tarn__buffer_add(out, "\n\n");
  tarn__markup_markdown(out, view->origin);
  tarn__buffer_add(out, "\n\n");
  for (size_t i = 0; i < parts->summary.count; i++) item(out, parts->summary.sentences[i]);
  for (size_t i = 0; i < view->table->note_count; i++) item(out, view->table->notes[i]);
  for (int t = 0; t < TARN__REPORT_TABLES; t++) {
    if (parts->tables[t].count == 0) continue;
    tarn__buffer_format(out, "\n## %s\n\n", parts->tables[t].title);
    tarn__table_markdown(out, &parts->tables[t]);
  }
  tarn__report_markdown_figures(out, &parts->figures, view->origin);
  examples(out, &parts->examples);
}
