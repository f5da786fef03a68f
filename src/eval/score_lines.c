#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/codepoints.h"
#include "tarn/score.h"
#include "text/lines.h"

typedef struct list {
  char **items;
  size_t count, capacity;
} list;

static void list_close(list *lines) {
  for (size_t i = 0; i < lines->count; i++) tarn__free(lines->items[i]);
  tarn__free(lines->items);
  *lines = (list){0};
}

static tarn_status add(list *lines, const char *line, size_t length) {
  TARN_TRY(tarn__grow(&lines->items, &lines->capacity, lines->count + 1, sizeof *lines->items));
  char *copy;
  size_t kept = tarn__rstrip(line, length);
  TARN_TRY(tarn__strndup(&copy, line, kept));
  lines->items[lines->count++] = copy;
  return TARN_STATUS_OK;
}

static tarn_status read_lines(list *read, tarn__lines *lines) {
  for (;;) {
    const char *line;
    size_t length;
    TARN_TRY(tarn__lines_next(lines, &line, &length));
    if (!line) return TARN_STATUS_OK;
    // sacreBLEU keeps it too, so its scores and ours remain equal.
    if (read->count == 0 && length >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0)
      tarn__log(TARN_LOG_WARNING, "%s: its first line begins with a byte order mark, which is scored as part of it",
                lines->path);
    TARN_TRY(add(read, line, length));
  }
}

tarn_status tarn_score_lines_open(tarn_score_lines *lines, const char *path) {
  *lines = (tarn_score_lines){0};
  list read = {0};
  tarn__lines text;
  tarn_status status = tarn__lines_open(&text, path ? path : "-", false);
  text.raw = text.verbatim = true;
  if (status == TARN_STATUS_OK) status = tarn__strdup(&lines->name, text.path);
  if (status == TARN_STATUS_OK) status = read_lines(&read, &text);
  tarn__lines_close(&text);
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
