// How long waiting threads of the pool spin before they sleep. A program alone on its processors is fastest when they
// spin; if other programs need the same processors, spinning takes time from the slower thread (bench/performance.md).
// So they spin unless this program has to wait for a processor.
#ifndef TARN_BASE_SPINNING_H
#define TARN_BASE_SPINNING_H

#include <stdbool.h>

// The state of the waiting. Start it as {0}.
typedef struct tarn__spinning {
  bool limited;       // waiting threads sleep at once
  double busy_until;  // seconds of tarn__seconds(); until then the limit stays
} tarn__spinning;

// Records that a runnable thread waited for a processor for `waited` of the last `seconds` seconds. More than a tenth
// in two records of the thread in a row limits spinning (the start of another program is no reason yet); after three
// seconds below that the limit is lifted. *busy belongs to the thread, which starts it as false: whether it was more
// than a tenth in the thread's last record.
void tarn__spinning_note(tarn__spinning *spinning, bool *busy, double now, double seconds, double waited);

// The GOMP_SPINCOUNT that the program sets for itself (tools/main.c): any other value is the user's.
#define TARN__SPINNING_COUNT "20000"

// Call it often, outside of parallel regions, for example at the start of a graph's run; four times a second it checks
// how long the calling thread had to wait, and acts on it. Does nothing if the system does not say (it reads Linux's
// /proc/thread-self/schedstat), with one thread, or where the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT.
void tarn__spinning_look(void);

// Internal: makes waiting threads sleep at once, or spin again. `threads` is the size of the caller's pool. It takes a
// thread and, of OpenMP, as many more as `threads` leaves processors free, plus one. It does nothing if these exceed
// the following number, which is too high a price, or if the system does not grant them. That is checked immediately
// before; if other programs used up a limit on threads in between, OpenMP would end the program.
enum { TARN__SPINNING_MOST_OTHERS = 16 };
void tarn__spinning_limit(bool limited, int threads);

#endif
