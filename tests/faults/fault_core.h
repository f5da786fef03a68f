// The inside of the library that the fault tests put before a command.
#ifndef TARN_TESTS_FAULT_CORE_H
#define TARN_TESTS_FAULT_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fault_state.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FAULT_EXPORT __attribute__((visibility("default")))
// The function that would be called without this library.
#define FAULT_NEXT(name) ((__typeof__(&name))fault_next(#name))

void *fault_next(const char *name);

// Whether this call fails: the errno for it, or 0. May end the process.
int fault_meets(fault_kind kind);
// The same for an allocation that `caller` asks for.
bool fault_allocation(const void *caller);
// Whether the caller is the program itself, and no library of others.
bool fault_is_own(const void *caller);
// How many of `size` bytes a read or a write does; at least one of them.
size_t fault_part(size_t size);

// Records a change of files where the order is given. Paths may be relative to the folder `at` (AT_FDCWD).
bool fault_is_recorded(void);
void fault_note_name(fault_change change, int at, const char *name, int other_at, const char *other);
void fault_note_file(fault_change change, int fd, uint64_t offset, const void *data, size_t size);
void fault_note_created(int fd, int at, const char *name);

// Reads and writes of descriptors, with faults; streams go through them too.
ssize_t fault_read(int fd, void *data, size_t size);
ssize_t fault_write(int fd, const void *data, size_t size);
int fault_open(int at, const char *path, int flags, mode_t mode);

// While it is set for a thread, its calls are the library's own and pass.
extern __thread int fault_inside;

// Puts streams of this library in the place of standard output; called once.
void fault_streams_start(void);

#ifdef __cplusplus
}
#endif

#endif
