// What heads of classification and regression are made of: the fast kernels against the reference. The output layer has
// as many words as there are classes, 2 and more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

static const double grad_scale = 0.125;

// Sentences of many lengths, one of them empty, one much longer than the others.
static const int32_t many[] = {0, 1, 3, 3, 10, 27, 28, 120, 125};
enum { MANY = sizeof many / sizeof many[0] - 1 };

typedef struct shape {
  int64_t rows, d, classes;
  bool chain;  // x is read twice
} shape;

static void build_mean(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, many[MANY], s->d, 1.0, true);
  if (s->chain) check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
  check_output(c, tarn__sentence_mean(graph, x, check_ints(c, graph, many, MANY + 1)));
}

static void build_tanh(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->d, 3.0, true);
  if (s->chain) check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
  check_output(c, tarn__tanh(graph, x));
}

static void build_error(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t bits[64];
  for (int64_t r = 0; r < s->rows; r++) {
    const float value = 0.25f * (float)(r % 11) - 1.0f;
    memcpy(&bits[r], &value, sizeof value);
  }
  tarn__tensor *x = check_input(c, graph, s->rows, s->d, 1.0, true), *numbers;
  tarn__param *weight = check_param(c, 1, s->d, 0.1, true), *bias = check_param(c, 1, 1, 0.5, true);
  tarn__tensor *loss =
      tarn__squared_error(graph, x, weight, bias, check_ints(c, graph, bits, s->rows), grad_scale, &numbers);
  check_output(c, numbers);
  check_loss(c, loss);
}

static void build_numbers(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->d, 1.0, false), *numbers;
  tarn__param *bias = check_param(c, 1, 1, 0.5, false), *weight = check_param(c, 1, s->d, 0.1, false);
  (void)tarn__squared_error(graph, x, weight, bias, NULL, 0.0, &numbers);
  check_output(c, numbers);
}

static void build_classes(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t targets[64];
  for (int64_t r = 0; r < s->rows; r++) targets[r] = (int32_t)(r * 5 % s->classes);
  tarn__tensor *x = check_input(c, graph, s->rows, s->d, 1.0, true);
  tarn__param *table = check_param(c, s->classes, s->d, 1.5 / sqrt((double)s->d), true);
  tarn__param *bias = check_param(c, 1, s->classes, 0.5, true);
  check_loss(c, tarn__output_loss(graph, x, table, bias, check_ints(c, graph, targets, s->rows), 0.1, grad_scale));
}

static void build_log(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->d, 1.0, false);
  tarn__param *table = check_param(c, s->classes, s->d, 1.5 / sqrt((double)s->d), false);
  check_output(c, tarn__output_log_probabilities(graph, x, table, check_param(c, 1, s->classes, 0.5, false)));
}

static void sizes(void **state) {
  (void)state;
  static const int64_t ds[] = {1, 8, 30, 100, 512}, rows[] = {1, 2, 17, 33, 64};
  for (size_t i = 0; i < sizeof ds / sizeof *ds; i++)
    for (int chain = 0; chain < 2; chain++) {
      const shape s = {.rows = rows[i], .d = 2 * ds[i], .chain = chain};
      char name[80];
      snprintf(name, sizeof name, "d %d%s", (int)s.d, chain ? ", added" : "");
      check_kernels(build_mean, &s, name, 1e-5, chain ? 0.05 : 0.02);
      check_kernels(build_tanh, &s, name, 1e-5, 0.05);
      if (!chain) check_kernels(build_error, &s, name, 1e-5, 0.02);
      if (!chain) check_kernels_mode(build_numbers, &s, name, false, 1e-5, 0.02);
    }
}

static void classes(void **state) {
  (void)state;
  static const int64_t ds[] = {8, 24, 100, 512}, rows[] = {1, 2, 16, 33, 64}, counts[] = {2, 3, 5, 17};
  for (size_t d = 0; d < 4; d++)
    for (size_t r = 0; r < 5; r++) {
      const shape s = {.rows = rows[r], .d = ds[d], .classes = counts[(d + r) % 4]};
      char name[80];
      snprintf(name, sizeof name, "%d classes, %d x %d", (int)s.classes, (int)s.rows, (int)s.d);
      check_kernels(build_classes, &s, name, 2e-5, 0.03);
      check_kernels_mode(build_log, &s, name, false, 1e-5, 0.02);
    }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(classes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
