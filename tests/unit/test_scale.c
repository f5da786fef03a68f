// The model of scale: its equations against values that were computed by hand, and what it finds in a description.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "forecast/scale_time.h"
#include "tarn/lab/forecast.h"
#include "tiny_run.h"

static void near(double value, double expected) {
  if (fabs(value - expected) > 1e-9 * fabs(expected)) fail_msg("%.12g is not %.12g", value, expected);
}

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// Eight ranks, 1 MB/s and 1 ms a message: log2 8 = 3 messages by doubling, 7 in a ring.
static void messages_cost_what_the_paper_says(void **state) {
  (void)state;
  const tarn_scale s = {.bandwidth = 1e6, .latency = 1e-3};
  near(tarn__scale_word(&s, 8), 3e-3 + 24 * 7 / 1e6);
  near(tarn__scale_exchange(&s, 8, 8e6), 7e-3 + 7.0);
  near(tarn__scale_gather(&s, 8, 8e6), 7e-3 + 7.0);
  near(tarn__scale_gather(&s, 8, 8e5 / 2), 3e-3 + 0.35);
  // Five ranks take as many rounds as eight.
  near(tarn__scale_word(&s, 5), 3e-3 + 24 * 4 / 1e6);
  assert_true(tarn__scale_word(&s, 1) == 0);
  assert_true(tarn__scale_exchange(&s, 1, 1e6) == 0);
  assert_true(tarn__scale_gather(&s, 1, 1e6) == 0);
}

static void rows_in_use_are_expected(void **state) {
  (void)state;
  const double shares[] = {0.5, 0.25, 0.25, 0};
  tarn__scale_table table = {.rows = 4, .cols = 3, .shares = shares};
  // Of two tokens: the first row unless both are others, and so on.
  near(tarn__scale_used_rows(&table, 2), 0.75 + 2 * (1 - 0.75 * 0.75));
  near(tarn__scale_used_rows(&table, 1e6), 3);
  table.shares = NULL;
  near(tarn__scale_used_rows(&table, 2), 2);
  near(tarn__scale_used_rows(&table, 9), 4);
}

// Two layers and a table, without latency: embeddings of 1,000 values, of whose 100 rows 10 are in use; two layers of
// 2,000. The update takes 100 ms, 10 of them the optimiser; all passes alike long.
enum { PARTS = 3 };
typedef struct fixture {
  tarn_scale scale;
  tarn__scale_memory own;
  tarn__scale_table table;
  tarn_scale_part parts[PARTS];
  double values[PARTS], shares[100];
  tarn_scale_point point;
} fixture;

static void open_fixture(fixture *f, int ranks) {
  *f = (fixture){.scale = {.bandwidth = 1e6,
                           .alone_seconds = 0.08,
                           .step_seconds = 0.1,
                           .optimiser_seconds = 0.01,
                           .adding = 1e6,
                           .update_tokens = 500,
                           .values = 5000,
                           .weights = 5000,
                           .weight_bytes = 10000,
                           .accumulate = 1,
                           .marks = 96,
                           .bucket = 2000,
                           .round = 4000,
                           .part_count = PARTS},
                 .table = {.rows = 100, .cols = 10, .tokens = 1e9},
                 .point = {.ranks = ranks}};
  for (int i = 0; i < PARTS; i++)
    f->parts[i] =
        (tarn_scale_part){.values = i == 0 ? 1000 : 2000, .forward_seconds = 0.015, .backward_seconds = 0.015};
  for (int i = 0; i < 10; i++) f->shares[i] = 0.1;
  f->table.shares = f->shares;
  f->own = (tarn__scale_memory){.tables = &f->table, .table_count = 1};
  f->scale.parts = f->parts;
  f->scale.own = &f->own;
  f->point.part_values = f->values;
}

// Among two ranks a word of 24 bytes takes 24 us, and so do few numbers; the bits of 96 parameters take 12 bytes, and
// those of the table's rows 13.
static const double WORD = 24e-6, SMALL = 3 * 2 * 24e-6 + 24e-6 + 12e-6 + 24e-6 + 13e-6;

static void sums_follow_the_backward_pass(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 2);
  tarn__scale_point(&f.point, &f.scale);
  near(f.point.used_values, 4100);
  near(f.point.part_values[0], 100);
  // Half of 4,100 values of 4 bytes go out, and half of the sums: 16.4 ms. Three buckets, the first two in two rounds.
  const double network = 16.4e-3 + 5 * 2 * WORD + SMALL, adding = 16.4e-3;
  near(f.point.whole.sent_bytes, 16400);
  near(f.point.whole.network_seconds, network);
  near(f.point.whole.adding_seconds, adding);
  near(f.point.whole.step_seconds, 0.1 + network + adding);
  near(f.point.whole.waiting_seconds, network);
  near(f.point.whole.efficiency, 0.08 / (0.1 + network + adding));
  near(f.point.whole.tokens_per_second, 1000 / (0.1 + network + adding));
  // Sharded: half of the way, then half of the weights of 2 bytes, in three rounds; half of the optimiser's time.
  const double sharded = 8.2e-3 + 5 * WORD + SMALL + 5e-3 + 3 * WORD;
  near(f.point.sharded.sent_bytes, 8200 + 5000);
  near(f.point.sharded.network_seconds, sharded);
  near(f.point.sharded.step_seconds, 0.095 + sharded + adding);
  near(f.point.sharded.waiting_seconds, sharded);
}

// 24 bytes of few numbers come in two pieces if 12 bytes of each rank fit besides 12 of its own, and the bits of 96
// parameters in one. Each costs a message.
static void what_all_tell_comes_in_pieces(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 2);
  for (int i = 0; i < PARTS; i++) f.parts[i].values = 0;
  f.own.table_count = 0;
  f.scale.latency = 1e-3;
  f.scale.round = 36;
  tarn__scale_point(&f.point, &f.scale);
  near(f.point.whole.network_seconds, 4 * (1e-3 + WORD) + 3 * 2 * (1e-3 + 12e-6) + 1e-3 + 12e-6);
  f.scale.round = 72;
  tarn__scale_point(&f.point, &f.scale);
  near(f.point.whole.network_seconds, 4 * (1e-3 + WORD) + 3 * (1e-3 + 24e-6) + 1e-3 + 12e-6);
}

static void bf16_sends_half(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 2);
  f.scale.reduce = TARN_PRECISION_BF16;
  tarn__scale_point(&f.point, &f.scale);
  near(f.point.whole.sent_bytes, 8200);
  near(f.point.whole.network_seconds, 8.2e-3 + 3 * 2 * WORD + SMALL);
  near(f.point.whole.adding_seconds, 16.4e-3);
}

// The upper layer is ready at 60 ms and the lower one at 75: only what is left of its bucket and the rows of the table
// are waited for.
static void sums_overlap_with_the_backward_pass(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 2);
  f.scale.overlap = 1;
  tarn__scale_point(&f.point, &f.scale);
  const double bucket = 8e-3 + 4 * WORD, add = 8e-3, last = 4e-4 + 2 * WORD, add_last = 4e-4;
  const double first = 0.06 + bucket + add, second = fmax(0.075 + add, first) + bucket + add;
  const double end = fmax(0.09 + 2 * add, second) + last + add_last;
  near(f.point.whole.step_seconds, end + SMALL + 0.01);
  near(f.point.whole.waiting_seconds, end + SMALL - 0.09 - 2 * add - add_last);
  // With many batches of an update there is a shorter last pass to overlap with.
  const double step = f.point.whole.step_seconds;
  f.scale.accumulate = 4;
  tarn__scale_point(&f.point, &f.scale);
  near(f.point.whole.step_seconds, fmax(0.0825, 0.0825) + 2 * (bucket + add) + last + add_last + SMALL + 0.01);
  assert_true(f.point.whole.step_seconds > step);
}

// As the program sums them: an output layer with weights of its own, complete before all others, goes with the lowest
// layer that has gradients, before the table, and at once where no layer has any.
static void an_output_layer_waits_for_the_layers(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 2);
  f.scale.overlap = 1;
  f.own.output = 2;
  tarn__scale_point(&f.point, &f.scale);
  const double bucket = 8e-3 + 4 * WORD, add = 8e-3, last = 4e-4 + 2 * WORD, add_last = 4e-4;
  const double first = 0.075 + bucket + add, second = fmax(0.075 + add, first) + bucket + add;
  near(f.point.whole.step_seconds, fmax(0.09 + 2 * add, second) + last + add_last + SMALL + 0.01);
  f.parts[1].values = 0;
  f.scale.bandwidth = 2.5e5;  // so slow that the backward pass ends earlier
  tarn__scale_point(&f.point, &f.scale);
  near(f.point.whole.step_seconds, 0.06 + 4 * bucket + add + 4 * last + add_last + 4 * SMALL + 0.01);
}

static void one_rank_sends_nothing(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  tarn__scale_point(&f.point, &f.scale);
  assert_true(f.point.whole.sent_bytes == 0 && f.point.whole.waiting_seconds == 0);
  near(f.point.whole.step_seconds, 0.08);
  near(f.point.whole.efficiency, 1);
  near(f.point.sharded.tokens_per_second, 500 / 0.08);
}

// --- descriptions

static void make(tarn_scale *scale, const char *const *keys, size_t count, const int *ranks, size_t rank_count) {
  tarn_train_options training;
  tarn_scale_options options;
  tarn_train_default(&training);
  training.config = "tiny.yaml";
  training.overrides = keys;
  training.override_count = count;
  training.threads = 1;
  tarn_scale_default(&options);
  options.ranks = ranks;
  options.count = rank_count;
  options.step_seconds = 0.01;
  options.optimiser_seconds = 0.001;
  options.adding = 1e9;
  must(tarn_scale_make(scale, &training, &options));
}

static const tarn_scale_part *part_of(const tarn_scale *scale, const char *label) {
  for (size_t i = 0; i < scale->part_count; i++)
    if (strcmp(scale->parts[i].label, label) == 0) return &scale->parts[i];
  fail_msg("there is no part \"%s\"", label);
  return NULL;
}

// d = 16, ffn = 32: an encoder layer has 4 d d + 4 d, 2 d 32 + 32 + d, and two norms of 2 d; the decoder's one more
// attention and norm.
static void what_is_frozen_or_shared_is_not_sent(void **state) {
  (void)state;
  enum { ENCODER = 4 * 256 + 64 + 1024 + 48 + 64, DECODER = ENCODER + 4 * 256 + 64 + 32, TABLE = TINY_VOCAB * 16 };
  const int ranks[] = {1, 2, 4};
  tarn_scale scale;
  make(&scale, NULL, 0, ranks, 3);
  assert_int_equal(part_of(&scale, "embeddings")->values, TABLE);
  assert_int_equal(part_of(&scale, "encoder 1 R1")->values, 0);
  assert_int_equal(part_of(&scale, "encoder 2 L1")->values, ENCODER);
  assert_int_equal(part_of(&scale, "encoder 4 L1")->values, 0);  // the set of layer 2
  assert_int_equal(part_of(&scale, "decoder 1 L")->values, DECODER);
  assert_int_equal(scale.values, TABLE + ENCODER + DECODER);
  assert_int_equal(scale.weights, scale.values);
  near(scale.weight_bytes, 4.0 * (double)scale.values);
  // A tied table is an output layer too, so all its rows travel; two ranks send each value once in all.
  near(scale.points[1].used_values, (double)scale.values);
  near(scale.points[1].whole.sent_bytes, 4.0 * (double)scale.values);
  near(scale.points[2].whole.sent_bytes, 6.0 * (double)scale.values);
  double seconds = 0;
  for (size_t i = 0; i < scale.part_count; i++)
    seconds += scale.parts[i].forward_seconds + scale.parts[i].backward_seconds;
  near(seconds, 0.009);
  // Moments are divided, but for rounding to whole units.
  assert_int_equal(scale.points[2].whole.optimiser_bytes, 8 * scale.values);
  assert_in_range(scale.points[2].sharded.optimiser_bytes, 2 * scale.values, 2 * scale.values + 8 * 32 * 64);
  assert_true(scale.points[2].whole.memory_bytes != scale.points[2].sharded.memory_bytes);
  assert_int_equal(scale.points[0].whole.memory_bytes, scale.points[0].sharded.memory_bytes);
  tarn_scale_close(&scale);
}

// Tables that no output layer shares send the rows in use: of 60 words many in an update of 400 tokens a side, all of
// them for many ranks.
static void rows_of_tables_travel(void **state) {
  (void)state;
  const char *keys[] = {"model.embeddings=none", "train.max_tokens=40", "train.precision=bf16", "train.reduce=bf16"};
  const int ranks[] = {2, 1024};
  tarn_scale scale;
  make(&scale, keys, 4, ranks, 2);
  assert_int_equal(part_of(&scale, "embeddings")->values, 2 * TINY_VOCAB * 16);
  assert_int_equal(part_of(&scale, "output")->values, TINY_VOCAB * 16);
  const double all = 2 * TINY_VOCAB * 16;
  assert_true(scale.points[0].part_values[0] < 0.8 * all && scale.points[0].part_values[0] > 0.3 * all);
  // Words that the data do not have are never in use.
  assert_true(scale.points[1].part_values[0] <= all && scale.points[1].part_values[0] > 0.9 * all);
  near(scale.points[0].whole.sent_bytes, 2 * scale.points[0].used_values);
  tarn_scale_close(&scale);
}

static void make_on(tarn_scale *scale, const char *keys, int one_machine) {
  const int ranks = 4;
  tarn_train_options training;
  tarn_scale_options options;
  tarn_train_default(&training);
  training.config = "tiny.yaml";
  training.overrides = &keys;
  training.override_count = keys ? 1 : 0;
  training.threads = 1;
  tarn_scale_default(&options);
  options.ranks = &ranks;
  options.step_seconds = 0.01;
  options.optimiser_seconds = 0.001;
  options.adding = 1e9;
  options.one_machine = one_machine;
  must(tarn_scale_make(scale, &training, &options));
}

// Over a link sums overlap with the backward pass, which hides a part of them; on one machine they follow it, and take
// what adding takes.
static void sums_begin_when_the_program_begins_them(void **state) {
  (void)state;
  tarn_scale scale;
  make_on(&scale, NULL, 0);
  assert_true(scale.overlap == 1 && scale.one_machine == 0);
  const double step = scale.points[0].whole.step_seconds;
  scale.overlap = 0;
  tarn__scale_point(&scale.points[0], &scale);
  assert_true(scale.points[0].whole.step_seconds >= step);
  tarn_scale_close(&scale);
  make_on(&scale, NULL, 1);
  assert_true(scale.overlap == 0 && scale.one_machine == 1);
  assert_true(scale.points[0].whole.network_seconds == 0);
  near(scale.points[0].whole.step_seconds, 0.01 + 4.0 * (double)scale.values / 1e9);
  near(scale.points[0].whole.sent_bytes, 6.0 * (double)scale.values);
  tarn_scale_close(&scale);
}

static void refuse(const tarn_scale_options *options, const char *key, const char *words) {
  tarn_train_options training;
  tarn_scale scale;
  tarn_train_default(&training);
  training.config = "tiny.yaml";
  training.overrides = &key;
  training.override_count = key ? 1 : 0;
  assert_int_equal(tarn_scale_make(&scale, &training, options), TARN_STATUS_USAGE);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  tarn_scale_close(&scale);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  const int none = 0, many = TARN_SCALE_RANKS + 1;
  tarn_scale_options usual, o;
  tarn_scale_default(&usual);
  o = usual, o.ranks = &none;
  refuse(&o, NULL, "ranks is 1 to 1048576, not 0");
  o = usual, o.ranks = &many;
  refuse(&o, NULL, "not 1048577");
  o = usual, o.count = 0;
  refuse(&o, NULL, "a number of ranks");
  o = usual, o.bandwidth = 0;
  refuse(&o, NULL, "bandwidth");
  o = usual, o.latency = NAN;
  refuse(&o, NULL, "latency");
  o = usual, o.step_seconds = -1;
  refuse(&o, NULL, "a step takes");
  o = usual, o.step_seconds = 1, o.optimiser_seconds = 2;
  refuse(&o, NULL, "of a step of 1");
  o = usual, o.adding = INFINITY;
  refuse(&o, NULL, "are added at");
  refuse(&usual, "train.lr=x", "train.lr");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(messages_cost_what_the_paper_says),
                                     cmocka_unit_test(rows_in_use_are_expected),
                                     cmocka_unit_test(sums_follow_the_backward_pass),
                                     cmocka_unit_test(what_all_tell_comes_in_pieces),
                                     cmocka_unit_test(bf16_sends_half),
                                     cmocka_unit_test(sums_overlap_with_the_backward_pass),
                                     cmocka_unit_test(an_output_layer_waits_for_the_layers),
                                     cmocka_unit_test(one_rank_sends_nothing),
                                     cmocka_unit_test(what_is_frozen_or_shared_is_not_sent),
                                     cmocka_unit_test(rows_of_tables_travel),
                                     cmocka_unit_test(sums_begin_when_the_program_begins_them),
                                     cmocka_unit_test(what_cannot_be_is_refused)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
