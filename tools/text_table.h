// A table on the terminal: columns as wide as their widest cell, the first left-aligned, the others right-aligned.
#ifndef TARN_TOOLS_TEXT_TABLE_H
#define TARN_TOOLS_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { TEXT_TABLE_COLUMNS = 16, TEXT_TABLE_CELL = 96 };

typedef struct text_table {
  char (*cells)[TEXT_TABLE_CELL];  // row by row; UTF-8
  size_t columns, rows, capacity;
} text_table;

// Adds a row from left to right: text_table_row(), then text_table_cell() for each column. A cell that is too long is
// cut. Rows that cannot be allocated are dropped, and text_table_print() returns false.
void text_table_row(text_table *table);
void text_table_cell(text_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Prints the rows, the first one as a header with a line below it, and frees the table.
bool text_table_print(text_table *table);

#endif
