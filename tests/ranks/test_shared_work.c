// Work that ranks share, which are threads here: validation, translation, scoring, the sums of ridge. What comes of it
// is the same for any number of ranks, and who fails ends all.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "base/buffer.h"
#include "base/random.h"
#include "comm/ranks.h"
#include "comm/share.h"
#include "same_run.h"
#include "tarn/classify.h"
#include "tarn/data.h"
#include "tarn/lm.h"
#include "tarn/translate.h"
#include "thread_ranks.h"
#include "train/trainer.h"

// One rank's part of a piece of work. Rank 0 puts what comes of it into `found`.
typedef struct part {
  struct tarn_ranks ranks;
  tarn_status (*run)(struct part *part);
  const void *what;
  tarn__buffer found;
  tarn_status status;
  char line[1024];
} part;

static part parts[MOST_RANKS];

static void *run_part(void *user) {
  part *p = user;
  p->status = p->run(p);
  snprintf(p->line, sizeof p->line, "%s", p->status == TARN_STATUS_OK ? "" : tarn_error_message());
  if (p->status != TARN_STATUS_OK) tarn_ranks_leave(&p->ranks, p->status, NULL);
  return NULL;
}

static void go(int size, tarn_status (*run)(part *p), const void *what) {
  rank_hub hub;
  rank_comm comms[MOST_RANKS];
  pthread_t threads[MOST_RANKS];
  hub_open(&hub, comms, size);
  for (int r = 0; r < size; r++) {
    tarn__buffer_close(&parts[r].found);
    parts[r] = (part){.ranks = {&comms[r].comm}, .run = run, .what = what};
    assert_int_equal(pthread_create(&threads[r], NULL, run_part, &parts[r]), 0);
  }
  for (int r = 0; r < size; r++) pthread_join(threads[r], NULL);
  hub_close(&hub);
}

static void must_end(int size, tarn_status status) {
  for (int r = 0; r < size; r++)
    if (parts[r].status != status) fail_msg("rank %d ended with %d: %s", r, (int)parts[r].status, parts[r].line);
}

// Runs it on 1, 2 and 3 ranks: all must find the same bytes, at least so many.
static void must_be_the_same(tarn_status (*run)(part *p), const void *what, size_t least) {
  tarn__buffer one = {0};
  for (int size = 1; size <= 3; size++) {
    go(size, run, what);
    must_end(size, TARN_STATUS_OK);
    const tarn__buffer *found = &parts[0].found;
    if (size == 1) tarn__buffer_put(&one, found->data, found->used);
    assert_true(one.used >= least);
    assert_int_equal(found->used, one.used);
    assert_memory_equal(found->data, one.data, one.used);
  }
  tarn__buffer_close(&one);
}

// --- parcels and answers

enum { ITEMS = 11, ROUNDS = 4, LONG = 300000 };

// An item is a number; its answer so many numbers from it on. In round 2 there are none, in round 3 answers are longer
// than a piece of what is sent.
static int64_t items_of(int64_t round) { return round == 2 ? 0 : ITEMS; }
static int64_t answer_of(int64_t round, int64_t item) { return (item * 7 + round) % 5 + (round == 3 ? LONG : 0); }

static tarn_status answer_items(tarn__share *share, tarn__share_reader *parcel, int64_t round) {
  const int64_t *item;
  while (parcel->left > 0) {
    TARN_TRY(tarn__share_take(&item, parcel, 1, sizeof *item));
    for (int64_t i = 0; i < answer_of(round, *item); i++) {
      const int64_t number = *item * 1000000 + i;
      tarn__buffer_put(tarn__share_answer(share), (const char *)&number, sizeof number);
    }
  }
  return TARN_STATUS_OK;
}

static tarn_status share_rounds(part *p) {
  tarn__comm *comm = p->ranks.comm;
  tarn__share share;
  tarn__share_reader parcel;
  int32_t whose[ITEMS];
  int64_t work[ITEMS];
  bool more = true;
  TARN_TRY(tarn__share_open(&share, comm));
  for (int64_t round = 0; round < ROUNDS && more; round++) {
    for (int64_t i = 0; i < ITEMS; i++) work[i] = answer_of(round, i);
    TARN_TRY(tarn__share_items(whose, work, items_of(round), comm->size));
    if (comm->rank == 0) tarn__share_begin(&share);
    for (int64_t i = 0; i < items_of(round) && comm->rank == 0; i++)
      tarn__share_put(&share.parcels[whose[i]], &i, 1, sizeof i);
    TARN_TRY(tarn__share_deal(&share, &parcel, &more));
    assert_true(more);
    TARN_TRY(answer_items(&share, &parcel, round));
    TARN_TRY(tarn__share_collect(&share));
    for (int64_t i = 0; i < items_of(round) && comm->rank == 0; i++) {
      const int64_t *numbers, count = answer_of(round, i);
      TARN_TRY(tarn__share_take(&numbers, &share.readers[whose[i]], count, sizeof *numbers));
      for (int64_t k = 0; k < count; k++) assert_int_equal(numbers[k], i * 1000000 + k);
    }
    for (int r = 0; r < comm->size && comm->rank == 0; r++) assert_int_equal(share.readers[r].left, 0);
  }
  if (comm->rank == 0)
    TARN_TRY(tarn__share_end(&share));
  else
    TARN_TRY(tarn__share_deal(&share, &parcel, &more));
  assert_int_equal(more, comm->rank == 0);
  tarn__share_close(&share);
  return TARN_STATUS_OK;
}

static void answers_come_back_in_order(void **state) {
  (void)state;
  for (int size = 2; size <= MOST_RANKS; size++) {
    go(size, share_rounds, NULL);
    must_end(size, TARN_STATUS_OK);
  }
}

static void work_is_dealt_evenly(void **state) {
  (void)state;
  enum { COUNT = 101 };
  int64_t work[COUNT];
  int32_t whose[COUNT];
  tarn__random random;
  tarn__random_init(&random, 3, 1);
  for (int i = 0; i < COUNT; i++) work[i] = 1 + (int64_t)tarn__random_below(&random, 50);
  for (int ranks = 1; ranks <= 4; ranks++) {
    int64_t sums[4] = {0}, counts[4] = {0};
    assert_int_equal(tarn__share_items(whose, work, COUNT, ranks), TARN_STATUS_OK);
    for (int i = 0; i < COUNT; i++) {
      sums[whose[i]] += work[i];
      counts[whose[i]]++;
    }
    for (int r = 0; r < ranks; r++) {
      assert_in_range(counts[r], COUNT / ranks, COUNT / ranks + 1);
      assert_in_range(sums[r] - sums[0] + 50, 0, 100);
    }
  }
}

// Rank *what fails before it answers, rank 0 before it deals.
static tarn_status fail_within(part *p) {
  tarn__share share;
  tarn__share_reader parcel;
  bool more;
  const bool fails = p->ranks.comm->rank == *(const int *)p->what;
  TARN_TRY(tarn__share_open(&share, p->ranks.comm));
  tarn_status status = TARN_STATUS_OK;
  if (p->ranks.comm->rank == 0) tarn__share_begin(&share);
  if (p->ranks.comm->rank == 0 && fails) status = tarn__fail(TARN_STATUS_IO, "it is lost");
  if (status == TARN_STATUS_OK) status = tarn__share_deal(&share, &parcel, &more);
  if (status == TARN_STATUS_OK && fails) status = tarn__fail(TARN_STATUS_IO, "it is lost");
  if (status == TARN_STATUS_OK) status = tarn__share_collect(&share);
  tarn__share_close(&share);
  return status;
}

static void a_failure_ends_all(void **state) {
  (void)state;
  for (int rank = 0; rank < 3; rank++) {
    char line[64];
    go(3, fail_within, &rank);
    must_end(3, TARN_STATUS_IO);
    snprintf(line, sizeof line, rank > 0 ? "rank %d: it is lost" : "it is lost", rank);
    assert_string_equal(parts[0].line, line);
  }
}

// --- what commands share

static tarn_status keep_translation(void *user, const tarn_translate_result *result) {
  tarn__buffer *found = user;
  tarn__buffer_format(found, "%lld %lld %d\n", (long long)result->number, (long long)result->source_tokens,
                      (int)result->truncated);
  for (int64_t i = 0; i < result->count; i++) {
    const tarn_translate_hypothesis *h = &result->hypotheses[i];
    tarn__buffer_format(found, "%.*s %lld %a %a\n", (int)h->length, h->text, (long long)h->tokens, h->log_probability,
                        h->score);
  }
  return TARN_STATUS_OK;
}

static tarn_status translate_file(part *p) {
  tarn_translator_options options;
  tarn_translator *translator;
  tarn_translator_default(&options);
  options.n_best = 3;
  options.threads = 1;
  options.window = 16;
  options.ranks = &p->ranks;
  TARN_TRY(tarn_translator_open(&translator, "tiny", &options));
  const tarn_status status = tarn_translator_file(translator, p->what, keep_translation, &p->found);
  tarn_translator_close(&translator);
  return status;
}

static tarn_status keep_line(void *user, int64_t number, const tarn_lm_line *line) {
  tarn__buffer_format(user, "%lld %a", (long long)number, line->log_probability);
  for (int64_t t = 0; t < line->tokens; t++)
    tarn__buffer_format(user, " %d %a", line->ids[t], line->log_probabilities[t]);
  tarn__buffer_add(user, "\n");
  return TARN_STATUS_OK;
}

static tarn_status keep_stretch(void *user, const tarn_lm_stretch *stretch) {
  for (int64_t t = 0; t < stretch->count; t++)
    tarn__buffer_format(user, "%lld %d %a\n", (long long)(stretch->first + t), stretch->ids[t],
                        stretch->log_probabilities[t]);
  return TARN_STATUS_OK;
}

static tarn_status score_lines(part *p, tarn_lm *lm) {
  tarn_lm_total total;
  tarn_minimal_pairs_result *pairs;
  TARN_TRY(tarn_lm_score_file(lm, "lines", keep_line, &p->found));
  TARN_TRY(tarn_lm_score_stream(lm, &total, "lines", 12, 5, keep_stretch, &p->found));
  tarn__buffer_format(&p->found, "%a\n", total.log_probability);
  TARN_TRY(tarn_minimal_pairs_run(&pairs, lm, ".", NULL, NULL));
  assert_int_equal(pairs == NULL, p->ranks.comm->rank > 0);
  for (size_t i = 0; pairs && i < pairs->paradigm_count; i++)
    tarn__buffer_format(&p->found, "%s %s\n", pairs->paradigms[i].name, pairs->paradigms[i].answers);
  tarn_minimal_pairs_close(&pairs);
  return TARN_STATUS_OK;
}

static tarn_status score_file(part *p) {
  tarn_lm_options options;
  tarn_lm *lm;
  tarn_lm_default(&options);
  options.threads = 1;
  options.window = 16;
  options.max_tokens = 60;
  options.ranks = &p->ranks;
  TARN_TRY(tarn_lm_open(&lm, "text", &options));
  const tarn_status status = score_lines(p, lm);
  tarn_lm_close(&lm);
  return status;
}

static tarn_status keep_word(void *user, int64_t number, const tarn_classify_result *result) {
  tarn__buffer_format(user, "%lld %lld %.*s %d %a\n", (long long)number, (long long)result->word, (int)result->length,
                      result->text, result->order[0], result->probabilities[0]);
  return TARN_STATUS_OK;
}

static tarn_status keep_label(void *user, int64_t number, const tarn_classify_result *result) {
  tarn__buffer_format(user, "%lld %d %a %a\n", (long long)number, result->order[0], result->probabilities[0],
                      result->probabilities[1]);
  return TARN_STATUS_OK;
}

static tarn_status classify_lines(part *p, tarn_classifier *classifier) {
  const bool words = tarn_classifier_verb(classifier)->words;
  tarn_classify_test test;
  TARN_TRY(tarn_classifier_file(classifier, "lines", words ? keep_word : keep_label, &p->found));
  TARN_TRY(tarn_classifier_test(classifier, &test, words ? "tagged" : "labelled"));
  for (int i = 0; i < test.measure_count; i++)
    tarn__buffer_format(&p->found, "%a %a %a\n", test.measures[i].value, test.measures[i].low, test.measures[i].high);
  tarn__buffer_format(&p->found, "%a %lld\n", test.loss, (long long)test.rows);
  return TARN_STATUS_OK;
}

static tarn_status label_file(part *p, const char *run) {
  tarn_classify_options options;
  tarn_classifier *classifier;
  tarn_classify_default(&options);
  options.threads = 1;
  options.window = 23;
  options.max_tokens = 60;
  options.ranks = &p->ranks;
  TARN_TRY(tarn_classifier_open(&classifier, run, &options));
  const tarn_status status = classify_lines(p, classifier);
  tarn_classifier_close(&classifier);
  return status;
}

static tarn_status classify_file(part *p) { return label_file(p, "classes"); }
static tarn_status tag_file(part *p) { return label_file(p, "tags"); }

static void commands_give_the_same(void **state) {
  (void)state;
  must_be_the_same(translate_file, "lines", 4000);
  must_be_the_same(score_file, NULL, 4000);
  must_be_the_same(classify_file, NULL, 2000);
  must_be_the_same(tag_file, NULL, 2000);
}

// Rank 0 cannot go on in the middle of the input.
static void input_that_is_refused_ends_all(void **state) {
  (void)state;
  go(3, translate_file, "nowhere");
  must_end(3, TARN_STATUS_IO);
  for (int r = 0; r < 3; r++) assert_non_null(strstr(parts[r].line, "nowhere: "));
  go(2, translate_file, "zero");
  must_end(2, TARN_STATUS_DATA);
}

// What is not shared says so, on each rank by itself.
static tarn_status translate_lines(part *p) {
  tarn_translator_options options;
  tarn_translator *translator;
  tarn_translate_result result;
  tarn_translator_default(&options);
  options.threads = 1;
  options.ranks = &p->ranks;
  TARN_TRY(tarn_translator_open(&translator, "tiny", &options));
  const tarn_status status =
      tarn_translator_lines(translator, &result, (const char *const[]){"w3"}, (const size_t[]){2}, 1);
  tarn_translator_close(&translator);
  return status;
}

static void lines_in_memory_are_not_shared(void **state) {
  (void)state;
  go(1, translate_lines, NULL);
  must_end(1, TARN_STATUS_OK);
  go(2, translate_lines, NULL);
  must_end(2, TARN_STATUS_USAGE);
}

// --- what trainings share

typedef struct training {
  const char *config, *run;
  const char *const *keys;
  size_t count;
} training;

static tarn_status train_rank(part *p) {
  const training *what = p->what;
  tarn_train *train;
  tarn_train_result result;
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = what->config;
  options.run = what->run;
  options.overrides = what->keys;
  options.override_count = what->count;
  TARN_TRY(tarn__train_open_rank(&train, &options, p->ranks.comm));
  const tarn_status status = tarn_train_run(train, &result);
  tarn_train_close(&train);
  return status;
}

static void train_on(int size, const char *config, const char *run, const char *const *keys, size_t count) {
  const training what = {config, run, keys, count};
  go(size, train_rank, &what);
  must_end(size, TARN_STATUS_OK);
}

// The records of scores before the first update, where all have the same weights.
static json_t *first_scores(const char *run) {
  json_t *log = read_log(run), *found = json_array();
  for (size_t i = 0; i < json_array_size(log); i++) {
    json_t *record = json_array_get(log, i);
    const char *kind = json_string_value(json_object_get(record, "kind"));
    if ((strcmp(kind, "valid") == 0 || strcmp(kind, "scored") == 0) &&
        json_integer_value(json_object_get(record, "step")) == 0)
      json_array_append(found, record);
  }
  json_decref(log);
  return found;
}

static void validation_gives_the_same_bits(void **state) {
  (void)state;
  // So few tokens a batch that there are several rounds.
  static const char *const keys[] = {"train.max_tokens=45",
                                     "train.threads=1",
                                     "train.max_updates=1",
                                     "train.average=0",
                                     "valid.at_start=yes",
                                     NULL,
                                     NULL};
  static const struct {
    const char *config, *data, *also;
  } all[] = {{"tiny.yaml", "data.valid=train", "sets={ also: { data: valid, every: 1, max_sentences: 7 } }"},
             {"text.yaml", "data.valid=text", "sets={ also: { data: text.valid, every: 1 } }"},
             {"masked.yaml", "data.valid=masked", "sets={ also: { data: masked.valid, every: 1 } }"},
             {"classes.yaml", "data.valid=labelled", "sets={ also: { data: labelled, every: 1 } }"},
             {"tags.yaml", "data.valid=tagged", "sets={ also: { data: tagged, every: 1 } }"},
             {"carried.yaml", "data.valid=stream.valid", "sets={ also: { data: stream.valid, every: 1 } }"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const char *own[sizeof keys / sizeof *keys];
    char run[32];
    json_t *one = NULL;
    memcpy(own, keys, sizeof keys);
    own[5] = all[i].data;
    own[6] = all[i].also;
    for (int size = 1; size <= 3; size++) {
      snprintf(run, sizeof run, "valid%zu-%d", i, size);
      train_on(size, all[i].config, run, own, sizeof keys / sizeof *keys);
      json_t *found = first_scores(run);
      assert_int_equal(json_array_size(found), 2);
      if (!one) one = json_incref(found);
      if (!json_equal(one, found)) fail_msg("%s: %s is not %s", run, json_dumps(found, 0), json_dumps(one, 0));
      json_decref(found);
    }
    json_decref(one);
  }
}

static double last_loss(const char *run) {
  json_t *log = read_log(run);
  const json_t *record = json_array_get(log, json_array_size(log) - 1);
  assert_string_equal(json_string_value(json_object_get(record, "checkpoint")), "average");
  const double loss = json_real_value(json_object_get(record, "valid_loss"));
  json_decref(log);
  return loss;
}

// Rank 0 alone reads the files of the mean, whose weights are far from the last ones here.
static void the_average_is_validated_by_all(void **state) {
  (void)state;
  const char *keys[] = {"train.max_tokens=45", "train.threads=1",   "train.max_updates=6", "train.save_every=1",
                        "train.keep_last=6",   "train.average=6",   "train.lr=0.05",       "train.precision=fp32",
                        "data.valid=train",    "train.accumulate=2"};
  train_on(1, "tiny.yaml", "mean-one", keys, 10);
  keys[9] = "train.accumulate=1";
  train_on(2, "tiny.yaml", "mean-two", keys, 10);
  const double one = last_loss("mean-one"), two = last_loss("mean-two");
  if (!(fabs(one - two) < 1e-4 * one)) fail_msg("the average has the loss %.9g on one rank and %.9g on two", one, two);
}

static void assert_near_tensors(const char *a, const char *b, double tolerance) {
  char path[256];
  tarn__checkpoint_file x, y;
  join(path, a, TARN__CHECKPOINT_LAST);
  assert_int_equal(tarn__checkpoint_file_open(&x, path), TARN_STATUS_OK);
  join(path, b, TARN__CHECKPOINT_LAST);
  assert_int_equal(tarn__checkpoint_file_open(&y, path), TARN_STATUS_OK);
  assert_int_equal(x.tensors.count, y.tensors.count);
  for (size_t i = 0; i < x.tensors.count; i++) {
    const tarn__stored *s = &x.tensors.tensors[i], *t = &y.tensors.tensors[i];
    assert_int_equal(s->bytes, t->bytes);
    for (size_t k = 0; k < s->bytes / sizeof(float) && strcmp(s->dtype, "F32") == 0; k++) {
      float p, q;
      memcpy(&p, (const char *)s->data + k * sizeof p, sizeof p);
      memcpy(&q, (const char *)t->data + k * sizeof q, sizeof q);
      if (!(fabsf(p - q) <= (float)tolerance * (1 + fabsf(p))))
        fail_msg("%s[%zu] is %.9g in %s and %.9g in %s", s->name, k, (double)p, a, (double)q, b);
    }
  }
  assert_int_equal(x.progress.batches, y.progress.batches);
  assert_int_equal(x.progress.target_tokens, y.progress.target_tokens);
  assert_int_equal(x.progress.epoch, y.progress.epoch);
  tarn__checkpoint_file_close(&x);
  tarn__checkpoint_file_close(&y);
}

// The regression is that of one rank to the rounding of its sums, and the same sentences are kept out for its scale.
static void ridge_learns_what_one_rank_learns(void **state) {
  (void)state;
  static const char *const keys[] = {"train.threads=1"};
  train_on(1, "ridge.yaml", "ridge1", keys, 1);
  for (int size = 2; size <= 3; size++) {
    char run[32], again[32];
    snprintf(run, sizeof run, "ridge%d", size);
    snprintf(again, sizeof again, "ridge%d-again", size);
    train_on(size, "ridge.yaml", run, keys, 1);
    assert_near_tensors("ridge1", run, 1e-5);
    train_on(size, "ridge.yaml", again, keys, 1);
    assert_same_tensors(run, again, TARN__CHECKPOINT_LAST);
    json_t *x = read_log("ridge1"), *y = read_log(run);
    const json_t *p = json_array_get(x, 0), *q = json_array_get(y, 0);
    assert_int_equal(json_integer_value(json_object_get(p, "held")), json_integer_value(json_object_get(q, "held")));
    assert_true(json_integer_value(json_object_get(p, "held")) > 0);
    json_decref(x);
    json_decref(y);
  }
}

// --- data, and the models that commands use

#define MODEL "model: { d_model: 16, dropout: 0 }\n"
#define KINDS "kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }\n"
static const char text_config[] =
    MODEL "decoder: { layers: L }\n" KINDS
          "data: { vocab: vocab, train: text, valid: text.valid }\n"
          "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 200, threads: 1 }\n";
static const char masked_config[] =
    MODEL "encoder: { layers: L }\n" KINDS
          "data: { vocab: masks, train: masked, valid: masked.valid }\n"
          "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 200, threads: 1 }\n";
static const char classes_config[] =
    "model: { task: classification, d_model: 16, dropout: 0 }\n"
    "encoder: { layers: L }\n" KINDS
    "head: { pool: mean }\n"
    "data: { vocab: vocab, train: labelled, valid: labelled }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 200, threads: 1 }\n";
static const char tags_config[] =
    "model: { task: tagging, d_model: 16, dropout: 0 }\n"
    "encoder: { layers: L }\n" KINDS
    "data: { vocab: vocab, train: tagged, valid: tagged }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 200, threads: 1 }\n";
static const char carried_config[] =
    "model: { d_model: 16, positions: none, dropout: 0 }\n"
    "decoder: { layers: C }\n"
    "kinds: { C: { mixer: lstm, ffn: 0 } }\n"
    "data: { vocab: vocab, train: stream, valid: stream.valid }\n"
    "train: { carry_state: yes, max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 40 }\n";
static const char ridge_config[] =
    "model: { d_model: 16, embeddings: none, dropout: 0, output_bias: yes, frozen_embeddings: decoder }\n"
    "decoder: { layers: R }\n"
    "kinds: { R: { mixer: esn, sparsity: 0.5, ffn: 0, norm: none, frozen: yes } }\n"
    "data: { vocab: vocab, train: text }\n"
    "train: { optimiser: ridge, max_tokens: 45 }\n";

static void write_text(const char *path, const char *text) { sandbox_write(path, text, strlen(text)); }

// Adds a line and a label for each of its words: a name is one or two words of an even number of digits.
static void add_tags(tarn__buffer *table, const char *line) {
  const char *tag = "";
  tarn__buffer_format(table, "%s\t", line);
  for (const char *word = line, *end; *word; word = *end ? end + 1 : end) {
    end = word + strcspn(word, " ");
    const bool name = (end - word) % 2 == 1;
    tag = !name ? "O" : strcmp(tag, "B-N") == 0 ? "I-N" : "B-N";
    tarn__buffer_format(table, "%s%s", word > line ? " " : "", tag);
  }
  tarn__buffer_add(table, "\n");
}

// Lines of 1 to 14 words, of which some are empty where that is allowed, pairs of them, and tables with labels.
static void make_lines(void) {
  tarn__buffer lines = {0}, pairs = {0}, table = {0}, tags = {0};
  tarn__random random;
  tarn__random_init(&random, 11, 1);
  tarn__buffer_add(&table, "text\tlabel\n");
  for (int i = 0; i < 90; i++) {
    char line[2][128] = {"", ""};
    for (int side = 0; side < 2; side++)
      for (uint64_t n = 0, words = 1 + tarn__random_below(&random, 14); n < words; n++) {
        const size_t used = strlen(line[side]);
        snprintf(line[side] + used, sizeof line[side] - used, "%sw%d", n > 0 ? " " : "",
                 3 + (int)tarn__random_below(&random, TINY_VOCAB - 3));
      }
    tarn__buffer_format(&lines, "%s\n", line[0]);
    tarn__buffer_format(&pairs, "{\"sentence_good\": \"%s\", \"sentence_bad\": \"%s\"}\n", line[0], line[1]);
    add_tags(&tags, line[0]);
    tarn__buffer_format(&table, "%s\t%s\n", line[0], strlen(line[0]) > 30 ? "long" : "short");
  }
  sandbox_write("lines", lines.data, lines.used);
  sandbox_write("pairs.jsonl", pairs.data, pairs.used);
  sandbox_write("table.tsv", table.data, table.used);
  sandbox_write("tags.tsv", tags.data, tags.used);
  sandbox_write("zero", "w3\nw4\0w5\n", 9);
  tarn__buffer_close(&lines);
  tarn__buffer_close(&pairs);
  tarn__buffer_close(&table);
  tarn__buffer_close(&tags);
}

static void make_labelled(void) {
  tarn_labelled_options options;
  tarn_labelled_result result;
  tarn_labelled_default(&options);
  options.table = "table.tsv";
  options.text = "text";
  options.label = "label";
  options.vocab = "vocab";
  options.output = "labelled";
  if (tarn_labelled_prepare(&result, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  options.table = "tags.tsv";
  options.text = "1";
  options.label = "2";
  options.per_word = true;
  options.output = "tagged";
  if (tarn_labelled_prepare(&result, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  make_text_shard("text", 120, TINY_VOCAB, 7);
  make_text_shard("text.valid", 12, TINY_VOCAB, 8);
  make_stream_shard("stream", 661, 8, TINY_VOCAB, 7);
  make_stream_shard("stream.valid", 400, 8, TINY_VOCAB, 8);
  tarn_vocab *vocab = make_masked_vocab(TINY_VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  sandbox_write("masks", bytes, size);
  make_text_shard_of("masked", 120, vocab, 5);
  make_text_shard_of("masked.valid", 12, vocab, 6);
  tarn_vocab_close(&vocab);
  write_text("text.yaml", text_config);
  write_text("masked.yaml", masked_config);
  write_text("classes.yaml", classes_config);
  write_text("tags.yaml", tags_config);
  write_text("carried.yaml", carried_config);
  write_text("ridge.yaml", ridge_config);
  make_lines();
  make_labelled();
  static const char *const runs[] = {"tiny", "text", "classes", "tags"};
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    char path[32];
    snprintf(path, sizeof path, "%s.yaml", runs[i]);
    if (tiny_train(path, runs[i], (const char *const[]){"train.threads=1"}, 1, NULL, NULL, NULL) != TARN_STATUS_OK)
      fail_msg("%s", tarn_error_message());
  }
  return 0;
}

static int close_all(void **state) {
  for (int r = 0; r < MOST_RANKS; r++) tarn__buffer_close(&parts[r].found);
  return sandbox_close(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_come_back_in_order),
      cmocka_unit_test(work_is_dealt_evenly),
      cmocka_unit_test(a_failure_ends_all),
      cmocka_unit_test(commands_give_the_same),
      cmocka_unit_test(input_that_is_refused_ends_all),
      cmocka_unit_test(lines_in_memory_are_not_shared),
      cmocka_unit_test(validation_gives_the_same_bits),
      cmocka_unit_test(the_average_is_validated_by_all),
      cmocka_unit_test(ridge_learns_what_one_rank_learns),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
