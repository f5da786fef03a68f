// Pictures as PDF, for LaTeX, by librsvg. The library is loaded when a picture is made, not when the program starts: it
// has some forty dependencies that nothing else needs.
#ifndef TARN_REPORT_PDF_H
#define TARN_REPORT_PDF_H

#include "base/buffer.h"

// Fails with UNSUPPORTED if pictures are impossible: this build lacks librsvg support, or librsvg-2.so.2 is missing.
tarn_status tarn__pdf_there(void) TARN_CHECKED;

// Appends an SVG picture written by tarn, as a PDF file. `date` (ISO 8601) becomes the date of the file; NULL: the
// current time. Fails like tarn__pdf_there(), and with MEMORY or DATA. If librsvg itself runs out of memory, GLib
// aborts the process.
tarn_status tarn__pdf_make(tarn__buffer *out, const char *svg, size_t size, const char *date) TARN_CHECKED;

#endif
