// Minimal pairs: a folder of JSON-lines files, one paradigm each.
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_io.h"
#include "base/memory.h"
#include "base/work.h"
#include "eval/wilson.h"
#include "score/lm_text.h"
#include "text/lines.h"

enum { MOST_PAIRS = 10000000 };

struct tarn__minimal_pairs_memory {
  tarn__arena arena;
};

typedef struct task {
  tarn_lm *lm;
  const char *folder;
  tarn__arena *arena;  // of the result
  char **names;        // files, sorted, without .jsonl
  size_t count, capacity;
  // The pairs of a file: alternating good and bad sentences.
  tarn__arena texts;
  const char **lines;
  size_t *lengths, lines_capacity, lengths_capacity, line_count;
  int64_t *numbers;  // of a pair: its line in the file
  size_t numbers_capacity;
  tarn_lm_line *scores;
  size_t scores_capacity;
} task;

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tarn_status list_files(task *t) {
  static const char suffix[] = ".jsonl";
  DIR *folder = opendir(t->folder);
  TARN_REQUIRE(folder, IO, "%s: cannot read the folder: %s", t->folder, strerror(errno));
  tarn_status status = TARN_STATUS_OK;
  for (struct dirent *entry; status == TARN_STATUS_OK && (entry = readdir(folder));) {
    size_t length = strlen(entry->d_name);
    if (length <= strlen(suffix) || strcmp(entry->d_name + length - strlen(suffix), suffix) != 0) continue;
    entry->d_name[length - strlen(suffix)] = '\0';
    status = tarn__grow(&t->names, &t->capacity, t->count + 1, sizeof *t->names);
    if (status == TARN_STATUS_OK) status = tarn__arena_strdup(t->arena, &t->names[t->count], entry->d_name);
    t->count += status == TARN_STATUS_OK;
  }
  closedir(folder);
  TARN_TRY(status);
  TARN_REQUIRE(t->count > 0, DATA, "%s: there is no file *.jsonl of minimal pairs", t->folder);
  qsort(t->names, t->count, sizeof *t->names, compare_names);
  return TARN_STATUS_OK;
}

// Adds a text of the current object.
static tarn_status add_text(task *t, const json_t *object, const char *key) {
  const json_t *text = json_object_get(object, key);
  TARN_REQUIRE(json_is_string(text), DATA, "expected a text \"%s\"", key);
  size_t length = json_string_length(text);
  TARN_REQUIRE(strspn(json_string_value(text), " \t\r\n") < length, DATA, "the text \"%s\" is empty", key);
  void *memory;
  TARN_TRY(tarn__grow(&t->lines, &t->lines_capacity, t->line_count + 1, sizeof *t->lines));
  TARN_TRY(tarn__grow(&t->lengths, &t->lengths_capacity, t->line_count + 1, sizeof *t->lengths));
  TARN_TRY(tarn__arena_alloc(&t->texts, &memory, length + 1, 1));
  memcpy(memory, json_string_value(text), length);
  t->lines[t->line_count] = memory;
  t->lengths[t->line_count++] = length;
  return TARN_STATUS_OK;
}

static tarn_status copy_optional(task *t, char **out, const json_t *object, const char *key) {
  const json_t *text = json_object_get(object, key);
  return tarn__arena_strdup(t->arena, out, json_is_string(text) ? json_string_value(text) : "");
}

static tarn_status copy_facts(task *t, tarn_minimal_pairs_count *paradigm, const json_t *object) {
  char *name, *term;
  TARN_TRY(copy_optional(t, &name, object, "field"));
  TARN_TRY(copy_optional(t, &term, object, "linguistics_term"));
  for (char *at = name; (at = strchr(at, '/'));) *at = '_';
  paradigm->field = name;
  paradigm->term = term;
  return TARN_STATUS_OK;
}

// BLiMP's principle_A_case_2 writes "syntax/semantics", its other files "syntax_semantics".
static bool same_field(const char *name, const char *given) {
  while (*name && *name == (*given == '/' ? '_' : *given)) name++, given++;
  return *name == *given;
}

// A paradigm counts as a whole for its field, so a pair of another field would be counted under a wrong name.
static tarn_status check_field(const tarn_minimal_pairs_count *paradigm, const json_t *object) {
  const json_t *field = json_object_get(object, "field");
  const char *given = json_is_string(field) ? json_string_value(field) : "";
  TARN_REQUIRE(same_field(paradigm->field, given), DATA,
               "the field is \"%.60s\", but \"%.60s\" in the pairs before it: a file is one paradigm, which is of one "
               "field",
               given, paradigm->field);
  return TARN_STATUS_OK;
}

static tarn_status read_pair(task *t, tarn_minimal_pairs_count *paradigm, const char *line, size_t length,
                             int64_t number) {
  json_error_t error;
  json_t *object;
  tarn_status status = tarn__json_parse(&object, line, length, JSON_REJECT_DUPLICATES, &error);
  if (status == TARN_STATUS_OK && !json_is_object(object)) {
    status = tarn__fail(TARN_STATUS_DATA, "expected a JSON object with sentence_good and sentence_bad%s%s",
                        object ? "" : ": ", object ? "" : error.text);
  }
  if (status == TARN_STATUS_OK)
    status = paradigm->pairs == 0 ? copy_facts(t, paradigm, object) : check_field(paradigm, object);
  if (status == TARN_STATUS_OK)
    status = tarn__grow(&t->numbers, &t->numbers_capacity, t->line_count / 2 + 1, sizeof *t->numbers);
  if (status == TARN_STATUS_OK) t->numbers[t->line_count / 2] = number;
  if (status == TARN_STATUS_OK) status = add_text(t, object, "sentence_good");
  if (status == TARN_STATUS_OK) status = add_text(t, object, "sentence_bad");
  if (status == TARN_STATUS_OK && ++paradigm->pairs > MOST_PAIRS)
    status = tarn__fail(TARN_STATUS_DATA, "more than %d pairs", MOST_PAIRS);
  json_decref(object);
  return status;
}

static tarn_status read_pairs(task *t, tarn_minimal_pairs_count *paradigm, tarn__lines *lines) {
  for (;;) {
    const char *line;
    size_t length;
    TARN_TRY(tarn__lines_next(lines, &line, &length));
    if (!line) break;
    if (strspn(line, " \t") >= length) continue;
    tarn_status status = read_pair(t, paradigm, line, length, lines->number);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s:%lld: ", lines->path, (long long)lines->number);
  }
  TARN_REQUIRE(paradigm->pairs > 0, DATA, "%s: it holds no pair", lines->path);
  return TARN_STATUS_OK;
}

static bool same_tokens(const tarn_lm_line *a, const tarn_lm_line *b) {
  return a->tokens == b->tokens && memcmp(a->ids, b->ids, (size_t)a->tokens * sizeof *a->ids) == 0;
}

static tarn_status run_file(task *t, tarn_minimal_pairs_result *result, tarn_minimal_pairs_count *paradigm) {
  char path[PATH_MAX];
  int wanted = snprintf(path, sizeof path, "%s/%s.jsonl", t->folder, paradigm->name);
  TARN_REQUIRE(wanted > 0 && (size_t)wanted < sizeof path, IO, "%s: the path is too long", t->folder);
  tarn__lines lines = {0};
  t->line_count = 0;
  tarn__arena_reset(&t->texts);
  TARN_TRY(tarn__lines_open(&lines, path, tarn__lm_strict(t->lm)));
  tarn_status status = read_pairs(t, paradigm, &lines);
  result->replaced += lines.replaced;
  tarn__lines_close(&lines);
  TARN_TRY(status);
  TARN_TRY(tarn__grow(&t->scores, &t->scores_capacity, t->line_count, sizeof *t->scores));
  status = tarn__lm_run(t->lm, t->scores, t->lines, t->lengths, t->line_count, t->numbers);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", path);
  void *memory;
  TARN_TRY(tarn__arena_alloc(t->arena, &memory, t->line_count / 2 + 1, 1));  // ends with a zero byte
  char *answers = memory;
  paradigm->answers = answers;
  for (size_t i = 0; i < t->line_count; i += 2) {
    const bool right = t->scores[i].log_probability > t->scores[i + 1].log_probability;
    answers[i / 2] = right ? '1' : '0';
    paradigm->right += right;
    result->equal += same_tokens(&t->scores[i], &t->scores[i + 1]);
  }
  for (size_t i = 0; i < t->line_count; i++) {
    result->unknown += t->scores[i].unknown;
    result->truncated += t->scores[i].truncated;
  }
  paradigm->accuracy = (double)paradigm->right / (double)paradigm->pairs;
  tarn__wilson(&paradigm->low, &paradigm->high, paradigm->right, paradigm->pairs);
  return TARN_STATUS_OK;
}

// Adds a paradigm to a mean, summing the squared sides of its interval in `low` and `high`; finish() divides.
static void add(tarn_minimal_pairs_count *mean, const tarn_minimal_pairs_count *paradigm) {
  const double below = paradigm->accuracy - paradigm->low, above = paradigm->high - paradigm->accuracy;
  mean->pairs += paradigm->pairs;
  mean->right += paradigm->right;
  mean->accuracy += paradigm->accuracy;
  mean->low += below * below;
  mean->high += above * above;
}

// Paradigms weigh the same regardless of size, so an interval of the pooled pairs would belong to another figure and
// need not contain the mean. The sides of independent intervals add like variances (Zou and Donner, Statistics in
// Medicine 2008).
static void finish(tarn_minimal_pairs_count *mean, size_t paradigms) {
  const double count = (double)paradigms;
  mean->accuracy /= count;
  mean->low = mean->accuracy - sqrt(mean->low) / count;
  mean->high = mean->accuracy + sqrt(mean->high) / count;
}

static tarn_status make_fields(task *t, tarn_minimal_pairs_result *result) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(t->arena, &memory, t->count, sizeof(tarn_minimal_pairs_count)));
  tarn_minimal_pairs_count *fields = memory;
  const tarn_minimal_pairs_count *paradigms = result->paradigms;
  size_t count = 0;
  // Collects distinct names, then sorts them: there are only a handful.
  for (size_t i = 0; i < t->count; i++) {
    size_t k = 0;
    while (k < count && strcmp(fields[k].name, paradigms[i].field) != 0) k++;
    if (k < count || !paradigms[i].field[0]) continue;
    while (k > 0 && strcmp(fields[k - 1].name, paradigms[i].field) > 0) {
      fields[k] = fields[k - 1];
      k--;
    }
    fields[k] = (tarn_minimal_pairs_count){.name = paradigms[i].field, .field = "", .term = ""};
    count++;
  }
  for (size_t k = 0; k < count; k++) {
    size_t members = 0;
    for (size_t i = 0; i < t->count; i++) {
      if (strcmp(fields[k].name, paradigms[i].field) != 0) continue;
      add(&fields[k], &paradigms[i]);
      members++;
    }
    finish(&fields[k], members);
  }
  result->fields = fields;
  result->field_count = count;
  return TARN_STATUS_OK;
}

static tarn_status run(task *t, tarn_minimal_pairs_result *result, tarn__work *work,
                       tarn_minimal_pairs_progress progress, void *user) {
  void *memory;
  TARN_TRY(list_files(t));
  TARN_TRY(tarn__arena_alloc(t->arena, &memory, t->count, sizeof(tarn_minimal_pairs_count)));
  tarn_minimal_pairs_count *paradigms = memory;
  result->paradigms = paradigms;
  result->paradigm_count = t->count;
  result->overall = (tarn_minimal_pairs_count){.name = "overall", .field = "", .term = ""};
  for (size_t i = 0; i < t->count; i++) {
    paradigms[i].name = t->names[i];
    tarn__work_part(work, (double)i, (double)i / (double)t->count, (double)i + 1, (double)(i + 1) / (double)t->count);
    TARN_TRY(run_file(t, result, &paradigms[i]));
    add(&result->overall, &paradigms[i]);
    if (progress) progress(user, &paradigms[i], i + 1, t->count);
  }
  finish(&result->overall, t->count);
  return make_fields(t, result);
}

tarn_status tarn_minimal_pairs_run(tarn_minimal_pairs_result **out, tarn_lm *lm, const char *folder,
                                   tarn_minimal_pairs_progress progress, void *user) {
  *out = NULL;
  void *memory;
  if (tarn__lm_helps(lm)) return tarn__scorer_help(tarn__lm_scorer(lm));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_minimal_pairs_result)));
  tarn_minimal_pairs_result *result = memory;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *result->memory);
  if (status == TARN_STATUS_OK) {
    result->memory = memory;
    task t = {.lm = lm, .folder = folder, .arena = &result->memory->arena};
    tarn__work work;
    tarn__work_begin(&work, "scoring minimal pairs", "paradigms");
    status = run(&t, result, &work, progress, user);
    tarn__work_end(&work);
    tarn__arena_close(&t.texts);
    tarn__free(t.names);
    tarn__free(t.lines);
    tarn__free(t.lengths);
    tarn__free(t.numbers);
    tarn__free(t.scores);
  }
  if (status == TARN_STATUS_OK) status = tarn__scorer_end(tarn__lm_scorer(lm));
  if (status != TARN_STATUS_OK) tarn_minimal_pairs_close(&result);
  *out = result;
  return status;
}

void tarn_minimal_pairs_close(tarn_minimal_pairs_result **result) {
  if (!*result) return;
  if ((*result)->memory) tarn__arena_close(&(*result)->memory->arena);
  tarn__free((*result)->memory);
  tarn__free(*result);
  *result = NULL;
}
