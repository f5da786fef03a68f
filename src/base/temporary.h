// Temporary files of outputs (tarn/text.h): their names, and what killed processes left of them.
//
// A process that is killed cannot remove its temporary file, so the next output of the same path does. A file is alive
// as long as its process holds an exclusive flock() on it, which the kernel drops with the process, also after a power
// cut or when another process has got the number. The lock is taken right after the file is made and held until it has
// its final name; a file without a lock that bears such a name and belongs to this user is dead. The kernel keeps files
// without a name (O_TMPFILE) from being left at all, but no call puts such a file in the place of another, so that
// there would be a moment with a name again, or one without the output.
//
// Where a file system knows no locks, nothing is removed. Network file systems pass flock() on to their server; one
// that is mounted with locks of its own machine only (nolock, local_lock) must not be written from two machines under
// one path at the same time.
#ifndef TARN_BASE_TEMPORARY_H
#define TARN_BASE_TEMPORARY_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

// The name is the first bytes of the output's, the mark, the number of the process and, where that name is taken, a dot
// and a counter.
#define TARN__TEMPORARY_MARK ".tmp."
enum { TARN__TEMPORARY_KEEPS = 100 };  // bytes; a name that is no longer is kept whole

// Makes a file that was not there, in the folder of the target, and locks it. Other outputs of this path have files of
// their own, also those of another machine or container whose process has the same number. Returns the descriptor, or
// -1 with errno set: EEXIST where a thousand files are in the way, of which `path` names the last.
int tarn__temporary_make(char path[PATH_MAX], const char *target, mode_t mode);

// Removes the dead files of this target. What cannot be looked at or removed stays.
void tarn__temporary_clean(const char *target);

// Whether a text is "PID" or "PID.COUNTER": what follows the mark.
bool tarn__temporary_number(const char *text);

#endif
