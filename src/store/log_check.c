#include "store/log_check.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json_io.h"
#include "base/memory.h"
#include "store/checkpoint.h"
#include "store/checkpoint_keys.h"
#include "store/progress.h"

void tarn__log_sum_add(tarn__log_sum *sum, const char *text, size_t size) {
  for (size_t begin = 0; begin < size;) {
    const char *newline = memchr(text + begin, '\n', size - begin);
    if (!newline) return;
    const size_t length = (size_t)(newline - (text + begin)) + 1;
    sum->hash = tarn__hash64(text + begin, length, sum->hash);
    sum->bytes += (int64_t)length;
    begin += length;
  }
}

json_t *tarn__log_sum_write(const tarn__log_sum *sum) {
  char hash[17];
  snprintf(hash, sizeof hash, "%016" PRIx64, sum->hash);
  return json_pack("{s:I, s:s}", "bytes", (json_int_t)sum->bytes, "hash", hash);
}

tarn_status tarn__log_sum_read(tarn__log_sum *sum, const json_t *object, const char *file) {
  *sum = (tarn__log_sum){0};
  if (!object) return TARN_STATUS_OK;
  const json_t *bytes = json_object_get(object, "bytes");
  const char *hash = json_string_value(json_object_get(object, "hash"));
  TARN_REQUIRE(json_is_integer(bytes) && json_integer_value(bytes) >= 0 && hash && strlen(hash) == 16 &&
                   strspn(hash, "0123456789abcdef") == 16,
               DATA, "%s: the length and hash of the log are damaged", file);
  *sum = (tarn__log_sum){json_integer_value(bytes), strtoull(hash, NULL, 16)};
  return TARN_STATUS_OK;
}

static void compare(char why[TARN__LOG_WHY], const char *text, int64_t size, const tarn__log_sum *sum, bool whole,
                    int64_t update) {
  tarn__log_sum found = {0};
  why[0] = '\0';
  if (size < sum->bytes || (whole && size > sum->bytes)) {
    snprintf(why, TARN__LOG_WHY, "it ends at byte %lld, and ended at byte %lld at update %lld", (long long)size,
             (long long)sum->bytes, (long long)update);
    return;
  }
  tarn__log_sum_add(&found, text, (size_t)sum->bytes);
  if (found.bytes != sum->bytes || found.hash != sum->hash)
    snprintf(why, TARN__LOG_WHY, "its first %lld bytes are not those of update %lld", (long long)sum->bytes,
             (long long)update);
}

// An absent log is an empty one.
static tarn_status read_log(char **text, size_t *size, const char *path) {
  if (tarn__file_exists(path)) return tarn__file_read(path, text, size);
  *size = 0;
  return tarn__strdup(text, "");
}

tarn_status tarn__log_compare(char why[TARN__LOG_WHY], const char *path, const tarn__log_sum *sum, bool whole,
                              int64_t update) {
  char *text;
  size_t size;
  TARN_TRY(read_log(&text, &size, path));
  compare(why, text, (int64_t)size, sum, whole, update);
  tarn__free(text);
  return TARN_STATUS_OK;
}

// What a run's files say of its log: `update` is -1 where they say nothing.
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

// The header alone: checkpoints are large, and what is damaged in them has no part in the log.
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
  TARN_TRY(tarn__path_join(log, folder, TARN__LOG_NAME));
  TARN_TRY(tarn__path_join(result, folder, TARN__RESULT_NAME));
  TARN_TRY(tarn__path_join(last, folder, TARN__CHECKPOINT_LAST));
  // Before the log: a training that is at work makes it longer.
  TARN_TRY(from_result(&c, result));
  if (c.update < 0) TARN_TRY(from_checkpoint(&c, last));
  TARN_TRY(read_log(&text, &size, log));
  if (c.update >= 0) {
    compare(check->why, text, (int64_t)size, &c.sum, c.whole, c.update);
    check->state = check->why[0] ? TARN__LOG_CHANGED : TARN__LOG_WHOLE;
  }
  tarn_status status = find_mark(check, text);
  tarn__free(text);
  return status;
}
