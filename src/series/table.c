#include "series/table.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

void tarn_series_close(tarn_series **series) {
  tarn_series *s = *series;
  if (!s) return;
  for (int64_t c = 0; s->names && c < s->columns; c++) tarn__free(s->names[c]);
  tarn__free(s->names);
  tarn__free(s->values);
  tarn__free(s);
  *series = NULL;
}

static tarn_status fill(tarn_series *s, const char *const *names) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)s->columns, sizeof *s->names));
  s->names = memory;
  for (int64_t c = 0; c < s->columns; c++) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)c + 1);
    TARN_TRY(tarn__strdup(&s->names[c], names ? names[c] : number));
  }
  size_t cells;
  TARN_TRY(tarn__mul_size(&cells, (size_t)s->rows, (size_t)s->columns));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, cells, sizeof *s->values));
  s->values = memory;
  return TARN_STATUS_OK;
}

tarn_status tarn__series_new(tarn_series **series, int64_t rows, int64_t columns, const char *const *names) {
  void *memory;
  *series = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **series));
  *series = memory;
  (*series)->rows = rows;
  (*series)->columns = columns;
  tarn_status status = fill(*series, names);
  if (status != TARN_STATUS_OK) tarn_series_close(series);
  return status;
}

tarn_status tarn__series_check_columns(const tarn_series *series, const char *const *names, int64_t columns,
                                       const char *whose) {
  TARN_REQUIRE(series->columns == columns, DATA, "%s %lld columns, the series has %lld", whose, (long long)columns,
               (long long)series->columns);
  for (int64_t c = 0; c < columns; c++)
    TARN_REQUIRE(strcmp(series->names[c], names[c]) == 0, DATA,
                 "%s column %.80s in place %lld, where the series has %.80s", whose, names[c], (long long)c + 1,
                 series->names[c]);
  return TARN_STATUS_OK;
}

// Writes the text to the file and clears it.
static tarn_status hand_on(tarn__writer *writer, tarn__buffer *line) {
  TARN_TRY(line->status);
  TARN_TRY(tarn__writer_put(writer, line->data, line->used));
  tarn__buffer_reset(line);
  return TARN_STATUS_OK;
}

static void add_quoted(tarn__buffer *line, const char *name) {
  tarn__buffer_add(line, "\"");
  for (; *name; name++) tarn__buffer_format(line, "%s%c", *name == '"' ? "\"" : "", *name);
  tarn__buffer_add(line, "\"");
}

static tarn_status write_rows(tarn__writer *writer, tarn__buffer *line, const tarn_series *series) {
  // A column without a name has its number, with which the header would look like a row of numbers.
  for (int64_t c = 0; c < series->columns; c++) {
    const char *name = series->names[c];
    const bool plain = !strpbrk(name, ",\"\r\n");
    tarn__buffer_format(line, "%s%s", c ? "," : "", strspn(name, "0123456789") == strlen(name) ? "column" : "");
    if (plain) tarn__buffer_add(line, name);
    if (!plain) add_quoted(line, name);
  }
  tarn__buffer_add(line, "\n");
  TARN_TRY(hand_on(writer, line));
  for (int64_t r = 0; r < series->rows; r++) {
    for (int64_t c = 0; c < series->columns; c++)
      tarn__buffer_format(line, "%s%.17g", c ? "," : "", series->values[r * series->columns + c]);
    tarn__buffer_add(line, "\n");
    TARN_TRY(hand_on(writer, line));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn_series_write(const tarn_series *series, const char *path) {
  tarn__writer *writer;
  tarn__buffer line = {0};
  TARN_TRY(tarn__writer_open(&writer, path));
  tarn_status status = write_rows(writer, &line, series);
  tarn__buffer_close(&line);
  if (status == TARN_STATUS_OK) return tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  return status;
}
