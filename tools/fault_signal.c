#include "fault_signal.h"

#include <signal.h>
#include <stddef.h>

#include "tarn/process.h"

static struct sigaction before;  // the previous handler, for example that of a sanitizer

static void on_fault(int number, siginfo_t *info, void *context) {
  (void)context;
  // If the fault is not ours, the access is repeated without this handler.
  if (!tarn_mapped_fault(info->si_addr)) sigaction(number, &before, NULL);
}

void catch_fault_signal(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &before);
}
