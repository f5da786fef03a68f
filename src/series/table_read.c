// Reading of comma-separated values.
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/memory.h"
#include "series/table.h"

// A cell of the text, cut out of its line with a zero byte behind it.
typedef struct reader {
  const char *path;
  char *text, *end;
  int64_t line;     // of the next line, from 1
  char **cells;     // [TARN__SERIES_COLUMNS] of the last line
  int64_t count;    // cells of the last line
  int64_t *chosen;  // [chosen_count] columns from 0
  int64_t chosen_count;
  char delimiter;
  char decimal;  // 0: no number has said it yet
  char **names;  // [count of the first line]; those of the header, which lie in the text, or NULL
  double *values;
  size_t used, capacity;
} reader;

static void trim(char **cell) {
  char *begin = *cell + strspn(*cell, " \t"), *last = begin + strlen(begin);
  while (last > begin && strchr(" \t\r", last[-1])) last--;
  *last = 0;
  *cell = begin;
}

// Takes a cell in quotes, in which "" is a quote and a delimiter is no border (RFC 4180), and moves behind the
// delimiter that ends it. False: it does not end, or something stands behind it.
static bool take_quoted(char **cell, char **at, char delimiter) {
  char *from = *at + 1, *to = from;
  *cell = to;
  for (; *from && (*from != '"' || from[1] == '"'); from++) {
    if (*from == '"') from++;
    *to++ = *from;
  }
  if (*from != '"') return false;
  from++;
  while (*from && *from != delimiter && strchr(" \t\r", *from)) from++;
  *at = *from == delimiter && *from ? from + 1 : NULL;
  const bool ends = *from == delimiter || *from == 0;
  *to = 0;
  return ends;
}

// What stands between the cells of a line: a tab or a semicolon where one is outside of quotes, else a comma, unless
// that is the decimal sign: then the line has one cell.
static char delimiter_of(const char *line, char decimal) {
  bool quoted = false, semicolon = false;
  for (const char *c = line; *c; c++) {
    if (*c == '"') quoted = !quoted;
    if (*c == '\t' && !quoted) return '\t';
    semicolon |= *c == ';' && !quoted;
  }
  return semicolon || decimal == ',' ? ';' : ',';
}

// Splits the next line into r->cells. False at the end of the text; empty lines at the end are no lines.
static tarn_status next_line(reader *r, bool *more) {
  *more = r->text + strspn(r->text, " \t\r\n") < r->end;
  if (!*more) return TARN_STATUS_OK;
  char *stop = memchr(r->text, '\n', (size_t)(r->end - r->text));
  if (!stop) stop = r->end;
  TARN_REQUIRE(strnlen(r->text, (size_t)(stop - r->text)) == (size_t)(stop - r->text), DATA,
               "%s:%" PRId64 ": a zero byte in a text file", r->path, r->line);
  *stop = 0;
  r->count = 0;
  if (!r->delimiter) r->delimiter = delimiter_of(r->text, r->decimal);
  const char between[] = {r->delimiter, 0};
  for (char *at = r->text; at;) {
    TARN_REQUIRE(r->count < TARN__SERIES_COLUMNS, DATA, "%s:%" PRId64 ": more than %d columns", r->path, r->line,
                 TARN__SERIES_COLUMNS);
    while (*at && *at != r->delimiter && strchr(" \t", *at)) at++;
    if (*at == '"') {
      TARN_REQUIRE(take_quoted(&r->cells[r->count], &at, r->delimiter), DATA,
                   "%s:%" PRId64 ": column %" PRId64 ": a cell that begins with a quote must end with one", r->path,
                   r->line, r->count + 1);
      r->count++;
      continue;
    }
    r->cells[r->count] = strsep(&at, between);
    trim(&r->cells[r->count++]);
  }
  r->text = stop < r->end ? stop + 1 : r->end;
  r->line++;
  return TARN_STATUS_OK;
}

// Whether the cell is a number, finite or not, as the numbers before it were written. `decimal` is what it has between
// its whole part and the rest, 0 if it has no such rest.
static bool number(const reader *r, double *value, char *decimal, char *cell) {
  char *end, *comma = r->delimiter == ',' && r->decimal != ',' ? NULL : strchr(cell, ',');
  *decimal = comma ? ',' : strchr(cell, '.') ? '.' : 0;
  if (*decimal && r->decimal && *decimal != r->decimal) return false;
  if (comma && strchr(cell, '.')) return false;
  if (comma) *comma = '.';
  *value = strtod(cell, &end);
  const bool whole = *cell && !*end;
  if (comma) *comma = ',';
  return whole;
}

// strtod() takes these as numbers as well.
static bool is_hexadecimal(const char *cell) {
  cell += strspn(cell, "+-");
  return cell[0] == '0' && (cell[1] == 'x' || cell[1] == 'X');
}

// Keeps the first line as a header, or leaves it to be read as numbers.
static tarn_status read_header(reader *r, tarn_series_header header, bool *is_header) {
  bool any = false;
  double value;
  char decimal;
  for (int64_t c = 0; c < r->count; c++) any |= number(r, &value, &decimal, r->cells[c]) || !*r->cells[c];
  *is_header = header == TARN_SERIES_HEADER_YES || (header == TARN_SERIES_HEADER_AUTO && !any);
  if (!*is_header) return TARN_STATUS_OK;
  void *names;
  TARN_TRY(tarn__alloc(&names, TARN__MEMORY_OTHER, (size_t)r->count, sizeof *r->names));
  memcpy(names, r->cells, (size_t)r->count * sizeof *r->names);
  r->names = names;
  return TARN_STATUS_OK;
}

static tarn_status find_column(const reader *r, const char *word, int64_t count, int64_t *column) {
  for (*column = 0; r->names && *column < count; ++*column) {
    if (strcmp(r->names[*column], word) != 0) continue;
    for (int64_t c = *column + 1; c < count; c++)
      TARN_REQUIRE(strcmp(r->names[c], word) != 0, USAGE,
                   "%s: columns %" PRId64 " and %" PRId64 " are both named \"%.80s\"; give the number of one", r->path,
                   *column + 1, c + 1, word);
    return TARN_STATUS_OK;
  }
  char *end;
  long long at = strtoll(word, &end, 10);
  TARN_REQUIRE(*word && !*end && at >= 1 && at <= count, USAGE,
               "%s: there is no column \"%s\"; name one of the header or give a number from 1 to %" PRId64, r->path,
               word, count);
  *column = at - 1;
  return TARN_STATUS_OK;
}

static tarn_status choose(reader *r, const char *columns) {
  void *memory;
  size_t most = (size_t)r->count;
  for (const char *c = columns; c && *c; c++) most += *c == ',';
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, most + 1, sizeof *r->chosen));
  r->chosen = memory;
  if (!columns) {
    for (; r->chosen_count < r->count; r->chosen_count++) r->chosen[r->chosen_count] = r->chosen_count;
    return TARN_STATUS_OK;
  }
  char *words;
  TARN_TRY(tarn__strdup(&words, columns));
  tarn_status status = TARN_STATUS_OK;
  for (char *at = words; at && status == TARN_STATUS_OK;) {
    char *word = strsep(&at, ",");
    trim(&word);
    status = find_column(r, word, r->count, &r->chosen[r->chosen_count++]);
  }
  tarn__free(words);
  return status;
}

static const char *delimiter_name(char delimiter) {
  switch (delimiter) {
    case ',':
      return "a comma";
    case ';':
      return "a semicolon";
    case '\t':
      return "a tab";
    default:
      return "the delimiter that was given";
  }
}

static tarn_status read_row(reader *r, int64_t width) {
  int64_t line = r->line - 1;
  TARN_REQUIRE(r->count == width, DATA, "%s:%" PRId64 ": %" PRId64 " columns, expected %" PRId64, r->path, line,
               r->count, width);
  TARN_TRY(tarn__grow(&r->values, &r->capacity, r->used + (size_t)r->chosen_count, sizeof *r->values));
  for (int64_t i = 0; i < r->chosen_count; i++) {
    int64_t c = r->chosen[i];
    char *cell = r->cells[c], decimal;
    const char *name = r->names ? r->names[c] : "";
    TARN_REQUIRE(*cell, DATA, "%s:%" PRId64 ": column %" PRId64 "%s%s: the number is missing", r->path, line, c + 1,
                 *name ? " " : "", name);
    TARN_REQUIRE(!is_hexadecimal(cell), DATA,
                 "%s:%" PRId64 ": column %" PRId64 "%s%s: \"%.40s\" is hexadecimal, expected a decimal number", r->path,
                 line, c + 1, *name ? " " : "", name, cell);
    double *value = &r->values[r->used++];
    TARN_REQUIRE(number(r, value, &decimal, cell) && isfinite(*value), DATA,
                 "%s:%" PRId64 ": column %" PRId64 "%s%s: \"%.40s\" is no finite number, where cells end with %s%s%s",
                 r->path, line, c + 1, *name ? " " : "", name, cell, delimiter_name(r->delimiter),
                 r->decimal ? " and the decimal sign is a " : "",
                 !r->decimal         ? ""
                 : r->decimal == ',' ? "comma"
                                     : "point");
    if (decimal && r->delimiter != ',') r->decimal = decimal;
  }
  return TARN_STATUS_OK;
}

static tarn_status read_lines(reader *r, const tarn_series_format *format) {
  bool more, is_header;
  TARN_TRY(next_line(r, &more));
  TARN_REQUIRE(more, DATA, "%s: there are no rows", r->path);
  int64_t width = r->count;
  TARN_TRY(read_header(r, format->header, &is_header));
  TARN_TRY(choose(r, format->columns));
  if (!is_header) TARN_TRY(read_row(r, width));
  for (;;) {
    TARN_TRY(next_line(r, &more));
    if (!more) break;
    TARN_TRY(read_row(r, width));
  }
  TARN_REQUIRE(r->used, DATA, "%s: there are no rows behind the header", r->path);
  return TARN_STATUS_OK;
}

static tarn_status hand_over(reader *r, tarn_series **series) {
  TARN_TRY(tarn__series_new(series, (int64_t)r->used / r->chosen_count, r->chosen_count, NULL));
  memcpy((*series)->values, r->values, r->used * sizeof *r->values);
  tarn_status status = TARN_STATUS_OK;
  for (int64_t i = 0; i < r->chosen_count && status == TARN_STATUS_OK; i++) {
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)r->chosen[i] + 1);
    tarn__free((*series)->names[i]);
    (*series)->names[i] = NULL;
    status = tarn__strdup(&(*series)->names[i], r->names ? r->names[r->chosen[i]] : number);
  }
  if (status != TARN_STATUS_OK) tarn_series_close(series);
  return status;
}

// All of the text, with a zero byte behind it.
static tarn_status read_text(char **text, size_t *size, tarn__input *input) {
  enum { CHUNK = 1 << 16 };
  size_t capacity = 0;
  for (*text = NULL, *size = 0;;) {
    size_t got;
    TARN_TRY(tarn__grow(text, &capacity, *size + CHUNK + 1, 1));
    TARN_TRY(tarn__input_read(input, *text + *size, capacity - *size - 1, &got));
    *size += got;
    if (got > 0) continue;
    (*text)[*size] = 0;
    return TARN_STATUS_OK;
  }
}

static tarn_status check_format(const tarn_series_format *format) {
  const char d = format->delimiter, point = format->decimal;
  TARN_REQUIRE(!d || !(strchr("+-.\"\r\n", d) || isalnum((unsigned char)d)), USAGE,
               "a delimiter of \"%c\" may stand within a number or a line's end", d);
  TARN_REQUIRE(!point || point == '.' || point == ',', USAGE, "a decimal sign is a point or a comma, not \"%c\"",
               point);
  TARN_REQUIRE(!d || d != point, USAGE, "the delimiter and the decimal sign are both \"%c\"", d);
  return TARN_STATUS_OK;
}

tarn_status tarn_series_read(tarn_series **series, const char *path, const tarn_series_format *format) {
  const tarn_series_format all = {0};
  tarn__input input;
  char *text;
  size_t size;
  *series = NULL;
  TARN_TRY(check_format(format ? format : &all));
  TARN_TRY(tarn__input_open(&input, path));
  const tarn_series_format *f = format ? format : &all;
  reader r = {.path = input.path, .line = 1, .delimiter = f->delimiter, .decimal = f->decimal};
  tarn_status status = read_text(&text, &size, &input);
  tarn__input_close(&input);
  if (status != TARN_STATUS_OK) {
    tarn__free(text);
    return status;
  }
  r.text = size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? text + 3 : text;  // a byte order mark is no text
  r.end = text + size;
  void *cells = NULL;
  status = tarn__alloc(&cells, TARN__MEMORY_OTHER, TARN__SERIES_COLUMNS, sizeof *r.cells);
  r.cells = cells;
  if (status == TARN_STATUS_OK) status = read_lines(&r, f);
  if (status == TARN_STATUS_OK) status = hand_over(&r, series);
  tarn__free(r.values);
  tarn__free(r.names);
  tarn__free(r.chosen);
  tarn__free(cells);
  tarn__free(text);
  return status;
}
