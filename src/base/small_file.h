// Files that are read whole and may be named by others than the user.
#ifndef TARN_BASE_SMALL_FILE_H
#define TARN_BASE_SMALL_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// As tarn__file_read(), of regular files of at most `most` bytes: a device would fill the memory, and a pipe keep one
// waiting. Fails also with DATA, with a line that names what the file is not, such as "a PNG".
tarn_status tarn__small_file_read(const char *path, char **data, size_t *size, int64_t most,
                                  const char *what) TARN_CHECKED;

#endif
