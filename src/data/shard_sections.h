// Reads the properties of rows, besides their tokens, in version 2 of a shard.
#ifndef TARN_DATA_SHARD_SECTIONS_H
#define TARN_DATA_SHARD_SECTIONS_H

#include "data/shard.h"
#include "data/shard_format.h"

// Whether bytes match a stored hash.
bool tarn__shard_same_hash(const char stored[TARN__SHARD_HASH], const void *data, size_t size);

// Fills in the hash of a header, and in version 2 that of both headers, from their other fields.
void tarn__shard_seal(tarn__shard_header *header, tarn__shard_rows *rows);

// Copies and checks the second header of version 2 (version 1 has none). *beside: bytes in the file other than header,
// offsets and ids.
tarn_status tarn__shard_take_rows(tarn__shard_rows *rows, size_t *beside, const tarn__shard_header *header,
                                  const tarn__map *map) TARN_CHECKED;

// Fills the fields of version 2 with copies of the sections, which begin at `at`, and checks them; `continues` and the
// offsets must be set and checked before.
tarn_status tarn__shard_take_sections(tarn__shard *shard, const tarn__shard_rows *rows, const uint8_t *at) TARN_CHECKED;

#endif
