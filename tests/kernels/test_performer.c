// The Performer far from 0, where the features of keys themselves are 0 in floats: outputs and gradients of the fast
// kernels in fp32 and of the reference against the published equations in double, by logarithms, pair of rows by pair;
// single rows by a cache against whole sentences; and the loss and gradients of whole models in fp32 against double.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/linear_attention_check.h"
#include "model/model.h"

enum { HEADS = 3, WIDTH = 12, FEATURES = 17, D = HEADS * WIDTH, ROWS = 186 };

// Sentences of one row, of few, of one chunk and of several.
static const int32_t offsets[] = {0, 1, 6, 6, 36, ROWS};
enum { SENTENCES = sizeof offsets / sizeof *offsets - 1 };

// What the equations say of one head of one sentence.
typedef struct formula {
  const double *x, *w, *dy;  // dy: gradient of the outputs
  double *y, *dx;
  int64_t first, rows, head;
  bool causal;
} formula;

static double exponents[2][ROWS][FEATURES], de[2][ROWS][FEATURES];

static double scaled(const formula *f, int part, int64_t row, int64_t c) {
  return f->x[(f->first + row) * 3 * D + part * D + f->head * WIDTH + c] / sqrt(sqrt((double)WIDTH));
}

static void find_exponents(const formula *f) {
  for (int part = 0; part < 2; part++)
    for (int64_t i = 0; i < f->rows; i++)
      for (int j = 0; j < FEATURES; j++) {
        double e = 0;
        for (int c = 0; c < WIDTH; c++) {
          const double u = scaled(f, part, i, c);
          e += f->w[j * WIDTH + c] * u - u * u / 2;
        }
        exponents[part][i][j] = e;
        de[part][i][j] = 0;
      }
}

// Row i: its output, and what it adds to the gradients of exponents and values.
static void run_row(const formula *f, int64_t i) {
  const int64_t seen = f->causal ? i + 1 : f->rows, at = (f->first + i) * D + f->head * WIDTH;
  double most = -INFINITY, sum = 0;
  double *y = f->y + at;
  for (int64_t j = 0; j < seen; j++)
    for (int m = 0; m < FEATURES; m++) most = fmax(most, exponents[0][i][m] + exponents[1][j][m]);
  for (int c = 0; c < WIDTH; c++) y[c] = 0;
  for (int64_t j = 0; j < seen; j++)
    for (int m = 0; m < FEATURES; m++) {
      const double p = exp(exponents[0][i][m] + exponents[1][j][m] - most);
      sum += p;
      for (int c = 0; c < WIDTH; c++) y[c] += p * f->x[(f->first + j) * 3 * D + 2 * D + f->head * WIDTH + c];
    }
  for (int c = 0; c < WIDTH; c++) y[c] /= sum;
  for (int64_t j = 0; j < seen; j++) {
    const double *v = f->x + (f->first + j) * 3 * D + 2 * D + f->head * WIDTH;
    double *dv = f->dx + (f->first + j) * 3 * D + 2 * D + f->head * WIDTH, gain = 0, all = 0;
    for (int c = 0; c < WIDTH; c++) gain += f->dy[at + c] * (v[c] - y[c]);
    for (int m = 0; m < FEATURES; m++) {
      const double p = exp(exponents[0][i][m] + exponents[1][j][m] - most) / sum;
      de[0][i][m] += p * gain;
      de[1][j][m] += p * gain;
      all += p;
    }
    for (int c = 0; c < WIDTH; c++) dv[c] += all * f->dy[at + c];
  }
}

static void run_formula(const formula *f) {
  find_exponents(f);
  for (int64_t i = 0; i < f->rows; i++) run_row(f, i);
  for (int part = 0; part < 2; part++)
    for (int64_t i = 0; i < f->rows; i++)
      for (int c = 0; c < WIDTH; c++) {
        double d = 0;
        for (int m = 0; m < FEATURES; m++) d += de[part][i][m] * (f->w[m * WIDTH + c] - scaled(f, part, i, c));
        f->dx[(f->first + i) * 3 * D + part * D + f->head * WIDTH + c] = d / sqrt(sqrt((double)WIDTH));
      }
}

// The norm of the difference over the norm.
static double distance(const double *found, const double *wanted, int64_t n) {
  double square = 0, difference = 0;
  for (int64_t i = 0; i < n; i++) {
    difference += (found[i] - wanted[i]) * (found[i] - wanted[i]);
    square += wanted[i] * wanted[i];
  }
  return sqrt(difference / square);
}

static void against_formula(double scale, bool causal, double bound) {
  static double y[ROWS * D], dx[ROWS * 3 * D];
  const linear_case at = {.heads = HEADS,
                          .width = WIDTH,
                          .features = FEATURES,
                          .softmax = true,
                          .causal = causal,
                          .sentences = SENTENCES,
                          .offsets = offsets,
                          .scale = scale};
  const struct {
    const char *name;
    const tarn__device *device;
    tarn__dtype dtype;
  } ways[] = {{"fast fp32", check_device(), TARN__F32},
              {"reference fp32", &tarn__device_reference, TARN__F32},
              {"reference fp64", &tarn__device_reference, TARN__F64}};
  check c;
  check_open(&c);
  for (int way = 0; way < 3; way++) {
    const double most = ways[way].dtype == TARN__F64 ? 1e-9 : bound;
    check_run(&c, linear_build, &at, ways[way].device, ways[way].dtype, true);
    for (int s = 0; way == 0 && s < SENTENCES; s++)
      for (int64_t h = 0; h < HEADS; h++)
        run_formula(&(formula){.x = c.item[0].value,
                               .w = c.item[2].value,
                               .dy = c.output_weight[0],
                               .y = y,
                               .dx = dx,
                               .first = offsets[s],
                               .rows = offsets[s + 1] - offsets[s],
                               .head = h,
                               .causal = causal});
    const double output = distance(c.output_value[0], y, ROWS * D),
                 gradient = distance(c.item[0].grad, dx, ROWS * 3 * D);
    print_message("scale %g, %s, %s: output %.1e, gradient %.1e\n", scale, causal ? "causal" : "whole", ways[way].name,
                  output, gradient);
    if (!(output <= most && gradient <= most)) fail_msg("more than %.1e", most);
    memset(c.item[0].grad, 0, ROWS * 3 * D * sizeof(double));
    if (way == 0) memset(c.output_value[0], 0, ROWS * D * sizeof(double));
  }
  memset(dx, 0, sizeof dx);
  check_close(&c);
}

// Exponents of fp32 that lie s from 0 are off by s 1e-7, and features by as much, relative: a scale of 60 has them at
// some 10,000.
static void formulas(void **state) {
  (void)state;
  static const struct { double scale, bound; } cases[] = {{1, 1e-5}, {8, 1e-4}, {12, 3e-4}, {60, 5e-3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int causal = 0; causal < 2; causal++) against_formula(cases[i].scale, causal, cases[i].bound);
}

enum { LENGTH = 140 };
static const tarn__linear_attention_spec spec = {HEADS, WIDTH, FEATURES, 2 * D, true, true};

// y of `rows` rows of x: a sentence, or the row behind the one before it in the cache.
static void run_rows(void *y, tarn__dtype dtype, void *x, int32_t rows, void *w, float *cache, int32_t row) {
  const int32_t whole[] = {0, rows}, list[] = {row - 1, row}, ranges[] = {0, row > 0 ? 2 : 1};
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), dtype, false, 2);
  tarn__param param = {.name = "w", .rows = FEATURES, .cols = WIDTH, .uses = 1, .dtype = dtype, .value = w};
  tarn__tensor *from = tarn__graph_external(&graph, dtype, rows, 3 * D, x, "x"), *result;
  tarn__tensor *phi = tarn__feature_map(&graph, from, &param, (tarn__feature_map_spec){HEADS, WIDTH, FEATURES, 0, D});
  if (cache) {
    tarn__tensor *states =
        tarn__graph_external(&graph, TARN__F32, LENGTH, tarn__linear_attention_state(&spec), cache, "cache");
    result = tarn__linear_attention_rows(&graph, phi, from, states, row,
                                         tarn__graph_input(&graph, row > 0 ? 2 : 1, row > 0 ? list : list + 1, "rows"),
                                         tarn__graph_input(&graph, 2, ranges, "ranges"), spec);
  } else {
    result =
        tarn__linear_attention(&graph, phi, from, tarn__graph_input(&graph, 2, whole, "offsets"), spec, NULL, NULL);
  }
  check_ok(check_result(y, &graph, result));
}

// Step by step is the whole sentence, and the first rows of a sentence have its bits without the others.
static void steps(void **state) {
  (void)state;
  static double whole[LENGTH * D], part[LENGTH * D], one[D];
  void *x = check_shared(LENGTH * 3 * D * sizeof(double)), *w = check_shared(FEATURES * WIDTH * sizeof(double));
  float *cache = check_shared((size_t)(LENGTH * tarn__linear_attention_state(&spec)) * sizeof *cache);
  for (int t = 0; t < 2; t++) {
    const tarn__dtype dtype = t ? TARN__BF16 : TARN__F32;
    const size_t element = tarn__dtype_size(dtype);
    tarn__random random;
    tarn__random_init(&random, 5, 0);
    for (size_t i = 0; i < FEATURES * WIDTH; i++) check_store(w, dtype, i, tarn__random_normal(&random));
    // Keys rise and fall along the sentence, far and not far.
    for (size_t i = 0; i < LENGTH * 3 * D; i++)
      check_store(x, dtype, i, (1.0 + 12.0 * (double)(i / (3 * D) % 23) / 22.0) * tarn__random_normal(&random));
    run_rows(whole, dtype, x, LENGTH, w, NULL, 0);
    run_rows(part, dtype, x, LENGTH / 2, w, NULL, 0);
    assert_memory_equal(whole, part, LENGTH / 2 * D * element);
    for (int32_t r = 0; r < LENGTH; r++) {
      run_rows(one, dtype, (char *)x + (size_t)r * 3 * D * element, 1, w, cache, r);
      for (size_t i = 0; i < D; i++) {
        const double y = check_load(one, dtype, i), other = check_load(whole, dtype, (size_t)r * D + i);
        if (!(fabs(y - other) <= (t ? 0.05 : 1e-4) * (1.0 + fabs(other))))
          fail_msg("row %d, column %zu: %g alone, %g in its sentence", (int)r, i, y, other);
      }
    }
  }
  check_shared_free(cache);
  check_shared_free(x);
  check_shared_free(w);
}

// --- whole models

static const char description[] =
    "model: { d_model: 36, norm: pre, embeddings: none, max_length: 64 }\n"
    "encoder: { layers: \"P P\" }\n"
    "decoder: { layers: \"P P\" }\n"
    "kinds:\n"
    "  P: { mixer: performer, heads: 3, features: 17, ffn: 48, init_gain: %d }\n";
enum { WORDS = 50, EACH = 20, COUNT = 4, TOKENS = EACH * COUNT };

// The loss, and the gradient of the first projection of the encoder.
static double model_loss(int gain, const tarn__device *device, tarn__dtype dtype, double *gradient, int64_t *n) {
  static int32_t ids[TOKENS], positions[TOKENS], ends[COUNT + 1];
  char text[512];
  snprintf(text, sizeof text, description, gain);
  tarn_config *config;
  check_ok(tarn_config_parse(&config, "test", text, strlen(text), NULL, 0));
  tarn__model *model;
  check_ok(tarn__model_open(&model, config, WORDS, WORDS, dtype, true));
  model->device = device;
  check_ok(tarn__model_allocate(model));
  check_ok(tarn__model_initialise(model, 3));
  tarn__random random;
  tarn__random_init(&random, 9, 0);
  for (int i = 0; i < TOKENS; i++) ids[i] = 3 + (int32_t)tarn__random_below(&random, WORDS - 3);
  for (int s = 0; s <= COUNT; s++) ends[s] = s * EACH;
  tarn__packed_positions(positions, ends, COUNT);
  const tarn__packed side = {COUNT, TOKENS, EACH, ids, positions, ends, NULL, NULL};
  const tarn__batch batch = {.source = side, .target = side, .predictions = TOKENS, .targets = ids};
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, device, dtype, true, 2);
  tarn__tensor *loss = tarn__model_build_loss(model, &graph, &batch, NULL, 0.0, 1.0 / TOKENS, NULL);
  tarn__graph_differentiate(&graph, loss);
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  check_ok(tarn__graph_run(&graph, &(tarn__exec){.threads = 2, .spread = true, .seed = 1, .step = 1}));
  check_ok(tarn__device_synchronise(device));
  const double value = ((const double *)loss->data)[1] / TOKENS;
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    if (strcmp(param->name, "encoder.layer1.self_attn.qkv.weight") != 0) continue;
    *n = param->rows * param->cols;
    for (size_t j = 0; j < (size_t)*n; j++)
      gradient[j] = check_load(param->training.grad, dtype == TARN__F64 ? TARN__F64 : TARN__F32, j);
  }
  tarn__graph_close(&graph);
  check_shared_free(workspace);
  tarn__model_close(&model);
  tarn_config_close(&config);
  return value;
}

static void models(void **state) {
  (void)state;
  // The second layer multiplies what the first has rounded by its gain, and so on.
  static const struct {
    int gain;
    double gradient;
  } cases[] = {{8, 2e-3}, {12, 2e-2}, {60, 6e-2}};
  static double wanted[3 * D * D], found[3 * D * D];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t n = 0;
    const double in_double = model_loss(cases[i].gain, &tarn__device_reference, TARN__F64, wanted, &n);
    const double loss = model_loss(cases[i].gain, check_device(), TARN__F32, found, &n);
    assert_int_equal(n, 3 * D * D);
    const double gradient = distance(found, wanted, n);
    print_message("init_gain %d: loss %.9f, in double %.9f, relative %.1e; gradient %.1e\n", cases[i].gain, loss,
                  in_double, fabs(loss / in_double - 1), gradient);
    assert_true(fabs(loss / in_double - 1) <= 1e-5);
    assert_true(gradient <= cases[i].gradient);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(formulas), cmocka_unit_test(steps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// Models once, with what the machine has, as their reference in double is a model of this device; the rest with every
// instruction set.
int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(models)};
  int failures = 0;
  if (!getenv("TARN_ISA") && check_device() == &tarn__device_cpu) failures = cmocka_run_group_tests(tests, NULL, NULL);
  return failures + check_each_isa(run);
}
