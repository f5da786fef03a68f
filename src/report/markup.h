// Text from outside made safe for the formats of a report.
#ifndef TARN_REPORT_MARKUP_H
#define TARN_REPORT_MARKUP_H

#include "base/buffer.h"

// Content or attribute value of HTML and XML. Bytes that are no UTF-8 and characters that XML forbids become U+FFFD.
void tarn__markup_xml(tarn__buffer *out, const char *text);

// A cell of a Markdown table: | and characters with a meaning get a backslash, line ends become spaces.
void tarn__markup_markdown(tarn__buffer *out, const char *text);

// A field of CSV (RFC 4180): quoted where it must be.
void tarn__markup_csv(tarn__buffer *out, const char *text);

// LaTeX text: special characters escaped, ligatures broken, +- and dashes as commands.
void tarn__markup_latex(tarn__buffer *out, const char *text);

// A name of a file: letters, digits, dots, dashes and underscores stay, everything else becomes a dash.
void tarn__markup_file_name(tarn__buffer *out, const char *text);

#endif
