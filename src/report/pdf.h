// Pictures as PDF, for LaTeX, by librsvg. The library is opened when a picture is made, not when the program starts: it
// brings some forty others, and nothing else needs them.
#ifndef TARN_REPORT_PDF_H
#define TARN_REPORT_PDF_H

#include "base/buffer.h"

// Whether pictures can be made. Fails with UNSUPPORTED: this build does not know librsvg, or librsvg-2.so.2 is not
// there.
tarn_status tarn__pdf_there(void) TARN_CHECKED;

// Appends an SVG picture of ours as a PDF file. `date` (ISO 8601) becomes that of the file; NULL takes the time of day.
// Fails as tarn__pdf_there(), and with MEMORY or DATA. Where memory is
// lacking in librsvg itself, GLib ends the process.
tarn_status tarn__pdf_make(tarn__buffer *out, const char *svg, size_t size, const char *date) TARN_CHECKED;

#endif
