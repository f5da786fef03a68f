// Read-only memory maps of files, and the handling of files that are truncated or overwritten while they are read.
//
// Reading a page of a map that its file no longer has raises SIGBUS. A program that forwards the fault (tarn/process.h)
// continues with zeros in place of the file, and the map is marked as lost. So readers of a map must call
// tarn__map_check() before they rely on its data: before an update of a model, before a file is put in place, before a
// result is returned. Data must be safe to use whatever their values: indices are checked, sizes are copied first.
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
// Keeps the file open to query its size and time. Fails with IO (no regular file, not readable) or MEMORY.
tarn_status tarn__map_open(tarn__map *map, const char *path) TARN_CHECKED;
void tarn__map_close(tarn__map *map);

// Fails with IO, naming the file, if pages of it were lost, or if its size or modification time has changed since the
// map was opened. Costs one fstat(). Any thread may call it. A map that is not open passes.
tarn_status tarn__map_check(const tarn__map *map) TARN_CHECKED;
// The status of work on a map: that of tarn__map_check() if it fails, because then it caused all other failures, else
// `status`.
tarn_status tarn__map_judge(const tarn__map *map, tarn_status status) TARN_CHECKED;
// Records that the data read differ from those checked earlier: tarn__map_check() fails from now on.
void tarn__map_doubt(const tarn__map *map);

// Returns the memory of all pages to the system; they are read again when needed.
void tarn__map_release(const tarn__map *map);
// The same for the pages of some bytes. A single pass over a large map uses pieces of this size: with smaller ones the
// system, which maps pages around the one that is read, would bring many back.
enum { TARN__MAP_PIECE = 1 << 20 };
void tarn__map_release_part(const tarn__map *map, const void *data, size_t size);
// Starts reading bytes that are needed soon; those beyond the end are ignored.
void tarn__map_expect(const tarn__map *map, const void *data, size_t size);
// Copies bytes of a map and releases them piece by piece.
void tarn__map_take(void *out, const tarn__map *map, const void *data, size_t size);

#endif
