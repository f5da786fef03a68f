#include "init/reservoir.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/entries.h"
#include "init/spectral_radius.h"

static const double REWIRED = 0.1;  // rewired share of a small world's pairs

// The set of joined pairs of units: a hash table with open addressing and linear probing, at most half full (Knuth
// 1973, 6.4). Its memory depends only on the number of pairs.
typedef struct pairs {
  uint64_t *slots;  // a pair's key; 0: free
  size_t mask;      // slots - 1, of a power of 2
} pairs;

static tarn_status pairs_open(pairs *set, int64_t most) {
  size_t slots = 16;
  while (slots < 2 * (size_t)most) slots *= 2;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, slots, sizeof *set->slots));
  *set = (pairs){memory, slots - 1};
  return TARN_STATUS_OK;
}

// Never 0: the larger unit is not unit 0.
static uint64_t key_of(int64_t i, int64_t j) {
  return i < j ? (uint64_t)i | (uint64_t)j << 32 : (uint64_t)j | (uint64_t)i << 32;
}

// Fibonacci hashing: the upper bits of a product by 2^64 / golden ratio.
static size_t home_of(const pairs *set, uint64_t key) { return (size_t)(key * 0x9E3779B97F4A7C15u >> 24) & set->mask; }

static size_t find(const pairs *set, uint64_t key) {
  size_t at = home_of(set, key);
  while (set->slots[at] != 0 && set->slots[at] != key) at = (at + 1) & set->mask;
  return at;
}

static bool has(const pairs *set, int64_t i, int64_t j) { return set->slots[find(set, key_of(i, j))] != 0; }

static void join(const pairs *set, int64_t i, int64_t j) { set->slots[find(set, key_of(i, j))] = key_of(i, j); }

// Later entries that would no longer be found move up.
static void part(const pairs *set, int64_t i, int64_t j) {
  size_t gap = find(set, key_of(i, j));
  for (size_t at = (gap + 1) & set->mask; set->slots[at] != 0; at = (at + 1) & set->mask) {
    const size_t home = home_of(set, set->slots[at]);
    if (((at - home) & set->mask) < ((at - gap) & set->mask)) continue;
    set->slots[gap] = set->slots[at];
    gap = at;
  }
  set->slots[gap] = 0;
}

// As in Watts and Strogatz: by distance of neighbours, around the units; a unit joined to all others keeps its pair.
static tarn_status draw_small_world(const pairs *set, int64_t n, int64_t half, tarn__random *random) {
  int64_t *degree;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)n, sizeof *degree));
  degree = memory;
  for (int64_t i = 0; i < n; i++) degree[i] = 2 * half;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 1; k <= half; k++) join(set, i, (i + k) % n);
  for (int64_t k = 1; k <= half; k++) {
    for (int64_t i = 0; i < n; i++) {
      const int64_t old = (i + k) % n;
      if (tarn__random_uniform(random) >= REWIRED || degree[i] >= n - 1) continue;
      int64_t to = i;
      while (to == i || has(set, i, to)) to = (int64_t)tarn__random_below(random, (uint64_t)n);
      part(set, i, old);
      join(set, i, to);
      degree[old]--;
      degree[to]++;
    }
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}

// `ends` lists every unit once for each pair that it is in, so a draw from it is proportional to the degrees.
static tarn_status draw_scale_free(const pairs *set, int64_t n, int64_t m, tarn__random *random) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(m * (2 * n - 1 - m)), sizeof(int32_t)));
  int32_t *ends = memory;
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t before = count, wanted = i <= m ? i : m;
    for (int64_t k = 0; k < wanted; k++) {
      int64_t to = k;
      while (i > m && (to = ends[tarn__random_below(random, (uint64_t)before)], has(set, i, to))) continue;
      join(set, i, to);
      ends[count++] = (int32_t)i;
      ends[count++] = (int32_t)to;
    }
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}

static int by_column(const void *a, const void *b) {
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

// Both directions of each pair, by rows.
static tarn_status take_pairs(tarn__sparse *matrix, int64_t n, int64_t entries, const pairs *set) {
  TARN_TRY(tarn__sparse_alloc(matrix, n, entries));
  int64_t *next = matrix->starts + 1;  // while rows are filled: the place of the next entry of a row
  for (size_t s = 0; s <= set->mask; s++) {
    if (set->slots[s] == 0) continue;
    next[set->slots[s] & UINT32_MAX]++;
    next[set->slots[s] >> 32]++;
  }
  int64_t before = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t count = next[i];
    next[i] = before;
    before += count;
  }
  for (size_t s = 0; s <= set->mask; s++) {
    if (set->slots[s] == 0) continue;
    const int64_t i = (int64_t)(set->slots[s] & UINT32_MAX), j = (int64_t)(set->slots[s] >> 32);
    matrix->columns[next[i]++] = (int32_t)j;
    matrix->columns[next[j]++] = (int32_t)i;
  }
  for (int64_t i = 0; i < n; i++)
    qsort(matrix->columns + matrix->starts[i], (size_t)(matrix->starts[i + 1] - matrix->starts[i]),
          sizeof *matrix->columns, by_column);
  return TARN_STATUS_OK;
}

static tarn_status draw_pairs(tarn__sparse *matrix, int64_t n, const tarn__reservoir *reservoir, tarn__random *random) {
  const int64_t degree = tarn__reservoir_degree(n, reservoir);
  const int64_t entries = (int64_t)tarn__reservoir_entries(n, reservoir);
  pairs set;
  TARN_TRY(pairs_open(&set, entries / 2 + 1));
  tarn_status status = reservoir->topology == TARN__TOPOLOGY_SMALL_WORLD ? draw_small_world(&set, n, degree, random)
                                                                         : draw_scale_free(&set, n, degree, random);
  if (status == TARN_STATUS_OK) status = take_pairs(matrix, n, entries, &set);
  tarn__free(set.slots);
  return status;
}

// Unit i receives from the `degree` units before it, in ascending order.
static tarn_status draw_ring(tarn__sparse *matrix, int64_t n, int64_t degree) {
  TARN_TRY(tarn__sparse_alloc(matrix, n, n * degree));
  for (int64_t i = 0; i < n; i++) {
    int32_t *columns = matrix->columns + i * degree;
    const int64_t around = degree > i ? degree - i : 0;  // units at the end of the ring
    int64_t at = 0;
    for (int64_t j = i - (degree - around); j < i; j++) columns[at++] = (int32_t)j;
    for (int64_t j = n - around; j < n; j++) columns[at++] = (int32_t)j;
    matrix->starts[i + 1] = (i + 1) * degree;
  }
  return TARN_STATUS_OK;
}

// Entries are independent here.
static tarn_status draw_random(tarn__sparse *matrix, int64_t n, double share, tarn__random *random) {
  size_t capacity = (size_t)n;
  int64_t entries = 0;
  void *starts, *columns = NULL, *row = NULL;
  TARN_TRY(tarn__alloc(&starts, TARN__MEMORY_OTHER, (size_t)n + 1, sizeof *matrix->starts));
  tarn_status status = tarn__alloc(&columns, TARN__MEMORY_OTHER, capacity, sizeof *matrix->columns);
  if (status == TARN_STATUS_OK) status = tarn__alloc(&row, TARN__MEMORY_OTHER, (size_t)n, sizeof *matrix->columns);
  for (int64_t i = 0; i < n && status == TARN_STATUS_OK; i++) {
    const int64_t count = tarn__random_places(row, random, share, n);
    status = tarn__grow(&columns, &capacity, (size_t)(entries + count), sizeof *matrix->columns);
    if (status != TARN_STATUS_OK) break;
    memcpy((int32_t *)columns + entries, row, (size_t)count * sizeof *matrix->columns);
    entries += count;
    ((int64_t *)starts)[i + 1] = entries;
  }
  tarn__free(row);
  if (status == TARN_STATUS_OK) status = tarn__sparse_take(matrix, n, starts, columns);
  if (status == TARN_STATUS_OK) return TARN_STATUS_OK;
  tarn__free(starts);
  tarn__free(columns);
  return status;
}

tarn_status tarn__reservoir_graph(tarn__sparse *matrix, int64_t n, const tarn__reservoir *reservoir,
                                  tarn__random *random) {
  *matrix = (tarn__sparse){0};
  switch (reservoir->topology) {
    case TARN__TOPOLOGY_RANDOM:
      TARN_TRY(draw_random(matrix, n, 1.0 - reservoir->sparsity, random));
      break;
    case TARN__TOPOLOGY_RING:
      TARN_TRY(draw_ring(matrix, n, tarn__reservoir_degree(n, reservoir)));
      break;
    case TARN__TOPOLOGY_SMALL_WORLD:
    case TARN__TOPOLOGY_SCALE_FREE:
      TARN_TRY(draw_pairs(matrix, n, reservoir, random));
      break;
  }
  // The weights follow all entries, in the order of rows.
  for (int64_t e = 0; e < matrix->starts[n]; e++) matrix->values[e] = tarn__random_normal(random);
  return TARN_STATUS_OK;
}

tarn_status tarn__reservoir_matrix(tarn__sparse *matrix, double *factor, int64_t n, double radius,
                                   const tarn__reservoir *reservoir, tarn__random *random) {
  if (radius == 0) {
    *factor = 0;
    return tarn__sparse_alloc(matrix, n, 0);
  }
  TARN_TRY(tarn__reservoir_graph(matrix, n, reservoir, random));
  const tarn_status status = *factor == 0 ? tarn__spectral_factor(factor, matrix, radius) : TARN_STATUS_OK;
  if (status != TARN_STATUS_OK) {
    tarn__sparse_close(matrix);
    return status;
  }
  for (int64_t e = 0; e < matrix->starts[n]; e++) matrix->values[e] *= *factor;
  return TARN_STATUS_OK;
}

tarn_status tarn__reservoir_values(float *values, double *factor, int64_t n, double radius,
                                   const tarn__reservoir *reservoir, tarn__random *random) {
  tarn__sparse matrix;
  TARN_TRY(tarn__reservoir_matrix(&matrix, factor, n, radius, reservoir, random));
  memset(values, 0, (size_t)n * (size_t)n * sizeof *values);
  for (int64_t i = 0; i < n; i++)
    for (int64_t e = matrix.starts[i]; e < matrix.starts[i + 1]; e++)
      values[i * n + matrix.columns[e]] = (float)matrix.values[e];
  tarn__sparse_close(&matrix);
  return TARN_STATUS_OK;
}
