// The gradients of vocabularies in bands, at the input and at the output, against finite differences: also of a band
// that no word is of, with projections that both share, and with dropout.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "task/bands.h"

enum { WIDTH = 6, ROWS = 7 };

typedef struct spec {
  const int32_t *ids, *targets;
  bool tied, biased;
  double dropout;
} spec;

// Words 0 .. 3, 4 .. 6 and 7 .. 11; the classes of two bands are the last rows of the first table.
static const tarn__bands edges = {.count = 3, .first = {0, 4, 7, 12}};

static void build(check *c, tarn__graph *graph, const void *of) {
  const spec *s = of;
  tarn__task_weights weights = {.target_bands = edges, .output_bands = edges};
  tarn__bands *in = &weights.target_bands, *out = &weights.output_bands;
  static const int64_t widths[] = {6, 3, 2}, rows[] = {6, 3, 5};
  for (int b = 0; b < 3; b++) {
    in->table[b] = check_param(c, rows[b], widths[b], 0.8, true);
    in->projection[b] = check_param(c, WIDTH, widths[b], 0.5, true);
    out->table[b] = s->tied ? in->table[b] : check_param(c, rows[b], widths[b], 0.8, true);
    out->bias[b] = s->biased ? check_param(c, 1, rows[b], 0.5, true) : NULL;
    if (b > 0 && !s->tied) out->projection[b] = check_param(c, widths[b], WIDTH, 0.5, true);
    if (s->tied) out->projection[b] = in->projection[b];
  }
  out->transposed = s->tied;
  out->dropout = s->dropout;
  tarn__tensor *ids = check_ints(c, graph, s->targets, ROWS);
  const tarn__head head = {.x = tarn__tanh(graph, tarn__bands_embed(graph, in, s->ids, ROWS, 1.5)),
                           .weights = &weights};
  check_loss(c, tarn__bands_loss(graph, &head, ids, 1.0));
}

static const int32_t all[] = {3, 11, 5, 0, 8, 6, 3}, other[] = {7, 0, 4, 3, 11, 7, 5}, first[] = {1, 2, 0, 1, 3, 3, 0};

static void bands(void **state) {
  (void)state;
  static const struct {
    const char *name;
    spec spec;
  } cases[] = {
      {"bands apart", {all, other, false, false, 0.0}},
      {"bands shared", {all, other, true, true, 0.0}},
      {"bands with dropout", {all, other, true, false, 0.3}},
      {"no words of a band", {first, first, true, true, 0.0}},
      {"bands at the input alone", {other, first, false, false, 0.0}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_gradients(build, &cases[i].spec, cases[i].name, 1e-8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bands)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
