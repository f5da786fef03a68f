// Memory of a process that other processes of the same machine read, through which ranks on one machine exchange data
// without a copy by MPI. It has no name in a file system and no limit but the machine's memory, and disappears with the
// last process that has it.
#ifndef TARN_COMM_SHARED_ROOMS_H
#define TARN_COMM_SHARED_ROOMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The location of a rank's memory.
typedef struct tarn__shared_place {
  char machine[160];  // identifies the machine, or what counts as one; "": no shared memory
  int64_t process, descriptor, file;
} tarn__shared_place;

// Zero-initialise.
typedef struct tarn__shared_rooms {
  char **rooms;  // [size], once all are mapped; only the own one may be written
  int size, own;
  size_t bytes;  // of each
  char *memory;  // the own one
  int descriptor;
} tarn__shared_rooms;

// Creates the memory of this rank, and sets its place. If the system refuses, the place says so.
void tarn__shared_rooms_make(tarn__shared_rooms *rooms, tarn__shared_place *place, size_t bytes);
// Maps the memory of all ranks. False: one of them is on another machine, or is not readable.
bool tarn__shared_rooms_see(tarn__shared_rooms *rooms, const tarn__shared_place *all, int rank, int size);
// Whether they are mapped.
static inline bool tarn__shared_rooms_open(const tarn__shared_rooms *rooms) { return rooms->rooms != NULL; }
void tarn__shared_rooms_close(tarn__shared_rooms *rooms);

#endif
