// Logits in memory: the device under test changes them, finds the best and names log-probabilities as the reference
// does, over sizes, rows without finite logits among them; a row has the same bits in every batch; bad lists are
// refused.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs some of the above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

enum { ROWS = 5, MOST_WORDS = 5000, MOST_BEST = 60, EDITS = 9 };

typedef struct result {
  float adjusted[ROWS * MOST_WORDS], values[ROWS * (MOST_BEST + 1)], picked[ROWS * 2 * (MOST_BEST + 1)];
  int32_t ids[ROWS * MOST_BEST];
} result;

static result wanted, found, again;
static int32_t edits[ROWS + 1 + TARN__EDIT_WORDS * EDITS];
static float *logits;

static void edit(int number, int32_t id, float scale, float less) {
  int32_t *words = edits + ROWS + 1 + number * TARN__EDIT_WORDS;
  words[0] = id;
  memcpy(words + 1, &scale, sizeof scale);
  memcpy(words + 2, &less, sizeof less);
}

// Rows 0 .. 4 have 2, 0, 3, 4 and 0 edits; few words have none, because a row names a token once.
static int64_t fill(int64_t words) {
  static const int32_t offsets[ROWS + 1] = {0, 2, 2, 5, EDITS, EDITS};
  memcpy(edits, offsets, sizeof offsets);
  for (int64_t i = 0; i < ROWS * words; i++) logits[i] = (float)(i * 7919 % 641 - 300) / 40.0f;
  if (words < 37) {
    memset(edits, 0, sizeof offsets);
    return ROWS + 1;
  }
  for (int i = 0; i < EDITS; i++)
    edit(i, (int32_t)(i * 5 % words), i % 2 ? 1.7f : 1.0f, i % 3 == 2 ? INFINITY : (float)i / 4.0f - 1.0f);
  return ROWS + 1 + TARN__EDIT_WORDS * EDITS;
}

static tarn_status run_on(const tarn__device *device, int threads, int64_t first, int64_t rows, int64_t words,
                          int64_t best, const int32_t *changes, int64_t change_words, result *out) {
  int32_t numbers[ROWS];
  for (int64_t r = 0; r < rows; r++) numbers[r] = (int32_t)(rows - 1 - r);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, device, TARN__F32, false, threads);
  tarn__tensor *from = tarn__graph_external(&graph, TARN__F32, rows, words, logits + first * words, "logits");
  tarn__tensor *adjusted = tarn__adjust_rows(&graph, from, tarn__graph_input(&graph, change_words, changes, "edits"));
  const tarn__top top = tarn__best_rows(&graph, adjusted, best, (int32_t)words - 1);
  tarn__tensor *picked = tarn__pick_rows(&graph, from, top.ids, tarn__graph_input(&graph, rows, numbers, "rows"), 0);
  adjusted->keep = top.values->keep = top.ids->keep = picked->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  const tarn_status status = tarn__graph_run(&graph, &(tarn__exec){.threads = threads, .spread = true});
  if (status == TARN_STATUS_OK) {
    check_ok(tarn__device_synchronise(check_device()));
    memcpy(out->adjusted, adjusted->data, (size_t)(rows * words) * sizeof *out->adjusted);
    memcpy(out->values, top.values->data, (size_t)(rows * (best + 1)) * sizeof *out->values);
    memcpy(out->ids, top.ids->data, (size_t)(rows * best) * sizeof *out->ids);
    memcpy(out->picked, picked->data, (size_t)(rows * (best + 1)) * sizeof *out->picked);
  }
  check_shared_free(workspace);
  tarn__graph_close(&graph);
  return status;
}

static void same_floats(const float *a, const float *b, int64_t count, float tolerance, const char *what) {
  for (int64_t i = 0; i < count; i++)
    if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])) && !(fabsf(a[i] - b[i]) <= tolerance))
      fail_msg("%s: number %d is %g and not %g", what, (int)i, (double)a[i], (double)b[i]);
}

static void equals_the_reference(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 5, 37, 512, 1000, MOST_WORDS}, bests[] = {1, 3, 11, MOST_BEST};
  for (size_t w = 0; w < sizeof sizes / sizeof *sizes; w++)
    for (size_t b = 0; b < sizeof bests / sizeof *bests; b++) {
      const int64_t words = sizes[w], best = bests[b], count = fill(words);
      check_ok(run_on(&tarn__device_reference, 1, 0, ROWS, words, best, edits, count, &wanted));
      for (int threads = 1; threads <= 7; threads += 3) {
        check_ok(run_on(check_device(), threads, 0, ROWS, words, best, edits, count, &found));
        same_floats(found.adjusted, wanted.adjusted, ROWS * words, 1e-6f, "adjusted logits");
        same_floats(found.values, wanted.values, ROWS * (best + 1), 1e-5f, "best");
        same_floats(found.picked, wanted.picked, ROWS * (best + 1), 1e-5f, "picked");
        assert_memory_equal(found.ids, wanted.ids, (size_t)(ROWS * best) * sizeof *found.ids);
      }
    }
}

// A row alone has the bits that it has among others.
static void bits(void **state) {
  (void)state;
  const int64_t words = 777, best = 9;
  check_ok(run_on(check_device(), 3, 0, ROWS, words, best, edits, fill(words), &found));
  for (int64_t r = 0; r < ROWS; r++) {
    int32_t own[2 + TARN__EDIT_WORDS * EDITS] = {0, edits[r + 1] - edits[r]};
    const int64_t count = TARN__EDIT_WORDS * (int64_t)own[1];
    memcpy(own + 2, edits + ROWS + 1 + TARN__EDIT_WORDS * edits[r], (size_t)count * sizeof *own);
    check_ok(run_on(check_device(), 1, r, 1, words, best, own, 2 + count, &again));
    assert_memory_equal(again.adjusted, found.adjusted + r * words, (size_t)words * sizeof(float));
    assert_memory_equal(again.values, found.values + r * (best + 1), (size_t)(best + 1) * sizeof(float));
    assert_memory_equal(again.ids, found.ids + r * best, (size_t)best * sizeof(int32_t));
  }
}

// Lists that would lead outside of the logits.
static void bad_lists(void **state) {
  (void)state;
  const int64_t words = 37;
  for (int bad = 0; bad < 5; bad++) {
    const int64_t count = fill(words);
    if (bad == 1) edits[ROWS] = EDITS - 1;
    if (bad == 2) edits[1] = 4, edits[2] = 3;
    if (bad == 3) edit(4, (int32_t)words, 1.0f, 0.0f);
    if (bad == 4) edit(4, -1, 1.0f, 0.0f);
    assert_int_equal(run_on(check_device(), 1, 0, ROWS, words, 3, edits, count, &found),
                     bad == 0 ? TARN_STATUS_OK : TARN_STATUS_INTERNAL);
  }
}

static int run(void) {
  logits = check_shared((size_t)ROWS * MOST_WORDS * sizeof *logits);
  const struct CMUnitTest tests[] = {cmocka_unit_test(equals_the_reference), cmocka_unit_test(bits),
                                     cmocka_unit_test(bad_lists)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  check_shared_free(logits);
  return failed;
}

int main(void) { return check_each_isa(run); }
