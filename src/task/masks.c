#include "task/masks.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

enum {
  STREAM = 0x6D61736Bu,  // of the random numbers
  SENTENCE_BLOCKS = 24,  // each sentence has its own 2^24 blocks of four numbers
  SPECIAL = 1,           // bits of `kinds`
  WORD = 2
};

typedef struct masks {
  tarn_config_masking keys;
  bool any;  // any number of tokens is masked
  const tarn__shard *shard;
  int32_t mask, words;  // the id of <mask>; the size of the vocabulary
  uint8_t *kinds;       // [words]
  int32_t *ids;         // a sentence
  int64_t *at;          // the tokens, or the first tokens of whole words, that may be masked
  uint8_t *chosen;
} masks;

static tarn__random numbers_of(int64_t pair, uint64_t seed, int64_t epoch) {
  tarn__random random;
  tarn__random_init(&random, seed + (uint64_t)epoch * 0x9E3779B97F4A7C15u, STREAM);
  random.block = (uint64_t)pair << SENTENCE_BLOCKS;
  return random;
}

static bool special(const masks *m, int32_t id) { return (m->kinds[id] & SPECIAL) != 0; }

// The number of tokens to mask out of `n` candidates; uses the first random number of the sentence.
static int64_t draw_count(const masks *m, tarn__random *random, int64_t n) {
  if (m->any) return n > 0 ? 1 + (int64_t)tarn__random_below(random, (uint64_t)n) : 0;
  const int64_t count = (int64_t)(m->keys.share * (double)n + tarn__random_uniform(random));
  return count < n ? count : n;
}

// Swaps a random element from index `first` on to `first`; their order does not matter.
static int64_t draw_place(tarn__random *random, int64_t *at, int64_t first, int64_t count) {
  const int64_t other = first + (int64_t)tarn__random_below(random, (uint64_t)(count - first));
  const int64_t drawn = at[other];
  at[other] = at[first];
  at[first] = drawn;
  return drawn;
}

// The end of the word that begins at token `first`.
static int64_t word_end(const masks *m, const int32_t *ids, int64_t first, int64_t length) {
  int64_t end = first + 1;
  while (end < length && !(m->kinds[ids[end]] & (SPECIAL | WORD))) end++;
  return end;
}

// Marks the masked tokens of a sentence, and returns their number.
static int64_t choose(masks *m, tarn__random *random, const int32_t *ids, int64_t length) {
  int64_t tokens = 0, places = 0, chosen = 0;
  for (int64_t i = 0; i < length; i++) {
    m->chosen[i] = 0;
    if (special(m, ids[i])) continue;
    tokens++;
    const bool begins = i == 0 || special(m, ids[i - 1]) || (m->kinds[ids[i]] & WORD);
    if (!m->keys.whole_words || begins) m->at[places++] = i;
  }
  const int64_t wanted = draw_count(m, random, tokens);
  for (int64_t k = 0; k < places && chosen < wanted; k++) {
    const int64_t first = draw_place(random, m->at, k, places);
    const int64_t end = m->keys.whole_words ? word_end(m, ids, first, length) : first + 1;
    if (end - first > wanted - chosen) continue;
    for (int64_t i = first; i < end; i++) m->chosen[i] = 1;
    chosen += end - first;
  }
  return chosen;
}

// The model's input in place of a masked token.
static int32_t draw_token(const masks *m, tarn__random *random, int32_t id) {
  if (m->any) return m->mask;
  const double u = tarn__random_uniform(random);
  if (u < m->keys.keep) return id;
  if (u >= m->keys.keep + m->keys.random) return m->mask;
  int32_t other;
  do other = (int32_t)tarn__random_below(random, (uint64_t)m->words);
  while (special(m, other));
  return other;
}

static int64_t count_masks(void *user, int64_t pair, uint64_t seed, int64_t epoch) {
  masks *m = user;
  tarn__random random = numbers_of(pair, seed, epoch);
  tarn__shard_target(m->shard, pair, m->ids);
  return choose(m, &random, m->ids, tarn__shard_target_length(m->shard, pair));
}

static void put_masks(void *user, tarn__batch *batch, const tarn__batch_room *room, uint64_t seed, int64_t epoch) {
  masks *m = user;
  for (int64_t s = 0; s < batch->target.sentences; s++) {
    // A token before a sentence does not belong to it.
    const int64_t length = tarn__shard_target_length(m->shard, batch->index[s]);
    const int64_t first = batch->target.offsets[s + 1] - length;
    tarn__random random = numbers_of(batch->index[s], seed, epoch);
    int32_t *ids = room->target_ids + first;
    choose(m, &random, ids, length);
    for (int64_t i = 0; i < length; i++) {
      if (!m->chosen[i]) continue;
      room->selected[batch->predictions] = (int32_t)(first + i);
      room->targets[batch->predictions++] = ids[i];
      ids[i] = draw_token(m, &random, ids[i]);
    }
  }
  batch->selected = room->selected;
  batch->targets = room->targets;
}

static void close_masks(void *user) {
  masks *m = user;
  if (!m) return;
  tarn__free(m->kinds);
  tarn__free(m->ids);
  tarn__free(m->at);
  tarn__free(m->chosen);
  tarn__free(m);
}

static tarn_status take_memory(masks *m) {
  const size_t longest = (size_t)m->shard->longest_target;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)m->words, 1));
  m->kinds = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, longest, sizeof *m->ids));
  m->ids = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, longest, sizeof *m->at));
  m->at = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, longest, 1));
  m->chosen = memory;
  return TARN_STATUS_OK;
}

static tarn_status find_kinds(masks *m, const tarn_vocab *vocab, const char *name) {
  const int32_t ids[] = {tarn_vocab_eos(vocab),
                         tarn_vocab_unk(vocab),
                         tarn_vocab_bos(vocab),
                         tarn_vocab_pad(vocab),
                         tarn_vocab_special(vocab, TARN_SPECIAL_CLS),
                         tarn_vocab_special(vocab, TARN_SPECIAL_SEP),
                         m->mask};
  const size_t count = m->any ? 1 : sizeof ids / sizeof *ids;
  int32_t plain = 0;
  for (int32_t id = 0; id < m->words; id++) m->kinds[id] = tarn_vocab_begins_word(vocab, id) ? WORD : 0;
  for (size_t i = 0; i < count; i++)
    if (ids[i] >= 0) m->kinds[ids[i]] |= SPECIAL;
  for (int32_t id = 0; id < m->words; id++) plain += !special(m, id);
  TARN_REQUIRE(plain > 0, DATA, "%s: the vocabulary has special tokens only, so there is nothing to mask", name);
  return TARN_STATUS_OK;
}

static tarn_status open_masks(tarn__batch_finish *finish, const masks *with, const tarn_vocab *vocab,
                              const char *name) {
  void *memory;
  TARN_REQUIRE(with->mask >= 0, USAGE,
               "%s: the vocabulary has no <mask>, which a masked %s model reads; make it with tarn vocab "
               "--mask-symbols",
               name, with->any ? "translation" : "language");
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(masks)));
  masks *m = memory;
  *m = *with;
  tarn_status status = take_memory(m);
  if (status == TARN_STATUS_OK) status = find_kinds(m, vocab, name);
  if (status != TARN_STATUS_OK) {
    close_masks(m);
    return status;
  }
  *finish = (tarn__batch_finish){.user = m, .count = count_masks, .run = put_masks, .close = close_masks};
  return TARN_STATUS_OK;
}

tarn_status tarn__masks_open(tarn__batch_finish *finish, const tarn_config_masking *masking, const tarn__shard *shard,
                             const tarn_vocab *vocab, const char *name) {
  const masks with = {.keys = *masking,
                      .shard = shard,
                      .mask = tarn_vocab_special(vocab, TARN_SPECIAL_MASK),
                      .words = tarn_vocab_size(vocab)};
  TARN_TRY(open_masks(finish, &with, vocab, name));
  snprintf(finish->text, sizeof finish->text, "masks %.17g %.17g %.17g %d", masking->share, masking->random,
           masking->keep, masking->whole_words);
  return TARN_STATUS_OK;
}

tarn_status tarn__masks_open_any(tarn__batch_finish *finish, const tarn__shard *shard, const tarn_vocab *vocab,
                                 const char *name) {
  const masks with = {.any = true,
                      .shard = shard,
                      .mask = tarn_vocab_special(vocab, TARN_SPECIAL_MASK),
                      .words = tarn_vocab_size(vocab)};
  TARN_TRY(open_masks(finish, &with, vocab, name));
  snprintf(finish->text, sizeof finish->text, "masks of any number");
  return TARN_STATUS_OK;
}

int64_t tarn__masks_most(const tarn_config_masking *masking, int64_t rows, int64_t sentences) {
  const int64_t most = (int64_t)(masking->share * (double)rows) + sentences + 1;
  return most < rows ? most : rows;
}
