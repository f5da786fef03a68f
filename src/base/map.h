// Read-only memory maps of files, and what happens when such a file is cut off or overwritten while it is read.
//
// Reading a page of a map that its file no longer has raises SIGBUS. A program that hands the fault on (tarn/process.h)
// goes on with zeros in place of the file, and the map is known to be lost. So whoever reads a map trusts nothing that
// came from it before tarn__map_check() has said that the file is still what it was: before an update of a model is
// made, before a file is put in its place, before a result is handed over. What is read must be safe to use whatever
// it is: indices are checked, sizes are copied first.
#ifndef TARN_BASE_MAP_H
#define TARN_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Zero-initialise. Close accepts a map that was never opened.
typedef struct tarn__map {
  const uint8_t *data;
  size_t size;
  struct tarn__map_entry *entry;  // private
} tarn__map;
// Keeps the file open, so that its size and time can be asked for. Fails with IO (no regular file, not readable) or
// MEMORY.
tarn_status tarn__map_open(tarn__map *map, const char *path) TARN_CHECKED;
void tarn__map_close(tarn__map *map);

// Fails with IO, naming the file, if pages of it were lost, or if its size or its time of change is not what it was
// when the map was opened. Costs one fstat(). Any thread may call it. A map that is not open is whole.
tarn_status tarn__map_check(const tarn__map *map) TARN_CHECKED;
// The status of work on a map: that of tarn__map_check() where it fails, because then all else that went wrong comes
// from there, and `status` otherwise.
tarn_status tarn__map_judge(const tarn__map *map, tarn_status status) TARN_CHECKED;
// Says that what was read cannot have been in the file when it was checked: tarn__map_check() fails from now on.
void tarn__map_doubt(const tarn__map *map);

// Gives the memory of all pages that were read back to the system; they are read again when they are needed.
void tarn__map_release(const tarn__map *map);
// The same of the pages of some bytes. Who goes through a large map once does it in pieces of this size: in smaller
// ones the system, which maps pages around the one that is read, would bring many back.
enum { TARN__MAP_PIECE = 1 << 20 };
void tarn__map_release_part(const tarn__map *map, const void *data, size_t size);
// Begins to read bytes of a file that are needed soon; those beyond its end are left out.
void tarn__map_expect(const tarn__map *map, const void *data, size_t size);
// Copies bytes of a map and releases them piece by piece.
void tarn__map_take(void *out, const tarn__map *map, const void *data, size_t size);

#endif
