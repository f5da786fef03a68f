#include "report/csv_fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/markup.h"

void tarn__csv_text(tarn__buffer *out, const char *text) {
  tarn__markup_csv(out, text ? text : "");
  tarn__buffer_add(out, ",");
}

void tarn__csv_real(tarn__buffer *out, double value) {
  char text[40] = "";
  for (int digits = 6; digits <= 17 && !isnan(value); digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  tarn__csv_text(out, text);
}

void tarn__csv_whole(tarn__buffer *out, int64_t value) {
  if (value < 0)
    tarn__buffer_add(out, ",");
  else
    tarn__buffer_format(out, "%lld,", (long long)value);
}

void tarn__csv_end(tarn__buffer *out) {
  if (out->status != TARN_STATUS_OK || out->used == 0) return;
  out->data[out->used - 1] = '\n';  // replaces the last comma
}
