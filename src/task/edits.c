#include "task/edits.h"

#include <stdio.h>
#include <string.h>

#include "base/edit_path.h"
#include "base/memory.h"
#include "base/random.h"

enum {
  STREAM = 0x65646974u,  // of the random numbers
  SENTENCE_BLOCKS = 24   // each sentence has its own 2^24 blocks of four numbers
};

typedef struct roll_in {
  tarn_config_levenshtein keys;
  const tarn__shard *shard;
  int32_t placeholder;
  int32_t *kept, *gaps;  // what is left of a sentence, and what the expert inserts
  tarn__edits edits;
} roll_in;

int64_t tarn__edits_find(const tarn__edits *edits, int32_t *gaps, const int32_t *a, int64_t n, const int32_t *b,
                         int64_t m) {
  int64_t kept = 0;
  tarn__edit_path(edits->deleted, edits->inserted, a, n, b, m, edits->scratch);
  gaps[0] = 0;
  for (int64_t j = 0; j < m; j++) {
    if (edits->inserted[j])
      gaps[kept]++;
    else
      gaps[++kept] = 0;
  }
  return kept;
}

static tarn__random numbers_of(int64_t pair, uint64_t seed, int64_t epoch) {
  tarn__random random;
  tarn__random_init(&random, seed + (uint64_t)epoch * 0x9E3779B97F4A7C15u, STREAM);
  random.block = (uint64_t)pair << SENTENCE_BLOCKS;
  return random;
}

// The number of words left out of n; uses the first random numbers of the sentence.
static int64_t draw_count(const roll_in *r, tarn__random *random, int64_t n) {
  if (r->keys.beta > 0 && tarn__random_uniform(random) < r->keys.beta) return n;
  return (int64_t)tarn__random_below(random, (uint64_t)n + 1);
}

// Leaves random words out of a sentence, each with the chance that gives the right number of them (Knuth's algorithm
// S); returns what is left.
static int64_t drop(const roll_in *r, tarn__random *random, const int32_t *ids, int64_t n) {
  int64_t left = draw_count(r, random, n), kept = 0;
  for (int64_t i = 0; i < n; i++) {
    const bool out = (int64_t)tarn__random_below(random, (uint64_t)(n - i)) < left;
    left -= out;
    if (!out) r->kept[kept++] = ids[i];
  }
  return kept;
}

static int64_t count_dropped(void *user, int64_t pair, uint64_t seed, int64_t epoch) {
  const roll_in *r = user;
  tarn__random random = numbers_of(pair, seed, epoch);
  return draw_count(r, &random, tarn__shard_target_length(r->shard, pair) - 1);
}

// Appends the sentence without its placeholders, and its gaps.
static void put_kept(const roll_in *r, tarn__batch *batch, const tarn__batch_room *room, int32_t first, int32_t last,
                     int64_t kept) {
  tarn__packed *to = &batch->kept;
  int32_t *ids = room->kept_ids + to->rows, *gaps = room->gaps + to->rows - to->sentences;
  const int64_t length = kept + 2;
  ids[0] = first;
  memcpy(ids + 1, r->kept, (size_t)kept * sizeof *ids);
  ids[length - 1] = last;
  for (int64_t i = 0; i <= kept; i++)
    gaps[i] = r->gaps[i] < r->keys.max_placeholders ? r->gaps[i] : (int32_t)r->keys.max_placeholders;
  for (int64_t i = 0; i < length; i++) room->kept_positions[to->rows + i] = (int32_t)i;
  if (length > to->longest) to->longest = length;
  to->rows += length;
  room->kept_offsets[++to->sentences] = (int32_t)to->rows;
}

// The rows of a sentence are its first border, its words, and the end of sentence, which is the last border.
static void put_edits(void *user, tarn__batch *batch, const tarn__batch_room *room, uint64_t seed, int64_t epoch) {
  const roll_in *r = user;
  batch->kept = (tarn__packed){.ids = room->kept_ids, .positions = room->kept_positions, .offsets = room->kept_offsets};
  for (int64_t s = 0; s < batch->target.sentences; s++) {
    const int64_t begin = batch->target.offsets[s] + 1, n = batch->target.offsets[s + 1] - 1 - begin;
    int32_t *ids = room->target_ids + begin;
    tarn__random random = numbers_of(batch->index[s], seed, epoch);
    const int64_t kept = drop(r, &random, ids, n);
    tarn__edits_find(&r->edits, r->gaps, r->kept, kept, ids, n);
    put_kept(r, batch, room, ids[-1], ids[n], kept);
    for (int64_t i = 0; i < n; i++) {
      if (!r->edits.inserted[i]) continue;
      room->selected[batch->predictions] = (int32_t)(begin + i);
      room->targets[batch->predictions++] = ids[i];
      ids[i] = r->placeholder;
    }
  }
  batch->selected = room->selected;
  batch->targets = room->targets;
  batch->gaps = room->gaps;
}

static void close_edits(void *user) {
  roll_in *r = user;
  if (!r) return;
  tarn__free(r->kept);
  tarn__free(r->gaps);
  tarn__free(r->edits.deleted);
  tarn__free(r->edits.inserted);
  tarn__free(r->edits.scratch);
  tarn__free(r);
}

static tarn_status take_memory(roll_in *r, int64_t longest) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)longest, sizeof(int32_t)));
  r->kept = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)longest + 1, sizeof(int32_t)));
  r->gaps = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)longest, sizeof(int32_t)));
  r->edits.deleted = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)longest, sizeof(int32_t)));
  r->edits.inserted = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)tarn__edit_path_words(longest, longest), sizeof(uint64_t)));
  r->edits.scratch = memory;
  return TARN_STATUS_OK;
}

tarn_status tarn__edits_open(tarn__batch_finish *finish, const tarn_config_levenshtein *keys, const tarn__shard *shard,
                             int64_t longest, const tarn_vocab *vocab, const char *name) {
  const int32_t placeholder = tarn_vocab_special(vocab, TARN_SPECIAL_MASK);
  TARN_REQUIRE(
      placeholder >= 0, USAGE,
      "%s: the vocabulary has no <mask>, the placeholder of a Levenshtein Transformer; make it with tarn vocab "
      "--mask-symbols",
      name);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(roll_in)));
  roll_in *r = memory;
  *r = (roll_in){.keys = *keys, .shard = shard, .placeholder = placeholder};
  const tarn_status status = take_memory(r, longest);
  if (status != TARN_STATUS_OK) {
    close_edits(r);
    return status;
  }
  *finish =
      (tarn__batch_finish){.user = r, .count = count_dropped, .run = put_edits, .close = close_edits, .edits = true};
  snprintf(finish->text, sizeof finish->text, "edits %lld %.17g", (long long)keys->max_placeholders, keys->beta);
  return TARN_STATUS_OK;
}
