// The wish to stop, or to save: signals that let a training or a sweep end in order.
//
// SIGINT, SIGTERM and SIGHUP stop. While a command still opens and reads, there is nothing to save: the first one ends
// the process at once, with one line, also where it waits for a file (a named pipe, say). In a span that
// stop_in_order() opens, the first one sets stop_signal, and the command saves its state; a second SIGINT or SIGTERM
// kills. SIGHUP comes twice when a terminal goes, from the shell and from the system, so that a second one is passed
// over. Where SIGHUP is ignored when the command starts, as under nohup, it stays so. SIGUSR1 asks to save and to go
// on.
#ifndef TARN_TOOLS_STOP_SIGNAL_H
#define TARN_TOOLS_STOP_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

// The number of the signal that came, 0 before one did.
extern volatile sig_atomic_t stop_signal;
// How often SIGUSR1 came.
extern volatile sig_atomic_t save_signal;

// The first thing in main(): SIGUSR1, which would end the process, waits for a command that knows it.
void ignore_save_signal(void);
// The first thing in a command; `line` is what a signal prints that ends the process before a span is opened; "" prints
// nothing then, and nothing behind the span. It must stay as it is.
void catch_stop_signals(const char *line);
// Opens a span in which the command looks at stop_signal, and closes it.
void stop_in_order(bool open);

#endif
