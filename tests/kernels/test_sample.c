// Drawing where the log-probabilities are: every device draws what the sampler draws (unit/test_sampler.c proves that),
// from all words and from the best, whatever the threads.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"
#include "ops/sample.h"

enum { ROWS = 5, WORDS = 37, BEST = 9, DRAWS = 23, EOS = 2, NOT_TYPICAL = 5 };

// In memory of the device under test.
static float (*all)[WORDS], (*best)[BEST + 1];
static int32_t (*best_ids)[BEST], draws[DRAWS * TARN__DRAW_WORDS];

static void fill(void) {
  all = check_shared(ROWS * sizeof *all);
  best = check_shared(ROWS * sizeof *best);
  best_ids = check_shared(ROWS * sizeof *best_ids);
  for (int r = 0; r < ROWS; r++) {
    double sum = 0.0;
    for (int w = 0; w < WORDS; w++) sum += exp(all[r][w] = (float)(((r + 3) * w * 29 % 41) / 9.0));
    for (int w = 0; w < WORDS; w++) all[r][w] -= (float)log(sum);
    if (r == 3) all[r][5] = -INFINITY;
    for (int k = 0; k < BEST; k++) {
      best_ids[r][k] = r == 4 && k > 6 ? -1 : (k * 7 + r) % WORDS;
      best[r][k] = best_ids[r][k] < 0 ? -INFINITY : all[r][best_ids[r][k]];
    }
    best[r][BEST] = all[r][EOS];
  }
  for (int i = 0; i < DRAWS; i++) {
    const int32_t words[TARN__DRAW_WORDS] = {i * 3 % ROWS, 77 * i, -5 * i, i % 4, i / 2, i % 3 != 0};
    memcpy(draws + i * TARN__DRAW_WORDS, words, sizeof words);
  }
}

// How each draw is made: in turn by one of some.
static void set_how(int32_t *words, int count, const tarn__sampling *how, int kinds) {
  for (int i = 0; i < count; i++) memcpy(words + i * TARN__DRAW_WORDS + TARN__DRAW_HOW, &how[i % kinds], sizeof *how);
}

static void draw_on(const tarn__device *device, int threads, bool of_best, const tarn__sample_spec *spec, int32_t *ids,
                    float *values) {
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, device, TARN__F32, false, threads);
  tarn__top from = {tarn__graph_external(&graph, TARN__F32, ROWS, WORDS, all, "all"), NULL};
  if (of_best) {
    from.values = tarn__graph_external(&graph, TARN__F32, ROWS, BEST + 1, best, "best");
    from.ids = tarn__graph_external(&graph, TARN__I32, ROWS, BEST, best_ids, "ids");
  }
  const tarn__top drawn =
      tarn__sample_rows(&graph, from, tarn__graph_input(&graph, DRAWS * TARN__DRAW_WORDS, draws, "draws"), spec);
  drawn.values->keep = drawn.ids->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  check_ok(tarn__graph_run(&graph, &(tarn__exec){.threads = threads, .spread = true}));
  check_ok(tarn__device_synchronise(check_device()));
  memcpy(ids, drawn.ids->data, DRAWS * sizeof *ids);
  memcpy(values, drawn.values->data, 2 * DRAWS * sizeof *values);
  check_shared_free(workspace);
  tarn__graph_close(&graph);
}

// What the sampler draws for one draw.
static tarn__candidate wanted(int i, bool of_best, const tarn__sample_spec *spec) {
  tarn__candidate candidates[WORDS];
  const int32_t *w = draws + i * TARN__DRAW_WORDS;
  int32_t banned[TARN__SAMPLE_BANNED + 1] = {spec->banned[0], EOS};
  const tarn__ban ban = {banned, w[TARN__DRAW_ENDS] ? 1 : 2};
  const int64_t found = of_best ? tarn__sample_collect(candidates, best_ids[w[0]], best[w[0]], BEST, ban)
                                : tarn__sample_collect(candidates, NULL, all[w[0]], WORDS, ban);
  const uint64_t key = (uint64_t)(uint32_t)w[TARN__DRAW_KEY] | (uint64_t)(uint32_t)w[TARN__DRAW_KEY + 1] << 32;
  const tarn__sampling how = tarn__draw_how(w);
  const double uniform =
      tarn__sampling_uniform(how.seed, key, (uint32_t)w[TARN__DRAW_SAMPLE], (uint32_t)w[TARN__DRAW_POSITION]);
  return tarn__sample(&how, candidates, found, all[w[0]], uniform);
}

static void release(void) {
  check_shared_free(all);
  check_shared_free(best);
  check_shared_free(best_ids);
}

static void devices_draw_what_the_sampler_draws(void **state) {
  (void)state;
  static const tarn__sampling how[] = {
      {1.0, 0, 1.0, 1, 0.0, 1.0},  {0.7, 4, 1.0, 2, 0.0, 1.0},  {1.3, 0, 0.8, 3, 0.0, 1.0},
      {1.0, 0, 1.0, 4, 0.05, 1.0}, {1.2, 20, 0.9, 5, 0.2, 1.0}, {1.0, 0, 1.0, 6, 0.0, 0.7},
      {0.8, 0, 0.9, 7, 0.0, 0.4},  {1.5, 0, 1.0, 8, 0.02, 0.9}, {1.0, 5, 0.5, (uint64_t)7 << 40, 0.0, 1.0}};
  const struct {
    const tarn__device *device;
    int threads;
  } on[] = {{&tarn__device_reference, 1}, {check_device(), 1}, {check_device(), 3}, {check_device(), 40}};
  enum { KINDS = sizeof how / sizeof *how };
  fill();
  // Each kind alone, and all of them that may be together.
  for (int h = 0; h <= KINDS; h++)
    for (size_t o = 0; o < sizeof on / sizeof *on; o++)
      for (int of_best = 0; of_best < 2; of_best++) {
        if (of_best && h < KINDS && tarn__sampling_typical(&how[h])) continue;  // needs all words
        set_how(draws, DRAWS, h < KINDS ? &how[h] : how, h < KINDS ? 1 : of_best ? NOT_TYPICAL : KINDS);
        const tarn__sample_spec spec = {.banned = {4}, .banned_count = 1, .eos = EOS};
        int32_t ids[DRAWS];
        float values[2 * DRAWS];
        draw_on(on[o].device, on[o].threads, of_best, &spec, ids, values);
        for (int i = 0; i < DRAWS; i++) {
          const tarn__candidate drawn = wanted(i, of_best, &spec);
          assert_int_equal(ids[i], drawn.id);
          assert_true(values[2 * i] == drawn.log_probability);
          assert_true(values[2 * i + 1] == all[draws[i * TARN__DRAW_WORDS]][EOS]);
          assert_true(ids[i] != 4 && (ids[i] != EOS || draws[i * TARN__DRAW_WORDS + TARN__DRAW_ENDS]));
        }
      }
  release();
}

// More words than a device puts in order at once, many of them equally likely.
static void many_words(void **state) {
  (void)state;
  enum { MANY = 2600, TIMES = 12 };
  static const tarn__sampling how[] = {{1.0, 0, 1.0, 1, 0.0, 1.0},      {0.7, 40, 1.0, 2, 0.0, 1.0},
                                       {1.5, 0, 0.97, 3, 0.0, 1.0},     {1.0, 1500, 0.9, 4, 0.0, 1.0},
                                       {2.0, 2100, 0.999, 5, 0.0, 1.0}, {1.5, 0, 1.0, 6, 0.001, 1.0},
                                       {1.3, 0, 1.0, 7, 0.0, 0.9},      {2.0, 2400, 0.99, 8, 1e-4, 0.8}};
  float *row = check_shared(MANY * sizeof *row);
  int32_t many_draws[TIMES * TARN__DRAW_WORDS] = {0};
  tarn__candidate *candidates = check_alloc(MANY, sizeof *candidates);
  for (int w = 0; w < MANY; w++) row[w] = (float)(w * 7919 % 641) / 100.0f - 11.0f;
  for (int i = 0; i < TIMES; i++) many_draws[i * TARN__DRAW_WORDS + TARN__DRAW_POSITION] = i;
  for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
    const tarn__sample_spec spec = {.eos = EOS};
    set_how(many_draws, TIMES, &how[h], 1);
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
    const tarn__top from = {tarn__graph_external(&graph, TARN__F32, 1, MANY, row, "row"), NULL};
    const tarn__top drawn = tarn__sample_rows(
        &graph, from, tarn__graph_input(&graph, TIMES * TARN__DRAW_WORDS, many_draws, "draws"), &spec);
    drawn.values->keep = drawn.ids->keep = true;
    check_ok(tarn__graph_plan(&graph));
    void *workspace = check_shared(graph.workspace_bytes);
    tarn__graph_bind(&graph, workspace);
    check_ok(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}));
    check_ok(tarn__device_synchronise(check_device()));
    for (int i = 0; i < TIMES; i++) {
      const int32_t eos = EOS;
      const int64_t found = tarn__sample_collect(candidates, NULL, row, MANY, (tarn__ban){&eos, 1});
      const tarn__candidate wanted_one =
          tarn__sample(&how[h], candidates, found, row, tarn__sampling_uniform(how[h].seed, 0, 0, (uint32_t)i));
      assert_int_equal(((const int32_t *)drawn.ids->data)[i], wanted_one.id);
      assert_true(((const float *)drawn.values->data)[(ptrdiff_t)2 * i] == wanted_one.log_probability);
    }
    check_shared_free(workspace);
    tarn__graph_close(&graph);
  }
  tarn__free(candidates);
  check_shared_free(row);
}

// A draw from a row that is not there would read beyond the memory.
static void rows_are_checked(void **state) {
  (void)state;
  fill();
  const tarn__sample_spec spec = {.eos = EOS};
  for (int bad = -1; bad <= ROWS; bad += ROWS + 1) {
    tarn__graph graph = {0};
    const int32_t one[TARN__DRAW_WORDS] = {bad};
    tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
    const tarn__top from = {tarn__graph_external(&graph, TARN__F32, ROWS, WORDS, all, "all"), NULL};
    const tarn__top drawn =
        tarn__sample_rows(&graph, from, tarn__graph_input(&graph, TARN__DRAW_WORDS, one, "draws"), &spec);
    drawn.ids->keep = true;
    check_ok(tarn__graph_plan(&graph));
    void *workspace = check_shared(graph.workspace_bytes);
    tarn__graph_bind(&graph, workspace);
    assert_int_equal(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}), TARN_STATUS_INTERNAL);
    check_shared_free(workspace);
    tarn__graph_close(&graph);
  }
  release();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(devices_draw_what_the_sampler_draws),
                                     cmocka_unit_test(many_words), cmocka_unit_test(rows_are_checked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
