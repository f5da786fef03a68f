#include "base/sparse.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

tarn_status tarn__sparse_alloc(tarn__sparse *matrix, int64_t n, int64_t entries) {
  *matrix = (tarn__sparse){0};
  TARN_REQUIRE(n >= 1 && n <= TARN__SPARSE_MOST && entries >= 0 && entries <= n * n, INTERNAL,
               "a sparse matrix of %" PRId64 " rows and %" PRId64 " entries", n, entries);
  void *starts = NULL, *columns = NULL, *values = NULL;
  tarn_status status = tarn__alloc(&starts, TARN__MEMORY_OTHER, (size_t)n + 1, sizeof *matrix->starts);
  if (status == TARN_STATUS_OK)
    status = tarn__alloc(&columns, TARN__MEMORY_OTHER, (size_t)entries, sizeof *matrix->columns);
  if (status == TARN_STATUS_OK)
    status = tarn__alloc(&values, TARN__MEMORY_OTHER, (size_t)entries, sizeof *matrix->values);
  *matrix = (tarn__sparse){n, starts, columns, values};
  if (status != TARN_STATUS_OK) tarn__sparse_close(matrix);
  return status;
}

tarn_status tarn__sparse_take(tarn__sparse *matrix, int64_t n, int64_t *starts, int32_t *columns) {
  void *values;
  *matrix = (tarn__sparse){0};
  TARN_TRY(tarn__alloc(&values, TARN__MEMORY_OTHER, (size_t)starts[n], sizeof *matrix->values));
  *matrix = (tarn__sparse){n, starts, columns, values};
  return TARN_STATUS_OK;
}

void tarn__sparse_close(tarn__sparse *matrix) {
  tarn__free(matrix->starts);
  tarn__free(matrix->columns);
  tarn__free(matrix->values);
  *matrix = (tarn__sparse){0};
}

tarn_status tarn__sparse_from_dense(tarn__sparse *matrix, const double *dense, int64_t n) {
  int64_t entries = 0;
  for (int64_t i = 0; i < n * n; i++) entries += dense[i] != 0;
  TARN_TRY(tarn__sparse_alloc(matrix, n, entries));
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) {
      if (dense[i * n + j] == 0) continue;
      matrix->columns[at] = (int32_t)j;
      matrix->values[at++] = dense[i * n + j];
    }
    matrix->starts[i + 1] = at;
  }
  return TARN_STATUS_OK;
}

void tarn__sparse_to_dense(double *dense, const tarn__sparse *matrix) {
  memset(dense, 0, (size_t)(matrix->n * matrix->n) * sizeof *dense);
  for (int64_t i = 0; i < matrix->n; i++)
    for (int64_t e = matrix->starts[i]; e < matrix->starts[i + 1]; e++)
      dense[i * matrix->n + matrix->columns[e]] = matrix->values[e];
}

void tarn__sparse_product(double *y, const tarn__sparse *matrix, const double *x) {
  for (int64_t i = 0; i < matrix->n; i++) {
    double sum = 0;
    for (int64_t e = matrix->starts[i]; e < matrix->starts[i + 1]; e++)
      sum += matrix->values[e] * x[matrix->columns[e]];
    y[i] = sum;
  }
}

// One row of the depth-first search: `at` is the next edge to follow. `index` counts visits from 1; 0 is unseen.
typedef struct visit {
  int64_t at;
  int32_t index, low;
  bool open;  // on the stack of nodes without a component
} visit;

typedef struct search {
  visit *visits;   // [n]
  int32_t *path;   // [n] rows from the root to the current one
  int32_t *stack;  // [n]
  int32_t depth, height, next, count;
} search;

static void enter(search *s, const tarn__sparse *matrix, int32_t row) {
  s->visits[row] = (visit){.at = matrix->starts[row], .index = ++s->next, .open = true};
  s->visits[row].low = s->visits[row].index;
  s->path[s->depth++] = row;
  s->stack[s->height++] = row;
}

// Leaves the row at the end of the path; if it was the first visited of its component, the component is complete.
static void leave(search *s, int32_t *component) {
  int32_t row = s->path[--s->depth];
  if (s->visits[row].low == s->visits[row].index) {
    int32_t member;
    do {
      member = s->stack[--s->height];
      s->visits[member].open = false;
      component[member] = s->count;
    } while (member != row);
    s->count++;
  }
  if (s->depth == 0) return;
  visit *above = &s->visits[s->path[s->depth - 1]];
  if (s->visits[row].low < above->low) above->low = s->visits[row].low;
}

static void search_all(search *s, int32_t *component, const tarn__sparse *matrix) {
  for (int32_t root = 0; root < matrix->n; root++) {
    if (s->visits[root].index) continue;
    enter(s, matrix, root);
    while (s->depth) {
      int32_t row = s->path[s->depth - 1];
      visit *here = &s->visits[row];
      if (here->at == matrix->starts[row + 1]) {
        leave(s, component);
        continue;
      }
      int32_t to = matrix->columns[here->at++];
      if (!s->visits[to].index)
        enter(s, matrix, to);
      else if (s->visits[to].open && s->visits[to].index < here->low)
        here->low = s->visits[to].index;
    }
  }
}

tarn_status tarn__sparse_components(int32_t *component, int32_t *count, const tarn__sparse *matrix) {
  void *visits = NULL, *rows = NULL;
  size_t n = (size_t)matrix->n;
  tarn_status status = tarn__alloc(&visits, TARN__MEMORY_OTHER, n, sizeof(visit));
  if (status == TARN_STATUS_OK) status = tarn__alloc(&rows, TARN__MEMORY_OTHER, 2 * n, sizeof(int32_t));
  if (status == TARN_STATUS_OK) {
    search s = {.visits = visits, .path = rows, .stack = (int32_t *)rows + n};
    search_all(&s, component, matrix);
    *count = s.count;
  }
  tarn__free(visits);
  tarn__free(rows);
  return status;
}
