#include "task/labelled.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "eval/agreement.h"
#include "tarn/text.h"

void tarn__pooled_rows(int32_t *rows, const int32_t *offsets, int64_t sentences, tarn_pool pool) {
  for (int64_t s = 0; s < sentences; s++) rows[s] = pool == TARN_POOL_LAST ? offsets[s + 1] - 1 : offsets[s];
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

// What finishes the batches of a shard.
typedef struct finisher {
  const tarn__shard *shard;
  tarn_pool pool;
  int32_t places[];  // [shard->classes]: the model's class of each class of the shard
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

// A shard's classes stand in the order of their bytes, the model's in one of its own: they are matched by name. The
// model may have classes of which the set has none.
static tarn_status match_classes(finisher *f, const tarn_config *config) {
  const tarn__shard *shard = f->shard;
  TARN_TRY(tarn__label_places(f->places, config->head.labels, shard->names, shard->classes));
  for (int32_t c = 0; c < shard->classes; c++)
    if (f->places[c] < 0) return fail_class(config, shard, shard->names[c]);
  return TARN_STATUS_OK;
}

static tarn_status check_labels(const tarn_config *config, const tarn__shard *shard) {
  const bool numbers = (tarn__config_task(config)->keeps >> TARN__KEPT_NUMBERS & 1u) != 0;
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
  return TARN_STATUS_OK;
}

int64_t tarn__labelled_predictions(const tarn_config *config, int64_t rows, int64_t sentences) {
  (void)config;
  (void)rows;
  return sentences;
}

// The answers of a set. Its arrays lie behind it.
typedef struct answers_room {
  int32_t classes;  // of the model; 0: numbers
  int32_t *right_class, *found_class;
  float *right_number, *found_number;
} answers_room;

tarn_status tarn__labelled_count(tarn__task_tally *tally, const tarn_config *config, const tarn__shard *shard,
                                 const tarn_vocab *vocab) {
  (void)vocab;
  void *memory;
  size_t bytes;
  tarn__label_names names;
  TARN_TRY(tarn__label_names_open(&names, config->head.labels));
  const int32_t classes = names.count;
  tarn__label_names_close(&names);
  TARN_TRY(tarn__mul_size(&bytes, (size_t)shard->pairs, 2 * sizeof(int32_t)));
  TARN_TRY(tarn__add_size(&bytes, bytes, sizeof(answers_room)));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, bytes, 1));
  answers_room *room = memory;
  int32_t *integers = (int32_t *)(void *)(room + 1);
  float *numbers = (float *)(void *)(room + 1);
  *room = (answers_room){.classes = classes};
  if (classes) {
    room->right_class = integers;
    room->found_class = integers + shard->pairs;
  } else {
    room->right_number = numbers;
    room->found_number = numbers + shard->pairs;
  }
  tally->room = room;
  return TARN_STATUS_OK;
}

// Of classes the answers are log-probabilities, of which the first of the largest counts.
void tarn__labelled_tally(tarn__task_tally *tally, const tarn__batch *batch, const void *answers) {
  const answers_room *room = tally->room;
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
}

void tarn__labelled_answers(struct tarn__agreement *agreement, const tarn__task_tally *tally) {
  const answers_room *room = tally->room;
  *agreement = (struct tarn__agreement){.count = (size_t)tally->predictions,
                                        .classes = room->classes,
                                        .right_class = room->right_class,
                                        .found_class = room->found_class,
                                        .right_number = room->right_number,
                                        .found_number = room->found_number};
}
