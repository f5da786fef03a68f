#include "run/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_io.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/write_all.h"

enum { DIGITS = 9 };

// Whether the training's state includes the score of a set at a step.
static bool is_scored(const tarn__run_log_place *at, const char *set, json_int_t step) {
  for (int32_t i = 0; set && i < at->set_count; i++)
    if (strcmp(at->sets[i], set) == 0) return at->scored[i] == step + 1;
  return false;
}

// Whether a record was written before the state `at` was saved. A validation or a score at the step of the checkpoint
// may have come before or after it.
static tarn_status keep_line(bool *keep, const char *line, size_t length, const tarn__run_log_place *at) {
  json_t *record;
  *keep = false;
  TARN_TRY(tarn__json_parse(&record, line, length, 0, NULL));
  if (!record) return TARN_STATUS_OK;
  json_int_t step = json_integer_value(json_object_get(record, "step"));
  const char *kind = json_string_value(json_object_get(record, "kind"));
  const char *checkpoint = json_string_value(json_object_get(record, "checkpoint"));
  bool valid = kind && strcmp(kind, "valid") == 0;
  const bool score = kind && strcmp(kind, "scored") == 0;
  const bool scored = is_scored(at, json_string_value(json_object_get(record, "set")), step);
  const bool exponents = kind && strcmp(kind, "dynamics") == 0;
  bool first_freeze = kind && step == 0 && at->update == 0 && strcmp(kind, "freeze") == 0;
  // That of the untrained model has a separate mark.
  bool validated = step == 0 ? at->at_start : at->validated == step;
  // The validation of an average comes after everything else of its step.
  *keep = step < at->update ? checkpoint == NULL
                            : step == at->update && (!valid || validated) && (!score || scored) &&
                                  (!exponents || at->measured == step + 1) && !first_freeze && checkpoint == NULL;
  json_decref(record);
  return TARN_STATUS_OK;
}

// The duration of the last validation in a log in seconds; 0 if there is none.
static tarn_status last_validation(double *seconds, const char *text, size_t size) {
  *seconds = 0;
  for (size_t begin = 0; begin < size;) {
    const char *newline = memchr(text + begin, '\n', size - begin);
    if (!newline) break;
    const size_t length = (size_t)(newline - (text + begin));
    json_t *record = NULL;
    if (memmem(text + begin, length, "\"valid\"", 7))
      TARN_TRY(tarn__json_parse(&record, text + begin, length, 0, NULL));
    const json_t *took = json_object_get(record, "seconds");
    if (json_is_number(took)) *seconds = json_number_value(took);
    json_decref(record);
    begin += length + 1;
  }
  return TARN_STATUS_OK;
}

static tarn_status cut_back(tarn__run_log *log, const char *path, const tarn__run_log_place *at) {
  char *text;
  size_t size;
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__file_read(path, &text, &size));
  // It was compared when the training was opened, under the run's lock.
  if ((size_t)at->log.bytes > size) {
    tarn__free(text);
    return tarn__fail(TARN_STATUS_DATA, "%s: it became shorter", path);
  }
  size_t kept = (size_t)at->log.bytes;
  tarn_status status = TARN_STATUS_OK;
  for (size_t begin = kept > 0 ? size : 0; begin < size;) {
    const char *newline = memchr(text + begin, '\n', size - begin);
    if (!newline) break;
    size_t length = (size_t)(newline - (text + begin)) + 1;
    bool keep;
    status = keep_line(&keep, text + begin, length, at);
    if (status != TARN_STATUS_OK) break;
    if (keep) {
      memmove(text + kept, text + begin, length);
      kept += length;
    }
    begin += length;
  }
  tarn__log_sum_add(&log->sum, text, kept);
  if (status == TARN_STATUS_OK) status = last_validation(&log->validation_seconds, text, kept);
  if (status == TARN_STATUS_OK && kept != size) status = tarn__file_write(path, text, kept);
  tarn__free(text);
  return status;
}

// Writes the records of a whole log, from a step on, to the event file.
static tarn_status repeat(tarn__run_log *log, const char *text, size_t size, int64_t from) {
  for (size_t begin = 0; begin < size;) {
    const char *newline = memchr(text + begin, '\n', size - begin);
    size_t length = newline ? (size_t)(newline - (text + begin)) : size - begin;
    json_t *record;
    TARN_TRY(tarn__json_parse(&record, text + begin, length, 0, NULL));
    TARN_REQUIRE(record, DATA, "%s: the line at byte %zu is damaged", log->path, begin);
    bool wanted = json_integer_value(json_object_get(record, "step")) >= from;
    tarn_status status = wanted ? tarn__event_file_add(&log->events, record) : TARN_STATUS_OK;
    json_decref(record);
    TARN_TRY(status);
    begin += length + 1;
  }
  return TARN_STATUS_OK;
}

static tarn_status open_events(tarn__run_log *log, const char *folder, int64_t update, const tarn__message *config) {
  bool first;
  char *text;
  size_t size;
  TARN_TRY(tarn__event_file_none(&first, folder));
  int64_t from = first ? 0 : update;
  TARN_TRY(tarn__event_file_open(&log->events, folder, from, config));
  TARN_TRY(tarn__file_read(log->path, &text, &size));
  tarn_status status = repeat(log, text, size, from);
  tarn__free(text);
  return status;
}

static tarn_status open_log(tarn__run_log *log, const char *path, const tarn__run_log_place *at) {
  TARN_TRY(cut_back(log, path, at));
  TARN_TRY(tarn__strdup(&log->path, path));
  log->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  TARN_REQUIRE(log->fd >= 0, IO, "%s: cannot write: %s", path, strerror(errno));
  return TARN_STATUS_OK;
}

tarn_status tarn__run_log_open(tarn__run_log *log, const char *path, const tarn__run_log_place *at, const char *events,
                               const tarn__message *config) {
  *log = (tarn__run_log){.fd = -1, .events = {.fd = -1}};
  tarn_status status = open_log(log, path, at);
  if (status == TARN_STATUS_OK && events) status = open_events(log, events, at->update, config);
  if (status != TARN_STATUS_OK) tarn__run_log_close(log);
  return status;
}

static tarn_status write_line(tarn__run_log *log, const json_t *record, char **line) {
  *line = tarn__json_dump(record, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
  TARN_REQUIRE(*line, MEMORY, "out of memory: a line of %s", log->path);
  size_t length = strlen(*line);
  (*line)[length] = '\n';  // replaces the zero byte, for a single write()
  const bool written = tarn__write_all(log->fd, *line, length + 1);
  if (written) tarn__log_sum_add(&log->sum, *line, length + 1);
  (*line)[length] = '\0';
  TARN_REQUIRE(written, IO, "%s: cannot write: %s", log->path, strerror(errno));
  return TARN_STATUS_OK;
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

// Whether the path still names the open file; true if unknown.
static bool is_in_place(const tarn__run_log *log) {
  struct stat own, there;
  if (fstat(log->fd, &own) != 0) return true;
  if (stat(log->path, &there) != 0) return errno != ENOENT;
  return own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

static tarn_status read_back(const tarn__run_log *log, char *text, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = pread(log->fd, text + done, size - done, (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    TARN_REQUIRE(got > 0, IO, "%s: it was removed while the training ran, and cannot be written again: %s", log->path,
                 got < 0 ? strerror(errno) : "it became shorter");
    done += (size_t)got;
  }
  return TARN_STATUS_OK;
}

// The open file has everything written, regardless of its name.
static tarn_status put_back(tarn__run_log *log) {
  void *text;
  const size_t size = (size_t)log->sum.bytes;
  TARN_TRY(tarn__alloc(&text, TARN__MEMORY_OTHER, size + 1, 1));
  tarn_status status = read_back(log, text, size);
  if (status == TARN_STATUS_OK) status = tarn__file_write(log->path, text, size);
  tarn__free(text);
  TARN_TRY(status);
  const int fd = open(log->path, O_RDWR | O_APPEND | O_CLOEXEC);
  TARN_REQUIRE(fd >= 0, IO, "%s: cannot write: %s", log->path, strerror(errno));
  close(log->fd);
  log->fd = fd;
  tarn__log(TARN_LOG_WARNING, "%s: it was removed or replaced while the training ran, and is written again", log->path);
  return TARN_STATUS_OK;
}

tarn_status tarn__run_log_sync(tarn__run_log *log) {
  if (!is_in_place(log)) TARN_TRY(put_back(log));
  TARN_REQUIRE(fdatasync(log->fd) == 0, IO, "%s: cannot write: %s", log->path, strerror(errno));
  return TARN_STATUS_OK;
}

void tarn__run_log_close(tarn__run_log *log) {
  tarn__event_file_close(&log->events);
  if (log->fd >= 0) close(log->fd);
  tarn__free(log->path);
  *log = (tarn__run_log){.fd = -1, .events = {.fd = -1}};
}
