// Reads labelled sentences from a table: one row per line, with the same number of fields in every line. With tabs
// there is no quoting, as in GLUE's files: quotes are text. With commas, semicolons or bars a field may be quoted, and
// "" is a quote inside it (RFC 4180), but it ends on its line.
#ifndef TARN_DATA_LABELLED_TABLE_H
#define TARN_DATA_LABELLED_TABLE_H

#include "data/sentence_pair.h"
#include "text/lines.h"

// Columns, each by its name in the first line, which is then a header, or by its number from 1. If all are numbers, the
// first line is a row unless `header` is set. `pair` NULL: there is one sentence per row.
typedef struct tarn__labelled_columns {
  const char *label, *text, *pair;
  bool header;
  char delimiter;  // tab, comma, semicolon or bar; 0: a tab if the first line has one, else the comma or semicolon that
                   // gives these columns
} tarn__labelled_columns;

// Zero-initialise or open; close accepts both.
typedef struct tarn__labelled_table {
  tarn__lines lines;
  tarn__piece label, text, pair;  // of the current row; pair.text NULL: there is none
  bool ended;                     // there is no current row
  // Private.
  tarn__labelled_columns columns;
  int64_t fields;                      // of each line; 0: no line was read yet
  int64_t label_at, text_at, pair_at;  // from 0; pair_at -1: none
  char delimiter;
  char *rooms[3];  // of a label, a text and a pair with quotes inside of quotes
  size_t room_sizes[3];
} tarn__labelled_table;

// Fails with IO, USAGE (a column number 0, one column for two purposes), or DATA: the file is not text, the first line
// lacks a column or has it twice, or it has the columns both with commas and with semicolons.
tarn_status tarn__labelled_table_open(tarn__labelled_table *table, const char *path,
                                      const tarn__labelled_columns *columns, bool strict) TARN_CHECKED;
void tarn__labelled_table_close(tarn__labelled_table *table);

// Goes to the next row, whose fields are valid until the next call. Fails with DATA, naming file and line, if a line
// has more or fewer fields than the first, a field begins with a quote but does not end with one, or a required field
// is empty or blank.
tarn_status tarn__labelled_table_next(tarn__labelled_table *table) TARN_CHECKED;

#endif
