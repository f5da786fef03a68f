// Adam and AdamW, norms and sums of gradients: against PyTorch's numbers, against plain double arithmetic at odd sizes,
// against the reference, and bit for bit over numbers of threads; for every instruction set, or on the device of
// TARN_DEVICE.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/devices.h"
#include "kernels/kernel_check.h"
#include "list_optimiser.h"

// A trained parameter with all that an optimiser needs; values from the generator.
static tarn__param param_open(tarn__random *random, int64_t rows, int64_t cols, tarn__dtype dtype) {
  size_t n = (size_t)(rows * cols);
  tarn__param p = {
      .name = "p", .rows = rows, .cols = cols, .trained = true, .training.grad_written = true, .dtype = dtype};
  p.training.master = check_shared(n * sizeof(float));
  p.training.grad = check_shared(n * sizeof(float));
  p.training.moment1 = check_shared(n * sizeof(float));
  p.training.moment2 = check_shared(n * sizeof(float));
  p.value = dtype == TARN__F32 ? p.training.master : check_shared(n * sizeof(uint16_t));
  for (size_t i = 0; i < n; i++) {
    p.training.master[i] = (float)tarn__random_normal(random);
    ((float *)p.training.grad)[i] = (float)(0.1 * tarn__random_normal(random));
  }
  return p;
}

static void param_close(tarn__param *p) {
  if (p->value != p->training.master) check_shared_free(p->value);
  check_shared_free(p->training.master);
  check_shared_free(p->training.grad);
  check_shared_free(p->training.moment1);
  check_shared_free(p->training.moment2);
}

static const tarn__adam_options adam = {0.01, 0.9, 0.98, 1e-8, 0.0, false, 1};
static const tarn__adam_options adam_decay = {0.01, 0.9, 0.98, 1e-8, 0.1, false, 1};
static const tarn__adam_options adamw = {0.01, 0.9, 0.98, 1e-8, 0.1, true, 1};

// Made by tests/golden/make_adam.py: three steps, gradients clipped to the norm 1.
static void as_pytorch(void **state) {
  (void)state;
  static const float weights[8] = {0.5f, -1.25f, 0.0f, 3.0f, -0.001f, 1e-6f, -2.5f, 0.75f};
  static const float gradients[3][8] = {{0.1f, -0.2f, 0.3f, 0.0f, 1e-5f, -1e-9f, 2.0f, -0.5f},
                                        {-0.4f, -0.2f, 0.1f, 0.0f, 2e-5f, 3e-9f, 1.0f, 0.25f},
                                        {0.25f, 0.2f, -0.6f, 1e-3f, -1e-5f, 1e-9f, -4.0f, 0.125f}};
  static const double expected[3][8] = {{0.500304962428, -1.22450377229, -0.0210029325504, 2.99367291474,
                                         -0.0258489091749, -0.00124697985047, -2.52226844664, 0.759117536921},
                                        {0.496624119342, -1.22123393707, -0.020902075413, 2.97000240948,
                                         -0.00425387322189, 0.00513547844645, -2.5195780713, 0.752367015475},
                                        {0.498820000161, -1.22078721346, -0.020973307042, 2.98468191174,
                                         -0.0258170808434, -0.00124690883011, -2.51474597669, 0.756849952734}};
  const tarn__adam_options *options[3] = {&adam, &adam_decay, &adamw};
  for (int k = 0; k < 3; k++) {
    tarn__random random;
    tarn__random_init(&random, 1, 1);
    tarn__param p = param_open(&random, 2, 4, TARN__F32);
    tarn__param *list[] = {&p};
    memcpy(p.training.master, weights, sizeof weights);
    for (int step = 0; step < 3; step++) {
      memcpy(p.training.grad, gradients[step], sizeof gradients[step]);
      double norm = list_norm(check_device(), list, 1, 1), factor = 1.0 / (norm + 1e-6);
      step_list(check_device(), list, 1, options[k], step + 1, factor < 1.0 ? factor : 1.0, 1);
    }
    for (int i = 0; i < 8; i++) assert_true(fabs(p.training.master[i] - expected[k][i]) < 1e-6);
    param_close(&p);
  }
}

// The definition, element by element in double.
static void plain_step(double *w, double *m, double *v, double g, const tarn__adam_options *o, int step) {
  if (o->decoupled)
    *w -= o->learning_rate * o->weight_decay * *w;
  else
    g += o->weight_decay * *w;
  *m = o->beta1 * *m + (1.0 - o->beta1) * g;
  *v = o->beta2 * *v + (1.0 - o->beta2) * g * g;
  double m_hat = *m / (1.0 - pow(o->beta1, step)), v_hat = *v / (1.0 - pow(o->beta2, step));
  *w -= o->learning_rate * m_hat / (sqrt(v_hat) + o->epsilon);
}

static void as_defined(void **state) {
  (void)state;
  enum { PARAMS = 5 };
  static const int64_t rows[PARAMS] = {1, 3, 129, 1, 40}, cols[PARAMS] = {1, 37, 517, 512, 100};
  const tarn__adam_options *options[3] = {&adam, &adam_decay, &adamw};
  for (int k = 0; k < 3; k++) {
    tarn__random random;
    tarn__random_init(&random, 2, 2);
    tarn__param p[PARAMS], *list[PARAMS];
    double *w[PARAMS], *m[PARAMS], *v[PARAMS];
    for (int i = 0; i < PARAMS; i++) {
      p[i] = param_open(&random, rows[i], cols[i], i % 2 == 1 ? TARN__BF16 : TARN__F32);
      list[i] = &p[i];
      size_t n = (size_t)(rows[i] * cols[i]);
      w[i] = check_alloc(n, sizeof(double));
      m[i] = check_alloc(n, sizeof(double));
      v[i] = check_alloc(n, sizeof(double));
      for (size_t j = 0; j < n; j++) w[i][j] = p[i].training.master[j];
    }
    p[4].trained = k != 1;
    p[3].training.grad_written = k != 2;
    double squares = 0.0;
    for (int step = 1; step <= 3; step++) {
      step_list(check_device(), list, PARAMS, options[k], step, 0.5, 2);
      for (int i = 0; i < PARAMS; i++)
        for (int64_t j = 0; p[i].trained && p[i].training.grad_written && j < rows[i] * cols[i]; j++) {
          double g = ((const float *)p[i].training.grad)[j];
          plain_step(&w[i][j], &m[i][j], &v[i][j], 0.5 * g, options[k], step);
          if (step == 1) squares += g * g;
        }
    }
    const double norm = list_norm(check_device(), list, PARAMS, 2);
    assert_true(fabs(norm / sqrt(squares) - 1.0) < 1e-12);
    bits_add(&norm, 1);
    bits_trace("norm");
    for (int i = 0; i < PARAMS; i++) {
      for (int64_t j = 0; j < rows[i] * cols[i]; j++) {
        if (!(fabs(p[i].training.master[j] - w[i][j]) < 2e-6 * (1.0 + fabs(w[i][j]))))
          fail_msg("parameter %d, element %lld: %.9g, expected %.9g", i, (long long)j, p[i].training.master[j],
                   w[i][j]);
        if (p[i].dtype == TARN__BF16 && p[i].trained && p[i].training.grad_written)
          assert_int_equal(((const uint16_t *)p[i].value)[j], tarn__bf16_from_f32(p[i].training.master[j]));
      }
      const size_t n = (size_t)(rows[i] * cols[i]);
      bits_add_floats(p[i].training.master, n);
      bits_add_floats(p[i].training.moment1, n);
      bits_add_floats(p[i].training.moment2, n);
      bits_trace("adam");
      param_close(&p[i]);
      tarn__free(w[i]);
      tarn__free(m[i]);
      tarn__free(v[i]);
    }
  }
}

static void threads_give_equal_bits(void **state) {
  (void)state;
  float *kept = NULL;
  double norm = 0.0;
  for (int threads = 1; threads <= 3; threads++) {
    tarn__random random;
    tarn__random_init(&random, 3, 3);
    tarn__param p = param_open(&random, 211, 317, TARN__BF16), *list[] = {&p};
    double now = list_norm(check_device(), list, 1, threads);
    step_list(check_device(), list, 1, &adamw, 1, 1.0, threads);
    size_t bytes = (size_t)(p.rows * p.cols) * sizeof(float);
    if (kept == NULL) {
      kept = check_alloc(1, bytes);
      memcpy(kept, p.training.master, bytes);
      norm = now;
    }
    assert_memory_equal(kept, p.training.master, bytes);
    assert_true(now == norm);
    param_close(&p);
  }
  tarn__free(kept);
}

// Rows that are said to be unused are zero: passing over them changes no bit.
static void unused_rows_are_passed_over(void **state) {
  (void)state;
  const tarn__adam_options *options[3] = {&adam, &adam_decay, &adamw};
  for (int k = 0; k < 3; k++) {
    tarn__param p[2], *list[2][1] = {{&p[0]}, {&p[1]}};
    for (int i = 0; i < 2; i++) {
      tarn__random random;
      tarn__random_init(&random, 5, 5);
      p[i] = param_open(&random, 301, 67, k == 1 ? TARN__F32 : TARN__BF16);
    }
    p[1].training.used_rows = check_shared((size_t)p[1].rows);
    size_t n = (size_t)(p[0].rows * p[0].cols);
    for (int step = 1; step <= 3; step++) {
      for (int64_t r = 0; r < p[0].rows; r++) {
        p[1].training.used_rows[r] = (r * 7919 + step) % 5 < 2;
        for (int64_t c = 0; c < p[0].cols; c++)
          ((float *)p[0].training.grad)[r * p[0].cols + c] =
              p[1].training.used_rows[r] ? (float)(c + step) * 0.01f : 0.0f;
      }
      // Nobody reads what is not used.
      for (size_t i = 0; i < n; i++)
        ((float *)p[1].training.grad)[i] =
            p[1].training.used_rows[i / (size_t)p[1].cols] ? ((float *)p[0].training.grad)[i] : NAN;
      double norm = list_norm(check_device(), list[0], 1, 2);
      assert_true(fabs(list_norm(check_device(), list[1], 1, 2) / norm - 1.0) < 1e-12);
      for (int i = 0; i < 2; i++) step_list(check_device(), list[i], 1, options[k], step, 0.5, 2);
      assert_memory_equal(p[0].training.master, p[1].training.master, n * sizeof(float));
      assert_memory_equal(p[0].training.moment1, p[1].training.moment1, n * sizeof(float));
      assert_memory_equal(p[0].training.moment2, p[1].training.moment2, n * sizeof(float));
      if (k != 1) assert_memory_equal(p[0].value, p[1].value, n * sizeof(uint16_t));
    }
    check_shared_free(p[1].training.used_rows);
    for (int i = 0; i < 2; i++) param_close(&p[i]);
  }
}

static void norm_shows_what_is_not_finite(void **state) {
  (void)state;
  tarn__random random;
  tarn__random_init(&random, 4, 4);
  tarn__param p = param_open(&random, 3, 5, TARN__F32), *list[] = {&p};
  assert_true(isfinite(list_norm(check_device(), list, 1, 2)));
  ((float *)p.training.grad)[14] = -INFINITY;
  assert_false(isfinite(list_norm(check_device(), list, 1, 2)));
  ((float *)p.training.grad)[14] = NAN;
  assert_false(isfinite(list_norm(check_device(), list, 1, 2)));
  param_close(&p);
}

static void assert_near(const float *found, const float *expected, size_t n, double tolerance, const char *what) {
  for (size_t i = 0; i < n; i++)
    if (!(fabs((double)found[i] - expected[i]) < tolerance * (1.0 + fabs((double)expected[i]))))
      fail_msg("%s %zu: %.9g, the reference has %.9g", what, i, (double)found[i], (double)expected[i]);
}

// New gradients, the same for both; what is not used is nobody's to read.
static void fill_gradients(tarn__param *const p[2], int step) {
  tarn__random random;
  tarn__random_init(&random, 7, (uint64_t)step);
  for (int64_t r = 0; r < p[0]->rows; r++) {
    const bool used = !p[0]->training.used_rows || (r * 7919 + step) % 5 < 2;
    for (int d = 0; d < 2 && p[0]->training.used_rows; d++) p[d]->training.used_rows[r] = used;
    for (int64_t i = r * p[0]->cols; i < (r + 1) * p[0]->cols; i++) {
      const float g = (float)(0.1 * tarn__random_normal(&random));
      for (int d = 0; d < 2; d++) ((float *)p[d]->training.grad)[i] = used ? g : NAN;
    }
  }
}

static void as_the_reference(void **state) {
  (void)state;
  const tarn__device *const devices[] = {check_device(), &tarn__device_reference};
  enum { PARAMS = 4, STEPS = 5 };
  static const int64_t rows[PARAMS] = {1, 129, 40, 33}, cols[PARAMS] = {517, 67, 100, 31};
  const tarn__adam_options *options[3] = {&adam, &adam_decay, &adamw};
  for (int k = 0; k < 3; k++) {
    tarn__param p[2][PARAMS], *list[2][PARAMS];
    for (int d = 0; d < 2; d++) {
      tarn__random random;
      tarn__random_init(&random, 6, 6);
      for (int i = 0; i < PARAMS; i++) {
        p[d][i] = param_open(&random, rows[i], cols[i], i % 2 == 1 ? TARN__BF16 : TARN__F32);
        p[d][i].training.grad_sum = check_shared((size_t)(rows[i] * cols[i]) * sizeof(float));
        if (i == 1 || i == 2) p[d][i].training.used_rows = check_shared((size_t)rows[i]);
        list[d][i] = &p[d][i];
      }
      p[d][3].training.grad_written = k != 2;
    }
    for (int step = 1; step <= STEPS; step++) {
      double norms[2];
      for (int i = 0; i < PARAMS; i++) fill_gradients((tarn__param *[]){&p[0][i], &p[1][i]}, step * PARAMS + i);
      for (int d = 0; d < 2; d++) {
        norms[d] = list_norm(devices[d], list[d], PARAMS, 2);
        step_list(devices[d], list[d], PARAMS, options[k], step, 0.5, 2);
        for (int i = 0; i < PARAMS; i++) list_sum_add(devices[d], &list[d][i], 1);
      }
      assert_true(norms[1] > 1.0 && fabs(norms[0] / norms[1] - 1.0) < 1e-12);
    }
    for (int i = 0; i < PARAMS; i++) {
      const size_t n = (size_t)(rows[i] * cols[i]);
      assert_near(p[0][i].training.master, p[1][i].training.master, n, 2e-6, "weight");
      assert_near(p[0][i].training.moment1, p[1][i].training.moment1, n, 2e-6, "first moment");
      assert_near(p[0][i].training.moment2, p[1][i].training.moment2, n, 2e-6, "second moment");
      assert_memory_equal(p[0][i].training.grad_sum, p[1][i].training.grad_sum, n * sizeof(float));
      const float *second = p[1][i].training.moment2;
      const bool moved = second[p[1][i].training.used_rows ? 2 * cols[i] : 0] > 0;
      assert_int_equal(moved, p[1][i].training.grad_written);
      for (int d = 0; d < 2 && moved && p[1][i].dtype == TARN__BF16; d++)
        for (size_t j = 0; j < n; j++)
          assert_int_equal(((const uint16_t *)p[d][i].value)[j], tarn__bf16_from_f32(p[d][i].training.master[j]));
      for (int d = 0; d < 2; d++) {
        check_shared_free(p[d][i].training.grad_sum);
        check_shared_free(p[d][i].training.used_rows);
        param_close(&p[d][i]);
      }
    }
  }
}

// Values in double are updated in double, of which the fp32 copy is the rounded one.
static void reference_in_double(void **state) {
  (void)state;
  const tarn__adam_options *options[3] = {&adam, &adam_decay, &adamw};
  for (int k = 0; k < 3; k++) {
    enum { N = 35 };
    double value[N], grad[N], w[N], m[N] = {0}, v[N] = {0}, squares = 0.0;
    float master[N], moment1[N] = {0}, moment2[N] = {0}, sum[N] = {0};
    tarn__param p = {.rows = 5, .cols = 7, .trained = true, .training.grad_written = true, .dtype = TARN__F64};
    p.value = value;
    p.training.grad = grad;
    p.training.master = master;
    p.training.moment1 = moment1;
    p.training.moment2 = moment2;
    p.training.grad_sum = sum;
    tarn__param *const list[] = {&p};
    for (int i = 0; i < N; i++) {
      w[i] = value[i] = sin(i + 1.0);
      grad[i] = 0.1 * cos(3.0 * i);
      squares += grad[i] * grad[i];
      plain_step(&w[i], &m[i], &v[i], 0.5 * grad[i], options[k], 1);
    }
    assert_true(fabs(list_norm(&tarn__device_reference, list, 1, 1) / sqrt(squares) - 1.0) < 1e-15);
    step_list(&tarn__device_reference, list, 1, options[k], 1, 0.5, 1);
    list_sum_add(&tarn__device_reference, list, 1);
    for (int i = 0; i < N; i++) {
      assert_true(fabs(value[i] - w[i]) < 1e-12);
      assert_true(master[i] == (float)value[i]);
      assert_true(sum[i] == (float)grad[i]);
    }
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_pytorch),
                                     cmocka_unit_test(as_defined),
                                     cmocka_unit_test(threads_give_equal_bits),
                                     cmocka_unit_test(unused_rows_are_passed_over),
                                     cmocka_unit_test(norm_shows_what_is_not_finite),
                                     cmocka_unit_test(as_the_reference),
                                     cmocka_unit_test(reference_in_double)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
