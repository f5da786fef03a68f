// The gradients of linear layers across tokens against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/token_linear.h"

static const int32_t offsets[] = {0, 5, 6, 6, 10};
enum { ROWS = 10, SENTENCES = 4, D = 3, HIDDEN = 4, TOKENS = 7 };

typedef struct form {
  tarn__token_spec spec;
  bool gate, added, frozen;
} form;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const form *f = spec;
  const bool in = f->spec.form == TARN__TOKENS_IN, out = f->spec.form == TARN__TOKENS_OUT;
  tarn__tensor *x = check_input(c, graph, out ? SENTENCES * HIDDEN : ROWS, D, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, offsets, SENTENCES + 1);
  tarn__param *weight = check_param(c, in ? HIDDEN : TOKENS, out ? HIDDEN : TOKENS, 0.5, !f->frozen);
  tarn__param *bias = check_param(c, 1, in ? HIDDEN : TOKENS, 0.5, true);
  tarn__token_gate with = {0};
  if (f->gate) with.gate = check_input(c, graph, ROWS, D, 1.0, true);
  if (f->added) with.added = check_input(c, graph, ROWS, D, 1.0, true);
  check_output(c, tarn__token_linear(graph, x, places, weight, bias, with, f->spec));
}

static void token_linear(void **state) {
  (void)state;
  static const form forms[] = {
      {{TARN__TOKENS_AMONG, false, 5, 0}, false, false, false},
      {{TARN__TOKENS_AMONG, true, 5, 0}, false, false, false},
      {{TARN__TOKENS_AMONG, false, 5, 0}, true, false, false},
      {{TARN__TOKENS_AMONG, true, 9, 0}, true, true, false},
      {{TARN__TOKENS_AMONG, true, 9, 0}, true, true, true},
      {{TARN__TOKENS_IN, false, 5, 0}, false, false, false},
      {{TARN__TOKENS_OUT, false, 5, ROWS}, false, false, false},
      {{TARN__TOKENS_OUT, false, 5, ROWS}, false, false, true},
  };
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "form %d", (int)i);
    check_gradients(build, &forms[i], name, 1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(token_linear)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
