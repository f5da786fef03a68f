// How much memory there is left: the machine, the control group, the limit of the address space; and how much was
// taken.
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

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

// The number behind the first word `key` of a line; "": that at the beginning of the file. 0 if there is none.
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

// The less of what is available and what a limit leaves; 0 means not known, so nothing left is one byte.
static size_t less(size_t available, size_t limit, size_t used) {
  if (limit == 0) return available;
  const size_t left = used < limit ? limit - used : 1;
  return available != 0 && available <= left ? available : left;
}

size_t tarn__memory_available_by(const tarn__memory_files *files) {
  size_t available = read_number(files->machine, "MemAvailable:") * 1024;
  // The kernel counts the pages of files that were read as used by the group, but takes them back before it refuses.
  const size_t cached =
      read_number(files->group_kinds, "inactive_file ") + read_number(files->group_kinds, "active_file ");
  available = less(available, read_number(files->group_limit, ""), without(read_number(files->group_used, ""), cached));
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    available = less(available, (size_t)limit.rlim_cur, read_number("/proc/self/status", "VmSize:") * 1024);
  return available;
}

size_t tarn_memory_available(void) {
  return tarn__memory_available_by(&(tarn__memory_files){.machine = "/proc/meminfo",
                                                         .group_limit = "/sys/fs/cgroup/memory.max",
                                                         .group_used = "/sys/fs/cgroup/memory.current",
                                                         .group_kinds = "/sys/fs/cgroup/memory.stat"});
}

// Not getrusage(): there a program inherits what its parent held when it was started.
size_t tarn__memory_resident_peak(void) { return read_number("/proc/self/status", "VmHWM:") * 1024; }
