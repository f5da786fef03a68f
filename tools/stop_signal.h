// Signals to stop or to save, so that a training or a sweep ends in order.
//
// SIGINT, SIGTERM and SIGHUP stop. While a command opens and reads files, there is nothing to save: the first signal
// ends the process at once, with one line, even if it waits for a file (a named pipe, say). Between stop_in_order()
// calls, the first signal sets stop_signal, and the command saves its state; a second SIGINT or SIGTERM kills. When a
// terminal closes, SIGHUP arrives twice, from the shell and from the system, so a second one is ignored. If SIGHUP is
// ignored when the command starts, as under nohup, it stays so. SIGUSR1 requests to save and continue. A server
// takes SIGHUP as daemons do: it reads its models again.
#ifndef TARN_TOOLS_STOP_SIGNAL_H
#define TARN_TOOLS_STOP_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

// The number of the signal received, 0 before.
extern volatile sig_atomic_t stop_signal;
// Number of SIGUSR1 received.
extern volatile sig_atomic_t save_signal;

// Number of SIGHUP received after catch_reload_signal(), which from then on asks to read models again.
extern volatile sig_atomic_t reload_signal;
void catch_reload_signal(void);

// First call of main(): SIGUSR1, which would end the process, is ignored until a command handles it.
void ignore_save_signal(void);
// First call of a command. `line` is printed by a signal that ends the process before an orderly span is opened; ""
// prints nothing then, and nothing after the span. It must stay valid.
void catch_stop_signals(const char *line);
// Opens a span in which the command checks stop_signal, and closes it.
void stop_in_order(bool open);

#endif
