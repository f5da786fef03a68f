// Files: whole reads, memory maps, and writes that replace a file atomically or leave it as it was.
#ifndef TARN_BASE_FILE_H
#define TARN_BASE_FILE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tarn/output_file.h"

// Reads a whole file into memory that the caller frees with tarn__free(); a zero byte is put after the last byte.
tarn_status tarn__file_read(const char *path, char **data, size_t *size) TARN_CHECKED;

// A read-only memory map of a file. Zero-initialise. Close accepts a map that was never opened.
typedef struct tarn__map {
  const uint8_t *data;
  size_t size;
} tarn__map;
tarn_status tarn__map_open(tarn__map *map, const char *path) TARN_CHECKED;
void tarn__map_close(tarn__map *map);
// Gives the memory of all pages that were read back to the system; they are read again when they are needed.
void tarn__map_release(const tarn__map *map);
// The same of the pages of some bytes. Who goes through a large map once does it in pieces of this size: in smaller
// ones the system, which maps pages around the one that is read, would bring many back.
enum { TARN__MAP_PIECE = 1 << 20 };
void tarn__map_release_part(const tarn__map *map, const void *data, size_t size);
// Copies bytes of a map and releases them piece by piece.
void tarn__map_take(void *out, const tarn__map *map, const void *data, size_t size);

// A writer is an output (tarn/output_file.h), under the names that the library uses. A kill leaves at most its
// temporary file, whose name is the first bytes of the file's, the mark, the number of the process and, where that name
// is taken, a dot and a counter.
#define TARN__TEMPORARY_MARK ".tmp."
enum { TARN__TEMPORARY_KEEPS = 100 };  // bytes; a name that is no longer is kept whole
typedef tarn_output_file tarn__writer;
tarn_status tarn__writer_open(tarn__writer **writer, const char *path) TARN_CHECKED;
// Buffered; reports a full disk with the path's name.
tarn_status tarn__writer_put(tarn__writer *writer, const void *data, size_t size) TARN_CHECKED;
tarn_status tarn__writer_commit(tarn__writer **writer) TARN_CHECKED;
void tarn__writer_abort(tarn__writer **writer);

// Writes a small file whole and atomically.
tarn_status tarn__file_write(const char *path, const void *data, size_t size) TARN_CHECKED;

// Makes a folder and those above it; an existing folder is fine.
tarn_status tarn__mkdir(const char *path) TARN_CHECKED;
// Makes the folder that a file will stand in, and those above it.
tarn_status tarn__mkdir_of_file(const char *path) TARN_CHECKED;

// Bytes that this process may still write to the file system of an existing folder.
tarn_status tarn__disk_free(uint64_t *bytes, const char *folder) TARN_CHECKED;

// The path of a name in a folder, which may end with a slash, or be "": then it is the name. Fails with IO if it is too
// long for the system.
tarn_status tarn__path_join(char path[PATH_MAX], const char *folder, const char *name) TARN_CHECKED;

// 1 if the path exists, else 0.
int tarn__file_exists(const char *path);

// Takes an exclusive lock that the kernel drops when the process ends. Fails with TARN_STATUS_BUSY, naming the
// holder's process id where it is known. `*fd` is to be given to tarn__unlock().
tarn_status tarn__lock(int *fd, const char *path) TARN_CHECKED;
void tarn__unlock(int *fd);

#endif
