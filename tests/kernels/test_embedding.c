#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/embedding.h"

enum { MAX_ROWS = 257 };

typedef struct shape {
  int64_t rows, cols, words;
  bool positions;
  double dropout;
  int32_t first;  // position of the first row
  int uses;
  bool learned;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t ids[MAX_ROWS], positions[MAX_ROWS];
  for (int32_t i = 0; i < s->rows; i++) {
    ids[i] = (int32_t)(i * 7 % s->words);
    positions[i] = s->first + i;
  }
  tarn__param *table = check_param(c, s->words, s->cols, 0.5, true);
  tarn__tensor *id = check_ints(c, graph, ids, s->rows);
  tarn__tensor *position = s->positions ? check_ints(c, graph, positions, s->rows) : NULL;
  tarn__param *learned = s->learned ? check_param(c, s->first + s->rows, s->cols, 0.5, true) : NULL;
  for (int i = 0; i < s->uses; i++)
    check_output(c, tarn__embedding(graph, id, position, table, learned, 4.0, s->dropout));
}

static void sizes(void **state) {
  (void)state;
  static const int64_t rows[] = {1, 15, 17, 257}, cols[] = {2, 8, 24, 99, 100, 512};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
      char name[80];
      snprintf(name, sizeof name, "embedding %lld x %lld", (long long)rows[r], (long long)cols[k]);
      shape s = {rows[r], cols[k], 37, k % 2 == 0, r % 2 == 0 ? 0.0 : 0.3, 0, 1, false};
      check_kernels(build, &s, name, 1e-5, 0.01);
      s.positions = !s.positions;
      s.dropout = 0.3 - s.dropout;
      check_kernels(build, &s, name, 1e-5, 0.01);
    }
}

static void far_positions(void **state) {
  (void)state;
  shape s = {33, 64, 5, true, 0.0, 100000, 1, false};
  check_kernels(build, &s, "positions from 100000", 1e-5, 0.01);
}

static void shared_table(void **state) {
  (void)state;
  shape s = {50, 136, 11, true, 0.2, 3, 3, false};
  check_kernels(build, &s, "table used three times", 1e-5, 0.01);
}

// More rows than a card sorts at once, and a word that occurs in many of its chunks.
static void build_many(check *c, tarn__graph *graph, const void *spec) {
  enum { ROWS = 9000, WORDS = 400 };
  static int32_t ids[ROWS];
  (void)spec;
  for (int32_t i = 0; i < ROWS; i++) ids[i] = i % 5 == 0 ? 7 : (int32_t)((int64_t)i * i % WORDS);
  tarn__param *table = check_param(c, WORDS, 12, 0.5, true);
  check_output(c, tarn__embedding(graph, check_ints(c, graph, ids, ROWS), NULL, table, NULL, 1.0, 0.1));
}

static void many_rows(void **state) {
  (void)state;
  if (check_device() == &tarn__device_cpu) skip();
  check_kernels(build_many, NULL, "many rows", 2e-5, 0.01);
}

static void learned_positions(void **state) {
  (void)state;
  static const int64_t cols[] = {1, 8, 99, 512};
  for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
    shape s = {50, cols[k], 11, true, k % 2 == 0 ? 0.0 : 0.2, 3, 2, true};
    char name[80];
    snprintf(name, sizeof name, "learned positions of %lld columns", (long long)cols[k]);
    check_kernels(build, &s, name, 1e-5, 0.01);
  }
}

static void build_paper(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t ids[MAX_ROWS], positions[MAX_ROWS];
  for (int32_t i = 0; i < s->rows; i++) ids[i] = (int32_t)(i % s->words), positions[i] = s->first + i;
  tarn__param *table = check_param(c, s->words, s->cols, 0.5, true);
  tarn__tensor *id = check_ints(c, graph, ids, s->rows), *position = check_ints(c, graph, positions, s->rows);
  check_output(c, tarn__embedding_paper(graph, id, position, table, 4.0, s->dropout));
}

static void positions_of_the_paper(void **state) {
  (void)state;
  static const int64_t cols[] = {2, 8, 100, 512};
  for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
    shape s = {50, cols[k], 11, true, k % 2 == 0 ? 0.0 : 0.2, k == 3 ? 5000 : 3, 1, false};
    check_kernels(build_paper, &s, "positions of the paper", 1e-5, 0.01);
  }
}

// Sentences of 1, 2, 3 .. tokens whose positions are shifted in training.
enum { SHIFT = 5, SENTENCES = 24, SHIFTED_ROWS = SENTENCES * (SENTENCES + 1) / 2, SHIFTED_COLS = 16 };

static void build_shifted(check *c, tarn__graph *graph, const void *spec) {
  const int64_t shift = *(const int64_t *)spec;
  int32_t ids[SHIFTED_ROWS] = {0}, positions[SHIFTED_ROWS];
  for (int s = 0, row = 0; s < SENTENCES; s++)
    for (int i = 0; i <= s; i++) positions[row++] = i;
  tarn__param *table = check_param(c, 2, SHIFTED_COLS, 0.5, true);
  tarn__tensor *id = check_ints(c, graph, ids, SHIFTED_ROWS), *at = check_ints(c, graph, positions, SHIFTED_ROWS);
  for (int i = 0; i < 2; i++)
    check_output(c, shift > 0 ? tarn__embedding_shifted(graph, id, at, table, 2.0, shift, 0.0)
                              : tarn__embedding(graph, id, at, table, NULL, 2.0, 0.0));
}

// How far the row is shifted that should be that of `position`: the one number that its sinusoids agree with.
static int shift_of(const double *row, const double *word, int position) {
  enum { HALF = SHIFTED_COLS / 2 };
  for (int k = 0; k <= SHIFT; k++) {
    double worst = 0;
    for (int i = 0; i < HALF; i++) {
      const double angle = (position + k) * pow(10000.0, -i / (HALF - 1.0));
      worst = fmax(worst, fabs(row[i] - 2.0 * word[i] - sin(angle)));
      worst = fmax(worst, fabs(row[HALF + i] - 2.0 * word[HALF + i] - cos(angle)));
    }
    if (worst < 1e-5) return k;
  }
  fail_msg("position %d is shifted by no number of 0 .. %d", position, SHIFT);
  return -1;
}

// All rows of a sentence by one number, sentences and places of the model apart, and every number is drawn.
static void shifted_positions(void **state) {
  (void)state;
  const int64_t shift = SHIFT;
  int drawn[2][SENTENCES], seen[SHIFT + 1] = {0}, equal = 0;
  check c;
  check_kernels(build_shifted, &shift, "shifted positions", 1e-5, 0.02);
  check_open(&c);
  check_run(&c, build_shifted, &shift, check_device(), TARN__F32, true);
  for (int place = 0; place < 2; place++)
    for (int s = 0, row = 0; s < SENTENCES; s++)
      for (int i = 0; i <= s; i++, row++) {
        const int k = shift_of(c.output_value[place] + row * SHIFTED_COLS, c.item[0].value, i);
        if (i == 0) seen[drawn[place][s] = k]++;
        assert_int_equal(k, drawn[place][s]);
      }
  for (int s = 0; s < SENTENCES; s++) equal += drawn[0][s] == drawn[1][s];
  assert_true(equal < SENTENCES / 2);
  for (int k = 0; k <= SHIFT; k++) assert_true(seen[k] > 0);
  check_close(&c);
}

// Outside of training nothing is shifted.
static void unshifted_positions(void **state) {
  (void)state;
  const int64_t shifts[] = {SHIFT, 0};
  check c[2];
  for (int i = 0; i < 2; i++) {
    check_open(&c[i]);
    check_run(&c[i], build_shifted, &shifts[i], check_device(), TARN__F32, false);
  }
  for (size_t i = 0; i < c[0].output_size[0]; i++) assert_true(c[0].output_value[0][i] == c[1].output_value[0][i]);
  for (int i = 0; i < 2; i++) check_close(&c[i]);
}

// The first values of fairseq's table for 8 columns: sines, then cosines, of position / 10000^(i / 3).
static void published_values(void **state) {
  (void)state;
  check c;
  check_open(&c);
  shape s = {2, 8, 1, true, 0.0, 0, 1, false};
  check_run(&c, build, &s, check_device(), TARN__F32, false);
  static const double expected[16] = {0,           0,           0,           0,           1,           1,
                                      1,           1,           0.841470985, 0.046399223, 0.002154433, 0.0001,
                                      0.540302306, 0.998922976, 0.999997679, 0.999999995};
  for (int i = 0; i < 16; i++) {
    double position = c.output_value[0][i] - 4.0 * c.item[0].value[i % 8];
    assert_true(fabs(position - expected[i]) < 1e-6);
  }
  check_close(&c);
}

// One step with the embedding's gradient in `table`: of the words first, first + 3, ..
static void add_gradient(tarn__param *table, int32_t first) {
  enum { ROWS = 9 };
  int32_t ids[ROWS];
  for (int32_t r = 0; r < ROWS; r++) ids[r] = (first + r % 4 * 3) % (int32_t)table->rows;
  tarn__graph graph = {0};
  check c;
  check_open(&c);
  c.dtype = TARN__F32;
  tarn__graph_begin(&graph, check_device(), TARN__F32, true, CHECK_THREADS);
  check_output(&c, tarn__embedding(&graph, tarn__graph_input(&graph, ROWS, ids, "ids"), NULL, table, NULL, 1.0, 0.0));
  check_sum(&c, &graph);
  tarn__graph_differentiate(&graph, c.loss);
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  tarn__exec exec = {.threads = CHECK_THREADS, .spread = true};
  check_ok(tarn__graph_run(&graph, &exec));
  check_ok(tarn__device_synchronise(check_device()));
  tarn__graph_close(&graph);
  check_shared_free(workspace);
  check_close(&c);
}

// A table that knows its used rows has the same gradient after every update, whatever the one before used.
static void used_rows(void **state) {
  (void)state;
  tarn__param table[2];
  const size_t n = 40 * 24;
  for (int i = 0; i < 2; i++) {
    table[i] = (tarn__param){.name = "table", .rows = 40, .cols = 24, .trained = true, .uses = 1, .dtype = TARN__F32};
    table[i].value = check_shared(n * sizeof(float));
    table[i].training.grad = check_shared(n * sizeof(float));
    for (size_t j = 0; j < n; j++) ((float *)table[i].value)[j] = 0.1f * (float)(j % 13);
  }
  // Something else was kept in this gradient.
  for (size_t j = 0; j < n; j++) ((float *)table[1].training.grad)[j] = 3.0f;
  table[1].training.used_rows = check_shared(40);
  memset(table[1].training.used_rows, 1, 40);
  for (int32_t update = 0; update < 3; update++) {
    int used = 0;
    for (int i = 0; i < 2; i++) {
      table[i].training.grad_written = false;
      add_gradient(&table[i], 5 * update);
      add_gradient(&table[i], 7 * update + 20);
    }
    assert_memory_equal(table[0].training.grad, table[1].training.grad, n * sizeof(float));
    for (int r = 0; r < 40; r++) used += table[1].training.used_rows[r];
    assert_true(used >= 4 && used <= 8);
  }
  for (int i = 0; i < 2; i++) {
    check_shared_free(table[i].value);
    check_shared_free(table[i].training.grad);
  }
  check_shared_free(table[1].training.used_rows);
}

// Numbers of rows that are not there are refused, on every device.
static void bad_numbers(void **state) {
  (void)state;
  enum { ROWS = 3, WORDS = 5, POSITIONS = 4, D = 8 };
  static const struct {
    int32_t id, position, row;
    tarn_status status;
  } cases[] = {{WORDS - 1, POSITIONS - 1, ROWS - 1, TARN_STATUS_OK},
               {WORDS, 0, 0, TARN_STATUS_INTERNAL},
               {-1, 0, 0, TARN_STATUS_INTERNAL},
               {0, POSITIONS, 0, TARN_STATUS_INTERNAL},
               {0, -1, 0, TARN_STATUS_INTERNAL},
               {0, 0, ROWS, TARN_STATUS_INTERNAL},
               {0, 0, -1, TARN_STATUS_INTERNAL}};
  const tarn__device *const devices[] = {&tarn__device_reference, check_device()};
  void *words = check_shared(WORDS * D * sizeof(float)), *places = check_shared(POSITIONS * D * sizeof(float));
  tarn__param table = {.name = "table", .rows = WORDS, .cols = D, .dtype = TARN__F32, .value = words};
  tarn__param learned = {.name = "learned", .rows = POSITIONS, .cols = D, .dtype = TARN__F32, .value = places};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int d = 0; d < 2; d++) {
      const int32_t ids[ROWS] = {0, 1, cases[i].id}, positions[ROWS] = {0, cases[i].position, 1};
      const int32_t rows[] = {0, cases[i].row};
      tarn__graph graph = {0};
      tarn__graph_begin(&graph, devices[d], TARN__F32, false, CHECK_THREADS);
      tarn__tensor *x =
          tarn__embedding(&graph, tarn__graph_input(&graph, ROWS, ids, "ids"),
                          tarn__graph_input(&graph, ROWS, positions, "positions"), &table, &learned, 1.0, 0.0);
      tarn__select_rows(&graph, x, tarn__graph_input(&graph, 2, rows, "rows"))->keep = true;
      check_ok(tarn__graph_plan(&graph));
      void *workspace = check_shared(graph.workspace_bytes);
      tarn__graph_bind(&graph, workspace);
      assert_int_equal(tarn__graph_run(&graph, &(tarn__exec){.threads = CHECK_THREADS, .spread = true}),
                       cases[i].status);
      tarn__graph_close(&graph);
      check_shared_free(workspace);
    }
  check_shared_free(words);
  check_shared_free(places);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes),
                                     cmocka_unit_test(far_positions),
                                     cmocka_unit_test(shared_table),
                                     cmocka_unit_test(published_values),
                                     cmocka_unit_test(learned_positions),
                                     cmocka_unit_test(many_rows),
                                     cmocka_unit_test(positions_of_the_paper),
                                     cmocka_unit_test(shifted_positions),
                                     cmocka_unit_test(unshifted_positions),
                                     cmocka_unit_test(used_rows),
                                     cmocka_unit_test(bad_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
