// Memory of a process that other processes of the same machine read: what ranks that share a machine hand each other
// without a copy by MPI. It has no name in a file system and no limit but the machine's memory, and goes with the last
// process that has it, however that ends.
#ifndef TARN_COMM_SHARED_ROOMS_H
#define TARN_COMM_SHARED_ROOMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Where a rank's memory is found.
typedef struct tarn__shared_place {
  char machine[160];  // what tells machines apart, and what shall be as good as machines; "": it has none
  int64_t process, descriptor, file;
} tarn__shared_place;

// Zero-initialise.
typedef struct tarn__shared_rooms {
  char **rooms;  // [size], once all are seen; only the own one may be written to
  int size, own;
  size_t bytes;  // of each
  char *memory;  // the own one
  int descriptor;
} tarn__shared_rooms;

// Makes the memory of this rank, and says where it is. Where the system does not let it, so says the place.
void tarn__shared_rooms_make(tarn__shared_rooms *rooms, tarn__shared_place *place, size_t bytes);
// Looks for the memory of all ranks. False: one of them is on another machine, or this process may not read of it.
bool tarn__shared_rooms_see(tarn__shared_rooms *rooms, const tarn__shared_place *all, int rank, int size);
// Whether they are seen.
static inline bool tarn__shared_rooms_open(const tarn__shared_rooms *rooms) { return rooms->rooms != NULL; }
void tarn__shared_rooms_close(tarn__shared_rooms *rooms);

#endif
