// Parameters of the models of golden files, drawn here as golden_file.py drew them for PyTorch, and what a file knows
// of PyTorch's gradients: the largest element and sums with random signs. golden_file.py says how, and why these sums
// prove as much as the elements would. Include it after cmocka.h.
#ifndef TARN_TESTS_GOLDEN_PARAMETERS_H
#define TARN_TESTS_GOLDEN_PARAMETERS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/devices.h"
#include "golden/golden_file.h"

enum { GOLDEN_SUMS = 24, GOLDEN_NUMBERS = 1 + GOLDEN_SUMS, GOLDEN_MOST = 256 };

typedef struct golden_parameter {
  char name[128];
  long long rows, cols;
  bool trained;
  double mean, step;           // where it is drawn
  const tarn__stored *values;  // where it is stored, else NULL
  const double *sums;          // GOLDEN_NUMBERS of PyTorch's gradient, where it is trained
} golden_parameter;

typedef struct golden_parameters {
  golden_parameter of[GOLDEN_MOST];
  size_t count;
  char seed[96];
} golden_parameters;

// Where the hashes of the key "BEFORE NAME" begin.
static inline uint64_t golden_hash_start(const char *before, const char *name) {
  uint64_t start = 0xCBF29CE484222325U;
  for (const char *c = before; *c; c++) start = (start ^ (unsigned char)*c) * 0x100000001B3U;
  start = (start ^ ' ') * 0x100000001B3U;
  for (const char *c = name; *c; c++) start = (start ^ (unsigned char)*c) * 0x100000001B3U;
  return start;
}

static inline uint64_t golden_hash(uint64_t start, int64_t i) {
  uint64_t z = start + ((uint64_t)i + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27) * 0x94D049BB133111EBU;
  return z ^ z >> 31;
}

static inline void golden_draw(float *values, int64_t count, const char *seed, const char *name, double mean,
                               double step) {
  const uint64_t start = golden_hash_start(seed, name);
  for (int64_t i = 0; i < count; i++) {
    const uint64_t z = golden_hash(start, i);
    const int sum = (int)(z & 0xFFFF) + (int)(z >> 16 & 0xFFFF) + (int)(z >> 32 & 0xFFFF) + (int)(z >> 48);
    values[i] = (float)(mean + step * (sum - 2 * 65535));
  }
}

// The larger in size; what is no number stays.
static inline double golden_worse(double worst, double d) { return isnan(worst) || fabs(d) <= worst ? worst : fabs(d); }

// The largest element of a gradient, and its sums.
static inline void golden_sums(double numbers[GOLDEN_NUMBERS], const char *name, const double *gradient,
                               int64_t count) {
  const uint64_t start = golden_hash_start("signs", name);
  double largest = 0, sums[GOLDEN_SUMS] = {0};
  for (int64_t i = 0; i < count; i++) {
    const uint64_t z = golden_hash(start, i);
    const double either[2] = {gradient[i], -gradient[i]};
    for (int k = 0; k < GOLDEN_SUMS; k++) sums[k] += either[z >> k & 1];
    largest = golden_worse(largest, gradient[i]);
  }
  numbers[0] = largest;
  memcpy(numbers + 1, sums, sizeof sums);
}

// How far the farthest of the numbers is from PyTorch's, over the largest element; no number where one is none.
static inline double golden_sums_distance(const double *wanted, const char *name, const double *gradient,
                                          int64_t count) {
  double numbers[GOLDEN_NUMBERS], worst = 0;
  golden_sums(numbers, name, gradient, count);
  for (int k = 0; k < GOLDEN_NUMBERS; k++) worst = golden_worse(worst, numbers[k] - wanted[k]);
  return worst == 0 ? 0 : worst / wanted[0];
}

// Reads the file's list of parameters; the file must stay open.
static inline void golden_list(golden_parameters *list, const tarn__safetensors *file) {
  const char *line = tarn__safetensors_text(file, "parameters"), *seed = tarn__safetensors_text(file, "seed");
  const tarn__stored *gradients = tarn__safetensors_find(file, "gradients");
  if (!line || !seed || !gradients) fail_msg("%s has no parameters, seed or gradients", file->path);
  assert_true(strlen(seed) < sizeof list->seed);
  strcpy(list->seed, seed);
  assert_string_equal(gradients->dtype, "F64");
  assert_int_equal(gradients->shape[1], GOLDEN_NUMBERS);
  int64_t trained = 0;
  for (list->count = 0; *line; list->count++) {
    assert_true(list->count < GOLDEN_MOST);
    golden_parameter *p = &list->of[list->count];
    char use[16], source[16];
    int used = 0, numerator, exponent;
    if (sscanf(line, "%127s %lld %lld %15s %n", p->name, &p->rows, &p->cols, use, &used) != 4)
      fail_msg("%s: no parameter: %.80s", file->path, line);
    p->trained = strcmp(use, "trained") == 0;
    p->sums = p->trained ? (const double *)gradients->data + GOLDEN_NUMBERS * trained++ : NULL;
    p->values = NULL;
    if (sscanf(line + used, "%lf %d %d", &p->mean, &numerator, &exponent) == 3) {
      p->step = ldexp(numerator, exponent);
    } else {
      assert_int_equal(sscanf(line + used, "%15s", source), 1);
      assert_string_equal(source, "stored");
      p->values = need(file, "weight", p->name);
    }
    line += strcspn(line, "\n");
    line += *line == '\n';
  }
  assert_int_equal(trained, gradients->shape[0]);
}

// NULL: there is none.
static inline const golden_parameter *golden_find(const golden_parameters *list, const char *name) {
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->of[i].name, name) == 0) return &list->of[i];
  return NULL;
}

// Sets all parameters of the model, which are those of the list.
static inline void golden_set(tarn__model *model, const golden_parameters *list) {
  assert_int_equal(list->count, model->param_count);
  for (size_t i = 0; i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    const golden_parameter *p = golden_find(list, param->name);
    if (!p) fail_msg("the golden file has no %s", param->name);
    assert_int_equal(p->rows, param->rows);
    assert_int_equal(p->cols, param->cols);
    if (p->values) {
      assert_int_equal(p->values->bytes, (size_t)(p->rows * p->cols) * sizeof(float));
      must(tarn__param_set(param, p->values->data));
      continue;
    }
    float *values = calloc((size_t)(p->rows * p->cols), sizeof *values);
    assert_non_null(values);
    golden_draw(values, p->rows * p->cols, list->seed, p->name, p->mean, p->step);
    must(tarn__param_set(param, values));
    free(values);
  }
}

// Gradients that the reference kernels found in double, parameter by parameter, once they have been compared with
// PyTorch's sums: what other ways find of the same case is compared with their elements.
typedef struct golden_exact {
  const char *name;                // of the case; NULL: nothing has been compared
  double *gradients[GOLDEN_MOST];  // NULL: frozen, or there is none
} golden_exact;

static inline void golden_exact_close(golden_exact *exact) {
  for (size_t i = 0; i < GOLDEN_MOST; i++) free(exact->gradients[i]);
  *exact = (golden_exact){0};
}

// Compares a gradient in double with PyTorch's, and keeps it. `i`: the place of the parameter in the model. The caller
// names the case when all have passed.
static inline double golden_exact_keep(golden_exact *exact, size_t i, const golden_parameter *p,
                                       const double *gradient) {
  const size_t count = (size_t)(p->rows * p->cols);
  assert_true(i < GOLDEN_MOST);
  if (!exact->gradients[i]) exact->gradients[i] = calloc(count, sizeof(double));
  assert_non_null(exact->gradients[i]);
  memcpy(exact->gradients[i], gradient, count * sizeof(double));
  return golden_sums_distance(p->sums, p->name, gradient, (int64_t)count);
}

#endif
