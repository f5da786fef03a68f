// The mixture of softmaxes: loss, its gradients, log-probabilities and the best words, fast against reference, for
// every instruction set; and that probabilities are those of a mixture.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/output_mixture.h"

typedef struct shape {
  int64_t rows, mixtures, d, words;
  bool bias, grads;
  double smoothing, spread;  // spread: of the logits
} shape;

static const double grad_scale = 0.125;

static tarn__mixture inputs(check *c, tarn__graph *graph, const shape *s) {
  tarn__mixture m = {.h = check_input(c, graph, s->rows, s->mixtures * s->d, 1.0, s->grads),
                     .prior = check_input(c, graph, s->rows, s->mixtures, 1.5, s->grads)};
  m.table = check_param(c, s->words, s->d, s->spread / sqrt((double)s->d), true);
  m.bias = s->bias ? check_param(c, 1, s->words, 0.5, true) : NULL;
  return m;
}

static void build_loss(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  const tarn__mixture m = inputs(c, graph, s);
  int32_t targets[1024];
  for (int64_t r = 0; r < s->rows; r++) targets[r] = (int32_t)((r * 7919 + 3) % s->words);
  check_loss(c, tarn__mixture_loss(graph, &m, check_ints(c, graph, targets, s->rows), s->smoothing, grad_scale));
}

static void build_log(check *c, tarn__graph *graph, const void *spec) {
  const tarn__mixture m = inputs(c, graph, spec);
  check_output(c, tarn__mixture_log_probabilities(graph, &m));
}

static void build_top(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  const tarn__mixture m = inputs(c, graph, s);
  check_output(c, tarn__mixture_top(graph, &m, s->words / 3, (int32_t)s->words / 2).values);
}

static void sizes(void **state) {
  (void)state;
  static const shape shapes[] = {
      {1, 2, 8, 9, true, true, 0.1, 1.5},      {17, 3, 24, 37, false, true, 0.0, 1.5},
      {40, 15, 24, 600, true, true, 0.1, 1.5}, {33, 4, 100, 1024, true, true, 0.0, 1.5},
      {5, 64, 8, 70, true, true, 0.2, 1.5},    {20, 5, 16, 130, true, false, 0.1, 1.5},
      {30, 3, 24, 300, true, true, 0.1, 60.0},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const shape *s = &shapes[i];
    char name[80];
    snprintf(name, sizeof name, "mixture %lld x %lld x %lld -> %lld", (long long)s->rows, (long long)s->mixtures,
             (long long)s->d, (long long)s->words);
    check_kernels(build_loss, s, name, s->spread > 10 ? 2e-4 : 3e-5, 0.04);
    check_kernels_mode(build_log, s, name, false, 2e-5, 0.03);
    check_kernels_mode(build_top, s, name, false, 2e-5, 0.03);
  }
}

// So many words and rows that these fall into several chunks, the last one of another size.
static void chunks(void **state) {
  (void)state;
  static const shape s = {20, 4, 8, 34001, true, true, 0.1, 1.5};
  check_kernels(build_loss, &s, "mixture in chunks", 1e-4, 0.06);
}

// Each row's probabilities add up to 1, and are those of its softmaxes times the priors'.
static void adds_up(void **state) {
  (void)state;
  enum { ROWS = 6, MIXTURES = 3, WIDTH = 4, WORDS = 50 };
  enum { VECTORS = ROWS * MIXTURES * WIDTH, PRIORS = ROWS * MIXTURES, TABLE = WORDS * WIDTH };
  float *h = check_shared((VECTORS + PRIORS + TABLE) * sizeof *h), *prior = h + VECTORS, *table = prior + PRIORS;
  tarn__random random;
  tarn__random_init(&random, 3, 0);
  for (size_t i = 0; i < VECTORS; i++) h[i] = (float)tarn__random_normal(&random);
  for (size_t i = 0; i < PRIORS; i++) prior[i] = (float)tarn__random_normal(&random);
  for (size_t i = 0; i < TABLE; i++) table[i] = 30.0f * (float)tarn__random_normal(&random);
  tarn__param param = {.name = "table", .rows = WORDS, .cols = WIDTH, .uses = 1, .dtype = TARN__F32, .value = table};
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), TARN__F32, false, 2);
  const tarn__mixture m = {.h = tarn__graph_external(&graph, TARN__F32, ROWS, MIXTURES * WIDTH, h, "h"),
                           .prior = tarn__graph_external(&graph, TARN__F32, ROWS, MIXTURES, prior, "prior"),
                           .table = &param};
  tarn__tensor *out = tarn__mixture_log_probabilities(&graph, &m);
  out->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  const tarn__exec exec = {.threads = 2, .spread = true};
  check_ok(tarn__graph_run(&graph, &exec));
  check_ok(tarn__device_synchronise(check_device()));
  for (int r = 0; r < ROWS; r++) {
    double p[WORDS] = {0}, sum = 0.0, priors = 0.0;
    for (int k = 0; k < MIXTURES; k++) priors += exp((double)prior[r * MIXTURES + k]);
    for (int k = 0; k < MIXTURES; k++) {
      double logits[WORDS], all = 0.0;
      for (int v = 0; v < WORDS; v++) {
        logits[v] = 0.0;
        for (int i = 0; i < WIDTH; i++)
          logits[v] += (double)h[(r * MIXTURES + k) * WIDTH + i] * (double)table[v * WIDTH + i];
        all += exp(logits[v]);
      }
      for (int v = 0; v < WORDS; v++) p[v] += exp((double)prior[r * MIXTURES + k]) / priors * exp(logits[v]) / all;
    }
    for (int v = 0; v < WORDS; v++) {
      const double log_p = (double)((const float *)out->data)[r * WORDS + v];
      sum += exp(log_p);
      if (!(fabs(log_p - log(p[v])) <= 1e-4 * (1.0 + fabs(log_p)))) fail_msg("%.9g is not %.9g", log_p, log(p[v]));
    }
    if (!(fabs(sum - 1.0) <= 1e-5)) fail_msg("probabilities add up to %.9g", sum);
  }
  check_shared_free(workspace);
  check_shared_free(h);
  tarn__graph_close(&graph);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(chunks), cmocka_unit_test(adds_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
