// XXH3-128 (libxxhash) of bytes, as the fingerprint of files, vocabularies, frozen weights and checkpoints. It detects
// damage and mix-ups but not forgery.
#ifndef TARN_BASE_HASH_H
#define TARN_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

enum { TARN__HASH_TEXT = 33 };  // 32 hexadecimal digits and a zero byte

// The hash of one block of bytes as lower-case hexadecimal text.
void tarn__hash(char text[TARN__HASH_TEXT], const void *data, size_t size);

// The same for bytes of a map, which are released piece by piece, so that reading a large file once takes no memory.
void tarn__hash_map(char text[TARN__HASH_TEXT], const tarn__map *map, const void *data, size_t size);

// The same for a file. Fails with IO.
tarn_status tarn__hash_file(char text[TARN__HASH_TEXT], const char *path) TARN_CHECKED;

// The same incrementally. Fails with MEMORY; close accepts NULL.
typedef struct tarn__hasher tarn__hasher;
tarn_status tarn__hasher_open(tarn__hasher **hasher) TARN_CHECKED;
void tarn__hasher_close(tarn__hasher **hasher);
void tarn__hasher_add(tarn__hasher *hasher, const void *data, size_t size);
// Discards the added bytes.
void tarn__hasher_restart(tarn__hasher *hasher);
// The hash of all added bytes followed by `size` more, which are not added.
void tarn__hasher_text(char text[TARN__HASH_TEXT], const tarn__hasher *hasher, const void *data, size_t size);

// Whether a stored hash equals the computed one. A build for fuzzing (FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION) always
// says yes, so that damaged data reach the readers behind the check.
bool tarn__hash_same(const char *stored, const char *computed);

// 64 bits of XXH3 under a seed, for deriving keys from names.
uint64_t tarn__hash64(const void *data, size_t size, uint64_t seed);

#endif
