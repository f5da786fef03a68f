#include "dist/optim_share.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "config/config_ridge.h"
#include "device/transfer.h"
#include "optim/adam.h"

// Bytes sent at a time by all ranks, and minimum per rank: few calls, and little memory.
enum { ALL = 4 << 20, LEAST = 64 << 10 };

// The position of a walk over the values of a rank's parts.
struct tarn__optim_place {
  size_t param, at, left;  // bytes of the part already passed, and of all remaining parts
};

bool tarn__optim_shares(const tarn_config *config, int ranks) {
  return ranks > 1 && config->train.shard_optimiser && tarn__config_takes_steps(config);
}

static size_t each_of(int ranks) {
  const size_t each = (size_t)(ALL / ranks) & ~(size_t)63;
  return each > LEAST ? each : LEAST;
}

size_t tarn__optim_share_bytes(const tarn_config *config, int ranks) {
  const size_t place = sizeof(int64_t) + sizeof(struct tarn__optim_place);
  return tarn__optim_shares(config, ranks) ? (each_of(ranks) + place) * (size_t)ranks + sizeof(int64_t) : 0;
}

tarn_status tarn__optim_share_open(tarn__optim_share *share, tarn__comm *comm, const tarn__model *model) {
  *share = (tarn__optim_share){.comm = comm, .shares = model->shares_optimiser};
  if (comm->size == 1) return TARN_STATUS_OK;
  TARN_TRY(tarn__optim_parts_open(&share->parts, model, comm->rank, comm->size));
  share->table = (tarn__param_table){.params = share->parts.list, .count = model->param_count};
  share->helpers = (tarn__param_table){.params = share->parts.list + model->param_count, .count = model->helper_count};
  if (!share->shares) return TARN_STATUS_OK;
  void *memory;
  share->each = each_of(comm->size);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, tarn__optim_share_bytes(model->config, comm->size), 1));
  share->room = memory;
  memory = share->room + share->each * (size_t)comm->size;
  share->places = memory;
  memory = share->places + comm->size;
  share->first = memory;
  return tarn__optim_parts_take(&share->parts);
}

void tarn__optim_share_close(tarn__optim_share *share) {
  if (share->parts.model) {
    tarn__param_table_close(share->parts.model->device, &share->table);
    tarn__param_table_close(share->parts.model->device, &share->helpers);
  }
  tarn__optim_parts_close(&share->parts);
  tarn__free(share->room);
  *share = (tarn__optim_share){0};
}

// Sums the ranks' values in order. One number at a time comes from each rank, so no memory is needed.
static tarn_status add_up(tarn__optim_share *share, double *values, size_t count) {
  for (size_t i = 0; i < count; i++) values[i] = values[i] * values[i];
  TARN_TRY(tarn__comm_sum_doubles(share->comm, values, (int64_t)count));
  for (size_t i = 0; i < count; i++) values[i] = sqrt(values[i]);
  return TARN_STATUS_OK;
}

tarn_status tarn__optim_share_norms(tarn__optim_share *share, double *model, double *helpers,
                                    tarn__step_numbers *numbers, int threads) {
  const tarn__device *device = share->parts.model->device;
  tarn__optim_parts_refresh(&share->parts);
  TARN_TRY(tarn__param_table_refresh(device, &share->table));
  TARN_TRY(device->type->grad_norm(device, &numbers->norm, &share->table, threads));
  TARN_TRY(tarn__param_table_refresh(device, &share->helpers));
  TARN_TRY(device->type->grad_norm(device, &numbers->helpers, &share->helpers, threads));
  double norms[2];
  TARN_TRY(tarn__device_get(device, norms, &numbers->norm, sizeof norms));
  TARN_TRY(add_up(share, norms, sizeof norms / sizeof *norms));
  *model = norms[0];
  *helpers = norms[1];
  return TARN_STATUS_OK;
}

// --- the new weights ---

// Whether a parameter's values are sent directly: large ones in the host's memory. The others are gathered in the
// buffer, to make fewer calls.
static bool is_direct(const tarn__param *param) {
  const size_t bytes = (size_t)(param->rows * param->cols) * tarn__dtype_size(param->dtype);
  return tarn__device_is_host(param->device) && bytes >= LEAST;
}

static tarn_status gather_direct(tarn__optim_share *share) {
  for (size_t i = 0; i < share->parts.count; i++) {
    const tarn__param *param = tarn__model_param(share->parts.model, i);
    if (!tarn__adam_moves(param) || !is_direct(param)) continue;
    for (int r = 0; r < share->parts.ranks; r++) share->first[r + 1] = tarn__optim_part_end(&share->parts, i, r);
    TARN_TRY(tarn__comm_all_gather(share->comm, param->value, share->first, tarn__dtype_size(param->dtype)));
  }
  return TARN_STATUS_OK;
}

static size_t value_bytes(const tarn__optim_share *share, size_t index, int rank) {
  const tarn__param *param = tarn__model_param(share->parts.model, index);
  if (!tarn__adam_moves(param) || is_direct(param)) return 0;
  return (size_t)tarn__optim_part_of(&share->parts, index, rank).count * tarn__dtype_size(param->dtype);
}

// Copies the next `bytes` of the values of a rank's parts into the buffer or out of it.
static tarn_status move(const tarn__optim_share *share, int rank, char *room, size_t bytes, bool out) {
  struct tarn__optim_place *p = &share->places[rank];
  p->left -= bytes;
  for (size_t used = 0; used < bytes;) {
    const tarn__param *param = tarn__model_param(share->parts.model, p->param);
    const size_t left = value_bytes(share, p->param, rank) - p->at, space = bytes - used;
    const size_t now = left < space ? left : space;
    const size_t first = (size_t)tarn__optim_part_of(&share->parts, p->param, rank).first;
    if (now > 0) {
      char *values = (char *)param->value + first * tarn__dtype_size(param->dtype) + p->at;
      TARN_TRY(out ? tarn__device_put(param->device, values, room + used, now)
                   : tarn__device_get(param->device, room + used, values, now));
    }
    used += now;
    p->at += now;
    if (now == left) {
      p->param++;
      p->at = 0;
    }
  }
  return TARN_STATUS_OK;
}

// The bytes of each rank in the next round; false: none.
static bool next_round(const tarn__optim_share *share) {
  for (int r = 0; r < share->parts.ranks; r++) {
    const size_t left = share->places[r].left;
    share->first[r + 1] = share->first[r] + (int64_t)(left < share->each ? left : share->each);
  }
  return share->first[share->parts.ranks] > 0;
}

tarn_status tarn__optim_share_weights(tarn__optim_share *share) {
  const int own = share->parts.rank;
  TARN_TRY(gather_direct(share));
  for (int r = 0; r < share->parts.ranks; r++) {
    share->places[r] = (struct tarn__optim_place){0};
    for (size_t i = 0; i < share->parts.count; i++) share->places[r].left += value_bytes(share, i, r);
  }
  while (next_round(share)) {
    const int64_t *first = share->first;
    TARN_TRY(move(share, own, share->room + first[own], (size_t)(first[own + 1] - first[own]), false));
    TARN_TRY(tarn__comm_all_gather(share->comm, share->room, first, 1));
    for (int r = 0; r < share->parts.ranks; r++)
      if (r != own) TARN_TRY(move(share, r, share->room + first[r], (size_t)(first[r + 1] - first[r]), true));
  }
  return TARN_STATUS_OK;
}

// --- AutoFreeze and checkpoints ---

tarn_status tarn__optim_share_absolute(tarn__optim_share *share, size_t index, double *norm) {
  const tarn__param *part = &share->parts.own[index];
  const size_t count = (size_t)tarn__optim_part_of(&share->parts, index, share->parts.rank).count;
  double *all = (double *)(void *)share->room;
  for (int r = 0; r < share->parts.ranks; r++) {
    double sum = *norm;
    if (r == share->parts.rank)
      TARN_TRY(tarn__device_absolute_sum(share->parts.model->device, &sum, part->training.grad_sum, count));
    TARN_TRY(tarn__comm_gather(share->comm, all, &sum, sizeof sum));
    *norm = all[r];
  }
  return tarn__device_fill(part->device, part->training.grad_sum, 0, count * sizeof *part->training.grad_sum);
}

static size_t array_bytes(const tarn__optim_share *share, size_t param, tarn__part_array array, int64_t count) {
  const tarn__model *model = share->parts.model;
  const bool moment = array == TARN__PART_MOMENT1 || array == TARN__PART_MOMENT2;
  return moment ? tarn__moment_bytes(tarn__model_moments(model, tarn__model_param(model, param)), (size_t)count)
                : (size_t)count * sizeof(float);
}

tarn__optim_fetch tarn__optim_share_find(const tarn__optim_share *share, size_t param, tarn__part_array array,
                                         size_t first, size_t bytes) {
  for (int r = 0; r < share->parts.ranks; r++) {
    const tarn__optim_range range = tarn__optim_part_of(&share->parts, param, r);
    const size_t begin = array_bytes(share, param, array, range.first);
    const size_t end = begin + array_bytes(share, param, array, range.count);
    if (first < begin || first >= end) continue;
    const size_t left = end - first;
    return (tarn__optim_fetch){param, first - begin, left < bytes ? left : bytes, array, r};
  }
  return (tarn__optim_fetch){0};
}

static const char *array_of(const tarn__param *part, tarn__part_array array) {
  const tarn__param_training *t = &part->training;
  const void *arrays[] = {[TARN__PART_MASTER] = t->master,
                          [TARN__PART_MOMENT1] = t->moment1,
                          [TARN__PART_MOMENT2] = t->moment2,
                          [TARN__PART_SUM] = t->grad_sum};
  return arrays[array];
}

tarn_status tarn__optim_share_fetch(tarn__optim_share *share, void *to, const tarn__optim_fetch *fetch) {
  const int rank = share->parts.rank;
  const tarn__param *part = &share->parts.own[fetch->param];
  for (size_t done = 0; done < fetch->bytes;) {
    const size_t left = fetch->bytes - done, now = left < share->each ? left : share->each;
    char *piece = rank == 0 ? (char *)to + done : share->room;
    if (rank == fetch->rank)
      TARN_TRY(tarn__device_get(part->device, piece, array_of(part, fetch->array) + fetch->first + done, now));
    if (fetch->rank > 0) TARN_TRY(tarn__comm_broadcast_from(share->comm, fetch->rank, piece, now));
    done += now;
  }
  return TARN_STATUS_OK;
}
