// Claims: files that say which process holds a folder, for file systems whose locks may not reach other machines.
//
// Linux passes flock() on NFS on to the server since 2.6.12, unless it is mounted with nolock or local_lock; on Lustre
// and BeeGFS it is refused or local to one machine unless configured otherwise; fcntl() locks share all of this and are
// dropped when any descriptor of the file is closed. So on every file system that is not known to be local, a lock
// (base/file.h) is an flock(), where possible, plus a claim.
//
// The claim of PATH is PATH.holder, one line: the machine's boot id, the PID namespace, the process, its start time,
// the host. It is written under another name and then linked; of several simultaneous links NFS lets one succeed. Its
// time is renewed every BEAT seconds, by the server's clock. It is dead
//   - at once, if it belongs to this boot of this machine and to this namespace, and the process no longer runs. A
//   value that cannot be read on either side (a boot id in a container, a process that hidepid hides) proves nothing;
//   - else when its time is STALE seconds behind that of a file made now, by the same clock.
// On a file system without links the claim is created in place with O_EXCL and then written: for a moment it is empty,
// and counts as another machine's.
//
// A dead claim is replaced by rename(). Only the process whose own file is at PATH.holder.take may do this, and it is
// that file which it renames, so that the right to do it is used up. A .take of a dead process is removed first. As two
// processes may remove one at once, a claim that was taken over counts only if it is still there SETTLE seconds later.
// A claim that is given up is overwritten with "released", so that it binds nobody even if it cannot be removed.
//
// A process that was halted, alone or with its machine, for STALE seconds may lose its claim. One that is halted
// between a check and its rename() or unlink() for longer than SETTLE, or whose unlink() the server gets twice, may
// remove another's. The owner notices either at its next beat (tarn__claim_check()).
#ifndef TARN_BASE_CLAIM_H
#define TARN_BASE_CLAIM_H

#include <stdbool.h>

#include "base/status.h"

typedef struct tarn__claim tarn__claim;

// Seconds; tests shorten them.
typedef struct tarn__claim_times {
  double beat, stale, settle;
} tarn__claim_times;
extern tarn__claim_times tarn__claim_seconds;
// The file of the boot id; tests set a missing one, as in some containers.
extern const char *tarn__claim_boot;

// Whether other machines may write to the file system of this descriptor. TARN_FILE_SYSTEM=local or =shared overrides
// its type.
bool tarn__claim_needed(int fd);

// Claims a path. Fails with BUSY, naming process and host, or IO.
tarn_status tarn__claim_take(tarn__claim **claim, const char *path) TARN_CHECKED;
// Removes the claim if it is still this one; accepts NULL.
void tarn__claim_drop(tarn__claim **claim);
// Fails with BUSY if another process has taken it over. Reads the file only if the last renewal is too long ago.
tarn_status tarn__claim_check(tarn__claim *claim) TARN_CHECKED;

#endif
