// Which checkpoint of a run directory is meant.
#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_io.h"
#include "base/memory.h"
#include "run/file_kind.h"
#include "run/names.h"
#include "run/record.h"
#include "store/checkpoint.h"
#include "store/checkpoint_keys.h"
#include "task/task.h"

static const char *const file_names[] = {[TARN_CHECKPOINT_CHOICE_BEST] = TARN__CHECKPOINT_BEST,
                                         [TARN_CHECKPOINT_CHOICE_LAST] = TARN__CHECKPOINT_LAST,
                                         [TARN_CHECKPOINT_CHOICE_AVERAGE] = TARN__CHECKPOINT_AVERAGE};

const char *tarn_checkpoint_choice_name(tarn_checkpoint_choice choice) {
  static const char *const words[] = {"auto", "best", "last", "average"};
  return choice >= 0 && choice < TARN_CHECKPOINT_CHOICE_COUNT ? words[choice] : NULL;
}

// A folder of several seeds has a run directory for each.
static tarn_status fail_none(const char *path) {
  char pattern[PATH_MAX];
  glob_t found;
  if (snprintf(pattern, sizeof pattern, "%s/seed-*", path) < (int)sizeof pattern &&
      glob(pattern, 0, NULL, &found) == 0) {
    tarn_status status =
        tarn__fail(TARN_STATUS_DATA, "%s: a folder of runs with several seeds; name one of them, such as %s", path,
                   found.gl_pathv[0]);
    globfree(&found);
    return status;
  }
  tarn_status status = tarn__fail(TARN_STATUS_DATA, "%s: there is no checkpoint in this folder", path);
  return tarn__file_kind_explain(status, path, TARN__FILE_KIND_MODEL);
}

tarn_status tarn__checkpoint_update(int64_t *update, const char *path) {
  tarn__safetensors file;
  *update = -1;
  tarn_status status = tarn__safetensors_open(&file, path);
  if (status == TARN_STATUS_MEMORY || status == TARN_STATUS_IO) return status;
  if (status != TARN_STATUS_OK) return TARN_STATUS_OK;
  const char *text = tarn__safetensors_text(&file, TARN__KEY_UPDATE);
  if (text) *update = strtoll(text, NULL, 10);
  tarn__safetensors_close(&file);
  return TARN_STATUS_OK;
}

// The validations of two checkpoints, from the log.
typedef struct contest {
  int64_t best_update, average_update;
  const char *word;  // of the metric
  double best, average;
  bool has_best, has_average;
  int64_t step;  // of the record
} contest;

static tarn_status take_score(void *user, const char *name, double value) {
  contest *c = user;
  const bool average = strncmp(name, "average/", 8) == 0;
  if ((!average && strncmp(name, "valid/", 6) != 0) || strcmp(strchr(name, '/') + 1, c->word) != 0)
    return TARN_STATUS_OK;
  if (average && c->step == c->average_update) {
    c->average = value;
    c->has_average = true;
  }
  if (!average && c->step == c->best_update) {
    c->best = value;
    c->has_best = true;
  }
  return TARN_STATUS_OK;
}

static tarn_status take_record(contest *c, const json_t *record) {
  const char *kind = json_string_value(json_object_get(record, "kind"));
  if (!kind || strcmp(kind, "valid") != 0) return TARN_STATUS_OK;
  c->step = json_integer_value(json_object_get(record, "step"));
  return tarn__record_scores(record, take_score, c);
}

static tarn_status read_log(contest *c, const char *run) {
  char path[PATH_MAX];
  char *text;
  size_t size;
  TARN_TRY(tarn__path_join(path, run, TARN__RUN_LOG));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__file_read(path, &text, &size));
  tarn_status status = TARN_STATUS_OK;
  for (size_t begin = 0; begin < size;) {
    const char *newline = memchr(text + begin, '\n', size - begin);
    if (!newline) break;
    const size_t length = (size_t)(newline - (text + begin));
    json_t *record;
    status = tarn__json_parse(&record, text + begin, length, 0, NULL);
    if (status != TARN_STATUS_OK) break;
    status = take_record(c, record);
    json_decref(record);
    if (status != TARN_STATUS_OK) break;
    begin += length + 1;
  }
  tarn__free(text);
  return status;
}

static tarn_status full_path(char path[PATH_MAX], const char *run, tarn_checkpoint_choice choice, bool *exists) {
  TARN_TRY(tarn__path_join(path, run, file_names[choice]));
  *exists = tarn__file_exists(path) != 0;
  return TARN_STATUS_OK;
}

// Both exist: takes the better one by validation, or the best if the average's is unknown.
static tarn_status compare(tarn_checkpoint_choice *choice, char reason[160], const char *run, const char *best,
                           const char *average) {
  char path[PATH_MAX];
  tarn_config *config;
  contest c = {0};
  *choice = TARN_CHECKPOINT_CHOICE_BEST;
  TARN_TRY(tarn__checkpoint_update(&c.best_update, best));
  TARN_TRY(tarn__checkpoint_update(&c.average_update, average));
  TARN_TRY(tarn__path_join(path, run, TARN__RUN_CONFIG));
  tarn_status status = tarn_config_read(&config, path, NULL, 0);
  if (status == TARN_STATUS_MEMORY || (status == TARN_STATUS_IO && tarn__file_exists(path))) return status;
  if (status != TARN_STATUS_OK) {
    snprintf(reason, 160, "the average is not compared with it: " TARN__RUN_CONFIG " cannot be read");
    return TARN_STATUS_OK;
  }
  const int metric = config->valid.metric;
  const tarn_measure *measure = tarn_measure_of(metric);
  c.word = measure->word;
  status = read_log(&c, run);
  const bool better = c.has_average && c.has_best && tarn__metric_better(c.average, c.best, metric);
  tarn_config_close(&config);
  TARN_TRY(status);
  if (better) *choice = TARN_CHECKPOINT_CHOICE_AVERAGE;
  if (!c.has_average || !c.has_best)
    snprintf(reason, 160, "the average is not compared with it: the log has no validation of %s",
             c.has_best ? "the average" : "the best");
  else
    snprintf(reason, 160, "%s %.*f in validation, the %s %.*f", measure->name, measure->told_digits,
             better ? c.average : c.best, better ? "best" : "average", measure->told_digits,
             better ? c.best : c.average);
  return TARN_STATUS_OK;
}

static tarn_status choose(tarn_checkpoint_choice *choice, char reason[160], const char *run) {
  char best[PATH_MAX], average[PATH_MAX], last[PATH_MAX];
  bool has_best, has_average, has_last;
  TARN_TRY(full_path(best, run, TARN_CHECKPOINT_CHOICE_BEST, &has_best));
  TARN_TRY(full_path(average, run, TARN_CHECKPOINT_CHOICE_AVERAGE, &has_average));
  TARN_TRY(full_path(last, run, TARN_CHECKPOINT_CHOICE_LAST, &has_last));
  if (has_best && has_average) return compare(choice, reason, run, best, average);
  *choice = has_best      ? TARN_CHECKPOINT_CHOICE_BEST
            : has_average ? TARN_CHECKPOINT_CHOICE_AVERAGE
                          : TARN_CHECKPOINT_CHOICE_LAST;
  if (!has_best && !has_average && !has_last) return fail_none(run);
  snprintf(reason, 160, "%s",
           has_best      ? "the best in validation"
           : has_average ? "the average; the run has no best checkpoint"
                         : "the last; the run has no best checkpoint");
  return TARN_STATUS_OK;
}

static tarn_status check_exists(const char *run, tarn_checkpoint_choice choice) {
  char path[PATH_MAX], there[64] = "";
  bool exists, any = false;
  for (int i = TARN_CHECKPOINT_CHOICE_BEST; i < TARN_CHECKPOINT_CHOICE_COUNT; i++) {
    TARN_TRY(full_path(path, run, (tarn_checkpoint_choice)i, &exists));
    if (i == (int)choice && exists) return TARN_STATUS_OK;
    if (!exists) continue;
    const size_t used = strlen(there);
    snprintf(there + used, sizeof there - used, "%s%s", any ? ", " : "",
             tarn_checkpoint_choice_name((tarn_checkpoint_choice)i));
    any = true;
  }
  if (!any) return fail_none(run);
  return tarn__fail(TARN_STATUS_DATA, "%s: there is no %s in this run; there is: %s", run, file_names[choice], there);
}

static tarn_status find_in_run(tarn_checkpoint_found *found, const char *run, tarn_checkpoint_choice choice) {
  char path[PATH_MAX];
  found->in_run = true;
  if (choice == TARN_CHECKPOINT_CHOICE_AUTO)
    TARN_TRY(choose(&choice, found->reason, run));
  else
    TARN_TRY(check_exists(run, choice));
  TARN_TRY(tarn__path_join(path, run, file_names[choice]));
  return tarn__strdup(&found->path, path);
}

tarn_status tarn_checkpoint_find(tarn_checkpoint_found *found, const char *path, tarn_checkpoint_choice choice) {
  struct stat info;
  *found = (tarn_checkpoint_found){0};
  TARN_REQUIRE(tarn_checkpoint_choice_name(choice), USAGE, "a choice of checkpoint that does not exist");
  const bool exists = stat(path, &info) == 0;
  // With AUTO the reader of the file reports it.
  TARN_REQUIRE(exists || choice == TARN_CHECKPOINT_CHOICE_AUTO, IO, "%s: cannot read: %s", path, strerror(errno));
  if (exists && S_ISDIR(info.st_mode)) return find_in_run(found, path, choice);
  TARN_REQUIRE(choice == TARN_CHECKPOINT_CHOICE_AUTO, USAGE,
               "%s is no run directory, so there is no %s checkpoint to choose", path,
               tarn_checkpoint_choice_name(choice));
  return tarn__strdup(&found->path, path);
}

void tarn_checkpoint_found_close(tarn_checkpoint_found *found) {
  tarn__free(found->path);
  *found = (tarn_checkpoint_found){0};
}

tarn_status tarn__checkpoint_find(char **file, const char *path) {
  tarn_checkpoint_found found;
  *file = NULL;
  TARN_TRY(tarn_checkpoint_find(&found, path, TARN_CHECKPOINT_CHOICE_AUTO));
  *file = found.path;
  return TARN_STATUS_OK;
}
