// The measures of a set with labels.
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/work.h"
#include "comm/ranks.h"
#include "eval/agreement.h"
#include "score/classifier_share.h"
#include "task/images.h"

enum { RESAMPLES = 1000, SEED = 1 };

static tarn_status check_vocab(const tarn_classifier *c, const tarn__shard *shard) {
  const tarn_vocab *vocab = c->checkpoint->target;
  TARN_REQUIRE(shard->text, DATA, "%s: it holds pairs of a translation; tarn prepare --table makes sets with labels",
               shard->path);
  TARN_REQUIRE(strcmp(shard->target_vocab_hash, tarn_vocab_hash(vocab)) == 0, DATA,
               "%s: it was prepared with another vocabulary than that of %s", shard->path, c->checkpoint->path);
  TARN_REQUIRE(shard->target_vocab_size == tarn_vocab_size(vocab), DATA,
               "%s: damaged shard: its vocabulary has %d tokens, not %d", shard->path, shard->target_vocab_size,
               tarn_vocab_size(vocab));
  return TARN_STATUS_OK;
}

static tarn_status open_batcher(tarn__batcher **batcher, const tarn_classifier *c, const tarn__shard *shard) {
  const tarn_config *config = c->checkpoint->config;
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.shuffle = false;
  options.longest = config->model.max_length;
  options.max_tokens = c->options.max_tokens;
  TARN_TRY(tarn__task_batches(&options, config, shard, c->checkpoint->target));
  const int64_t longest = shard->longest_target + 1;
  if (longest > options.max_tokens) options.max_tokens = longest;
  const tarn_status status = tarn__batcher_open(batcher, shard, &options);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: ", shard->path);
}

static void add(tarn_classify_test *result, tarn__task_tally *tally, const tarn__batch *batch, const float *answers,
                double loss) {
  tally->loss += loss;
  tally->predictions += batch->predictions;
  result->rows += batch->target.sentences;
  tarn__labelled_tally(tally, batch, answers);
}

static tarn_status run_batches(tarn_classifier *c, tarn_classify_test *result, tarn__task_tally *tally,
                               tarn__batcher *batcher, tarn__work *work) {
  const int64_t batches = tarn__batcher_batches(batcher);
  for (int64_t b = 0; b < batches; b++) {
    tarn__batch batch;
    const float *answers;
    double loss;
    tarn__batcher_next(batcher, &batch);
    TARN_TRY(tarn__classifier_run(c, &batch, &answers, &loss));
    add(result, tally, &batch, answers, loss);
    tarn__work_at(work, (double)result->rows, (double)(b + 1) / (double)batches);
  }
  return TARN_STATUS_OK;
}

// The same with a batch for each rank at a time.
static tarn_status share_batches(tarn_classifier *c, tarn_classify_test *result, tarn__task_tally *tally,
                                 tarn__batcher *batcher, tarn__work *work) {
  const int64_t batches = tarn__batcher_batches(batcher);
  const int ranks = c->share.comm->size;
  tarn__batch batch;
  for (int64_t b = 0; b < batches;) {
    bool more;
    tarn__share_begin(&c->share);
    for (int r = 0; r < ranks && b < batches; r++, b++) {
      tarn__batcher_next(batcher, &batch);
      tarn__classifier_put(c, r, &batch);
    }
    TARN_TRY(tarn__classifier_round(c, &more));
    for (int r = 0; r < ranks; r++) {
      const float *answers;
      double loss;
      TARN_TRY(tarn__classifier_take(c, r, &batch, &answers, &loss));
      if (batch.predictions > 0) add(result, tally, &batch, answers, loss);
    }
    tarn__work_at(work, (double)result->rows, (double)b / (double)batches);
  }
  return TARN_STATUS_OK;
}

// Those of its measures that have an interval.
static tarn_status measure_answers(const tarn_classifier *c, tarn_classify_test *result,
                                   const tarn__agreement *answers) {
  const tarn__task *task = tarn__config_task(c->checkpoint->config);
  for (int m = 0; m < TARN__METRIC_COUNT; m++) {
    const tarn__measure *measure = tarn__measure_at(m);
    tarn__agreement_interval interval;
    if (!measure->rows || !tarn__task_has(task, m)) continue;
    TARN_TRY(tarn__agreement_interval_of(&interval, answers, measure->rows, RESAMPLES, SEED));
    result->measures[result->measure_count++] =
        (tarn_classify_measure){&measure->shown, interval.value, interval.low, interval.high};
  }
  return TARN_STATUS_OK;
}

static tarn_status measure(const tarn_classifier *c, tarn_classify_test *result, const tarn__task_tally *tally) {
  tarn__agreement answers;
  tarn__labelled_answers(&answers, tally);
  TARN_TRY(tarn__agreement_open(&answers));
  const tarn_status status = measure_answers(c, result, &answers);
  tarn__agreement_close(&answers);
  return status;
}

static tarn_status test_shard(tarn_classifier *c, tarn_classify_test *result, const tarn__shard *shard) {
  tarn__batcher *batcher = NULL;
  tarn__task_tally tally = {0};
  TARN_TRY(check_vocab(c, shard));
  TARN_TRY(open_batcher(&batcher, c, shard));
  tarn_status status = tarn__labelled_count(&tally, c->checkpoint->config, shard, c->checkpoint->target);
  tarn__work work;
  tarn__work_begin(&work, "testing", "rows");
  if (status == TARN_STATUS_OK)
    status = (c->share.comm ? share_batches : run_batches)(c, result, &tally, batcher, &work);
  tarn__work_end(&work);
  if (status == TARN_STATUS_OK) status = measure(c, result, &tally);
  result->left_out = tarn__batcher_left_out(batcher);
  result->words = c->of_words ? tally.predictions : 0;
  result->loss = tally.loss / (double)(tally.predictions > 0 ? tally.predictions : 1);
  tarn__free(tally.room);
  tarn__batcher_close(&batcher);
  return status;
}

tarn_status tarn_classifier_test(tarn_classifier *c, tarn_classify_test *result, const char *prefix) {
  tarn__shard shard;
  const double begun = tarn__seconds();
  *result = (tarn_classify_test){0};
  if (tarn_ranks_rank(c->options.ranks) > 0) return tarn__classifier_help(c);
  TARN_TRY(tarn__task_shard_open(&shard, prefix, c->checkpoint->config));
  tarn_status status = tarn__shard_judge(&shard, test_shard(c, result, &shard));
  tarn__shard_close(&shard);
  if (status == TARN_STATUS_OK && c->share.comm) status = tarn__share_end(&c->share);
  result->seconds = tarn__seconds() - begun;
  return status;
}
