// Devices: their names, their tables of kernels, and what a graph says that its device cannot compute.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/devices.h"
#include "graph/graph.h"
#include "tarn/process.h"

#define WORD(word) #word,
static const char *const words[] = {TARN__OP_LIST(WORD)};
static const tarn__device *const devices[] = {&tarn__device_cpu, &tarn__device_reference};
enum { DEVICES = sizeof devices / sizeof *devices };

// A line that is forgotten in the table of a device would be found only where somebody runs that op.
static void test_every_op_has_kernels(void **state) {
  (void)state;
  for (int d = 0; d < DEVICES; d++) {
    int types = 0;
    assert_int_equal(devices[d]->type->ops, TARN__OPS);
    for (int type = 0; type < TARN__DTYPES; type++) {
      const tarn__device_kernel *kernels = devices[d]->type->kernels[type];
      types += kernels != NULL;
      for (int op = 0; kernels && op < TARN__OPS; op++)
        if (!kernels[op].run) fail_msg("%s has no kernel for %s", devices[d]->name, words[op]);
    }
    assert_int_equal(types, 2);
  }
}

static void test_a_device_is_found_by_name(void **state) {
  (void)state;
  const tarn__device *device;
  for (int d = 0; d < DEVICES; d++) {
    assert_int_equal(tarn__device_find(&device, devices[d]->name), TARN_STATUS_OK);
    assert_ptr_equal(device, devices[d]);
  }
  assert_int_equal(tarn__device_find(&device, "referense"), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(),
                      "there is no device \"referense\" in this program; did you mean \"reference\"? there are cpu, "
                      "cuda, reference");
  assert_int_equal(tarn__device_find(&device, "cpu:0"), TARN_STATUS_OK);
  assert_ptr_equal(device, &tarn__device_cpu);
  assert_int_equal(tarn__device_find(&device, "cpu:1"), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(), "there is one device cpu (expected cpu or cpu:0)");
  assert_int_equal(tarn__device_find(&device, "cpu:x"), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(),
                      "the device \"cpu:x\" has no number behind the colon (expected cpu:0 or the like)");
  assert_int_equal(tarn__device_find(&device, "abacus"), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(),
                      "there is no device \"abacus\" in this program; there are cpu, cuda, reference");
}

static void test_default_device(void **state) {
  (void)state;
  const tarn__device *device;
  unsetenv("TARN_DEVICE");
  assert_int_equal(tarn__device_default(&device, TARN__BF16), TARN_STATUS_OK);
  assert_ptr_equal(device, &tarn__device_cpu);
  assert_int_equal(tarn__device_default(&device, TARN__F64), TARN_STATUS_OK);
  assert_ptr_equal(device, &tarn__device_reference);
  assert_int_equal(tarn__device_default(&device, TARN__I32), TARN_STATUS_UNSUPPORTED);
  setenv("TARN_DEVICE", "reference", 1);
  assert_int_equal(tarn__device_default(&device, TARN__F32), TARN_STATUS_OK);
  assert_ptr_equal(device, &tarn__device_reference);
  assert_int_equal(tarn__device_default(&device, TARN__BF16), TARN_STATUS_UNSUPPORTED);
  assert_string_equal(tarn_error_message(), "the device reference does not compute in bf16, as cpu does");
  setenv("TARN_DEVICE", "abacus", 1);
  assert_int_equal(tarn__device_default(&device, TARN__F32), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(),
                      "TARN_DEVICE: there is no device \"abacus\" in this program; there are cpu, cuda, reference");
  // What the program chooses comes before the environment.
  assert_int_equal(tarn_device_set("cpu"), TARN_STATUS_OK);
  assert_int_equal(tarn__device_default(&device, TARN__F32), TARN_STATUS_OK);
  assert_ptr_equal(device, &tarn__device_cpu);
  assert_int_equal(tarn_device_set("abacus"), TARN_STATUS_USAGE);
  assert_int_equal(tarn_device_set(NULL), TARN_STATUS_OK);
  assert_int_equal(tarn__device_default(&device, TARN__F32), TARN_STATUS_USAGE);
  assert_string_equal(tarn_device_name(0), "cpu");
  assert_string_equal(tarn_device_name(1), "cuda");  // which need not be usable here
  assert_null(tarn_device_name(DEVICES + 1));
  unsetenv("TARN_DEVICE");
}

static tarn_status plan(const tarn__device *device, tarn__dtype dtype, int op) {
  const tarn__op probe = {.id = op, .name = "probe"};
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, device, dtype, false, 1);
  tarn__node *node = tarn__graph_node(&graph, &probe, 0);
  node->out[0] = tarn__graph_tensor(&graph, dtype, 4, 32, "t");
  tarn__graph_emit(&graph, node);
  const tarn_status status = tarn__graph_plan(&graph);
  tarn__graph_close(&graph);
  return status;
}

static const char *lacks_tiles(const tarn__device *device, const tarn__node *node) {
  (void)device;
  return node->op->id == TARN__OP_MARK ? "tiles" : NULL;
}

// What a device cannot compute is said when the graph is planned, before anything runs.
static void test_what_a_device_lacks_fails_in_planning(void **state) {
  (void)state;
  tarn__device_kernel kernels[TARN__OPS];
  memcpy(kernels, tarn__device_cpu.type->kernels[TARN__F32], sizeof kernels);
  kernels[TARN__OP_GLU].run = NULL;
  tarn__device_type type = *tarn__device_cpu.type;
  type.kernels[TARN__F32] = kernels;
  const tarn__device poor = {.type = &type, .name = "poor"};
  assert_int_equal(plan(&poor, TARN__F32, TARN__OP_MARK), TARN_STATUS_OK);
  const int missing[] = {TARN__OP_GLU, TARN__OPS, -1};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(plan(&poor, TARN__F32, missing[i]), TARN_STATUS_UNSUPPORTED);
    assert_string_equal(tarn_error_message(), "the device poor has no kernel for the op probe in fp32");
  }
  type.lacks = lacks_tiles;
  assert_int_equal(plan(&poor, TARN__F32, TARN__OP_MARK), TARN_STATUS_UNSUPPORTED);
  assert_string_equal(tarn_error_message(),
                      "the device poor cannot compute the op probe of the model in fp32: it needs tiles");
  assert_int_equal(plan(&tarn__device_cpu, TARN__F64, TARN__OP_MARK), TARN_STATUS_UNSUPPORTED);
  assert_string_equal(tarn_error_message(), "the device cpu does not compute in fp64");
}

// Work outside of graphs that every device has, against the order and rounding that device.h gives.
static void test_arrays(void **state) {
  (void)state;
  enum { N = 1003 };
  char bytes[sizeof(float) * N + 1];
  float values[N], sums[N], expected[N];
  double absolute = 0.25;
  for (int i = 0; i < N; i++) {
    values[i] = (float)(i % 3 == 0 ? -0.1 * i : 1e-3 * i * i);
    sums[i] = (float)(0.7 * i);
    expected[i] = sums[i] + (float)(1.0 / 3.0 * (double)values[i]);
    absolute += values[i] < 0 ? -(double)values[i] : (double)values[i];
  }
  memcpy(bytes + 1, values, sizeof values);  // not aligned
  for (int d = 0; d < DEVICES; d++) {
    void *memory;
    float back[N];
    double sum = 0.25;
    assert_int_equal(tarn__device_allocate(devices[d], &memory, TARN__MEMORY_OTHER, N, sizeof(float)), TARN_STATUS_OK);
    assert_int_equal(tarn__device_put(devices[d], memory, values, sizeof values), TARN_STATUS_OK);
    assert_int_equal(tarn__device_absolute_sum(devices[d], &sum, memory, N), TARN_STATUS_OK);
    assert_true(sum == absolute);
    assert_int_equal(tarn__device_put(devices[d], memory, sums, sizeof sums), TARN_STATUS_OK);
    assert_int_equal(tarn__device_add_scaled(devices[d], memory, bytes + 1, N, 1.0 / 3.0), TARN_STATUS_OK);
    assert_int_equal(tarn__device_get(devices[d], back, memory, sizeof back), TARN_STATUS_OK);
    assert_memory_equal(back, expected, sizeof back);
    assert_int_equal(tarn__device_fill(devices[d], (char *)memory + 3, 0xA5, 2), TARN_STATUS_OK);
    assert_int_equal(tarn__device_get(devices[d], back, memory, sizeof back), TARN_STATUS_OK);
    const unsigned char *now = (const unsigned char *)back;
    const unsigned char *before = (const unsigned char *)expected;
    for (size_t i = 0; i < sizeof back; i++) assert_int_equal(now[i], i == 3 || i == 4 ? 0xA5 : before[i]);
    tarn__device_free(devices[d], memory);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_op_has_kernels),
      cmocka_unit_test(test_a_device_is_found_by_name),
      cmocka_unit_test(test_default_device),
      cmocka_unit_test(test_what_a_device_lacks_fails_in_planning),
      cmocka_unit_test(test_arrays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
