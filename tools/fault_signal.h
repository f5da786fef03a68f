// Files that are truncated while they are read: reports an error instead of crashing (tarn/process.h).
#ifndef TARN_TOOLS_FAULT_SIGNAL_H
#define TARN_TOOLS_FAULT_SIGNAL_H

// Passes faults in files mapped by the library to the library from now on. All other faults behave as before.
void catch_fault_signal(void);

#endif
