// Pages of reports: a page needs no other file, no network and no script; it is light, dark, and for print.
#ifndef TARN_REPORT_PAGE_H
#define TARN_REPORT_PAGE_H

#include "report/report_figures.h"

// A place in the page, by its id, to which a line below the title leads.
typedef struct tarn__page_link {
  const char *id, *text;
} tarn__page_link;

// From the first line to the links below the title; `origin` says where the contents come from.
void tarn__page_open(tarn__buffer *out, const char *title, const char *origin, const tarn__page_link *links,
                     size_t count);
void tarn__page_close(tarn__buffer *out);

// Text between markup: `open` and `close` stand as they are.
void tarn__page_element(tarn__buffer *out, const char *open, const char *text, const char *close);

// The figures of one part, with their captions and `origin`, side by side where there is room.
void tarn__page_figures(tarn__buffer *out, const tarn__figures *figures, const char *origin, tarn__figure_part part);

#endif
