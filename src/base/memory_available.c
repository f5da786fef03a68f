// Available memory: by the machine, the control group and the limit of the address space; and peak memory.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "tarn/plan.h"

static const char *line_of(const char *text, const char *key) {
  for (const char *line = text; line && *line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, key, strlen(key)) == 0) return line;
  }
  return NULL;
}

// The number after the first word `key` of a line; "": that at the beginning of the file. 0 if there is none.
static size_t read_number(const char *path, const char *key) {
  char *text;
  size_t size;
  if (!tarn__file_exists(path) || tarn__file_read(path, &text, &size) != TARN_STATUS_OK) return 0;
  unsigned long long value = 0;
  const char *at = line_of(text, key);
  if (!at || sscanf(at + strlen(key), " %llu", &value) != 1) value = 0;
  tarn__free(text);
  return (size_t)value;
}

static size_t without(size_t all, size_t part) { return part < all ? all - part : 0; }

// The smaller of the available memory and the remainder of a limit; 0 means unknown, so an exhausted limit gives one
// byte.
static size_t less(size_t available, size_t limit, size_t used) {
  if (limit == 0) return available;
  const size_t left = used < limit ? limit - used : 1;
  return available != 0 && available <= left ? available : left;
}

// The file names of the two versions of control groups.
typedef struct group_version {
  const char *folder, *limit, *used, *inactive, *active;
} group_version;

static const group_version version1 = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                       "total_inactive_file ", "total_active_file "};
static const group_version version2 = {"", "memory.max", "memory.current", "inactive_file ", "active_file "};

static size_t group_number(const char *group, const char *file, const char *key) {
  char path[PATH_MAX];
  return snprintf(path, sizeof path, "%s/%s", group, file) < (int)sizeof path ? read_number(path, key) : 0;
}

// The remainder of the limits of a group and all its parents. Inside a container the path may be that of the host: then
// only the topmost exists, and it is the container's.
static size_t groups_leave(size_t available, const char *root, const group_version *version, const char *name) {
  char group[PATH_MAX];
  const int top = snprintf(group, sizeof group, "%s%s", root, version->folder);
  const int length = snprintf(group, sizeof group, "%s%s%s", root, version->folder, name);
  if (length >= (int)sizeof group) return available;
  for (char *end = group + length;; end = strrchr(group, '/')) {
    if (!end || end < group + top) end = group + top;
    *end = '\0';
    // The kernel counts cached file pages as used by the group, but reclaims them before it refuses.
    const size_t cached =
        group_number(group, "memory.stat", version->inactive) + group_number(group, "memory.stat", version->active);
    available = less(available, group_number(group, version->limit, ""),
                     without(group_number(group, version->used, ""), cached));
    if (end == group + top) return available;
  }
}

// The groups of this process are in lines "0::/path" (version 2) and "4:memory:/path" (version 1).
static size_t own_groups_leave(size_t available, const tarn__memory_files *files) {
  char *text;
  size_t size;
  if (!tarn__file_exists(files->own_groups) || tarn__file_read(files->own_groups, &text, &size) != TARN_STATUS_OK)
    return available;
  for (char *line = text, *next; line && *line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = '\0';
    const char *kind = strchr(line, ':');
    const char *name = kind ? strchr(kind + 1, ':') : NULL;
    if (!name || name[1] != '/') continue;
    const bool second = name == kind + 1;
    if (!second && (name - kind != 7 || strncmp(kind, ":memory", 7) != 0)) continue;
    available = groups_leave(available, files->groups, second ? &version2 : &version1, name[2] ? name + 1 : "");
  }
  tarn__free(text);
  return available;
}

size_t tarn__memory_available_by(const tarn__memory_files *files) {
  size_t available = own_groups_leave(read_number(files->machine, "MemAvailable:") * 1024, files);
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    available = less(available, (size_t)limit.rlim_cur, read_number("/proc/self/status", "VmSize:") * 1024);
  return available;
}

size_t tarn_memory_available(void) {
  return tarn__memory_available_by(
      &(tarn__memory_files){.machine = "/proc/meminfo", .own_groups = "/proc/self/cgroup", .groups = "/sys/fs/cgroup"});
}

// Not getrusage(): there a program inherits its parent's peak at its start.
size_t tarn__memory_resident_peak(void) { return read_number("/proc/self/status", "VmHWM:") * 1024; }

void tarn__memory_reset_peak(void) {
  const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t written = write(fd, "5", 1);
  (void)written;
  close(fd);
}
