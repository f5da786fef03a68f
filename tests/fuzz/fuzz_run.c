// Run directories and a sweep's folder, as an archive: reading, comparison, curves and the report.
#include <stdio.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "tarn/lab/results.h"

enum { POINTS = 12, MOST_GROUPS = 8 };

void fuzz_prepare(void) {
  fuzz_write("test.en", "a b c d\ne f\n", 12);
  fuzz_write("test.de", "a b c d\ne f\n", 12);
}

static void draw_bands(const tarn_results *results, const char *metric) {
  tarn_results_band_point points[POINTS];
  size_t count;
  for (size_t g = 0; g < results->group_count && g < MOST_GROUPS; g++) {
    if (fuzz_good(tarn_results_band(points, &count, POINTS, results, g, metric, TARN_RESULTS_SECONDS, 0)))
      FUZZ_REQUIRE(count <= POINTS);
  }
}

static void write_report(const tarn_results *results, const tarn_results_table *table) {
  tarn_report_options report;
  tarn_report_default(&report);
  report.output = "report";
  (void)fuzz_good(tarn_report_write(results, table, &report));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *path = "in";
  tarn_results *results;
  tarn_results_table *table = NULL;
  tarn_results_options options;
  if (fuzz_unpack("in", data, size) == 0) return 0;
  if (!fuzz_good(tarn_results_open(&results, &path, 1))) return 0;
  tarn_results_default(&options);
  options.resamples = 20;
  if (fuzz_good(tarn_results_compare(&table, results, &options))) {
    draw_bands(results, table->metric);
    if (fuzz_choice(data, size) % 8 == 0) write_report(results, table);
  }
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  return 0;
}
