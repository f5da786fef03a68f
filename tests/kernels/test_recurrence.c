// recurrence: the fast kernels against the reference in double for every instruction set; a sentence's rows have the
// same bits alone and in any company.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/recurrence_check.h"

static const tarn__recurrence_spec cells[] = {
    {.cell = TARN__CELL_GRU, .directions = 1},
    {.cell = TARN__CELL_GRU, .directions = 2},
    {.cell = TARN__CELL_LSTM, .directions = 1, .reverse = true},
    {.cell = TARN__CELL_LSTM, .directions = 2},
    {.cell = TARN__CELL_ECHO, .directions = 1, .leak = 0.8, .relu = true},
    {.cell = TARN__CELL_ECHO, .directions = 2, .leak = 0.3},
};
static const char *const names[] = {"gru", "bi-gru", "lstm, reverse", "bi-lstm", "echo, relu", "bi-echo, tanh"};
enum { CELLS = sizeof cells / sizeof cells[0] };

static void try_case(int cell, int64_t hidden, recurrence_case at) {
  char text[120];
  snprintf(text, sizeof text, "%s, %lld units, %lld sentences", names[cell], (long long)hidden,
           (long long)at.sentences);
  at.spec = cells[cell];
  at.spec.hidden = hidden;
  check_kernels(recurrence_build, &at, text, 2e-5, 0.1);
}

static void all_trained(void **state) {
  (void)state;
  static const int64_t hidden[] = {2, 7, 16, 24, 32, 33};
  for (int cell = 0; cell < CELLS; cell++)
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
      try_case(
          cell, hidden[i],
          (recurrence_case){.sentences = 1 + (int64_t)i * 4, .longest = 7, .x = true, .weights = true, .biases = true});
}

// Several groups of sentences; a loop that all threads share; rows a whole page apart.
static void many_and_wide(void **state) {
  (void)state;
  for (int cell = 0; cell < CELLS; cell++) {
    try_case(cell, 8, (recurrence_case){.sentences = 70, .longest = 9, .x = true, .weights = true, .biases = true});
    try_case(cell, 8, (recurrence_case){.sentences = 64, .longest = 5, .x = true, .twice = true, .no_biases = true});
  }
  if (check_device() != &tarn__device_cpu)  // whose bits are on record
    try_case(3, 310, (recurrence_case){.sentences = 9, .longest = 4, .x = true, .weights = true, .biases = true});
  try_case(0, 600, (recurrence_case){.sentences = 30, .longest = 3, .x = true, .weights = true, .biases = true});
  try_case(5, 1024, (recurrence_case){.sentences = 17, .longest = 3, .x = true, .weights = true, .biases = true});
}

static void part_trained(void **state) {
  (void)state;
  for (int cell = 0; cell < CELLS; cell++) {
    try_case(cell, 20, (recurrence_case){.sentences = 6, .longest = 7, .x = true});
    try_case(cell, 20, (recurrence_case){.sentences = 6, .longest = 7, .weights = true, .no_biases = true});
    try_case(cell, 20, (recurrence_case){.sentences = 6, .longest = 7, .biases = true, .half = true});
    try_case(cell, 20, (recurrence_case){.sentences = 6, .longest = 7, .weights = true, .half = true});
  }
}

// Reservoirs that are taken as sparse; one that says so and is not; rows without an entry.
static void sparse_reservoirs(void **state) {
  (void)state;
  static const int64_t hidden[] = {2, 7, 33, 64, 130};
  // In bf16 a ReLU whose sum is nearly 0 may take the other side: in few sums it does not.
  for (int cell = 4; cell < CELLS; cell++)
    for (size_t i = 0; i < (cell == 4 ? 3 : sizeof hidden / sizeof hidden[0]); i++)
      for (int crowded = 0; crowded < 2; crowded++)
        try_case(cell, hidden[i],
                 (recurrence_case){.sentences = 1 + (int64_t)i * 17,
                                   .longest = 7,
                                   .x = true,
                                   .biases = i % 2 == 0,
                                   .no_biases = i % 2 == 1,
                                   .sparsity = 0.95,
                                   .crowded = crowded});
  try_case(5, 1024, (recurrence_case){.sentences = 40, .longest = 3, .x = true, .no_biases = true, .sparsity = 0.99});
  try_case(5, 1024, (recurrence_case){.sentences = 4, .longest = 3, .x = true, .sparsity = 0.99, .crowded = true});
}

// Operations of the forward and of the backward loop.
static void count_flops(double flops[2], double sparsity) {
  recurrence_case at = {.spec = cells[5], .sentences = 5, .longest = 7, .x = true, .no_biases = true};
  at.spec.hidden = 40;
  at.sparsity = sparsity;
  check c;
  check_open(&c);
  tarn__graph graph = {0};
  c.dtype = TARN__F32;
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, CHECK_THREADS);
  recurrence_build(&c, &graph, &at);
  check_sum(&c, &graph);
  tarn__graph_differentiate(&graph, c.loss);
  flops[0] = flops[1] = 0;
  for (size_t n = 0; n < graph.node_count; n++) {
    const tarn__node *node = graph.nodes[n];
    if (strncmp(node->op->name, "recurrence", 10) == 0) flops[n >= graph.forward_count] += node->op->flops(node);
  }
  tarn__graph_close(&graph);
  check_close(&c);
}

// Of a product that is taken as sparse the zeros do not count; of others they do.
static void flops_are_of_what_runs(void **state) {
  (void)state;
  double dense[2], half[2], sparse[2];
  count_flops(dense, 0.0);
  count_flops(half, 0.5);
  count_flops(sparse, 0.95);
  recurrence_case at = {.sentences = 5, .longest = 7};
  int32_t offset[RECURRENCE_SENTENCES + 1];
  const double rows = (double)(recurrence_offsets(&at, offset) - at.sentences);
  for (int pass = 0; pass < 2; pass++) {
    assert_true(dense[pass] == 2.0 * 2.0 * rows * 40.0 * 40.0);
    assert_true(half[pass] == dense[pass]);
    assert_true(fabs(sparse[pass] - 0.05 * dense[pass]) < 1e-6 * dense[pass]);
  }
}

// Offsets may hold no sentence at all: no row, and gradients of zero.
static void no_sentences(void **state) {
  (void)state;
  for (int cell = 0; cell < CELLS; cell++)
    try_case(cell, 20, (recurrence_case){.longest = 7, .x = true, .weights = true, .biases = true});
}

static void nothing_kept(void **state) {
  (void)state;
  for (int cell = 0; cell < CELLS; cell++) {
    recurrence_case at = {.spec = cells[cell], .sentences = 40, .longest = 7};
    at.spec.hidden = 20;
    check_kernels_mode(recurrence_build, &at, names[cell], false, 2e-5, 0.1);
  }
}

// Those whose states can be carried.
static const tarn__recurrence_spec forwards[] = {
    {.cell = TARN__CELL_GRU, .directions = 1},
    {.cell = TARN__CELL_LSTM, .directions = 1},
    {.cell = TARN__CELL_ECHO, .directions = 1, .leak = 0.8, .relu = true},
    {.cell = TARN__CELL_ECHO, .directions = 1, .leak = 0.3},
};
enum { FORWARDS = sizeof forwards / sizeof forwards[0] };

static void try_carried(int cell, int64_t hidden, recurrence_case at) {
  char text[120];
  snprintf(text, sizeof text, "carried %d, %lld units, %lld sentences", cell, (long long)hidden,
           (long long)at.sentences);
  at.spec = forwards[cell];
  at.spec.hidden = hidden;
  at.carried = at.chained = true;
  check_kernels(recurrence_build, &at, text, 2e-5, 0.1);
}

// Windows that begin with the states of windows before: of one time loop and several, sparse, in part trained.
static void carried(void **state) {
  (void)state;
  for (int cell = 0; cell < FORWARDS; cell++) {
    recurrence_case at = {.sentences = 5, .longest = 6, .x = true, .weights = true, .biases = true};
    try_carried(cell, 20, at);
    at.sentences = 40;
    if (forwards[cell].relu) continue;  // of so many sums some meet the kink in bf16
    try_carried(cell, 33, at);
    at.x = at.biases = false;
    at.no_biases = true;
    try_carried(cell, 33, at);
    at.weights = false;
    at.x = true;
    if (forwards[cell].cell == TARN__CELL_ECHO) at.sparsity = 0.9;
    try_carried(cell, 40, at);
  }
}

// A batch of sentences as two windows one after the other, and whole.
typedef struct windows {
  tarn__recurrence_spec spec;
  bool cut;
  double sparsity;
} windows;

enum { WINDOW = 4, WINDOWED = 19 };

static void build_windows(check *c, tarn__graph *graph, const void *spec) {
  const windows *at = spec;
  const int64_t gates = at->spec.cell == TARN__CELL_GRU ? 3 : at->spec.cell == TARN__CELL_LSTM ? 4 : 1;
  const int64_t n = at->spec.hidden, cols = gates * n;
  int32_t offset[WINDOWED + 1];
  for (int s = 0; s <= WINDOWED; s++) offset[s] = s * (at->cut ? WINDOW : 2 * WINDOW);
  tarn__tensor *offsets = check_ints(c, graph, offset, WINDOWED + 1);
  tarn__tensor *x = check_input(c, graph, (int64_t)2 * WINDOW * WINDOWED, cols, 1.0, false);
  tarn__recurrent weights[2] = {{.weight = check_param(c, cols, n, 0.2, false)}};
  static tarn__reservoir reservoir;
  reservoir.sparsity = at->sparsity;
  if (at->sparsity > 0) recurrence_thin(c, graph, weights[0].weight, &reservoir, false);
  weights[0].bias = check_param(c, 1, cols, 0.5, false);
  if (!at->cut) {
    check_output(c, tarn__recurrence(graph, x, offsets, weights, at->spec));
    return;
  }
  recurrence_case states = {.sentences = WINDOWED};
  tarn__tensor *start = recurrence_states(c, graph, states.sentences, &at->spec);
  memset(start->data, 0, (size_t)(start->rows * start->cols) * tarn__dtype_size(start->dtype));
  for (int w = 0; w < 2; w++) {
    check_item *item = check_next(c, CHECK_INPUT, (int64_t)WINDOW * WINDOWED, cols, 1.0, false);
    const size_t bytes = (size_t)(WINDOW * cols) * tarn__dtype_size(graph->dtype);
    for (int s = 0; s < WINDOWED; s++)
      memcpy((char *)item->data + (size_t)s * bytes, (char *)x->data + (size_t)(2 * s + w) * bytes, bytes);
    tarn__tensor *part = tarn__graph_external(graph, graph->dtype, item->rows, cols, item->data, "window");
    tarn__tensor *end = recurrence_states(c, graph, states.sentences, &at->spec);
    check_output(c, tarn__recurrence_carried(graph, part, offsets, weights[0], at->spec, start, end));
    start = end;
  }
}

static void windows_are_one_sentence(void **state) {
  (void)state;
  for (int cell = 0; cell <= FORWARDS; cell++)
    for (int bf16 = 0; bf16 < 2; bf16++) {
      windows at = {.spec = forwards[cell < FORWARDS ? cell : FORWARDS - 1], .sparsity = cell < FORWARDS ? 0.0 : 0.9};
      at.spec.hidden = 40;
      check whole, cut;
      check_open(&whole);
      check_open(&cut);
      check_run(&whole, build_windows, &at, check_device(), bf16 ? TARN__BF16 : TARN__F32, false);
      at.cut = true;
      check_run(&cut, build_windows, &at, check_device(), bf16 ? TARN__BF16 : TARN__F32, false);
      const size_t window = (size_t)(WINDOW * at.spec.hidden);
      for (size_t s = 0; s < 2 * WINDOWED; s++)
        assert_memory_equal(whole.output_value[0] + s * window, cut.output_value[s % 2] + s / 2 * window,
                            window * sizeof(double));
      check_close(&whole);
      check_close(&cut);
    }
}

// Numbers that leave the range end in sums that are no numbers or in saturated gates, never in a wrong finite state.
typedef struct extreme {
  tarn__recurrence_spec spec;
  float value;
} extreme;

static void build_extreme(check *c, tarn__graph *graph, const void *spec) {
  const extreme *at = spec;
  const int64_t gates = at->spec.cell == TARN__CELL_GRU ? 3 : at->spec.cell == TARN__CELL_LSTM ? 4 : 1;
  const int32_t offset[] = {0, 3};
  tarn__tensor *offsets = check_ints(c, graph, offset, 2);
  tarn__tensor *x = check_input(c, graph, 3, gates * at->spec.hidden, 1.0, false);
  check_item *item = &c->item[c->next - 1];
  for (int64_t i = 0; i < item->rows * item->cols; i++) {
    if (i % 3 == 0) item->value[i] = (double)at->value;
    check_store(item->data, graph->dtype, (size_t)i, item->value[i]);
  }
  tarn__recurrent weights[2] = {{.weight = check_param(c, gates * at->spec.hidden, at->spec.hidden, 0.2, false)}};
  check_output(c, tarn__recurrence(graph, x, offsets, weights, at->spec));
}

static void extremes(void **state) {
  (void)state;
  static const float values[] = {1e30f, -1e30f, 200.0f, -200.0f, 89.0f, -89.0f};
  for (int cell = 0; cell < CELLS; cell++) {
    if (cells[cell].directions != 1) continue;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
      if (cells[cell].cell == TARN__CELL_ECHO && fabsf(values[i]) > 1e3f) continue;
      extreme at = {cells[cell], values[i]};
      at.spec.hidden = 18;
      check_kernels_mode(build_extreme, &at, names[cell], false, 2e-5, 0.0);
    }
    extreme at = {cells[cell], NAN};
    at.spec.hidden = 18;
    check c;
    check_open(&c);
    check_run(&c, build_extreme, &at, check_device(), TARN__F32, false);
    assert_true(isnan(c.output_value[0][0]));
    check_close(&c);
  }
}

// The rows of one sentence in a batch of many, and alone.
typedef struct company {
  tarn__recurrence_spec spec;
  bool alone;
  const tarn__reservoir *reservoir;  // NULL: none
} company;

enum { CHOSEN = 11, LONGEST = 6, AMONG = 41 };

static void build_company(check *c, tarn__graph *graph, const void *spec) {
  const company *at = spec;
  const int64_t gates = at->spec.cell == TARN__CELL_GRU ? 3 : at->spec.cell == TARN__CELL_LSTM ? 4 : 1;
  const int64_t n = at->spec.hidden, cols = at->spec.directions * gates * n;
  int32_t offset[RECURRENCE_SENTENCES + 1];
  recurrence_case lengths = {.sentences = AMONG, .longest = LONGEST};
  int64_t rows = recurrence_offsets(&lengths, offset), first = offset[CHOSEN], count = offset[CHOSEN + 1] - first;
  const int32_t whole[] = {0, (int32_t)count};
  tarn__tensor *x = check_input(c, graph, rows, cols, 1.0, false);
  if (at->alone) {
    void *data = (char *)x->data + (size_t)(first * cols) * tarn__dtype_size(graph->dtype);
    x = tarn__graph_external(graph, graph->dtype, count, cols, data, "rows of one sentence");
  }
  tarn__recurrent weights[2] = {{0}};
  for (int d = 0; d < at->spec.directions; d++) {
    weights[d].weight = check_param(c, gates * n, n, 0.2, false);
    if (at->reservoir) recurrence_thin(c, graph, weights[d].weight, at->reservoir, false);
    weights[d].bias = check_param(c, 1, gates * n, 0.5, false);
  }
  tarn__tensor *offsets = check_ints(c, graph, offset, AMONG + 1);
  if (at->alone) offsets = tarn__graph_input(graph, 2, memcpy(c->item[c->next - 1].data, whole, 8), "");
  check_output(c, tarn__recurrence(graph, x, offsets, weights, at->spec));
}

static void bits_depend_on_the_sentence(void **state) {
  (void)state;
  int32_t offset[RECURRENCE_SENTENCES + 1];
  recurrence_case lengths = {.sentences = AMONG, .longest = LONGEST};
  recurrence_offsets(&lengths, offset);
  static const tarn__reservoir sparse = {.sparsity = 0.9};
  for (int cell = 0; cell <= CELLS; cell++)
    for (int bf16 = 0; bf16 < 2; bf16++) {
      company at = {.spec = cells[cell < CELLS ? cell : CELLS - 1], .reservoir = cell < CELLS ? NULL : &sparse};
      at.spec.hidden = 72;
      const int64_t cols = at.spec.hidden * at.spec.directions;
      check many, one;
      check_open(&many);
      check_open(&one);
      check_run(&many, build_company, &at, check_device(), bf16 ? TARN__BF16 : TARN__F32, false);
      at.alone = true;
      check_run(&one, build_company, &at, check_device(), bf16 ? TARN__BF16 : TARN__F32, false);
      assert_true(one.output_size[0] > 0);
      assert_memory_equal(many.output_value[0] + offset[CHOSEN] * cols, one.output_value[0],
                          one.output_size[0] * sizeof(double));
      check_close(&many);
      check_close(&one);
    }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_trained),
                                     cmocka_unit_test(many_and_wide),
                                     cmocka_unit_test(part_trained),
                                     cmocka_unit_test(sparse_reservoirs),
                                     cmocka_unit_test(no_sentences),
                                     cmocka_unit_test(nothing_kept),
                                     cmocka_unit_test(carried),
                                     cmocka_unit_test(windows_are_one_sentence),
                                     cmocka_unit_test(extremes),
                                     cmocka_unit_test(bits_depend_on_the_sentence),
                                     cmocka_unit_test(flops_are_of_what_runs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
