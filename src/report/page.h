// Report pages: self-contained, without other files, network or scripts; light, dark, and for print.
#ifndef TARN_REPORT_PAGE_H
#define TARN_REPORT_PAGE_H

#include "report/report_figures.h"

// A section of the page, by its id, linked below the title.
typedef struct tarn__page_link {
  const char *id, *text;
} tarn__page_link;

// From the first line to the links below the title; `origin` names the source of the contents.
void tarn__page_open(tarn__buffer *out, const char *title, const char *origin, const tarn__page_link *links,
                     size_t count);
void tarn__page_close(tarn__buffer *out);

// Escaped text between markup: `open` and `close` are written verbatim.
void tarn__page_element(tarn__buffer *out, const char *open, const char *text, const char *close);

// The figures of one section, with their captions and `origin`, side by side if there is space.
void tarn__page_figures(tarn__buffer *out, const tarn__figures *figures, const char *origin, tarn__figure_part part);

#endif
