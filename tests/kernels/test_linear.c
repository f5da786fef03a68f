// linear: the fast kernels against the reference in double, at odd sizes, for every instruction set.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct shape {
  int64_t rows, in, out;
  bool bias, relu, x_grad, weight_trained, bias_trained;
  int uses;               // of the same weight and the same input
  tarn__activation kept;  // in place of what `relu` says; IDENTITY: none
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->in, 1.0, s->x_grad);
  tarn__param *weight = check_param(c, s->out, s->in, 0.2, s->weight_trained);
  tarn__param *bias = s->bias ? check_param(c, 1, s->out, 0.5, s->bias_trained) : NULL;
  tarn__activation activation = s->kept ? s->kept : s->relu ? TARN__RELU : TARN__IDENTITY;
  for (int i = 0; i < s->uses; i++) check_output(c, tarn__linear(graph, x, weight, bias, activation));
}

static void sizes(void **state) {
  (void)state;
  static const int64_t rows[] = {1, 2, 15, 17, 257, 600}, cols[] = {8, 24, 100, 512};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (size_t i = 0; i < 4; i++)
      for (size_t o = 0; o < 4; o++) {
        if (cols[i] * cols[o] * rows[r] > 20000000) continue;
        shape s = {rows[r], cols[i], cols[o], (i + o) % 2 == 0, o % 2 == 1, true, true, true, 1, TARN__IDENTITY};
        char name[80];
        snprintf(name, sizeof name, "linear %lld x %lld -> %lld", (long long)s.rows, (long long)s.in, (long long)s.out);
        check_kernels(build, &s, name, 1e-5, 0.012);
      }
}

static void shared(void **state) {
  (void)state;
  shape s = {33, 40, 48, true, true, true, true, true, 3, TARN__IDENTITY};
  check_kernels(build, &s, "linear used three times", 1e-5, 0.015);
}

static void parts(void **state) {
  (void)state;
  shape frozen = {33, 40, 48, true, true, true, false, false, 1, TARN__IDENTITY};
  check_kernels(build, &frozen, "frozen linear", 1e-5, 0.012);
  shape no_dx = {33, 40, 48, true, false, false, true, false, 1, TARN__IDENTITY};
  check_kernels(build, &no_dx, "linear without dx, frozen bias", 1e-5, 0.012);
  shape bias_only = {33, 40, 48, true, true, false, false, true, 1, TARN__IDENTITY};
  check_kernels(build, &bias_only, "linear, bias trained alone", 1e-5, 0.012);
}

// Every activation but relu, where one task, several, and several chunks of k make the product; with and without
// gradients.
static void activations(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {{1, 8, 5}, {17, 24, 100}, {300, 40, 72}, {33, 3000, 40}, {2, 64, 1100}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int form = TARN__GELU; form < TARN__ACTIVATIONS_END; form++) {
      shape s = {shapes[i][0], shapes[i][1], shapes[i][2], i % 2 == 0, false,
                 true,         true,         true,         1,          (tarn__activation)form};
      char name[80];
      snprintf(name, sizeof name, "activation %d, %lld x %lld -> %lld", form, (long long)s.rows, (long long)s.in,
               (long long)s.out);
      check_kernels(build, &s, name, 2e-5, 0.02);
      s.x_grad = s.weight_trained = s.bias_trained = false;
      check_kernels(build, &s, name, 2e-5, 0.02);
    }
}

// A node of its own, far from 0 too.
static void build_activation(check *c, tarn__graph *graph, const void *spec) {
  tarn__tensor *x = check_input(c, graph, 37, 29, 4.0, true);
  check_output(c, tarn__activate(graph, x, *(const tarn__activation *)spec));
}

static void alone(void **state) {
  (void)state;
  for (tarn__activation form = TARN__GELU; form < TARN__ACTIVATIONS_END; form++)
    check_kernels(build_activation, &form, "activation alone", 4e-6, 0.01);
}

// Without relu, whose kinks bf16 would put elsewhere.
typedef struct chain {
  int64_t rows;
  tarn__activation form;
} chain;

static void build_chain(check *c, tarn__graph *graph, const void *spec) {
  const chain *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, 40, 1.0, true);
  for (int i = 0; i < 3; i++) {
    tarn__param *weight = check_param(c, 40, 40, 0.2, i != 1);
    x = tarn__linear(graph, x, weight, check_param(c, 1, 40, 0.5, true), s->form);
  }
  check_output(c, x);
}

static void chains(void **state) {
  (void)state;
  static const int64_t rows[] = {1, 2, 17, 33, 257, 1030};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const chain plain = {rows[i], TARN__IDENTITY}, swish = {rows[i], TARN__SWISH};
    char name[60];
    snprintf(name, sizeof name, "%lld rows through three layers", (long long)rows[i]);
    check_kernels(build_chain, &plain, name, 2e-5, 0.06);
    // The products of the gradients take these through the activations.
    if (i % 2 == 1) check_kernels(build_chain, &swish, name, 2e-5, 0.06);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes),  cmocka_unit_test(shared),      cmocka_unit_test(parts),
                                     cmocka_unit_test(chains), cmocka_unit_test(activations), cmocka_unit_test(alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
