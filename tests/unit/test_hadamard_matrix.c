// The matrices that signs stand for: orthonormal whatever the shape, the product that the equation says, the same for
// a trained and a frozen kind.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/model.h"
#include "ops/hadamard.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static float *take(int64_t count) {
  void *memory;
  must(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof(float)));
  return memory;
}

static float *random_signs(const tarn__hadamard_shape *shape) {
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  int64_t count = tarn__hadamard_sign_rows(shape) * shape->width;
  float *signs = take(count);
  for (int64_t i = 0; i < count; i++) signs[i] = tarn__random_u32(&random) & 1 ? 1.0f : -1.0f;
  return signs;
}

static void check_orthonormal(int64_t out, int64_t in, int blocks) {
  tarn__hadamard_shape shape = tarn__hadamard_shape_of(out, in, blocks);
  float *signs = random_signs(&shape), *values = take(out * in);
  must(tarn__hadamard_dense(values, signs, &shape));
  bool columns = shape.out > in;
  int64_t vectors = columns ? in : shape.out, length = columns ? shape.out : in;
  for (int64_t k = 0; k < blocks; k++) {
    const float *block = values + k * shape.out * in;
    for (int64_t a = 0; a < vectors; a++)
      for (int64_t b = 0; b <= a; b++) {
        double sum = 0.0;
        for (int64_t i = 0; i < length; i++)
          sum +=
              columns ? (double)block[i * in + a] * block[i * in + b] : (double)block[a * in + i] * block[b * in + i];
        if (!(fabs(sum - (a == b)) < 1e-6))
          fail_msg("%lld x %lld: vectors %lld and %lld have the product %g", (long long)out, (long long)in,
                   (long long)a, (long long)b, sum);
      }
  }
  tarn__free(values);
  tarn__free(signs);
}

static void orthonormal(void **state) {
  (void)state;
  static const int64_t size[] = {1, 2, 3, 7, 8, 12, 24, 37, 64, 96};
  for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
    for (size_t o = 0; o < sizeof size / sizeof size[0]; o++) {
      check_orthonormal(size[o], size[i], 1);
      check_orthonormal(3 * size[o], size[i], 3);
    }
  check_orthonormal(128, 64, 1);
  check_orthonormal(64, 256, 1);
}

// H_ij = (-1)^(number of common bits of i and j) / sqrt(n), Q = H D3 H D2 H D1.
static void is_the_product(void **state) {
  (void)state;
  enum { N = 16 };
  tarn__hadamard_shape shape = tarn__hadamard_shape_of(N, N, 1);
  float *signs = random_signs(&shape), *values = take(N * N);
  double q[N][N] = {{0}};
  for (int i = 0; i < N; i++) q[i][i] = 1.0;
  for (int round = 0; round < 3; round++) {
    double next[N][N] = {{0}};
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++)
        for (int k = 0; k < N; k++)
          next[i][j] += (__builtin_popcount((unsigned)(i & k)) % 2 ? -1.0 : 1.0) / 4.0 * signs[round * N + k] * q[k][j];
    memcpy(q, next, sizeof q);
  }
  must(tarn__hadamard_dense(values, signs, &shape));
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) assert_true(fabs(values[i * N + j] - q[i][j]) < 1e-7);
  tarn__free(values);
  tarn__free(signs);
}

// After all rounds no input is far from any output: elements are about 1 / sqrt(n), whatever the width.
static void widths_mix(void **state) {
  (void)state;
  static const int64_t width[] = {64, 96, 100, 127, 129, 192, 320};
  for (size_t w = 0; w < sizeof width / sizeof width[0]; w++) {
    int64_t n = width[w];
    tarn__hadamard_shape shape = tarn__hadamard_shape_of(n, n, 1);
    float *signs = random_signs(&shape), *values = take(n * n);
    must(tarn__hadamard_dense(values, signs, &shape));
    double fourth = 0.0;
    for (int64_t i = 0; i < n * n; i++) fourth += pow((double)values[i], 4.0);
    // The mean of x^4 over that of x^2 squared is 3 for a normal variable; a matrix that leaves most elements near
    // zero has far more.
    double kurtosis = fourth / (double)(n * n) * (double)(n * n);
    if (!(kurtosis < 4.0)) fail_msg("width %lld: kurtosis %g", (long long)n, kurtosis);
    tarn__free(values);
    tarn__free(signs);
  }
}

static tarn__model *open_model(tarn_config **config, const char *frozen, double gain, tarn__dtype dtype) {
  char text[512];
  snprintf(text, sizeof text,
           "model: { d_model: 64, embeddings: all }\nencoder: { layers: R }\ndecoder: { layers: R }\n"
           "kinds:\n  R: { mixer: attention, heads: 2, ffn: 96, frozen: %s, init: hadamard, init_gain: %g }\n",
           frozen, gain);
  tarn__model *model;
  must(tarn_config_parse(config, "hadamard", text, strlen(text), NULL, 0));
  must(tarn__model_open(&model, *config, 20, 20, dtype, true));
  must(tarn__model_allocate(model));
  must(tarn__model_initialise(model, 1));
  return model;
}

static const tarn__param *find(const tarn__model *model, const char *name) {
  for (size_t i = 0; i < model->param_count; i++)
    if (strcmp(model->params[i]->name, name) == 0) return model->params[i];
  return NULL;
}

static void check_trained_and_frozen(double gain) {
  static const char *const names[] = {"encoder.layer1.self_attn.qkv", "encoder.layer1.ffn.in", "encoder.layer1.ffn.out",
                                      "decoder.layer1.cross_attn.kv"};
  tarn_config *configs[2];
  tarn__model *trained = open_model(&configs[0], "no", gain, TARN__F32);
  tarn__model *frozen = open_model(&configs[1], "yes", gain, TARN__BF16);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char name[128];
    snprintf(name, sizeof name, "%s.weight", names[i]);
    const tarn__param *weight = find(trained, name);
    assert_null(find(frozen, name));
    snprintf(name, sizeof name, "%s.signs", names[i]);
    const tarn__param *signs = find(frozen, name);
    assert_null(find(trained, name));
    assert_non_null(weight);
    assert_non_null(signs);
    assert_true(weight->trained && !signs->trained);
    assert_int_equal(signs->dtype, TARN__F32);
    assert_int_equal(signs->out, weight->rows);
    assert_int_equal(signs->in, weight->cols);
    tarn__hadamard_shape shape = tarn__hadamard_shape_signs(signs);
    float *values = take(weight->rows * weight->cols);
    must(tarn__hadamard_dense(values, signs->value, &shape));
    assert_memory_equal(values, weight->value, (size_t)(weight->rows * weight->cols) * sizeof(float));
    // All singular values are the gain.
    double squares = 0.0;
    const int64_t n = weight->rows * weight->cols, rows = weight->rows / weight->init.blocks;
    const int64_t values_of_block = rows < weight->cols ? rows : weight->cols;
    for (int64_t k = 0; k < n; k++) squares += (double)values[k] * (double)values[k];
    assert_true(fabs(squares / (double)(weight->init.blocks * values_of_block) / (gain * gain) - 1.0) < 1e-5);
    tarn__free(values);
  }
  // Three signs a width of a square transform of 64, six of 96, a bias for each output, and the norms.
  tarn__model_size size;
  tarn__model_measure(frozen, &size);
  const int64_t attention = 3 * 64 * 4 + 4 * 64, ffn = 2 * 6 * 96 + 96 + 64, norm = 2 * 64;
  assert_int_equal(size.frozen, 3 * attention + 2 * ffn + 5 * norm);
  tarn__model_close(&frozen);
  tarn__model_close(&trained);
  for (int i = 0; i < 2; i++) tarn_config_close(&configs[i]);
}

static void trained_and_frozen_are_equal(void **state) {
  (void)state;
  check_trained_and_frozen(1.0);
  check_trained_and_frozen(0.3);
}

// A recipe gives the same bits for ever.
static void values_are_a_function_of_the_seed(void **state) {
  (void)state;
  tarn_config *config;
  tarn__model *model = open_model(&config, "yes", 1.0, TARN__F32);
  assert_string_equal(find(model, "encoder.layer1.ffn.in.signs")->hash, "a4942e95a7c2b5c94e35de5095be788a");
  tarn__model_close(&model);
  tarn_config_close(&config);
  model = open_model(&config, "no", 1.0, TARN__F32);
  const tarn__param *weight = find(model, "encoder.layer1.ffn.in.weight");
  char hash[TARN__HASH_TEXT];
  tarn__hash(hash, weight->value, (size_t)(weight->rows * weight->cols) * sizeof(float));
  assert_string_equal(hash, "b805b13d199117e6ca260c79f4a58058");
  tarn__model_close(&model);
  tarn_config_close(&config);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(orthonormal),
      cmocka_unit_test(is_the_product),
      cmocka_unit_test(widths_mix),
      cmocka_unit_test(trained_and_frozen_are_equal),
      cmocka_unit_test(values_are_a_function_of_the_seed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
