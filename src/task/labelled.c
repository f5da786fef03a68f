#include "task/labelled.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "eval/agreement.h"
#include "tarn/text.h"

void tarn__pooled_rows(int32_t *rows, const int32_t *offsets, int64_t sentences, tarn_pool pool) {
  for (int64_t s = 0; s < sentences; s++) rows[s] = pool == TARN_POOL_LAST ? offsets[s + 1] - 1 : offsets[s];
}

void tarn__word_rows(int32_t *rows, const int32_t *first, int64_t words, int32_t end, tarn_pool pool) {
  for (int64_t w = 0; w < words; w++)
    rows[w] = pool == TARN_POOL_LAST ? (w + 1 < words ? first[w + 1] : end) - 1 : first[w];
}

tarn_status tarn__labelled_first(int32_t *first, const tarn_config *config, const tarn_vocab *vocab) {
  const bool decoder = config->model.architecture == TARN_ARCHITECTURE_DECODER;
  // A language model reads the end of sentence before the first token of a text.
  *first = decoder ? tarn_vocab_eos(vocab) : tarn_vocab_special(vocab, TARN_SPECIAL_CLS);
  TARN_REQUIRE(
      *first >= 0 || config->head.pool != TARN_POOL_CLS, USAGE,
      "%s: the vocabulary has no <cls>, which head.pool: cls reads; make it with tarn vocab --mask-symbols, or "
      "choose mean",
      config->data.vocab ? config->data.vocab : config->name);
  return TARN_STATUS_OK;
}

// State for completing the batches of a shard.
typedef struct finisher {
  const tarn__shard *shard;
  tarn_pool pool;
  int32_t places[];  // [shard->classes]: the model's class for each class of the shard
} finisher;

static int64_t one(void *user, int64_t pair, uint64_t seed, int64_t epoch) {
  (void)user;
  (void)pair;
  (void)seed;
  (void)epoch;
  return 1;
}

static void put_labels(void *user, tarn__batch *batch, const tarn__batch_room *room, uint64_t seed, int64_t epoch) {
  const finisher *f = user;
  (void)seed;
  (void)epoch;
  const int64_t sentences = batch->target.sentences;
  tarn__pooled_rows(room->selected, batch->target.offsets, sentences, f->pool);
  for (int64_t s = 0; s < sentences; s++) {
    if (f->shard->labels)
      room->targets[s] = f->places[f->shard->labels[batch->index[s]]];
    else
      room->values[s] = f->shard->numbers[batch->index[s]];
  }
  batch->predictions = sentences;
  batch->selected = room->selected;
  batch->targets = f->shard->labels ? room->targets : NULL;
  batch->values = f->shard->labels ? NULL : room->values;
}

static int64_t count_words(void *user, int64_t pair, uint64_t seed, int64_t epoch) {
  const finisher *f = user;
  (void)seed;
  (void)epoch;
  const int32_t *labels = tarn__shard_word_labels(f->shard, pair);
  const int64_t length = tarn__shard_target_length(f->shard, pair);
  int64_t words = 0;
  for (int64_t i = 0; i < length; i++) words += labels[i] >= 0;
  return words;
}

static void put_word_labels(void *user, tarn__batch *batch, const tarn__batch_room *room, uint64_t seed,
                            int64_t epoch) {
  const finisher *f = user;
  (void)seed;
  (void)epoch;
  for (int64_t s = 0; s < batch->target.sentences; s++) {
    const int32_t *labels = tarn__shard_word_labels(f->shard, batch->index[s]);
    const int32_t length = (int32_t)tarn__shard_target_length(f->shard, batch->index[s]);
    // A token before a sentence does not belong to it, and its last token is its end.
    const int32_t begin = batch->target.offsets[s + 1] - length;
    int32_t *rows = room->selected + batch->predictions;
    int64_t words = 0;
    for (int32_t i = 0; i < length; i++) {
      if (labels[i] < 0) continue;
      room->targets[batch->predictions + words] = f->places[labels[i]];
      rows[words++] = begin + i;
    }
    tarn__word_rows(rows, rows, words, begin + length - 1, f->pool);
    batch->predictions += words;
  }
  batch->selected = room->selected;
  batch->targets = room->targets;
}

static void close_finisher(void *user) { tarn__free(user); }

static tarn_status fail_class(const tarn_config *config, const tarn__shard *shard, const char *name) {
  tarn__label_names names;
  TARN_TRY(tarn__label_names_open(&names, config->head.labels));
  const char *nearest = tarn_text_nearest(name, (const char *const *)(const void *)names.names, (size_t)names.count);
  const tarn_status status =
      tarn__fail(TARN_STATUS_DATA, "%s: its class \"%s\" is none of the %d of the model%s \"%s\"", shard->path, name,
                 names.count, nearest ? "; the nearest is" : ", such as",
                 nearest           ? nearest
                 : names.count > 0 ? names.names[0]
                                   : "");
  tarn__label_names_close(&names);
  return status;
}

// A shard's classes are sorted by bytes, the model's have an order of their own: they are matched by name. The model
// may have classes that the set lacks.
static tarn_status match_classes(finisher *f, const tarn_config *config) {
  const tarn__shard *shard = f->shard;
  TARN_TRY(tarn__label_places(f->places, config->head.labels, shard->names, shard->classes));
  for (int32_t c = 0; c < shard->classes; c++)
    if (f->places[c] < 0) return fail_class(config, shard, shard->names[c]);
  return TARN_STATUS_OK;
}

static tarn_status check_labels(const tarn_config *config, const tarn__shard *shard) {
  const tarn__task *task = tarn__config_task(config);
  if (task->labelled == TARN__LABELLED_WORDS) {
    TARN_REQUIRE(shard->word_labels, DATA,
                 "%s: its words have no labels; tarn prepare --table --per-word makes sets of words with labels",
                 shard->path);
    return TARN_STATUS_OK;
  }
  TARN_REQUIRE(!shard->word_labels, DATA, "%s: its labels are those of words, and %s has those of sentences",
               shard->path, task->model);
  const bool numbers = (task->keeps >> TARN__KEPT_NUMBERS & 1u) != 0;
  TARN_REQUIRE(shard->labels || shard->numbers, DATA,
               "%s: its sentences have no labels; tarn prepare --table makes sets with labels", shard->path);
  TARN_REQUIRE(!numbers || shard->numbers, DATA,
               "%s: its labels are classes, and regression needs numbers (tarn prepare --numbers)", shard->path);
  TARN_REQUIRE(numbers || shard->labels, DATA, "%s: its labels are numbers, and classification needs classes",
               shard->path);
  return TARN_STATUS_OK;
}

tarn_status tarn__labelled_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                                   const tarn_vocab *vocab) {
  void *memory;
  (void)vocab;
  options->rows = TARN__ROWS_WHOLE;
  options->segments = (int32_t)config->model.segments;
  TARN_TRY(check_labels(config, shard));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, sizeof(finisher) + (size_t)shard->classes * sizeof(int32_t), 1));
  finisher *f = memory;
  f->shard = shard;
  f->pool = config->head.pool;
  const tarn_status status = match_classes(f, config);
  if (status != TARN_STATUS_OK) {
    tarn__free(f);
    return status;
  }
  options->finish =
      (tarn__batch_finish){.user = f, .count = one, .run = put_labels, .close = close_finisher, .text = "labels"};
  if (shard->word_labels) {
    options->finish.count = count_words;
    options->finish.run = put_word_labels;
  }
  return TARN_STATUS_OK;
}

int64_t tarn__labelled_predictions(const tarn_config *config, int64_t rows, int64_t sentences) {
  return tarn__config_task(config)->labelled == TARN__LABELLED_WORDS ? rows : sentences;
}

// The answers for a set. Its arrays follow it in memory.
typedef struct answers_room {
  int32_t classes;  // of the model; 0: regression
  int32_t *right_class, *found_class;
  float *right_number, *found_number;
  // For words: the ends of sentences, and the meaning of labels as entities.
  int64_t sentences, *ends;
  tarn__span_label *spans;
} answers_room;

// Number of labels of a set: one per row, or one per word.
static int64_t labels_of(const tarn__shard *shard) {
  int64_t words = 0;
  if (!shard->word_labels) return shard->pairs;
  for (int64_t i = 0; i < shard->target_tokens; i++) words += shard->word_labels[i] >= 0;
  return words;
}

size_t tarn__labelled_bytes(const tarn__shard *shard) {
  const size_t answers = (size_t)labels_of(shard) * 2 * sizeof(int32_t);
  return shard->word_labels ? answers + (size_t)shard->pairs * sizeof(int64_t) : answers;
}

// The arrays follow the answers for words, whose size is a multiple of 8 bytes.
static void place_words(answers_room *room, const tarn__shard *shard, const tarn__label_names *names, void *behind) {
  if (!shard->word_labels) return;
  room->ends = behind;
  room->spans = (tarn__span_label *)(void *)(room->ends + shard->pairs);
  tarn__span_labels(room->spans, (const char *const *)(const void *)names->names, names->count);
}

tarn_status tarn__labelled_count(tarn__task_tally *tally, const tarn_config *config, const tarn__shard *shard,
                                 const tarn_vocab *vocab) {
  (void)vocab;
  void *memory;
  size_t bytes;
  tarn__label_names names;
  TARN_TRY(tarn__label_names_open(&names, config->head.labels));
  const int32_t classes = names.count;
  const int64_t labels = labels_of(shard);
  bytes = tarn__labelled_bytes(shard) + (shard->word_labels ? (size_t)classes * sizeof(tarn__span_label) : 0);
  const tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, sizeof(answers_room) + bytes, 1);
  if (status != TARN_STATUS_OK) {
    tarn__label_names_close(&names);
    return status;
  }
  answers_room *room = memory;
  int32_t *integers = (int32_t *)(void *)(room + 1);
  float *numbers = (float *)(void *)(room + 1);
  *room = (answers_room){.classes = classes};
  if (classes) {
    room->right_class = integers;
    room->found_class = integers + labels;
  } else {
    room->right_number = numbers;
    room->found_number = numbers + labels;
  }
  place_words(room, shard, &names, integers + 2 * labels);
  tarn__label_names_close(&names);
  tally->room = room;
  return TARN_STATUS_OK;
}

// For classes the answers are log-probabilities; the first of the largest ones counts.
void tarn__labelled_tally(tarn__task_tally *tally, const tarn__batch *batch, const void *answers) {
  answers_room *room = tally->room;
  const float *values = answers;
  const int64_t first = tally->predictions - batch->predictions;
  for (int64_t i = 0; i < batch->predictions; i++) {
    if (!room->classes) {
      room->right_number[first + i] = batch->values[i];
      room->found_number[first + i] = values[i];
      continue;
    }
    const float *row = values + i * room->classes;
    int32_t best = 0;
    for (int32_t c = 1; c < room->classes; c++)
      if (row[c] > row[best]) best = c;
    room->right_class[first + i] = batch->targets[i];
    room->found_class[first + i] = best;
  }
  if (first == 0) room->sentences = 0;  // the first batch of the set
  for (int64_t s = 0, i = 0; room->ends && s < batch->target.sentences; s++) {
    while (i < batch->predictions && batch->selected[i] < batch->target.offsets[s + 1]) i++;
    room->ends[room->sentences++] = first + i;
  }
}

void tarn__labelled_answers(struct tarn__agreement *agreement, const tarn__task_tally *tally) {
  const answers_room *room = tally->room;
  *agreement = (struct tarn__agreement){.count = (size_t)(room->ends ? room->sentences : tally->predictions),
                                        .classes = room->classes,
                                        .right_class = room->right_class,
                                        .found_class = room->found_class,
                                        .right_number = room->right_number,
                                        .found_number = room->found_number,
                                        .ends = room->ends,
                                        .spans = room->spans};
}
