#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicode/utf8.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/codepoints.h"
#include "tarn/score.h"
#include "text/text_check.h"

typedef struct list {
  char **items;
  size_t count, capacity;
} list;

static void list_close(list *lines) {
  for (size_t i = 0; i < lines->count; i++) tarn__free(lines->items[i]);
  tarn__free(lines->items);
  *lines = (list){0};
}

static size_t without_space(const char *line, size_t length) {
  while (length > 0) {
    // Back to the lead byte, then forwards: ICU's way back wants offsets of 32 bits.
    size_t before = length - 1;
    while (before > 0 && length - before < 4 && U8_IS_TRAIL(line[before])) before--;
    size_t end = before;
    UChar32 c;
    U8_NEXT(line, end, length, c);
    if (c < 0 || end != length || !tarn__is_space(c)) break;
    length = before;
  }
  return length;
}

static tarn_status add(list *lines, const char *line, size_t length) {
  TARN_TRY(tarn__grow(&lines->items, &lines->capacity, lines->count + 1, sizeof *lines->items));
  char *copy;
  size_t kept = without_space(line, length);
  TARN_TRY(tarn__strndup(&copy, line, kept));
  lines->items[lines->count++] = copy;
  return TARN_STATUS_OK;
}

static tarn_status read_lines(list *lines, FILE *file, const char *name) {
  char *buffer = NULL;  // getline's own, hence freed by free()
  size_t capacity = 0;
  tarn_status status = TARN_STATUS_OK;
  errno = 0;
  for (ssize_t got; status == TARN_STATUS_OK && (got = getline(&buffer, &capacity, file)) >= 0;) {
    status = tarn__text_check(name, (int64_t)lines->count + 1, buffer, (size_t)got, (size_t)got);
    // sacreBLEU keeps it as well, so that its scores and ours stay the same.
    if (lines->count == 0 && got >= 3 && memcmp(buffer, "\xEF\xBB\xBF", 3) == 0)
      tarn__log(TARN_LOG_WARNING, "%s: its first line begins with a byte order mark, which is scored as part of it",
                name);
    if (status == TARN_STATUS_OK) status = add(lines, buffer, (size_t)got);
  }
  if (status == TARN_STATUS_OK && !feof(file))
    status =
        tarn__fail(errno == ENOMEM ? TARN_STATUS_MEMORY : TARN_STATUS_IO, "%s: cannot read: %s", name, strerror(errno));
  free(buffer);
  return status;
}

tarn_status tarn_score_lines_open(tarn_score_lines *lines, const char *path) {
  *lines = (tarn_score_lines){0};
  list read = {0};
  if (path && strcmp(path, "-") == 0) path = NULL;
  const char *name = path ? path : "standard input";
  TARN_TRY(tarn__strdup(&lines->name, name));
  FILE *file = path ? fopen(path, "rb") : stdin;
  tarn_status status = TARN_STATUS_OK;
  if (!file) status = tarn__fail(TARN_STATUS_IO, "%s: cannot read: %s", name, strerror(errno));
  if (file) status = read_lines(&read, file, name);
  if (file && path) fclose(file);
  if (status != TARN_STATUS_OK) {
    list_close(&read);
    tarn_score_lines_close(lines);
    return status;
  }
  lines->items = (const char *const *)read.items;
  lines->count = read.count;
  return TARN_STATUS_OK;
}

void tarn_score_lines_close(tarn_score_lines *lines) {
  if (!lines) return;
  list owned = {(char **)(uintptr_t)lines->items, lines->count, lines->count};
  list_close(&owned);
  tarn__free(lines->name);
  *lines = (tarn_score_lines){0};
}

tarn_status tarn_score_lines_match(const tarn_score_lines *hypotheses, const tarn_score_lines *references) {
  TARN_REQUIRE(hypotheses->count == references->count, DATA,
               "%s has %zu lines but %s has %zu: they must correspond line by line", hypotheses->name,
               hypotheses->count, references->name, references->count);
  return TARN_STATUS_OK;
}
