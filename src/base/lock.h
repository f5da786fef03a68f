// Locks of folders: taken by tarn__lock() of base/file.h, by flock() and, on file systems that other machines may
// share, also by a claim (base/claim.h).
#ifndef TARN_BASE_LOCK_H
#define TARN_BASE_LOCK_H

#include "base/status.h"

// Fails with BUSY if another machine has taken the lock over, because this process was halted for so long that it was
// thought dead. Call it before writing what the lock protects. A descriptor of -1 is no lock.
tarn_status tarn__lock_check(int fd) TARN_CHECKED;

#endif
