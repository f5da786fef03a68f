#include "dist/optim_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/config_ridge.h"
#include "task/bands.h"

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static int64_t size_of(const tarn__param *param) { return param->trained ? param->rows * param->cols : 0; }

// Tables with known used rows (tarn__param_training.used_rows), as decided by the model.
static bool has_rows(const tarn__model *model, const tarn__param *param) {
  return tarn__weights_look_up(&model->weights, param) || param->out == 1;
}

// The unit of a part: whole rows of tables, and always what moments can be divided into.
static int64_t unit_of(const tarn__model *model, const tarn__param *param) {
  enum { LEAST = 32 };
  const int64_t block = tarn__moment_divisor(tarn__model_moments(model, param));
  if (!has_rows(model, param)) return block > LEAST ? block : LEAST;
  int64_t rows = 1;
  while (rows * param->cols % block != 0) rows *= 2;
  return rows * param->cols;
}

// Bytes of optimiser state of so many elements.
static int64_t state_bytes(const tarn__model *model, const tarn__param *param, int64_t count) {
  const size_t sum = tarn__model_sums(model, param) ? sizeof(float) : 0;
  return (int64_t)(2 * tarn__moment_bytes(tarn__model_moments(model, param), (size_t)count) + (size_t)count * sum);
}

// A rank's load so far.
typedef struct load {
  int64_t held;  // bytes
  int rank;
} load;

static int by_held(const void *a, const void *b) {
  const load *x = a, *y = b;
  if (x->held != y->held) return x->held < y->held ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_rank(const void *a, const void *b) {
  const load *x = a, *y = b;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

// Each rank gets equally many units, and those with the smallest load one more until all are distributed.
static void cut(const tarn__optim_parts *parts, size_t index, load *loads) {
  const tarn__param *param = tarn__model_param(parts->model, index);
  const int ranks = parts->ranks;
  int64_t *ends = parts->ends + index * (size_t)ranks;
  const int64_t size = size_of(param), unit = unit_of(parts->model, param);
  const int64_t units = (size + unit - 1) / unit, each = units / ranks, left = units % ranks;
  qsort(loads, (size_t)ranks, sizeof *loads, by_held);
  for (int k = 0; k < ranks; k++) ends[loads[k].rank] = each + (k < left);
  qsort(loads, (size_t)ranks, sizeof *loads, by_rank);
  int64_t at = 0;
  for (int r = 0; r < ranks; r++) {
    const int64_t wanted = at + ends[r] * unit, end = wanted < size ? wanted : size;
    loads[r].held += state_bytes(parts->model, param, end - at);
    ends[r] = at = end;
  }
}

static tarn_status cut_all(tarn__optim_parts *parts) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)parts->ranks, sizeof(load)));
  load *loads = memory;
  for (int r = 0; r < parts->ranks; r++) loads[r].rank = r;
  for (size_t i = 0; i < parts->count; i++) cut(parts, i, loads);
  tarn__free(loads);
  return TARN_STATUS_OK;
}

tarn__optim_range tarn__optim_part_of(const tarn__optim_parts *parts, size_t index, int rank) {
  const int64_t *ends = parts->ends + index * (size_t)parts->ranks;
  const int64_t first = rank > 0 ? ends[rank - 1] : 0;
  return (tarn__optim_range){first, ends[rank] - first};
}

int64_t tarn__optim_part_end(const tarn__optim_parts *parts, size_t index, int rank) {
  return parts->ends[index * (size_t)parts->ranks + (size_t)rank];
}

// A part copies the description of the whole parameter; tables stay tables.
static void describe(tarn__optim_parts *parts, size_t index) {
  const tarn__param *whole = tarn__model_param(parts->model, index);
  const tarn__optim_range range = tarn__optim_part_of(parts, index, parts->rank);
  const bool table = has_rows(parts->model, whole);
  tarn__param *part = &parts->own[index];
  *part = *whole;
  part->rows = table ? range.count / whole->cols : 1;
  part->cols = table ? whole->cols : range.count;
  part->training = (tarn__param_training){.moments = tarn__model_moments(parts->model, whole), .first = range.first};
  part->training.number = (uint32_t)index;
  parts->list[index] = part;
}

tarn_status tarn__optim_parts_open(tarn__optim_parts *parts, const tarn__model *model, int rank, int ranks) {
  void *ends, *own, *list;
  *parts = (tarn__optim_parts){
      .model = model, .rank = rank, .ranks = ranks, .count = model->param_count + model->helper_count};
  TARN_TRY(tarn__alloc(&ends, TARN__MEMORY_OTHER, parts->count * (size_t)ranks, sizeof *parts->ends));
  parts->ends = ends;
  tarn_status status = tarn__alloc(&own, TARN__MEMORY_OTHER, parts->count, sizeof *parts->own);
  if (status == TARN_STATUS_OK) parts->own = own;
  if (status == TARN_STATUS_OK) status = tarn__alloc(&list, TARN__MEMORY_OTHER, parts->count, sizeof *parts->list);
  if (status == TARN_STATUS_OK) parts->list = list;
  if (status == TARN_STATUS_OK) status = cut_all(parts);
  for (size_t i = 0; i < parts->count && status == TARN_STATUS_OK; i++) describe(parts, i);
  if (status != TARN_STATUS_OK) tarn__optim_parts_close(parts);
  return status;
}

void tarn__optim_parts_close(tarn__optim_parts *parts) {
  if (parts->masters) tarn__device_free(parts->model->device, parts->masters);
  if (parts->moments) tarn__device_free(parts->model->device, parts->moments);
  tarn__free(parts->ends);
  tarn__free(parts->own);
  tarn__free(parts->list);
  *parts = (tarn__optim_parts){0};
}

static size_t moment_bytes(const tarn__optim_parts *parts, size_t index, int rank) {
  const size_t count = (size_t)tarn__optim_part_of(parts, index, rank).count;
  return aligned(tarn__moment_bytes(tarn__model_moments(parts->model, tarn__model_param(parts->model, index)), count));
}

static size_t sum_bytes(const tarn__optim_parts *parts, size_t index, int rank) {
  if (!tarn__model_sums(parts->model, tarn__model_param(parts->model, index))) return 0;
  return aligned((size_t)tarn__optim_part_of(parts, index, rank).count * sizeof(float));
}

static size_t master_bytes(const tarn__optim_parts *parts, size_t index, int rank) {
  if (tarn__model_param(parts->model, index)->dtype != TARN__BF16) return 0;
  return aligned((size_t)tarn__optim_part_of(parts, index, rank).count * sizeof(float));
}

size_t tarn__optim_parts_moments(const tarn__optim_parts *parts, int rank) {
  size_t bytes = 0;
  for (size_t i = 0; i < parts->count; i++) bytes += 2 * moment_bytes(parts, i, rank) + sum_bytes(parts, i, rank);
  return bytes;
}

size_t tarn__optim_parts_masters(const tarn__optim_parts *parts, int rank) {
  size_t bytes = 0;
  for (size_t i = 0; i < parts->count; i++) bytes += master_bytes(parts, i, rank);
  return bytes;
}

static void *value_at(const tarn__param *param, int64_t first) {
  return (char *)param->value + (size_t)first * tarn__dtype_size(param->dtype);
}

tarn_status tarn__optim_parts_take(tarn__optim_parts *parts) {
  const tarn__device *device = parts->model->device;
  const int rank = parts->rank;
  TARN_TRY(
      tarn__device_allocate(device, &parts->masters, TARN__MEMORY_TRAINED, tarn__optim_parts_masters(parts, rank), 1));
  TARN_TRY(tarn__device_allocate(device, &parts->moments, TARN__MEMORY_OPTIMISER,
                                 tarn__optim_parts_moments(parts, rank), 1));
  char *master = parts->masters, *moment = parts->moments;
  for (size_t i = 0; i < parts->count; i++) {
    tarn__param *whole = tarn__model_param(parts->model, i), *part = &parts->own[i];
    if (!whole->trained) continue;
    const size_t bytes = moment_bytes(parts, i, rank), sum = sum_bytes(parts, i, rank);
    part->device = whole->device;
    part->value = value_at(whole, part->training.first);
    part->training.master = whole->dtype == TARN__BF16 ? (float *)(void *)master : part->value;
    master += master_bytes(parts, i, rank);
    part->training.moment1 = moment;
    part->training.moment2 = moment + bytes;
    moment += 2 * bytes;
    if (tarn__model_sums(parts->model, whole)) part->training.grad_sum = (float *)(void *)moment;
    moment += sum;
    whole->training.moments = part->training.moments;
    whole->training.number = part->training.number;
    whole->training.part = part;
  }
  return TARN_STATUS_OK;
}

void tarn__optim_parts_refresh(tarn__optim_parts *parts) {
  for (size_t i = 0; i < parts->count; i++) {
    const tarn__param *whole = tarn__model_param(parts->model, i);
    tarn__param *part = &parts->own[i];
    const int64_t first = part->training.first;
    if (!whole->trained) continue;
    part->stopped = whole->stopped;
    part->training.grad_written = whole->training.grad_written;
    part->training.grad = (float *)whole->training.grad + first;
    part->training.used_rows = whole->training.used_rows ? whole->training.used_rows + first / whole->cols : NULL;
  }
}

// The rank with the largest peak counts.
static void lower(size_t *bytes, const tarn__optim_parts *parts, size_t whole,
                  size_t (*of)(const tarn__optim_parts *parts, int rank), size_t *total) {
  size_t most = 0;
  for (int r = 0; r < parts->ranks; r++)
    if (of(parts, r) > most) most = of(parts, r);
  const size_t saved = most < whole ? whole - most : 0;
  *bytes -= saved;
  *total -= saved;
}

tarn_status tarn__plan_share(tarn_plan *plan, const tarn__model *model, int ranks) {
  const tarn_config_train *train = &model->config->train;
  if (!train->shard_optimiser || ranks < 2 || !tarn__config_takes_steps(model->config)) return TARN_STATUS_OK;
  tarn__optim_parts parts;
  TARN_TRY(tarn__optim_parts_open(&parts, model, 0, ranks));
  size_t moments = 0, masters = 0;
  for (size_t i = 0; i < parts.count; i++) {
    const tarn__param *param = tarn__model_param(model, i);
    if (!param->trained) continue;
    moments += 2 * tarn__model_moment_bytes(model, param) + tarn__model_sum_bytes(model, param);
    if (param->dtype == TARN__BF16) masters += aligned((size_t)size_of(param) * sizeof(float));
  }
  lower(&plan->optimiser_bytes, &parts, moments, tarn__optim_parts_moments, &plan->total_bytes);
  lower(&plan->trained_bytes, &parts, masters, tarn__optim_parts_masters, &plan->total_bytes);
  for (size_t p = 0; p < plan->part_count; p++)
    plan->parts[p].optimiser_bytes = (plan->parts[p].optimiser_bytes + (size_t)ranks - 1) / (size_t)ranks;
  tarn__optim_parts_close(&parts);
  return TARN_STATUS_OK;
}
