// Files that are read through memory maps: data (tarn/data.h), checkpoints, caches of a training. Model files in bf16
// and INT8 stay mapped, and must stay as they are, for as long as a translator or the states of a model are open.
//
// When such a file is cut off or overwritten while it is read (`cp new.tarn train.tarn`), or its disk fails, the system
// raises SIGBUS, which ends a process. A library does not install handlers for the whole process, so a program that
// wants one clear line instead passes the fault to the library:
//
//   static void on_bus(int number, siginfo_t *info, void *context) {
//     if (!tarn_mapped_fault(info->si_addr)) signal(SIGBUS, SIG_DFL);  // repeats the access, which ends the process
//   }
//   sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO}, NULL);
//
// Nothing that was computed after the fault is used: the call of the library that reads the file fails with
// TARN_STATUS_IO and names the file, a training saves the state from before the update it was making, and no output is
// put in its place. Without a handler a file that changed is noticed by its size and time, unless a fault ends the
// process first.
#ifndef TARN_MAPPED_H
#define TARN_MAPPED_H

#include <stdbool.h>

#include "tarn/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// For handlers of SIGBUS: safe in a signal handler and on every thread. If the address lies in a file that the library
// has mapped, puts zeros in place of the rest of the file, notes that the file is lost, and returns true: the access
// may be repeated. Returns false, and does nothing, for every other address.
TARN_API bool tarn_mapped_fault(const void *address);

#ifdef __cplusplus
}
#endif
#endif
