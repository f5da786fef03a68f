#include "text_table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/text.h"

void text_table_row(text_table *table) {
  size_t need = (table->rows + 1) * TEXT_TABLE_COLUMNS;
  if (need > table->capacity) {
    size_t larger = 2 * need;
    void *cells = table->capacity == SIZE_MAX ? NULL : realloc(table->cells, larger * sizeof *table->cells);
    if (!cells) {
      table->capacity = SIZE_MAX;  // remembered until the end
      return;
    }
    table->cells = cells;
    table->capacity = larger;
  }
  memset(table->cells[need - TEXT_TABLE_COLUMNS], 0, TEXT_TABLE_COLUMNS * sizeof *table->cells);
  table->rows++;
  table->columns = 0;
}

void text_table_cell(text_table *table, const char *format, ...) {
  if (table->capacity == SIZE_MAX || table->rows == 0 || table->columns == TEXT_TABLE_COLUMNS) return;
  va_list args;
  va_start(args, format);
  vsnprintf(table->cells[(table->rows - 1) * TEXT_TABLE_COLUMNS + table->columns++], TEXT_TABLE_CELL, format, args);
  va_end(args);
}

static int width_of(const char *text) { return (int)tarn_text_columns(text, strlen(text), SIZE_MAX, NULL); }

static void print_row(const text_table *table, size_t row, const int *widths) {
  for (size_t c = 0; c < table->columns; c++) {
    const char *cell = table->cells[row * TEXT_TABLE_COLUMNS + c];
    int space = widths[c] - width_of(cell);
    bool last = c + 1 == table->columns;
    printf("%s%*s%s%*s", c ? "  " : "", c ? space : 0, "", cell, c || last ? 0 : space, "");
  }
  printf("\n");
}

bool text_table_print(text_table *table) {
  int widths[TEXT_TABLE_COLUMNS] = {0};
  bool whole = table->capacity != SIZE_MAX;
  int all = 0;
  for (size_t i = 0; i < table->rows * TEXT_TABLE_COLUMNS; i++) {
    int width = width_of(table->cells[i]);
    if (width > widths[i % TEXT_TABLE_COLUMNS]) widths[i % TEXT_TABLE_COLUMNS] = width;
  }
  for (size_t c = 0; c < table->columns; c++) all += widths[c] + (c ? 2 : 0);
  for (size_t row = 0; row < table->rows; row++) {
    print_row(table, row, widths);
    if (row > 0) continue;
    for (int i = 0; i < all; i++) printf("-");
    printf("\n");
  }
  free(table->cells);
  *table = (text_table){0};
  return whole;
}
