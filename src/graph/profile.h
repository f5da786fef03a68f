// Profiling: code that runs graphs, and the work around them, reports durations to a profile. All functions here accept
// a NULL profile and then do nothing.
#ifndef TARN_GRAPH_PROFILE_H
#define TARN_GRAPH_PROFILE_H

#include "graph/graph.h"
#include "tarn/plan.h"

// The time, or 0 without a profile.
double tarn__profile_clock(const tarn_profile *profile);

// Enclose everything that the profile covers; they add to the summary's seconds.
void tarn__profile_start(tarn_profile *profile);
void tarn__profile_stop(tarn_profile *profile);
// Leaves the next unit out of the table, with all that is recorded from now until its end: the first update of a
// training, in which memory is allocated, pages are mapped and weights are packed. The trace shows it.
void tarn__profile_leave_out(tarn_profile *profile);

// Measures the device's peak rates, once per profile.
tarn_status tarn__profile_peaks(tarn_profile *profile, const tarn__device *device, int threads) TARN_CHECKED;

// Records a node that ran from `begin` (tarn__profile_clock()) until now and moved `bytes` bytes.
tarn_status tarn__profile_node(tarn_profile *profile, const tarn__node *node, bool backward, double begin,
                               double bytes) TARN_CHECKED;
// Records work outside graphs, from `begin` until now. It must not contain nodes or other work that is recorded too, or
// that would be counted twice. `what` is a string literal.
tarn_status tarn__profile_work(tarn_profile *profile, const char *what, double begin) TARN_CHECKED;
// The same for work that moves `bytes` bytes.
tarn_status tarn__profile_moving(tarn_profile *profile, const char *what, double begin, double bytes) TARN_CHECKED;
// Records an update or a decoding step with everything in it; counted and shown in the trace, not in the table.
tarn_status tarn__profile_unit(tarn_profile *profile, const char *what, double begin) TARN_CHECKED;
// Records work of the thread that prepares batches: shown in the trace, not in the table, because nothing waits for it.
tarn_status tarn__profile_beside(tarn_profile *profile, const char *what, double begin, double end) TARN_CHECKED;

// Internals, for profile.c and profile_trace.c.
typedef enum tarn__profile_lane { TARN__PROFILE_MAIN = 1, TARN__PROFILE_BATCHES = 2 } tarn__profile_lane;

// The total of equal work: one op of one layer in one pass.
typedef struct tarn__profile_entry {
  const char *op, *label;  // in the arena of the profile
  tarn_profile_pass pass;
  bool counted;  // shown in the table
  int64_t calls;
  double seconds, flops, bytes, flops_seconds, bytes_seconds, floor;
  int next;  // in the same bucket; -1: none
} tarn__profile_entry;

typedef struct tarn__profile_event {
  int entry;
  tarn__profile_lane lane;
  double begin, end, flops, bytes;
} tarn__profile_event;
_Static_assert(sizeof(tarn__profile_event) == 40, "tarn/plan.h tells the bytes of an event");

// The least time between two samples of the device's rate, in seconds.
#define TARN__PROFILE_SAMPLE_SECONDS 0.2

enum { TARN__PROFILE_BUCKETS = 1024, TARN__PROFILE_EVENTS = 1 << 18 };

struct tarn_profile {
  tarn__arena arena;
  int buckets[TARN__PROFILE_BUCKETS];  // first entry of each; -1: none
  tarn__profile_entry *entries;
  size_t entry_count, entry_capacity;
  tarn__profile_event *events;
  size_t event_count, event_capacity;
  tarn_profile_row *rows;
  size_t row_count, row_capacity;
  int64_t traced, units, left_out;
  const char *unit;
  bool leaving_out;
  double started, seconds, unit_seconds;
  double leaving_since, left_out_seconds;
  tarn__device_peaks peaks;
  bool peaks_known;
  // Samples of the device's flops_now after units, and the time of the latest.
  const tarn__device *device;
  int threads;
  int64_t samples;
  double sampled, sample_end;
};

#endif
