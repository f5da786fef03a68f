#include "init/reservoir.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "init/spectral_radius.h"

static const double REWIRED = 0.1;  // share of a small world's pairs that are rewired

// Which entries there are: mask[i n + j].
typedef struct graph {
  int64_t n;
  unsigned char *mask;
  tarn__random *random;
} graph;

static bool has(const graph *g, int64_t i, int64_t j) { return g->mask[i * g->n + j] != 0; }

// Both directions of a pair.
static void join(const graph *g, int64_t i, int64_t j, bool joined) {
  g->mask[i * g->n + j] = g->mask[j * g->n + i] = joined;
}

static void draw_ring(const graph *g, double share) {
  int64_t degree = llround(share * (double)g->n);
  degree = degree < 1 ? 1 : degree > g->n ? g->n : degree;
  for (int64_t i = 0; i < g->n; i++)
    for (int64_t k = 1; k <= degree; k++) g->mask[i * g->n + (i + g->n - k) % g->n] = 1;
}

// As Watts and Strogatz do it: ring by ring of neighbours, around the units; a unit that knows all others keeps its
// pair.
static tarn_status draw_small_world(const graph *g, double share) {
  const int64_t n = g->n;
  int64_t half = llround(share * (double)n / 2.0), *degree;
  half = half < 1 ? 1 : half > (n - 1) / 2 ? (n - 1) / 2 : half;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)n, sizeof *degree));
  degree = memory;
  for (int64_t i = 0; i < n; i++) degree[i] = 2 * half;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 1; k <= half; k++) join(g, i, (i + k) % n, true);
  for (int64_t k = 1; k <= half; k++) {
    for (int64_t i = 0; i < n; i++) {
      const int64_t old = (i + k) % n;
      if (tarn__random_uniform(g->random) >= REWIRED || degree[i] >= n - 1) continue;
      int64_t to = i;
      while (to == i || has(g, i, to)) to = (int64_t)tarn__random_below(g->random, (uint64_t)n);
      join(g, i, old, false);
      join(g, i, to, true);
      degree[old]--;
      degree[to]++;
    }
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}

// m of n (n - 1) >= entries = m (2 n - 1 - m).
static int64_t edges_of_new_unit(int64_t n, double share) {
  const double b = 2.0 * (double)n - 1.0, root = b * b - 4.0 * share * (double)n * (double)n;
  const int64_t m = root > 0 ? llround((b - sqrt(root)) / 2.0) : n - 1;
  return m < 1 ? 1 : m > n - 1 ? n - 1 : m;
}

// `ends` lists every unit once for each pair that it is in, so that a draw from it is in proportion to the degrees.
static tarn_status draw_scale_free(const graph *g, double share) {
  const int64_t n = g->n, m = edges_of_new_unit(n, share);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(m * (2 * n - 1 - m)), sizeof(int32_t)));
  int32_t *ends = memory;
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t before = count, wanted = i <= m ? i : m;
    for (int64_t k = 0; k < wanted; k++) {
      int64_t to = k;
      while (i > m && (to = ends[tarn__random_below(g->random, (uint64_t)before)], has(g, i, to))) continue;
      join(g, i, to, true);
      ends[count++] = (int32_t)i;
      ends[count++] = (int32_t)to;
    }
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}

static tarn_status draw(const graph *g, const tarn__reservoir *reservoir) {
  const double share = 1.0 - reservoir->sparsity;
  switch (reservoir->topology) {
    case TARN__TOPOLOGY_SMALL_WORLD:
      return draw_small_world(g, share);
    case TARN__TOPOLOGY_SCALE_FREE:
      return draw_scale_free(g, share);
    case TARN__TOPOLOGY_RING:
      draw_ring(g, share);
      break;
    case TARN__TOPOLOGY_RANDOM:  // draw_random()
      break;
  }
  return TARN_STATUS_OK;
}

static tarn_status take_edges(tarn__sparse *matrix, const graph *g) {
  int64_t entries = 0, at = 0;
  for (int64_t e = 0; e < g->n * g->n; e++) entries += g->mask[e];
  TARN_TRY(tarn__sparse_alloc(matrix, g->n, entries));
  for (int64_t i = 0; i < g->n; i++) {
    for (int64_t j = 0; j < g->n; j++) {
      if (!has(g, i, j)) continue;
      matrix->columns[at] = (int32_t)j;
      matrix->values[at++] = tarn__random_normal(g->random);
    }
    matrix->starts[i + 1] = at;
  }
  return TARN_STATUS_OK;
}

// Entries do not depend on each other here: they are counted, then drawn again from a copy of the generator, instead of
// being kept in a mask, which would be many times as large as a sparse matrix. The weights follow all entries.
static tarn_status draw_random(tarn__sparse *matrix, int64_t n, double share, tarn__random *random) {
  tarn__random again = *random;
  int64_t entries = 0, at = 0;
  for (int64_t e = 0; e < n * n; e++) entries += tarn__random_uniform(random) < share;
  TARN_TRY(tarn__sparse_alloc(matrix, n, entries));
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) {
      if (tarn__random_uniform(&again) >= share) continue;
      matrix->columns[at] = (int32_t)j;
      matrix->values[at++] = tarn__random_normal(random);
    }
    matrix->starts[i + 1] = at;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__reservoir_graph(tarn__sparse *matrix, int64_t n, const tarn__reservoir *reservoir,
                                  tarn__random *random) {
  *matrix = (tarn__sparse){0};
  if (reservoir->topology == TARN__TOPOLOGY_RANDOM) return draw_random(matrix, n, 1.0 - reservoir->sparsity, random);
  void *mask;
  TARN_TRY(tarn__alloc(&mask, TARN__MEMORY_OTHER, (size_t)n, (size_t)n));
  const graph g = {n, mask, random};
  memset(mask, 0, (size_t)n * (size_t)n);
  tarn_status status = draw(&g, reservoir);
  if (status == TARN_STATUS_OK) status = take_edges(matrix, &g);
  tarn__free(mask);
  return status;
}

tarn_status tarn__reservoir_matrix(tarn__sparse *matrix, double *factor, int64_t n, double radius,
                                   const tarn__reservoir *reservoir, tarn__random *random) {
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
