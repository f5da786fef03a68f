// Reads tables of numbers, and infers their delimiter and decimal mark.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/hash.h"
#include "base/input.h"
#include "base/memory.h"
#include "series/table.h"

// The form of a table.
typedef struct marks {
  char delimiter, decimal;
} marks;

// The text is cut into cells, each ended by a zero byte.
typedef struct reader {
  const char *path;
  marks form;
  bool found;                 // the form was inferred, not given by the caller
  bool header;                // the first line is one
  int64_t width;              // cells of a line
  int64_t commas, thousands;  // numbers with a decimal comma, and those that may be thousands
  char *text, *end;
  int64_t line;     // of the next line, from 1
  char **cells;     // [TARN__SERIES_COLUMNS] of the last line
  int64_t count;    // cells of the last line
  int64_t *chosen;  // [chosen_count] columns from 0
  int64_t chosen_count;
  char **names;  // [count of the first line]; those of the header, which point into the text, or NULL
  double *values;
  size_t used, capacity;
} reader;

static void trim(char **cell) {
  char *begin = *cell + strspn(*cell, " \t"), *last = begin + strlen(begin);
  while (last > begin && strchr(" \t\r", last[-1])) last--;
  *last = 0;
  *cell = begin;
}

// Characters around cells that are not part of them.
static const char *blanks(char delimiter) { return delimiter == '\t' ? " \r" : " \t\r"; }

// The beginning of the next cell, or NULL after the last one. Any number of blanks is one delimiter, and none at the
// end of a line.
static char *behind_border(char *border, char delimiter) {
  if (delimiter != ' ') return *border == delimiter ? border + 1 : NULL;
  border += strspn(border, blanks(delimiter));
  return *border ? border : NULL;
}

// Takes a quoted cell, in which "" is a quote and a delimiter is text (RFC 4180), and moves past the delimiter after
// it. False: it is unterminated, or something follows it.
static bool take_quoted(char **cell, char **at, char delimiter) {
  char *from = *at + 1, *to = from;
  *cell = to;
  for (; *from && (*from != '"' || from[1] == '"'); from++) {
    if (*from == '"') from++;
    *to++ = *from;
  }
  if (*from != '"') return false;
  from++;
  const size_t around = strspn(from, blanks(delimiter));
  const bool ends = !from[around] || from[around] == delimiter || (delimiter == ' ' && around > 0);
  *at = behind_border(delimiter == ' ' ? from : from + around, delimiter);
  *to = 0;
  return ends;
}

static void take_plain(char **cell, char **at, char delimiter) {
  char *border = *at + strcspn(*at, (char[]){delimiter, delimiter == ' ' ? '\t' : 0, 0});
  *cell = *at;
  *at = behind_border(border, delimiter);
  *border = 0;
  trim(cell);
}

// Splits the next line into r->cells. False at the end of the text; empty lines at the end do not count.
static tarn_status next_line(reader *r, bool *more) {
  *more = r->text + strspn(r->text, " \t\r\n") < r->end;
  if (!*more) return TARN_STATUS_OK;
  char *stop = memchr(r->text, '\n', (size_t)(r->end - r->text));
  if (!stop) stop = r->end;
  TARN_REQUIRE(strnlen(r->text, (size_t)(stop - r->text)) == (size_t)(stop - r->text), DATA,
               "%s:%" PRId64 ": a zero byte in a text file", r->path, r->line);
  *stop = 0;
  r->count = 0;
  const char delimiter = r->form.delimiter;
  for (char *at = r->text; at;) {
    TARN_REQUIRE(r->count < TARN__SERIES_COLUMNS, DATA, "%s:%" PRId64 ": more than %d columns", r->path, r->line,
                 TARN__SERIES_COLUMNS);
    at += strspn(at, blanks(delimiter));
    if (*at == '"') {
      TARN_REQUIRE(take_quoted(&r->cells[r->count], &at, delimiter), DATA,
                   "%s:%" PRId64 ": column %" PRId64 ": a cell that begins with a quote must end with one", r->path,
                   r->line, r->count + 1);
      r->count++;
      continue;
    }
    take_plain(&r->cells[r->count++], &at, delimiter);
  }
  r->text = stop < r->end ? stop + 1 : r->end;
  r->line++;
  return TARN_STATUS_OK;
}

// strtod() accepts these too.
static bool is_hexadecimal(const char *cell) {
  cell += strspn(cell, "+-");
  return cell[0] == '0' && (cell[1] == 'x' || cell[1] == 'X');
}

// Takes the first line as a header, or leaves it as numbers.
static tarn_status read_header(reader *r, tarn_series_header header) {
  bool any = false;
  double value;
  for (int64_t c = 0; c < r->count; c++)
    any |= tarn__decimal_read(&value, r->cells[c], r->form.decimal) || !*r->cells[c];
  r->header = header == TARN_SERIES_HEADER_YES || (header == TARN_SERIES_HEADER_AUTO && !any);
  if (!r->header) return TARN_STATUS_OK;
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

static tarn_status read_row(reader *r) {
  int64_t line = r->line - 1;
  TARN_REQUIRE(r->count == r->width, DATA, "%s:%" PRId64 ": %" PRId64 " columns, expected %" PRId64, r->path, line,
               r->count, r->width);
  TARN_TRY(tarn__grow(&r->values, &r->capacity, r->used + (size_t)r->chosen_count, sizeof *r->values));
  for (int64_t i = 0; i < r->chosen_count; i++) {
    int64_t c = r->chosen[i];
    const char *cell = r->cells[c], *name = r->names ? r->names[c] : "";
    TARN_REQUIRE(*cell, DATA, "%s:%" PRId64 ": column %" PRId64 "%s%s: the number is missing", r->path, line, c + 1,
                 *name ? " " : "", name);
    TARN_REQUIRE(!is_hexadecimal(cell), DATA,
                 "%s:%" PRId64 ": column %" PRId64 "%s%s: \"%.40s\" is hexadecimal, expected a decimal number", r->path,
                 line, c + 1, *name ? " " : "", name, cell);
    double *value = &r->values[r->used];
    TARN_REQUIRE(tarn__decimal_read(value, cell, r->form.decimal) && isfinite(*value), DATA,
                 "%s:%" PRId64 ": column %" PRId64 "%s%s: \"%.40s\" is no finite number%s", r->path, line, c + 1,
                 *name ? " " : "", name, cell,
                 r->found && strpbrk(cell, ",;\t| ") ? "; --delimiter and --decimal say how the table is written" : "");
    r->used++;
    if (r->form.decimal == ',' && strchr(cell, ',')) {
      r->commas++;
      r->thousands += tarn__decimal_may_be_thousands(cell);
    }
  }
  return TARN_STATUS_OK;
}

static tarn_status read_lines(reader *r, const tarn_series_format *format) {
  bool more;
  TARN_TRY(next_line(r, &more));
  TARN_REQUIRE(more, DATA, "%s: there are no rows", r->path);
  r->width = r->count;
  TARN_TRY(read_header(r, format->header));
  TARN_TRY(choose(r, format->columns));
  if (!r->header) TARN_TRY(read_row(r));
  for (;;) {
    TARN_TRY(next_line(r, &more));
    if (!more) break;
    TARN_TRY(read_row(r));
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

// The result of reading the first lines of a text in some form.
typedef struct trial {
  bool works, header;
  bool thousands;  // all decimal commas may be thousands separators
  int64_t width;
  size_t numbers;  // read up to the first failure
  uint64_t hash;   // of them
} trial;

static void forget(reader *r) {
  tarn__free(r->values);
  tarn__free(r->names);
  tarn__free(r->chosen);
  r->values = NULL;
  r->names = NULL;
  r->chosen = NULL;
  r->used = r->capacity = 0;
  r->chosen_count = 0;
}

// Whether a comma stands outside quotes in the first line.
static bool has_commas(const reader *r) {
  bool quoted = false;
  for (const char *c = r->text; c < r->end && *c != '\n'; c++) {
    if (*c == '"') quoted = !quoted;
    if (*c == ',' && !quoted) return true;
  }
  return false;
}

// Reads a copy of the first lines in this form. A single column whose header has commas is refused.
static tarn_status try_form(trial *t, const reader *whole, size_t size, marks form, const tarn_series_format *format) {
  reader r = *whole;
  void *copy;
  TARN_TRY(tarn__alloc(&copy, TARN__MEMORY_OTHER, size + 1, 1));
  memcpy(copy, whole->text, size);
  r.text = copy;
  r.end = r.text + size;
  r.form = form;
  const tarn_status status = read_lines(&r, format);
  const uint64_t hash = r.used ? tarn__hash64(r.values, r.used * sizeof *r.values, 0) : 0;
  *t = (trial){.works = status == TARN_STATUS_OK,
               .header = r.header,
               .thousands = r.commas > 0 && r.thousands == r.commas,
               .width = r.width,
               .numbers = r.used,
               .hash = hash};
  if (form.decimal == ',' && r.width == 1 && r.header && has_commas(whole)) *t = (trial){0};
  forget(&r);
  tarn__free(copy);
  return status == TARN_STATUS_MEMORY ? status : TARN_STATUS_OK;
}

// The bytes of the lines from which the form is inferred: at least two lines, and no more than necessary.
static size_t first_lines(const reader *r) {
  enum { ENOUGH = 1 << 18, LINES = 1000 };
  const char *at = r->text;
  for (int line = 0; at < r->end && line < LINES && (line < 2 || at - r->text < ENOUGH); line++) {
    const char *stop = memchr(at, '\n', (size_t)(r->end - at));
    at = stop ? stop + 1 : r->end;
  }
  return (size_t)(at - r->text);
}

// "2 columns with commas between them": a line in this form.
static void describe(char out[80], const marks *form, const trial *t) {
  const char *mark = form->delimiter == ',' ? "commas" : form->delimiter == ';' ? "semicolons" : "tabs";
  const char *decimal = form->decimal == ',' ? " and decimal commas" : "";
  if (t->width == 1)
    snprintf(out, 80, "one column%s", *decimal ? " with decimal commas" : "");
  else
    snprintf(out, 80, "%" PRId64 " columns with %s between them%s", t->width, mark, decimal);
}

static tarn_status fail_ambiguous(const reader *r, const marks *a, const trial *of_a, const marks *b,
                                  const trial *of_b) {
  char first[80], second[80];
  const size_t length = strcspn(r->text, "\r\n");
  describe(first, a, of_a);
  describe(second, b, of_b);
  return tarn__fail(TARN_STATUS_DATA, "%s:1: \"%.*s\" may be %s, or %s; say which with --delimiter or --decimal",
                    r->path, (int)(length < 60 ? length : 60), r->text, first, second);
}

static bool goes_further(const trial *a, const trial *b) {
  if (a->works || a->numbers != b->numbers) return a->works || a->numbers > b->numbers;
  return a->width > b->width;
}

// Sets the form that reads the first lines. If several do with the same numbers, any of them; with different numbers,
// commas in a header are delimiters. If none does, the one that gets furthest, whose failure says what is wrong. Commas
// both between columns and in quoted numbers are tried last.
static tarn_status find_form(reader *r, const tarn_series_format *format) {
  static const marks FORMS[] = {{',', '.'}, {';', '.'}, {';', ','}, {'\t', '.'}, {'\t', ','}, {',', ','}};
  const bool other = format->delimiter && !strchr(",;\t", format->delimiter);
  const size_t size = first_lines(r);
  marks best = {0};
  trial of_best = {0};
  r->found = !format->delimiter || !format->decimal;
  for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
    marks form = FORMS[i];
    trial t;
    if (other && form.delimiter == ',') form.delimiter = format->delimiter;
    if ((format->delimiter && form.delimiter != format->delimiter) ||
        (format->decimal && form.decimal != format->decimal) ||
        (of_best.works && i + 1 == sizeof FORMS / sizeof *FORMS))
      continue;
    TARN_TRY(try_form(&t, r, size, form, format));
    const bool differs = of_best.works && t.works && (t.width != of_best.width || t.hash != of_best.hash);
    if (differs && !(best.delimiter == ',' && (of_best.header || t.header) && has_commas(r)))
      return fail_ambiguous(r, &best, &of_best, &form, &t);
    if (best.delimiter && (of_best.works || !goes_further(&t, &of_best))) continue;
    best = form;
    of_best = t;
  }
  TARN_REQUIRE(
      !of_best.works || !of_best.thousands || format->decimal, DATA,
      "%s: all commas in its numbers have three digits behind them: they may be marks of thousands, or decimal "
      "commas; say the latter with --decimal comma",
      r->path);
  r->form = best;
  return TARN_STATUS_OK;
}

static tarn_status check_format(const tarn_series_format *format) {
  TARN_REQUIRE(!format->delimiter || strchr(",;\t| ", format->delimiter), USAGE,
               "columns are divided by a comma, a semicolon, a tab, a bar or blanks, not by \"%c\"", format->delimiter);
  TARN_REQUIRE(!format->decimal || strchr(".,", format->decimal), USAGE,
               "the decimal mark is a point or a comma, not \"%c\"", format->decimal);
  return TARN_STATUS_OK;
}

// The whole text, with a final zero byte.
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

tarn_status tarn_series_read(tarn_series **series, const char *path, const tarn_series_format *format) {
  const tarn_series_format all = {0};
  tarn__input input;
  char *text;
  size_t size;
  *series = NULL;
  if (!format) format = &all;
  TARN_TRY(check_format(format));
  TARN_TRY(tarn__input_open(&input, path));
  reader r = {.path = input.path, .line = 1};
  tarn_status status = read_text(&text, &size, &input);
  tarn__input_close(&input);
  if (status != TARN_STATUS_OK) {
    tarn__free(text);
    return status;
  }
  r.text = size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? text + 3 : text;  // without a byte order mark
  r.end = text + size;
  void *cells = NULL;
  status = tarn__alloc(&cells, TARN__MEMORY_OTHER, TARN__SERIES_COLUMNS, sizeof *r.cells);
  r.cells = cells;
  if (status == TARN_STATUS_OK) status = find_form(&r, format);
  if (status == TARN_STATUS_OK) status = read_lines(&r, format);
  if (status == TARN_STATUS_OK) status = hand_over(&r, series);
  forget(&r);
  tarn__free(cells);
  tarn__free(text);
  return status;
}
