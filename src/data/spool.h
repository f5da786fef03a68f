// Bytes kept on disk until the content before them in a file is known.
#ifndef TARN_DATA_SPOOL_H
#define TARN_DATA_SPOOL_H

#include <stddef.h>

#include "base/file.h"
#include "base/hash.h"

typedef struct tarn__spool tarn__spool;

// The bytes are in a temporary file next to `path`, which must be, or become, a regular file.
tarn_status tarn__spool_open(tarn__spool **spool, const char *path) TARN_CHECKED;
void tarn__spool_close(tarn__spool **spool);

tarn_status tarn__spool_put(tarn__spool *spool, const void *data, size_t size) TARN_CHECKED;
// Bytes put so far, and their hash.
size_t tarn__spool_size(const tarn__spool *spool);
void tarn__spool_hash(char text[TARN__HASH_TEXT], const tarn__spool *spool);
// Writes them all; nothing may be put afterwards. Fails with IO also if the temporary file was changed.
tarn_status tarn__spool_copy(tarn__spool *spool, tarn__writer *file) TARN_CHECKED;

#endif
