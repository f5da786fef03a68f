// Trainings on several ranks, which are threads here: they learn what one rank learns that accumulates over the same
// batches, always with the same bits, and end together, whatever ends one of them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "base/hash.h"
#include "reaching_ranks.h"
#include "same_run.h"
#include "sample_step.h"
#include "shadow_device.h"
#include "thread_ranks.h"
#include "train/trainer.h"

// One rank's training, and what it came to.
typedef struct rank_run {
  tarn__comm *comm;
  tarn_train_options options;
  volatile sig_atomic_t stop, save;
  void (*before)(tarn_train *train);  // between opening and running; NULL: nothing
  bool opened;
  tarn_status status;
  char line[1024];
  int64_t update;
  uint64_t weights;  // hash of weights, and of moments that a rank has alone
} rank_run;

static uint64_t hash_weights(const tarn_train *train) {
  uint64_t hash = 0;
  if (!train->model->device->type->host_memory) return 0;
  for (size_t i = 0; i < train->model->param_count + train->model->helper_count; i++) {
    const tarn__param *param = tarn__model_param(train->model, i);
    const size_t count = (size_t)(param->rows * param->cols);
    hash = tarn__hash64(param->value, count * tarn__dtype_size(param->dtype), hash);
    if (!param->trained || param->training.part) continue;
    hash = tarn__hash64(param->training.master, count * sizeof(float), hash);
    const size_t moment = tarn__moment_bytes(param->training.moments, count);
    hash = tarn__hash64(param->training.moment1, moment, hash);
    hash = tarn__hash64(param->training.moment2, moment, hash);
  }
  return hash;
}

static void *run_rank(void *user) {
  rank_run *r = user;
  tarn_train *train;
  tarn_train_result result;
  r->status = tarn__train_open_rank(&train, &r->options, r->comm);
  r->opened = r->status == TARN_STATUS_OK;
  if (r->opened) {
    if (r->before) r->before(train);
    r->status = tarn_train_run(train, &result);
    r->update = tarn_train_update(train);
    r->weights = hash_weights(train);
  }
  snprintf(r->line, sizeof r->line, "%s", r->status == TARN_STATUS_OK ? "" : tarn_error_message());
  tarn_train_close(&train);
  return NULL;
}

static rank_run ranks[MOST_RANKS];

// A training of tiny.yaml, or with config NULL one that goes on. Set what else is wanted in ranks[], then run them.
static void prepare(int size, const char *config, const char *run, const char *const *overrides, size_t count) {
  for (int r = 0; r < size; r++) {
    ranks[r] = (rank_run){0};
    tarn_train_default(&ranks[r].options);
    ranks[r].options.config = config;
    ranks[r].options.resume = !config;
    ranks[r].options.run = run;
    ranks[r].options.overrides = overrides;
    ranks[r].options.override_count = count;
    ranks[r].options.stop = &ranks[r].stop;
    ranks[r].options.save = &ranks[r].save;
    tarn_dynamics_follow(&ranks[r].options);
  }
}

// The communicator of the ranks.
static const tarn__comm_kind *spoken = &thread_ranks;

static void go(int size) {
  rank_hub hub;
  rank_comm comms[MOST_RANKS];
  pthread_t threads[MOST_RANKS];
  hub_open(&hub, comms, size);
  for (int r = 0; r < size; r++) {
    comms[r].comm.kind = spoken;
    ranks[r].comm = &comms[r].comm;
    assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
  }
  for (int r = 0; r < size; r++) pthread_join(threads[r], NULL);
  hub_close(&hub);
}

static void must_end(int size, tarn_status status) {
  for (int r = 0; r < size; r++) {
    if (ranks[r].status != status) fail_msg("rank %d ended with %d: %s", r, (int)ranks[r].status, ranks[r].line);
    assert_int_equal(ranks[r].update, ranks[0].update);
  }
}

static void assert_near(const json_t *x, const json_t *y, const char *key, double tolerance) {
  const double a = json_number_value(json_object_get(x, key)), b = json_number_value(json_object_get(y, key));
  if (!(fabs(a - b) <= tolerance * fabs(a)))
    fail_msg("%s of step %lld: %.9g and %.9g", key, (long long)json_integer_value(json_object_get(x, "step")), a, b);
}

// Everything that is counted is equal, and everything that is summed is so to rounding, which grows from step to step.
static void assert_logs_near(const char *a, const char *b, double first, double later) {
  static const char *const sums[] = {"loss",       "nll",       "ppl",        "grad_norm",
                                     "valid_loss", "valid_nll", "valid_bleu", "valid_accuracy"};
  json_t *x = read_log(a), *y = read_log(b);
  assert_true(json_array_size(x) >= 12);
  assert_int_equal(json_array_size(x), json_array_size(y));
  for (size_t i = 0; i < json_array_size(x); i++) {
    json_t *p = json_array_get(x, i), *q = json_array_get(y, i);
    const double tolerance = json_integer_value(json_object_get(p, "step")) == 1 ? first : later;
    for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) {
      if (!json_object_get(p, sums[k])) continue;
      assert_near(p, q, sums[k], tolerance);
      json_object_del(p, sums[k]);
      json_object_del(q, sums[k]);
    }
    json_t *cosines = json_object_get(p, "cosine"), *others = json_object_get(q, "cosine"), *value;
    const char *label;
    json_object_foreach(cosines, label, value) assert_near(cosines, others, label, 10 * later);
    json_object_del(p, "cosine");
    json_object_del(q, "cosine");
    if (!json_equal(p, q)) fail_msg("record %zu of %s: %s", i, b, json_dumps(q, 0));
  }
  json_decref(x);
  json_decref(y);
}

// What differs between variants: where gradients come from, which parameters have none, and what else is summed.
enum { MOST_KEYS = 8 };
typedef struct variant {
  const char *name, *config;
  double first, later;
  const char *keys[MOST_KEYS];
} variant;

static const char tiny[] = "tiny.yaml";
static const variant variants[] = {
    {"plain", tiny, 2e-6, 2e-3, {"train.precision=fp32"}},
    {"bf16", tiny, 2e-4, 5e-2, {"train.precision=bf16", "train.threads=1"}},
    // Few words a batch: most rows of a table are used on one rank or on none.
    {"rows", tiny, 2e-6, 2e-3, {"model.embeddings=none", "train.max_tokens=45", "train.threads=1"}},
    {"layerdrop",
     tiny,
     2e-6,
     2e-3,
     {"encoder.layerdrop=0.5", "decoder.layers=L*3", "decoder.layerdrop=0.5", "train.threads=1"}},
    {"freeze", tiny, 2e-6, 2e-3, {"train.freeze={encoder.L1: 3, decoder: 6}"}},
    {"autofreeze", tiny, 2e-6, 2e-3, {"encoder.layers=L*3", "model.embeddings=none", "train.autofreeze=2"}},
    {"backskip", tiny, 2e-6, 2e-3, {"encoder.layers=L R1 R L R1", "kinds.R.backskip={method: predictor, refresh: 3}"}},
    {"cache",
     tiny,
     2e-6,
     2e-3,
     {"encoder.layers=R R L", "model.frozen_embeddings=encoder", "model.embeddings=none", "model.embedding_dropout=0",
      "kinds.R.dropout=0", "train.cache_frozen=yes"}},
    {"text", "text.yaml", 2e-6, 2e-3, {"train.threads=1"}},
    // Tracks are those of the update, whichever rank reads them.
    {"carried", "carried.yaml", 2e-6, 2e-3, {"train.threads=1"}},
    // Masks are those of the sentence, whichever rank has it.
    {"masked", "masked.yaml", 2e-6, 2e-3, {"train.threads=1"}},
    // Roll-ins too; and what the deletion policy reads is what the model would insert.
    {"edits",
     tiny,
     2e-6,
     2e-3,
     {"model.task=levenshtein", "data.vocab=masks", "data.train=edits", "data.valid=edits.valid", "train.threads=1"}},
};

// Overrides of a variant with so many batches of each rank in an update.
static size_t keys_of(const variant *v, const char *keys[MOST_KEYS + 3], const char *accumulate) {
  size_t count = 0;
  for (; count < MOST_KEYS && v->keys[count]; count++) keys[count] = v->keys[count];
  keys[count++] = "train.log_every=1";
  keys[count++] = "train.average=0";
  keys[count++] = accumulate;
  return count;
}

static void must_run(const char *config, const char *run, const char *const *overrides, size_t count) {
  if (tiny_train(config, run, overrides, count, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s: %s", run, tarn_error_message());
}

// With three ranks gradients travel in many pieces, which end within parameters and within their rows.
static void sum_in_pieces(tarn_train *train) { train->gradient_sum.most = 37; }

static void train_on(int size, const char *config, const char *run, const char *const *overrides, size_t count) {
  prepare(size, config, run, overrides, count);
  for (int r = 0; r < size; r++) ranks[r].before = size == 3 ? sum_in_pieces : NULL;
  go(size);
  must_end(size, TARN_STATUS_OK);
  for (int r = 0; r < size; r++) assert_true(ranks[r].weights == ranks[0].weights);
}

// What the optimisers of all ranks hold together at the most.
static size_t optimiser_bytes;
static pthread_mutex_t optimiser_lock = PTHREAD_MUTEX_INITIALIZER;
static void note_optimiser(tarn_train *train) {
  (void)train;
  pthread_mutex_lock(&optimiser_lock);
  const size_t now = tarn__memory_now(TARN__MEMORY_OPTIMISER);
  if (now > optimiser_bytes) optimiser_bytes = now;
  pthread_mutex_unlock(&optimiser_lock);
}

static size_t train_noting(int size, const char *config, const char *run, const char *const *overrides, size_t count) {
  optimiser_bytes = 0;
  prepare(size, config, run, overrides, count);
  for (int r = 0; r < size; r++) ranks[r].before = note_optimiser;
  go(size);
  must_end(size, TARN_STATUS_OK);
  for (int r = 0; r < size; r++) assert_true(ranks[r].weights == ranks[0].weights);
  return optimiser_bytes;
}

// Moments, checkpoints, logs and the order of random numbers are those of ranks that each have all of the optimiser.
static void sharing_the_optimiser_changes_no_bit(void **state) {
  (void)state;
  for (size_t v = 0; v < sizeof variants / sizeof *variants; v += (size_t)sample_step(3)) {
    const int size = v % 2 == 0 ? 2 : 3;
    const char *keys[MOST_KEYS + 6];
    char all[64], shared[64];
    snprintf(all, sizeof all, "%s-all", variants[v].name);
    snprintf(shared, sizeof shared, "%s-shared", variants[v].name);
    size_t count = keys_of(&variants[v], keys, "train.accumulate=1");
    keys[count++] = "train.clip_norm=0.5";
    const bool blocks = v % 3 == 1 && v > 1;
    if (v % 3 == 1) keys[count++] = blocks ? "train.moments=fp8" : "train.moments=bf16";
    if (v % 3 != 1) keys[count++] = "train.reduce=bf16";
    keys[count] = "train.shard_optimiser=no";
    const size_t whole = train_noting(size, variants[v].config, all, keys, count + 1);
    keys[count] = "train.shard_optimiser=yes";
    const size_t part = train_noting(size, variants[v].config, shared, keys, count + 1);
    assert_same_tensors(all, shared, TARN__CHECKPOINT_LAST);
    assert_same_log(all, shared);
    // All ranks together have what each of them had alone; those of so small a model have few blocks of F8 to share.
    const double ratio = (double)part * size / (double)whole, more = blocks ? 0.2 : 0.02;
    if (!(ratio > 0.98 && ratio < 1.0 + more))
      fail_msg("%s: the memory of %d ranks is %.3f of one's", all, size, ratio);
  }
}

static json_t *read_json(const char *run, const char *name) {
  char path[256];
  join(path, run, name);
  json_t *object = json_load_file(path, 0, NULL);
  assert_non_null(object);
  return object;
}

static json_int_t number_at(const json_t *object, const char *key, const char *inner) {
  const json_t *value = json_object_get(json_object_get(object, key), inner);
  assert_true(json_is_integer(value));
  return json_integer_value(value);
}

// What is summed are the trained parameters, once: nothing of frozen ones, and shared ones as one, in the format that
// travels. Of tables that are only looked up it is the rows in use.
static void payload_is_what_is_trained(void **state) {
  (void)state;
  static const char *const layers[] = {"encoder.layers=L L L", "encoder.layers=L1 L1 L1", "encoder.layers=L R R",
                                       "encoder.layers=L1 R1 L1"};
  json_int_t whole = 0;
  // As a sample, each of the layers once, in both formats, and the optimiser whole and shared.
  for (int k = 0; k < 10; k += getenv("TARN_SAMPLE") ? 3 : 1) {
    const bool rounds = k % 2 == 1, rows = k >= 8, shares = k % 4 >= 2;
    const char *keys[] = {layers[rows ? 0 : k / 2],
                          rounds ? "train.reduce=bf16" : "train.reduce=fp32",
                          rows ? "model.embeddings=none" : "model.embeddings=all",
                          shares ? "train.shard_optimiser=yes" : "train.shard_optimiser=no",
                          "train.max_updates=2",
                          "train.max_tokens=45",
                          "train.average=0",
                          "train.threads=1"};
    char run[32];
    snprintf(run, sizeof run, "payload-%d", k);
    train_on(2, tiny, run, keys, sizeof keys / sizeof *keys);
    json_t *result = read_json(run, "result.json");
    const json_int_t bytes = number_at(result, "ranks", "reduce_bytes"), element = rounds ? 2 : 4;
    const json_int_t trained = number_at(result, "parameters", "trained");
    if (k == 0) whole = trained;
    if (k == 2 || k == 4) assert_true(trained < whole);
    if (rows)
      assert_true(bytes < element * trained && bytes % element == 0);
    else
      assert_int_equal(bytes, element * trained);
    // Ranks send others their halves, then the halves of the sums or weights; words and flags are small compared with
    // them.
    const json_int_t sent = number_at(result, "ranks", "sent_bytes") / 2;
    assert_true(sent >= 2 * bytes && sent < 2 * bytes + (shares ? 4 * trained : 0) + 10000);
    assert_int_equal(number_at(result, "ranks", "count"), 2);
    const json_t *waited = json_object_get(json_object_get(result, "ranks"), "waited");
    assert_int_equal(json_array_size(waited), 2);
    for (size_t r = 0; r < 2; r++) assert_true(json_real_value(json_array_get(waited, r)) > 0);
    json_decref(result);
  }
}

static void ranks_that_others_wait_for_are_named(void **state) {
  (void)state;
  const double waited[][3] = {{0, 3, 4}, {3, 0.5, 3}, {1, 1, 1}, {2.4, 0.5, 9}, {5, 5, 0}};
  assert_int_equal(tarn__rank_use_slow(waited[0], 3, 10), 0);
  assert_int_equal(tarn__rank_use_slow(waited[0], 3, 9), -1);
  assert_int_equal(tarn__rank_use_slow(waited[1], 3, 10), 1);
  assert_int_equal(tarn__rank_use_slow(waited[1], 3, 13), -1);
  assert_int_equal(tarn__rank_use_slow(waited[2], 3, 10), -1);
  assert_int_equal(tarn__rank_use_slow(waited[3], 3, 10), -1);
  assert_int_equal(tarn__rank_use_slow(waited[4], 3, 20), 2);
  assert_int_equal(tarn__rank_use_slow(waited[4], 2, 20), -1);
}

// An expert is unused where no rank has given it a token.
static void ranks_use_experts_together(void **state) {
  (void)state;
  const char *keys[] = {MANY_EXPERTS, "train.log_every=1", "train.max_updates=2", "train.average=0",
                        "train.accumulate=2"};
  must_run("tiny.yaml", "experts-one", keys, 6);
  keys[5] = "train.accumulate=1";
  must_run("tiny.yaml", "experts-alone", keys, 6);
  train_on(2, "tiny.yaml", "experts-two", keys, 6);
  for (int64_t step = 1; step <= 2; step++)
    assert_int_equal(unused_experts("experts-two", step), unused_experts("experts-one", step));
  assert_true(unused_experts("experts-alone", 1) > unused_experts("experts-two", 1));
}

static void ranks_learn_what_accumulation_learns(void **state) {
  (void)state;
  static const struct {
    int size;
    const char *one, *each;
  } shares[] = {{1, "train.accumulate=2", "train.accumulate=2"},
                {2, "train.accumulate=2", "train.accumulate=1"},
                {2, "train.accumulate=4", "train.accumulate=2"},
                {3, "train.accumulate=3", "train.accumulate=1"}};
  // As a sample, every second variant is shared in one of these ways.
  const size_t each = (size_t)sample_step(2);
  for (size_t v = 0; v < sizeof variants / sizeof *variants; v += each)
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
      if (each > 1 && s != v / each % 4) continue;
      const char *keys[MOST_KEYS + 3];
      char one[64], many[64];
      snprintf(one, sizeof one, "%s-one-%zu", variants[v].name, s);
      snprintf(many, sizeof many, "%s-many-%zu", variants[v].name, s);
      must_run(variants[v].config, one, keys, keys_of(&variants[v], keys, shares[s].one));
      train_on(shares[s].size, variants[v].config, many, keys, keys_of(&variants[v], keys, shares[s].each));
      if (shares[s].size > 1) {
        assert_logs_near(one, many, variants[v].first, variants[v].later);
        continue;
      }
      assert_same_tensors(one, many, TARN__CHECKPOINT_LAST);
      assert_same_log(one, many);
    }
}

// Stopped together after every few updates, and gone on with.
static void stop_rank_1(void *user, const tarn_train_event *event) {
  const int64_t *every = user;
  if (event->kind == TARN_TRAIN_EVENT_UPDATE && event->update % *every == 0) ranks[1].stop = 1;
}

static void train_in_pieces(int size, const char *config, const char *run, int64_t every, const char *const *overrides,
                            size_t count) {
  int stops = 0;
  for (;; stops++) {
    prepare(size, stops > 0 ? NULL : config, run, overrides, stops > 0 ? 0 : count);
    ranks[0].options.on_event = stop_rank_1;
    ranks[0].options.user = &every;
    go(size);
    if (ranks[0].status == TARN_STATUS_OK) break;
    must_end(size, TARN_STATUS_INTERRUPTED);
    assert_non_null(strstr(ranks[0].line, "all is saved; go on with: tarn train --resume"));
    for (int r = 1; r < size; r++) assert_string_equal(ranks[r].line, ranks[0].line);
    assert_true(stops < 20);
  }
  assert_true(stops >= 2);
  must_end(size, TARN_STATUS_OK);
}

// With each stop the optimiser is shared, or no more, or by more ranks; between stops ranks stay as many, or bits would
// differ.
static void optimisers_are_shared_from_one_stop_to_the_next(void **state) {
  (void)state;
  // Exponents are of weights that the other ranks have.
  static const char *const keys[] = {"train.precision=bf16", "dynamics={input: lines, every: 4, iterations: 5}",
                                     "train.shard_optimiser=yes"};
  static const char *const changes[] = {"train.shard_optimiser=no", "train.shard_optimiser=yes"};
  const int64_t every = 3;
  sandbox_write("lines", "w3 w4 w5\n", 9);
  prepare(3, tiny, "stays-whole", keys, 2);
  go(3);
  must_end(3, TARN_STATUS_OK);
  int stops = 0;
  for (;; stops++) {
    prepare(3, stops > 0 ? NULL : tiny, "is-shared", stops > 0 ? &changes[stops % 2] : keys, stops > 0 ? 1 : 3);
    ranks[0].options.on_event = stop_rank_1;
    ranks[0].options.user = (void *)(uintptr_t)&every;
    go(3);
    if (ranks[0].status == TARN_STATUS_OK) break;
    must_end(3, TARN_STATUS_INTERRUPTED);
    assert_true(stops < 10);
  }
  assert_true(stops >= 3);
  assert_same_run("stays-whole", "is-shared");
  // Six updates of three ranks, then of two, which share what three had, and of one.
  static const char *const runs[] = {"from-whole", "from-shared"};
  for (int k = 0; k < 2; k++)
    for (int size = 3; size > 0; size--) {
      const char *left[] = {changes[k], size == 3   ? "train.max_updates=6"
                                        : size == 2 ? "train.max_updates=9"
                                                    : "train.max_updates=12"};
      prepare(size, size == 3 ? tiny : NULL, runs[k], left, 2);
      go(size);
      must_end(size, TARN_STATUS_OK);
    }
  assert_same_tensors(runs[0], runs[1], TARN__CHECKPOINT_LAST);
}

static void the_same_ranks_give_the_same_bits(void **state) {
  (void)state;
  static const char *const keys[][3] = {{"train.precision=fp32", "model.embeddings=none", "encoder.layerdrop=0.3"},
                                        {"train.precision=bf16", "train.accumulate=2", "valid.at_start=yes"},
                                        {"train.reduce=bf16", "train.max_tokens=45", "train.threads=1"}};
  const bool sample = getenv("TARN_SAMPLE") != NULL;
  for (int size = 2; size <= 3; size++)
    for (size_t i = sample ? (size_t)size - 2 : 0; i < (sample ? (size_t)size - 1 : size == 2 ? 3 : 2); i++) {
      char once[32], again[32], pieces[32];
      snprintf(once, sizeof once, "once%d-%zu", size, i);
      snprintf(again, sizeof again, "again%d-%zu", size, i);
      snprintf(pieces, sizeof pieces, "pieces%d-%zu", size, i);
      prepare(size, tiny, once, keys[i], 3);
      go(size);
      must_end(size, TARN_STATUS_OK);
      prepare(size, tiny, again, keys[i], 3);
      go(size);
      must_end(size, TARN_STATUS_OK);
      assert_same_run(once, again);
      train_in_pieces(size, tiny, pieces, 4, keys[i], 3);
      assert_same_run(once, pieces);
    }
}

static int saved;
static void save_from_rank_2(void *user, const tarn_train_event *event) {
  (void)user;
  if (event->kind == TARN_TRAIN_EVENT_UPDATE && event->update == 7) ranks[2].save = 1;
  saved += event->kind == TARN_TRAIN_EVENT_SAVED && event->update >= 7 && event->update < 10 &&
           strstr(event->path, TARN__CHECKPOINT_LAST);
}

static void any_rank_may_ask_to_save(void **state) {
  (void)state;
  prepare(3, tiny, "asked", NULL, 0);
  ranks[0].options.on_event = save_from_rank_2;
  saved = 0;
  go(3);
  must_end(3, TARN_STATUS_OK);
  assert_int_equal(saved, 1);
}

static tarn_train *second;
static void keep_second(tarn_train *train) { second = train; }
static void let_time_pass(void *user, const tarn_train_event *event) {
  (void)user;
  if (event->kind == TARN_TRAIN_EVENT_UPDATE && event->update == 2) second->session.saved_at -= 1e6;
  saved += event->kind == TARN_TRAIN_EVENT_SAVED && event->update > 0 && event->update < 12;
}

// Rank 0 alone knows when it saved last.
static void others_do_not_ask_to_save_by_their_clock(void **state) {
  (void)state;
  const char *keys[] = {"valid.every=100000", "train.save_every=100000"};
  prepare(2, tiny, "clock", keys, 2);
  ranks[0].options.on_event = let_time_pass;
  ranks[1].before = keep_second;
  saved = 0;
  go(2);
  must_end(2, TARN_STATUS_OK);
  assert_int_equal(ranks[0].update, 12);
  assert_int_equal(saved, 0);
}

// The clock of rank 0 ends all of them.
static void limits_are_reached_together(void **state) {
  (void)state;
  const char *keys[] = {"train.max_updates=100000", "train.max_minutes=0.01", "valid.every=100000",
                        "train.save_every=100000", "train.threads=1"};
  prepare(3, tiny, "minutes", keys, 5);
  go(3);
  must_end(3, TARN_STATUS_OK);
  assert_true(ranks[0].update >= 1 && ranks[0].update < 100000);
  const char *patience[] = {"train.max_updates=100000", "train.patience=2", "valid.every=2", "train.threads=1"};
  prepare(2, tiny, "patience", patience, 4);
  go(2);
  must_end(2, TARN_STATUS_OK);
  assert_true(ranks[0].update > 4 && ranks[0].update < 100000);
}

static void poison(tarn_train *train) {
  for (size_t i = 0; i < train->model->param_count; i++) {
    tarn__param *param = train->model->params[i];
    if (param->trained && param->rows > 1) ((float *)param->value)[3] = NAN;
  }
}

static void assert_lines(int size, const char *words) {
  for (int r = 0; r < size; r++)
    if (!strstr(ranks[r].line, words)) fail_msg("rank %d: \"%s\" does not say \"%s\"", r, ranks[r].line, words);
}

// States that are carried from update to update are saved by rank 0, and each rank takes its own.
static void carried_states_are_saved(void **state) {
  (void)state;
  const char *keys[] = {"train.accumulate=2"};
  prepare(2, "carried.yaml", "carried-once", keys, 1);
  go(2);
  must_end(2, TARN_STATUS_OK);
  train_in_pieces(2, "carried.yaml", "carried-pieces", 3, keys, 1);
  assert_same_tensors("carried-once", "carried-pieces", TARN__CHECKPOINT_LAST);
  assert_same_log("carried-once", "carried-pieces");
  // Four batches read the text together. With other ranks there would be other tracks.
  prepare(1, NULL, "carried-pieces", (const char *const[]){"train.max_updates=14"}, 1);
  go(1);
  must_end(1, TARN_STATUS_DATA);
  assert_lines(1, "and this training reads it in");
}

static void numbers_that_are_none_end_all(void **state) {
  (void)state;
  prepare(3, tiny, "nan", (const char *const[]){"train.precision=fp32"}, 1);
  ranks[1].before = poison;
  go(3);
  must_end(3, TARN_STATUS_NUMERIC);
  assert_lines(3, "the loss is not a finite number at update 1");
  json_t *result = json_load_file("nan/result.json", 0, NULL);
  assert_string_equal(json_string_value(json_object_get(result, "status")), "failed");
  json_decref(result);
  // The weights of one rank alone were wrong, so the run can go on.
  prepare(3, NULL, "nan", NULL, 0);
  go(3);
  must_end(3, TARN_STATUS_OK);
}

// The data of one rank are lost, as a file of its machine would be.
static void lose_data(tarn_train *train) { tarn__map_doubt(&train->shard.map); }

static void what_one_rank_loses_is_saved(void **state) {
  (void)state;
  for (int lost = 0; lost < 3; lost += sample_step(1)) {
    char run[32];
    snprintf(run, sizeof run, "lost%d", lost);
    const int64_t every = 5;
    prepare(3, tiny, run, NULL, 0);
    ranks[0].options.on_event = stop_rank_1;
    ranks[0].options.user = (void *)(uintptr_t)&every;
    go(3);
    must_end(3, TARN_STATUS_INTERRUPTED);
    const int64_t at = ranks[0].update;
    prepare(3, NULL, run, NULL, 0);
    ranks[lost].before = lose_data;
    go(3);
    must_end(3, TARN_STATUS_IO);
    // The last update of an epoch can be one in which that rank has no batch.
    assert_in_range(ranks[0].update, at, at + 1);
    assert_lines(3, "train.tarn: it was cut off or overwritten while it was in use");
    assert_non_null(strstr(ranks[0].line, lost == 0 ? "train.tarn: " : lost == 1 ? "rank 1: " : "rank 2: "));
    assert_non_null(strstr(ranks[0].line, "; the training is saved after update "));
    prepare(3, NULL, run, NULL, 0);
    go(3);
    must_end(3, TARN_STATUS_OK);
    if (lost == 0) {
      prepare(3, tiny, "kept", NULL, 0);
      go(3);
      must_end(3, TARN_STATUS_OK);
    }
    assert_same_run(run, "kept");
  }
}

// Nobody has what the ranks had together, so the last checkpoint stays, and the run goes on from it.
static void what_ranks_share_is_not_saved_without_all(void **state) {
  (void)state;
  static const char *const key = "train.shard_optimiser=yes";
  for (int lost = 0; lost < 2; lost++) {
    char run[32];
    snprintf(run, sizeof run, "lost-part%d", lost);
    const int64_t every = 5;
    prepare(2, tiny, run, &key, 1);
    ranks[0].options.on_event = stop_rank_1;
    ranks[0].options.user = (void *)(uintptr_t)&every;
    go(2);
    must_end(2, TARN_STATUS_INTERRUPTED);
    prepare(2, NULL, run, NULL, 0);
    ranks[lost].before = lose_data;
    go(2);
    must_end(2, TARN_STATUS_IO);
    assert_lines(2, "train.tarn: it was cut off or overwritten while it was in use");
    assert_non_null(strstr(ranks[0].line, "; the last checkpoint is "));
    assert_non_null(strstr(ranks[0].line, "Go on from it with: tarn train --resume "));
    prepare(2, NULL, run, NULL, 0);
    go(2);
    must_end(2, TARN_STATUS_OK);
    prepare(2, tiny, "kept-whole", NULL, 0);
    if (lost == 0) go(2);
    assert_same_run("kept-whole", run);
  }
}

// A folder stands where the checkpoint of update 10 is to be.
static void block_checkpoint(void *user, const tarn_train_event *event) {
  if (event->kind == TARN_TRAIN_EVENT_UPDATE && event->update == 9) assert_int_equal(mkdir(user, 0700), 0);
}

static void what_rank_0_cannot_write_ends_all(void **state) {
  (void)state;
  static char path[] = "blocked/checkpoint_10.safetensors";
  prepare(2, tiny, "blocked", NULL, 0);
  ranks[0].options.on_event = block_checkpoint;
  ranks[0].options.user = path;
  go(2);
  must_end(2, TARN_STATUS_IO);
  assert_lines(2, "checkpoint_10.safetensors");
}

static void ranks_must_be_of_one_training(void **state) {
  (void)state;
  static const char *const key = "train.lr=0.02";
  prepare(3, tiny, "mixed", NULL, 0);
  ranks[2].options.overrides = &key;
  ranks[2].options.override_count = 1;
  go(3);
  must_end(3, TARN_STATUS_DATA);
  assert_lines(3, "rank 2 has another description than rank 0");
  prepare(3, tiny, "mixed", NULL, 0);
  ranks[1].options.config = "none.yaml";
  go(3);
  for (int r = 0; r < 3; r++) assert_false(ranks[r].opened);
  assert_lines(3, "none.yaml");
  assert_int_equal(strncmp(ranks[0].line, "rank 1: ", 8), 0);
  // Nothing of that has begun a run.
  prepare(3, tiny, "mixed", NULL, 0);
  go(3);
  must_end(3, TARN_STATUS_OK);
}

// Trainings that have nothing to do with each other, at the same time in one process, each with its own threads.
static void trainings_beside_each_other_do_not_meet(void **state) {
  (void)state;
  static const char *const keys[3][2] = {{"train.threads=1", "train.seed=1"},
                                         {"train.threads=2", "train.seed=2"},
                                         {"train.threads=3", "train.precision=bf16"}};
  char alone[32], beside[3][32];
  rank_run all[3];
  pthread_t threads[3];
  tarn__comm comms[3];
  for (int i = 0; i < 3; i++) {
    snprintf(beside[i], sizeof beside[i], "beside%d", i);
    prepare(1, tiny, beside[i], keys[i], 2);
    comms[i] = (tarn__comm){.kind = &tarn__comm_self, .size = 1};
    all[i] = ranks[0];
    all[i].options.stop = all[i].options.save = NULL;
    all[i].comm = &comms[i];
  }
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &all[i]), 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 3; i++) {
    if (all[i].status != TARN_STATUS_OK) fail_msg("%s", all[i].line);
    snprintf(alone, sizeof alone, "alone%d", i);
    must_run(tiny, alone, keys[i], 2);
    assert_same_run(alone, beside[i]);
  }
}

// Gradients go from the memory of the device to the other ranks and back; with three ranks while the device still
// computes others. A communicator that reaches them there gives the same bits.
static void ranks_on_a_device_apart_are_the_same(void **state) {
  (void)state;
  static const char *const keys[] = {"train.precision=bf16", "train.autofreeze=3", "encoder.layers=L*3",
                                     "model.embeddings=none"};
  static const char *const runs[][3] = {{"on-cpu", "on-shadow", "reached"}, {"on-cpu3", "on-shadow3", "reached3"}};
  tarn__comm_kind reaching = thread_ranks;
  reaching.reaches = reach;
  reaching.sum_there = sum_there;
  for (int size = getenv("TARN_SAMPLE") ? 3 : 2; size <= 3; size++) {
    reached = 0;
    for (int way = 0; way < 3; way++) {
      tarn__device_use(way > 0 ? &shadow_device : NULL);
      spoken = way == 2 ? &reaching : &thread_ranks;
      prepare(size, tiny, runs[size - 2][way], keys, 4);
      go(size);
      spoken = &thread_ranks;
      tarn__device_use(NULL);
      must_end(size, TARN_STATUS_OK);
      assert_int_equal(reached > 0, way == 2);
    }
    assert_true(shadow.most > 0);
    assert_int_equal(shadow.now, 0);
    assert_same_run(runs[size - 2][0], runs[size - 2][1]);
    assert_same_run(runs[size - 2][0], runs[size - 2][2]);
  }
}

static const char carried_config[] =
    "model: { d_model: 16, positions: none, dropout: 0.1 }\n"
    "decoder: { layers: C E }\n"
    "kinds:\n"
    "  C: { mixer: lstm, ffn: 0 }\n"
    "  E: { mixer: esn, ffn: 32 }\n"
    "data: { vocab: vocab, train: stream, valid: stream.valid }\n"
    "train: { carry_state: yes, max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 40, save_every: 5, keep_last: 2,\n"
    "         log_every: 1, clip_norm: 1 }\n"
    "valid: { every: 4 }\n";

static const char text_config[] =
    "model: { d_model: 16, dropout: 0.2, output_bias: yes }\n"
    "decoder: { layers: L R }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "data: { vocab: vocab, train: text, valid: text.valid }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 200, save_every: 5 }\n"
    "valid: { every: 4 }\n";

static const char masked_config[] =
    "model: { d_model: 16, dropout: 0.2, embedding_norm: yes }\n"
    "encoder: { layers: L R }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "data: { vocab: masks, train: masked, valid: masked.valid }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 200, save_every: 5 }\n"
    "valid: { every: 4 }\n";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  // 83 windows: with 10, 15 or 20 tracks 12 updates go beyond the end of an epoch, whose last one gives a rank no
  // batch.
  make_stream_shard("stream", 661, 8, TINY_VOCAB, 7);
  make_stream_shard("stream.valid", 400, 8, TINY_VOCAB, 8);
  sandbox_write("carried.yaml", carried_config, strlen(carried_config));
  make_text_shard("text", 120, TINY_VOCAB, 7);
  make_text_shard("text.valid", 12, TINY_VOCAB, 8);
  sandbox_write("text.yaml", text_config, strlen(text_config));
  tarn_vocab *vocab = make_masked_vocab(TINY_VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  sandbox_write("masks", bytes, size);
  make_text_shard_of("masked", 120, vocab, 5);
  make_text_shard_of("masked.valid", 12, vocab, 6);
  make_shard_of("edits", 120, vocab, vocab, 5);
  make_shard_of("edits.valid", 12, vocab, vocab, 6);
  tarn_vocab_close(&vocab);
  sandbox_write("masked.yaml", masked_config, strlen(masked_config));
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(payload_is_what_is_trained),
      cmocka_unit_test(ranks_that_others_wait_for_are_named),
      cmocka_unit_test(ranks_use_experts_together),
      cmocka_unit_test(ranks_learn_what_accumulation_learns),
      cmocka_unit_test(sharing_the_optimiser_changes_no_bit),
      cmocka_unit_test(optimisers_are_shared_from_one_stop_to_the_next),
      cmocka_unit_test(the_same_ranks_give_the_same_bits),
      cmocka_unit_test(carried_states_are_saved),
      cmocka_unit_test(any_rank_may_ask_to_save),
      cmocka_unit_test(others_do_not_ask_to_save_by_their_clock),
      cmocka_unit_test(limits_are_reached_together),
      cmocka_unit_test(numbers_that_are_none_end_all),
      cmocka_unit_test(what_one_rank_loses_is_saved),
      cmocka_unit_test(what_ranks_share_is_not_saved_without_all),
      cmocka_unit_test(what_rank_0_cannot_write_ends_all),
      cmocka_unit_test(ranks_must_be_of_one_training),
      cmocka_unit_test(trainings_beside_each_other_do_not_meet),
      cmocka_unit_test(ranks_on_a_device_apart_are_the_same),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
