#include "run/event_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "base/write_all.h"
#include "run/names.h"
#include "run/record.h"

// --- events

// Field numbers.
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE_VALUE = 2, SESSION_LOG_STATUS = 1, SESSION_START = 1 };

// The wall time and step at the beginning of an event.
static tarn_status put_head(tarn__message *m, int64_t step) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  m->size = 0;
  TARN_TRY(tarn__message_double(m, EVENT_WALL_TIME, (double)now.tv_sec + (double)now.tv_nsec * 1e-9));
  return tarn__message_number(m, EVENT_STEP, (uint64_t)step);
}

// --- records

// One write() per record, so that readers see whole records.
static tarn_status write_record(const tarn__event_file *file, const tarn__message *event) {
  tarn__message record = {0};
  uint64_t length = event->size;
  uint32_t sums[2] = {tarn__crc32c_masked(&length, sizeof length), tarn__crc32c_masked(event->data, event->size)};
  tarn_status status = tarn__message_put(&record, &length, sizeof length);
  if (status == TARN_STATUS_OK) status = tarn__message_put(&record, &sums[0], sizeof sums[0]);
  if (status == TARN_STATUS_OK) status = tarn__message_put(&record, event->data, event->size);
  if (status == TARN_STATUS_OK) status = tarn__message_put(&record, &sums[1], sizeof sums[1]);
  if (status == TARN_STATUS_OK && !tarn__write_all(file->fd, record.data, record.size))
    status = tarn__fail(TARN_STATUS_IO, "%s: cannot write: %s", file->path, strerror(errno));
  tarn__free(record.data);
  return status;
}

static tarn_status write_version(const tarn__event_file *file, tarn__message *event) {
  static const char version[] = "brain.Event:2";
  TARN_TRY(put_head(event, 0));
  TARN_TRY(tarn__message_bytes(event, EVENT_FILE_VERSION, version, sizeof version - 1));
  return write_record(file, event);
}

static tarn_status write_start(const tarn__event_file *file, tarn__message *event, int64_t step) {
  const uint8_t start[] = {SESSION_LOG_STATUS << 3, SESSION_START};  // a varint
  TARN_TRY(put_head(event, step));
  TARN_TRY(tarn__message_bytes(event, EVENT_SESSION_LOG, start, sizeof start));
  return write_record(file, event);
}

static tarn_status write_config(const tarn__event_file *file, tarn__message *event, int64_t step,
                                const tarn__message *summary) {
  TARN_TRY(put_head(event, step));
  TARN_TRY(tarn__message_bytes(event, EVENT_SUMMARY, summary->data, summary->size));
  return write_record(file, event);
}

// --- file

// The latest time in the names of the folder's event files; -1 if there is none.
static tarn_status latest(long long *out, const char *folder) {
  const long long most = 9999999998;  // names have ten digits
  DIR *listing = opendir(folder);
  TARN_REQUIRE(listing, IO, "%s: cannot read: %s", folder, strerror(errno));
  *out = -1;
  for (const struct dirent *entry; (entry = readdir(listing));) {
    long long seconds;
    if (sscanf(entry->d_name, TARN__RUN_EVENTS "%lld.", &seconds) == 1 && seconds > *out && seconds <= most)
      *out = seconds;
  }
  closedir(listing);
  return TARN_STATUS_OK;
}

tarn_status tarn__event_file_none(bool *none, const char *folder) {
  long long seconds = 0;
  TARN_TRY(latest(&seconds, folder));
  *none = seconds < 0;
  return TARN_STATUS_OK;
}

static tarn_status make_file(tarn__event_file *file, const char *folder) {
  char host[HOST_NAME_MAX + 1] = "";
  char path[PATH_MAX];
  long long seconds = 0;
  TARN_TRY(latest(&seconds, folder));
  // TensorBoard reads files in order of their names.
  seconds = seconds >= (long long)time(NULL) ? seconds + 1 : (long long)time(NULL);
  if (gethostname(host, sizeof host - 1) != 0 || !*host || strchr(host, '/')) strcpy(host, "host");
  TARN_REQUIRE(snprintf(path, sizeof path, "%s/" TARN__RUN_EVENTS "%010lld.%s.%lld.0", folder, seconds, host,
                        (long long)getpid()) < (int)sizeof path,
               IO, "%s: the path is too long", folder);
  TARN_TRY(tarn__strdup(&file->path, path));
  file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  TARN_REQUIRE(file->fd >= 0, IO, "%s: cannot write: %s", path, strerror(errno));
  return TARN_STATUS_OK;
}

tarn_status tarn__event_file_open(tarn__event_file *file, const char *folder, int64_t step,
                                  const tarn__message *config) {
  *file = (tarn__event_file){.fd = -1};
  tarn__message event = {0};
  tarn_status status = make_file(file, folder);
  if (status == TARN_STATUS_OK) status = write_version(file, &event);
  if (status == TARN_STATUS_OK) status = write_start(file, &event, step);
  if (status == TARN_STATUS_OK && config) status = write_config(file, &event, step, config);
  tarn__free(event.data);
  if (status != TARN_STATUS_OK) tarn__event_file_close(file);
  return status;
}

// The event of a record, and its summary, under construction.
typedef struct building {
  tarn__message summary, value;
} building;

static tarn_status add_score(void *user, const char *name, double value) {
  building *b = user;
  b->value.size = 0;
  TARN_TRY(tarn__message_bytes(&b->value, VALUE_TAG, name, strlen(name)));
  TARN_TRY(tarn__message_float(&b->value, VALUE_SIMPLE_VALUE, (float)value));
  return tarn__message_bytes(&b->summary, SUMMARY_VALUE, b->value.data, b->value.size);
}

static tarn_status add(const tarn__event_file *file, building *b, tarn__message *event, const json_t *record) {
  TARN_TRY(tarn__record_scores(record, add_score, b));
  if (b->summary.size == 0) return TARN_STATUS_OK;
  TARN_TRY(put_head(event, json_integer_value(json_object_get(record, "step"))));
  TARN_TRY(tarn__message_bytes(event, EVENT_SUMMARY, b->summary.data, b->summary.size));
  return write_record(file, event);
}

tarn_status tarn__event_file_add(tarn__event_file *file, const json_t *record) {
  building b = {0};
  tarn__message event = {0};
  tarn_status status = add(file, &b, &event, record);
  tarn__free(event.data);
  tarn__free(b.summary.data);
  tarn__free(b.value.data);
  return status;
}

void tarn__event_file_close(tarn__event_file *file) {
  if (file->fd >= 0) close(file->fd);
  tarn__free(file->path);
  *file = (tarn__event_file){.fd = -1};
}
