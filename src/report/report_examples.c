// Example translations: sentences at equal distances, so nobody selects them.
#include <stdio.h>

#include "base/file.h"
#include "report/report_write.h"
#include "run/names.h"
#include "run/run_file.h"
#include "tarn/score.h"

enum { SHOWN = 600 };  // maximum bytes of a sentence

// The representative run of a group: its first finished one with translations.
static const tarn_results_run *translated(const tarn__report *view, const tarn_results_group *group, const char **path,
                                          tarn__arena *arena, tarn_status *status) {
  for (size_t i = 0; i < group->run_count && *status == TARN_STATUS_OK; i++) {
    const tarn_results_run *run = &view->results->runs[group->runs[i]];
    if (run->state != TARN_RESULTS_FINISHED || !run->test_source || !run->test_reference) continue;
    *status = tarn__join(path, arena, run->path, TARN__RUN_HYPOTHESES);
    if (*status == TARN_STATUS_OK && tarn__file_exists(*path)) return run;
  }
  return NULL;
}

static const char *shown(tarn__report *view, const char *line) {
  int length = 0;
  while (line[length] && length < SHOWN) length++;
  if (!line[length]) return tarn__report_text(view, "%s", line);
  while (length > 0 && ((unsigned char)line[length] & 0xc0) == 0x80) length--;
  return tarn__report_text(view, "%.*s \xE2\x80\xA6", length, line);
}

// The indices of the sentences, from 0.
static size_t place(size_t index, size_t count) { return (2 * index + 1) * count / (2 * TARN__EXAMPLES); }

// Adds a line to every example, from a file of `count` sentences; with another number it is not the test's file.
static tarn_status add_lines(tarn__examples *e, tarn__report *view, const char *name, const char *path, size_t count) {
  tarn_score_lines lines;
  TARN_TRY(tarn_score_lines_open(&lines, path));
  if (lines.count == count) {
    for (size_t i = 0; i < e->count; i++) e->items[i].texts[e->lines] = shown(view, lines.items[place(i, count)]);
    e->names[e->lines++] = name;
  }
  tarn_score_lines_close(&lines);
  return view->status;
}

static tarn_status add_models(tarn__examples *e, tarn__report *view, size_t count) {
  for (size_t g = 0; g < view->count; g++) {
    const char *path;
    tarn_status status = TARN_STATUS_OK;
    const tarn_results_run *run = translated(view, view->entries[g].group, &path, &view->arena, &status);
    TARN_TRY(status);
    if (!run) continue;
    const char *name = tarn__report_text(view, "%s, seed %lld", view->entries[g].group->name, (long long)run->seed);
    TARN_TRY(add_lines(e, view, name, path, count));
  }
  return view->status;
}

tarn_status tarn__report_examples(tarn__examples *e, tarn__report *view) {
  const tarn_results_run *first = NULL;
  const char *path;
  void *memory;
  tarn_status status = TARN_STATUS_OK;
  *e = (tarn__examples){0};
  for (size_t g = 0; g < view->count && !first; g++)
    first = translated(view, view->entries[g].group, &path, &view->arena, &status);
  TARN_TRY(status);
  if (!first || first->test_sentences < 1 || !tarn__file_exists(first->test_source) ||
      !tarn__file_exists(first->test_reference))
    return TARN_STATUS_OK;
  const size_t count = (size_t)first->test_sentences;
  TARN_TRY(tarn__arena_alloc(&view->arena, &memory, view->count + 2, sizeof *e->names));
  e->names = memory;
  e->count = count < TARN__EXAMPLES ? 1 : TARN__EXAMPLES;
  for (size_t i = 0; i < e->count; i++) {
    TARN_TRY(tarn__arena_alloc(&view->arena, &memory, view->count + 2, sizeof *e->items[i].texts));
    e->items[i].texts = memory;
  }
  TARN_TRY(add_lines(e, view, "source", first->test_source, count));
  TARN_TRY(add_lines(e, view, "reference", first->test_reference, count));
  if (e->lines == 2) TARN_TRY(add_models(e, view, count));
  if (e->lines < 3) e->count = 0;
  e->caption = tarn__report_text(view,
                                 "%zu of the %zu sentences of %s, taken at even distances rather than chosen by hand, "
                                 "with the translations by the first run of each model.",
                                 e->count, count, first->test_source);
  return view->status;
}
