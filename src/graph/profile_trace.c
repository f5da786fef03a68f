// The trace of a profile, in the Trace Event Format that chrome://tracing and Perfetto read.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "graph/profile.h"

static const char *const passes[] = {"forward", "backward", "forward and backward", "outside"};

static tarn_status put(tarn__writer *writer, const char *text) { return tarn__writer_put(writer, text, strlen(text)); }

// The common beginning of all events of an entry: `"name":"linear","cat":"forward","args":{"part":"encoder 1 L"`.
static tarn_status put_entry(tarn__writer *writer, const tarn__profile_entry *entry) {
  json_t *object = json_pack("{s:s, s:s, s:{s:s}}", "name", entry->op, "cat", passes[entry->pass], "args", "part",
                             *entry->label ? entry->label : entry->op);
  char *text = tarn__json_dump(object, JSON_COMPACT);
  json_decref(object);
  TARN_REQUIRE(text, MEMORY, "out of memory while a trace is written");
  text[strlen(text) - 2] = '\0';  // the event's own values follow
  tarn_status status = put(writer, text);
  free(text);
  return status;
}

static tarn_status put_event(tarn__writer *writer, const tarn_profile *profile, const tarn__profile_event *event,
                             double origin) {
  char text[256];
  double seconds = event->end - event->begin;
  TARN_TRY(put_entry(writer, &profile->entries[event->entry]));
  if (event->flops > 0 && seconds > 0) {
    snprintf(text, sizeof text, ",\"GFLOP/s\":%.1f", event->flops / seconds * 1e-9);
    TARN_TRY(put(writer, text));
  }
  if (event->bytes > 0 && seconds > 0) {
    snprintf(text, sizeof text, ",\"MB\":%.3f,\"GB/s\":%.2f", event->bytes * 1e-6, event->bytes / seconds * 1e-9);
    TARN_TRY(put(writer, text));
  }
  snprintf(text, sizeof text, "},\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}", (int)event->lane,
           (event->begin - origin) * 1e6, seconds * 1e6);
  return put(writer, text);
}

static tarn_status put_all(tarn__writer *writer, const tarn_profile *profile) {
  double origin = profile->event_count > 0 ? profile->events[0].begin : 0.0;
  for (size_t i = 0; i < profile->event_count; i++)
    if (profile->events[i].begin < origin) origin = profile->events[i].begin;
  TARN_TRY(put(writer,
               "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
               "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"ops\"}},\n"
               "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"batches\"}}"));
  for (size_t i = 0; i < profile->event_count; i++) {
    TARN_TRY(put(writer, ",\n"));
    TARN_TRY(put_event(writer, profile, &profile->events[i], origin));
  }
  return put(writer, "]}\n");
}

tarn_status tarn_profile_write_trace(const tarn_profile *profile, const char *path) {
  tarn__writer *writer;
  TARN_TRY(tarn__writer_open(&writer, path));
  tarn_status status = put_all(writer, profile);
  if (status == TARN_STATUS_OK) status = tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  return status;
}
