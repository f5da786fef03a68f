// The header of a shard file as its writer and its reader share it; docs/shard-format.md describes it.
#ifndef TARN_DATA_SHARD_FORMAT_H
#define TARN_DATA_SHARD_FORMAT_H

#include <stdint.h>

#include "base/file_kind.h"
#include "base/status.h"

enum { TARN__SHARD_VERSION = 1, TARN__SHARD_HASH = 32, TARN__SHARD_LONGEST = 1 << 24 };

typedef struct tarn__shard_header {
  char magic[8];
  uint32_t version, id_bytes;
  int64_t pairs, source_tokens, target_tokens, longest_source, longest_target;
  int32_t source_vocab_size, target_vocab_size, source_eos, target_eos;
  char source_vocab_hash[TARN__SHARD_HASH], target_vocab_hash[TARN__SHARD_HASH];
  char offsets_hash[TARN__SHARD_HASH], ids_hash[TARN__SHARD_HASH];
  uint32_t sides;  // 1: a text; 0: pairs, as in files that are older than this field
  char zero[20];
  char header_hash[TARN__SHARD_HASH];
} tarn__shard_header;

_Static_assert(sizeof(tarn__shard_header) == 256, "the header of a shard has 256 bytes and no gaps");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shards are read in place and little-endian");

#endif
