// tarn_plan_make(): the plan of a configuration, with the lengths of its training data if readable.
#include "train/plan_config.h"
#include "base/file.h"
#include "base/log.h"
#include "base/threads.h"
#include "data/batch.h"
#include "data/batch_bounds.h"
#include "data/shard.h"
#include "dist/gradient_sum.h"
#include "tarn/vocab.h"
#include "task/images.h"
#include "task/task.h"
#include "train/shard_check.h"

static tarn_status vocab_size(int64_t *size, const char *path) {
  tarn_vocab *vocab;
  TARN_TRY(tarn_vocab_open(&vocab, path));
  *size = tarn_vocab_size(vocab);
  tarn_vocab_close(&vocab);
  return TARN_STATUS_OK;
}

// The shard must belong to the vocabularies, if their files are readable.
static tarn_status check_shard(const tarn__shard *shard, const tarn_config *config) {
  const tarn_config_data *data = &config->data;
  if (!data->vocab || !tarn__file_exists(data->vocab)) return TARN_STATUS_OK;
  if (data->target_vocab && !tarn__file_exists(data->target_vocab)) return TARN_STATUS_OK;
  tarn_vocab *source = NULL;
  tarn_vocab *target = NULL;
  tarn_status status = tarn_vocab_open(&source, data->vocab);
  if (status == TARN_STATUS_OK && data->target_vocab) status = tarn_vocab_open(&target, data->target_vocab);
  if (status == TARN_STATUS_OK) status = tarn__shard_check(shard, source, target ? target : source, config);
  tarn_vocab_close(&source);
  tarn_vocab_close(&target);
  return status;
}

// Sizes of the vocabularies: given, else from the shard, else from the vocabulary files.
static tarn_status find_vocabs(int64_t *source, int64_t *target, const tarn_config *config,
                               const tarn_plan_options *options, const tarn__shard *shard) {
  *source = options->source_vocab;
  *target = options->target_vocab ? options->target_vocab : options->source_vocab;
  if (*source) return TARN_STATUS_OK;
  if (shard->pairs) {
    *source = shard->source_vocab_size;
    *target = shard->target_vocab_size;
    return TARN_STATUS_OK;
  }
  TARN_REQUIRE(config->data.vocab, USAGE,
               "%s: the size of the vocabulary is not known: set data.vocab, or give --vocab-size", config->name);
  TARN_TRY(vocab_size(source, config->data.vocab));
  *target = *source;
  if (config->data.target_vocab) TARN_TRY(vocab_size(target, config->data.target_vocab));
  return TARN_STATUS_OK;
}

// All sides contain the same sentences, so the longest one fills the batch and the others have fewer rows.
static tarn_status assume_batch(tarn__plan_batch *batch, const tarn_config *config, const tarn__shard *shard) {
  const double usual = 25.0;  // tokens per sentence without data
  const bool known = shard->pairs > 0;
  const int64_t rows = config->train.max_tokens;
  const int64_t most = config->model.max_length < rows ? config->model.max_length : rows;
  const int64_t tokens[TARN__SIDES] = {known ? shard->source_tokens : rows, known ? shard->target_tokens : rows};
  const int64_t longest_known[TARN__SIDES] = {shard->longest_source, shard->longest_target};
  int64_t longest[TARN__SIDES] = {0}, filled[TARN__SIDES] = {0};
  double length[TARN__SIDES] = {0};
  bool read[TARN__SIDES];
  int fullest = TARN__SIDE_TARGET;
  for (int side = TARN__SIDES; side-- > 0;) {
    read[side] = tarn__task_reads(tarn__config_task(config), (tarn__side)side);
    if (!read[side]) continue;
    length[side] = known ? (double)tokens[side] / (double)shard->pairs : usual;
    longest[side] = known && longest_known[side] < most ? longest_known[side] : most;
    if (length[side] > length[fullest]) fullest = side;
  }
  for (int side = 0; side < TARN__SIDES; side++) {
    if (!read[side]) continue;
    const int64_t share = side == fullest ? rows : (int64_t)((double)rows * length[side] / length[fullest]);
    filled[side] = tarn__batch_side_rows(share, config->train.max_sentences, tokens[side], longest[side]);
  }
  *batch = (tarn__plan_batch){.source_rows = filled[TARN__SIDE_SOURCE],
                              .target_rows = filled[TARN__SIDE_TARGET],
                              .source_length = length[TARN__SIDE_SOURCE],
                              .target_length = length[TARN__SIDE_TARGET],
                              .longest_source = longest[TARN__SIDE_SOURCE],
                              .longest_target = longest[TARN__SIDE_TARGET],
                              .source_tokens = known && read[TARN__SIDE_SOURCE] ? shard->source_tokens : 0};
  if (!known) return TARN_STATUS_OK;
  return tarn__batch_most_sentences(&batch->sentences, shard, rows, config->train.max_sentences, 0);
}

static tarn_status check_options(const tarn_plan_options *o) {
  const int64_t sizes[] = {o->source_vocab, o->target_vocab};
  for (int i = 0; i < 2; i++)
    TARN_REQUIRE(sizes[i] >= 0 && sizes[i] <= INT32_MAX, USAGE, "a vocabulary has 1 to %d tokens (0: read), not %lld",
                 INT32_MAX, (long long)sizes[i]);
  return tarn__plan_check_threads(o->threads);
}

static tarn_status plan_ranks(tarn__planned *p, const tarn_config *config, const tarn_plan_options *options,
                              int ranks) {
  int64_t source = 0;
  int64_t target = 0;
  tarn_status status = TARN_STATUS_OK;
  TARN_TRY(check_options(options));
  if (config->data.train && !options->source_vocab)
    status = tarn__task_shard_open(&p->shard, config->data.train, config);
  // A plan is still possible without the data: the result states the assumed lengths.
  if (status == TARN_STATUS_IO) status = TARN_STATUS_OK;
  if (status == TARN_STATUS_OK && p->shard.pairs) status = check_shard(&p->shard, config);
  if (status == TARN_STATUS_OK) status = find_vocabs(&source, &target, config, options, &p->shard);
  TARN_TRY(status);
  const tarn__dtype dtype = config->train.precision == TARN_PRECISION_BF16 ? TARN__BF16 : TARN__F32;
  TARN_TRY(tarn__model_open(&p->model, config, source, target, dtype, true));
  if (tarn__plan_updates_at_once(config, ranks)) tarn__model_update_at_once(p->model);
  int threads = options->threads ? options->threads : (int)config->train.threads;
  if (threads == 0) threads = tarn__threads();
  tarn__plan_batch batch;
  TARN_TRY(assume_batch(&batch, config, &p->shard));
  TARN_TRY(tarn__plan_run(&p->plan, p->model, &batch, &p->shard, threads));
  const size_t sums = tarn__gradient_sum_bytes(p->model, ranks);
  p->plan.program_bytes += sums;
  p->plan.total_bytes += sums;
  return TARN_STATUS_OK;
}

tarn_status tarn__plan_ranks(tarn__planned *planned, const tarn_config *config, const tarn_plan_options *options,
                             int ranks) {
  *planned = (tarn__planned){0};
  const tarn_status status = plan_ranks(planned, config, options, ranks);
  if (status != TARN_STATUS_OK) tarn__planned_close(planned);
  return status;
}

void tarn__planned_close(tarn__planned *planned) {
  tarn_plan_close(&planned->plan);
  tarn__model_close(&planned->model);
  tarn__shard_close(&planned->shard);
}

tarn_status tarn__plan_check_memory(const tarn_plan *plan, const tarn__model *model) {
  const double mib = 1024.0 * 1024.0;
  const bool host = tarn__device_is_host(model->device);
  const size_t there = plan->total_bytes - (host ? 0 : plan->program_bytes);
  const size_t available = tarn__device_available(model->device);
  TARN_REQUIRE(
      available == 0 || there <= available, MEMORY,
      "this training needs %.0f MiB of memory%s%s and %.0f MiB are available; activations take %.0f MiB of it, "
      "in proportion to train.max_tokens (%lld)",
      (double)there / mib, host ? "" : " of the device ", host ? "" : model->device->name, (double)available / mib,
      (double)plan->activation_bytes / mib, (long long)model->config->train.max_tokens);
  return TARN_STATUS_OK;
}

// The machine that a plan is made on is often not that of the training, but a card is asked for by name.
static void warn(const tarn_plan *plan, const tarn__model *model) {
  if (!tarn__device_is_host(model->device) && tarn__plan_check_memory(plan, model) != TARN_STATUS_OK)
    tarn__log(TARN_LOG_WARNING, "%s", tarn_error_message());
}

tarn_status tarn_plan_make(tarn_plan *plan, const tarn_config *config, const tarn_plan_options *options) {
  tarn__planned planned;
  *plan = (tarn_plan){0};
  TARN_TRY(tarn__plan_ranks(&planned, config, options, 1));
  warn(&planned.plan, planned.model);
  *plan = planned.plan;
  planned.plan = (tarn_plan){0};
  tarn__planned_close(&planned);
  return TARN_STATUS_OK;
}
