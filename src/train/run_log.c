#include "train/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum { DIGITS = 9 };

// Whether a record was written before the state that `progress` describes was saved. A validation at the very step of
// the checkpoint may have come before it or after.
static bool keep_line(const char *line, size_t length, const tarn__progress *progress) {
  json_t *record = json_loadb(line, length, 0, NULL);
  if (!record) return false;
  json_int_t step = json_integer_value(json_object_get(record, "step"));
  const char *kind = json_string_value(json_object_get(record, "kind"));
  const char *checkpoint = json_string_value(json_object_get(record, "checkpoint"));
  bool valid = kind && strcmp(kind, "valid") == 0;
  bool first_freeze = kind && step == 0 && progress->update == 0 && strcmp(kind, "freeze") == 0;
  // That of the untrained model leaves a mark of its own.
  bool validated = step == 0 ? progress->at_start != 0 : progress->validated == step;
  // The validation of an average comes after everything else of its step.
  bool keep = step < progress->update
                  ? checkpoint == NULL
                  : step == progress->update && (!valid || validated) && !first_freeze && checkpoint == NULL;
  json_decref(record);
  return keep;
}

static tarn_status cut_back(const char *path, const tarn__progress *progress) {
  char *text;
  size_t size;
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__file_read(path, &text, &size));
  size_t kept = 0;
  for (size_t begin = 0; begin < size;) {
    const char *newline = memchr(text + begin, '\n', size - begin);
    if (!newline) break;
    size_t length = (size_t)(newline - (text + begin)) + 1;
    if (keep_line(text + begin, length, progress)) {
      memmove(text + kept, text + begin, length);
      kept += length;
    }
    begin += length;
  }
  tarn_status status = kept == size ? TARN_STATUS_OK : tarn__file_write(path, text, kept);
  tarn__free(text);
  return status;
}

// Gives the records of a whole log, from a step on, to the event file.
static tarn_status repeat(tarn__run_log *log, const char *text, size_t size, int64_t from) {
  for (size_t begin = 0; begin < size;) {
    const char *newline = memchr(text + begin, '\n', size - begin);
    size_t length = newline ? (size_t)(newline - (text + begin)) : size - begin;
    json_t *record = json_loadb(text + begin, length, 0, NULL);
    TARN_REQUIRE(record, DATA, "%s: a line is damaged", log->path);
    bool wanted = json_integer_value(json_object_get(record, "step")) >= from;
    tarn_status status = wanted ? tarn__event_file_add(&log->events, record) : TARN_STATUS_OK;
    json_decref(record);
    TARN_TRY(status);
    begin += length + 1;
  }
  return TARN_STATUS_OK;
}

static tarn_status open_events(tarn__run_log *log, const char *folder, const tarn__progress *progress) {
  bool first;
  char *text;
  size_t size;
  TARN_TRY(tarn__event_file_none(&first, folder));
  int64_t from = first ? 0 : progress->update;
  TARN_TRY(tarn__event_file_open(&log->events, folder, from));
  TARN_TRY(tarn__file_read(log->path, &text, &size));
  tarn_status status = repeat(log, text, size, from);
  tarn__free(text);
  return status;
}

static tarn_status open_log(tarn__run_log *log, const char *path, const tarn__progress *progress) {
  TARN_TRY(cut_back(path, progress));
  TARN_TRY(tarn__strdup(&log->path, path));
  log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  TARN_REQUIRE(log->fd >= 0, IO, "%s: cannot write: %s", path, strerror(errno));
  return TARN_STATUS_OK;
}

tarn_status tarn__run_log_open(tarn__run_log *log, const char *path, const char *events,
                               const tarn__progress *progress) {
  *log = (tarn__run_log){.fd = -1, .events = {.fd = -1}};
  tarn_status status = open_log(log, path, progress);
  if (status == TARN_STATUS_OK && events) status = open_events(log, events, progress);
  if (status != TARN_STATUS_OK) tarn__run_log_close(log);
  return status;
}

static tarn_status write_line(const tarn__run_log *log, const json_t *record, char **line) {
  *line = record ? json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
  TARN_REQUIRE(*line, MEMORY, "out of memory: a line of %s", log->path);
  size_t length = strlen(*line);
  (*line)[length] = '\n';  // in place of the zero byte, for one call of write()
  ssize_t written = write(log->fd, *line, length + 1);
  (*line)[length] = '\0';
  if (written == (ssize_t)length + 1) return TARN_STATUS_OK;
  return tarn__fail(TARN_STATUS_IO, "%s: cannot write: %s", log->path,
                    written < 0 ? strerror(errno) : "the disk is full");
}

tarn_status tarn__run_log_add(tarn__run_log *log, json_t *record, char **line) {
  tarn_status status = write_line(log, record, line);
  if (status == TARN_STATUS_OK && log->events.fd >= 0) status = tarn__event_file_add(&log->events, record);
  json_decref(record);
  if (status == TARN_STATUS_OK) return status;
  free(*line);
  *line = NULL;
  return status;
}

void tarn__run_log_close(tarn__run_log *log) {
  tarn__event_file_close(&log->events);
  if (log->fd >= 0) close(log->fd);
  tarn__free(log->path);
  *log = (tarn__run_log){.fd = -1, .events = {.fd = -1}};
}
