// Minimal pairs of language models: which pairs each run got right, by paradigm.
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "report/test_outputs.h"
#include "run/names.h"
#include "run/run_file.h"

enum { PARADIGMS_MOST = 100000 };

// A run's test.pairs: one line per paradigm: its name, a space, and one digit per pair, 1 for right.
typedef struct answers {
  char *text;  // the file; names and digits end with a zero byte
  const char **names, **digits;
  size_t *sizes;  // number of pairs per paradigm
  size_t count, names_capacity, digits_capacity, sizes_capacity;
} answers;

typedef struct work {
  struct tarn__results_table_memory *table;
  answers *systems;  // (systems)
  size_t *runs;      // (systems) the run of each
  size_t count;
  size_t missing;
} work;

static void answers_close(answers *a) {
  tarn__free(a->text);
  tarn__free(a->names);
  tarn__free(a->digits);
  tarn__free(a->sizes);
  *a = (answers){0};
}

static tarn_status add_line(answers *a, char *line, const char *path) {
  char *space = strrchr(line, ' ');
  TARN_REQUIRE(space && space > line && space[1] && strspn(space + 1, "01") == strlen(space + 1), DATA,
               "%s:%zu: it must be the name of a paradigm, a space, and a digit 0 or 1 for each pair", path,
               a->count + 1);
  TARN_REQUIRE(a->count < PARADIGMS_MOST, DATA, "%s: more than %d paradigms", path, PARADIGMS_MOST);
  TARN_TRY(tarn__grow(&a->names, &a->names_capacity, a->count + 1, sizeof *a->names));
  TARN_TRY(tarn__grow(&a->digits, &a->digits_capacity, a->count + 1, sizeof *a->digits));
  TARN_TRY(tarn__grow(&a->sizes, &a->sizes_capacity, a->count + 1, sizeof *a->sizes));
  *space = '\0';
  a->names[a->count] = line;
  a->digits[a->count] = space + 1;
  a->sizes[a->count++] = strlen(space + 1);
  return TARN_STATUS_OK;
}

static tarn_status read_answers(answers *a, const char *path) {
  size_t size;
  TARN_TRY(tarn__file_read(path, &a->text, &size));
  TARN_REQUIRE(size > 0 && a->text[size - 1] == '\n' && strlen(a->text) == size, DATA,
               "%s: it is cut short or holds a zero byte", path);
  for (char *line = a->text; *line;) {
    char *end = strchr(line, '\n');
    *end = '\0';
    TARN_TRY(add_line(a, line, path));
    line = end + 1;
  }
  return TARN_STATUS_OK;
}

// Accuracy in percent: the mean over paradigms, as in test.json.
static double score(void *user, size_t system, const uint32_t *times) {
  const answers *a = &((const work *)user)->systems[system];
  double sum = 0;
  for (size_t k = 0; k < a->count; k++) {
    int64_t right = 0;
    for (size_t i = 0; i < a->sizes[k]; i++) right += a->digits[k][i] == '1' ? (times ? times[i] : 1) : 0;
    sum += (double)right / (double)a->sizes[k];
    if (times) times += a->sizes[k];
  }
  return 100 * sum / (double)a->count;
}

static tarn_status check_answers(const work *w, const char *path, double expected) {
  const answers *first = &w->systems[0];
  const answers *last = &w->systems[w->count - 1];
  double value = score((void *)(uintptr_t)w, w->count - 1, NULL);
  TARN_REQUIRE(fabs(value - expected) < 1e-6, DATA,
               "%s: its accuracy is %.4f, but " TARN__RUN_TEST " says %.4f: they do not belong together", path, value,
               expected);
  bool same = first->count == last->count;
  for (size_t k = 0; same && k < first->count; k++)
    same = strcmp(first->names[k], last->names[k]) == 0 && first->sizes[k] == last->sizes[k];
  TARN_REQUIRE(same, DATA, "%s: its paradigms are not those of %s", path, w->table->results->runs[w->runs[0]].path);
  return TARN_STATUS_OK;
}

static tarn_status read_run(work *w, size_t index) {
  const tarn_results_run *run = &w->table->results->runs[index];
  const char *path;
  if (run->state != TARN_RESULTS_FINISHED || isnan(run->test_blimp)) return TARN_STATUS_OK;
  TARN_TRY(tarn__join(&path, &w->table->arena, run->path, TARN__RUN_PAIRS));
  if (!tarn__file_exists(path)) {
    w->missing++;
    return TARN_STATUS_OK;
  }
  w->runs[w->count] = index;
  TARN_TRY(read_answers(&w->systems[w->count++], path));
  return check_answers(w, path, run->test_blimp);
}

static tarn_status read_runs(work *w) {
  void *memory;
  size_t count = w->table->results->run_count;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof *w->systems));
  w->systems = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof *w->runs));
  w->runs = memory;
  for (size_t i = 0; i < count; i++) TARN_TRY(read_run(w, i));
  if (w->missing == 0) return TARN_STATUS_OK;
  return tarn__table_note(w->table,
                          "%zu finished runs have an accuracy on minimal pairs, but their " TARN__RUN_PAIRS
                          " is not there "
                          "(`tarn test` writes it): their configurations get no verdict on it",
                          w->missing);
}

tarn_status tarn__test_outputs_blimp(tarn__test_outputs *out, struct tarn__results_table_memory *t) {
  work w = {.table = t};
  size_t pairs = 0;
  tarn_status status = read_runs(&w);
  for (size_t k = 0; status == TARN_STATUS_OK && w.count > 0 && k < w.systems[0].count; k++)
    pairs += w.systems[0].sizes[k];
  if (status == TARN_STATUS_OK)
    status = tarn__test_outputs_resample(out, t, w.runs, w.count, pairs, score, &w, w.count ? w.systems[0].sizes : NULL,
                                         w.count ? w.systems[0].count : 0);
  for (size_t i = 0; i < w.count; i++) answers_close(&w.systems[i]);
  tarn__free(w.systems);
  tarn__free(w.runs);
  return status;
}
