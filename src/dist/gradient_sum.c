#include "dist/gradient_sum.h"

#include <string.h>

#include "base/memory.h"
#include "device/transfer.h"

// Elements worth a call, and the memory of a communicator's rooms (comm_mpi.c).
enum { MOST = 1 << 20, ROOMS = 3 << 20 };

static size_t count_params(const tarn__model *model) { return model->param_count + model->helper_count; }

static int64_t size_of(const tarn__param *param) { return param->rows * param->cols; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Extents of a model's parameters: their number, the most rows and elements of one, and bytes of bits for each
// parameter or each row of one.
typedef struct extent {
  size_t params;
  int64_t rows, elements;
  size_t bits;
} extent;

static extent measure(const tarn__model *model) {
  extent all = {.params = count_params(model)};
  for (size_t i = 0; i < all.params; i++) {
    const tarn__param *param = tarn__model_param(model, i);
    if (!param->trained) continue;
    all.rows = larger(all.rows, param->rows);
    all.elements = larger(all.elements, size_of(param));
  }
  all.bits = (size_t)(larger(all.rows, (int64_t)all.params) + 7) / 8;
  return all;
}

// A table's used rows form at most a span for every other row, plus one at the end of a part.
static size_t most_spans(const extent *all, int ranks) { return (all->params + 1) * (size_t)ranks + (size_t)all->rows; }

static int64_t room_of(const tarn__model *model, const extent *all) {
  return tarn__device_is_host(model->device) ? 0 : larger(MOST, all->elements);
}

static size_t own_bytes(const tarn__model *model, const extent *all, int ranks) {
  return most_spans(all, ranks) * sizeof(tarn__comm_span) + (size_t)ranks * sizeof(int64_t) +
         (size_t)room_of(model, all) * sizeof(float) + all->params + (size_t)all->rows +
         all->bits * (size_t)(ranks + 1);
}

size_t tarn__gradient_sum_bytes(const tarn__model *model, int ranks) {
  const extent all = measure(model);
  return ranks > 1 ? own_bytes(model, &all, ranks) + ROOMS : 0;
}

tarn_status tarn__gradient_sum_open(tarn__gradient_sum *sum, tarn__comm *comm, const tarn__model *model,
                                    const tarn__optim_parts *parts) {
  *sum = (tarn__gradient_sum){.comm = comm, .model = model, .parts = parts, .most = MOST};
  if (comm->size == 1) return TARN_STATUS_OK;
  const extent all = measure(model);
  TARN_TRY(tarn__alloc(&sum->memory, TARN__MEMORY_OTHER, own_bytes(model, &all, comm->size), 1));
  sum->room_count = tarn__comm_reaches(comm, model->device) ? 0 : room_of(model, &all);
  sum->spans = sum->memory;
  sum->numbers = (int64_t *)(sum->spans + most_spans(&all, comm->size));
  sum->room = (float *)(sum->numbers + comm->size);
  sum->written = (uint8_t *)(sum->room + sum->room_count);
  sum->used = sum->written + all.params;
  sum->bits = sum->used + all.rows;
  return TARN_STATUS_OK;
}

void tarn__gradient_sum_close(tarn__gradient_sum *sum) {
  tarn__free(sum->memory);
  *sum = (tarn__gradient_sum){0};
}

// --- what some rank has written ---

// flags [count]: whether they are set on any rank.
static tarn_status share_flags(const tarn__gradient_sum *sum, uint8_t *flags, size_t count) {
  const size_t bytes = (count + 7) / 8;
  uint8_t *own = sum->bits, *all = own + bytes;
  memset(own, 0, bytes);
  for (size_t i = 0; i < count; i++) own[i / 8] = (uint8_t)(own[i / 8] | (flags[i] != 0) << i % 8);
  TARN_TRY(tarn__comm_gather(sum->comm, all, own, bytes));
  memset(flags, 0, count);
  for (int r = 0; r < sum->comm->size; r++, all += bytes)
    for (size_t i = 0; i < count; i++) flags[i] |= all[i / 8] >> i % 8 & 1;
  return TARN_STATUS_OK;
}

static bool was_written(const tarn__param *param) { return tarn__param_learns(param) && param->training.grad_written; }

static tarn_status clear(const tarn__gradient_sum *sum, const tarn__param *param, int64_t first, int64_t count) {
  return param->device->type->fill(param->device, sum->stream, (float *)param->training.grad + first, 0,
                                   (size_t)count * sizeof(float));
}

// sum->used: the rows used by some rank, without those of earlier updates.
static tarn_status share_rows(const tarn__gradient_sum *sum, const tarn__param *param) {
  const size_t rows = (size_t)param->rows;
  const tarn__device *device = param->device;
  TARN_TRY(device->type->copy_out(device, sum->stream, sum->used, param->training.used_rows, rows));
  for (int64_t row = 0; row < param->rows && !param->training.grad_written; row++) {
    if (sum->used[row]) TARN_TRY(clear(sum, param, row * param->cols, param->cols));
    sum->used[row] = 0;
  }
  TARN_TRY(share_flags(sum, sum->used, rows));
  return device->type->copy_in(device, sum->stream, param->training.used_rows, sum->used, rows);
}

// A gradient written by one rank counts as written on all, with zeros on the others.
static tarn_status share_written(const tarn__gradient_sum *sum, tarn__param *param) {
  if (param->training.used_rows)
    TARN_TRY(share_rows(sum, param));
  else if (!param->training.grad_written)
    TARN_TRY(clear(sum, param, 0, size_of(param)));
  param->training.grad_written = true;
  return TARN_STATUS_OK;
}

// --- what travels: parameters [end, begin), the last one first, as backward passes have done with them ---

// The next elements of a parameter to be sent, from *at on and before `end`; false at the end.
static bool next_piece(tarn__optim_range *piece, const tarn__gradient_sum *sum, const tarn__param *param, int64_t *at,
                       int64_t end) {
  int64_t first = *at, stop = end;
  if (param->training.used_rows && first < end) {
    int64_t row = first / param->cols;
    while (row < param->rows && !sum->used[row]) row++;
    first = larger(first, row * param->cols);
    while (row < param->rows && sum->used[row]) row++;
    if (row * param->cols < stop) stop = row * param->cols;
  }
  *at = stop;
  *piece = (tarn__optim_range){first, stop - first};
  return first < end;
}

// Lists the spans of all ranks' parts, in order. If the device has separate memory they pass through the buffer, unless
// the communicator reaches that memory.
static void list_spans(const tarn__gradient_sum *sum, size_t begin, size_t end) {
  tarn__comm_span *span = sum->spans;
  float *room = sum->room;
  const bool apart = !tarn__device_is_host(sum->model->device), copied = sum->room_count > 0;
  tarn__optim_range piece;
  for (int r = 0; r < sum->comm->size; r++) {
    sum->numbers[r] = 0;
    for (size_t i = begin; i-- > end;) {
      const tarn__param *param = tarn__model_param(sum->model, i);
      const tarn__optim_range part = tarn__optim_part_of(sum->parts, i, r);
      for (int64_t at = part.first; sum->written[i] && next_piece(&piece, sum, param, &at, part.first + part.count);) {
        float *values = (float *)param->training.grad + piece.first;
        void *here = copied ? room : apart ? NULL : values;
        *span++ = (tarn__comm_span){.values = here, .count = piece.count, .there = apart ? values : NULL};
        sum->numbers[r]++;
        room += copied ? piece.count : 0;
      }
    }
  }
}

static tarn_status sum_some(const tarn__gradient_sum *sum, size_t begin, size_t end) {
  const tarn__comm_place place = {sum->model->device, sum->stream};
  list_spans(sum, begin, end);
  return tarn__comm_sum_spans(sum->comm, &place, sum->spans, sum->numbers, sum->model->config->train.reduce,
                              !sum->model->shares_optimiser);
}

// The end of the parameters of one call: a table with separate rows alone, others until they are enough.
static size_t next_end(const tarn__gradient_sum *sum, size_t begin) {
  int64_t elements = 0;
  size_t end = begin;
  while (end > 0) {
    const tarn__param *param = tarn__model_param(sum->model, end - 1);
    if (end < begin && param->training.used_rows) break;
    if (sum->written[end - 1]) elements += size_of(param);
    if (end < begin && elements > sum->most) break;
    end--;
    if (param->training.used_rows) break;
  }
  return end;
}

// Whether gradients [end, begin) are complete.
static bool wait_at(const tarn__gradient_gate *gate, size_t begin, size_t end) {
  size_t nodes = 0;
  for (size_t i = end; gate && i < begin; i++)
    if (gate->last[i] > nodes) nodes = gate->last[i];
  return !gate || gate->wait(gate->user, nodes);
}

void tarn__gradient_sum_begin(tarn__gradient_sum *sum, const tarn__gradient_gate *gate) {
  for (size_t i = 0; sum->comm->size > 1 && i < count_params(sum->model); i++) {
    const tarn__param *param = tarn__model_param(sum->model, i);
    sum->written[i] = was_written(param) || (gate && gate->last[i] > 0 && tarn__param_learns(param));
  }
}

tarn_status tarn__gradient_sum_run(tarn__gradient_sum *sum) {
  tarn__gradient_sum_begin(sum, NULL);
  return tarn__gradient_sum_through(sum, NULL);
}

tarn_status tarn__gradient_sum_through(tarn__gradient_sum *sum, const tarn__gradient_gate *gate) {
  if (sum->comm->size == 1) return TARN_STATUS_OK;
  const size_t count = count_params(sum->model);
  const int64_t before = sum->comm->traffic.summed;
  TARN_TRY(share_flags(sum, sum->written, count));
  for (size_t begin = count, end; begin > 0; begin = end) {
    end = next_end(sum, begin);
    if (!wait_at(gate, begin, end)) return TARN_STATUS_OK;
    for (size_t i = begin; i-- > end;)
      if (sum->written[i]) TARN_TRY(share_written(sum, tarn__model_param(sum->model, i)));
    TARN_TRY(sum_some(sum, begin, end));
  }
  sum->payload = sum->comm->traffic.summed - before;
  return TARN_STATUS_OK;
}
