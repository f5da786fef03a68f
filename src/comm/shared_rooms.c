#include "comm/shared_rooms.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

// The boot of the machine, and the PID and network namespaces: a container counts as another machine, and so do network
// namespaces, between which the user means to use a link.
static bool name_machine(char *name, size_t bytes) {
  char boot[64] = "", processes[40] = "", network[40] = "";
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  const bool read = file && fgets(boot, sizeof boot, file);
  if (file) fclose(file);
  if (!read || readlink("/proc/self/ns/pid", processes, sizeof processes - 1) < 0 ||
      readlink("/proc/self/ns/net", network, sizeof network - 1) < 0)
    return false;
  boot[strcspn(boot, "\n")] = '\0';
  return snprintf(name, bytes, "%s %s %s", boot, processes, network) < (int)bytes;
}

static char *map(int descriptor, size_t bytes, int rights) {
  void *memory = mmap(NULL, bytes, rights, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void tarn__shared_rooms_make(tarn__shared_rooms *rooms, tarn__shared_place *place, size_t bytes) {
  struct stat about;
  *rooms = (tarn__shared_rooms){.bytes = bytes, .descriptor = memfd_create("tarn ranks", MFD_CLOEXEC)};
  memset(place, 0, sizeof *place);
  if (rooms->descriptor < 0) return;
  // Allocated now: writing to a page that cannot be allocated would end the process.
  if (posix_fallocate(rooms->descriptor, 0, (off_t)bytes) != 0 || fstat(rooms->descriptor, &about) != 0) return;
  rooms->memory = map(rooms->descriptor, bytes, PROT_READ | PROT_WRITE);
  if (!rooms->memory || !name_machine(place->machine, sizeof place->machine)) {
    place->machine[0] = '\0';
    return;
  }
  place->process = getpid();
  place->descriptor = rooms->descriptor;
  place->file = (int64_t)about.st_ino;
}

static char *see_one(const tarn__shared_place *place, size_t bytes) {
  char path[64];
  struct stat about;
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)place->process, (long long)place->descriptor);
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return NULL;
  const bool same =
      fstat(descriptor, &about) == 0 && (int64_t)about.st_ino == place->file && about.st_size == (off_t)bytes;
  char *memory = same ? map(descriptor, bytes, PROT_READ) : NULL;
  close(descriptor);
  return memory;
}

bool tarn__shared_rooms_see(tarn__shared_rooms *rooms, const tarn__shared_place *all, int rank, int size) {
  void *memory;
  if (!all[rank].machine[0]) return false;
  for (int r = 0; r < size; r++)
    if (strcmp(all[r].machine, all[rank].machine) != 0) return false;
  if (tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)size, sizeof *rooms->rooms) != TARN_STATUS_OK) return false;
  rooms->rooms = memory;
  rooms->own = rank;
  for (rooms->size = 0; rooms->size < size; rooms->size++) {
    char *room = rooms->size == rank ? rooms->memory : see_one(&all[rooms->size], rooms->bytes);
    if (!room) return false;
    rooms->rooms[rooms->size] = room;
  }
  return true;
}

void tarn__shared_rooms_close(tarn__shared_rooms *rooms) {
  for (int r = 0; r < rooms->size; r++)
    if (r != rooms->own) munmap(rooms->rooms[r], rooms->bytes);
  if (rooms->memory) munmap(rooms->memory, rooms->bytes);
  if (rooms->bytes > 0 && rooms->descriptor >= 0) close(rooms->descriptor);
  tarn__free(rooms->rooms);
  *rooms = (tarn__shared_rooms){0};
}
