// How soon a thread that wakes gets a processor on which another one computes.
//
// The thread of the connections runs for some 0.1 ms at a time, beside threads that never sleep while they compute.
// Linux lets a running thread use up its slice first (2 to 4 ms), as long as a step of a model, unless the one that
// wakes has a shorter slice: since Linux 6.12 a thread may ask for one of its own, without any privilege.
#ifndef TARN_TOOLS_SERVE_SLICE_H
#define TARN_TOOLS_SERVE_SLICE_H

#include <stdint.h>

// Slice of the thread of the connections, in ns: the least that Linux grants.
enum { SERVE_SLICE_SHORT = 100000 };

// Sets the slice of the calling thread and of those that it will start, in ns (0: the system's own). Returns the one
// before, for a later call. Older kernels ignore it.
uint64_t serve_slice_set(uint64_t slice);

#endif
