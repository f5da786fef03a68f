#include "report/run_read.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "config/config_word.h"
#include "description/description.h"
#include "report/log_read.h"
#include "run/names.h"
#include "run/run_file.h"
#include "store/log_check.h"
#include "tarn/status.h"
#include "task/measure_entry.h"

static bool has_file(const char *folder, const char *name) {
  char path[PATH_MAX];
  return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && tarn__file_exists(path);
}

bool tarn__run_has_result(const char *path) { return has_file(path, TARN__RUN_RESULT); }

bool tarn__run_is(const char *path) {
  return has_file(path, TARN__RUN_CONFIG) && (has_file(path, TARN__RUN_LOG) || has_file(path, TARN__RUN_RESULT));
}

void tarn__run_blank(tarn_results_run *run, const char *path) {
  *run = (tarn_results_run){.path = path,
                            .state = TARN_RESULTS_PENDING,
                            .seconds = 0,
                            .threads = -1,
                            .log_accepted_step = -1,
                            .parameters = -1,
                            .trained_parameters = -1,
                            .frozen_parameters = -1,
                            .shared_parameters = -1,
                            .planned_bytes = -1,
                            .peak_bytes = -1,
                            .best_update = -1,
                            .cost = {NULL, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN},
                            .test_bleu = NAN,
                            .test_chrf = NAN,
                            .test_blimp = NAN,
                            .test_size = -1,
                            .test_window = -1,
                            .test_stride = -1,
                            .test_sentences = -1,
                            .test_beam = -1,
                            .test_iterations = -1,
                            .test_length_beam = -1,
                            .test_pairs = -1,
                            .test_length_penalty = NAN,
                            .test_placeholder_penalty = NAN};
  for (int m = 0; m < TARN_MEASURES; m++) run->test[m] = NAN;
}

tarn_status tarn__run_check_version(const char *version, const char *path) {
  int theirs[3];
  int ours[3];
  char end;
  TARN_REQUIRE(version && sscanf(version, "%d.%d.%d%c", &theirs[0], &theirs[1], &theirs[2], &end) == 3, DATA,
               "%s: \"version\" must be that of the program, such as \"%s\"", path, TARN_VERSION);
  if (sscanf(TARN_VERSION, "%d.%d.%d", &ours[0], &ours[1], &ours[2]) != 3) return TARN_STATUS_OK;
  for (int i = 0; i < 3 && theirs[i] >= ours[i]; i++)
    TARN_REQUIRE(
        theirs[i] == ours[i], DATA,
        "%s was written by tarn %s, and this is tarn %s, which cannot know what later versions write; use tarn "
        "%s",
        path, version, TARN_VERSION, version);
  return TARN_STATUS_OK;
}

static tarn_status take_sets(tarn_results_run *run, const tarn__run_file *file, tarn__arena *arena) {
  const json_t *sets = json_object_get(file->root, "sets");
  void *memory;
  TARN_REQUIRE(!sets || json_is_object(sets), DATA, "%s: \"sets\" must be an object", file->path);
  if (!sets) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(arena, &memory, json_object_size(sets), sizeof(tarn_results_set)));
  tarn_results_set *set = memory;
  run->sets = set;
  // Jansson's iteration needs a non-const pointer but does not modify the object.
  json_t *object = (json_t *)(uintptr_t)sets;
  for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at), set++, run->set_count++) {
    char *name;
    const json_t *value = json_object_iter_value(at);
    TARN_TRY(tarn__arena_strdup(arena, &name, json_object_iter_key(at)));
    *set = (tarn_results_set){.name = name};
    TARN_TRY(tarn__run_file_text(file, value, "hash", &set->hash, arena));
    TARN_REQUIRE(set->hash, DATA, "%s: \"%s\" of \"sets\" must be an object with a \"hash\"", file->path, name);
    TARN_TRY(tarn__run_file_text(file, value, "bleu_hash", &set->bleu_hash, arena));
  }
  return TARN_STATUS_OK;
}

// A value made negative by a clock that went back is unknown.
static void take_known(double *value, double unknown, const tarn__run_file *file, const char *key) {
  if (!(*value < 0)) return;
  tarn__log(TARN_LOG_WARNING, "%s: \"%s\" is negative, so it is not known: the clock of the machine went back",
            file->path, key);
  *value = unknown;
}

// Energy is known if its source is.
static tarn_status take_cost(tarn_results_run *run, const tarn__run_file *file, tarn__arena *arena) {
  const json_t *energy = json_object_get(file->root, "energy"), *work = json_object_get(file->root, "operations");
  tarn_cost *cost = &run->cost;
  TARN_TRY(tarn__run_file_text(file, energy, "source", &cost->source, arena));
  const struct {
    const json_t *object;
    const char *key;
    double *value;
  } fields[] = {{energy, "joules", &cost->joules},           {energy, "epoch_joules", &cost->epoch_joules},
                {energy, "best_joules", &cost->best_joules}, {energy, "co2_grams", &cost->co2_grams},
                {work, "total", &cost->operations},          {work, "token", &cost->token_operations},
                {work, "best", &cost->best_operations},      {work, "moved_bytes", &cost->moved_bytes}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    TARN_TRY(tarn__run_file_real(file, fields[i].object, fields[i].key, fields[i].value));
    take_known(fields[i].value, NAN, file, fields[i].key);
  }
  TARN_REQUIRE(cost->source || isnan(cost->joules), DATA, "%s: the \"source\" of \"energy\" is missing", file->path);
  return TARN_STATUS_OK;
}

static tarn_status take_result(tarn_results_run *run, const tarn__run_file *file, tarn__arena *arena) {
  const json_t *o = file->root;
  const json_t *parameters = json_object_get(o, "parameters");
  const char *status = NULL;
  TARN_TRY(tarn__run_file_text(file, o, "version", &run->version, arena));
  TARN_TRY(tarn__run_check_version(run->version, file->path));
  TARN_TRY(tarn__run_file_text(file, o, "status", &status, arena));
  TARN_REQUIRE(status && (strcmp(status, "finished") == 0 || strcmp(status, "failed") == 0), DATA,
               "%s: \"status\" must be \"finished\" or \"failed\"", file->path);
  run->state = strcmp(status, "failed") == 0 ? TARN_RESULTS_FAILED : TARN_RESULTS_FINISHED;
  TARN_TRY(tarn__run_file_text(file, o, "message", &run->message, arena));
  TARN_TRY(tarn__run_file_text(file, o, "end", &run->end, arena));
  TARN_TRY(tarn__run_file_text(file, o, "clock", &run->clock, arena));
  TARN_TRY(tarn__run_file_text(file, o, "processor", &run->processor, arena));
  TARN_TRY(tarn__run_file_text(file, o, "kernels", &run->kernels, arena));
  TARN_TRY(tarn__run_file_text(file, o, "config_hash", &run->config_hash, arena));
  TARN_TRY(tarn__run_file_text(file, o, "data_hash", &run->data_hash, arena));
  TARN_TRY(tarn__run_file_text(file, o, "valid_hash", &run->valid_hash, arena));
  TARN_TRY(tarn__run_file_text(file, o, "valid_bleu_hash", &run->valid_bleu_hash, arena));
  TARN_TRY(tarn__run_file_whole(file, o, "update", &run->step));
  TARN_TRY(tarn__run_file_real(file, o, "epoch", &run->epoch));
  TARN_TRY(tarn__run_file_real(file, o, "seconds", &run->seconds));
  TARN_TRY(tarn__run_file_whole(file, o, "threads", &run->threads));
  TARN_TRY(tarn__run_file_whole(file, o, "planned_bytes", &run->planned_bytes));
  TARN_TRY(tarn__run_file_whole(file, o, "peak_bytes", &run->peak_bytes));
  TARN_TRY(tarn__run_file_whole(file, parameters, "total", &run->parameters));
  TARN_TRY(tarn__run_file_whole(file, parameters, "trained", &run->trained_parameters));
  TARN_TRY(tarn__run_file_whole(file, parameters, "frozen", &run->frozen_parameters));
  TARN_TRY(tarn__run_file_whole(file, parameters, "shared_saved", &run->shared_parameters));
  TARN_TRY(tarn__run_file_whole(file, o, "best_update", &run->best_update));
  TARN_TRY(take_cost(run, file, arena));
  TARN_TRY(take_sets(run, file, arena));
  take_known(&run->seconds, NAN, file, "seconds");
  TARN_REQUIRE(run->epoch >= 0, DATA, "%s: \"epoch\" must not be negative", file->path);
  TARN_REQUIRE(run->state != TARN_RESULTS_FINISHED || run->end, DATA, "%s: \"end\" of a finished run is missing",
               file->path);
  return TARN_STATUS_OK;
}

// A relative path of a test is relative to the working directory of the test: one above the run, or the current one.
// The current one is second, since there may be files of the same names of another experiment.
static tarn_status find_test_file(const char **path, const tarn_results_run *run, tarn__arena *arena) {
  char folder[PATH_MAX];
  char candidate[PATH_MAX];
  char *copy;
  if (!*path || **path == '/' || !realpath(run->path, folder)) return TARN_STATUS_OK;
  for (char *slash; (slash = strrchr(folder, '/')) && slash != folder;) {
    *slash = '\0';
    TARN_TRY(tarn__path_join(candidate, folder, *path));
    if (!tarn__file_exists(candidate)) continue;
    if (tarn__file_same(candidate, *path)) return TARN_STATUS_OK;  // the shorter path is better to read
    TARN_TRY(tarn__arena_strdup(arena, &copy, candidate));
    *path = copy;
    return TARN_STATUS_OK;
  }
  return TARN_STATUS_OK;
}

bool tarn__run_is_tested(const tarn_results_run *run) {
  bool any = !isnan(run->test_bleu) || !isnan(run->test_blimp);
  for (int m = 0; m < TARN_MEASURES; m++) any = any || !isnan(run->test[m]);
  return any;
}

// For a labelled set each measure is {"value", "low", "high"}, for a text a number.
static tarn_status take_measures(tarn_results_run *run, const tarn__run_file *file, tarn__arena *arena) {
  const char *labelled = NULL;
  TARN_TRY(tarn__run_file_text(file, file->root, "data", &labelled, arena));
  TARN_TRY(tarn__run_file_text(file, file->root, "text", &run->test_set, arena));
  if (!labelled && !run->test_set) return TARN_STATUS_OK;
  for (int m = 0; m < TARN__METRIC_COUNT; m++) {
    const char *word = tarn_measure_of(m)->word;
    const json_t *one = json_object_get(file->root, word);
    if (json_is_object(one))
      TARN_TRY(tarn__run_file_real(file, one, "value", &run->test[m]));
    else if (!tarn__measure_at(m)->smoothed && !(tarn__measure_at(m)->of >> TARN__KEPT_TRANSLATIONS & 1u))
      TARN_TRY(tarn__run_file_real(file, file->root, word, &run->test[m]));
  }
  TARN_TRY(tarn__run_file_whole(file, file->root, "window", &run->test_window));
  TARN_TRY(tarn__run_file_whole(file, file->root, "stride", &run->test_stride));
  if (labelled) run->test_set = labelled;
  return tarn__run_file_whole(file, file->root, labelled ? "rows" : "bytes", &run->test_size);
}

static tarn_status take_test(tarn_results_run *run, const tarn__run_file *file, tarn__arena *arena) {
  const json_t *o = file->root;
  const char *status = NULL;
  TARN_TRY(tarn__run_file_text(file, o, "status", &status, arena));
  if (status && strcmp(status, "failed") == 0) return TARN_STATUS_OK;  // a failed test of a sweep: no scores
  TARN_TRY(tarn__run_file_real(file, o, "bleu", &run->test_bleu));
  TARN_TRY(tarn__run_file_real(file, o, "chrf", &run->test_chrf));
  TARN_TRY(tarn__run_file_real(file, o, "blimp", &run->test_blimp));
  TARN_TRY(take_measures(run, file, arena));
  TARN_TRY(tarn__run_file_text(file, o, "signature", &run->test_signature, arena));
  TARN_TRY(tarn__run_file_text(file, o, "chrf_signature", &run->test_chrf_signature, arena));
  TARN_TRY(tarn__run_file_text(file, o, "checkpoint", &run->test_checkpoint, arena));
  const char *folder = run->test_checkpoint ? strrchr(run->test_checkpoint, '/') : NULL;
  if (folder) run->test_checkpoint = folder + 1;
  TARN_TRY(tarn__run_file_text(file, o, "source", &run->test_source, arena));
  TARN_TRY(tarn__run_file_text(file, o, "reference", &run->test_reference, arena));
  TARN_TRY(tarn__run_file_text(file, o, "precision", &run->test_precision, arena));
  TARN_TRY(tarn__run_file_text(file, o, "folder", &run->test_folder, arena));
  TARN_TRY(find_test_file(&run->test_source, run, arena));
  TARN_TRY(find_test_file(&run->test_reference, run, arena));
  TARN_TRY(find_test_file(&run->test_folder, run, arena));
  TARN_TRY(tarn__run_file_real(file, o, "length_penalty", &run->test_length_penalty));
  TARN_TRY(tarn__run_file_whole(file, o, "sentences", &run->test_sentences));
  TARN_TRY(tarn__run_file_whole(file, o, "beam", &run->test_beam));
  TARN_TRY(tarn__run_file_whole(file, o, "iterations", &run->test_iterations));
  TARN_TRY(tarn__run_file_whole(file, o, "length_beam", &run->test_length_beam));
  TARN_TRY(tarn__run_file_real(file, o, "placeholder_penalty", &run->test_placeholder_penalty));
  return tarn__run_file_whole(file, o, "pairs", &run->test_pairs);
}

static tarn_status take_reused(tarn_results_run *run, const tarn__run_file *file, tarn__arena *arena) {
  return tarn__run_file_text(file, file->root, "from", &run->reused, arena);
}

// Reads FOLDER/NAME with `take`, if it exists.
static tarn_status read_file(tarn_results_run *run, const char *name, tarn__arena *arena,
                             tarn_status (*take)(tarn_results_run *, const tarn__run_file *, tarn__arena *)) {
  tarn__run_file file = {0};
  bool exists;
  TARN_TRY(tarn__run_file_open(&file, &exists, run->path, name, arena));
  tarn_status status = exists ? take(run, &file, arena) : TARN_STATUS_OK;
  tarn__run_file_close(&file);
  return status;
}

// A description edited later misrepresents the run. Edits of paths in it may be necessary, though.
static void check_config(tarn_results_run *run, const char *text, size_t size) {
  char hash[TARN__HASH_TEXT];
  if (!run->config_hash) return;
  tarn__hash(hash, text, size);
  if (!tarn__hash_same(hash, run->config_hash)) run->config_changed = "its hash in " TARN__RUN_RESULT " differs";
}

static tarn_status read_config(tarn_results_run *run, tarn_config **config, tarn__arena *arena) {
  const char *path;
  char *text;
  char *copy;
  size_t size;
  TARN_TRY(tarn__join(&path, arena, run->path, TARN__RUN_CONFIG));
  TARN_TRY(tarn__file_read(path, &text, &size));
  check_config(run, text, size);
  tarn_status status = tarn_config_parse(config, path, text, size, NULL, 0);
  if (status == TARN_STATUS_OK) status = tarn__arena_strdup(arena, &copy, text);
  tarn__free(text);
  TARN_TRY(status);
  run->config = *config;
  run->config_text = copy;
  run->seed = (*config)->train.seed;
  run->metric = tarn__config_word("valid.metric", (int)(*config)->valid.metric);
  return TARN_STATUS_OK;
}

// Whether the log is the original one of the training.
static tarn_status check_log(tarn_results_run *run, tarn__arena *arena) {
  tarn__log_check check;
  char *copy;
  TARN_TRY(tarn__log_check_run(&check, run->path));
  if (check.state == TARN__LOG_CHANGED) {
    TARN_TRY(tarn__arena_strdup(arena, &copy, check.why));
    run->log_changed = copy;
  }
  if (check.accepted < 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_strdup(arena, &copy, check.accepted_why));
  run->log_accepted = copy;
  run->log_accepted_step = check.accepted;
  return TARN_STATUS_OK;
}

// Whether a run that validated, and whose files have no record of its log, lost all its validations with the end of the
// log.
static tarn_status check_end(tarn_results_run *run, const tarn_results_run *progress, const char *log,
                             tarn__arena *arena) {
  struct stat info;
  bool validated = false;
  for (size_t i = 0; i < run->series_count; i++) validated |= strncmp(run->series[i].name, "valid/", 6) == 0;
  if (run->state != TARN_RESULTS_FINISHED || !run->config->data.valid || validated || run->log_changed ||
      progress->step >= run->step || stat(log, &info) != 0)
    return TARN_STATUS_OK;
  return tarn__arena_print(&run->log_changed, arena, "it ends at byte %lld, at update %lld of %lld",
                           (long long)info.st_size, (long long)progress->step, (long long)run->step);
}

tarn_status tarn__run_read(tarn_results_run *run, tarn_config **config, tarn__arena *arena) {
  const char *log;
  tarn_results_run progress;
  *config = NULL;
  run->state = TARN_RESULTS_UNFINISHED;
  // The version first: files of a later version may not be readable.
  TARN_TRY(read_file(run, TARN__RUN_RESULT, arena, take_result));
  const bool timeless = isnan(run->seconds);
  if (timeless) run->seconds = 0;
  if (!has_file(run->path, TARN__RUN_CONFIG)) {
    TARN_REQUIRE(run->state == TARN_RESULTS_FAILED, DATA, "%s: " TARN__RUN_CONFIG " is missing", run->path);
    return TARN_STATUS_OK;
  }
  TARN_TRY(read_config(run, config, arena));
  TARN_TRY(read_file(run, TARN__RUN_TEST, arena, take_test));
  TARN_TRY(read_file(run, TARN__RUN_REUSED, arena, take_reused));
  TARN_TRY(check_log(run, arena));
  TARN_TRY(tarn__join(&log, arena, run->path, TARN__RUN_LOG));
  if (!tarn__file_exists(log)) return TARN_STATUS_OK;
  tarn__run_blank(&progress, run->path);
  TARN_TRY(tarn__log_read(&progress, log, arena));
  run->series = progress.series;
  run->series_count = progress.series_count;
  run->freezes = progress.freezes;
  run->freeze_count = progress.freeze_count;
  run->signature = progress.signature;
  if (timeless || run->state == TARN_RESULTS_UNFINISHED) run->seconds = progress.seconds;
  TARN_TRY(check_end(run, &progress, log, arena));
  if (run->state == TARN_RESULTS_UNFINISHED) {
    run->step = progress.step;
    run->epoch = progress.epoch;
  }
  return TARN_STATUS_OK;
}
