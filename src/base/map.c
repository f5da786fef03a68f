#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "tarn/process.h"

enum { MOST_MAPS = 1024 };  // open at the same time

// An open map. The entries are a plain array, because a signal handler walks over them.
typedef struct tarn__map_entry {
  atomic_uintptr_t begin;  // 0: unused
  atomic_size_t size;
  atomic_bool lost;
  bool taken;
  int fd;
  struct stat first;  // at the opening of the map
  char *path;
} entry;

static entry entries[MOST_MAPS];
static atomic_size_t page_bytes;                          // known from the first map on
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of `taken`; handlers do not take it

static tarn_status fail_errno(const char *action, const char *path) {
  return tarn__fail(TARN_STATUS_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

static entry *take_entry(void) {
  entry *found = NULL;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MOST_MAPS && !found; i++)
    if (!entries[i].taken) found = &entries[i];
  if (found) found->taken = true;
  pthread_mutex_unlock(&lock);
  return found;
}

static void give_entry(entry *e) {
  atomic_store(&e->begin, 0);
  if (e->fd >= 0) close(e->fd);
  tarn__free(e->path);
  e->path = NULL;
  pthread_mutex_lock(&lock);
  e->taken = false;
  pthread_mutex_unlock(&lock);
}

static tarn_status open_entry(entry *e, tarn__map *map, const char *path) {
  TARN_TRY(tarn__strdup(&e->path, path));
  e->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // so that a named pipe does not block for ever
  if (e->fd < 0) return fail_errno("read", path);
  if (fstat(e->fd, &e->first) != 0) return fail_errno("read", path);
  TARN_REQUIRE(S_ISREG(e->first.st_mode), IO, "%s: cannot read: not a regular file", path);
  map->entry = e;
  if (e->first.st_size == 0) return TARN_STATUS_OK;
  const size_t size = (size_t)e->first.st_size;
  void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, e->fd, 0);
  if (data == MAP_FAILED) return fail_errno("map", path);
  map->data = data;
  map->size = size;
  atomic_store(&page_bytes, (size_t)sysconf(_SC_PAGESIZE));
  atomic_store(&e->size, size);
  atomic_store(&e->begin, (uintptr_t)data);  // last: from now on the handler sees it
  return TARN_STATUS_OK;
}

tarn_status tarn__map_open(tarn__map *map, const char *path) {
  *map = (tarn__map){0};
  entry *e = take_entry();
  TARN_REQUIRE(e, IO, "%s: cannot read: more than %d files are mapped at the same time", path, MOST_MAPS);
  e->fd = -1;
  atomic_store(&e->lost, false);
  tarn_status status = open_entry(e, map, path);
  if (status == TARN_STATUS_OK) return status;
  give_entry(e);
  *map = (tarn__map){0};
  return status;
}

void tarn__map_close(tarn__map *map) {
  entry *e = map->entry;
  if (e) atomic_store(&e->begin, 0);
  if (map->data) munmap((void *)(uintptr_t)map->data, map->size);
  if (e) give_entry(e);
  *map = (tarn__map){0};
}

bool tarn_mapped_fault(const void *address) {
  const int before = errno;
  const uintptr_t at = (uintptr_t)address;
  bool known = false;
  for (size_t i = 0; i < MOST_MAPS && !known; i++) {
    entry *e = &entries[i];
    const uintptr_t begin = atomic_load(&e->begin);
    const size_t size = atomic_load(&e->size), page = atomic_load(&page_bytes);
    if (begin == 0 || at < begin || at - begin >= size) continue;
    atomic_store(&e->lost, true);
    // To the end, so that a long file costs one fault. The last page is a whole page, as in the map.
    const uintptr_t from = at / page * page;
    known = mmap((void *)from, begin + size - from, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
            MAP_FAILED;
  }
  errno = before;
  return known;
}

tarn_status tarn__map_check(const tarn__map *map) {
  const entry *e = map->entry;
  struct stat now;
  if (!e) return TARN_STATUS_OK;
  TARN_REQUIRE(!atomic_load(&e->lost), IO,
               "%s: it was cut off or overwritten while it was in use, or its disk cannot be read", e->path);
  if (fstat(e->fd, &now) != 0) return fail_errno("read", e->path);
  TARN_REQUIRE(now.st_size == e->first.st_size, IO, "%s: it changed while it was in use: from %lld to %lld bytes",
               e->path, (long long)e->first.st_size, (long long)now.st_size);
  TARN_REQUIRE(now.st_mtim.tv_sec == e->first.st_mtim.tv_sec && now.st_mtim.tv_nsec == e->first.st_mtim.tv_nsec, IO,
               "%s: it changed while it was in use: the time of its last change is not what it was when it was opened",
               e->path);
  return TARN_STATUS_OK;
}

tarn_status tarn__map_judge(const tarn__map *map, tarn_status status) {
  TARN_TRY(tarn__map_check(map));  // if it does not fail, the message of `status` remains
  return status;
}

void tarn__map_doubt(const tarn__map *map) {
  if (map->entry) atomic_store(&map->entry->lost, true);
}

void tarn__map_release_part(const tarn__map *map, const void *data, size_t size) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = (uintptr_t)map->data;
  if (!map->data || (uintptr_t)data < begin || (uintptr_t)data - begin + size > map->size) return;
  // Whole pages; a failure leaves them resident, which costs only memory.
  uintptr_t first = ((uintptr_t)data - begin) / page * page;
  (void)madvise((void *)(begin + first), (uintptr_t)data - begin + size - first, MADV_DONTNEED);
}

void tarn__map_release(const tarn__map *map) { tarn__map_release_part(map, map->data, map->size); }

void tarn__map_expect(const tarn__map *map, const void *data, size_t size) {
  const size_t step = 128 * 1024;  // the system reads at most its read-ahead per call, which may be this little
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const uintptr_t begin = (uintptr_t)map->data;
  if (!map->data || (uintptr_t)data < begin || (uintptr_t)data - begin >= map->size) return;
  const size_t first = ((uintptr_t)data - begin) / page * page, rest = map->size - first;
  for (size_t at = 0; at < size && at < rest; at += step)
    (void)madvise((void *)(begin + first + at), rest - at < step ? rest - at : step, MADV_WILLNEED);
}

void tarn__map_take(void *out, const tarn__map *map, const void *data, size_t size) {
  const size_t piece = TARN__MAP_PIECE;
  for (size_t done = 0; done < size; done += piece) {
    size_t now = size - done < piece ? size - done : piece;
    memcpy((char *)out + done, (const char *)data + done, now);
    tarn__map_release_part(map, (const char *)data + done, now);
  }
}
