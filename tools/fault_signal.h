// Files that are cut off while they are read: one line, not the death of the process (tarn/process.h).
#ifndef TARN_TOOLS_FAULT_SIGNAL_H
#define TARN_TOOLS_FAULT_SIGNAL_H

// From now on a fault in a file that the library has mapped is handed to the library. All other faults do what they
// did.
void catch_fault_signal(void);

#endif
