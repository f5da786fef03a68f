// The header of a shard file, shared by its writer and reader; described in docs/shard-format.md.
#ifndef TARN_DATA_SHARD_FORMAT_H
#define TARN_DATA_SHARD_FORMAT_H

#include <stdint.h>

#include "base/status.h"
#include "run/file_kind.h"

// Files with more than tokens about their rows have version 2, files of images version 3; all others are written as
// version 1.
enum {
  TARN__SHARD_VERSION = 1,
  TARN__SHARD_VERSION_ROWS = 2,
  TARN__SHARD_VERSION_IMAGES = 3,
  TARN__SHARD_HASH = 32,
  TARN__SHARD_LONGEST = 1 << 24
};
// The properties of rows in version 2.
enum {
  TARN__SHARD_CONTINUES = 1,  // windows of a stream
  TARN__SHARD_CLASSES = 2,    // a class per row, and the names of the classes
  TARN__SHARD_NUMBERS = 4,    // a number per row
  TARN__SHARD_SEGMENTS = 8,   // the start of the second sentence of a row
  TARN__SHARD_PACKED = 16,    // rows of whole sentences, each with its end
  TARN__SHARD_WORDS = 32,     // with classes: a class per word instead of per row
  TARN__SHARD_IMAGES = 64,    // with classes, in version 3: a row is an image, an id of 1 byte each of its bytes
  TARN__SHARD_FLAGS = 128     // one more than all of them together
};
enum { TARN__SHARD_CLASSES_MOST = 10000, TARN__SHARD_NAME_LONGEST = 255 };  // classes, and bytes of a name

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
// Behind the header in version 2.
typedef struct tarn__shard_rows {
  uint32_t flags;
  int32_t classes;     // 0: the rows have none
  int64_t names_size;  // bytes of all names of classes, each with a zero byte at its end
  char names_hash[TARN__SHARD_HASH], labels_hash[TARN__SHARD_HASH], segments_hash[TARN__SHARD_HASH];
  int64_t bytes, characters;        // of a stream's text, each line end counted as one; 0: unknown
  int32_t height, width, channels;  // of images; else 0
  char zero[84];
  char hash[TARN__SHARD_HASH];  // of all fields before it, including the header
} tarn__shard_rows;

_Static_assert(sizeof(tarn__shard_rows) == 256, "what version 2 adds to the header has 256 bytes and no gaps");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shards are read in place and little-endian");

#endif
