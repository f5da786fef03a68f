// XXH3-128 (libxxhash) of bytes, as the fingerprint of files, vocabularies, frozen weights and checkpoints. It finds
// damage and mix-ups; it is no protection against somebody who forges data.
#ifndef TARN_BASE_HASH_H
#define TARN_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

enum { TARN__HASH_TEXT = 33 };  // 32 hexadecimal digits and a zero byte

// The hash of one block of bytes as lower-case hexadecimal text.
void tarn__hash(char text[TARN__HASH_TEXT], const void *data, size_t size);

// The same of bytes of a map, which are released piece by piece, so that reading a large file once takes no memory.
void tarn__hash_map(char text[TARN__HASH_TEXT], const tarn__map *map, const void *data, size_t size);

// The same of bytes that come one after the other. Fails with MEMORY; close accepts NULL.
typedef struct tarn__hasher tarn__hasher;
tarn_status tarn__hasher_open(tarn__hasher **hasher) TARN_CHECKED;
void tarn__hasher_close(tarn__hasher **hasher);
void tarn__hasher_add(tarn__hasher *hasher, const void *data, size_t size);
// Forgets what was added.
void tarn__hasher_restart(tarn__hasher *hasher);
// The hash of all that was added, with `size` more bytes behind it, which are not added.
void tarn__hasher_text(char text[TARN__HASH_TEXT], const tarn__hasher *hasher, const void *data, size_t size);

// Whether a hash that was stored is the one that was computed, now, of what it was stored for. A build for fuzzing
// (FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION) says yes to all, so that damage comes to those who read what is behind it.
bool tarn__hash_same(const char *stored, const char *computed);

// 64 bits of XXH3 under a seed, for deriving keys from names.
uint64_t tarn__hash64(const void *data, size_t size, uint64_t seed);

#endif
