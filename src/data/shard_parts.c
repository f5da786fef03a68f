#include "data/shard_parts.h"

#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "data/shard_index.h"
#include "data/shard_sections.h"

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static bool is_entry(const tarn__shard *part, const tarn__index_entry *entry) {
  char hash[TARN__HASH_TEXT] = "";
  memcpy(hash, entry->hash, TARN__SHARD_HASH);
  return tarn__hash_same(hash, part->hash) && part->map.size == (size_t)entry->bytes && part->pairs == entry->pairs &&
         part->source_tokens == entry->source_tokens && part->target_tokens == entry->target_tokens;
}

// Whether a part may follow the first one.
static tarn_status check_same(const tarn__shard *first, const tarn__shard *part) {
  TARN_REQUIRE(!part->labels && !part->word_labels && !part->numbers && !part->segments, DATA,
               "its sentences have labels or second sentences, which is for shards of one file");
  TARN_REQUIRE(part->text == first->text && part->continues == first->continues && part->packed == first->packed, DATA,
               "its rows are of another kind than those of the first part");
  TARN_REQUIRE(strcmp(part->source_vocab_hash, first->source_vocab_hash) == 0 &&
                   strcmp(part->target_vocab_hash, first->target_vocab_hash) == 0 &&
                   part->source_vocab_size == first->source_vocab_size &&
                   part->target_vocab_size == first->target_vocab_size && part->source_eos == first->source_eos &&
                   part->target_eos == first->target_eos,
               DATA, "it was made with another vocabulary than the first part");
  return TARN_STATUS_OK;
}

static tarn_status open_part(tarn__shard *s, tarn__shard_opening *opening, const tarn__index_entry *entry, int i) {
  char path[PATH_MAX];
  tarn__shard *part = &s->parts[i];
  TARN_TRY(tarn__shard_index_path(path, sizeof path, s->path, entry->name));
  s->part_count = i + 1;  // must be closed
  TARN_TRY(tarn__shard_open_file(part, opening, path));
  TARN_REQUIRE(is_entry(part, entry), DATA, "%s: it is not the shard that the index names: its hash or counts differ",
               path);
  const tarn_status status = check_same(&s->parts[0], part);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: ", path);
}

// The index has checked that the sums of pairs and tokens do not overflow; only the parts have the length of the text.
static tarn_status add_part(tarn__shard *s, const tarn__shard *part) {
  TARN_REQUIRE(part->bytes <= INT64_MAX - s->bytes && part->characters <= INT64_MAX - s->characters, DATA,
               "its text of %lld bytes and those before it are too large", (long long)part->bytes);
  s->pairs += part->pairs;
  s->source_tokens += part->source_tokens;
  s->target_tokens += part->target_tokens;
  s->longest_source = larger(s->longest_source, part->longest_source);
  s->longest_target = larger(s->longest_target, part->longest_target);
  s->bytes += part->bytes;
  s->characters += part->characters;
  s->file_bytes += part->file_bytes;
  return TARN_STATUS_OK;
}

static void take_first(tarn__shard *s, const tarn__shard *first) {
  s->text = first->text;
  s->source_vocab_size = first->source_vocab_size;
  s->target_vocab_size = first->target_vocab_size;
  s->source_eos = first->source_eos;
  s->target_eos = first->target_eos;
  memcpy(s->source_vocab_hash, first->source_vocab_hash, TARN__HASH_TEXT);
  memcpy(s->target_vocab_hash, first->target_vocab_hash, TARN__HASH_TEXT);
  s->continues = first->continues;
  s->packed = first->packed;
}

// The hash of the offsets of all parts, as if they were one shard.
static tarn_status hash_offsets(char out[TARN__SHARD_HASH], const tarn__shard *s) {
  enum { ROOM = 1024 };
  int64_t room[ROOM] = {0}, base = 0, used = 1;
  char text[TARN__HASH_TEXT];
  tarn__hasher *hasher;
  TARN_TRY(tarn__hasher_open(&hasher));
  for (int i = 0; i < s->part_count; i++) {
    const tarn__shard *part = &s->parts[i];
    const int64_t count = part->pairs * (part->text ? 1 : 2);
    for (int64_t k = 1; k <= count; k++) {
      room[used++] = base + part->offsets[k];
      if (used < ROOM) continue;
      tarn__hasher_add(hasher, room, sizeof room);
      used = 0;
    }
    base += part->offsets[count];
  }
  tarn__hasher_text(text, hasher, room, (size_t)used * sizeof *room);
  tarn__hasher_close(&hasher);
  memcpy(out, text, TARN__SHARD_HASH);
  return TARN_STATUS_OK;
}

// The hash of a single shard with all rows, so it depends neither on the names of the parts nor on where the set was
// cut.
static tarn_status make_hash(tarn__shard *s, const tarn__shard_opening *first, const char ids[TARN__HASH_TEXT]) {
  tarn__shard_opening all = *first;
  tarn__shard_header *h = &all.header;
  h->pairs = s->pairs;
  h->source_tokens = s->source_tokens;
  h->target_tokens = s->target_tokens;
  h->longest_source = s->longest_source;
  h->longest_target = s->longest_target;
  all.rows.bytes = s->bytes;
  all.rows.characters = s->characters;
  TARN_TRY(hash_offsets(h->offsets_hash, s));
  memcpy(h->ids_hash, ids, TARN__SHARD_HASH);
  tarn__shard_seal(h, &all.rows);
  memcpy(s->hash, all.rows.flags ? all.rows.hash : h->header_hash, TARN__SHARD_HASH);
  return TARN_STATUS_OK;
}

static tarn_status open_all(tarn__shard *s, const tarn__shard_index *index, tarn__shard_opening *openings) {
  const uint32_t count = index->header.parts;
  char ids[TARN__HASH_TEXT];
  int bad = 0;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof *s->parts));
  s->parts = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof *s->first));
  s->first = memory;
  for (uint32_t i = 0; i < count; i++) {
    tarn_status status = open_part(s, &openings[i], &index->parts[i], (int)i);
    if (i == 0 && status == TARN_STATUS_OK) take_first(s, &s->parts[0]);
    s->first[i] = s->pairs;
    if (status == TARN_STATUS_OK) status = add_part(s, &s->parts[i]);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: part %u: ", s->path, i + 1);
  }
  const tarn_status status = tarn__shard_check_ids(s->parts, (int)count, openings, s->path, ids, &bad);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: part %d: ", s->path, bad + 1);
  return make_hash(s, &openings[0], ids);
}

tarn_status tarn__shard_open_parts(tarn__shard *shard) {
  tarn__shard_index index;
  void *openings;
  tarn_status status = tarn__shard_index_read(&index, shard->map.data, shard->map.size);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", shard->path);
  shard->file_bytes = (int64_t)shard->map.size;
  status = tarn__alloc(&openings, TARN__MEMORY_OTHER, index.header.parts, sizeof(tarn__shard_opening));
  if (status == TARN_STATUS_OK) {
    status = open_all(shard, &index, openings);
    tarn__free(openings);
  }
  tarn__shard_index_close(&index);
  return status;
}

const tarn__shard *tarn__shard_part_of(const tarn__shard *s, int64_t *pair) {
  if (!s->parts) return s;
  int low = 0, high = s->part_count;  // the part is one of low .. high - 1
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (s->first[middle] <= *pair)
      low = middle;
    else
      high = middle;
  }
  *pair -= s->first[low];
  return &s->parts[low];
}
