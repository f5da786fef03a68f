// Claims: files that say which process holds a folder, for file systems whose locks may not reach other machines.
//
// flock() on NFS is passed on to the server by Linux since 2.6.12, unless it is mounted with nolock or local_lock; on
// Lustre and BeeGFS it is refused or stays on one machine unless they are set up otherwise; fcntl() locks share all of
// this and are dropped by whoever closes any descriptor of the file. So on every file system that is not known to be of
// this machine alone a lock (base/file.h) is an flock() where there is one and a claim besides.
//
// The claim of PATH is PATH.holder, one line: the machine's boot id, the name space of processes, the process, its
// start time, the host. It is written under another name and then linked, which NFS does for one of several at once.
// Its time is renewed every BEAT seconds, by the server's clock. It is dead
//   - at once, if it is of this machine since it booted and this name space, and that process does not run any more.
//     What cannot be read, here or there (a boot id in a container, a process that hidepid hides), proves nothing;
//   - else when its time is STALE seconds behind that of a file that is made now, by the same clock.
// Where a file system has no links the claim is made in its place by O_EXCL and then written: for a moment it is empty,
// and counts as another machine's.
//
// A dead claim is renamed before the next one is linked; who finds that it has renamed another one than it looked at
// puts that back. After that a claim is good only if it is still there a moment later. A process that stood still for
// STALE seconds, halted by somebody or with its machine, may so lose its claim; tarn__claim_check() finds out.
#ifndef TARN_BASE_CLAIM_H
#define TARN_BASE_CLAIM_H

#include <stdbool.h>

#include "base/status.h"

typedef struct tarn__claim tarn__claim;

// Seconds; tests make them shorter.
typedef struct tarn__claim_times {
  double beat, stale, settle;
} tarn__claim_times;
extern tarn__claim_times tarn__claim_seconds;
// The file of the boot id; tests take one that is not there, as in some containers.
extern const char *tarn__claim_boot;

// Whether other machines may write to the file system of this descriptor. TARN_FILE_SYSTEM=local or =shared overrides
// what its type tells.
bool tarn__claim_needed(int fd);

// Claims a path. Fails with BUSY, naming process and host, or IO.
tarn_status tarn__claim_take(tarn__claim **claim, const char *path) TARN_CHECKED;
// Removes the claim if it is still this one; NULL is fine.
void tarn__claim_drop(tarn__claim **claim);
// Fails with BUSY if somebody else has taken it over. Looks at the file only where the last beat is too long ago.
tarn_status tarn__claim_check(tarn__claim *claim) TARN_CHECKED;

#endif
