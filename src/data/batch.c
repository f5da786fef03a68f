#include "data/batch.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/pixel_words.h"
#include "base/random.h"
#include "data/batch_bounds.h"

typedef struct entry {
  uint64_t key;
  int64_t pair;
} entry;

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

enum {
  MOST_TOKENS = 1 << 24,
  MOST_NOISE = 1 << 20,
  KEY_FRACTION = 16,     // bits after the point of a sort key
  STREAM = 0x62617463u,  // of the random numbers
};

struct tarn__batcher {
  const tarn__shard *shard;
  tarn__batcher_options options;
  int64_t used;   // pairs that are not skipped
  int64_t width;  // tracks of a batch; 0: none
  // Hash of the rows and their kind of order (blocks or not), and the hash for the same rows in the other order.
  char hash[TARN__HASH_TEXT], other_hash[TARN__HASH_TEXT];
  int64_t epoch, index, batches;
  // The current block; without blocks, the whole epoch; with tracks, only `entries`, for the current batch.
  entry *entries, *spare;  // (sentences): in the order of the epoch
  int64_t *starts;         // (held + 1): where each batch begins in entries
  int64_t *order;          // (held): the order of the batches
  int64_t sentences;       // of the block that are not skipped
  int64_t begin, held;     // its first batch in the epoch, and its number of batches
  // Blocks.
  int64_t room_rows;      // most sentences of a block
  int64_t blocks;         // 0: none
  int64_t stretch;        // sentences of a stretch
  int64_t count, each;    // stretches in all, and per block
  int64_t *stretches;     // (count): their order
  int64_t *block_begin;   // (blocks + 1): the first batch of each
  tarn__batch_room room;  // of tarn__batcher_next()
  int64_t most;           // sentences of any batch
  int64_t unreleased;     // sentences read since the shard's pages were released
};

void tarn__batcher_default(tarn__batcher_options *options) {
  *options = (tarn__batcher_options){.max_tokens = 4096, .noise = 2, .seed = 1, .shuffle = true, .first = -1};
}

// Sorts by key, least significant byte first; equal keys keep their order. Unlike qsort(), it allocates no memory.
static void sort_entries(entry **entries, entry **spare, int64_t n) {
  for (int shift = 0; shift < 64; shift += 8) {
    int64_t place[257] = {0};
    for (int64_t i = 0; i < n; i++) place[1 + ((*entries)[i].key >> shift & 0xFF)]++;
    bool one_value = place[1 + ((*entries)[0].key >> shift & 0xFF)] == n;
    if (one_value) continue;
    for (int d = 0; d < 256; d++) place[d + 1] += place[d];
    for (int64_t i = 0; i < n; i++) (*spare)[place[(*entries)[i].key >> shift & 0xFF]++] = (*entries)[i];
    entry *keep = *entries;
    *entries = *spare;
    *spare = keep;
  }
}

// Rows of a target sentence before its own; with rows NEXT the token in front replaces the last one.
static int64_t front(const tarn__batcher_options *options) {
  return options->first >= 0 && options->rows == TARN__ROWS_WHOLE ? 1 : 0;
}

static int64_t rows_of_target(const tarn__shard *shard, const tarn__batcher_options *options, int64_t pair) {
  return tarn__shard_target_length(shard, pair) + front(options);
}

// The sort length in rows: that of the longer side, since the budget applies to each side.
static int64_t length_of(const tarn__shard *shard, const tarn__batcher_options *options, int64_t pair) {
  int64_t source = tarn__shard_source_length(shard, pair);
  int64_t target = rows_of_target(shard, options, pair);
  return source > target ? source : target;
}

static bool left_out(const tarn__shard *shard, const tarn__batcher_options *options, int64_t pair) {
  return options->longest > 0 && length_of(shard, options, pair) > options->longest;
}

// For the pairs first .. end - 1.
static void draw_keys(tarn__batcher *b, tarn__random *random, int64_t first, int64_t end) {
  uint64_t noise = (uint64_t)(b->options.noise * (1 << KEY_FRACTION));
  for (int64_t i = first; i < end; i++) {
    if (left_out(b->shard, &b->options, i)) continue;
    uint64_t length = (uint64_t)length_of(b->shard, &b->options, i) << KEY_FRACTION;
    if (!b->options.shuffle) {
      b->entries[b->sentences++] = (entry){length, i};
      continue;
    }
    uint64_t more = noise ? tarn__random_below(random, noise + 1) : 0;
    // The 20 random bits below the length break ties differently in every epoch.
    b->entries[b->sentences++] = (entry){(length + more) << 20 | tarn__random_u32(random) >> 12, i};
  }
}

// Cuts the sorted sentences into batches of as many neighbours as fit the budget on both sides.
static void cut_batches(tarn__batcher *b) {
  int64_t source = 0;
  int64_t target = 0;
  b->held = 0;
  for (int64_t i = 0; i < b->sentences; i++) {
    int64_t more_source = tarn__shard_source_length(b->shard, b->entries[i].pair);
    int64_t more_target = rows_of_target(b->shard, &b->options, b->entries[i].pair);
    int64_t most = b->options.max_sentences;
    bool full = i > 0 && most > 0 && i - b->starts[b->held - 1] == most;
    bool fits = source + more_source <= b->options.max_tokens && target + more_target <= b->options.max_tokens;
    if (i == 0 || full || !fits) {
      b->starts[b->held++] = i;
      source = 0;
      target = 0;
    }
    source += more_source;
    target += more_target;
  }
  b->starts[b->held] = b->sentences;
}

// The tracks of all batches of an update, the windows of each, and the number of tracks with one more.
static int64_t divide_tracks(const tarn__batcher *b, int64_t *each, int64_t *more) {
  const int64_t tracks = b->width * b->options.tracks;
  *each = b->shard->pairs / tracks;
  *more = b->shard->pairs % tracks;
  return tracks;
}

static int64_t batches_of_tracks(const tarn__batcher *b) {
  int64_t each, more;
  (void)divide_tracks(b, &each, &more);
  return each * b->options.tracks + (more + b->width - 1) / b->width;
}

// Makes batch `k` of the epoch current: window t of `width` tracks. Returns its sentences.
static int64_t take_tracks(tarn__batcher *b, int64_t k) {
  int64_t each, more;
  const int64_t tracks = divide_tracks(b, &each, &more), t = k / b->options.tracks;
  const int64_t running = t < each ? tracks : more, first = k % b->options.tracks * b->width;
  const int64_t count = smaller(b->width, running - first);
  for (int64_t i = 0; i < count; i++) {
    const int64_t track = first + i;
    b->entries[i].pair = track * each + smaller(track, more) + t;
  }
  return count;
}

static void sort_and_cut(tarn__batcher *b) {
  sort_entries(&b->entries, &b->spare, b->sentences);
  cut_batches(b);
}

static void order_by_length(tarn__batcher *b, tarn__random *random) {
  b->sentences = 0;
  draw_keys(b, random, 0, b->shard->pairs);
  sort_and_cut(b);
}

static void init_random(tarn__random *random, const tarn__batcher *b, int64_t stream) {
  // Every epoch has its own random numbers.
  tarn__random_init(random, b->options.seed + (uint64_t)b->epoch * 0x9E3779B97F4A7C15u, (uint32_t)(STREAM + stream));
}

static void shuffle_batches(tarn__batcher *b, tarn__random *random) {
  for (int64_t i = 0; i < b->held; i++) b->order[i] = i;
  if (b->options.shuffle) tarn__random_shuffle(random, b->order, b->held);
}

// Makes a block of the epoch current.
static void load_block(tarn__batcher *b, int64_t block) {
  tarn__random random;
  init_random(&random, b, 1 + block);
  b->sentences = 0;
  for (int64_t s = block * b->each; s < smaller((block + 1) * b->each, b->count); s++) {
    const int64_t first = b->stretches[s] * b->stretch;
    draw_keys(b, &random, first, smaller(first + b->stretch, b->shard->pairs));
  }
  sort_and_cut(b);
  shuffle_batches(b, &random);
  b->begin = b->block_begin[block];
}

static void begin_blocks(tarn__batcher *b, tarn__random *random) {
  for (int64_t s = 0; s < b->count; s++) b->stretches[s] = s;
  tarn__random_shuffle(random, b->stretches, b->count);
  b->used = 0;
  for (int64_t block = 0; block < b->blocks; block++) {
    load_block(b, block);
    b->block_begin[block + 1] = b->begin + b->held;
    b->used += b->sentences;
  }
  b->batches = b->block_begin[b->blocks];
}

// The start of batch `k` of the epoch in entries; its end is *end. Makes its block current.
static int64_t batch_at(tarn__batcher *b, int64_t *end, int64_t k) {
  if (b->width > 0) {
    *end = take_tracks(b, k);
    return 0;
  }
  if (k < b->begin || k >= b->begin + b->held) {
    int64_t block = 0;
    while (k >= b->block_begin[block + 1]) block++;
    load_block(b, block);
  }
  const int64_t number = b->order[k - b->begin];
  *end = b->starts[number + 1];
  return b->starts[number];
}

static void begin_epoch(tarn__batcher *b, int64_t epoch) {
  tarn__random random;
  b->epoch = epoch;
  b->index = 0;
  b->begin = 0;
  init_random(&random, b, 0);
  if (b->blocks > 0) {
    begin_blocks(b, &random);
    return;
  }
  if (b->width > 0) {
    b->used = b->shard->pairs;
    b->batches = batches_of_tracks(b);
    return;
  }
  order_by_length(b, &random);
  shuffle_batches(b, &random);
  b->used = b->sentences;
  b->batches = b->held;
}

static tarn_status check_options(const tarn__shard *shard, const tarn__batcher_options *o) {
  TARN_REQUIRE(o->max_tokens >= 1 && o->max_tokens <= MOST_TOKENS, USAGE,
               "the token budget of a batch is 1 to %d, not %lld", MOST_TOKENS, (long long)o->max_tokens);
  TARN_REQUIRE(o->max_sentences >= 0, USAGE, "a batch cannot have %lld sentences", (long long)o->max_sentences);
  TARN_REQUIRE(o->noise >= 0 && o->noise <= MOST_NOISE, USAGE, "the noise on lengths is 0 to %d tokens, not %g",
               MOST_NOISE, o->noise);
  int64_t pair = 0;
  int64_t used = 0;
  for (; pair < shard->pairs && (left_out(shard, o, pair) || length_of(shard, o, pair) <= o->max_tokens); pair++)
    used += !left_out(shard, o, pair);
  if (pair == shard->pairs) {
    TARN_REQUIRE(used > 0, USAGE, "all %lld pairs of the shard are longer than %lld tokens", (long long)shard->pairs,
                 (long long)(o->longest - front(o)));
    return TARN_STATUS_OK;
  }
  return tarn__fail(
      TARN_STATUS_USAGE,
      "pair %lld of the shard has %lld source and %lld target tokens, more than the budget of %lld tokens a "
      "batch; raise the budget to %lld or prepare the data with --max-tokens %lld",
      (long long)pair, (long long)tarn__shard_source_length(shard, pair), (long long)rows_of_target(shard, o, pair),
      (long long)o->max_tokens, (long long)larger(shard->longest_source, shard->longest_target + front(o)),
      (long long)(o->max_tokens - front(o)));
}

static tarn_status take(void *out, int64_t count, size_t size) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, size));
  memcpy(out, &memory, sizeof memory);
  return TARN_STATUS_OK;
}

// Bytes of the pixels of a row, if it is a patch.
static int64_t row_bytes(const tarn__shard *shard) { return tarn__patch_bytes(shard->image, shard->patch); }

static tarn_status take_room(tarn__batch_room *room, const tarn__batcher *b) {
  int64_t source_rows;
  int64_t target_rows;
  int64_t sentences;
  tarn__batcher_largest(b, &source_rows, &target_rows, &sentences);
  TARN_TRY(take(&room->source_ids, source_rows, sizeof *room->source_ids));
  TARN_TRY(take(&room->target_ids, target_rows, sizeof *room->target_ids));
  TARN_TRY(take(&room->targets, target_rows, sizeof *room->targets));
  TARN_TRY(take(&room->source_positions, source_rows, sizeof *room->source_positions));
  TARN_TRY(take(&room->target_positions, target_rows, sizeof *room->target_positions));
  TARN_TRY(take(&room->source_offsets, sentences + 1, sizeof *room->source_offsets));
  TARN_TRY(take(&room->target_offsets, sentences + 1, sizeof *room->target_offsets));
  if (b->shard->patch)
    TARN_TRY(take(&room->pixels, tarn__pixel_words(target_rows * row_bytes(b->shard)), sizeof *room->pixels));
  if (b->options.segments > 0) TARN_TRY(take(&room->segments, target_rows, sizeof *room->segments));
  if (b->options.finish.run) {
    TARN_TRY(take(&room->selected, target_rows, sizeof *room->selected));
    TARN_TRY(take(&room->values, target_rows, sizeof *room->values));
  }
  if (b->options.finish.edits) {
    TARN_TRY(take(&room->kept_ids, target_rows, sizeof *room->kept_ids));
    TARN_TRY(take(&room->kept_positions, target_rows, sizeof *room->kept_positions));
    TARN_TRY(take(&room->kept_offsets, sentences + 1, sizeof *room->kept_offsets));
    TARN_TRY(take(&room->gaps, target_rows, sizeof *room->gaps));
  }
  return take(&room->index, sentences, sizeof *room->index);
}

tarn_status tarn__batch_room_open(tarn__batch_room *room, const tarn__batcher *batcher) {
  *room = (tarn__batch_room){0};
  tarn_status status = take_room(room, batcher);
  if (status != TARN_STATUS_OK) tarn__batch_room_close(room);
  return status;
}

void tarn__batch_room_close(tarn__batch_room *room) {
  tarn__free(room->source_ids);
  tarn__free(room->target_ids);
  tarn__free(room->targets);
  tarn__free(room->source_positions);
  tarn__free(room->target_positions);
  tarn__free(room->source_offsets);
  tarn__free(room->target_offsets);
  tarn__free(room->segments);
  tarn__free(room->pixels);
  tarn__free(room->selected);
  tarn__free(room->values);
  tarn__free(room->kept_ids);
  tarn__free(room->kept_positions);
  tarn__free(room->kept_offsets);
  tarn__free(room->gaps);
  tarn__free(room->index);
  *room = (tarn__batch_room){0};
}

// Sentences per block of a shard; 0: it has no blocks.
static int64_t block_of(const tarn__shard *shard, int64_t given) {
  const int64_t block = given > 0 ? given : shard->parts ? TARN__BATCH_BLOCK : 0;
  return shard->pairs > block ? block : 0;
}

static void set_blocks(tarn__batcher *b) {
  const int64_t pairs = b->shard->pairs, block = block_of(b->shard, b->options.block);
  b->room_rows = pairs;
  if (block == 0 || !b->options.shuffle || b->width > 0) return;
  b->stretch = larger(smaller(TARN__BATCH_STRETCH, block / 64), 1);
  b->each = block / b->stretch;
  b->count = (pairs + b->stretch - 1) / b->stretch;
  b->blocks = (b->count + b->each - 1) / b->each;
  b->room_rows = b->each * b->stretch;
}

// No more batches than this can there be: a batch ends where the next sentence would exceed a limit, so that two
// neighbours have more tokens than one may have on a side, or the first has all the sentences that it may have.
static int64_t most_batches(const tarn__shard *shard, const tarn__batcher_options *options, int64_t rows) {
  const int64_t tokens = shard->source_tokens + shard->target_tokens + shard->pairs;
  int64_t most = 2 * (tokens / options->max_tokens) + 1;
  if (options->max_sentences > 0) most += shard->pairs / options->max_sentences;
  return smaller(most, rows);
}

size_t tarn__batcher_bytes(const tarn__shard *shard, const tarn__batcher_options *options) {
  const int64_t block = options->shuffle ? block_of(shard, 0) : 0, rows = block ? block : shard->pairs;
  const int64_t stretches = block ? shard->pairs / TARN__BATCH_STRETCH + 1 : 0;
  if (options->tracks > 0) return 0;
  // `starts` and `order` could hold a batch for each row, but are touched for those that there are only.
  return (size_t)rows * 2 * sizeof(entry) +
         (size_t)(2 * most_batches(shard, options, rows) + stretches) * sizeof(int64_t);
}

void tarn__batcher_hash_in_blocks(char hash[TARN__HASH_TEXT], const char *shard_hash) {
  char text[2 * TARN__HASH_TEXT];
  snprintf(text, sizeof text, "%s in blocks", shard_hash);
  tarn__hash(hash, text, strlen(text));
}

static void make_hashes(tarn__batcher *b) {
  char blocks[TARN__HASH_TEXT];
  tarn__batcher_hash_in_blocks(blocks, b->shard->hash);
  memcpy(b->hash, b->blocks > 0 ? blocks : b->shard->hash, sizeof b->hash);
  memcpy(b->other_hash, b->blocks > 0 ? b->shard->hash : blocks, sizeof b->other_hash);
}

static tarn_status take_memory(tarn__batcher *b) {
  set_blocks(b);
  make_hashes(b);
  if (b->width > 0) {
    TARN_TRY(take(&b->entries, b->width, sizeof *b->entries));
    return tarn__batch_room_open(&b->room, b);
  }
  int64_t n = b->room_rows;
  if (b->blocks > 0) {
    TARN_TRY(take(&b->stretches, b->count, sizeof *b->stretches));
    TARN_TRY(take(&b->block_begin, b->blocks + 1, sizeof *b->block_begin));
  }
  TARN_TRY(take(&b->entries, n, sizeof *b->entries));
  TARN_TRY(take(&b->spare, n, sizeof *b->spare));
  TARN_TRY(take(&b->starts, n + 1, sizeof *b->starts));
  TARN_TRY(take(&b->order, n, sizeof *b->order));
  return tarn__batch_room_open(&b->room, b);
}

static void close_finish(const tarn__batch_finish *finish) {
  if (finish->close) finish->close(finish->user);
}

// The number of tracks of a batch. Every pair fits the budget.
static tarn_status set_tracks(tarn__batcher *b) {
  tarn__batcher_options *o = &b->options;
  const int64_t pairs = b->shard->pairs;
  if (o->tracks == 0) return TARN_STATUS_OK;
  TARN_REQUIRE(b->shard->continues && o->tracks > 0, INTERNAL, "tracks are of the windows of a stream");
  TARN_REQUIRE(pairs >= o->tracks, USAGE,
               "a text of %lld windows cannot be read in tracks by %lld batches at a time; run tarn prepare --stream "
               "with fewer tokens, or lower train.accumulate",
               (long long)pairs, (long long)o->tracks);
  b->width = smaller(pairs / o->tracks, o->max_tokens / b->shard->longest_target);
  if (o->max_sentences > 0) b->width = smaller(b->width, o->max_sentences);
  o->max_sentences = b->width;
  return TARN_STATUS_OK;
}

static tarn_status open_checked(tarn__batcher **batcher, const tarn__shard *shard,
                                const tarn__batcher_options *options) {
  void *memory;
  TARN_TRY(check_options(shard, options));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **batcher));
  tarn__batcher *b = memory;
  b->shard = shard;
  b->options = *options;
  b->options.finish.close = NULL;  // the caller's, until opening has succeeded
  tarn_status status = set_tracks(b);
  if (status == TARN_STATUS_OK)
    status = tarn__batch_most_sentences(&b->most, shard, b->options.max_tokens, b->options.max_sentences,
                                        front(&b->options));
  if (status == TARN_STATUS_OK) status = take_memory(b);
  if (status == TARN_STATUS_OK)
    begin_epoch(b, 0);
  else
    tarn__batcher_close(&b);
  *batcher = b;
  return status;
}

tarn_status tarn__batcher_open(tarn__batcher **batcher, const tarn__shard *shard,
                               const tarn__batcher_options *options) {
  *batcher = NULL;
  tarn_status status = open_checked(batcher, shard, options);
  if (status == TARN_STATUS_OK)
    (*batcher)->options.finish = options->finish;
  else
    close_finish(&options->finish);
  return status;
}

void tarn__batcher_close(tarn__batcher **batcher) {
  tarn__batcher *b = *batcher;
  if (!b) return;
  close_finish(&b->options.finish);
  tarn__free(b->entries);
  tarn__free(b->spare);
  tarn__free(b->starts);
  tarn__free(b->order);
  tarn__free(b->stretches);
  tarn__free(b->block_begin);
  tarn__batch_room_close(&b->room);
  tarn__free(b);
  *batcher = NULL;
}

// Counts a sentence of a side whose ids have been appended.
static void add_sentence(tarn__packed *side, int32_t *positions, int32_t *offsets, int64_t length) {
  for (int32_t i = 0; i < length; i++) positions[side->rows + i] = i;
  if (length > side->longest) side->longest = length;
  side->rows += length;
  offsets[++side->sentences] = (int32_t)side->rows;
}

// The epoch that batches are finished for.
static int64_t finished_epoch(const tarn__batcher *b) { return b->options.shuffle ? b->epoch : TARN__BATCH_FIXED; }

// Appends the rows of a target sentence to the batch.
static void put_target(const tarn__batcher *b, const tarn__batch *batch, const tarn__batch_room *room, int64_t pair) {
  const int64_t length = tarn__shard_target_length(b->shard, pair);
  int32_t *in = room->target_ids + batch->target.rows;
  if (b->options.rows == TARN__ROWS_WHOLE) {
    if (b->options.first >= 0) *in++ = b->options.first;
    tarn__shard_target(b->shard, pair, in);
    return;
  }
  int32_t *out = room->targets + batch->target.rows;
  tarn__shard_target(b->shard, pair, out);
  const bool begins = !b->shard->continues || pair == 0;
  in[0] = begins && b->options.first >= 0 ? b->options.first : tarn__shard_before(b->shard, pair);
  memcpy(in + 1, out, (size_t)(length - 1) * sizeof *in);
}

// The segments of a target sentence: the token in front belongs to the first.
static void put_segments(const tarn__batcher *b, int32_t *segments, int64_t pair) {
  const int64_t rows = rows_of_target(b->shard, &b->options, pair);
  const int64_t second = b->shard->segments ? b->shard->segments[pair] + front(&b->options) : rows;
  for (int64_t i = 0; i < rows; i++) segments[i] = i >= second && b->options.segments > 1;
}

// The pixels of an image: zeros for the token in front.
static void put_pixels(const tarn__batcher *b, int32_t *words, int64_t row, int64_t pair) {
  const int64_t bytes = row_bytes(b->shard);
  uint8_t *pixels = (uint8_t *)words + row * bytes;
  memset(pixels, 0, (size_t)(front(&b->options) * bytes));
  tarn__shard_pixels(b->shard, pair, pixels + front(&b->options) * bytes);
}

// Appends one pair to the batch.
static void pack(const tarn__batcher *b, tarn__batch *batch, const tarn__batch_room *room, int64_t pair) {
  tarn__shard_source(b->shard, pair, room->source_ids + batch->source.rows);
  put_target(b, batch, room, pair);
  if (room->segments) put_segments(b, room->segments + batch->target.rows, pair);
  if (room->pixels) put_pixels(b, room->pixels, batch->target.rows, pair);
  room->index[batch->target.sentences] = pair;
  add_sentence(&batch->source, room->source_positions, room->source_offsets, tarn__shard_source_length(b->shard, pair));
  add_sentence(&batch->target, room->target_positions, room->target_offsets,
               rows_of_target(b->shard, &b->options, pair));
}

// Releases pages of the shard at intervals, so that a shard larger than memory needs little of it.
static void release(tarn__batcher *b) {
  if (b->shard->file_bytes <= TARN__BATCH_RESIDENT || ++b->unreleased < TARN__BATCH_RELEASED) return;
  b->unreleased = 0;
  tarn__shard_release(b->shard);
}

// Sets the predictions.
static void finish(const tarn__batcher *b, tarn__batch *batch, const tarn__batch_room *room) {
  if (b->options.rows == TARN__ROWS_NEXT) {
    batch->predictions = batch->target.rows;
    batch->targets = room->targets;
  } else if (b->options.finish.run) {
    b->options.finish.run(b->options.finish.user, batch, room, b->options.seed, finished_epoch(b));
  }
}

void tarn__batcher_skip(tarn__batcher *b, int64_t count) {
  b->index += count;
  if (b->index == b->batches) begin_epoch(b, b->epoch + 1);
}

void tarn__batcher_next_into(tarn__batcher *b, tarn__batch *batch, const tarn__batch_room *room) {
  int64_t end, i = batch_at(b, &end, b->index);
  *batch = (tarn__batch){
      .source = {.ids = room->source_ids, .positions = room->source_positions, .offsets = room->source_offsets},
      .target = {.ids = room->target_ids,
                 .positions = room->target_positions,
                 .offsets = room->target_offsets,
                 .segments = room->segments,
                 .pixels = room->pixels},
      .index = room->index};
  for (; i < end; i++) {
    pack(b, batch, room, b->entries[i].pair);
    release(b);
  }
  finish(b, batch, room);
  tarn__batcher_skip(b, 1);
}

void tarn__batcher_next(tarn__batcher *b, tarn__batch *batch) { tarn__batcher_next_into(b, batch, &b->room); }

static int64_t predictions_of(const tarn__batcher *b, int64_t pair) {
  const tarn__batch_finish *finish = &b->options.finish;
  if (b->options.rows == TARN__ROWS_NEXT) return tarn__shard_target_length(b->shard, pair);
  return finish->run ? finish->count(finish->user, pair, b->options.seed, finished_epoch(b)) : 0;
}

int64_t tarn__batcher_predictions(tarn__batcher *b, int64_t count) {
  int64_t predictions = 0;
  for (int64_t k = b->index; k < b->index + count; k++) {
    int64_t end;
    for (int64_t i = batch_at(b, &end, k); i < end; i++) predictions += predictions_of(b, b->entries[i].pair);
  }
  return predictions;
}

int64_t tarn__batcher_longest_target(const tarn__batcher *b) { return b->shard->longest_target + front(&b->options); }

int64_t tarn__batcher_tracks(const tarn__batcher *b) { return b->width; }

const char *tarn__batcher_hash(const tarn__batcher *b) { return b->hash; }

const char *tarn__batcher_other_hash(const tarn__batcher *b) { return b->other_hash; }

int64_t tarn__batcher_left_out(const tarn__batcher *b) { return b->shard->pairs - b->used; }

int64_t tarn__batcher_batches(const tarn__batcher *b) { return b->batches; }

void tarn__batcher_position(const tarn__batcher *b, int64_t *epoch, int64_t *index) {
  *epoch = b->epoch;
  *index = b->index;
}

tarn_status tarn__batcher_seek(tarn__batcher *b, int64_t epoch, int64_t index) {
  TARN_REQUIRE(epoch >= 0 && index >= 0, DATA, "there is no batch %lld of epoch %lld", (long long)index,
               (long long)epoch);
  if (epoch != b->epoch) begin_epoch(b, epoch);
  TARN_REQUIRE(index < b->batches, DATA,
               "there is no batch %lld of epoch %lld, which has %lld batches; the data or the "
               "token budget are not those of the saved position",
               (long long)index, (long long)epoch, (long long)b->batches);
  b->index = index;
  return TARN_STATUS_OK;
}

int64_t tarn__batch_side_rows(int64_t max_tokens, int64_t max_sentences, int64_t tokens, int64_t longest) {
  const int64_t rows = smaller(max_tokens, tokens);
  return max_sentences > 0 && max_sentences < rows ? smaller(rows, max_sentences * longest) : rows;
}

static int64_t side_rows(const tarn__batcher *b, int64_t tokens, int64_t longest) {
  if (b->options.longest > 0) longest = smaller(longest, b->options.longest);
  return tarn__batch_side_rows(b->options.max_tokens, b->options.max_sentences, tokens, longest);
}

void tarn__batcher_largest(const tarn__batcher *b, int64_t *source_rows, int64_t *target_rows, int64_t *sentences) {
  *source_rows = side_rows(b, b->shard->source_tokens, b->shard->longest_source);
  *target_rows = side_rows(b, b->shard->target_tokens + front(&b->options) * b->shard->pairs,
                           b->shard->longest_target + front(&b->options));
  *sentences = b->most;
}
