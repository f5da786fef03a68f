// hadamard: the fast kernels against the reference in double for every instruction set, and both against linear with
// the dense matrix that the signs stand for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/devices.h"
#include "kernels/hadamard_check.h"
#include "ops/ops.h"

typedef struct shape {
  int64_t rows, in, out;
  int blocks, uses;  // uses: of the same signs and the same input
  bool bias, relu;   // with relu there is a bias in any case
} shape;

// A bias that decides the signs of all outputs, so that rounding on the way turns none of them: what is below 0 counts
// for nothing in the gradient.
static tarn__param *deciding_bias(check *c, int64_t n) {
  tarn__param *bias = check_param(c, 1, n, 1.0, false);
  check_item *item = &c->item[c->next - 1];
  for (int64_t i = 0; i < n; i++) {
    item->value[i] = item->value[i] < 0.0 ? -8.0 : 8.0;
    check_store(bias->value, bias->dtype, (size_t)i, item->value[i]);
  }
  return bias;
}

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->in, 1.0, true);
  tarn__param *signs = check_signs(c, s->out, s->in, s->blocks);
  tarn__param *bias = s->relu ? deciding_bias(c, s->out) : s->bias ? check_param(c, 1, s->out, 0.5, false) : NULL;
  for (int i = 0; i < s->uses; i++)
    check_output(c, tarn__hadamard(graph, x, signs, bias, s->relu ? TARN__RELU : TARN__IDENTITY));
}

static void try_shape(shape s, double tolerance) {
  char name[80];
  snprintf(name, sizeof name, "hadamard %lld x %lld -> %lld", (long long)s.rows, (long long)s.in, (long long)s.out);
  check_kernels(build, &s, name, tolerance, 0.015);
}

// Powers of two by way of registers, by way of loops, and beyond one far pass; widths with windows; rows of every odd
// count.
static void square(void **state) {
  (void)state;
  static const int64_t width[] = {1, 2, 3, 5, 8, 12, 17, 32, 64, 100, 128, 256, 320, 512, 768, 1000, 1024, 2048, 8192};
  for (size_t i = 0; i < sizeof width / sizeof width[0]; i++)
    try_shape((shape){1 + (int64_t)i % 4, width[i], width[i], 1, 1, i % 2 == 0, i % 3 == 0}, 1e-5);
}

static void tall_and_wide(void **state) {
  (void)state;
  static const int64_t size[][2] = {{512, 1024}, {256, 1024}, {320, 960}, {8, 12},  {12, 8},
                                    {600, 1024}, {512, 700},  {7, 1},     {1, 300}, {16, 4096}};
  for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
    try_shape((shape){3, size[i][0], size[i][1], 1, 1, i % 2 == 0, i % 3 != 0}, 1e-5);
    try_shape((shape){17, size[i][1], size[i][0], 1, 1, i % 2 == 1, i % 3 == 0}, 1e-5);
  }
}

static void blocks_and_uses(void **state) {
  (void)state;
  try_shape((shape){5, 512, 1536, 3, 1, true, false}, 1e-5);
  try_shape((shape){5, 24, 48, 2, 2, true, true}, 1e-5);
  try_shape((shape){6, 64, 96, 3, 3, false, true}, 1e-5);
  try_shape((shape){6, 40, 16, 2, 1, false, false}, 1e-5);
  try_shape((shape){6, 40, 60, 2, 1, true, false}, 1e-5);
}

// Widths that tiles transform, rows that fill groups of 8, 16 and 32 and some more; a gradient that adds to another.
static void groups_of_rows(void **state) {
  (void)state;
  static const int64_t rows[] = {1, 8, 15, 16, 17, 31, 35, 70};
  static const int64_t size[][2] = {{512, 512},  {512, 1024}, {1024, 512}, {256, 256},
                                    {256, 1024}, {128, 128},  {384, 128}};
  for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
      const int uses = 1 + (int)(r % 2), blocks = r % 3 == 0 ? 3 : 1;
      try_shape((shape){rows[r], size[i][0], size[i][1] * blocks, blocks, uses, r % 4 < 2, (i + r) % 3 == 0}, 1e-5);
    }
}

// Enough to be written past the caches.
static void many_rows(void **state) {
  (void)state;
  const int64_t rows = check_device() == &tarn__device_cpu ? 2800 : 70;  // only the processor has such caches
  try_shape((shape){rows, 256, 1024, 1, 1, true, false}, 1e-5);
}

// Output 0 by signs, output 1 by the matrix.
static void build_both(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->in, 1.0, false);
  tarn__param *signs = check_signs(c, s->out, s->in, s->blocks);
  const double *sign = c->item[c->next - 1].value;
  tarn__param *bias = check_param(c, 1, s->out, 0.5, false);
  tarn__param *dense = check_param(c, s->out, s->in, 1.0, false);
  tarn__hadamard_shape cut = tarn__hadamard_shape_signs(signs);
  size_t count = (size_t)(signs->rows * signs->cols), all = (size_t)(s->out * s->in);
  float *values = check_alloc(all + count, sizeof(float));
  for (size_t i = 0; i < count; i++) values[all + i] = (float)sign[i];
  check_ok(tarn__hadamard_dense(values, values + all, &cut));
  for (size_t i = 0; i < all; i++) check_store(dense->value, dense->dtype, i, values[i]);
  tarn__free(values);
  check_output(c, tarn__hadamard(graph, x, signs, bias, TARN__RELU));
  check_output(c, tarn__linear(graph, x, dense, bias, TARN__RELU));
}

static void is_the_dense_matrix(void **state) {
  (void)state;
  static const shape shapes[] = {{9, 512, 512, 1, 1, true, true},  {9, 512, 1024, 1, 1, true, true},
                                 {9, 1024, 512, 1, 1, true, true}, {9, 64, 192, 3, 1, true, true},
                                 {9, 320, 320, 1, 1, true, true},  {9, 12, 8, 1, 1, true, true},
                                 {9, 40, 60, 2, 1, true, true},    {9, 96, 36, 1, 1, true, true}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    check c;
    check_open(&c);
    check_run(&c, build_both, &shapes[i], &tarn__device_reference, TARN__F64, false);
    check_close_to(c.output_value[0], c.output_value[1], c.output_size[0], 1e-6, "reference", "output", 0);
    check_run(&c, build_both, &shapes[i], check_device(), TARN__F32, false);
    check_close_to(c.output_value[0], c.output_value[1], c.output_size[0], 1e-5, "fast kernels", "output", 0);
    check_close(&c);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(square),          cmocka_unit_test(tall_and_wide),
                                     cmocka_unit_test(blocks_and_uses), cmocka_unit_test(groups_of_rows),
                                     cmocka_unit_test(many_rows),       cmocka_unit_test(is_the_dense_matrix)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
