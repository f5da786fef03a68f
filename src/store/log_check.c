#include "store/log_check.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "base/memory.h"
#include "run/names.h"
#include "store/checkpoint.h"
#include "store/checkpoint_keys.h"
#include "store/progress.h"

// The records about a run's log in its files: `update` is -1 without a record.
typedef struct claim {
  tarn__log_sum sum;
  bool whole;
  int64_t update;
} claim;

static tarn_status from_result(claim *c, const char *path) {
  json_t *result;
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__json_file(&result, path, 0, NULL));
  const json_t *log = json_object_get(result, "log");
  if (log && tarn__log_sum_read(&c->sum, log, path) == TARN_STATUS_OK) {
    c->whole = true;
    c->update = json_integer_value(json_object_get(result, "update"));
  }
  json_decref(result);
  return TARN_STATUS_OK;
}

// Reads only the header: checkpoints are large, and their damage does not concern the log.
static tarn_status from_checkpoint(claim *c, const char *path) {
  tarn__safetensors file;
  tarn__progress progress;
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  tarn_status status = tarn__safetensors_open(&file, path);
  if (status == TARN_STATUS_MEMORY || status == TARN_STATUS_IO) return status;
  if (status != TARN_STATUS_OK) return TARN_STATUS_OK;
  const char *text = tarn__safetensors_text(&file, TARN__KEY_PROGRESS);
  if (text && tarn__progress_read(&progress, text, path) == TARN_STATUS_OK && progress.log.bytes > 0) {
    c->sum = progress.log;
    c->update = progress.update;
  }
  tarn__safetensors_close(&file);
  return TARN_STATUS_OK;
}

static tarn_status find_mark(tarn__log_check *check, const char *text) {
  static const char mark[] = "\"" TARN__LOG_ACCEPTED "\"";
  for (const char *at = text; (at = strstr(at, mark)); at += sizeof mark - 1) {
    const char *line = at;
    while (line > text && line[-1] != '\n') line--;
    json_t *record;
    TARN_TRY(tarn__json_parse(&record, line, strcspn(line, "\n"), 0, NULL));
    const char *kind = json_string_value(json_object_get(record, "kind"));
    const char *message = json_string_value(json_object_get(record, "message"));
    const bool found = kind && strcmp(kind, TARN__LOG_ACCEPTED) == 0;
    if (found) {
      check->accepted = json_integer_value(json_object_get(record, "step"));
      snprintf(check->accepted_why, sizeof check->accepted_why, "%s", message ? message : "");
    }
    json_decref(record);
    if (found) break;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__log_check_run(tarn__log_check *check, const char *folder) {
  char log[PATH_MAX], result[PATH_MAX], last[PATH_MAX];
  char *text;
  size_t size;
  claim c = {.update = -1};
  *check = (tarn__log_check){.accepted = -1};
  TARN_TRY(tarn__path_join(log, folder, TARN__RUN_LOG));
  TARN_TRY(tarn__path_join(result, folder, TARN__RUN_RESULT));
  TARN_TRY(tarn__path_join(last, folder, TARN__CHECKPOINT_LAST));
  // Before the log, which a running training extends.
  TARN_TRY(from_result(&c, result));
  if (c.update < 0) TARN_TRY(from_checkpoint(&c, last));
  TARN_TRY(tarn__log_text(&text, &size, log));
  if (c.update >= 0) {
    tarn__log_compare_text(check->why, text, (int64_t)size, &c.sum, c.whole, c.update);
    check->state = check->why[0] ? TARN__LOG_CHANGED : TARN__LOG_WHOLE;
  }
  tarn_status status = find_mark(check, text);
  tarn__free(text);
  return status;
}
