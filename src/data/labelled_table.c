#include "data/labelled_table.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "tarn/text.h"

// The end of the quoted field that begins at `at`, after its closing quote. NULL: there is none.
static const char *end_of_quotes(const char *at, const char *end) {
  for (at++; at < end; at++) {
    if (*at != '"') continue;
    if (at + 1 == end || at[1] != '"') return at + 1;
    at++;
  }
  return NULL;
}

// The next field of a line, up to a delimiter or the end of the line. False after the last one. A quoted field includes
// its quotes; a malformed one ends at the next delimiter.
static bool next_field(tarn__piece *field, const char **at, const char *end, char delimiter) {
  if (!*at) return false;
  const char *from = delimiter != '\t' && *at < end && **at == '"' ? end_of_quotes(*at, end) : NULL;
  if (from && from < end && *from != delimiter) from = NULL;
  if (!from) from = *at;
  const char *border = memchr(from, delimiter, (size_t)(end - from));
  *field = (tarn__piece){*at, (size_t)((border ? border : end) - *at)};
  *at = border ? border + 1 : NULL;
  return true;
}

static int64_t count_fields(const char *text, size_t length, char delimiter) {
  int64_t count = 0;
  const char *at = text;
  tarn__piece field;
  while (next_field(&field, &at, text + length, delimiter)) count++;
  return count;
}

// Removes the quotes of a field; `room` holds the result if it has quotes inside. False: the quotes are malformed.
static tarn_status take_quotes(tarn__piece *field, char **room, size_t *room_size, bool *whole) {
  const char *end = field->text + field->length;
  *whole = true;
  if (field->length == 0 || field->text[0] != '"') return TARN_STATUS_OK;
  *whole = end_of_quotes(field->text, end) == end;
  if (!*whole) return TARN_STATUS_OK;
  field->text++;
  field->length -= 2;
  if (!memchr(field->text, '"', field->length)) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(room, room_size, field->length, 1));
  size_t used = 0;
  for (size_t i = 0; i < field->length; i++) {
    (*room)[used++] = field->text[i];
    i += field->text[i] == '"';
  }
  *field = (tarn__piece){*room, used};
  return TARN_STATUS_OK;
}

static bool is_digits(const char *column) { return *column && strspn(column, "0123456789") == strlen(column); }

// The number of a column, from 1; 0: it is a name.
static int64_t number_of(const char *column) {
  int64_t number = 0;
  if (!is_digits(column) || !tarn_text_integer(&number, column)) return 0;
  return number;
}

// "a, b and 3 more": the names of a header, as far as they fit.
static void list_names(char *out, size_t size, const tarn__labelled_table *t, const char *text, size_t length) {
  const char *at = text, *end = text + length;
  size_t used = 0;
  tarn__piece field;
  out[0] = 0;
  while (next_field(&field, &at, end, t->delimiter)) {
    const int wanted = snprintf(out + used, size - used, "%s%.*s", used ? ", " : "", (int)field.length, field.text);
    if (wanted < 0 || (size_t)wanted >= size - used) {
      memcpy(out + (used < size - 4 ? used : size - 4), "...", 4);
      return;
    }
    used += (size_t)wanted;
  }
}

// Whether a field of the header, with or without quotes, is a name.
static bool is_name(const tarn__piece *field, const char *name, char delimiter) {
  const size_t length = strlen(name);
  if (field->length == length && memcmp(field->text, name, length) == 0) return true;
  return delimiter != '\t' && field->length == length + 2 && field->text[0] == '"' && field->text[length + 1] == '"' &&
         memcmp(field->text + 1, name, length) == 0;
}

// Finds a named column in the header.
static tarn_status find_name(int64_t *place, const tarn__labelled_table *t, const char *name, const char *text,
                             size_t length) {
  char names[256];
  const char *at = text, *end = text + length;
  tarn__piece field;
  int64_t found = 0;
  for (int64_t i = 0; next_field(&field, &at, end, t->delimiter); i++) {
    if (!is_name(&field, name, t->delimiter)) continue;
    *place = i;
    found++;
  }
  list_names(names, sizeof names, t, text, length);
  TARN_REQUIRE(found > 0, DATA, "%s:1: there is no column \"%s\"; the columns are %s%s", t->lines.path, name, names,
               t->fields == 1 ? "; --delimiter says what divides them" : "");
  TARN_REQUIRE(found == 1, DATA, "%s:1: %lld columns are called \"%s\"; give its number", t->lines.path,
               (long long)found, name);
  return TARN_STATUS_OK;
}

static tarn_status find_column(int64_t *place, const tarn__labelled_table *t, const char *column, const char *text,
                               size_t length) {
  const int64_t number = number_of(column);
  if (number == 0) {
    TARN_REQUIRE(column[0] != '0' || !is_digits(column), USAGE, "columns are counted from 1, not %s", column);
    return find_name(place, t, column, text, length);
  }
  TARN_REQUIRE(number <= t->fields, DATA, "%s:1: there is no column %lld; it has %lld%s", t->lines.path,
               (long long)number, (long long)t->fields, t->fields == 1 ? "; --delimiter says what divides them" : "");
  *place = number - 1;
  return TARN_STATUS_OK;
}

static tarn_status find_columns(tarn__labelled_table *t, const char *text, size_t length) {
  const tarn__labelled_columns *c = &t->columns;
  t->fields = count_fields(text, length, t->delimiter);
  TARN_TRY(find_column(&t->label_at, t, c->label, text, length));
  TARN_TRY(find_column(&t->text_at, t, c->text, text, length));
  t->pair_at = -1;
  if (c->pair) TARN_TRY(find_column(&t->pair_at, t, c->pair, text, length));
  TARN_REQUIRE(t->label_at != t->text_at && t->label_at != t->pair_at && t->text_at != t->pair_at, USAGE,
               "one column is given for two things; label, text and pair each have their own");
  return TARN_STATUS_OK;
}

// Examines the first line, which sets the number of fields and may be a header; its columns also decide the delimiter.
static tarn_status begin(tarn__labelled_table *t, const char *text, size_t length) {
  t->delimiter = t->columns.delimiter ? t->columns.delimiter : '\t';
  if (t->columns.delimiter || memchr(text, '\t', length)) return find_columns(t, text, length);
  bool fits[2];
  for (int i = 0; i < 2; i++) {
    t->delimiter = i ? ';' : ',';
    fits[i] = find_columns(t, text, length) == TARN_STATUS_OK;
  }
  TARN_REQUIRE(!fits[0] || !fits[1], DATA,
               "%s:1: the first line has these columns with commas and with semicolons between them; say which with "
               "--delimiter",
               t->lines.path);
  // If neither fits, the failure is that of the delimiter that occurs.
  const bool semicolons = fits[1] || (!fits[0] && memchr(text, ';', length) && !memchr(text, ',', length));
  const bool commas = !semicolons && memchr(text, ',', length);
  t->delimiter = semicolons ? ';' : commas ? ',' : '\t';
  return find_columns(t, text, length);
}

static bool has_header(const tarn__labelled_columns *c) {
  return c->header || !number_of(c->label) || !number_of(c->text) || (c->pair && !number_of(c->pair));
}

// `which`: the index of the field's room.
static tarn_status take_field(tarn__piece *field, tarn__labelled_table *t, int which, int64_t column, const char *what,
                              const tarn__piece *all) {
  *field = (tarn__piece){0};
  if (column < 0) return TARN_STATUS_OK;
  const char *at = all->text, *end = all->text + all->length;
  bool whole = true;
  for (int64_t i = 0; i <= column && next_field(field, &at, end, t->delimiter); i++) continue;
  if (t->delimiter != '\t') TARN_TRY(take_quotes(field, &t->rooms[which], &t->room_sizes[which], &whole));
  TARN_REQUIRE(whole, DATA,
               "%s:%lld: the %s (column %lld) begins with a quote and must end with one, on the same line; quotes "
               "inside are doubled",
               t->lines.path, (long long)t->lines.number, what, (long long)column + 1);
  size_t blank = 0;
  while (blank < field->length && field->text[blank] == ' ') blank++;
  TARN_REQUIRE(blank < field->length, DATA, "%s:%lld: the %s (column %lld) is empty", t->lines.path,
               (long long)t->lines.number, what, (long long)column + 1);
  return TARN_STATUS_OK;
}

static const char *name_of(char delimiter) {
  return delimiter == ',' ? "comma" : delimiter == ';' ? "semicolon" : delimiter == '|' ? "bar" : "tab";
}

tarn_status tarn__labelled_table_next(tarn__labelled_table *t) {
  tarn__piece all;
  TARN_TRY(tarn__lines_next(&t->lines, &all.text, &all.length));
  if (all.text && t->fields == 0) {
    TARN_TRY(begin(t, all.text, all.length));
    if (has_header(&t->columns)) TARN_TRY(tarn__lines_next(&t->lines, &all.text, &all.length));
  }
  t->ended = !all.text;
  if (t->ended) return TARN_STATUS_OK;
  const int64_t fields = count_fields(all.text, all.length, t->delimiter);
  TARN_REQUIRE(fields >= t->fields, DATA, "%s:%lld: %lld field%s, but the first line has %lld: fields are missing",
               t->lines.path, (long long)t->lines.number, (long long)fields, fields == 1 ? "" : "s",
               (long long)t->fields);
  TARN_REQUIRE(fields == t->fields, DATA,
               "%s:%lld: %lld fields, but the first line has %lld: is there a %s within a "
               "field%s?",
               t->lines.path, (long long)t->lines.number, (long long)fields, (long long)t->fields,
               name_of(t->delimiter), t->delimiter == '\t' ? "" : " without quotes");
  TARN_TRY(take_field(&t->label, t, 0, t->label_at, "label", &all));
  TARN_TRY(take_field(&t->text, t, 1, t->text_at, "text", &all));
  return take_field(&t->pair, t, 2, t->pair_at, "second text", &all);
}

tarn_status tarn__labelled_table_open(tarn__labelled_table *table, const char *path,
                                      const tarn__labelled_columns *columns, bool strict) {
  *table = (tarn__labelled_table){.columns = *columns};
  return tarn__lines_open(&table->lines, path, strict);
}

void tarn__labelled_table_close(tarn__labelled_table *table) {
  tarn__lines_close(&table->lines);
  for (int i = 0; i < 3; i++) tarn__free(table->rooms[i]);
  *table = (tarn__labelled_table){0};
}
