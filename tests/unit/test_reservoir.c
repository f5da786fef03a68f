// Reservoirs: the graphs of each topology, their spectral radius, and values that are a function of seed and factor.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/hash.h"
#include "base/memory.h"
#include "init/reservoir.h"
#include "init/spectral_radius.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static tarn__sparse graph_of(tarn__topology topology, int64_t n, double sparsity, uint64_t seed) {
  tarn__sparse matrix;
  tarn__random random;
  tarn__random_init(&random, seed, 0);
  const tarn__reservoir reservoir = {topology, sparsity, "E"};
  must(tarn__reservoir_graph(&matrix, n, &reservoir, &random));
  return matrix;
}

static int64_t entries_of(const tarn__sparse *m) { return m->starts[m->n]; }

static bool has(const tarn__sparse *m, int64_t i, int64_t j) {
  for (int64_t e = m->starts[i]; e < m->starts[i + 1]; e++)
    if (m->columns[e] == j) return true;
  return false;
}

static bool is_symmetric(const tarn__sparse *m) {
  for (int64_t i = 0; i < m->n; i++)
    for (int64_t e = m->starts[i]; e < m->starts[i + 1]; e++)
      if (m->columns[e] == i || !has(m, m->columns[e], i)) return false;
  return true;
}

// Within six standard deviations of the mean number of entries, with entries on the diagonal, and normal weights.
static void random_graphs(void **state) {
  (void)state;
  tarn__sparse m = graph_of(TARN__TOPOLOGY_RANDOM, 300, 0.9, 3);
  const double mean = 0.1 * 90000;
  assert_true(fabs((double)entries_of(&m) - mean) < 6 * sqrt(mean * 0.9));
  int own = 0;
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < m.n; i++) own += has(&m, i, i);
  assert_in_range(own, 5, 70);
  for (int64_t e = 0; e < entries_of(&m); e++) sum += m.values[e], squares += m.values[e] * m.values[e];
  assert_true(fabs(sum / mean) < 0.06 && fabs(squares / (double)entries_of(&m) - 1) < 0.1);
  tarn__sparse_close(&m);
}

static void rings(void **state) {
  (void)state;
  for (int degree = 1; degree <= 3; degree++) {
    tarn__sparse m = graph_of(TARN__TOPOLOGY_RING, 50, 1.0 - degree / 50.0, 3);
    assert_int_equal(entries_of(&m), 50 * degree);
    for (int64_t i = 0; i < 50; i++)
      for (int64_t k = 1; k <= degree; k++) assert_true(has(&m, i, (i + 50 - k) % 50));
    tarn__sparse_close(&m);
  }
}

// n k entries, and about a tenth of the pairs are not those of the ring.
static void small_worlds(void **state) {
  (void)state;
  const int64_t n = 200, k = 20;
  tarn__sparse m = graph_of(TARN__TOPOLOGY_SMALL_WORLD, n, 0.9, 3);
  assert_int_equal(entries_of(&m), n * k);
  assert_true(is_symmetric(&m));
  int64_t far = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t e = m.starts[i]; e < m.starts[i + 1]; e++) {
      const int64_t distance = llabs(m.columns[e] - i);
      far += distance > k / 2 && n - distance > k / 2;
    }
  assert_in_range(far, 0.07 * (double)(n * k), 0.12 * (double)(n * k));
  tarn__sparse_close(&m);
  m = graph_of(TARN__TOPOLOGY_SMALL_WORLD, 9, 0, 3);  // everybody knows all others, and nothing can be rewired
  assert_int_equal(entries_of(&m), 72);
  tarn__sparse_close(&m);
}

// A new unit knows m others, and the first ones become far better known.
static void scale_free_graphs(void **state) {
  (void)state;
  const int64_t n = 400;
  tarn__sparse m = graph_of(TARN__TOPOLOGY_SCALE_FREE, n, 0.98, 3);
  assert_true(is_symmetric(&m));
  const int64_t each = 4;
  assert_int_equal(entries_of(&m), each * (2 * n - 1 - each));
  int64_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t degree = m.starts[i + 1] - m.starts[i];
    assert_true(degree >= each);
    if (degree > most) most = degree;
  }
  assert_true(most > 6 * 2 * each);
  tarn__sparse_close(&m);
  for (double sparsity = 0; sparsity < 0.95; sparsity += 0.1) {
    m = graph_of(TARN__TOPOLOGY_SCALE_FREE, 60, sparsity, 3);
    assert_true(fabs((double)entries_of(&m) - fmin(3540, (1 - sparsity) * 3600)) <= 60);
    tarn__sparse_close(&m);
  }
}

// As the graphs were drawn with a mask of all entries, from which checkpoints are made again.
static void graphs_keep_their_bits(void **state) {
  (void)state;
  static const char *const hashes[][2] = {
      {"9586254b98f8f2aa308b92b166f2f3b1", "4cb5b507da287658ab3a8e22fd89aaed"},
      {"1ddef1277fe635cdf6e9c3d3f37178fb", "ddbbf4bd3d69a1343e7238da4906ccc4"},
      {"1905c3a53a799cc92701551d5b3e0f20", "4d332760bd75053b62cecc672a1d119d"},
      {"6f0905577b1ecfaf2b85c6853b0f234f", "1b4f288acfb0d4dda3dcb5b4a37eaa4e"},
  };
  for (int topology = TARN__TOPOLOGY_RANDOM; topology <= TARN__TOPOLOGY_RING; topology++) {
    tarn__sparse m = graph_of((tarn__topology)topology, 300, 0.9, 3);
    char columns[TARN__HASH_TEXT], values[TARN__HASH_TEXT];
    tarn__hash(columns, m.columns, (size_t)entries_of(&m) * sizeof *m.columns);
    tarn__hash(values, m.values, (size_t)entries_of(&m) * sizeof *m.values);
    assert_string_equal(columns, hashes[topology][0]);
    assert_string_equal(values, hashes[topology][1]);
    tarn__sparse_close(&m);
  }
}

enum { UNITS = 100 };  // few enough that LAPACK finds the spectral radius

static tarn_status values_of(float *values, double *factor, tarn__topology topology, double sparsity, double radius) {
  tarn__random random;
  tarn__random_init(&random, 7, 0);
  const tarn__reservoir reservoir = {topology, sparsity, "E"};
  return tarn__reservoir_values(values, factor, UNITS, radius, &reservoir, &random);
}

static void radii(void **state) {
  (void)state;
  static float values[UNITS * UNITS], again[UNITS * UNITS];
  static double wide[UNITS * UNITS];
  for (int topology = TARN__TOPOLOGY_RANDOM; topology <= TARN__TOPOLOGY_RING; topology++) {
    for (double radius = 0.5; radius < 2; radius += 0.7) {
      double factor = 0, kept, found;
      must(values_of(values, &factor, (tarn__topology)topology, 0.9, radius));
      for (int i = 0; i < UNITS * UNITS; i++) wide[i] = (double)values[i];
      must(tarn__spectral_radius_dense(&found, wide, UNITS));
      if (!(fabs(found / radius - 1) < 1e-5)) fail_msg("topology %d: %.9g for %g", topology, found, radius);
      // The factor has 20 bits, and is all that is needed to have the same bits again.
      int exponent;
      const double scaled = ldexp(frexp(factor, &exponent), 20);
      assert_true(scaled == floor(scaled));
      kept = factor;
      must(values_of(again, &factor, (tarn__topology)topology, 0.9, NAN));
      assert_true(factor == kept);
      assert_memory_equal(values, again, sizeof values);
    }
  }
}

static void what_cannot_be_scaled(void **state) {
  (void)state;
  static float values[UNITS * UNITS];
  double factor = 0;  // five edges among 100 units make no cycle
  assert_int_equal(values_of(values, &factor, TARN__TOPOLOGY_RANDOM, 1 - 5.0 / (UNITS * UNITS), 0.9), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "nilpotent"));
  assert_int_equal(values_of(values, &factor, TARN__TOPOLOGY_RANDOM, 0.5, -0.9), TARN_STATUS_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs),          cmocka_unit_test(rings),
                                     cmocka_unit_test(small_worlds),           cmocka_unit_test(scale_free_graphs),
                                     cmocka_unit_test(graphs_keep_their_bits), cmocka_unit_test(radii),
                                     cmocka_unit_test(what_cannot_be_scaled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
