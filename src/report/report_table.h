// Tables of a report, built once and written in four formats.
#ifndef TARN_REPORT_REPORT_TABLE_H
#define TARN_REPORT_REPORT_TABLE_H

#include "report/report_view.h"

enum { TARN__TABLE_COLUMNS = 13 };

typedef struct tarn__table_column {
  const char *head;  // with its unit
  bool text;         // left-aligned
  size_t bold;       // 1 + the row in bold; 0: none
} tarn__table_column;

typedef struct tarn__table_row {
  const char *cells[TARN__TABLE_COLUMNS];
  bool baseline;
  bool failed;  // the run failed, or no run has finished and at least one failed
  bool open;    // the run has not finished, or no run has
} tarn__table_row;

typedef struct tarn__table {
  const char *id, *title, *caption;
  tarn__table_column columns[TARN__TABLE_COLUMNS];
  int width;
  tarn__table_row *rows;
  size_t count;
} tarn__table;

// The tables of a report: quality, verdicts, speed, losses, cost, size, runs.
enum { TARN__REPORT_TABLES = 7 };
tarn_status tarn__report_tables(tarn__table tables[TARN__REPORT_TABLES], tarn__report *view) TARN_CHECKED;
// Allocates rows filled with dashes, after the columns are added.
tarn_status tarn__table_open(tarn__table *table, tarn__report *view, size_t rows) TARN_CHECKED;
// The verdicts on all scores.
tarn_status tarn__report_verdict_table(tarn__table *table, tarn__report *view) TARN_CHECKED;

// Columns without any value are omitted.
void tarn__table_html(tarn__buffer *out, const tarn__table *table);
void tarn__table_markdown(tarn__buffer *out, const tarn__table *table);
void tarn__table_latex(tarn__buffer *out, const tarn__table *table);

// All measures with full precision: one line per configuration, one line per run.
void tarn__report_results_csv(tarn__buffer *out, const tarn__report *view);
void tarn__report_runs_csv(tarn__buffer *out, const tarn__report *view);

#endif
