// Synthetic attention: the fast kernels against the reference, over forms, sizes and sentences, those longer than a
// block of rows among them; single rows against whole causal sentences; bits that depend on the sentence alone; bad
// input.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/cpu/gemm/gemm.h"
#include "kernels/synthesis_check.h"

static const int32_t many[] = {0, 1, 3, 3, 10, 27, 28, 65};
static const int32_t longer[] = {0, 150, 290, 300};
static const int32_t none[] = {0};
enum { MANY = sizeof many / sizeof many[0] - 1 };

static void sizes(void **state) {
  (void)state;
  static const synthesis_shape shapes[] = {
      {TARN__SYNTHESIS_DENSE, 2, 24, 40, 0, 16, false, false, true, MANY, many},
      {TARN__SYNTHESIS_DENSE, 3, 30, 37, 0, 7, true, true, false, MANY, many},
      {TARN__SYNTHESIS_DENSE, 1, 64, 64, 0, 64, true, true, true, MANY, many},
      {TARN__SYNTHESIS_DENSE, 2, 32, 160, 0, 32, true, true, true, 3, longer},
      {TARN__SYNTHESIS_DENSE, 2, 24, 40, 0, 16, false, true, true, 0, none},
      {TARN__SYNTHESIS_RANDOM, 2, 24, 40, 0, 0, false, false, false, MANY, many},
      {TARN__SYNTHESIS_RANDOM, 4, 64, 37, 0, 0, true, true, false, MANY, many},
      {TARN__SYNTHESIS_RANDOM, 1, 16, 150, 0, 0, false, true, false, 3, longer},
      {TARN__SYNTHESIS_FACTORISED, 2, 24, 37, 6, 13, false, false, false, MANY, many},
      {TARN__SYNTHESIS_FACTORISED, 2, 24, 40, 40, 41, true, false, false, MANY, many},
      {TARN__SYNTHESIS_FACTORISED, 1, 16, 40, 1, 41, true, true, false, MANY, many},
      {TARN__SYNTHESIS_FACTORISED, 1, 16, 150, 13, 25, false, true, false, 3, longer},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    char name[80];
    snprintf(name, sizeof name, "form %d, case %d", (int)shapes[i].form, (int)i);
    check_kernels(synthesis_build, &shapes[i], name, 2e-5, 0.05);
  }
}

// A whole causal sentence, or its rows one by one: the same numbers of x, of which the cache holds the last columns.
typedef struct sentence {
  synthesis_shape shape;
  bool single;
} sentence;

enum { LENGTH = 21, LISTED = LENGTH * (LENGTH + 1) / 2 };

static const int32_t whole[] = {0, LENGTH};
static int32_t list[LISTED], ranges[2 * LENGTH];

static void list_all(void) {
  int32_t listed = 0;
  for (int32_t r = 0; r < LENGTH; r++) {
    ranges[2 * r] = listed;
    for (int32_t j = 0; j <= r; j++) list[listed++] = j;
    ranges[2 * r + 1] = listed;
  }
}

static void build_sentence(check *c, tarn__graph *graph, const void *spec) {
  const sentence *s = spec;
  tarn__tensor *x = check_input(c, graph, LENGTH, (s->shape.mix ? 3 : 1) * s->shape.d, 1.0, false);
  const tarn__synthesis_logits logits = synthesis_logits(c, graph, &s->shape, LENGTH);
  check_item *room = check_next(c, CHECK_INPUT, LENGTH, (s->shape.mix ? 2 : 1) * s->shape.d, 1.0, false);
  tarn__tensor *offsets = check_ints(c, graph, whole, 2);
  tarn__tensor *rows = check_ints(c, graph, list, LISTED), *seen = check_ints(c, graph, ranges, 2 * LENGTH);
  tarn__tensor *memory = tarn__graph_external(graph, graph->dtype, room->rows, room->cols, room->data, "cache");
  tarn__tensor *cache = tarn__cache_append(graph, x, s->shape.mix ? s->shape.d : 0, memory, 0);
  check_output(c, s->single ? tarn__synthesis_rows(graph, x, logits, cache, rows, seen, synthesis_spec(&s->shape))
                            : tarn__synthesis(graph, x, logits, offsets, synthesis_spec(&s->shape)));
}

// The outputs of both are the same, by the reference and by the fast kernels.
static void single_rows(void **state) {
  (void)state;
  static const synthesis_shape shapes[] = {
      {TARN__SYNTHESIS_DENSE, 2, 24, 40, 0, 16, true, true, true, 1, whole},
      {TARN__SYNTHESIS_DENSE, 2, 24, 21, 0, 5, true, false, false, 1, whole},
      {TARN__SYNTHESIS_RANDOM, 2, 24, 30, 0, 0, true, true, false, 1, whole},
      {TARN__SYNTHESIS_FACTORISED, 2, 24, 30, 4, 12, true, false, false, 1, whole},
  };
  list_all();
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    const sentence all = {shapes[i], false}, rows = {shapes[i], true};
    check first, second;
    check_open(&first);
    check_open(&second);
    check_run(&first, build_sentence, &all, &tarn__device_reference, TARN__F64, false);
    check_run(&second, build_sentence, &rows, &tarn__device_reference, TARN__F64, false);
    check_same(&second, &first, false, 1e-12, "single rows, reference");
    check_run(&second, build_sentence, &rows, check_device(), TARN__F32, false);
    check_same(&second, &first, false, 1e-5, "single rows, f32");
    check_run(&second, build_sentence, &rows, check_device(), TARN__BF16, false);
    check_same(&second, &first, false, 0.02, "single rows, bf16");
    check_close(&first);
    check_close(&second);
  }
}

enum { D = 24, HEADS = 2, EARLIER = 5, ROWS = EARLIER + LENGTH, PLACES = 30 };

typedef struct batch {
  tarn__dtype dtype;
  int64_t rows;
  int threads, sentences;
  const int32_t *offsets;
  int64_t longest;
} batch;

static tarn_status run_batch(void *out, const batch *b, void *x, tarn__param *table) {
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), b->dtype, false, b->threads);
  tarn__tensor *from = tarn__graph_external(&graph, b->dtype, b->rows, D, x, "x");
  tarn__tensor *offsets = tarn__graph_input(&graph, b->sentences + 1, b->offsets, "offsets");
  const tarn__synthesis_spec spec = {
      .form = TARN__SYNTHESIS_RANDOM, .heads = HEADS, .d = D, .places = PLACES, .longest = b->longest};
  tarn__tensor *y = tarn__synthesis(&graph, from, (tarn__synthesis_logits){.weight = table}, offsets, spec);
  return check_result(out, &graph, y);
}

// A sentence has equal bits alone and behind others, whatever the longest is, on any number of threads.
static void bits(void **state) {
  (void)state;
  static const int32_t behind[] = {0, EARLIER, ROWS};
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  static double first[ROWS * D], other[ROWS * D];
  void *x = check_shared(ROWS * D * sizeof(double)), *values = check_shared(HEADS * PLACES * PLACES * sizeof(double));
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  for (int t = 0; t < 2; t++) {
    const size_t before = EARLIER * D * tarn__dtype_size(dtypes[t]), size = LENGTH * D * tarn__dtype_size(dtypes[t]);
    tarn__param table = {.name = "table", .rows = HEADS * PLACES, .cols = PLACES, .dtype = dtypes[t], .value = values};
    for (size_t i = 0; i < ROWS * D; i++) check_store(x, dtypes[t], i, tarn__random_normal(&random));
    for (size_t i = 0; i < HEADS * PLACES * PLACES; i++)
      check_store(values, dtypes[t], i, tarn__random_normal(&random));
    batch b = {dtypes[t], LENGTH, 1, 1, whole, LENGTH};
    check_ok(run_batch(first, &b, (char *)x + before, &table));
    b = (batch){dtypes[t], ROWS, 1, 2, behind, PLACES};
    for (b.threads = 1; b.threads <= 5; b.threads++) {
      check_ok(run_batch(other, &b, x, &table));
      assert_memory_equal(first, (char *)other + before, size);
    }
    // Sentences that are longer than planned, and offsets that lead elsewhere.
    static const int32_t few[] = {0, EARLIER, ROWS - 1};
    b.threads = 1, b.longest = LENGTH - 1;
    assert_int_equal(run_batch(other, &b, x, &table), TARN_STATUS_INTERNAL);
    b.longest = LENGTH, b.offsets = few;
    assert_int_equal(run_batch(other, &b, x, &table), TARN_STATUS_INTERNAL);
    b.longest = PLACES + 1, b.offsets = behind;
    assert_int_equal(run_batch(other, &b, x, &table), TARN_STATUS_INTERNAL);
  }
  check_shared_free(x);
  check_shared_free(values);
}

// No product of the shapes that are promised needs more scratch than is said.
static void scratch(void **state) {
  (void)state;
  static const int64_t sizes_of[] = {1, 8, 33, 64, 100, 128, 129, 300, 512, 1000, 1600, 2100};
  enum { COUNT = sizeof sizes_of / sizeof sizes_of[0] };
  for (int bf16 = 0; bf16 < 2; bf16++)
    for (int w = 0; w < COUNT; w++)
      for (int n = 0; n <= w; n++)
        for (int few = 0; few < 6; few++)
          for (int way = 0; way < 6; way++) {
            const int64_t narrow = sizes_of[n], wide = sizes_of[w], least = sizes_of[few];
            tarn__gemm g = {.m = least, .n = narrow, .k = wide, .dtype = bf16 ? TARN__BF16 : TARN__F32};
            if (way % 3 == 1) g.n = wide, g.k = narrow;
            if (way % 3 == 2) g.m = wide, g.n = narrow, g.k = least;
            g.c_dtype = way < 3 ? g.dtype : TARN__F32;
            g.transpose_a = way % 3 == 2, g.transpose_b = way % 3 == 1;
            g.lda = g.transpose_a ? g.m : g.k, g.ldb = g.transpose_b ? g.k : g.n, g.ldc = g.n;
            assert_true(tarn__gemm_scratch(&g, 1) <= tarn__gemm_scratch_bound(g.dtype, g.fp32, narrow, wide));
          }
}

// Operations counted against a count by hand: pairs 3 * 3 + 1 + 2 * 2 or, causal, 6 + 1 + 3.
static void operations(void **state) {
  (void)state;
  static const int32_t offsets[] = {0, 3, 4, 6};
  for (int causal = 0; causal < 2; causal++) {
    tarn__param weight = {.name = "w", .rows = 2 * 5, .cols = 7, .trained = true}, mix = {.name = "m", .cols = 2};
    mix.rows = 1;
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, 1);
    tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 6, 3 * 8, NULL, "x");
    tarn__tensor *source = tarn__graph_external(&graph, TARN__F32, 6, 2 * 7, NULL, "source");
    tarn__tensor *places = tarn__graph_input(&graph, 4, offsets, "offsets");
    tarn__synthesis(
        &graph, x, (tarn__synthesis_logits){.source = source, .weight = &weight, .mix = &mix}, places,
        (tarn__synthesis_spec){
            .form = TARN__SYNTHESIS_DENSE, .heads = 2, .d = 8, .places = 5, .longest = 3, .causal = causal});
    const tarn__node *node = graph.nodes[graph.node_count - 1];
    assert_true(node->op->flops(node) == 2.0 * (causal ? 10 : 14) * (2 * 7 + 8 + 8));
    check_ok(graph.status);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(single_rows), cmocka_unit_test(bits),
                                     cmocka_unit_test(scratch), cmocka_unit_test(operations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
