#include "report/record_check.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "base/log.h"
#include "base/memory.h"
#include "report/results_memory.h"
#include "report/run_read.h"
#include "report/test_outputs.h"
#include "run/names.h"

const char *tarn__record_name(const tarn_results_run *run) {
  const char *name = strrchr(run->path, '/');
  while (name > run->path && name[-1] != '/') name--;
  return name;
}

static tarn_status count_sentences(tarn_statistics **statistics, const tarn_results_run *run,
                                   const tarn_score_lines *lines, const tarn_score_lines *references) {
  tarn_bleu_options options;
  tarn_bleu_result result;
  const char *const *streams[] = {references->items};
  TARN_TRY(tarn__test_outputs_bleu_options(&options, run));
  TARN_TRY(tarn_score_lines_match(lines, references));
  TARN_TRY(tarn_bleu_statistics(statistics, &result, lines->items, streams, lines->count, 1, &options));
  TARN_REQUIRE(fabs(result.score - run->test_bleu) < 1e-6, DATA,
               "%s: its BLEU against %s is %.4f, but " TARN__RUN_TEST " says %.4f: they do not belong together",
               lines->name, references->name, result.score, run->test_bleu);
  return TARN_STATUS_OK;
}

tarn_status tarn__record_sentences(tarn_statistics **statistics, const tarn_results_run *run) {
  char path[PATH_MAX];
  tarn_score_lines lines = {0}, references = {0};
  *statistics = NULL;
  TARN_TRY(tarn__path_join(path, run->path, TARN__RUN_HYPOTHESES));
  if (!run->test_signature || !tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_REQUIRE(run->test_reference, DATA, "%s/" TARN__RUN_TEST ": \"reference\" is missing", run->path);
  tarn_status status = tarn_score_lines_open(&lines, path);
  if (status == TARN_STATUS_OK) status = tarn_score_lines_open(&references, run->test_reference);
  if (status == TARN_STATUS_OK) status = count_sentences(statistics, run, &lines, &references);
  if (status != TARN_STATUS_OK) tarn_statistics_close(statistics);
  tarn_score_lines_close(&lines);
  tarn_score_lines_close(&references);
  return status;
}

// --- the sweep against the record

static tarn_status read_json(json_t **root, const char *folder) {
  char path[PATH_MAX];
  json_error_t error;
  TARN_TRY(tarn__path_join(path, folder, TARN__SWEEP_JSON));
  TARN_TRY(tarn__json_file(root, path, 0, &error));
  TARN_REQUIRE(json_is_object(*root), DATA, "%s: it is no JSON object", path);
  return TARN_STATUS_OK;
}

static const json_t *variant_of(const json_t *sweep, const char *name) {
  size_t i;
  const json_t *variant;
  json_array_foreach(json_object_get(sweep, "variants"), i, variant) {
    const char *own = json_string_value(json_object_get(variant, "name"));
    if (own && strcmp(own, name) == 0) return variant;
  }
  return NULL;
}

static bool same_value(const json_t *a, const json_t *b, const char *key) {
  const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
  return x == y || (x && y && json_equal(x, y));
}

static tarn_status check_variants(const json_t *ours, const json_t *theirs, const char *sweep, const char *record) {
  static const char *const keys[] = {"set", "equalized", "grid", "point", "init_from"};
  size_t i;
  const json_t *variant;
  json_array_foreach(json_object_get(theirs, "variants"), i, variant) {
    const char *name = json_string_value(json_object_get(variant, "name"));
    TARN_REQUIRE(name, DATA, "%s/" TARN__SWEEP_JSON ": variant %zu has no name", record, i + 1);
    const json_t *own = variant_of(ours, name);
    TARN_REQUIRE(own, USAGE, "%s has runs of the variant %s, which %s lacks: add it to the sweep, or record elsewhere",
                 record, name, sweep);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
      TARN_REQUIRE(same_value(own, variant, keys[k]), USAGE,
                   "%s and %s differ in the variant %s (\"%s\" of " TARN__SWEEP_JSON
                   "): their runs must not be mixed; record elsewhere",
                   sweep, record, name, keys[k]);
  }
  return TARN_STATUS_OK;
}

static bool has_finished(const tarn_results *results) {
  for (size_t i = 0; i < results->run_count; i++)
    if (results->runs[i].state == TARN_RESULTS_FINISHED) return true;
  return false;
}

// Looks that are planned after runs were seen are not counted as they were taken: neither those of another plan nor
// those of a first one.
static tarn_status check_plan(const json_t *ours, const json_t *theirs, const tarn_results *recorded, const char *sweep,
                              const char *record) {
  const bool planned = json_object_get(theirs, "sequential") != NULL;
  const bool same = tarn__run_same_design(json_object_get(ours, "sequential"), json_object_get(theirs, "sequential")) &&
                    (!planned || same_value(ours, theirs, "seeds"));
  TARN_REQUIRE(same || !planned, USAGE,
               "%s and %s differ in \"sequential\" of " TARN__SWEEP_JSON
               " or its seeds: the looks at recorded runs were planned otherwise; keep that plan, or record elsewhere",
               sweep, record);
  TARN_REQUIRE(same || !has_finished(recorded), USAGE,
               "%s has the key sequential, but runs were recorded in %s before there was a plan of looks; record "
               "elsewhere",
               sweep, record);
  return TARN_STATUS_OK;
}

static tarn_status compare_sweeps(const json_t *ours, const json_t *theirs, const tarn_results *recorded,
                                  const char *sweep, const char *record) {
  static const char *const keys[] = {"baseline", "budget_seconds", "clock", "test"};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
    TARN_REQUIRE(same_value(ours, theirs, keys[k]), USAGE,
                 "%s and %s differ in \"%s\" of " TARN__SWEEP_JSON ": their runs must not be mixed; record elsewhere",
                 sweep, record, keys[k]);
  TARN_TRY(check_plan(ours, theirs, recorded, sweep, record));
  return check_variants(ours, theirs, sweep, record);
}

static tarn_status check_sweep(const tarn_results *recorded, const char *sweep, const char *record) {
  json_t *ours = NULL, *theirs = NULL;
  tarn_status status = read_json(&ours, sweep);
  if (status == TARN_STATUS_OK) status = read_json(&theirs, record);
  if (status == TARN_STATUS_OK) status = compare_sweeps(ours, theirs, recorded, sweep, record);
  json_decref(ours);
  json_decref(theirs);
  return status;
}

// --- runs

static tarn_status check_run(const tarn_results_run *run) {
  TARN_REQUIRE(!run->log_changed, DATA, "%s/" TARN__RUN_LOG " is not the one of the training: %s", run->path,
               run->log_changed);
  TARN_REQUIRE(!run->log_accepted, DATA,
               "%s was continued at update %lld with a log that did not fit (--accept-log), so its curve is not known",
               run->path, (long long)run->log_accepted_step);
  TARN_REQUIRE(!run->config_changed, DATA, "%s/" TARN__RUN_CONFIG " is not the one of the training: %s", run->path,
               run->config_changed);
  return TARN_STATUS_OK;
}

static bool differ(const char *a, const char *b) { return a && b && strcmp(a, b) != 0; }

static tarn_status check_data(const tarn_results_run *a, const tarn_results_run *b) {
  TARN_REQUIRE(!differ(a->data_hash, b->data_hash), DATA,
               "%s and %s were trained on other data (\"data_hash\" of " TARN__RUN_RESULT
               "): the corpus has changed, so they must not be mixed",
               a->path, b->path);
  TARN_REQUIRE(!differ(a->valid_hash, b->valid_hash), DATA,
               "%s and %s were validated on other data (\"valid_hash\" of " TARN__RUN_RESULT
               "): the corpus has changed, so they must not be mixed",
               a->path, b->path);
  return TARN_STATUS_OK;
}

static bool has_file(const tarn_results_run *run, const char *name) {
  char path[PATH_MAX];
  return tarn__path_join(path, run->path, name) == TARN_STATUS_OK && tarn__file_exists(path);
}

// Translations that give the score, with their references; or test.bleu of another record.
static tarn_status check_outputs(const tarn_results_run *run) {
  tarn_statistics *statistics;
  TARN_TRY(tarn__record_sentences(&statistics, run));
  const bool counted = statistics != NULL;
  tarn_statistics_close(&statistics);
  TARN_REQUIRE(counted || !run->test_signature || has_file(run, TARN__RUN_BLEU), DATA,
               "%s/" TARN__RUN_HYPOTHESES " is gone, from which BLEU is recorded", run->path);
  return TARN_STATUS_OK;
}

// Whether two runs have the same result.json, byte for byte.
static tarn_status same_result(bool *same, const char *a, const char *b) {
  const char *const folders[] = {a, b};
  char *texts[2] = {0}, path[PATH_MAX];
  size_t sizes[2] = {0};
  tarn_status status = TARN_STATUS_OK;
  for (int i = 0; i < 2 && status == TARN_STATUS_OK; i++) {
    status = tarn__path_join(path, folders[i], TARN__RUN_RESULT);
    if (status == TARN_STATUS_OK) status = tarn__file_read(path, &texts[i], &sizes[i]);
  }
  *same = status == TARN_STATUS_OK && sizes[0] == sizes[1] && memcmp(texts[0], texts[1], sizes[0]) == 0;
  tarn__free(texts[0]);
  tarn__free(texts[1]);
  return status;
}

// The fate of a run that the record has already. What failed there, or its test, is replaced by what did not.
static tarn_status compare_runs(tarn__record_fate *fate, const tarn_results_run *run,
                                const tarn_results_run *recorded) {
  bool same;
  TARN_TRY(check_run(recorded));
  TARN_TRY(same_result(&same, run->path, recorded->path));
  *fate = same ? TARN__RECORD_KEPT : TARN__RECORD_DIFFERS;
  const bool better =
      run->state == TARN_RESULTS_FINISHED &&
      (recorded->state == TARN_RESULTS_FAILED || (tarn__run_is_tested(run) && !tarn__run_is_tested(recorded)));
  if (better) *fate = TARN__RECORD_ADD;
  if (*fate == TARN__RECORD_DIFFERS)
    tarn__log(TARN_LOG_WARNING, "%s: the record has another result of this run, which it keeps: %s", run->path,
              recorded->path);
  return TARN_STATUS_OK;
}

static bool same_variant(const tarn_results_run *a, const tarn_results_run *b) {
  const char *x = tarn__record_name(a), *y = tarn__record_name(b);
  const size_t length = strcspn(x, "/");
  return length == strcspn(y, "/") && strncmp(x, y, length) == 0;
}

// The configuration of a run's variant without the seed, as a hash; "" if none of its runs has begun.
static const char *key_of(const tarn_results *results, const tarn_results_run *run) {
  const char *name = tarn__record_name(run);
  const size_t length = strcspn(name, "/");
  const struct tarn__results_memory *m = results->memory;
  for (size_t g = 0; g < m->group_count; g++)
    if (strncmp(m->groups[g].public.name, name, length) == 0 && m->groups[g].public.name[length] == '\0')
      return m->groups[g].key;
  return "";
}

// What is recorded of a run's variant must be of its configuration and data.
static tarn_status check_recorded(tarn__record_fate *fate, const tarn__record_plan *plan, const tarn_results_run *run) {
  *fate = TARN__RECORD_ADD;
  for (size_t i = 0; plan->recorded && i < plan->recorded->run_count; i++) {
    const tarn_results_run *other = &plan->recorded->runs[i];
    if (other->state == TARN_RESULTS_PENDING || !same_variant(run, other)) continue;
    const char *ours = key_of(plan->results, run), *theirs = key_of(plan->recorded, other);
    TARN_REQUIRE(!*ours || !*theirs || strcmp(ours, theirs) == 0, USAGE,
                 "%s and %s have other configurations: their runs must not be mixed; record elsewhere", run->path,
                 other->path);
    TARN_TRY(check_data(other, run));
    if (strcmp(tarn__record_name(run), tarn__record_name(other)) == 0) TARN_TRY(compare_runs(fate, run, other));
  }
  return TARN_STATUS_OK;
}

static tarn_status decide(tarn__record_plan *plan, size_t index, bool tested) {
  const tarn_results_run *runs = plan->results->runs, *run = &runs[index];
  tarn__record_fate *fate = &plan->fates[index];
  *fate = TARN__RECORD_MISSING;
  if (run->state != TARN_RESULTS_FINISHED && run->state != TARN_RESULTS_FAILED) return TARN_STATUS_OK;
  TARN_TRY(check_run(run));
  for (size_t i = 0; i < index; i++)
    if (same_variant(&runs[i], run)) TARN_TRY(check_data(&runs[i], run));
  if (run->state == TARN_RESULTS_FINISHED && tested && !has_file(run, TARN__RUN_TEST)) {
    *fate = TARN__RECORD_UNTESTED;
    return TARN_STATUS_OK;
  }
  TARN_TRY(check_recorded(fate, plan, run));
  return *fate == TARN__RECORD_ADD ? check_outputs(run) : TARN_STATUS_OK;
}

static tarn_status decide_all(tarn__record_plan *plan, const char *sweep) {
  void *memory;
  json_t *root = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, plan->results->run_count, sizeof *plan->fates));
  plan->fates = memory;
  tarn_status status = read_json(&root, sweep);
  const json_t *test = json_object_get(root, "test");
  for (size_t i = 0; i < plan->results->run_count && status == TARN_STATUS_OK; i++)
    status = decide(plan, i, test && !json_is_null(test));
  json_decref(root);
  return status;
}

// Runs of a record are replaced as a whole, so a folder with weights or translations must not be taken for one.
static tarn_status read_record(tarn__record_plan *plan, const char *sweep, const char *record) {
  static const char *const others[] = {TARN__CHECKPOINT_LAST, TARN__CHECKPOINT_BEST, TARN__RUN_HYPOTHESES};
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, record, TARN__SWEEP_JSON));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn_results_open(&plan->recorded, &record, 1));
  for (size_t i = 0; i < plan->recorded->run_count; i++)
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
      TARN_REQUIRE(!has_file(&plan->recorded->runs[i], others[k]), USAGE,
                   "%s: it is the folder of a sweep and no record: %s has a %s", record, plan->recorded->runs[i].path,
                   others[k]);
  return check_sweep(plan->recorded, sweep, record);
}

tarn_status tarn__record_plan_open(tarn__record_plan *plan, const char *sweep, const char *record) {
  TARN_TRY(tarn_results_open(&plan->results, &sweep, 1));
  TARN_REQUIRE(plan->results->sweep, USAGE, "%s: it is no sweep's folder: it has no " TARN__SWEEP_JSON, sweep);
  TARN_TRY(read_record(plan, sweep, record));
  return decide_all(plan, sweep);
}

void tarn__record_plan_close(tarn__record_plan *plan) {
  tarn_results_close(&plan->results);
  tarn_results_close(&plan->recorded);
  tarn__free(plan->fates);
  *plan = (tarn__record_plan){0};
}
