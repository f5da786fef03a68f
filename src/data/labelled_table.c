#include "data/labelled_table.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "tarn/text.h"

// The next field of a line: up to a tab or the line's end. False behind the last one.
static bool next_field(tarn__piece *field, const char **at, const char *end) {
  if (!*at) return false;
  const char *tab = memchr(*at, '\t', (size_t)(end - *at));
  *field = (tarn__piece){*at, (size_t)((tab ? tab : end) - *at)};
  *at = tab ? tab + 1 : NULL;
  return true;
}

static int64_t count_fields(const char *text, size_t length) {
  int64_t count = 1;
  for (size_t i = 0; i < length; i++) count += text[i] == '\t';
  return count;
}

static bool is_digits(const char *column) { return *column && strspn(column, "0123456789") == strlen(column); }

// The number of a column from 1; 0: it is given by name.
static int64_t number_of(const char *column) {
  int64_t number = 0;
  if (!is_digits(column) || !tarn_text_integer(&number, column)) return 0;
  return number;
}

// "a, b and 3 more": the names of a header, as far as they fit.
static void list_names(char *out, size_t size, const char *text, size_t length) {
  const char *at = text, *end = text + length;
  size_t used = 0;
  tarn__piece field;
  out[0] = 0;
  while (next_field(&field, &at, end)) {
    const int wanted = snprintf(out + used, size - used, "%s%.*s", used ? ", " : "", (int)field.length, field.text);
    if (wanted < 0 || (size_t)wanted >= size - used) {
      memcpy(out + (used < size - 4 ? used : size - 4), "...", 4);
      return;
    }
    used += (size_t)wanted;
  }
}

// Finds a column that is given by name in the header.
static tarn_status find_name(int64_t *place, const tarn__labelled_table *t, const char *name, const char *text,
                             size_t length) {
  char names[256];
  const char *at = text, *end = text + length;
  tarn__piece field;
  int64_t found = 0;
  for (int64_t i = 0; next_field(&field, &at, end); i++) {
    if (field.length != strlen(name) || memcmp(field.text, name, field.length) != 0) continue;
    *place = i;
    found++;
  }
  list_names(names, sizeof names, text, length);
  TARN_REQUIRE(found > 0, DATA, "%s:1: there is no column \"%s\"; the columns are %s", t->lines.path, name, names);
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
  TARN_REQUIRE(number <= t->fields, DATA, "%s:1: there is no column %lld; it has %lld", t->lines.path,
               (long long)number, (long long)t->fields);
  *place = number - 1;
  return TARN_STATUS_OK;
}

// Looks at the first line, which says how many fields there are and may be a header.
static tarn_status begin(tarn__labelled_table *t, const char *text, size_t length) {
  const tarn__labelled_columns *c = &t->columns;
  t->fields = count_fields(text, length);
  TARN_TRY(find_column(&t->label_at, t, c->label, text, length));
  TARN_TRY(find_column(&t->text_at, t, c->text, text, length));
  t->pair_at = -1;
  if (c->pair) TARN_TRY(find_column(&t->pair_at, t, c->pair, text, length));
  TARN_REQUIRE(t->label_at != t->text_at && t->label_at != t->pair_at && t->text_at != t->pair_at, USAGE,
               "one column is given for two things; label, text and pair each have their own");
  return TARN_STATUS_OK;
}

static bool has_header(const tarn__labelled_columns *c) {
  return c->header || !number_of(c->label) || !number_of(c->text) || (c->pair && !number_of(c->pair));
}

static tarn_status take_field(tarn__piece *field, const tarn__labelled_table *t, int64_t column, const char *what,
                              const tarn__piece *all) {
  if (column < 0) {
    *field = (tarn__piece){0};
    return TARN_STATUS_OK;
  }
  const char *at = all->text, *end = all->text + all->length;
  for (int64_t i = 0; i <= column && next_field(field, &at, end); i++) continue;
  size_t blank = 0;
  while (blank < field->length && field->text[blank] == ' ') blank++;
  TARN_REQUIRE(blank < field->length, DATA, "%s:%lld: the %s (column %lld) is empty", t->lines.path,
               (long long)t->lines.number, what, (long long)column + 1);
  return TARN_STATUS_OK;
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
  const int64_t fields = count_fields(all.text, all.length);
  TARN_REQUIRE(fields == t->fields, DATA, "%s:%lld: %lld field%s, but the first line has %lld: %s", t->lines.path,
               (long long)t->lines.number, (long long)fields, fields == 1 ? "" : "s", (long long)t->fields,
               fields > t->fields ? "is there a tab within a field?" : "fields are missing");
  TARN_TRY(take_field(&t->label, t, t->label_at, "label", &all));
  TARN_TRY(take_field(&t->text, t, t->text_at, "text", &all));
  return take_field(&t->pair, t, t->pair_at, "second text", &all);
}

tarn_status tarn__labelled_table_open(tarn__labelled_table *table, const char *path,
                                      const tarn__labelled_columns *columns, bool strict) {
  *table = (tarn__labelled_table){.columns = *columns};
  return tarn__lines_open(&table->lines, path, strict);
}

void tarn__labelled_table_close(tarn__labelled_table *table) {
  tarn__lines_close(&table->lines);
  *table = (tarn__labelled_table){0};
}
