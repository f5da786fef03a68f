// Lets a thread that wakes run at once on a processor that computes.
//
// Linux otherwise lets the running thread finish its slice, some milliseconds, which can be as long as a step of a
// model. It does not if the waking thread has a shorter slice: since Linux 6.12 a thread may ask for one of its own,
// without any privilege. The thread of the connections runs for some 0.1 ms at a time.
#ifndef TARN_TOOLS_SERVE_SLICE_H
#define TARN_TOOLS_SERVE_SLICE_H

#include <stdint.h>

// Slice of the thread of the connections, in ns: the least that Linux grants.
enum { SERVE_SLICE_SHORT = 100000 };

// Sets the slice of the calling thread and of those that it will start, in ns; 0: the system's own. No effect on older
// kernels, under policies other than the usual two (SCHED_OTHER, SCHED_BATCH), or where the call is forbidden.
void serve_slice_set(uint64_t slice);

#endif
