#include "tarn/lab/corpus.h"

#include <limits.h>
#include <stdio.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "base/work.h"
#include "corpus/grammar.h"

enum { MOST_SENTENCES = 1000000, MOST_HELD_OUT = 100000, MOST_ATTEMPTS = 1000, STREAM = 0x636F7270 };

void tarn_corpus_default(tarn_corpus_options *options) {
  *options = (tarn_corpus_options){.seed = 1, .sentences = 12000, .held_out = 500};
}

// A set of sentences by 64 bits of hash. A collision only loses a sentence that would have been new.
typedef struct seen_set {
  uint64_t *slots;
  size_t mask;
} seen_set;

static tarn_status set_open(seen_set *set, size_t most) {
  size_t slots = 1024;
  while (slots < 2 * most) slots *= 2;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, slots, sizeof(uint64_t)));
  *set = (seen_set){memory, slots - 1};
  return TARN_STATUS_OK;
}

// The slot of a text, or the free one where it belongs.
static uint64_t *set_slot(const seen_set *set, const words *text, uint64_t *hash) {
  *hash = tarn__hash64(text->text, (size_t)text->length, 0) | 1;  // 0 is a free slot
  size_t slot = (size_t)(*hash >> 1) & set->mask;
  while (set->slots[slot] && set->slots[slot] != *hash) slot = (slot + 1) & set->mask;
  return &set->slots[slot];
}

typedef struct generator {
  tarn__random random;
  seen_set german, english;
  tarn__work work;
  int64_t written, wanted;  // pairs
} generator;

// Draws a pair whose sentences are both new.
static tarn_status draw_new(generator *g, sentence_pair *pair) {
  for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    uint64_t german;
    uint64_t english;
    if (!tarn__grammar_draw(pair, &g->random)) continue;
    uint64_t *german_slot = set_slot(&g->german, &pair->german, &german);
    uint64_t *english_slot = set_slot(&g->english, &pair->english, &english);
    if (*german_slot || *english_slot) continue;
    *german_slot = german;
    *english_slot = english;
    return TARN_STATUS_OK;
  }
  return tarn__fail(TARN_STATUS_USAGE, "the grammar gives no more distinct sentences; ask for fewer");
}

static tarn_status put_line(tarn__writer *file, words *text) {
  text->text[text->length] = '\n';  // finish() left space for it
  return tarn__writer_put(file, text->text, (size_t)text->length + 1);
}

static tarn_status open_file(tarn__writer **file, const char *folder, const char *split, const char *language) {
  char path[PATH_MAX];
  int wanted = snprintf(path, sizeof path, "%s/%s.%s", folder, split, language);
  TARN_REQUIRE(wanted < (int)sizeof path, IO, "%s: the path is too long", folder);
  return tarn__writer_open(file, path);
}

static tarn_status put_pairs(generator *g, tarn__writer *german, tarn__writer *english, int64_t count) {
  for (int64_t i = 0; i < count; i++, g->written++) {
    sentence_pair pair;
    TARN_TRY(draw_new(g, &pair));
    TARN_TRY(put_line(german, &pair.german));
    TARN_TRY(put_line(english, &pair.english));
    tarn__work_at(&g->work, (double)g->written, (double)g->written / (double)g->wanted);
  }
  return TARN_STATUS_OK;
}

enum { SPLITS = 3 };

static tarn_status write_splits(generator *g, tarn__writer *files[SPLITS][2], const tarn_corpus_options *o) {
  static const char *const names[SPLITS] = {"valid", "test", "train"};
  const int64_t counts[SPLITS] = {o->held_out, o->held_out, o->sentences};
  for (int s = 0; s < SPLITS; s++) {
    TARN_TRY(open_file(&files[s][0], o->output, names[s], "de"));
    TARN_TRY(open_file(&files[s][1], o->output, names[s], "en"));
  }
  for (int s = 0; s < SPLITS; s++) TARN_TRY(put_pairs(g, files[s][0], files[s][1], counts[s]));
  // Everything is written before the first file is replaced: splits of different seeds may share sentences.
  for (int s = 0; s < SPLITS; s++)
    for (int side = 0; side < 2; side++) TARN_TRY(tarn__writer_commit(&files[s][side]));
  return TARN_STATUS_OK;
}

static tarn_status write_all(generator *g, const tarn_corpus_options *o) {
  size_t most = (size_t)(o->sentences + 2 * o->held_out);
  TARN_TRY(set_open(&g->german, most));
  TARN_TRY(set_open(&g->english, most));
  TARN_TRY(tarn__mkdir(o->output));
  tarn__writer *files[SPLITS][2] = {{NULL}};
  g->wanted = (int64_t)most;
  tarn__work_begin(&g->work, "writing the corpus", "sentences");
  tarn_status status = write_splits(g, files, o);
  tarn__work_end(&g->work);
  for (int s = 0; s < SPLITS; s++)
    for (int side = 0; side < 2; side++) tarn__writer_abort(&files[s][side]);
  return status;
}

tarn_status tarn_corpus_write(const tarn_corpus_options *options) {
  TARN_REQUIRE(options->output, USAGE, "an output folder is needed");
  TARN_REQUIRE(options->sentences >= 1 && options->sentences <= MOST_SENTENCES, USAGE,
               "the number of sentences is 1 to %d, not %lld", MOST_SENTENCES, (long long)options->sentences);
  TARN_REQUIRE(options->held_out >= 0 && options->held_out <= MOST_HELD_OUT, USAGE,
               "the number of held-out sentences is 0 to %d, not %lld", MOST_HELD_OUT, (long long)options->held_out);
  generator g = {0};
  tarn__random_init(&g.random, options->seed, STREAM);
  tarn_status status = write_all(&g, options);
  tarn__free(g.german.slots);
  tarn__free(g.english.slots);
  return status;
}
