#include "base/control_groups.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

const tarn__group_files tarn__group_files_now = {.own = "/proc/self/cgroup", .folder = "/sys/fs/cgroup"};

// Visits a group and its parents; `top` bytes of its path are the topmost folder.
static void visit_upwards(char *group, size_t top, bool second, tarn__group_visitor visitor, void *user) {
  for (char *end = group + strlen(group);; end = strrchr(group, '/')) {
    if (!end || end < group + top) end = group + top;
    *end = '\0';
    visitor(user, group, second);
    if (end == group + top) return;
  }
}

// Whether a list of controllers, "cpu,cpuacct", has this one.
static bool lists(const char *list, size_t length, const char *controller) {
  const size_t size = strlen(controller);
  for (const char *at = list; at < list + length; at += strcspn(at, ",:") + 1)
    if (strcspn(at, ",:") == size && strncmp(at, controller, size) == 0) return true;
  return false;
}

// A line "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1).
static void visit_line(const char *line, const char *folder, const char *controller, tarn__group_visitor visitor,
                       void *user) {
  char group[PATH_MAX];
  const char *kind = strchr(line, ':'), *name = kind ? strchr(kind + 1, ':') : NULL;
  if (!name || name[1] != '/') return;
  const bool second = name == kind + 1;
  if (!second && !lists(kind + 1, (size_t)(name - kind - 1), controller)) return;
  const int top = second ? snprintf(group, sizeof group, "%s", folder)
                         : snprintf(group, sizeof group, "%s/%.*s", folder, (int)(name - kind - 1), kind + 1);
  if (top >= (int)sizeof group) return;
  const char *path = name[2] ? name + 1 : "";
  if (snprintf(group + top, sizeof group - (size_t)top, "%s", path) >= (int)sizeof group - top) return;
  visit_upwards(group, (size_t)top, second, visitor, user);
}

void tarn__groups_visit(const tarn__group_files *files, const char *controller, tarn__group_visitor visitor,
                        void *user) {
  char *text;
  size_t size;
  if (!tarn__file_exists(files->own) || tarn__file_read(files->own, &text, &size) != TARN_STATUS_OK) return;
  for (char *line = text, *next; line && *line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = '\0';
    visit_line(line, files->folder, controller, visitor, user);
  }
  tarn__free(text);
}

size_t tarn__group_number(const char *folder, const char *file, const char *key) {
  char path[PATH_MAX];
  return snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path ? tarn__file_number(path, key) : 0;
}

// Microseconds of processors in each period; "max" or -1, no quota, reads as 0.
static void take_quota(void *user, const char *folder, bool second) {
  int *processors = user;
  char path[PATH_MAX];
  char *text;
  size_t size;
  unsigned long long quota = 0, period = 0;
  if (second) {
    if (snprintf(path, sizeof path, "%s/cpu.max", folder) >= (int)sizeof path || !tarn__file_exists(path) ||
        tarn__file_read(path, &text, &size) != TARN_STATUS_OK)
      return;
    if (sscanf(text, "%llu %llu", &quota, &period) != 2) quota = 0;
    tarn__free(text);
  } else {
    quota = tarn__group_number(folder, "cpu.cfs_quota_us", "");
    period = tarn__group_number(folder, "cpu.cfs_period_us", "");
  }
  if (quota == 0 || quota > INT_MAX || period == 0) return;
  const int own = quota < period ? 1 : (int)(quota / period);
  if (*processors == 0 || own < *processors) *processors = own;
}

int tarn__groups_processors(const tarn__group_files *files) {
  int processors = 0;
  tarn__groups_visit(files, "cpu", take_quota, &processors);
  return processors;
}
