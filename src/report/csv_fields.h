// Lines of CSV, field by field. What is not known is an empty field.
#ifndef TARN_REPORT_CSV_FIELDS_H
#define TARN_REPORT_CSV_FIELDS_H

#include <stdint.h>

#include "base/buffer.h"

void tarn__csv_text(tarn__buffer *out, const char *text);  // NULL: not known
// The shortest decimal number that reads back as the same double; NAN: not known.
void tarn__csv_real(tarn__buffer *out, double value);
void tarn__csv_whole(tarn__buffer *out, int64_t value);  // negative: not known
void tarn__csv_end(tarn__buffer *out);                   // of a line that has fields

#endif
