// Lines of CSV, field by field. Unknown values are empty fields.
#ifndef TARN_REPORT_CSV_FIELDS_H
#define TARN_REPORT_CSV_FIELDS_H

#include <stdint.h>

#include "base/buffer.h"

void tarn__csv_text(tarn__buffer *out, const char *text);  // NULL: unknown
// The shortest decimal number that reads back as the same double; NAN: unknown.
void tarn__csv_real(tarn__buffer *out, double value);
void tarn__csv_whole(tarn__buffer *out, int64_t value);  // negative: unknown
void tarn__csv_end(tarn__buffer *out);                   // ends a line that has fields

#endif
