// tarn_scale_make(): the inputs of the equations of scale_time.h.
#include "tarn/lab/forecast.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "config/config_fail.h"
#include "dist/gradient_overlap.h"
#include "dist/optim_share.h"
#include "forecast/scale_time.h"
#include "graph/profile.h"
#include "task/bands.h"
#include "train/plan_config.h"
#include "train/trainer.h"

// Minimum seconds and updates of a probe, the first of which is not counted.
static const double PROBE_SECONDS = 2.0;
enum { LEAST_UPDATES = 4 };
enum { BUCKET = 1 << 20 };              // values summed at a time (gradient_sum.c),
enum { ROUND = 1 << 20 };               // and bytes (comm_mpi.c)
enum { MOST_SENTENCES = 1 << 20 };      // counted to estimate the rows in use
enum { PIECE = 1 << 20, PIECES = 16 };  // values for measuring the speed of adding

void tarn_scale_default(tarn_scale_options *options) {
  static const int one = 1;
  *options = (tarn_scale_options){.ranks = &one, .count = 1, .bandwidth = 1.25e9, .latency = 2e-5};
}

static tarn_status check(const tarn_scale_options *o) {
  TARN_REQUIRE(o->count > 0, USAGE, "expected a number of ranks");
  for (size_t i = 0; i < o->count; i++)
    TARN_REQUIRE(o->ranks[i] >= 1 && o->ranks[i] <= TARN_SCALE_RANKS, USAGE, "the number of ranks is 1 to %d, not %d",
                 TARN_SCALE_RANKS, o->ranks[i]);
  TARN_REQUIRE(o->one_machine || (isfinite(o->bandwidth) && o->bandwidth > 0), USAGE,
               "the bandwidth is bytes a second, more than 0, not %g", o->bandwidth);
  TARN_REQUIRE(o->one_machine || (isfinite(o->latency) && o->latency >= 0), USAGE,
               "the latency is seconds, 0 or more, not %g", o->latency);
  TARN_REQUIRE(isfinite(o->step_seconds) && o->step_seconds >= 0, USAGE,
               "a step takes more than 0 seconds, not %g; 0: measured", o->step_seconds);
  TARN_REQUIRE(isfinite(o->optimiser_seconds) && o->optimiser_seconds >= 0, USAGE,
               "the optimiser takes 0 seconds or more, not %g", o->optimiser_seconds);
  TARN_REQUIRE(o->optimiser_seconds <= o->step_seconds, USAGE,
               "the optimiser takes %g seconds of a step of %g; give both", o->optimiser_seconds, o->step_seconds);
  TARN_REQUIRE(isfinite(o->adding) && o->adding >= 0, USAGE,
               "gradients are added at more than 0 bytes a second, not %g; 0: measured", o->adding);
  return TARN_STATUS_OK;
}

// --- what is measured

// Updates of one of several ranks, which do not update parameters at once; a limit on the norm has the same effect at
// the same cost.
static tarn_status open_probe(tarn_train **t, const tarn_train_options *options, const tarn_config *config) {
  void *memory;
  tarn_train_options o = *options;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, o.override_count + 1, sizeof *o.overrides));
  const char **overrides = memory;
  if (o.override_count > 0) memcpy(overrides, o.overrides, o.override_count * sizeof *overrides);
  if (config->train.clip_norm <= 0) overrides[o.override_count++] = "train.clip_norm=1000000";
  o.overrides = overrides;
  const tarn_status status = tarn__train_open_probe(t, &o);
  tarn__free(overrides);
  return status;
}

static tarn_status run_probe(tarn_scale *scale, tarn_train *t, tarn_profile *profile) {
  tarn__train_update_result result;
  tarn_profile_summary summary;
  double count = 0;
  TARN_TRY(tarn__train_step(t, &result));
  const double before = (double)(t->progress.source_tokens + t->progress.target_tokens), begun = tarn__seconds();
  t->profile = profile;
  tarn__profile_start(profile);
  for (; tarn__seconds() - begun < PROBE_SECONDS || count < LEAST_UPDATES; count++)
    TARN_TRY(tarn__train_step(t, &result));
  tarn__profile_stop(profile);
  scale->step_seconds = (tarn__seconds() - begun) / count;
  scale->update_tokens = ((double)(t->progress.source_tokens + t->progress.target_tokens) - before) / count;
  TARN_TRY(tarn_profile_sum(profile, &summary));
  for (size_t i = 0; i < summary.count; i++)
    if (strcmp(summary.rows[i].op, "optimiser") == 0 && summary.rows[i].pass == TARN_PROFILE_OUTSIDE)
      scale->optimiser_seconds += summary.rows[i].seconds / count;
  return TARN_STATUS_OK;
}

static tarn_status measure_step(tarn_scale *scale, const tarn_train_options *options, const tarn_config *config,
                                const tarn_plan *plan) {
  tarn_duration duration;
  TARN_TRY(tarn_train_duration(&duration, options, plan, NULL));
  scale->source = duration.source;
  if (duration.source == TARN_DURATION_PROBE) {
    tarn_train *t;
    tarn_profile *profile;
    TARN_TRY(open_probe(&t, options, config));
    tarn_status status = tarn_profile_open(&profile, 0);
    if (status == TARN_STATUS_OK) {
      status = run_probe(scale, t, profile);
      t->profile = NULL;
      tarn_profile_close(&profile);
    }
    tarn_train_close(&t);
    TARN_TRY(status);
  }
  scale->alone_seconds = scale->update_tokens / duration.tokens_per_second;
  if (duration.source != TARN_DURATION_PROBE) scale->step_seconds = scale->alone_seconds;
  return TARN_STATUS_OK;
}

// A rank's work on summed values: read from uncached memory, add, write back.
static tarn_status measure_adding(double *rate) {
  const size_t all = (size_t)PIECE * PIECES;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, all + 2 * (size_t)PIECE, sizeof(float)));
  float *values = memory, *room = values + all, *others = room + PIECE;
  double seconds = 0;
  for (size_t i = 0; i < PIECE; i++) others[i] = 1;
  for (int turn = 0; turn < 2; turn++) {  // the first one allocates the pages
    const double begin = tarn__seconds();
    for (size_t at = 0; at < all; at += PIECE) {
      memcpy(room, values + at, PIECE * sizeof *room);
      for (size_t i = 0; i < PIECE; i++) room[i] += others[i];
      memcpy(values + at, room, PIECE * sizeof *room);
    }
    seconds = tarn__seconds() - begin;
  }
  tarn__free(memory);
  *rate = (double)(all * sizeof *values) / seconds;
  return TARN_STATUS_OK;
}

// --- what travels

static tarn_status add_table(tarn_scale *scale, const tarn__model *model, const tarn__param *param,
                             const tarn_plan *plan) {
  tarn__scale_memory *own = scale->own;
  const bool source = param == model->weights.source_table, target = param == model->weights.target_table;
  const double batches = (double)scale->accumulate;
  tarn__scale_table table = {.rows = param->rows, .cols = param->cols};
  size_t capacity = own->table_count;
  if (source || !target) table.tokens += batches * (double)plan->source_rows;
  if (target || !source) table.tokens += batches * (double)plan->target_rows;
  if (source != target) table.shares = own->shares[target];
  while (table.part < scale->part_count && strcmp(scale->parts[table.part].label, "embeddings") != 0) table.part++;
  TARN_REQUIRE(table.part < scale->part_count, INTERNAL, "a table is in no part");
  TARN_TRY(tarn__grow(&own->tables, &capacity, own->table_count + 1, sizeof *own->tables));
  own->tables[own->table_count++] = table;
  return TARN_STATUS_OK;
}

// Shares of the tokens of a side, from sentences spread over the data.
static tarn_status count_shares(double **shares, const tarn__shard *shard, bool target) {
  const int64_t words = target ? shard->target_vocab_size : shard->source_vocab_size;
  const int64_t longest = target ? shard->longest_target : shard->longest_source;
  const int64_t every = shard->pairs / MOST_SENTENCES + 1;
  if ((target ? shard->target_tokens : shard->source_tokens) == 0) return TARN_STATUS_OK;
  void *memory;
  double total = 0;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)words, sizeof **shares));
  *shares = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)longest, sizeof(int32_t)));
  int32_t *ids = memory;
  for (int64_t pair = 0; pair < shard->pairs; pair += every) {
    const int64_t length = target ? tarn__shard_target_length(shard, pair) : tarn__shard_source_length(shard, pair);
    (target ? tarn__shard_target : tarn__shard_source)(shard, pair, ids);
    for (int64_t i = 0; i < length; i++) (*shares)[ids[i]]++;
    total += (double)length;
  }
  tarn__free(ids);
  for (int64_t w = 0; w < words; w++) (*shares)[w] /= total;
  return tarn__shard_unchanged(shard);
}

// Whether only its used rows are sent.
static bool has_rows(const tarn__model *model, const tarn__param *param) {
  return param->trained && tarn__weights_look_up(&model->weights, param) &&
         !tarn__weights_predict(&model->weights, param);
}

static tarn_status add_params(tarn_scale *scale, const tarn__planned *planned) {
  const tarn__model *model = planned->model;
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const int64_t count = param->rows * param->cols;
    scale->marks++;
    if (!param->trained) continue;
    scale->weights += count;
    scale->weight_bytes += (double)count * (double)tarn__dtype_size(param->dtype);
    if (!has_rows(model, param)) continue;
    for (int side = 0; side < 2; side++)
      if (planned->shard.pairs > 0 && !scale->own->shares[side])
        TARN_TRY(count_shares(&scale->own->shares[side], &planned->shard, side == 1));
    TARN_TRY(add_table(scale, model, param, &planned->plan));
  }
  return TARN_STATUS_OK;
}

static tarn_status add_parts(tarn_scale *scale, const tarn__planned *planned) {
  const tarn_plan *plan = &planned->plan;
  const tarn__model *model = planned->model;
  const double all = plan->forward_flops + plan->backward_flops + plan->recompute_flops;
  const double passes = scale->step_seconds - scale->optimiser_seconds;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, plan->part_count + 1, sizeof *scale->parts));
  scale->parts = memory;
  for (size_t i = 0; i < plan->part_count; i++) {
    const tarn_plan_part *from = &plan->parts[i];
    tarn_scale_part *part = &scale->parts[scale->part_count++];
    snprintf(part->label, sizeof part->label, "%s", from->label);
    if (strcmp(part->label, "output") == 0) scale->own->output = i;
    part->values = from->trained_parameters;
    part->forward_seconds = passes * from->forward_flops / all;
    part->backward_seconds = passes * (from->backward_flops + from->recompute_flops) / all;
  }
  int64_t helpers = 0;
  for (size_t i = 0; i < model->helper_count; i++) helpers += model->helpers[i]->rows * model->helpers[i]->cols;
  if (helpers > 0) {
    tarn_scale_part *part = &scale->parts[scale->part_count++];
    snprintf(part->label, sizeof part->label, "predictors");
    part->values = helpers;
    scale->marks += (int64_t)model->helper_count;
  }
  for (size_t i = 0; i < scale->part_count; i++) scale->values += scale->parts[i].values;
  return TARN_STATUS_OK;
}

// --- points

// For the rank that needs most memory.
static tarn_status plan_way(tarn_scale_way *way, const tarn__planned *planned, tarn_config *config, int ranks,
                            bool sharded) {
  const bool wanted = config->train.shard_optimiser;
  tarn_plan plan = planned->plan;
  plan.parts = NULL;
  plan.part_count = 0;
  config->train.shard_optimiser = sharded;
  const tarn_status status = tarn__plan_share(&plan, planned->model, ranks);
  way->memory_bytes = plan.total_bytes + tarn__optim_share_bytes(config, ranks);
  way->optimiser_bytes = plan.optimiser_bytes;
  config->train.shard_optimiser = wanted;
  return status;
}

static tarn_status add_points(tarn_scale *scale, const tarn__planned *alone, const tarn__planned *several,
                              tarn_config *config, const tarn_scale_options *options) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, options->count, sizeof *scale->points));
  scale->points = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, options->count * scale->part_count, sizeof(double)));
  scale->own->part_values = memory;
  for (size_t i = 0; i < options->count; i++) {
    tarn_scale_point *point = &scale->points[scale->count++];
    point->ranks = options->ranks[i];
    point->part_values = scale->own->part_values + i * scale->part_count;
    tarn__scale_point(point, scale);
    const tarn__planned *planned = point->ranks == 1 ? alone : several;
    TARN_TRY(plan_way(&point->whole, planned, config, point->ranks, false));
    TARN_TRY(plan_way(&point->sharded, planned, config, point->ranks, true));
  }
  return TARN_STATUS_OK;
}

static tarn_status fill(tarn_scale *scale, const tarn__planned *alone, const tarn_train_options *training,
                        tarn_config *config, const tarn_scale_options *options) {
  const tarn_plan *plan = &alone->plan;
  scale->accumulate = (int)config->train.accumulate;
  scale->overlap = !scale->one_machine && tarn__gradient_overlap_possible(alone->model);
  scale->update_tokens = (double)(plan->source_rows + plan->target_rows) * (double)config->train.accumulate;
  if (scale->given)
    scale->alone_seconds = scale->step_seconds;
  else
    TARN_TRY(measure_step(scale, training, config, plan));
  if (scale->adding <= 0) TARN_TRY(measure_adding(&scale->adding));
  TARN_TRY(add_parts(scale, alone));
  TARN_TRY(add_params(scale, alone));
  // With several ranks gradients and their sums have separate memory.
  const tarn_plan_options planning = {
      .source_vocab = options->vocab_size, .target_vocab = options->vocab_size, .threads = training->threads};
  tarn__planned several;
  TARN_TRY(tarn__plan_ranks(&several, config, &planning, 2));
  const tarn_status status = add_points(scale, alone, &several, config, options);
  tarn__planned_close(&several);
  return status;
}

static tarn_status make(tarn_scale *scale, const tarn_train_options *training, tarn_config *config,
                        const tarn_scale_options *options) {
  const tarn_plan_options planning = {
      .source_vocab = options->vocab_size, .target_vocab = options->vocab_size, .threads = training->threads};
  void *memory;
  tarn__planned alone;
  if (config->train.optimiser == TARN_OPTIMISER_RIDGE)
    return tarn__config_fail(config, TARN_STATUS_USAGE, "train.optimiser",
                             "ridge makes no updates whose sums could be modelled");
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *scale->own));
  scale->own = memory;
  TARN_TRY(tarn__plan_ranks(&alone, config, &planning, 1));
  const tarn_status status = fill(scale, &alone, training, config, options);
  tarn__planned_close(&alone);
  return status;
}

tarn_status tarn_scale_make(tarn_scale *scale, const tarn_train_options *training, const tarn_scale_options *options) {
  tarn_config *config;
  *scale = (tarn_scale){.bandwidth = options->one_machine ? INFINITY : options->bandwidth,
                        .latency = options->one_machine ? 0 : options->latency,
                        .one_machine = options->one_machine,
                        .given = options->step_seconds > 0,
                        .step_seconds = options->step_seconds,
                        .optimiser_seconds = options->optimiser_seconds,
                        .adding = options->adding,
                        .bucket = BUCKET,
                        .round = ROUND};
  TARN_TRY(check(options));
  TARN_TRY(tarn_config_read(&config, training->config, training->overrides, training->override_count));
  scale->reduce = config->train.reduce;
  scale->shards = config->train.shard_optimiser;
  const tarn_status status = make(scale, training, config, options);
  tarn_config_close(&config);
  if (status != TARN_STATUS_OK) tarn_scale_close(scale);
  return status;
}

void tarn_scale_close(tarn_scale *scale) {
  if (scale->own) {
    tarn__free(scale->own->tables);
    for (int side = 0; side < 2; side++) tarn__free(scale->own->shares[side]);
    tarn__free(scale->own->part_values);
  }
  tarn__free(scale->own);
  tarn__free(scale->parts);
  tarn__free(scale->points);
  *scale = (tarn_scale){0};
}
