// Writes records of sweeps.
#include "tarn/lab/record.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "report/record_check.h"
#include "report/reused.h"
#include "report/sentence_bleu.h"
#include "report/test_outputs.h"
#include "run/names.h"
#include "tarn/lab/recipes.h"
#include "tarn/lab/results.h"
#include "tarn/score.h"

static const char *const RUN_FILES[] = {TARN__RUN_CONFIG, TARN__RUN_LOG,   TARN__RUN_RESULT,
                                        TARN__RUN_TEST,   TARN__RUN_PAIRS, TARN__RUN_BLEU};
static const char *const SWEEP_FILES[] = {TARN__SWEEP_FILE, TARN__SWEEP_BASE, TARN__SWEEP_JSON};

// test.bleu of a tested translation model, of its translations; of a run that is itself of a record it is copied.
static tarn_status write_sentences(const tarn_results_run *run, const char *to) {
  char path[PATH_MAX];
  tarn_statistics *statistics;
  TARN_TRY(tarn__path_join(path, to, TARN__RUN_BLEU));
  TARN_TRY(tarn__record_sentences(&statistics, run));
  if (!statistics) return TARN_STATUS_OK;
  const tarn_status status = tarn__sentence_bleu_write(path, statistics, run->test_signature);
  tarn_statistics_close(&statistics);
  return status;
}

// The beginning of the last `parts` parts of a path, or of all.
static const char *last_parts(const char *path, int parts) {
  const char *from = path + strlen(path);
  for (; from > path; from--)
    if (from[-1] == '/' && --parts == 0) break;
  return from;
}

// Of a copied run where it is from: records are read on other machines, so only the names of sweep, variant and seed.
// A sweep of a queue trains in NAME/runs.
static tarn_status write_origin(const tarn_results_run *run, const char *to) {
  static const char RUNS[] = "runs/";
  char name[PATH_MAX];
  if (!run->reused) return TARN_STATUS_OK;
  const char *from = last_parts(run->reused, 3), *queue = last_parts(run->reused, 4);
  if (strstr(from, RUNS) != from || queue == from) return tarn__reused_write(to, from);
  snprintf(name, sizeof name, "%.*s%s", (int)(from - queue), queue, from + strlen(RUNS));
  return tarn__reused_write(to, name);
}

static tarn_status write_files(const tarn_results_run *run, const char *to) {
  for (size_t i = 0; i < sizeof RUN_FILES / sizeof *RUN_FILES; i++)
    TARN_TRY(tarn__file_copy(run->path, to, RUN_FILES[i]));
  TARN_TRY(write_origin(run, to));
  return write_sentences(run, to);
}

// Removes a folder of files. Returns whether it is gone; if not, errno says why.
static bool clear_away(const char *path) {
  DIR *folder = opendir(path);
  if (!folder) return errno == ENOENT;
  for (const struct dirent *entry; (entry = readdir(folder));)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      (void)!unlinkat(dirfd(folder), entry->d_name, 0);
  closedir(folder);
  return rmdir(path) == 0;
}

// A folder that an earlier call left when it was killed, or that is to be replaced.
static tarn_status remove_folder(const char *path) {
  TARN_REQUIRE(clear_away(path), IO, "%s: cannot remove the folder: %s", path, strerror(errno));
  return TARN_STATUS_OK;
}

// *alone: whether the copy is all that the record has of the run, since it was to take the place of another.
static tarn_status put_run(const char *place, const tarn_results_run *run, const char *partial, bool *alone) {
  TARN_TRY(tarn__mkdir(partial));
  TARN_TRY(write_files(run, partial));
  const bool replaces = tarn__file_exists(place);
  TARN_TRY(remove_folder(place));
  *alone = replaces;
  TARN_REQUIRE(rename(partial, place) == 0, IO, "%s: cannot put the run here: %s", place, strerror(errno));
  return TARN_STATUS_OK;
}

// Written beside its place and then renamed, so a run is there as a whole or not at all.
static tarn_status write_run(const char *record, const tarn_results_run *run, const char *name) {
  char partial[PATH_MAX], place[PATH_MAX];
  TARN_TRY(tarn__path_join(place, record, name));
  const char *slash = strrchr(place, '/');
  TARN_REQUIRE(snprintf(partial, sizeof partial, "%.*s/.%s." TARN__SWEEP_PARTIAL, (int)(slash - place), place,
                        slash + 1) < (int)sizeof partial,
               IO, "%s: the path is too long", place);
  TARN_TRY(remove_folder(partial));
  bool alone = false;
  const tarn_status status = put_run(place, run, partial, &alone);
  if (status != TARN_STATUS_OK && !alone) (void)clear_away(partial);
  TARN_TRY(status);
  tarn__sync_folder_of(place);
  return TARN_STATUS_OK;
}

static tarn_status write_all(const tarn__record_plan *plan, const char *sweep, const char *record) {
  for (size_t i = 0; i < sizeof SWEEP_FILES / sizeof *SWEEP_FILES; i++)
    TARN_TRY(tarn__file_copy(sweep, record, SWEEP_FILES[i]));
  for (size_t i = 0; i < plan->results->run_count; i++)
    if (plan->fates[i] == TARN__RECORD_ADD)
      TARN_TRY(write_run(record, &plan->results->runs[i], tarn__record_name(&plan->results->runs[i])));
  return TARN_STATUS_OK;
}

static void count(tarn_record_summary *summary, const tarn__record_plan *plan) {
  size_t counts[TARN__RECORD_FATES] = {0};
  for (size_t i = 0; i < plan->results->run_count; i++) counts[plan->fates[i]]++;
  *summary = (tarn_record_summary){.added = counts[TARN__RECORD_ADD],
                                   .kept = counts[TARN__RECORD_KEPT],
                                   .differing = counts[TARN__RECORD_DIFFERS],
                                   .untested = counts[TARN__RECORD_UNTESTED],
                                   .missing = counts[TARN__RECORD_MISSING]};
}

static tarn_status record_locked(tarn_record_summary *summary, const char *sweep, const char *record) {
  tarn__record_plan plan = {0};
  tarn_status status = tarn__record_plan_open(&plan, sweep, record);
  if (status == TARN_STATUS_OK) status = write_all(&plan, sweep, record);
  if (status == TARN_STATUS_OK && summary) count(summary, &plan);
  tarn__record_plan_close(&plan);
  return status;
}

tarn_status tarn_record(tarn_record_summary *summary, const char *sweep, const char *record) {
  char path[PATH_MAX];
  int lock = -1;
  TARN_REQUIRE(!tarn__file_same(sweep, record), USAGE, "%s: a sweep cannot be its own record", record);
  TARN_TRY(tarn__path_join(path, sweep, TARN__SWEEP_JSON));
  if (!tarn__file_exists(path)) {
    char below[PATH_MAX];
    TARN_TRY(tarn__path_join(below, sweep, TARN_RECIPE_RUNS "/" TARN__SWEEP_JSON));
    return tarn__fail(TARN_STATUS_USAGE, "%s: it is no sweep's folder: it has no " TARN__SWEEP_JSON "%s", sweep,
                      tarn__file_exists(below) ? "; its folder " TARN_RECIPE_RUNS " is one" : "");
  }
  TARN_TRY(tarn__path_join(path, record, TARN__RUN_LOCK));
  TARN_TRY(tarn__mkdir(record));
  TARN_TRY(tarn__lock(&lock, path));
  const tarn_status status = record_locked(summary, sweep, record);
  tarn__unlock(&lock);
  return status;
}
