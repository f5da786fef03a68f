#include "stop_signal.h"

#include <stddef.h>

volatile sig_atomic_t stop_signal;

static void on_signal(int number) { stop_signal = number; }

void catch_stop_signals(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}
