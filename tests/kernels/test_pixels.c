// Pixels as numbers: the fast kernels against the reference, before a product as in models, with rows that are no
// patches.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"
#include "ops/pixels.h"

typedef struct shape {
  int64_t rows, width, d;
} shape;

enum { WORDS = 40 * 200 / 4 };

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  static int32_t words[WORDS], ids[64];
  uint8_t *bytes = (uint8_t *)words;
  assert_true(tarn__pixel_words(s->rows * s->width) <= WORDS && s->rows <= 64);
  for (int64_t i = 0; i < s->rows * s->width; i++) bytes[i] = (uint8_t)(i * 37 + i / 256 * 11);
  for (int64_t r = 0; r < s->rows; r++) ids[r] = r % 5 != 0;
  tarn__tensor *from = check_ints(c, graph, words, tarn__pixel_words(s->rows * s->width));
  tarn__tensor *x = tarn__pixels(graph, from, check_ints(c, graph, ids, s->rows), s->width);
  check_output(c, x);
  tarn__param *weight = check_param(c, s->d, s->width, 1.0 / (double)s->width, true);
  check_output(c, tarn__linear(graph, x, weight, NULL, TARN__IDENTITY));
}

static void shapes(void **state) {
  (void)state;
  static const shape all[] = {{1, 1, 8}, {2, 3, 8}, {5, 16, 32}, {33, 48, 24}, {40, 200, 64}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char name[80];
    snprintf(name, sizeof name, "%d rows of %d", (int)all[i].rows, (int)all[i].width);
    check_kernels(build, &all[i], name, 1e-5, 0.02);
  }
}

// Every byte, and what it means: -1 is black, 1 white.
static void values(void **state) {
  (void)state;
  assert_true(tarn__pixel_value(0) == -1.0 && tarn__pixel_value(255) == 1.0);
  for (int b = 1; b < 256; b++) assert_true(tarn__pixel_value((uint8_t)b) > tarn__pixel_value((uint8_t)(b - 1)));
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
