// The wish to stop: SIGINT and SIGTERM let a command end in order.
#ifndef TARN_TOOLS_STOP_SIGNAL_H
#define TARN_TOOLS_STOP_SIGNAL_H

#include <signal.h>

// The number of the signal that came, 0 before one did.
extern volatile sig_atomic_t stop_signal;

// From now on the first SIGINT and the first SIGTERM set stop_signal; a second one of a kind has its usual effect.
void catch_stop_signals(void);

#endif
