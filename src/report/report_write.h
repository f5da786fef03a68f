// The documents of a report.
#ifndef TARN_REPORT_REPORT_WRITE_H
#define TARN_REPORT_REPORT_WRITE_H

#include "report/report_figures.h"
#include "report/report_table.h"

// The results in sentences with numbers: plain text, one or two sentences per item, the most important first.
enum { TARN__REPORT_SENTENCES = 16 };
typedef struct tarn__summary {
  const char *sentences[TARN__REPORT_SENTENCES];
  size_t count;
} tarn__summary;
tarn_status tarn__report_summary(tarn__summary *summary, tarn__report *view) TARN_CHECKED;

// Sentences of the test set with each model's translation.
enum { TARN__EXAMPLES = 6 };
typedef struct tarn__examples {
  const char *caption;
  const char **names;  // (lines) "source", "reference", and the models
  size_t lines;
  struct {
    const char **texts;  // (lines)
  } items[TARN__EXAMPLES];
  size_t count;  // 0: no run has translations, or they or their source no longer exist
} tarn__examples;
tarn_status tarn__report_examples(tarn__examples *examples, tarn__report *view) TARN_CHECKED;

typedef struct tarn__report_parts {
  tarn__report *view;
  tarn__summary summary;
  tarn__examples examples;
  tarn__table tables[TARN__REPORT_TABLES];
  tarn__figures figures;
} tarn__report_parts;

// The figures as Markdown, as files in the folder "figures", with their captions and `origin`.
void tarn__report_markdown_figures(tarn__buffer *out, const tarn__figures *figures, const char *origin);

// Writes a document into the folder, and all pictures into the subfolder "figures", each atomically.
tarn_status tarn__report_save(tarn__report *view, const char *folder, const char *name,
                              const tarn__buffer *text) TARN_CHECKED;
tarn_status tarn__report_save_figures(tarn__report *view, const char *folder,
                                      const tarn__figures *figures) TARN_CHECKED;

void tarn__report_html(tarn__buffer *out, const tarn__report_parts *parts);
void tarn__report_markdown(tarn__buffer *out, const tarn__report_parts *parts);
void tarn__report_latex(tarn__buffer *out, const tarn__report_parts *parts);

#endif
