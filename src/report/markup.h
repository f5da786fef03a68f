// Escapes external text for the formats of a report.
#ifndef TARN_REPORT_MARKUP_H
#define TARN_REPORT_MARKUP_H

#include "base/buffer.h"

// Content or attribute value of HTML and XML. Bytes that are not UTF-8 and characters forbidden in XML become U+FFFD.
void tarn__markup_xml(tarn__buffer *out, const char *text);

// A cell of a Markdown table: escapes | and special characters with a backslash; line ends become spaces.
void tarn__markup_markdown(tarn__buffer *out, const char *text);

// A field of CSV (RFC 4180): quoted if necessary.
void tarn__markup_csv(tarn__buffer *out, const char *text);

// LaTeX text: special characters escaped, ligatures broken, +- and dashes as commands.
void tarn__markup_latex(tarn__buffer *out, const char *text);

// A file name: keeps letters, digits, dots, dashes and underscores; everything else becomes a dash.
void tarn__markup_file_name(tarn__buffer *out, const char *text);

#endif
