// How long threads of the pool that wait for others spin before they sleep. Alone on its processors a program is
// fastest when they spin; where other programs want the same processors, spinning takes the time that the slower thread
// needs (bench/performance.md). So they spin unless this program is kept waiting for a processor.
#ifndef TARN_BASE_SPINNING_H
#define TARN_BASE_SPINNING_H

#include <stdbool.h>

// What is known of the waiting so far. Start it as {0}.
typedef struct tarn__spinning {
  bool limited;       // waiting threads sleep at once
  double busy_until;  // seconds of tarn__seconds(); until then it stays so
} tarn__spinning;

// Takes into account that a thread that was ready to run waited for a processor for `waited` of the last `seconds`
// seconds. More than a tenth limits spinning, and lifts the limit when that has not been so for three seconds.
void tarn__spinning_note(tarn__spinning *spinning, double now, double seconds, double waited);

// The GOMP_SPINCOUNT that the program sets for itself (tools/main.c): every other one is the user's.
#define TARN__SPINNING_COUNT "20000"

// To be called often, outside of parallel regions, as at the start of a graph's run; looks four times a second how long
// the calling thread was kept waiting, and acts on it. Does nothing where the system does not tell (it is read from
// Linux's /proc/thread-self/schedstat), with one thread, or where the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT.
void tarn__spinning_look(void);

// Inside: makes waiting threads sleep at once, or spin again. `threads` is the size of the caller's pool. It takes a
// thread and, of OpenMP, as many more as `threads` leaves processors free, and one. Nothing is limited where these are
// more than the following, which is too high a price, or where the system does not let the process have them. It is
// asked right before; were they taken away in between, by a limit on threads and others who start some, OpenMP would
// end the program.
enum { TARN__SPINNING_MOST_OTHERS = 16 };
void tarn__spinning_limit(bool limited, int threads);

#endif
