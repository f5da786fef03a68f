// Vocabularies in bands: vectors of ids, losses and their gradients, log-probabilities and the best words, fast against
// reference, for every instruction set; and that these three ways to the probability of a word agree.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "task/bands.h"

// Two bands behind the first, whose words end at `ends`.
typedef struct shape {
  int64_t rows, width, ends[3];
  bool tied, bias;
  int seed;  // of the ids
} shape;

enum { MOST = 2048 };

static tarn__bands bands_of(const shape *s) {
  return (tarn__bands){.count = 3, .first = {0, s->ends[0], s->ends[1], s->ends[2]}};
}

static void draw(int32_t ids[MOST], const shape *s, int more) {
  tarn__random random;
  tarn__random_init(&random, (uint64_t)(s->seed + more), 1);
  for (int64_t r = 0; r < s->rows; r++) ids[r] = (int32_t)tarn__random_below(&random, (uint64_t)s->ends[2]);
}

static int64_t rows_of(const shape *s, int b) { return s->ends[b] - (b > 0 ? s->ends[b - 1] : -2); }

static int64_t width_of(const shape *s, int b) { return s->width >> b; }

// A table for each band, shared with the input or not.
static void make(check *c, const shape *s, tarn__task_weights *weights, bool input) {
  tarn__bands *in = &weights->target_bands, *out = &weights->output_bands;
  *weights = (tarn__task_weights){.target_bands = bands_of(s), .output_bands = bands_of(s)};
  out->transposed = s->tied;
  for (int b = 0; b < 3; b++) {
    const int64_t width = width_of(s, b);
    const double scale = 1.0 / sqrt((double)width);
    out->table[b] = check_param(c, rows_of(s, b), width, scale, true);
    if (input) in->table[b] = out->table[b];
    if (input || s->tied) in->projection[b] = check_param(c, s->width, width, scale, true);
    if (b > 0) out->projection[b] = s->tied ? in->projection[b] : check_param(c, width, s->width, scale, true);
    if (s->bias) out->bias[b] = check_param(c, 1, rows_of(s, b), 0.3, true);
  }
}

static void build_loss(check *c, tarn__graph *graph, const void *spec) {
  static int32_t ids[MOST], targets[MOST];
  const shape *s = spec;
  tarn__task_weights weights;
  make(c, s, &weights, s->tied);
  draw(ids, s, 0);
  draw(targets, s, 1);
  tarn__tensor *x = s->tied ? tarn__bands_embed(graph, &weights.target_bands, ids, s->rows, 1.25)
                            : check_input(c, graph, s->rows, s->width, 1.0, true);
  const tarn__head head = {.x = x, .weights = &weights};
  check_loss(c, tarn__bands_loss(graph, &head, tarn__graph_input(graph, s->rows, targets, "targets"), 0.125));
}

static void build_scores(check *c, tarn__graph *graph, const void *spec) {
  static int32_t targets[MOST];
  const shape *s = spec;
  tarn__task_weights weights;
  make(c, s, &weights, false);
  draw(targets, s, 1);
  const tarn__head head = {.x = check_input(c, graph, s->rows, s->width, 1.0, false), .weights = &weights};
  check_output(c, tarn__bands_log_probabilities(graph, &head));
  check_output(c, tarn__bands_top(graph, &head, s->ends[2] / 3, (int32_t)s->ends[1]).values);
  check_output(c, tarn__bands_token_loss(graph, &head, tarn__graph_input(graph, s->rows, targets, "targets")));
}

static const shape shapes[] = {{1, 8, {2, 4, 7}, true, true, 1},          {17, 24, {9, 20, 37}, false, true, 2},
                               {40, 24, {100, 300, 600}, true, false, 3}, {64, 100, {300, 700, 1500}, false, false, 4},
                               {3, 16, {40, 500, 520}, true, true, 5},    {200, 40, {17, 21, 900}, false, true, 6}};

static void sizes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const shape *s = &shapes[i];
    char name[80];
    snprintf(name, sizeof name, "bands %lld x %lld -> %lld", (long long)s->rows, (long long)s->width,
             (long long)s->ends[2]);
    check_kernels(build_loss, s, name, 3e-5, 0.04);
    check_kernels_mode(build_scores, s, name, false, 2e-5, 0.03);
  }
  // Rows that a card copies in other units; the processor's bits are on record.
  static const shape odd = {30, 12, {9, 20, 37}, true, true, 7};
  if (check_device() != &tarn__device_cpu) check_kernels(build_loss, &odd, "bands of odd width", 3e-5, 0.04);
}

// Words by falling log-probabilities, and where these are equal by rising numbers.
static const float *log_p_of_words;

static int more_probable(const void *a, const void *b) {
  const int32_t v = *(const int32_t *)a, w = *(const int32_t *)b;
  if (log_p_of_words[v] != log_p_of_words[w]) return log_p_of_words[v] > log_p_of_words[w] ? -1 : 1;
  return v < w ? -1 : v > w;
}

static void order_words(int32_t order[MOST], const float *log_p, int64_t words) {
  for (int32_t v = 0; v < words; v++) order[v] = v;
  log_p_of_words = log_p;
  qsort(order, (size_t)words, sizeof *order, more_probable);
}

static float *random_floats(tarn__random *random, int64_t count, double scale) {
  float *values = check_shared((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++) values[i] = (float)(scale * tarn__random_normal(random));
  return values;
}

typedef struct answers {
  tarn__tensor *log_p, *losses;
  tarn__top top;
} answers;

// The best words, as many as `best`, are those of all log-probabilities, and these are those of the losses; the
// probabilities of each row add up to 1.
static void compare(const shape *s, const answers *a, const int32_t *targets, int64_t best, int32_t always) {
  const int64_t words = s->ends[2];
  for (int64_t r = 0; r < s->rows; r++) {
    const float *log_p = (const float *)a->log_p->data + r * words;
    const float *values = (const float *)a->top.values->data + r * (best + 1);
    const int32_t *ids = (const int32_t *)a->top.ids->data + r * best;
    double sum = 0.0;
    int32_t order[MOST];
    bool seen[MOST] = {false};  // two words that are as probable may change places, as roundings differ
    for (int64_t v = 0; v < words; v++) sum += exp((double)log_p[v]);
    if (!(fabs(sum - 1.0) <= 1e-5)) fail_msg("probabilities add up to %.9g", sum);
    order_words(order, log_p, words);
    for (int64_t i = 0; i < best; i++) {
      const int32_t word = order[i];
      const float tolerance = 1e-5f * (1.0f + fabsf(log_p[word]));
      if (ids[i] < 0 || ids[i] >= words || seen[ids[i]] || !(fabsf(log_p[ids[i]] - log_p[word]) <= tolerance) ||
          !(fabsf(values[i] - log_p[word]) <= tolerance))
        fail_msg("best word %lld of row %lld is %d (%.9g), not %d (%.9g)", (long long)i, (long long)r, (int)ids[i],
                 (double)values[i], (int)word, (double)log_p[word]);
      seen[ids[i]] = true;
    }
    if (!(fabsf(values[best] - log_p[always]) <= 1e-5f * (1.0f + fabsf(log_p[always]))))
      fail_msg("the word always wanted");
    const double loss = ((const double *)a->losses->data)[2 * r];
    if (!(fabs(loss + (double)log_p[targets[r]]) <= 1e-5 * (1.0 + loss))) fail_msg("loss %.9g", loss);
  }
}

static void agree_for(const shape *s, int64_t best, int32_t always) {
  static int32_t targets[MOST];
  tarn__param params[3][2];
  tarn__random random;
  tarn__random_init(&random, (uint64_t)s->seed, 9);
  tarn__task_weights weights = {.output_bands = bands_of(s)};
  float *x = random_floats(&random, s->rows * s->width, 1.0);
  for (int b = 0; b < 3; b++) {
    const int64_t width = width_of(s, b), rows = rows_of(s, b);
    params[b][0] = (tarn__param){.name = "table", .rows = rows, .cols = width, .uses = 1, .dtype = TARN__F32};
    params[b][1] = (tarn__param){.name = "projection", .rows = width, .cols = s->width, .uses = 1, .dtype = TARN__F32};
    params[b][0].value = random_floats(&random, rows * width, 0.6);
    params[b][1].value = random_floats(&random, width * s->width, 0.6);
    weights.output_bands.table[b] = &params[b][0];
    weights.output_bands.projection[b] = &params[b][1];
  }
  draw(targets, s, 1);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), TARN__F32, false, CHECK_THREADS);
  const tarn__head head = {.x = tarn__graph_external(&graph, TARN__F32, s->rows, s->width, x, "x"),
                           .weights = &weights};
  const answers a = {
      .log_p = tarn__bands_log_probabilities(&graph, &head),
      .losses = tarn__bands_token_loss(&graph, &head, tarn__graph_input(&graph, s->rows, targets, "targets")),
      .top = tarn__bands_top(&graph, &head, best, always)};
  a.log_p->keep = a.losses->keep = a.top.values->keep = a.top.ids->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  const tarn__exec exec = {.threads = CHECK_THREADS, .spread = true};
  check_ok(tarn__graph_run(&graph, &exec));
  check_ok(tarn__device_synchronise(check_device()));
  compare(s, &a, targets, best, always);
  check_shared_free(workspace);
  tarn__graph_close(&graph);
  check_shared_free(x);
  for (int b = 0; b < 3; b++)
    for (int i = 0; i < 2; i++) check_shared_free(params[b][i].value);
}

static void agree(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const int64_t words = shapes[i].ends[2];
    const int64_t times = check_device() == &tarn__device_cpu ? 3 : 30;  // cuda_host has no time for more
    for (int64_t best = 1; best <= words; best = times * best + 1)
      for (int k = 0; k < 3; k++) agree_for(&shapes[i], best, (int32_t)shapes[i].ends[k] - 1);
    agree_for(&shapes[i], words, 0);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
