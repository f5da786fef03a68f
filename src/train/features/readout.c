#include "train/features/readout.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/share.h"
#include "config/config_fail.h"
#include "device/transfer.h"
#include "graph/profile.h"
#include "optim/ridge.h"
#include "task/task.h"
#include "train/feature.h"
#include "train/trainer.h"

enum { ROOM = 1 << 24 };  // maximum of numbers in the held-out states and their outputs

typedef struct readout {
  int64_t width, words, most;  // most: maximum of held-out rows
  int64_t sentences, held;     // number seen; rows held out
  tarn__ridge sums;
  const tarn__device *device;
  void *states;            // [most, width] held out, in the model's precision and its device's memory
  tarn__dtype dtype;       // of them
  int32_t *targets;        // [most]
  double *weights, *bias;  // [width, words], [words]
  double *gaps;            // [most, words]
  double *log_shares;      // [words]
  float *values;           // [words, width]
  tarn__share share;       // comm NULL: this rank processes all batches
  tarn__readout *found;
} readout;

static int64_t most_held(int64_t width, int64_t words) {
  const int64_t rows = ROOM / (width > words ? width : words);
  return rows < TARN__READOUT_HELD ? rows : TARN__READOUT_HELD;
}

size_t tarn__readout_bytes(const tarn__model *model) {
  const int64_t width = model->weights.output_table->cols, words = model->target_vocab, most = most_held(width, words);
  const size_t numbers = (size_t)((width + 2 + most) * words), values = (size_t)(words * width + most);
  // Held-out states exist twice if the host needs a copy of them.
  const size_t states =
      (size_t)(most * width) * tarn__dtype_size(model->dtype) * (model->device->type->host_memory ? 1 : 2);
  return tarn__ridge_bytes(model->device, width, words) + numbers * sizeof(double) + values * sizeof(float) + states;
}

tarn_status tarn__readout_check(const tarn__model *model) {
  static const char key[] = "train.optimiser";
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const bool output = param == model->weights.output_table || param == model->weights.output_bias;
    if (!output && param->trained)
      return tarn__config_fail(model->config, TARN_STATUS_USAGE, key,
                               "ridge computes the output layer alone, but %s is trained; freeze it "
                               "(model.frozen_embeddings: decoder, kinds.NAME.frozen: yes, norms left out)",
                               param->name);
  }
  if (model->target_vocab > TARN__READOUT_WORDS)
    return tarn__config_fail(model->config, TARN_STATUS_USAGE, key,
                             "ridge sums a number for every unit and token, and takes vocabularies of at most %d "
                             "tokens, not %lld",
                             TARN__READOUT_WORDS, (long long)model->target_vocab);
  return TARN_STATUS_OK;
}

static tarn_status take(void *out, int64_t count, size_t size) {
  return tarn__alloc(out, TARN__MEMORY_OPTIMISER, (size_t)count, size);
}

static tarn_status open_readout(readout *r, const tarn__model *model, tarn__comm *comm) {
  void *memory;
  *r = (readout){.width = model->weights.output_table->cols,
                 .words = model->target_vocab,
                 .device = model->device,
                 .dtype = model->dtype};
  r->most = most_held(r->width, r->words);
  TARN_TRY(tarn__ridge_open_classes(&r->sums, model->device, r->width, r->words));
  TARN_TRY(tarn__device_allocate(r->device, &r->states, TARN__MEMORY_OPTIMISER, (size_t)(r->most * r->width),
                                 tarn__dtype_size(r->dtype)));
  TARN_TRY(take(&memory, r->words * r->width, sizeof(float)));
  r->values = memory;
  TARN_TRY(take(&memory, r->most, sizeof(int32_t)));
  r->targets = memory;
  TARN_TRY(take(&memory, (r->width + 2 + r->most) * r->words, sizeof(double)));
  r->weights = memory;
  r->bias = r->weights + r->width * r->words;
  r->log_shares = r->bias + r->words;
  r->gaps = r->log_shares + r->words;
  return tarn__share_open(&r->share, comm);
}

static void close_readout(readout *r) {
  tarn__ridge_close(&r->sums);
  if (r->states) tarn__device_free(r->device, r->states);
  tarn__free(r->values);
  tarn__free(r->targets);
  tarn__free(r->weights);
  tarn__share_close(&r->share);
}

// Whether a sentence is held out for fitting the scale.
static bool kept_out(int64_t sentence) { return sentence % TARN__READOUT_EVERY == 0; }

// Rows of a batch, which stay on the device, become samples of the regression, or, `room` of them at most, are held
// out.
static tarn_status add_batch(readout *r, const void *rows, const tarn__batch *batch, int64_t room) {
  const size_t row_bytes = (size_t)r->width * tarn__dtype_size(r->dtype);
  for (int64_t s = 0; s < batch->target.sentences; s++) {
    const int32_t first = batch->target.offsets[s], last = batch->target.offsets[s + 1];
    // If only the beginning of a sentence fits, that is held out: without held-out rows no scale can be fitted.
    const int64_t most = kept_out(r->sentences++) ? room : 0;
    const int64_t held = most < last - first ? most : last - first;
    TARN_TRY(tarn__ridge_add_rows(&r->sums, rows, r->dtype, first + held, last - first - held,
                                  batch->targets + first + held));
    if (held == 0) continue;
    TARN_TRY(tarn__device_copy(r->device, (char *)r->states + (size_t)r->held * row_bytes,
                               (const char *)rows + (size_t)first * row_bytes, (size_t)held * row_bytes));
    memcpy(r->targets + r->held, batch->targets + first, (size_t)held * sizeof *r->targets);
    r->held += held;
    room -= held;
  }
  return TARN_STATUS_OK;
}

static bool late(const tarn_train *t, double start) {
  const double limit = t->config->train.max_minutes * 60.0;
  return limit > 0 && t->progress.seconds + tarn__train_clock(t) - start >= limit;
}

static tarn_status compute_states(tarn_train *t, const void **rows, const tarn__loaded *loaded, bool epoch_begins) {
  TARN_TRY(tarn__features_before_batches(&t->features, epoch_begins));
  t->batch = loaded->number;
  TARN_TRY(tarn__stepper_states(&t->stepper, rows, &loaded->batch));
  return tarn__train_check_data(t);
}

static tarn_status check_stop(const tarn_train *t, bool stop) {
  TARN_REQUIRE(
      !stop, INTERRUPTED,
      "stopped in the pass over the data, of which nothing is kept; begin it anew with: tarn train --resume %s",
      t->go_on);
  return TARN_STATUS_OK;
}

// Processes the batches of the epoch, or as many as train.max_minutes allows.
static tarn_status add_epoch(readout *r, tarn_train *t, tarn__progress *next) {
  const double start = tarn__train_clock(t);
  const int64_t epoch = next->epoch;
  do {
    const void *rows;
    TARN_TRY(check_stop(t, t->stop && *t->stop));
    const tarn__loaded *loaded = tarn__loader_next(t->loader);
    TARN_TRY(compute_states(t, &rows, loaded, next->index == 0));
    TARN_TRY(add_batch(r, rows, &loaded->batch, r->most - r->held));
    tarn__features_advance(&t->features);
    next->batches++;
    next->target_tokens += loaded->batch.predictions;
    next->window_target += loaded->batch.predictions;
    next->epoch = loaded->next_epoch;
    next->index = loaded->next_index;
    t->epoch_batches = loaded->next_batches;
  } while (next->epoch == epoch && !late(t, start));
  return TARN_STATUS_OK;
}

// --- several ranks: each adds its batches, numbered as on one rank, and rank 0 receives the held-out rows ---

// A rank's message about its batch, if it has one.
typedef struct told {
  int64_t sentences, predictions;
  int64_t epoch, index, batches;  // position after it
  int64_t ended, stop, late;      // it has no more batches in the epoch; whether to stop
} told;

static tarn_status tell(const readout *r, told *all, const tarn_train *t, const tarn__loaded *loaded, double start,
                        bool ended, int64_t epoch) {
  const bool works = !ended && loaded->batch.target.sentences > 0;
  told own = {.ended = ended, .stop = t->stop && *t->stop, .late = late(t, start)};
  if (works) own.sentences = loaded->batch.target.sentences;
  if (works) own.predictions = loaded->batch.predictions;
  if (loaded) {
    own.epoch = loaded->next_epoch;
    own.index = loaded->next_index;
    own.batches = loaded->next_batches;
    own.ended = own.epoch != epoch;
  }
  return tarn__comm_gather(r->share.comm, all, &own, sizeof own);
}

// The number of rows this rank may hold out of its batch: those left by the ranks before it. `first` is the number of
// its first sentence. *held: total of all ranks after the round.
static tarn_status find_room(readout *r, int64_t *room, int64_t *held, const tarn__batch *batch, int64_t first) {
  tarn__comm *comm = r->share.comm;
  void *memory;
  int64_t wanted = 0;
  for (int64_t s = 0; batch && s < batch->target.sentences; s++)
    if (kept_out(first + s)) wanted += batch->target.offsets[s + 1] - batch->target.offsets[s];
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)comm->size, sizeof wanted));
  int64_t *all = memory;
  const tarn_status status = tarn__comm_gather(comm, all, &wanted, sizeof wanted);
  for (int q = 0; q < comm->size && status == TARN_STATUS_OK; q++) {
    if (q == comm->rank) *room = r->most - *held;
    *held = *held + all[q] < r->most ? *held + all[q] : r->most;
  }
  tarn__free(memory);
  return status;
}

// Sends the rows held out by this rank.
static tarn_status put_held(readout *r) {
  tarn__buffer *answer = tarn__share_answer(&r->share);
  tarn__host_room room = {0};
  void *states;
  const size_t bytes = (size_t)(r->held * r->width) * tarn__dtype_size(r->dtype);
  tarn__share_put(answer, &r->held, 1, sizeof r->held);
  if (r->held == 0) return TARN_STATUS_OK;
  const tarn_status status = tarn__device_read(r->device, &states, r->states, bytes, &room);
  if (status == TARN_STATUS_OK) tarn__share_put(answer, states, (int64_t)bytes, 1);
  tarn__share_put(answer, r->targets, r->held, sizeof *r->targets);
  tarn__host_room_close(&room);
  return status;
}

static tarn_status take_held(readout *r, tarn__share_reader *from) {
  const int64_t *rows;
  const char *states;
  const int32_t *targets;
  const size_t row_bytes = (size_t)r->width * tarn__dtype_size(r->dtype);
  TARN_TRY(tarn__share_take(&rows, from, 1, sizeof *rows));
  if (*rows == 0) return TARN_STATUS_OK;
  const size_t bytes = (size_t)*rows * row_bytes;
  TARN_TRY(tarn__share_take(&states, from, (int64_t)bytes, 1));
  TARN_TRY(tarn__share_take(&targets, from, *rows, sizeof *targets));
  TARN_TRY(tarn__device_put(r->device, (char *)r->states + (size_t)r->held * row_bytes, states, bytes));
  memcpy(r->targets + r->held, targets, (size_t)*rows * sizeof *targets);
  r->held += *rows;
  return TARN_STATUS_OK;
}

// Rank 0 keeps the earlier rows and its own; the others keep nothing between rounds.
static tarn_status collect_held(readout *r) {
  tarn__comm *comm = r->share.comm;
  tarn__buffer_reset(tarn__share_answer(&r->share));
  if (comm->rank > 0) TARN_TRY(put_held(r));
  TARN_TRY(tarn__share_collect(&r->share));
  for (int q = 1; q < comm->size && comm->rank == 0; q++) TARN_TRY(take_held(r, &r->share.readers[q]));
  if (comm->rank > 0) r->held = 0;
  return TARN_STATUS_OK;
}

// Processes a batch of each rank that has one. *ended: this rank has no more batches.
static tarn_status add_round(readout *r, told *all, tarn_train *t, tarn__progress *next, double start, bool *ended,
                             int64_t *held) {
  const tarn__comm *comm = r->share.comm;
  const tarn__loaded *loaded = *ended ? NULL : tarn__loader_next(t->loader);
  const bool works = loaded && loaded->batch.target.sentences > 0;
  const void *rows = NULL;
  int64_t first = r->sentences, room = 0;
  if (works) TARN_TRY(compute_states(t, &rows, loaded, next->index == 0));
  TARN_TRY(tell(r, all, t, loaded, start, *ended, next->epoch));
  for (int q = 0; q < comm->size; q++) TARN_TRY(check_stop(t, all[q].stop != 0));
  for (int q = 0; q < comm->rank; q++) first += all[q].sentences;
  TARN_TRY(find_room(r, &room, held, works ? &loaded->batch : NULL, first));
  r->sentences = first;
  if (works) TARN_TRY(add_batch(r, rows, &loaded->batch, room));
  if (works) tarn__features_advance(&t->features);
  for (int q = comm->rank + 1; q < comm->size; q++) r->sentences += all[q].sentences;
  for (int q = 0; q < comm->size; q++) {
    next->batches += all[q].sentences > 0;
    next->target_tokens += all[q].predictions;
    next->window_target += all[q].predictions;
  }
  *ended = all[comm->rank].ended != 0;
  return collect_held(r);
}

// As add_epoch(). Rank 0 determines the position, because no rank has more batches, and the clock.
static tarn_status share_epoch(readout *r, tarn_train *t, tarn__progress *next) {
  const double start = tarn__train_clock(t);
  void *memory;
  int64_t held = 0;
  bool ended = false;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)r->share.comm->size, sizeof(told)));
  told *all = memory;
  tarn_status status = TARN_STATUS_OK;
  do {
    status = add_round(r, all, t, next, start, &ended, &held);
    next->index = all[0].index;
  } while (status == TARN_STATUS_OK && !all[0].ended && !all[0].late);
  next->epoch = all[0].epoch;
  t->epoch_batches = all[0].batches;
  tarn__free(memory);
  return status;
}

enum { SUMMED = 1 << 16 };  // numbers at a time: every rank has a buffer of this size for each rank

static tarn_status sum_over_ranks(void *user, double *numbers, int64_t count) {
  for (int64_t at = 0; at < count; at += SUMMED)
    TARN_TRY(tarn__comm_sum_doubles(user, numbers + at, count - at < SUMMED ? count - at : SUMMED));
  return TARN_STATUS_OK;
}

static tarn_status share_sums(readout *r) {
  TARN_TRY(tarn__ridge_change(&r->sums, sum_over_ranks, r->share.comm));
  double count = (double)r->sums.count;
  TARN_TRY(tarn__comm_sum_doubles(r->share.comm, &count, 1));
  r->sums.count = (int64_t)count;
  return TARN_STATUS_OK;
}

static tarn_status add_held(readout *r) {
  return tarn__ridge_add_rows(&r->sums, r->states, r->dtype, 0, r->held, r->targets);
}

// The frequency of a token in the samples of the last regression.
static double share_of(const readout *r, int64_t word) {
  return r->sums.solved_totals[r->width + word] / (double)r->sums.count;
}

// A token that does not occur counts as half an occurrence.
static tarn_status solve(readout *r, tarn_train *t) {
  tarn_status status = tarn__ridge_solve(r->weights, r->bias, &r->found->ridge, &r->sums, t->config->train.ridge);
  for (int64_t v = 0; v < r->words && status == TARN_STATUS_OK; v++)
    r->log_shares[v] = log(fmax(share_of(r, v), 0.5 / (double)r->sums.count));
  if (status != TARN_STATUS_NUMERIC) return status;
  return tarn__fail(
      status,
      "the states cannot be summed or their sums not be solved; states of an echo state network explode if "
      "its spectral_radius is too large. The checkpoint of before is %s",
      t->dir.last);
}

static double state_at(const readout *r, const void *states, int64_t at) {
  if (r->dtype == TARN__F32) return (double)((const float *)states)[at];
  return (double)tarn__bf16_to_f32(((const uint16_t *)states)[at]);
}

// `states` is in host memory.
static void set_gaps(readout *r, const void *states) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < r->held; i++) {
    double *gap = r->gaps + i * r->words;
    for (int64_t v = 0; v < r->words; v++) gap[v] = r->bias[v] - share_of(r, v);
    for (int64_t k = 0; k < r->width; k++) {
      const double x = state_at(r, states, i * r->width + k), *row = r->weights + k * r->words;
      for (int64_t v = 0; v < r->words; v++) gap[v] += x * row[v];
    }
  }
}

static tarn_status find_gaps(readout *r) {
  tarn__host_room room = {0};
  void *states;
  const size_t bytes = (size_t)(r->held * r->width) * tarn__dtype_size(r->dtype);
  tarn_status status = tarn__device_read(r->device, &states, r->states, bytes, &room);
  if (status == TARN_STATUS_OK) set_gaps(r, states);
  tarn__host_room_close(&room);
  return status;
}

// Converts log p + s (W h + b - p) / p^a to a matrix and a bias.
static tarn_status set_output(readout *r, const tarn__model *model, const tarn__calibration *c) {
  for (int64_t v = 0; v < r->words; v++) {
    const double factor = c->scale * exp(-c->power * r->log_shares[v]);
    for (int64_t k = 0; k < r->width; k++) r->values[v * r->width + k] = (float)(factor * r->weights[k * r->words + v]);
    r->bias[v] = r->log_shares[v] + factor * (r->bias[v] - share_of(r, v));
  }
  TARN_TRY(tarn__param_set(model->weights.output_table, r->values));
  for (int64_t v = 0; v < r->words; v++) r->values[v] = (float)r->bias[v];
  return tarn__param_set(model->weights.output_bias, r->values);
}

static tarn_status compute(readout *r, tarn_train *t, tarn__calibration *c) {
  // With very little text, the held-out sentences are also those of the regression.
  const bool apart = r->sums.count + r->sums.waiting_count > 0;
  if (!apart) TARN_TRY(add_held(r));
  TARN_TRY(solve(r, t));
  TARN_TRY(find_gaps(r));
  const tarn__calibration_data data = {.gaps = r->gaps,
                                       .log_shares = r->log_shares,
                                       .targets = r->targets,
                                       .rows = r->held,
                                       .words = r->words,
                                       .smoothing = t->config->train.label_smoothing};
  TARN_TRY(tarn__calibrate(c, &data));
  r->found->power = c->power;
  r->found->scale = c->scale;
  r->found->held = r->held;
  if (apart) {
    TARN_TRY(add_held(r));
    TARN_TRY(solve(r, t));
  }
  return set_output(r, t->model, c);
}

// Distributes the result of rank 0.
static tarn_status share_output(tarn_train *t, tarn__calibration *c) {
  TARN_TRY(tarn__comm_broadcast(t->comm, c, sizeof *c));
  return tarn__train_share_values(t);
}

// One pass over an epoch, after which the output layer is computed. Counts as one update. Loss and nll are those of the
// sentences used to fit its scale. Fails with INTERRUPTED, leaving everything unchanged, NUMERIC or MEMORY.
static tarn_status update(tarn_train *t, void *state, tarn__train_update_result *result) {
  const double begin = tarn__profile_clock(t->profile), start = tarn__train_clock(t);
  tarn__cost_begin(t);
  tarn__progress next = t->progress;
  tarn__calibration c = {0};
  readout r;
  tarn_status status = open_readout(&r, t->model, t->comm);
  r.found = state;
  if (status == TARN_STATUS_OK) status = (r.share.comm ? share_epoch : add_epoch)(&r, t, &next);
  if (status == TARN_STATUS_OK && r.share.comm) status = share_sums(&r);
  if (status == TARN_STATUS_OK && t->comm->rank == 0) status = compute(&r, t, &c);
  if (status == TARN_STATUS_OK && r.share.comm) status = share_output(t, &c);
  close_readout(&r);
  TARN_TRY(status);
  const double seconds = tarn__train_clock(t) - start;
  next.update++;
  next.window_updates++;
  next.loss_sum = c.loss * (double)next.window_target;
  next.nll_sum = c.nll * (double)next.window_target;
  next.seconds += seconds;
  next.window_seconds += seconds;
  tarn__cost_end(t, &next, false);
  t->progress = next;
  *result = (tarn__train_update_result){.loss = c.loss, .nll = c.nll};
  return tarn__profile_work(t->profile, "readout", begin);
}

// --- the feature

static bool wanted(const tarn_config *config) { return config->train.optimiser == TARN_OPTIMISER_RIDGE; }

// The sums of the closed form are in the optimiser's column of the output layer.
static void plan(tarn_plan *out, const tarn__plan_use *use) {
  const size_t bytes = tarn__readout_bytes(use->model);
  for (size_t i = 0; i < out->part_count; i++)
    if (strcmp(out->parts[i].label, "output") == 0) out->parts[i].optimiser_bytes += bytes;
  out->optimiser_bytes += bytes;
  out->total_bytes += bytes;
}

static bool over(const tarn_train *t, tarn_train_end *end) {
  *end = t->progress.epoch > 0 ? TARN_TRAIN_END_PASS : TARN_TRAIN_END_MINUTES;
  return t->progress.update > 0;
}

static bool add_to_log(const tarn_train *t, const void *state, json_t *record) {
  const tarn__readout *r = state;
  (void)t;
  return json_object_set_new(record, "ridge", json_real(r->ridge)) == 0 &&
         json_object_set_new(record, "power", json_real(r->power)) == 0 &&
         json_object_set_new(record, "scale", json_real(r->scale)) == 0 &&
         json_object_set_new(record, "held", json_integer(r->held)) == 0;
}

extern const tarn__feature tarn__feature_ridge;
const tarn__feature tarn__feature_ridge = {.name = "ridge",
                                           .state_bytes = sizeof(tarn__readout),
                                           .wanted = wanted,
                                           .needs_gradients = true,
                                           .check_model = tarn__readout_check,
                                           .plan = plan,
                                           .update = update,
                                           .over = over,
                                           .log = add_to_log};
