// Opens a training run: description, run directory, data, plan, memory, initial values or the last checkpoint.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "config/config_carry.h"
#include "config/config_fail.h"
#include "config/config_freeze.h"
#include "config/config_resume.h"
#include "config/config_vocabs.h"
#include "graph/profile.h"
#include "store/checkpoint_check.h"
#include "store/checkpoint_keys.h"
#include "store/init_from.h"
#include "task/images.h"
#include "task/task.h"
#include "text/vocab_formats.h"
#include "text/vocab_kind.h"
#include "train/band_check.h"
#include "train/plan_config.h"
#include "train/plan_run.h"
#include "train/shard_check.h"
#include "train/trainer.h"

void tarn_train_default(tarn_train_options *options) { *options = (tarn_train_options){0}; }

tarn_status tarn__train_check_options(const tarn_train_options *o) {
  TARN_REQUIRE(o->run || (o->plan_only && !o->resume), USAGE, "a training needs a run directory");
  TARN_REQUIRE(!o->resume == !!o->config, USAGE,
               "a training needs either a description or a run directory to resume, not both");
  return tarn__plan_check_threads(o->threads);
}

static tarn_status read_config(tarn_train *t, const tarn_train_options *o) {
  if (o->resume) {
    TARN_TRY(tarn__resume_check_overrides(o->overrides, o->override_count));
    TARN_TRY(tarn__run_dir_check(&t->dir));
  }
  TARN_TRY(tarn_config_read(&t->config, o->resume ? t->dir.config : o->config, o->overrides, o->override_count));
  TARN_TRY(tarn_config_check_training(t->config));
  if (t->config->train.seed_count == 0) return TARN_STATUS_OK;
  return tarn__config_fail(t->config, TARN_STATUS_USAGE, "train.seeds",
                           "asks for several runs; open one for each, with train.seed");
}

// A new run must not find an old one: nothing is ever overwritten.
static tarn_status check_new(const tarn_train *t) {
  if (!tarn__file_exists(t->dir.config) && !tarn__file_exists(t->dir.last)) return TARN_STATUS_OK;
  char *text = NULL;
  char *old = NULL;
  size_t size;
  TARN_TRY(tarn_config_write(t->config, &text));
  tarn_status status = tarn__file_exists(t->dir.config) ? tarn__file_read(t->dir.config, &old, &size) : TARN_STATUS_OK;
  bool same = old && strcmp(old, text) == 0;
  tarn_config_text_close(&text);
  tarn__free(old);
  TARN_TRY(status);
  if (same && !tarn__file_exists(t->dir.last)) return TARN_STATUS_OK;
  if (same)
    return tarn__fail(TARN_STATUS_USAGE, "%s already holds this run; go on with: tarn train --resume %s", t->dir.path,
                      t->dir.path);
  return tarn__fail(TARN_STATUS_USAGE,
                    "%s already holds a run with another configuration; give another --run, or go on with that one by: "
                    "tarn train --resume %s",
                    t->dir.path, t->dir.path);
}

static tarn_status open_data(tarn_train *t) {
  const tarn_config *config = t->config;
  TARN_TRY(tarn__config_open_vocabs(config, &t->source, &t->target));
  TARN_TRY(tarn__task_shard_open(&t->shard, config->data.train, config));
  TARN_TRY(tarn__shard_check(&t->shard, t->source, t->target, config));
  TARN_TRY(tarn__shard_warn_bands(&t->shard, config));
  const bool by_text = (tarn__measure_at(config->valid.metric)->of >> TARN__KEPT_TEXT & 1u) != 0;
  if (by_text && !tarn__vocab_is_spelling(t->target) && !t->shard.continues)
    return tarn__config_fail(config, TARN_STATUS_USAGE, "valid.metric",
                             "%s needs a vocabulary of bytes or characters, and %s is of longer tokens; choose loss, "
                             "nll or ppl",
                             tarn_measure_of(config->valid.metric)->word, config->data.vocab);
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.max_tokens = config->train.max_tokens;
  options.max_sentences = config->train.max_sentences;
  options.longest = config->model.max_length;
  options.seed = (uint64_t)config->train.seed;
  if (tarn__config_reads_tracks(config)) options.tracks = config->train.accumulate * t->comm->size;
  TARN_TRY(tarn__task_batches(&options, config, &t->shard, t->target));
  tarn_status status = tarn__batcher_open(&t->batcher, &t->shard, &options);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", t->shard.path);
  return TARN_STATUS_OK;
}

static void warn_left_out(const tarn_train *t) {
  tarn__shard_warn_left_out(&t->shard, t->batcher, t->config, "");
  if (t->validator) tarn__validator_warn_left_out(t->validator);
  for (int32_t i = 0; i < t->config->set_count; i++) tarn__validator_warn_left_out(t->sets[i]);
  tarn__warn_trained_reservoirs(t->config);
}

void tarn__train_bounds(const tarn_train *t, tarn__stepper_bounds *bounds) {
  int64_t longest = t->config->model.max_length;
  tarn__batcher_largest(t->batcher, &bounds->source_rows, &bounds->target_rows, &bounds->sentences);
  bounds->longest_source = t->shard.longest_source < longest ? t->shard.longest_source : longest;
  bounds->longest_target = tarn__batcher_longest_target(t->batcher);
  if (bounds->longest_target > longest) bounds->longest_target = longest;
}

static tarn_status make_plan(tarn_train *t) {
  tarn__dtype dtype = t->config->train.precision == TARN_PRECISION_BF16 ? TARN__BF16 : TARN__F32;
  TARN_TRY(tarn__model_open(&t->model, t->config, tarn_vocab_size(t->source), tarn_vocab_size(t->target), dtype, true));
  if (tarn__plan_updates_at_once(t->config, t->comm->size)) tarn__model_update_at_once(t->model);
  tarn__stepper_bounds bounds;
  tarn__train_bounds(t, &bounds);
  tarn__plan_batch batch = {.source_rows = bounds.source_rows,
                            .target_rows = bounds.target_rows,
                            .source_length = (double)t->shard.source_tokens / (double)t->shard.pairs,
                            .target_length = (double)t->shard.target_tokens / (double)t->shard.pairs,
                            .longest_source = bounds.longest_source,
                            .longest_target = bounds.longest_target,
                            .sentences = bounds.sentences,
                            .source_tokens = t->shard.source_tokens};
  TARN_TRY(tarn__plan_run(&t->plan, t->model, &batch, &t->shard, t->threads));
  TARN_TRY(tarn__plan_share(&t->plan, t->model, t->comm->size));
  const size_t sums = tarn__gradient_sum_bytes(t->model, t->comm->size) + tarn__features_plan_ranks(t) +
                      tarn__optim_share_bytes(t->config, t->comm->size);
  if (t->comm->size > 1 && tarn__comm_reaches(t->comm, t->model->device))
    tarn__plan_add_workspace(&t->plan, t->model->device->type->peers_bytes);
  t->plan.program_bytes += sums;
  t->plan.total_bytes += sums;
  return TARN_STATUS_OK;
}

// Allocates the moments of the parameters, and sums of gradients if needed.
static tarn_status take_moments(tarn_train *t) {
  tarn__model_size size;
  tarn__model_measure(t->model, &size);
  TARN_TRY(tarn__device_allocate(t->model->device, &t->moments, TARN__MEMORY_OPTIMISER, size.optimiser_bytes, 1));
  char *next = t->moments;
  for (size_t i = 0; i < t->model->param_count + t->model->helper_count; i++) {
    tarn__param *param = tarn__model_param(t->model, i);
    if (!param->trained) continue;
    const size_t moment = tarn__model_moment_bytes(t->model, param);
    param->training.moments = tarn__model_moments(t->model, param);
    param->training.number = (uint32_t)i;
    param->training.moment1 = next;
    param->training.moment2 = next + moment;
    next += 2 * moment;
    if (!tarn__model_sums(t->model, param)) continue;
    param->training.grad_sum = (float *)(void *)next;
    next += tarn__model_sum_bytes(t->model, param);
  }
  return TARN_STATUS_OK;
}

static tarn_status take_memory(tarn_train *t) {
  t->model->shares_optimiser = tarn__optim_shares(t->config, t->comm->size);
  TARN_TRY(tarn__model_allocate(t->model));
  TARN_TRY(tarn__optim_share_open(&t->optim, t->comm, t->model));
  if (!t->optim.shares) TARN_TRY(take_moments(t));
  TARN_TRY(tarn__gradient_sum_open(&t->gradient_sum, t->comm, t->model, &t->optim.parts));
  TARN_TRY(tarn__rank_use_open(&t->rank_use, t->comm));
  tarn__stepper_bounds train;
  tarn__stepper_bounds valid = {0};
  tarn__train_bounds(t, &train);
  const bool scores = tarn__train_scoring_bounds(t, &valid);
  TARN_TRY(tarn__features_open(&t->features, t));
  TARN_TRY(tarn__stepper_open(&t->stepper, t->model, &train, scores ? &valid : NULL, &t->features, t->threads,
                              (uint64_t)t->config->train.seed));
  TARN_TRY(tarn__numbers_open(&t->numbers, t->model->device, t->comm->size));
  t->params = (tarn__param_table){.params = t->model->params, .count = t->model->param_count};
  t->helpers = (tarn__param_table){.params = t->model->helpers, .count = t->model->helper_count};
  t->stepper.numbers = t->numbers.there;
  t->stepper.profile = t->profile;
  t->stepper.follow = tarn__gradient_overlap_begin;
  t->stepper.followed = tarn__gradient_overlap_ran;
  return tarn__gradient_overlap_open(&t->overlap, &t->gradient_sum);
}

static tarn_status check_same_data(const tarn_train *t, const tarn__checkpoint_file *file) {
  const char *path = file->tensors.path;
  const char *data = tarn__safetensors_text(&file->tensors, TARN__KEY_DATA);
  const char *source = tarn__safetensors_text(&file->tensors, TARN__KEY_SOURCE_VOCAB);
  const char *target = tarn__safetensors_text(&file->tensors, TARN__KEY_TARGET_VOCAB);
  if (!target) target = source;
  TARN_REQUIRE(source && tarn__hash_same(source, tarn_vocab_hash(t->source)) &&
                   tarn__hash_same(target, tarn_vocab_hash(t->target)),
               DATA, "%s was trained with another vocabulary than %s", path, t->config->data.vocab);
  TARN_REQUIRE(!data || strcmp(data, tarn__batcher_other_hash(t->batcher)) != 0, DATA,
               "%s was trained on the rows of %s in another order: more than %d rows are ordered in blocks where they "
               "stand in several files, and all together in one; prepare them with the --shard-size that they had then",
               path, t->config->data.train, TARN__BATCH_BLOCK);
  TARN_REQUIRE(data && tarn__hash_same(data, tarn__batcher_hash(t->batcher)), DATA,
               "%s was trained on other data than %s", path, t->config->data.train);
  return TARN_STATUS_OK;
}

// All scores of a curve must be for the same sentences. Before the first score, validation data may change or be added;
// files without a recorded hash cannot be checked.
static tarn_status check_same_validation(const tarn_train *t, const tarn__checkpoint_file *file) {
  const char *stored = tarn__safetensors_text(&file->tensors, TARN__KEY_VALID);
  const tarn_config_data *data = &t->config->data;
  const bool validated = file->progress.best_update > 0 || file->progress.at_start;
  if (!stored || !validated) return TARN_STATUS_OK;
  TARN_REQUIRE(t->validator, DATA, "%s was validated, so the run cannot go on without data.valid", file->tensors.path);
  TARN_REQUIRE(tarn__hash_same(stored, tarn__validator_hash(t->validator)), DATA,
               "%s was validated on other data than %s%s%s", file->tensors.path, data->valid,
               data->valid_reference ? " and " : "", data->valid_reference ? data->valid_reference : "");
  return TARN_STATUS_OK;
}

// The same for each set.
static tarn_status check_same_sets(const tarn_train *t, const tarn__checkpoint_file *file) {
  const char *next = tarn__safetensors_text(&file->tensors, TARN__KEY_SETS);
  for (int32_t i = 0; next && i < t->config->set_count; i++) {
    const tarn_config_scored_set *set = &t->config->sets[i];
    char stored[TARN__HASH_TEXT];
    const size_t length = strcspn(next, " ");
    snprintf(stored, sizeof stored, "%.*s", (int)length, next);
    next += length + strspn(next + length, " ");
    TARN_REQUIRE(file->progress.scored[i] == 0 || tarn__hash_same(stored, tarn__validator_hash(t->sets[i])), DATA,
                 "%s has scores of other data as sets.%s than %s%s%s", file->tensors.path, set->name, set->data,
                 set->reference ? " and " : "", set->reference ? set->reference : "");
  }
  return TARN_STATUS_OK;
}

// The same for exponents.
static tarn_status check_same_dynamics(const tarn_train *t, const tarn__checkpoint_file *file) {
  const char *stored = tarn__safetensors_text(&file->tensors, TARN__KEY_DYNAMICS);
  if (!stored || !*t->dynamics_of || file->progress.measured == 0) return TARN_STATUS_OK;
  TARN_REQUIRE(tarn__hash_same(stored, t->dynamics_of), DATA,
               "%s: its exponents are of other sentences than those of %s (dynamics.input); restore the file",
               file->tensors.path, t->config->dynamics.input);
  return TARN_STATUS_OK;
}

// A curve with lost lines is a different one. Checkpoints of older versions have no record of their log.
static tarn_status check_same_log(tarn_train *t, const tarn__checkpoint_file *file) {
  const tarn__log_sum *sum = &file->progress.log;
  if (sum->bytes == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__log_compare(t->log_why, t->dir.log, sum, false, file->update));
  TARN_REQUIRE(!t->log_why[0] || t->accept_log, DATA,
               "%s is not the log of %s: %s; put it back, or go on with a run that is marked: tarn train --resume %s "
               "--accept-log",
               t->dir.log, file->tensors.path, t->log_why, t->dir.path);
  return TARN_STATUS_OK;
}

// Without `load` it only checks whether training can resume from the file.
static tarn_status load_state(tarn_train *t, const tarn__checkpoint_file *file, bool load) {
  TARN_REQUIRE(file->has_progress, DATA, "%s: it holds a model, but not the state of a training", file->tensors.path);
  TARN_TRY(tarn__resume_check_config(t->config, file->config_text, file->tensors.path));
  TARN_TRY(check_same_data(t, file));
  TARN_TRY(check_same_validation(t, file));
  TARN_TRY(check_same_sets(t, file));
  TARN_TRY(check_same_dynamics(t, file));
  TARN_TRY(tarn__checkpoint_check_names(file, t->model));
  TARN_TRY(check_same_log(t, file));
  t->progress = file->progress;
  if (!load) return TARN_STATUS_OK;
  TARN_TRY(tarn__checkpoint_file_load(file, t->model, true));
  TARN_TRY(tarn__features_load(&t->features, file));
  return tarn__batcher_seek(t->batcher, t->progress.epoch, t->progress.index);
}

// A run without its last checkpoint starts anew, unless other checkpoints show that it was trained: they would be
// overwritten.
static tarn_status check_untrained(const tarn_train *t) {
  tarn__run_dir_list list;
  TARN_TRY(tarn__run_dir_numbered(&t->dir, &list));
  bool trained = list.count > 0 || tarn__file_exists(t->dir.best);
  tarn__run_dir_list_close(&list);
  TARN_REQUIRE(!trained, DATA,
               "%s is missing, and only it holds the state of the training; the other checkpoints of %s can be used, "
               "but the training cannot go on from them",
               t->dir.last, t->dir.path);
  return TARN_STATUS_OK;
}

// The last checkpoint is unreadable: adds possible remedies to the message.
static tarn_status say_what_is_left(const tarn_train *t) {
  char line[1024];
  snprintf(line, sizeof line, "%s", tarn_error_message());
  return tarn__fail(TARN_STATUS_DATA,
                    "%s; put a copy of that file back, or begin anew with another --run: only it holds the state of "
                    "the training. The other checkpoints of %s can still be used",
                    line, t->dir.path);
}

static tarn_status start(tarn_train *t, bool resume, bool load) {
  if (!resume || !tarn__file_exists(t->dir.last)) {
    TARN_TRY(check_untrained(t));
    if (!load) return TARN_STATUS_OK;
    TARN_TRY(tarn__model_initialise(t->model, (uint64_t)t->config->train.seed));
    const char *from = t->config->train.init_from;
    return from ? tarn__init_from(t->model, from, t->source, t->target) : TARN_STATUS_OK;
  }
  tarn__checkpoint_file file;
  tarn_status status = tarn__checkpoint_file_open(&file, t->dir.last);
  if (status == TARN_STATUS_DATA) return say_what_is_left(t);
  TARN_TRY(status);
  status = load_state(t, &file, load);
  tarn__checkpoint_file_close(&file);
  return status;
}

// All checks before allocating memory for the model or writing anything.
static tarn_status check_parts(tarn_train *t, const tarn_train_options *o) {
  TARN_TRY(tarn__train_check_options(o));
  if (o->run) TARN_TRY(tarn__run_dir_look(&t->dir, o->run));
  t->accept_log = o->accept_log;
  TARN_TRY(read_config(t, o));
  t->threads = tarn__threads_set(o->threads > 0 ? o->threads : (int)t->config->train.threads);
  TARN_TRY(open_data(t));
  TARN_TRY(make_plan(t));
  TARN_TRY(tarn__train_open_scoring(t));
  TARN_TRY(tarn__train_open_dynamics(t, o));
  TARN_TRY(tarn__plan_check_memory(&t->plan, t->model));
  // When memory is allocated, loading the last checkpoint makes the same checks.
  return o->plan_only && o->resume ? start(t, true, false) : TARN_STATUS_OK;
}

// A folder is created only if training can run. The other ranks examine it after rank 0 has opened it.
static tarn_status open_dir(tarn_train *t, const tarn_train_options *o) {
  if (t->comm->rank > 0) return tarn__comm_barrier(t->comm);
  tarn__run_dir_close(&t->dir);
  TARN_TRY(tarn__run_dir_open(&t->dir, o->run));
  return tarn__comm_barrier(t->comm);
}

static tarn_status open_parts(tarn_train *t, const tarn_train_options *o) {
  TARN_TRY(check_parts(t, o));
  if (t->comm->rank == 0) warn_left_out(t);
  if (o->plan_only) return TARN_STATUS_OK;
  TARN_TRY(open_dir(t, o));
  t->was_over = tarn__file_exists(t->dir.result);
  TARN_TRY(tarn__profile_peaks(t->profile, t->model->device, t->threads));
  tarn__memory_reset_peak();  // excludes earlier seeds of this process
  // A copy, because the list that owns the options may be closed before the training run.
  TARN_TRY(tarn__strdup(&t->go_on, o->folder ? o->folder : t->dir.path));
  if (!o->resume) TARN_TRY(check_new(t));
  TARN_TRY(take_memory(t));
  TARN_TRY(start(t, o->resume, true));
  t->epoch_batches = tarn__batcher_batches(t->batcher);
  const tarn__loader_share share = {
      .rank = t->comm->rank, .ranks = t->comm->size, .accumulate = t->config->train.accumulate};
  TARN_TRY(tarn__loader_open(&t->loader, t->batcher, &share));
  // Rank 0 writes nothing until all ranks have seen the original state.
  TARN_TRY(tarn__train_check_ranks(t));
  char go_on[1024];
  snprintf(go_on, sizeof go_on, "tarn train --resume %s", t->go_on);
  tarn__comm_go_on(t->comm, go_on);
  return t->comm->rank == 0 ? tarn__train_write_config(&t->dir, t->config) : TARN_STATUS_OK;
}

static tarn_status make_train(tarn_train **train, tarn__comm *comm) {
  *train = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_train)));
  tarn_train *t = memory;
  t->dir.lock = -1;
  t->session.log = (tarn__run_log){.fd = -1, .events = {.fd = -1}};
  t->comm = comm;
  *train = t;
  return TARN_STATUS_OK;
}

tarn_status tarn__train_check(tarn_config **config, const tarn_train_options *options) {
  *config = NULL;
  tarn_train *t;
  tarn__comm alone = {.kind = &tarn__comm_self, .size = 1};
  TARN_TRY(make_train(&t, &alone));
  tarn_train_options o = *options;
  o.plan_only = true;
  tarn_status status = check_parts(t, &o);
  tarn_config *checked = t->config;
  t->config = NULL;
  tarn_train_close(&t);
  if (status == TARN_STATUS_OK)
    *config = checked;
  else
    tarn_config_close(&checked);
  return status;
}

tarn_status tarn__train_open_rank(tarn_train **train, const tarn_train_options *options, tarn__comm *comm) {
  tarn_train *t;
  TARN_TRY(make_train(train, comm));
  t = *train;
  t->on_event = comm->rank == 0 ? options->on_event : NULL;
  t->user = options->user;
  t->stop = options->stop;
  t->save = options->save;
  t->profile = options->profile;
  t->told = options->told;
  t->planned_only = options->plan_only;
  tarn_status status = open_parts(t, options);
  if (status == TARN_STATUS_OK) return status;
  tarn__train_fail_all(t, status);
  tarn_train_close(train);
  return status;
}

static tarn_status open_probe(tarn_train *t, const tarn_train_options *o) {
  TARN_TRY(check_parts(t, o));
  TARN_TRY(take_memory(t));
  t->epoch_batches = tarn__batcher_batches(t->batcher);
  const tarn__loader_share share = {.ranks = 1, .accumulate = t->config->train.accumulate};
  return tarn__loader_open(&t->loader, t->batcher, &share);
}

tarn_status tarn__train_open_probe(tarn_train **train, const tarn_train_options *options) {
  tarn__comm *comm;
  *train = NULL;
  TARN_TRY(tarn__comm_open(&comm, tarn__comm_self.name));
  tarn_status status = make_train(train, comm);
  if (status != TARN_STATUS_OK) {
    tarn__comm_close(&comm);
    return status;
  }
  (*train)->own_comm = comm;
  tarn_train_options o = *options;
  o.run = NULL;
  o.resume = false;
  o.plan_only = true;
  status = open_probe(*train, &o);
  if (status != TARN_STATUS_OK) tarn_train_close(train);
  return status;
}

tarn_status tarn_train_open(tarn_train **train, const tarn_train_options *options) {
  tarn__comm *comm;
  *train = NULL;
  TARN_TRY(tarn__comm_open(&comm, options->comm));
  tarn_status status = tarn__train_open_rank(train, options, comm);
  if (status == TARN_STATUS_OK)
    (*train)->own_comm = comm;
  else
    tarn__comm_close(&comm);
  return status;
}

void tarn_train_close(tarn_train **train) {
  tarn_train *t = *train;
  if (!t) return;
  tarn__run_log_close(&t->session.log);
  tarn__gradient_overlap_close(&t->overlap);
  tarn__gradient_sum_close(&t->gradient_sum);
  tarn__optim_share_close(&t->optim);
  tarn__rank_use_close(&t->rank_use);
  tarn__stepper_close(&t->stepper);
  tarn__features_close(&t->features);
  tarn__train_close_scoring(t);
  tarn__train_close_dynamics(t);
  tarn__numbers_close(&t->numbers);
  if (t->model) tarn__param_table_close(t->model->device, &t->params);
  if (t->model) tarn__param_table_close(t->model->device, &t->helpers);
  if (t->moments) tarn__device_free(t->model->device, t->moments);
  tarn__model_close(&t->model);
  tarn__loader_close(&t->loader);
  tarn__batcher_close(&t->batcher);
  tarn__shard_close(&t->shard);
  if (t->target != t->source) tarn_vocab_close(&t->target);
  tarn_vocab_close(&t->source);
  tarn_plan_close(&t->plan);
  tarn_config_close(&t->config);
  tarn__free(t->go_on);
  tarn_checkpoint_found_close(&t->end.found);
  tarn__run_dir_close(&t->dir);
  tarn__comm_close(&t->own_comm);
  tarn__free(t);
  *train = NULL;
}

const tarn_config *tarn_train_config(const tarn_train *train) { return train->config; }
const tarn_plan *tarn_train_plan(const tarn_train *train) { return &train->plan; }
int64_t tarn_train_update(const tarn_train *train) { return train->progress.update; }

int tarn_train_rank(const tarn_train *train) { return train->comm->rank; }

int tarn_train_ranks(const tarn_train *train) { return train->comm->size; }
bool tarn_train_was_over(const tarn_train *train) { return train->was_over; }
