// The control groups (cgroups) of this process, which limit what it may use of the machine.
#ifndef TARN_BASE_CONTROL_GROUPS_H
#define TARN_BASE_CONTROL_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

// The kernel's files about groups. Missing files are ignored.
typedef struct tarn__group_files {
  const char *own;     // as /proc/self/cgroup
  const char *folder;  // as /sys/fs/cgroup, of version 1 or 2
} tarn__group_files;

extern const tarn__group_files tarn__group_files_now;

// A group: its folder, and whether its files are those of version 2.
typedef void (*tarn__group_visitor)(void *user, const char *folder, bool second);

// Visits the groups of this process under a controller ("memory", "cpu") and all their parents. Inside a container a
// path may be that of the host: then only the topmost folder exists, and it is the container's.
void tarn__groups_visit(const tarn__group_files *files, const char *controller, tarn__group_visitor visitor,
                        void *user);

// tarn__file_number() of a file of a group.
size_t tarn__group_number(const char *folder, const char *file, const char *key);

// How many processors the quotas of the groups leave, rounded down, at least 1; 0: no quota. `files` is
// tarn__group_files_now but in tests.
int tarn__groups_processors(const tarn__group_files *files);

#endif
