#include "data/batch_bounds.h"

#include <string.h>

#include "base/memory.h"
#include "data/batch.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// How many of the shortest sentences of a side have `rows` rows together. counts[n]: sentences of n rows, longer ones
// at the last place.
static int64_t fill(const int64_t *counts, int64_t longest, int64_t rows) {
  int64_t sentences = 0;
  for (int64_t n = 1; n <= longest; n++) {
    const int64_t more = smaller(counts[n], rows / n);
    sentences += more;
    rows -= more * n;
    if (more < counts[n]) break;
  }
  return sentences;
}

tarn_status tarn__batch_most_sentences(int64_t *sentences, const tarn__shard *shard, int64_t max_tokens,
                                       int64_t max_sentences, int64_t front) {
  const int64_t longest[] = {shard->text ? 0 : smaller(shard->longest_source, max_tokens),
                             smaller(shard->longest_target + front, max_tokens)};
  void *memory;
  const int64_t least = shard->continues || shard->patch ? 1 : 2;  // tokens of a sentence
  *sentences = smaller(shard->pairs, max_tokens / least);
  if (max_sentences > 0) *sentences = smaller(*sentences, max_sentences);
  if (shard->pairs > TARN__BATCH_BLOCK) return TARN_STATUS_OK;
  const size_t places = (size_t)(longest[0] > longest[1] ? longest[0] : longest[1]) + 1;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, places, sizeof(int64_t)));
  int64_t *counts = memory;
  for (int side = shard->text ? 1 : 0; side < 2; side++) {
    memset(counts, 0, places * sizeof *counts);
    for (int64_t pair = 0; pair < shard->pairs; pair++) {
      const int64_t length =
          side == 0 ? tarn__shard_source_length(shard, pair) : tarn__shard_target_length(shard, pair) + front;
      counts[smaller(length, longest[side])]++;
    }
    *sentences = smaller(*sentences, fill(counts, longest[side], max_tokens));
  }
  if (*sentences < 1) *sentences = 1;
  tarn__free(memory);
  return TARN_STATUS_OK;
}

size_t tarn__batch_mapped_bytes(size_t file_bytes, size_t offset_bytes) {
  const size_t around = 64 << 10;  // what the system maps with a page
  if (file_bytes > TARN__BATCH_RESIDENT) return TARN__BATCH_RELEASED * around;
  return file_bytes > offset_bytes ? file_bytes - offset_bytes : 0;
}
