#include "train/gradient_sum.h"

#include "base/memory.h"
#include "device/transfer.h"

enum { ROOM = 1 << 20 };  // floats that are summed at a time: few calls, and a cache holds them

// The one place where gradients leave the parameters' memory, which is the device's, and come back.
static tarn_status take_out(float *to, const tarn__param *param, int64_t first, int64_t count) {
  return tarn__device_get(param->device, to, (const float *)param->training.grad + first, (size_t)count * sizeof *to);
}

static tarn_status put_back(const tarn__param *param, const float *from, int64_t first, int64_t count) {
  return tarn__device_put(param->device, (float *)param->training.grad + first, from, (size_t)count * sizeof *from);
}

static tarn_status clear(const tarn__param *param, int64_t first, int64_t count) {
  return tarn__device_fill(param->device, (float *)param->training.grad + first, 0, (size_t)count * sizeof(float));
}

static size_t count_params(const tarn__model *model) { return model->param_count + model->helper_count; }

// Of the parameter, then of its rows where these are told apart.
static int64_t marks_of(const tarn__param *param) { return 1 + (param->training.used_rows ? param->rows : 0); }

static int64_t count_marks(const tarn__model *model) {
  int64_t count = 0;
  for (size_t i = 0; i < count_params(model); i++) count += 1 + tarn__model_param(model, i)->rows;
  return count;
}

static size_t most_rows(const tarn__model *model) {
  int64_t most = 0;
  for (size_t i = 0; i < count_params(model); i++)
    if (tarn__model_param(model, i)->rows > most) most = tarn__model_param(model, i)->rows;
  return (size_t)most;
}

size_t tarn__gradient_sum_bytes(const tarn__model *model, int ranks) {
  return ranks > 1 ? ((size_t)count_marks(model) + ROOM) * sizeof(float) + most_rows(model) : 0;
}

tarn_status tarn__gradient_sum_open(tarn__gradient_sum *sum, tarn__comm *comm, const tarn__model *model) {
  *sum = (tarn__gradient_sum){.comm = comm, .model = model};
  if (comm->size == 1) return TARN_STATUS_OK;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, tarn__gradient_sum_bytes(model, comm->size), 1));
  sum->room = memory;
  sum->most = ROOM;
  sum->marks = sum->room + ROOM;
  sum->used = (uint8_t *)(sum->marks + count_marks(model));
  return TARN_STATUS_OK;
}

void tarn__gradient_sum_close(tarn__gradient_sum *sum) {
  tarn__free(sum->room);
  *sum = (tarn__gradient_sum){0};
}

static tarn_status mark(tarn__gradient_sum *sum) {
  float *at = sum->marks;
  for (size_t i = 0; i < count_params(sum->model); i++) {
    const tarn__param *param = tarn__model_param(sum->model, i);
    const bool written = tarn__param_learns(param) && param->training.grad_written;
    *at++ = written ? 1.0f : 0.0f;
    if (param->training.used_rows && written)
      TARN_TRY(tarn__device_get(param->device, sum->used, param->training.used_rows, (size_t)param->rows));
    for (int64_t row = 1; row < marks_of(param); row++) *at++ = written && sum->used[row - 1] ? 1.0f : 0.0f;
  }
  sum->mark_count = at - sum->marks;
  return TARN_STATUS_OK;
}

// Rows that some rank used: what lies there from an earlier update is none of this one's.
static tarn_status share_rows(const tarn__gradient_sum *sum, const tarn__param *param, const float *used) {
  TARN_TRY(tarn__device_get(param->device, sum->used, param->training.used_rows, (size_t)param->rows));
  for (int64_t row = 0; row < param->rows; row++) {
    if (sum->used[row] && !param->training.grad_written) TARN_TRY(clear(param, row * param->cols, param->cols));
    sum->used[row] = used[row] > 0;
  }
  return tarn__device_put(param->device, param->training.used_rows, sum->used, (size_t)param->rows);
}

// What one rank wrote, all have written: the others zeros.
static tarn_status share_marks(const tarn__gradient_sum *sum) {
  const float *at = sum->marks;
  for (size_t i = 0; i < count_params(sum->model); i++) {
    tarn__param *param = tarn__model_param(sum->model, i);
    const float *marks = at;
    at += marks_of(param);
    if (marks[0] <= 0) continue;
    if (param->training.used_rows)
      TARN_TRY(share_rows(sum, param, marks + 1));
    else if (!param->training.grad_written)
      TARN_TRY(clear(param, 0, param->rows * param->cols));
    param->training.grad_written = true;
  }
  return TARN_STATUS_OK;
}

typedef struct piece {
  const tarn__param *param;
  int64_t first, count;
} piece;

// Where a walk over all that travels stands.
typedef struct place {
  size_t param;
  int64_t mark;  // the parameter's first
  int64_t at;    // its next element
} place;

// The next elements in a row that travel, `most` at most; false at the end.
static bool next_piece(piece *out, place *p, const tarn__gradient_sum *sum, int64_t most) {
  while (p->param < count_params(sum->model)) {
    const tarn__param *param = tarn__model_param(sum->model, p->param);
    const float *marks = sum->marks + p->mark;
    const int64_t size = marks[0] > 0 ? param->rows * param->cols : 0;
    int64_t end = size;
    if (param->training.used_rows && size > 0) {
      int64_t row = p->at / param->cols;
      while (row < param->rows && marks[1 + row] <= 0) row++;
      if (row * param->cols > p->at) p->at = row * param->cols;
      while (row < param->rows && marks[1 + row] > 0) row++;
      end = row * param->cols;
    }
    if (p->at < size) {
      *out = (piece){param, p->at, end - p->at < most ? end - p->at : most};
      p->at += out->count;
      return true;
    }
    *p = (place){.param = p->param + 1, .mark = p->mark + marks_of(param)};
  }
  return false;
}

// As much as there is room for, from *p on; *p is then behind it, and *used 0 at the end.
static tarn_status sum_some(const tarn__gradient_sum *sum, place *p, int64_t *used) {
  place again = *p;
  piece next;
  *used = 0;
  while (*used < sum->most && next_piece(&next, p, sum, sum->most - *used)) {
    TARN_TRY(take_out(sum->room + *used, next.param, next.first, next.count));
    *used += next.count;
  }
  if (*used == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__comm_sum(sum->comm, sum->room, *used));
  for (int64_t at = 0; at < *used && next_piece(&next, &again, sum, sum->most - at); at += next.count)
    TARN_TRY(put_back(next.param, sum->room + at, next.first, next.count));
  return TARN_STATUS_OK;
}

tarn_status tarn__gradient_sum_run(tarn__gradient_sum *sum) {
  if (sum->comm->size == 1) return TARN_STATUS_OK;
  place p = {0};
  int64_t used;
  TARN_TRY(mark(sum));
  TARN_TRY(tarn__comm_sum(sum->comm, sum->marks, sum->mark_count));
  TARN_TRY(share_marks(sum));
  do {
    TARN_TRY(sum_some(sum, &p, &used));
  } while (used > 0);
  return TARN_STATUS_OK;
}
