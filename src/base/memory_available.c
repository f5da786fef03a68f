// Available memory: by the machine, the control group and the limit of the address space; and peak memory.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/control_groups.h"
#include "base/file.h"
#include "base/memory.h"
#include "tarn/plan.h"

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
  const char *limit, *used, *inactive, *active;
} group_version;

static const group_version versions[] = {
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ", "total_active_file "},
    {"memory.max", "memory.current", "inactive_file ", "active_file "}};

// Reduces the available memory to the remainder of a group's limit.
static void group_leaves(void *user, const char *folder, bool second) {
  size_t *available = user;
  const group_version *version = &versions[second];
  // The kernel counts cached file pages as used by the group, but reclaims them before it refuses.
  const size_t cached = tarn__group_number(folder, "memory.stat", version->inactive) +
                        tarn__group_number(folder, "memory.stat", version->active);
  *available = less(*available, tarn__group_number(folder, version->limit, ""),
                    without(tarn__group_number(folder, version->used, ""), cached));
}

size_t tarn__memory_available_by(const tarn__memory_files *files) {
  size_t available = tarn__file_number(files->machine, "MemAvailable:") * 1024;
  const tarn__group_files groups = {.own = files->own_groups, .folder = files->groups};
  tarn__groups_visit(&groups, "memory", group_leaves, &available);
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    available = less(available, (size_t)limit.rlim_cur, tarn__file_number("/proc/self/status", "VmSize:") * 1024);
  return available;
}

size_t tarn_memory_available(void) {
  return tarn__memory_available_by(&(tarn__memory_files){
      .machine = "/proc/meminfo", .own_groups = tarn__group_files_now.own, .groups = tarn__group_files_now.folder});
}

// Not getrusage(): there a program inherits its parent's peak at its start.
size_t tarn__memory_resident_peak(void) { return tarn__file_number("/proc/self/status", "VmHWM:") * 1024; }

void tarn__memory_reset_peak(void) {
  const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t written = write(fd, "5", 1);
  (void)written;
  close(fd);
}
