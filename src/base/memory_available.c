// How much memory there is left: the machine, the control group, the limit of the address space; and how much was
// taken.
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/memory.h"
#include "tarn/plan.h"

static size_t read_number(const char *path, const char *key) {
  char *text;
  size_t size;
  if (!tarn__file_exists(path) || tarn__file_read(path, &text, &size) != TARN_STATUS_OK) return 0;
  unsigned long long value = 0;
  const char *at = *key ? strstr(text, key) : text;
  if (!at || sscanf(at + strlen(key), " %llu", &value) != 1) value = 0;
  tarn__free(text);
  return (size_t)value;
}

static size_t less(size_t available, size_t limit, size_t used) {
  if (limit <= used || (available != 0 && available <= limit - used)) return available;
  return limit - used;
}

size_t tarn_memory_available(void) {
  size_t available = read_number("/proc/meminfo", "MemAvailable:") * 1024;
  available =
      less(available, read_number("/sys/fs/cgroup/memory.max", ""), read_number("/sys/fs/cgroup/memory.current", ""));
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    available = less(available, (size_t)limit.rlim_cur, read_number("/proc/self/status", "VmSize:") * 1024);
  return available;
}

// Not getrusage(): there a program inherits what its parent held when it was started.
size_t tarn__memory_resident_peak(void) { return read_number("/proc/self/status", "VmHWM:") * 1024; }
