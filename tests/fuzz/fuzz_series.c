// A table of numbers. A first line "#columns NAMES" chooses columns. What is read is written, read again, and the same.
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "tarn/lab/series.h"

void fuzz_prepare(void) {}

static void read_again(const tarn_series *series) {
  tarn_series *again;
  const tarn_series_format format = {.header = TARN_SERIES_HEADER_YES};
  fuzz_must(tarn_series_write(series, "again.csv"));
  if (!fuzz_good(tarn_series_read(&again, "again.csv", &format))) return;
  FUZZ_REQUIRE(again->rows == series->rows && again->columns == series->columns);
  const size_t bytes = (size_t)(series->rows * series->columns) * sizeof(double);
  FUZZ_REQUIRE(memcmp(again->values, series->values, bytes) == 0);
  tarn_series_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char WORD[] = "#columns ";
  char columns[100] = "";
  tarn_series_format format = {.header = (tarn_series_header)(size % 3),
                               .delimiter = ",;\t| \0\0\0"[size / 3 % 8],
                               .decimal = ".,\0\0"[size / 24 % 4]};
  const uint8_t *end = size > sizeof WORD && memcmp(data, WORD, sizeof WORD - 1) == 0 ? memchr(data, '\n', size) : NULL;
  if (end && end - data < (long)sizeof columns) {
    memcpy(columns, data + sizeof WORD - 1, (size_t)(end - data) - (sizeof WORD - 1));
    format.columns = columns;
    size -= (size_t)(end + 1 - data);
    data = end + 1;
  }
  tarn_series *series;
  fuzz_write("series.csv", data, size);
  if (!fuzz_good(tarn_series_read(&series, "series.csv", &format))) return 0;
  FUZZ_REQUIRE(series->rows > 0 && series->columns > 0);
  read_again(series);
  tarn_series_close(&series);
  return 0;
}
