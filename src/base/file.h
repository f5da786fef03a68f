// Files: reads of whole files, and writes that replace a file atomically or leave it unchanged.
#ifndef TARN_BASE_FILE_H
#define TARN_BASE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/status.h"
#include "tarn/text.h"

// Reads a whole file into memory that the caller frees with tarn__free(); a zero byte follows the last byte.
tarn_status tarn__file_read(const char *path, char **data, size_t *size) TARN_CHECKED;

// A writer is an output (tarn/text.h), under the names that the library uses. A kill leaves at most its
// temporary file (base/temporary.h).
typedef tarn_output_file tarn__writer;
tarn_status tarn__writer_open(tarn__writer **writer, const char *path) TARN_CHECKED;
// Buffered; reports a full disk with the path's name.
tarn_status tarn__writer_put(tarn__writer *writer, const void *data, size_t size) TARN_CHECKED;
tarn_status tarn__writer_commit(tarn__writer **writer) TARN_CHECKED;
void tarn__writer_abort(tarn__writer **writer);

// Writes a small file atomically.
tarn_status tarn__file_write(const char *path, const void *data, size_t size) TARN_CHECKED;

// Copies the file of this name from one folder to another, atomically; nothing happens if it is missing or no regular
// file.
tarn_status tarn__file_copy(const char *from, const char *to, const char *name) TARN_CHECKED;

// Makes a folder and its parents, and syncs their names to disk; accepts an existing folder.
tarn_status tarn__mkdir(const char *path) TARN_CHECKED;
// Makes the folder of a file and its parents.
tarn_status tarn__mkdir_of_file(const char *path) TARN_CHECKED;
// Syncs the folder of `path` to disk: otherwise a power cut can undo its creation or renaming. Ignored where the file
// system cannot do it.
void tarn__sync_folder_of(const char *path);

// Bytes that this process may still write to the file system of an existing folder.
tarn_status tarn__disk_free(uint64_t *bytes, const char *folder) TARN_CHECKED;

// The path of a name in a folder, which may end with a slash, or be "": then it is the name. Fails with IO if it is too
// long for the system.
tarn_status tarn__path_join(char path[PATH_MAX], const char *folder, const char *name) TARN_CHECKED;

// The number after the first word `key` of a line of a text file, such as those of /proc; "": that at the beginning of
// the file. 0 if there is none, or no file.
size_t tarn__file_number(const char *path, const char *key);

// 1 if the path exists, else 0.
int tarn__file_exists(const char *path);

// Whether two paths name the same file, which need not exist; paths that cannot be resolved are compared as text.
bool tarn__file_same(const char *a, const char *b);

// Takes an exclusive lock that the kernel drops when the process ends. Fails with TARN_STATUS_BUSY, naming the holder's
// process id if known. `*fd` is passed to tarn__unlock().
tarn_status tarn__lock(int *fd, const char *path) TARN_CHECKED;
void tarn__unlock(int *fd);

#endif
