#include "train/validator.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/work.h"
#include "comm/share.h"
#include "config/config_carry.h"
#include "task/images.h"
#include "task/task.h"
#include "train/feature.h"
#include "train/set_measure.h"
#include "train/shard_check.h"

struct tarn__validator {
  tarn__validator_data what;
  const tarn__model *model;
  const tarn_vocab *target;
  tarn__comm *comm;
  tarn__share share;  // comm NULL: this rank computes all batches
  tarn__shard shard;
  tarn__batcher *batcher;
  void *own[TARN__SET_MEASURES];  // of the measures that run the model; NULL: not requested
  tarn__task_tally empty;         // initialised with the data properties that the task's measures need, and no batches
  // Of the data: everything that the scores depend on, and everything that the loss depends on (validator.h).
  char finish[sizeof((tarn__batch_finish){0}).text];  // description of how batches are completed; "": not
  char hash[TARN__HASH_TEXT], loss_hash[TARN__HASH_TEXT];
};

// Batches per rank between two exchanges: enough to keep waiting short, few enough that not all answers are held in
// memory.
enum { ROUND = 16 };

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static bool in_order(const tarn__validator *v) { return tarn__config_reads_tracks(v->model->config); }

int64_t tarn__validator_tracks(const tarn_config *config, const tarn__shard *shard) {
  const int64_t most = config->train.max_sentences;
  if (!tarn__config_reads_tracks(config)) return 0;
  int64_t tracks = larger(shard->pairs / TARN__VALIDATOR_WINDOWS, 1);
  if (shard->longest_target > 0 && config->train.max_tokens / shard->longest_target < tracks)
    tracks = larger(config->train.max_tokens / shard->longest_target, 1);
  return most > 0 && most < tracks ? most : tracks;
}

static tarn_status open_batcher(tarn__validator *v) {
  const tarn_config *config = v->model->config;
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.shuffle = false;
  options.longest = config->model.max_length;
  options.max_tokens = config->train.max_tokens;
  // The budget is that of training, but every sentence must fit.
  TARN_TRY(tarn__task_batches(&options, config, &v->shard, v->target));
  memcpy(v->finish, options.finish.text, sizeof v->finish);
  int64_t longest = larger(v->shard.longest_source, v->shard.longest_target + (options.first >= 0 ? 1 : 0));
  if (longest > options.longest) longest = options.longest;
  if (longest > options.max_tokens) options.max_tokens = longest;
  if (in_order(v)) {
    options.tracks = 1;
    options.max_sentences = tarn__validator_tracks(config, &v->shard);
  }
  tarn_status status = tarn__batcher_open(&v->batcher, &v->shard, &options);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", v->shard.path);
  return TARN_STATUS_OK;
}

void tarn__validator_warn_left_out(const tarn__validator *v) {
  const tarn_config *config = v->model->config;
  tarn__shard_warn_left_out(&v->shard, v->batcher, config, v->what.of);
}

const char *tarn__validator_bleu_hash(const tarn__validator *v) {
  const tarn__set_measure *measure;
  for (int i = 0; (measure = tarn__set_measure_at(i)) != NULL; i++)
    if (measure->metric == TARN__METRIC_BLEU && v->own[i]) return measure->hash(v->own[i]);
  return "";
}

static void make_hashes(tarn__validator *v) {
  char all[2 * TARN__HASH_TEXT + 64 + sizeof v->finish];
  // The lengths determine which sentences are skipped, so their number identifies them.
  snprintf(all, sizeof all, "%s %" PRId64, v->shard.hash, v->shard.pairs - tarn__batcher_left_out(v->batcher));
  if (*v->finish) snprintf(all + strlen(all), sizeof all - strlen(all), " %s", v->finish);
  if (in_order(v))
    snprintf(all + strlen(all), sizeof all - strlen(all), " %" PRId64 " tracks", tarn__batcher_tracks(v->batcher));
  tarn__hash(v->loss_hash, all, strlen(all));
  snprintf(all, sizeof all, "%s %s", v->loss_hash, tarn__validator_bleu_hash(v));
  tarn__hash(v->hash, all, strlen(all));
}

static tarn_status open_parts(tarn__validator *v, const tarn_vocab *source, int threads) {
  const tarn_config *config = v->model->config;
  TARN_TRY(tarn__task_shard_open(&v->shard, v->what.data, config));
  TARN_TRY(tarn__shard_check(&v->shard, source, v->target, config));
  TARN_TRY(open_batcher(v));
  const tarn__task *task = tarn__config_task(config);
  if (task->count) TARN_TRY(task->count(&v->empty, config, &v->shard, v->target));
  const tarn__measure *by = tarn__measure_at(config->valid.metric);
  TARN_REQUIRE(!(by->of >> TARN__KEPT_TEXT & 1u) || v->empty.characters > 0, USAGE,
               "%s: %s of it are not known (valid.metric: %s); run tarn prepare --stream", v->shard.path,
               by->shown.name, by->shown.word);
  const tarn__set_site site = {&v->what, v->model, &v->shard, v->target, v->comm};
  const tarn__set_measure *measure;
  for (int i = 0; (measure = tarn__set_measure_at(i)) != NULL; i++)
    if (measure->wanted(&v->what)) TARN_TRY(measure->open(&v->own[i], &site, threads));
  if (!in_order(v)) TARN_TRY(tarn__share_open(&v->share, v->comm));
  TARN_TRY(tarn__validator_check(v));
  make_hashes(v);
  return TARN_STATUS_OK;
}

tarn_status tarn__validator_open(tarn__validator **validator, const tarn__validator_data *what,
                                 const tarn__model *model, const tarn_vocab *source, const tarn_vocab *target,
                                 tarn__comm *comm, int threads) {
  *validator = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **validator));
  tarn__validator *v = memory;
  v->what = *what;
  v->model = model;
  v->target = target;
  v->comm = comm;
  tarn_status status = open_parts(v, source, threads);
  if (status != TARN_STATUS_OK) {
    tarn__validator_close(&v);
    return status;
  }
  *validator = v;
  return TARN_STATUS_OK;
}

void tarn__validator_close(tarn__validator **validator) {
  tarn__validator *v = *validator;
  if (!v) return;
  const tarn__set_measure *measure;
  for (int i = 0; (measure = tarn__set_measure_at(i)) != NULL; i++)
    if (v->own[i]) measure->close(v->own[i]);
  tarn__share_close(&v->share);
  tarn__batcher_close(&v->batcher);
  tarn__shard_close(&v->shard);
  tarn__free(v->empty.room);
  tarn__free(v);
  *validator = NULL;
}

tarn_status tarn__validator_check(const tarn__validator *v) { return tarn__shard_unchanged(&v->shard); }

const char *tarn__validator_hash(const tarn__validator *v) { return v->hash; }
const char *tarn__validator_loss_hash(const tarn__validator *v) { return v->loss_hash; }

void tarn__validator_bounds(const tarn__validator *v, tarn__stepper_bounds *bounds) {
  tarn__stepper_bounds own;
  tarn__batcher_largest(v->batcher, &own.source_rows, &own.target_rows, &own.sentences);
  bounds->source_rows = larger(bounds->source_rows, own.source_rows);
  bounds->target_rows = larger(bounds->target_rows, own.target_rows);
  bounds->sentences = larger(bounds->sentences, own.sentences);
  // Longer sentences of the set are skipped.
  const int64_t longest = v->model->config->model.max_length;
  bounds->longest_source = larger(bounds->longest_source, smaller(v->shard.longest_source, longest));
  bounds->longest_target = larger(bounds->longest_target, smaller(tarn__batcher_longest_target(v->batcher), longest));
}

static tarn_status check_stop(bool stop) {
  TARN_REQUIRE(!stop, INTERRUPTED, "stopped while validating");
  return TARN_STATUS_OK;
}

tarn_status tarn__validator_check_stop(tarn__comm *comm, const volatile sig_atomic_t *stop) {
  bool asked = stop && *stop;
  TARN_TRY(tarn__comm_any(comm, &asked));
  return check_stop(asked);
}

static void add(const tarn__task *task, tarn__task_tally *tally, const tarn__batch *batch, double loss, double watched,
                const void *answers) {
  tally->loss += loss;
  tally->watched += watched;
  tally->predictions += batch->predictions;
  if (task->tally) task->tally(tally, batch, answers);
}

// Runs all batches on this rank.
static tarn_status run_batches(tarn__validator *v, tarn__task_tally *tally, tarn__stepper *stepper,
                               const volatile sig_atomic_t *stop, tarn__work *work) {
  const tarn__task *task = tarn__config_task(v->model->config);
  const int64_t batches = tarn__batcher_batches(v->batcher);
  for (int64_t b = 0; b < batches; b++) {
    TARN_TRY(check_stop(stop && *stop));
    tarn__batch batch;
    tarn__stepper_loss loss;
    tarn__batcher_next(v->batcher, &batch);
    TARN_TRY(tarn__stepper_evaluate(stepper, &loss, &batch));
    add(task, tally, &batch, loss.loss, loss.watched, loss.answers);
    tarn__work_at(work, (double)(b + 1), (double)(b + 1) / (double)batches);
  }
  return TARN_STATUS_OK;
}

// The header of a rank's message for a batch, before the answers.
typedef struct told {
  double loss, watched;
  int64_t answer_bytes;
} told;

// Runs this rank's share of the batches first .. end - 1.
static tarn_status run_own(tarn__validator *v, tarn__stepper *stepper, int64_t first, int64_t end) {
  tarn__buffer *answer = tarn__share_answer(&v->share);
  tarn__buffer_reset(answer);
  TARN_TRY(tarn__batcher_seek(v->batcher, 0, first));
  for (int64_t b = first; b < end; b++) {
    if (b % v->comm->size != v->comm->rank) {
      tarn__batcher_skip(v->batcher, 1);
      continue;
    }
    tarn__batch batch;
    tarn__stepper_loss loss;
    tarn__batcher_next(v->batcher, &batch);
    TARN_TRY(tarn__stepper_evaluate(stepper, &loss, &batch));
    const told one = {loss.loss, loss.watched, (int64_t)loss.answer_bytes};
    tarn__share_put(answer, &one, 1, sizeof one);
    tarn__share_put(answer, loss.answers, one.answer_bytes, 1);
  }
  // The data read are valid only if this check passes.
  return tarn__validator_check(v);
}

// Adds the messages of all ranks for the batches first .. end - 1, on rank 0.
static tarn_status add_round(tarn__validator *v, tarn__task_tally *tally, int64_t first, int64_t end) {
  const tarn__task *task = tarn__config_task(v->model->config);
  TARN_TRY(tarn__batcher_seek(v->batcher, 0, first));
  for (int64_t b = first; b < end; b++) {
    tarn__share_reader *from = &v->share.readers[b % v->comm->size];
    const told *one;
    const char *answers;
    tarn__batch batch;
    TARN_TRY(tarn__share_take(&one, from, 1, sizeof *one));
    TARN_TRY(tarn__share_take(&answers, from, one->answer_bytes, 1));
    tarn__batcher_next(v->batcher, &batch);
    add(task, tally, &batch, one->loss, one->watched, answers);
  }
  return TARN_STATUS_OK;
}

// Runs the batches on all ranks.
static tarn_status share_batches(tarn__validator *v, tarn__task_tally *tally, tarn__stepper *stepper,
                                 const volatile sig_atomic_t *stop, tarn__work *work) {
  const int64_t batches = tarn__batcher_batches(v->batcher), round = (int64_t)ROUND * v->comm->size;
  for (int64_t first = 0; first < batches; first += round) {
    const int64_t end = smaller(first + round, batches);
    TARN_TRY(tarn__validator_check_stop(v->comm, stop));
    TARN_TRY(run_own(v, stepper, first, end));
    TARN_TRY(tarn__share_collect(&v->share));
    if (v->comm->rank == 0) TARN_TRY(add_round(v, tally, first, end));
    tarn__work_at(work, (double)end, (double)end / (double)batches);
  }
  return TARN_STATUS_OK;
}

static tarn_status run_loss(tarn__validator *v, tarn__validation *result, tarn__stepper *stepper,
                            const volatile sig_atomic_t *stop, tarn__work *work) {
  const tarn__task *task = tarn__config_task(v->model->config);
  tarn__task_tally tally = v->empty;
  TARN_TRY(tarn__batcher_seek(v->batcher, 0, 0));
  if (v->share.comm)
    TARN_TRY(share_batches(v, &tally, stepper, stop, work));
  else if (v->comm->rank == 0)
    TARN_TRY(run_batches(v, &tally, stepper, stop, work));
  if (v->comm->rank > 0) return TARN_STATUS_OK;
  TARN_REQUIRE(tally.predictions > 0, DATA, "%s: there is nothing to predict in these sentences%s", v->shard.path,
               task->sections >> TARN__TASK_MASKING & 1u ? ", no token of which is masked; raise masking.share" : "");
  // Measures of answers require finite values; otherwise the loss stays NaN, which ends training.
  return isfinite(tally.loss) ? tarn__task_scores(result->scores, task, &tally) : TARN_STATUS_OK;
}

static tarn_status run_all(tarn__validator *v, tarn__validation *result, tarn__stepper *stepper,
                           const volatile sig_atomic_t *stop) {
  tarn__work work;
  TARN_TRY(tarn__features_before_pass(stepper->features, tarn__batcher_tracks(v->batcher)));
  tarn__work_begin(&work, "validating", "batches");
  const tarn_status status = run_loss(v, result, stepper, stop, &work);
  tarn__work_end(&work);
  tarn__features_after_pass(stepper->features);
  return status;
}

tarn_status tarn__validator_run(tarn__validator *validator, tarn__validation *result, tarn__stepper *stepper,
                                const volatile sig_atomic_t *stop) {
  *result = (tarn__validation){0};
  for (int m = 0; m < TARN_MEASURES; m++) result->scores[m] = NAN;
  double begin = tarn__seconds();
  TARN_TRY(run_all(validator, result, stepper, stop));
  const tarn__set_measure *measure;
  for (int i = 0; (measure = tarn__set_measure_at(i)) != NULL; i++)
    if (validator->own[i]) TARN_TRY(measure->run(validator->own[i], result, stepper, stop));
  result->seconds = tarn__seconds() - begin;
  return TARN_STATUS_OK;
}
