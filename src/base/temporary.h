// Temporary files of outputs (tarn/text.h): their names, and the removal of those left by killed processes.
//
// A process that is killed cannot remove its temporary file, so the next output of the same path does. A file is alive
// as long as its process holds an exclusive flock() on it, which ends with the process, even after a power cut or when
// the process id is reused. The lock is taken right after the file is created and held until it has its final name; an
// unlocked file with such a name that belongs to this user is dead. Nameless files (O_TMPFILE) would never be left
// behind, but no call replaces another file by one, so there would again be a moment with a temporary name, or one
// without the output.
//
// On a file system without locks nothing is removed. Network file systems pass flock() on to their server; one mounted
// with local locks (nolock, local_lock) must not be written from two machines under one path at the same time.
#ifndef TARN_BASE_TEMPORARY_H
#define TARN_BASE_TEMPORARY_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

// The name consists of the first bytes of the output's name, the mark, the process id and, if that name is taken, a dot
// and a counter.
#define TARN__TEMPORARY_MARK ".tmp."
enum { TARN__TEMPORARY_KEEPS = 100 };  // bytes; a shorter name is kept whole

// Creates a new file in the folder of the target and locks it. Other outputs of this path have separate files, even
// those of a process with the same id on another machine or in a container. Returns the descriptor, or -1 with errno
// set: EEXIST if a thousand files are in the way, the last of which `path` names.
int tarn__temporary_make(char path[PATH_MAX], const char *target, mode_t mode);

// Removes the dead files of this target. Files that cannot be inspected or removed stay.
void tarn__temporary_clean(const char *target);

// Whether a text is "PID" or "PID.COUNTER": what follows the mark.
bool tarn__temporary_number(const char *text);

#endif
