// Counting, deciding and recording.
#include "fault_core.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { JOURNAL_FD = 900 };

__thread int fault_inside;

static fault_state *state;  // NULL: everything passes
static int journal = -1;

static struct {
  uintptr_t begin, end;
  int place;  // in the state's table
  bool excluded;
} modules[FAULT_MODULES];
static int module_count;

void *fault_next(const char *name) { return dlsym(RTLD_NEXT, name); }

// --- start
// ------------------------------------------------------------------------------------------------------------

static bool is_excluded(const char *name) {
  char all[sizeof state->excluded];
  memcpy(all, state->excluded, sizeof all);
  for (char *word = strtok(all, " "); word; word = strtok(NULL, " "))
    if (strncmp(name, word, strlen(word)) == 0) return true;
  return false;
}

// The place of a module's name in the table, which processes of one command share.
static int place_of(const char *name) {
  uint32_t count = atomic_load(&state->module_count);
  for (uint32_t i = 0; i < count; i++)
    if (strncmp(state->module[i], name, FAULT_MODULE_NAME - 1) == 0) return (int)i;
  if (count == FAULT_MODULES) return -1;
  snprintf(state->module[count], FAULT_MODULE_NAME, "%s", name);
  atomic_store(&state->module_count, count + 1);
  return (int)count;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size;
  (void)user;
  if (module_count == FAULT_MODULES) return 1;
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    if (from < begin) begin = from;
    if (from + info->dlpi_phdr[i].p_memsz > end) end = from + info->dlpi_phdr[i].p_memsz;
  }
  const char *name = *info->dlpi_name ? info->dlpi_name : state->program;
  const char *slash = strrchr(name, '/');
  name = slash ? slash + 1 : name;
  modules[module_count].begin = begin;
  modules[module_count].end = end;
  modules[module_count].excluded = is_excluded(name);
  modules[module_count++].place = place_of(name);
  return 0;
}

static fault_state *map_state(void) {
  const char *path = getenv("FAULT_STATE");
  if (!path) return NULL;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  void *page = (void *)syscall(SYS_mmap, NULL, sizeof(fault_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
  syscall(SYS_close, fd);
  return page == MAP_FAILED ? NULL : page;
}

__attribute__((constructor)) static void start(void) {
  char program[PATH_MAX];
  fault_inside++;
  fault_state *page = map_state();
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (page && length > 0) {
    program[length] = '\0';
    if (strcmp(strrchr(program, '/') + 1, page->program) == 0) {
      state = page;
      dl_iterate_phdr(add_module, NULL);
      if (state->journal) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, state->journal_path, O_WRONLY | O_APPEND | O_CLOEXEC);
        journal = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, JOURNAL_FD);
        syscall(SYS_close, fd);
      }
      fault_streams_start();
      void *frame;
      backtrace(&frame, 1);  // which loads a library once
    }
  }
  fault_inside--;
}

// --- decisions
// --------------------------------------------------------------------------------------------------------

// SplitMix64: a number that depends on the seed and on which call this is.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

static void die(void) {
  atomic_store(&state->fired, 1);
  if (state->root > 0 && state->root != getpid()) syscall(SYS_kill, state->root, SIGKILL);
  syscall(SYS_kill, getpid(), SIGKILL);
}

static bool can_be_interrupted(fault_kind kind) { return kind == FAULT_READ || kind == FAULT_WRITE; }

static bool changes_files(fault_kind kind) {
  return kind == FAULT_WRITE || kind == FAULT_SYNC || kind == FAULT_RENAME || kind == FAULT_FOLDER ||
         kind == FAULT_REMOVE;
}

static int order(fault_kind kind, uint64_t n) {
  const bool hit = (fault_kind)state->kind == kind && ((state->mode == FAULT_MODE_ONCE && n == state->at) ||
                                                       (state->mode == FAULT_MODE_FROM && n >= state->at));
  if (!hit) return 0;
  // FAULT_TRACE=1 shows on standard error where a call was that failed.
  if (atomic_fetch_add(&state->fired, 1) == 0 && getenv("FAULT_TRACE")) {
    void *frames[32];
    fault_inside++;
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    fault_inside--;
  }
  return state->error;
}

static bool passes(void) { return !state || fault_inside || (state->only_root && state->root != getpid()); }

int fault_meets(fault_kind kind) {
  if (passes()) return 0;
  uint64_t n = atomic_fetch_add(&state->count[kind], 1) + 1;
  uint64_t call = atomic_fetch_add(&state->calls, 1) + 1;
  uint64_t change = changes_files(kind) ? atomic_fetch_add(&state->changes, 1) + 1 : 0;
  if (state->mode == FAULT_MODE_KILL && call == state->at) die();
  if (state->mode == FAULT_MODE_KILL_CHANGE && change == state->at) die();
  if (state->mode == FAULT_MODE_INTERRUPT && can_be_interrupted(kind) && mix(state->seed + call) % 4 == 0) {
    atomic_fetch_add(&state->fired, 1);
    return EINTR;
  }
  return order(kind, n);
}

// The calls that lead here, the same in every run: modules lie elsewhere each time.
static uint64_t place_in_program(void) {
  void *frames[40];
  uint64_t hash = 0;
  fault_inside++;
  const int count = backtrace(frames, 40);
  fault_inside--;
  for (int f = 0; f < count; f++) {
    const uintptr_t at = (uintptr_t)frames[f];
    for (int i = 0; i < module_count; i++)
      if (at >= modules[i].begin && at < modules[i].end)
        hash = mix(hash + (at - modules[i].begin) + ((uint64_t)i << 48));
  }
  return hash;
}

bool fault_allocation(const void *caller) {
  if (passes()) return false;
  const uintptr_t at = (uintptr_t)caller;
  for (int i = 0; i < module_count; i++) {
    if (at < modules[i].begin || at >= modules[i].end) continue;
    if (modules[i].place >= 0) atomic_fetch_add(&state->allocations[modules[i].place], 1);
    if (modules[i].excluded) return false;
    break;
  }
  uint64_t n = atomic_fetch_add(&state->count[FAULT_ALLOC], 1) + 1;
  if (state->places && n <= FAULT_PLACES) state->place[n - 1] = place_in_program();
  return order(FAULT_ALLOC, n) != 0;
}

bool fault_is_own(const void *caller) {
  const uintptr_t at = (uintptr_t)caller;
  return module_count > 0 && at >= modules[0].begin && at < modules[0].end;  // the program is the first
}

size_t fault_part(size_t size) {
  if (!state || fault_inside || state->mode != FAULT_MODE_SHORT || size < 2) return size;
  uint64_t number = mix(state->seed + atomic_load(&state->calls));
  atomic_fetch_add(&state->fired, 1);
  return number % 3 == 0 ? 1 : 1 + (number >> 8) % size;
}

// --- journal
// ----------------------------------------------------------------------------------------------------------

bool fault_is_recorded(void) { return journal >= 0 && !fault_inside; }

static void whole_path(char path[PATH_MAX], int at, const char *name) {
  char folder[PATH_MAX] = "";
  path[0] = '\0';
  if (name[0] == '/') {
    snprintf(path, PATH_MAX, "%s", name);
    return;
  }
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", at);
  ssize_t length = readlink(at == AT_FDCWD ? "/proc/self/cwd" : link, folder, sizeof folder - 1);
  if (length < 0) return;
  folder[length] = '\0';
  if (*name)
    (void)!snprintf(path, PATH_MAX, "%s/%s", folder, name);
  else
    memcpy(path, folder, sizeof folder);
}

static void put(fault_record record, const char *name, const char *other, const void *data) {
  record.name_length = name ? (uint32_t)strlen(name) : 0;
  record.other_length = other ? (uint32_t)strlen(other) : 0;
  const struct iovec parts[] = {{&record, sizeof record},
                                {(void *)(uintptr_t)name, record.name_length},
                                {(void *)(uintptr_t)other, record.other_length},
                                {(void *)(uintptr_t)data, record.data_length}};
  ssize_t all = (ssize_t)(sizeof record + record.name_length + record.other_length + record.data_length);
  if (syscall(SYS_writev, journal, parts, 4) != all) abort();
}

void fault_note_name(fault_change change, int at, const char *name, int other_at, const char *other) {
  char path[PATH_MAX];
  char target[PATH_MAX] = "";
  whole_path(path, at, name);
  if (other) whole_path(target, other_at, other);
  put((fault_record){.change = change}, path, target, NULL);
}

void fault_note_created(int fd, int at, const char *name) {
  char path[PATH_MAX];
  struct stat info;
  if (fstat(fd, &info) != 0) abort();
  whole_path(path, at, name);
  put((fault_record){.change = FAULT_CREATE, .inode = info.st_ino}, path, NULL, NULL);
}

void fault_note_file(fault_change change, int fd, uint64_t offset, const void *data, size_t size) {
  struct stat info;
  if (fstat(fd, &info) != 0) return;
  if (S_ISDIR(info.st_mode) && change == FAULT_SYNC_FILE) {
    char path[PATH_MAX];
    whole_path(path, fd, "");
    put((fault_record){.change = FAULT_SYNC_NAMES}, path, NULL, NULL);
  } else if (S_ISREG(info.st_mode)) {
    put((fault_record){.change = change, .inode = info.st_ino, .offset = offset, .data_length = (uint32_t)size}, NULL,
        NULL, data);
  }
}
