// Profiles: the table accounts for the time and the operations of a training, the trace is valid JSON whose events lie
// where they belong, and measuring changes no result.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/memory.h"
#include "device/devices.h"
#include "graph/profile.h"
#include "ops/ops.h"
#include "optim/adam.h"
#include "task/measure_entry.h"
#include "tiny_run.h"

// Of tiny_config, without the first update; one validation is that of the average.
enum { UPDATES = 11, VALIDATIONS = 4, TRACED = 5 };

static void train(const char *run, tarn_profile *profile, tarn_train_result *result) {
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = run;
  options.profile = profile;
  tarn_train *t;
  if (tarn_train_open(&t, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  if (tarn_train_run(t, result) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  tarn_train_close(&t);
}

static const tarn_profile_row *find(const tarn_profile_summary *s, const char *op, const char *part,
                                    tarn_profile_pass pass) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->rows[i].op, op) == 0 && strcmp(s->rows[i].part, part) == 0 && s->rows[i].pass == pass)
      return &s->rows[i];
  fail_msg("no row %s, %s, %d", op, part, (int)pass);
  return NULL;
}

static void check_table(tarn_profile *profile) {
  tarn_profile_summary s;
  assert_int_equal(tarn_profile_sum(profile, &s), TARN_STATUS_OK);
  assert_int_equal(s.units, UPDATES);
  assert_int_equal(s.left_out, 1);
  assert_true(s.left_out_seconds > 0);
  assert_string_equal(s.unit, "update");
  double seconds = 0;
  for (size_t i = 0; i < s.count; i++) {
    seconds += s.rows[i].seconds;
    assert_true(s.rows[i].seconds >= 0);
    if (i > 0) assert_true(s.rows[i].seconds <= s.rows[i - 1].seconds);
  }
  // Nothing is counted twice.
  assert_true(s.seconds > 0);
  assert_true(fabs(seconds - s.seconds) < 0.01 * s.seconds);
  assert_int_equal(find(&s, "optimiser", "", TARN_PROFILE_OUTSIDE)->calls, UPDATES);
  assert_int_equal(find(&s, "validation", "", TARN_PROFILE_OUTSIDE)->calls, VALIDATIONS);
  assert_int_equal(find(&s, "waiting for batches", "", TARN_PROFILE_OUTSIDE)->calls, UPDATES);
  assert_int_equal(find(&s, "averaging", "", TARN_PROFILE_OUTSIDE)->calls, 1);
  // Two shared encoder layers of each kind, and validations are not part of the ops: attention runs twice an update.
  const tarn_profile_row *row = find(&s, "attention", "encoder L1", TARN_PROFILE_FORWARD);
  assert_int_equal(row->calls, 2 * UPDATES);
  assert_true(row->flops > 0);
  assert_int_equal(find(&s, "linear_dweight", "encoder L1", TARN_PROFILE_BACKWARD)->calls % (2 * UPDATES), 0);
  for (size_t i = 0; i < s.count; i++)
    assert_false(strcmp(s.rows[i].op, "linear_dweight") == 0 && strcmp(s.rows[i].part, "encoder R1") == 0);
  row = find(&s, "output_loss", "output", TARN_PROFILE_BOTH);
  assert_int_equal(row->calls, UPDATES);
  assert_true(s.peaks.bytes > 0 && row->bytes > 0 && row->bytes_seconds > 0 && row->flops_seconds > 0);
  // Three products of rows x 16 x 60 tokens, rows at most 400 an update.
  assert_true(row->flops > 0 && row->flops <= 3 * 2.0 * 400 * 16 * TINY_VOCAB * UPDATES);
}

static void check_trace(const char *path, double seconds) {
  json_error_t error;
  json_t *root = json_load_file(path, 0, &error);
  if (!root) fail_msg("%s:%d: %s", path, error.line, error.text);
  const json_t *events = json_object_get(root, "traceEvents");
  assert_true(json_array_size(events) > 100);
  double begin[TRACED];
  double end[TRACED];
  size_t updates = 0;
  for (size_t i = 0; i < json_array_size(events); i++) {
    const json_t *e = json_array_get(events, i);
    if (strcmp(json_string_value(json_object_get(e, "ph")), "X") != 0) continue;
    double ts = json_number_value(json_object_get(e, "ts"));
    double dur = json_number_value(json_object_get(e, "dur"));
    assert_true(json_is_number(json_object_get(e, "ts")) && json_is_number(json_object_get(e, "dur")));
    assert_true(ts >= 0 && dur >= 0 && ts + dur <= seconds * 1e6 + 1.0);
    if (strcmp(json_string_value(json_object_get(e, "name")), "update") != 0) continue;
    assert_true(updates < TRACED);
    begin[updates] = ts;
    end[updates++] = ts + dur;
  }
  assert_int_equal(updates, TRACED);
  // Every op lies within one update.
  size_t ops = 0;
  for (size_t i = 0; i < json_array_size(events); i++) {
    const json_t *e = json_array_get(events, i);
    const char *cat = json_string_value(json_object_get(e, "cat"));
    if (!cat || strcmp(cat, "outside") == 0) continue;
    double ts = json_number_value(json_object_get(e, "ts"));
    double stop = ts + json_number_value(json_object_get(e, "dur"));
    size_t u = 0;
    while (u < updates && !(begin[u] - 0.01 <= ts && stop <= end[u] + 0.01)) u++;
    assert_true(u < updates);
    const char *part = json_string_value(json_object_get(json_object_get(e, "args"), "part"));
    assert_true(strncmp(part, "encoder ", 8) == 0 || strncmp(part, "decoder ", 8) == 0 ||
                strcmp(part, "embeddings") == 0 || strcmp(part, "output") == 0);
    ops++;
  }
  assert_true(ops > TRACED * 50);
  json_decref(root);
}

// Hardly anything is not counted (the log, the decisions between updates).
static bool hardly_any_other(tarn_profile *profile) {
  tarn_profile_summary s;
  assert_int_equal(tarn_profile_sum(profile, &s), TARN_STATUS_OK);
  return find(&s, "other", "", TARN_PROFILE_OUTSIDE)->seconds < 0.5 * s.seconds;
}

static void measures_a_training(void **state) {
  (void)state;
  tarn_profile *profile = NULL;
  tarn_train_result measured;
  tarn_train_result plain;
  // A busy machine may hold a training up in the middle of what is not counted, but not every time.
  for (int attempt = 0; attempt == 0 || !hardly_any_other(profile); attempt++) {
    char run[32];
    assert_true(attempt < 10);
    tarn_profile_close(&profile);
    snprintf(run, sizeof run, "measured-%d", attempt);
    assert_int_equal(tarn_profile_open(&profile, TRACED), TARN_STATUS_OK);
    train(run, profile, &measured);
  }
  train("plain", NULL, &plain);
  assert_true(measured.cost.moved_bytes == plain.cost.moved_bytes);
  assert_true(measured.scores[TARN__METRIC_LOSS] == plain.scores[TARN__METRIC_LOSS]);
  check_table(profile);
  tarn_profile_summary summary;
  assert_int_equal(tarn_profile_sum(profile, &summary), TARN_STATUS_OK);
  // What a training says that it moved is what the profile counts, and what the update moved that is left out.
  double bytes = 0;
  for (size_t i = 0; i < summary.count; i++) bytes += summary.rows[i].bytes;
  assert_true(plain.cost.moved_bytes > bytes && plain.cost.moved_bytes < 1.25 * bytes);
  assert_int_equal(tarn_profile_write_trace(profile, "trace.json"), TARN_STATUS_OK);
  check_trace("trace.json", summary.seconds + summary.left_out_seconds);
  assert_int_equal(tarn_profile_write_trace(profile, "nowhere/trace.json"), TARN_STATUS_IO);
  tarn_profile_close(&profile);
  assert_null(profile);
}

static void bounds_and_nothing(void **state) {
  (void)state;
  tarn_profile *profile;
  assert_int_equal(tarn_profile_open(&profile, -1), TARN_STATUS_USAGE);
  assert_null(profile);
  assert_int_equal(tarn_profile_open(&profile, INT64_MAX), TARN_STATUS_OK);
  double begin = tarn__profile_clock(profile);
  for (int i = 0; i < TARN__PROFILE_EVENTS + 10; i++)
    assert_int_equal(tarn__profile_work(profile, "a \"word\"", begin), TARN_STATUS_OK);
  assert_int_equal(profile->event_count, TARN__PROFILE_EVENTS);
  profile->event_count = 3;
  assert_int_equal(tarn_profile_write_trace(profile, "quotes.json"), TARN_STATUS_OK);
  json_t *root = json_load_file("quotes.json", 0, NULL);
  assert_non_null(root);
  assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), 2 + 3);
  json_decref(root);
  tarn_profile_close(&profile);
  // Without a profile nothing happens.
  tarn__profile_start(NULL);
  tarn__profile_stop(NULL);
  assert_true(tarn__profile_clock(NULL) == 0.0);
  assert_int_equal(tarn__profile_work(NULL, "word", 0), TARN_STATUS_OK);
  assert_int_equal(tarn__profile_unit(NULL, "word", 0), TARN_STATUS_OK);
  tarn_profile_close(&profile);
}

static tarn__param matrix(int64_t rows, int64_t cols) {
  return (tarn__param){.name = "w", .rows = rows, .cols = cols, .dtype = TARN__F32, .trained = true, .uses = 1};
}

static double bytes_of(const tarn__graph *graph, const char *op) {
  for (size_t i = 0; i < graph->node_count; i++)
    if (strcmp(graph->nodes[i]->op->name, op) == 0) return tarn__node_bytes(graph->nodes[i]);
  fail_msg("no node %s", op);
  return 0.0;
}

// Three tokens, embedded in 4 dimensions of a table of 5 words, through a layer of 2 with ReLU to 6 words: bytes
// counted by hand, 4 for each number.
static void counts_bytes(void **state) {
  (void)state;
  static const int32_t ids[] = {1, 0, 4}, targets[] = {5, 2, 0};
  static const double grad_scale = 1.0;
  tarn__param table = matrix(5, 4), weight = matrix(2, 4), bias = matrix(1, 2), words = matrix(6, 2);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_reference, TARN__F32, true, 1);
  tarn__tensor *id = tarn__graph_input(&graph, 3, ids, "ids");
  tarn__tensor *h = tarn__embedding(&graph, id, NULL, &table, NULL, 1.0, 0.0);
  tarn__tensor *y = tarn__linear(&graph, h, &weight, &bias, TARN__RELU);
  tarn__tensor *target = tarn__graph_input(&graph, 3, targets, "targets");
  tarn__graph_differentiate(&graph, tarn__output_loss(&graph, y, &words, NULL, target, 0.0, grad_scale));
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
  // Ids, three rows of the table, the result.
  assert_true(bytes_of(&graph, "embedding") == 4 * (3 + 12 + 12));
  // Input, weight, bias, output.
  assert_true(bytes_of(&graph, "linear") == 4 * (12 + 8 + 2 + 6));
  // Input, table, targets and the gradients of the first two; two sums in double.
  assert_true(bytes_of(&graph, "output_loss") == 4 * (6 + 12 + 3 + 6 + 12) + 16);
  // Gradient and result, the gradient before the activation, that of the bias.
  assert_true(bytes_of(&graph, "linear_dz") == 4 * (6 + 6 + 6 + 2));
  assert_true(bytes_of(&graph, "linear_dx") == 4 * (6 + 8 + 12));
  // What is added to is read too.
  assert_true(bytes_of(&graph, "linear_dweight") == 4 * (6 + 12 + 8));
  weight.training.grad_written = true;
  assert_true(bytes_of(&graph, "linear_dweight") == 4 * (6 + 12 + 2 * 8));
  assert_true(bytes_of(&graph, "embedding_backward") == 4 * (3 + 12 + 2 * 12));
  tarn__graph_close(&graph);
  // Gradient read, weights and two moments read and written; then with moments of BF16 and another copy in BF16. What
  // has no gradient is left alone.
  tarn__param *const params[] = {&weight, &bias};
  double gradients;
  assert_true(tarn__adam_bytes(params, 2, &gradients) == 8 * 4 * (1 + 2 + 4));
  assert_true(gradients == 8 * 4);
  uint16_t copy[8];
  weight.value = copy;
  weight.dtype = TARN__BF16;
  weight.training.moments = TARN__MOMENTS_BF16;
  assert_true(tarn__adam_bytes(params, 2, &gradients) == 8 * (4 * (1 + 2) + 2 * 4 + 2));
  weight.training.moments = TARN__MOMENTS_F8;
  assert_true(tarn__adam_bytes(params, 2, &gradients) == 8 * (4 * (1 + 2) + 2) + 4 * 260);
}

// A unit that is left out appears in the trace alone, with all that was recorded during it; what follows counts.
static void leaves_out(void **state) {
  (void)state;
  tarn_profile *profile;
  tarn_profile_summary s;
  assert_int_equal(tarn_profile_open(&profile, 2), TARN_STATUS_OK);
  const double begin = tarn__profile_clock(profile);
  tarn__profile_start(profile);
  assert_int_equal(tarn__profile_work(profile, "reading", begin), TARN_STATUS_OK);
  tarn__profile_leave_out(profile);
  for (int unit = 0; unit < 3; unit++) {
    const double first = tarn__profile_clock(profile);
    assert_int_equal(tarn__profile_work(profile, "work", first), TARN_STATUS_OK);
    if (unit == 0) assert_int_equal(tarn__profile_work(profile, "only once", first), TARN_STATUS_OK);
    assert_int_equal(tarn__profile_unit(profile, "unit", first), TARN_STATUS_OK);
  }
  tarn__profile_stop(profile);
  const double all = tarn__profile_clock(profile) - begin;
  assert_int_equal(tarn_profile_sum(profile, &s), TARN_STATUS_OK);
  assert_true(s.units == 2 && s.left_out == 1 && s.left_out_seconds > 0);
  assert_true(s.seconds > 0 && s.seconds + s.left_out_seconds <= all);
  assert_int_equal(find(&s, "reading", "", TARN_PROFILE_OUTSIDE)->calls, 1);
  assert_int_equal(find(&s, "work", "", TARN_PROFILE_OUTSIDE)->calls, 2);
  for (size_t i = 0; i < s.count; i++) assert_string_not_equal(s.rows[i].op, "only once");
  assert_int_equal(profile->event_count, 1 + 3 + 2);  // the trace ends behind the second unit
  tarn_profile_close(&profile);
  tarn__profile_leave_out(NULL);
}

// A device that does a thousand operations and a hundred bytes a second.
static tarn_status known_peaks(const tarn__device *device, tarn__device_peaks *peaks, int threads) {
  (void)device;
  assert_int_equal(threads, 3);
  *peaks = (tarn__device_peaks){.flops = {[TARN__F32] = 1000.0, [TARN__BF16] = 9000.0}, .bytes = 100.0};
  return TARN_STATUS_OK;
}

static void compares_with_peaks(void **state) {
  (void)state;
  tarn__device_type type = *tarn__device_reference.type;
  const tarn__device device = {.type = &type, .name = "known"};
  tarn_profile *profile;
  tarn_profile_summary s;
  assert_int_equal(tarn_profile_open(&profile, 0), TARN_STATUS_OK);
  assert_int_equal(tarn__profile_peaks(profile, &device, 3), TARN_STATUS_OK);  // it knows none
  type.peaks = known_peaks;
  assert_int_equal(tarn__profile_peaks(profile, &device, 3), TARN_STATUS_OK);
  assert_int_equal(tarn__profile_peaks(profile, &device, 4), TARN_STATUS_OK);  // not measured again
  tarn__param weight = matrix(2, 4);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &device, TARN__F32, true, 1);
  float x[12];
  tarn__linear(&graph, tarn__graph_external(&graph, TARN__F32, 3, 4, x, "x"), &weight, NULL, TARN__IDENTITY);
  const double bytes = tarn__node_bytes(graph.nodes[0]);
  for (int i = 0; i < 2; i++)
    assert_int_equal(tarn__profile_node(profile, graph.nodes[0], false, tarn__profile_clock(profile), bytes),
                     TARN_STATUS_OK);
  assert_int_equal(tarn__profile_moving(profile, "optimiser", tarn__profile_clock(profile), 50.0), TARN_STATUS_OK);
  assert_int_equal(tarn_profile_sum(profile, &s), TARN_STATUS_OK);
  assert_true(s.peaks.fp32_flops == 1000.0 && s.peaks.bf16_flops == 9000.0 && s.peaks.bytes == 100.0);
  const tarn_profile_row *row = find(&s, "linear", "", TARN_PROFILE_FORWARD);
  assert_true(row->flops == 2 * 2.0 * 3 * 4 * 2 && row->bytes == 2 * 4.0 * (12 + 8 + 6));
  assert_true(fabs(row->flops_seconds - 0.096) < 1e-12 && fabs(row->bytes_seconds - 2.08) < 1e-12);
  row = find(&s, "optimiser", "", TARN_PROFILE_OUTSIDE);
  assert_true(row->bytes == 50.0 && row->bytes_seconds == 0.5 && row->flops_seconds == 0.0);
  assert_true(row->floor_seconds == 0.5);
  row = find(&s, "linear", "", TARN_PROFILE_FORWARD);
  assert_true(row->floor_seconds == row->bytes_seconds);  // larger than that of the operations
  assert_true(fabs(s.floor_seconds - row->floor_seconds - 0.5) < 1e-12);
  tarn__graph_close(&graph);
  tarn_profile_close(&profile);
}

static tarn_status cached_peaks(const tarn__device *device, tarn__device_peaks *peaks, int threads) {
  (void)device;
  (void)threads;
  *peaks = (tarn__device_peaks){.bytes = 100, .cached = {1600, 800, 400, 50}};
  return TARN_STATUS_OK;
}

// The bytes of a call count at the speed of the smallest set measured that they fit into, and never below the memory's.
static void counts_caches(void **state) {
  (void)state;
  static const struct {
    double bytes, rate;
  } cases[] = {{50, 1600}, {1048575, 1600}, {1048576, 800}, {4194304, 400}, {16777216, 100}, {67108864, 100}};
  tarn__device_type type = *tarn__device_reference.type;
  type.peaks = cached_peaks;
  const tarn__device device = {.type = &type, .name = "cached"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_profile *profile;
    tarn_profile_summary s;
    assert_int_equal(tarn_profile_open(&profile, 0), TARN_STATUS_OK);
    assert_int_equal(tarn__profile_peaks(profile, &device, 1), TARN_STATUS_OK);
    for (int call = 0; call < 2; call++)
      assert_int_equal(tarn__profile_moving(profile, "optimiser", tarn__profile_clock(profile), cases[i].bytes),
                       TARN_STATUS_OK);
    assert_int_equal(tarn_profile_sum(profile, &s), TARN_STATUS_OK);
    const tarn_profile_row *row = find(&s, "optimiser", "", TARN_PROFILE_OUTSIDE);
    assert_true(fabs(row->floor_seconds / (2 * cases[i].bytes / cases[i].rate) - 1) < 1e-12);
    assert_true(s.floor_seconds == row->floor_seconds && s.peaks.cached_bytes == 1600);
    tarn_profile_close(&profile);
  }
}

// Products of fp32 with a weight take six or three of BF16 through tiles and the time of two in TF32, and what has no
// weight is exact.
static void counts_splits(void **state) {
  (void)state;
  static const struct {
    tarn__fp32 fp32;
    double linear;  // seconds of its 48 operations
  } cases[] = {{TARN__FP32_EXACT, 48 / 1000.0},
               {TARN__FP32_SPLIT6, 48 / (9000.0 / 6)},
               {TARN__FP32_SPLIT3, 48 / (9000.0 / 3)},
               {TARN__FP32_TF32, 48 / (9000.0 / 2)}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn__device_type type = *tarn__device_reference.type;
    type.peaks = known_peaks;
    const tarn__device device = {.type = &type, .name = "known"};
    tarn_profile *profile;
    tarn_profile_summary s;
    assert_int_equal(tarn_profile_open(&profile, 0), TARN_STATUS_OK);
    assert_int_equal(tarn__profile_peaks(profile, &device, 3), TARN_STATUS_OK);
    tarn__param weight = matrix(2, 4);
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &device, TARN__F32, true, 1);
    graph.fp32 = cases[i].fp32;
    float x[12];
    tarn__linear(&graph, tarn__graph_external(&graph, TARN__F32, 3, 4, x, "x"), &weight, NULL, TARN__IDENTITY);
    static const int32_t offsets[] = {0, 3};
    tarn__tensor *pair = tarn__graph_input(&graph, 2, offsets, "offsets");
    tarn__tensor *qkv = tarn__graph_external(&graph, TARN__F32, 3, 12, x, "qkv");
    tarn__attention_spec spec = {.heads = 1, .d = 4, .key_column = 4, .value_column = 8, .longest = 3};
    tarn__attention(&graph, qkv, qkv, pair, pair, spec);
    for (int n = 0; n < 2; n++)
      assert_int_equal(tarn__profile_node(profile, graph.nodes[n], false, tarn__profile_clock(profile), 0.0),
                       TARN_STATUS_OK);
    assert_int_equal(tarn_profile_sum(profile, &s), TARN_STATUS_OK);
    const tarn_profile_row *row = find(&s, "linear", "", TARN_PROFILE_FORWARD);
    assert_true(row->flops == 48.0 && fabs(row->flops_seconds - cases[i].linear) < 1e-12);
    row = find(&s, "attention", "", TARN_PROFILE_FORWARD);
    assert_true(row->flops > 0 && fabs(row->flops_seconds - row->flops / 1000.0) < 1e-12);
    tarn__graph_close(&graph);
    tarn_profile_close(&profile);
  }
}

// A device that takes a twentieth of a second to say that a quarter of its peak is left.
static int rates_asked;
static double quarter_left(const tarn__device *device, int threads) {
  const double begin = tarn__seconds();
  (void)device;
  assert_int_equal(threads, 3);
  rates_asked++;
  while (tarn__seconds() - begin < 0.05) continue;
  return 250.0;
}

// Samples are taken after units that count, not too often, and their time counts nowhere.
static void samples_the_rate(void **state) {
  (void)state;
  tarn__device_type type = *tarn__device_reference.type;
  const tarn__device device = {.type = &type, .name = "known"};
  tarn_profile *profile;
  tarn_profile_summary s;
  type.peaks = known_peaks;
  type.flops_now = quarter_left;
  rates_asked = 0;
  assert_int_equal(tarn_profile_open(&profile, 0), TARN_STATUS_OK);
  assert_int_equal(tarn__profile_unit(profile, "unit", tarn__profile_clock(profile)), TARN_STATUS_OK);
  assert_int_equal(rates_asked, 0);  // the device is not known yet
  assert_int_equal(tarn_profile_sum(profile, &s), TARN_STATUS_OK);
  assert_true(s.available == 0.0);
  assert_int_equal(tarn__profile_peaks(profile, &device, 3), TARN_STATUS_OK);
  const double begin = tarn__profile_clock(profile);
  tarn__profile_start(profile);
  tarn__profile_leave_out(profile);
  for (int unit = 0; unit < 3; unit++) {
    const double before = profile->sample_end;
    assert_int_equal(tarn__profile_unit(profile, "unit", tarn__profile_clock(profile)), TARN_STATUS_OK);
    // The last one is too early, unless this process had to wait.
    if (unit < 2 || tarn__profile_clock(profile) - before < TARN__PROFILE_SAMPLE_SECONDS)
      assert_int_equal(rates_asked, unit > 0);
  }
  tarn__profile_stop(profile);
  const double all = tarn__profile_clock(profile) - begin;
  assert_int_equal(tarn_profile_sum(profile, &s), TARN_STATUS_OK);
  assert_true(s.available == 0.25);
  assert_true(s.seconds >= 0 && s.seconds + s.left_out_seconds <= all - 0.05);
  tarn_profile_close(&profile);
}

// Products of floats and of BF16, and memory, do something on every machine.
static void measures_the_processor(void **state) {
  (void)state;
  tarn__device_peaks peaks = {0};
  assert_int_equal(tarn__device_cpu.type->peaks(&tarn__device_cpu, &peaks, 1), TARN_STATUS_OK);
  assert_true(peaks.flops[TARN__F32] > 1e6 && peaks.flops[TARN__BF16] > 1e6 && peaks.bytes > 1e6);
  assert_true(peaks.flops[TARN__F64] == 0.0 && peaks.flops[TARN__I32] == 0.0);
  const double now = tarn__device_cpu.type->flops_now(&tarn__device_cpu, 1);
  assert_true(now > 1e6 && now < 10 * peaks.flops[TARN__F32]);  // the peak may have been disturbed
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(measures_a_training),   cmocka_unit_test(bounds_and_nothing),
                                     cmocka_unit_test(counts_bytes),          cmocka_unit_test(leaves_out),
                                     cmocka_unit_test(compares_with_peaks),   cmocka_unit_test(counts_caches),
                                     cmocka_unit_test(counts_splits),         cmocka_unit_test(samples_the_rate),
                                     cmocka_unit_test(measures_the_processor)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
