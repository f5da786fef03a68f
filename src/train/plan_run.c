#include "train/plan_run.h"

#include <limits.h>
#include <string.h>

#include "base/file.h"
#include "config/config_carry.h"
#include "data/batch_bounds.h"
#include "decode/crew.h"
#include "eval/agreement.h"
#include "store/model_copy.h"
#include "task/images.h"
#include "task/labelled.h"
#include "train/feature.h"
#include "train/validator.h"

// Resident memory of the program with its libraries, vocabularies and threads, as measured.
static const size_t PROGRAM = 22000000;
// What averaging takes in addition, as measured: of two open checkpoints the headers, which hold description and
// vocabularies, and the pages being read.
static const size_t AVERAGING = 8000000;

// The part of a shard and its batches that stays in memory: its offsets, the order of its rows, and the pages of the
// file not yet released. The offsets are a copy, whose pages of the file are released at opening.
static size_t shard_bytes(const tarn__shard *shard, const tarn_config *config, bool shuffle) {
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.max_tokens = config->train.max_tokens;
  options.max_sentences = config->train.max_sentences;
  options.tracks = tarn__config_reads_tracks(config);
  options.shuffle = shuffle;
  const size_t offsets = (size_t)shard->pairs * (shard->text ? 1 : 2) * sizeof(int64_t);
  return tarn__batch_mapped_bytes((size_t)shard->file_bytes, offsets) + offsets + tarn__batcher_bytes(shard, &options);
}

// The validation data, each opened and checked once: data.valid, then the sets. A missing file, which a plan permits,
// has no rows.
typedef struct sets {
  tarn__shard *shards;
  int32_t count;
  bool valid;  // the first is data.valid
} sets;

static void close_sets(sets *s) {
  for (int32_t i = 0; i < s->count; i++) tarn__shard_close(&s->shards[i]);
  tarn__free(s->shards);
}

static tarn_status open_set(sets *s, const char *data, const tarn_config *config) {
  char path[PATH_MAX];
  tarn__shard *shard = &s->shards[s->count];
  TARN_TRY(tarn__shard_path(path, sizeof path, data));
  if (tarn__file_exists(path) || tarn__file_exists(data)) TARN_TRY(tarn__task_shard_open(shard, data, config));
  s->count++;
  return TARN_STATUS_OK;
}

static tarn_status open_sets(sets *s, const tarn_config *config) {
  void *memory;
  *s = (sets){.valid = config->data.valid != NULL};
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)config->set_count + 1, sizeof *s->shards));
  s->shards = memory;
  memset(s->shards, 0, ((size_t)config->set_count + 1) * sizeof *s->shards);
  tarn_status status = s->valid ? open_set(s, config->data.valid, config) : TARN_STATUS_OK;
  for (int32_t i = 0; i < config->set_count && status == TARN_STATUS_OK; i++)
    status = open_set(s, config->sets[i].data, config);
  if (status != TARN_STATUS_OK) close_sets(s);
  return status;
}

// All of them stay open during training.
static void plan_sets(tarn_plan *plan, const sets *s, const tarn_config *config) {
  for (int32_t i = 0; i < s->count; i++)
    if (s->shards[i].file_bytes > 0) plan->program_bytes += shard_bytes(&s->shards[i], config, false);
}

// The number of sentences that validation translates; if the data are unreadable, more than any decoder holds.
static int64_t count_sentences(const tarn__shard *shard, int64_t most) {
  const int64_t sentences = shard->file_bytes > 0 ? shard->pairs : INT32_MAX;
  return most > 0 && most < sentences ? most : sentences;
}

// The memory for translating some data, beyond the workspace of the training step that it reuses.
static tarn_status plan_translation(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch,
                                    int threads, int64_t sentences) {
  const tarn_config *config = model->config;
  tarn__translator_options options;
  tarn__validator_translation(&options, config, threads);
  size_t need;
  TARN_TRY(tarn__translator_plan(&need, model, &options, batch->source_length, sentences));
  size_t room = plan->activation_bytes + plan->workspace_bytes;
  if (need > room) plan->validation_bytes += need - room;
  // Each decoder has a stream of its own, whose memory is not lent. There are most of them if rows are many.
  const int decoders = tarn__crew_decoders(model, sentences, INT64_MAX, options.threads);
  plan->validation_bytes += (size_t)decoders * model->device->type->stream_bytes;
  return TARN_STATUS_OK;
}

// A classifier's predictions for labelled sets, which are kept, and the memory to compute their measures, for one set
// at a time.
static void plan_labels(tarn_plan *plan, const sets *s, const tarn_config *config) {
  size_t measuring = 0;
  if (!(tarn__config_task(config)->uses >> TARN__USE_LABEL & 1u)) return;
  for (int32_t i = 0; i < s->count; i++) {
    const tarn__shard *shard = &s->shards[i];
    if (!shard->labels && !shard->word_labels && !shard->numbers) continue;
    const size_t need = tarn__agreement_bytes((size_t)shard->pairs, shard->classes, shard->word_labels != NULL);
    plan->validation_bytes += tarn__labelled_bytes(shard);
    if (need > measuring) measuring = need;
  }
  plan->validation_bytes += measuring;
}

// Each translator keeps its memory, so the plan adds up all translated sets.
static tarn_status plan_validation(tarn_plan *plan, const sets *s, const tarn__model *model,
                                   const tarn__plan_batch *batch, int threads) {
  const tarn_config *config = model->config;
  if (s->valid && config->valid.bleu)
    TARN_TRY(
        plan_translation(plan, model, batch, threads, count_sentences(&s->shards[0], config->valid.max_sentences)));
  for (int32_t i = 0; i < config->set_count; i++) {
    const tarn_config_scored_set *set = &config->sets[i];
    if (set->bleu)
      TARN_TRY(
          plan_translation(plan, model, batch, threads, count_sentences(&s->shards[s->valid + i], set->max_sentences)));
  }
  return TARN_STATUS_OK;
}

void tarn__plan_add_workspace(tarn_plan *plan, size_t bytes) {
  plan->workspace_bytes += bytes;
  plan->total_bytes += bytes;
}

bool tarn__plan_updates_at_once(const tarn_config *config, int ranks) {
  const tarn_config_train *train = &config->train;
  return ranks == 1 && train->clip_norm <= 0 && train->accumulate == 1 && !tarn__features_need_gradients(config);
}

tarn_status tarn__plan_check_threads(int threads) {
  TARN_REQUIRE(threads >= 0 && threads <= 4096, USAGE, "the number of threads is 0 to 4096, not %d", threads);
  return TARN_STATUS_OK;
}

// Checkpoints are averaged in memory that training no longer needs (tarn__train_average). Sums that do not fit there
// get memory of their own, in addition to the translators; the unused rest is smaller than the largest sum.
static void plan_average(tarn_plan *plan, const tarn__model *model) {
  const size_t room = plan->activation_bytes + plan->workspace_bytes;
  size_t need = 0, largest = 0;
  if (model->config->train.average == 0) return;
  plan->program_bytes += AVERAGING;
  if (!model->updates_at_once) return;
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const size_t bytes = ((size_t)(param->rows * param->cols) * sizeof(float) + 63) & ~(size_t)63;
    if (!param->trained) continue;
    need += bytes;
    if (bytes > largest) largest = bytes;
  }
  if (need > room) plan->validation_bytes += largest < room ? need - room + largest : need;
}

// The copy of the model of which exponents are computed (dynamics.input), without the states that they are computed of,
// which depend on the sentences.
static tarn_status plan_dynamics(tarn_plan *plan, const tarn__model *model) {
  tarn__model *copy;
  if (!model->config->dynamics.input) return TARN_STATUS_OK;
  TARN_TRY(tarn__model_copy_open(&copy, model));
  plan->validation_bytes += tarn__model_copy_bytes(copy);
  tarn__model_close(&copy);
  return TARN_STATUS_OK;
}

tarn_status tarn__plan_run(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch,
                           const tarn__shard *shard, int threads) {
  TARN_TRY(tarn__features_check_model(model));
  TARN_TRY(tarn__plan_model(plan, model, batch, threads));
  sets s;
  tarn_status status = open_sets(&s, model->config);
  if (status == TARN_STATUS_OK) {
    status = plan_validation(plan, &s, model, batch, threads);
    if (status == TARN_STATUS_OK) status = plan_dynamics(plan, model);
    plan_labels(plan, &s, model->config);
    plan_average(plan, model);
    plan_sets(plan, &s, model->config);
    const tarn__plan_use use = {.model = model, .batch = batch, .sets = s.shards, .set_count = s.count};
    tarn__features_plan(plan, &use);
    close_sets(&s);
  }
  plan->program_bytes += PROGRAM + shard_bytes(shard, model->config, true);
  plan->total_bytes += plan->validation_bytes + plan->program_bytes;
  tarn__plan_add_workspace(plan, model->device->type->stream_bytes);
  plan->epoch_tokens = (double)(shard->source_tokens + shard->target_tokens);
  if (status != TARN_STATUS_OK) tarn_plan_close(plan);
  return status;
}
