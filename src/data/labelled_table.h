// Reads sentences with labels from a table: a row a line, and as many fields in every line as in the first. Where tabs
// divide it there is no quoting, as in GLUE's files: quotes are text. With commas, semicolons or bars a field may stand
// in quotes, in which "" is a quote (RFC 4180), but it ends on its line.
#ifndef TARN_DATA_LABELLED_TABLE_H
#define TARN_DATA_LABELLED_TABLE_H

#include "data/sentence_pair.h"
#include "text/lines.h"

// Columns, each by its name in the first line, which is a header then, or by its number from 1. Where all are given by
// number the first line is a row, unless `header` says otherwise. `pair` NULL: there is one sentence a row.
typedef struct tarn__labelled_columns {
  const char *label, *text, *pair;
  bool header;
  char delimiter;  // tab, comma, semicolon or bar; 0: a tab where the first line has one, else the comma or semicolon
                   // with which it has these columns
} tarn__labelled_columns;

// Zero-initialise or open; close accepts both.
typedef struct tarn__labelled_table {
  tarn__lines lines;
  tarn__piece label, text, pair;  // of the row at hand; pair.text NULL: there is none
  bool ended;                     // there is no row at hand
  // Private.
  tarn__labelled_columns columns;
  int64_t fields;                      // of each line; 0: no line was read yet
  int64_t label_at, text_at, pair_at;  // from 0; pair_at -1: none
  char delimiter;
  char *rooms[3];  // of a label, a text and a pair with quotes inside of quotes
  size_t room_sizes[3];
} tarn__labelled_table;

// Fails with IO, USAGE (a column of number 0, one column for two things), or DATA: what is no text, a column that the
// first line lacks or has twice, a first line that has the columns with commas and with semicolons.
tarn_status tarn__labelled_table_open(tarn__labelled_table *table, const char *path,
                                      const tarn__labelled_columns *columns, bool strict) TARN_CHECKED;
void tarn__labelled_table_close(tarn__labelled_table *table);

// Goes to the next row, whose fields are valid until the next call. Fails with DATA, naming file and line, where a line
// has more or fewer fields than the first, a field that begins with a quote does not end with one, or a field that is
// needed is empty or of blanks only.
tarn_status tarn__labelled_table_next(tarn__labelled_table *table) TARN_CHECKED;

#endif
