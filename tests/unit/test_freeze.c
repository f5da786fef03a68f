// Staged freezing: what is named keeps its bytes from its update on and costs nothing any more, the log says so, and a
// resumed training gives the bits of one that ran through.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "config/config_freeze.h"
#include "same_run.h"
#include "train/features/autofreeze.h"
#include "train/features/freeze.h"
#include "train/trainer.h"

static const char freeze_config[] =
    "model: { d_model: 16, embeddings: decoder, dropout: 0.2 }\n"
    "encoder: { layers: L1 R L L1 }\n"
    "decoder: { layers: L L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "data: { vocab: vocab, train: train, valid: valid }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 400, log_every: 1, save_every: 5, keep_last: 20,\n"
    "         average: 2, threads: 2, clip_norm: 1, weight_decay: 0.1,\n"
    "         freeze: { embeddings.source: 3, encoder.L1: 5, encoder.layer3: 8 } }\n"
    "valid: { every: 4 }\n";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  sandbox_write("tiny.yaml", freeze_config, strlen(freeze_config));
  return 0;
}

// The update after which a parameter stays; 0: never.
static int64_t frozen_at(const char *name) {
  if (tarn__freeze_covers("embeddings.source", name)) return 3;
  if (tarn__freeze_covers("encoder.L1", name)) return 5;
  return tarn__freeze_covers("encoder.layer3", name) ? 8 : 0;
}

// The first of two variants; as a sample the second alone is tried.
static int least(void) { return getenv("TARN_SAMPLE") ? 1 : 0; }

static void open_numbered(tarn__checkpoint_file *file, const char *run, int64_t update) {
  char path[256];
  char name[64];
  snprintf(name, sizeof name, TARN__CHECKPOINT_NUMBERED, (long long)update);
  join(path, run, name);
  if (tarn__checkpoint_file_open(file, path) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void bytes_stay_from_the_update_on(void **state) {
  (void)state;
  static const char *const variants[][4] = {
      {"train.precision=fp32", "model.norm=post", "train.optimiser=adamw", "train.save_every=1"},
      {"train.precision=bf16", "model.norm=pre", "train.optimiser=adam", "train.save_every=1"}};
  for (int v = least(); v < 2; v++) {
    const char *run = v ? "stay1" : "stay0";
    run_through(run, variants[v], 4);
    for (int64_t update = 2; update <= 12; update++) {
      tarn__checkpoint_file before;
      tarn__checkpoint_file after;
      open_numbered(&before, run, update - 1);
      open_numbered(&after, run, update);
      for (size_t i = 0; i < after.tensors.count; i++) {
        const tarn__stored *a = &after.tensors.tensors[i];
        const tarn__stored *b = &before.tensors.tensors[i];
        if (strcmp(a->dtype, "F32") != 0) continue;
        bool same = memcmp(a->data, b->data, a->bytes) == 0;
        int64_t at = frozen_at(a->name);
        if (same != (at > 0 && update > at)) fail_msg("%s, update %d", a->name, (int)update);
      }
      tarn__checkpoint_file_close(&before);
      tarn__checkpoint_file_close(&after);
    }
  }
}

// The table that all layers of a kind share stops with them, neither before nor after.
static void what_a_kind_shares_stops_with_its_layers(void **state) {
  (void)state;
  static const char TABLE[] = "encoder.shared.A.tokens.weight";
  static const char *const keys[] = {
      "kinds.A={mixer: linformer, heads: 2, rows: 4, tokens: 64, sharing: layerwise, ffn: 32}", "encoder.layers=A A",
      "model.max_length=64", "train.freeze={encoder.layer1: 3, encoder.layer2: 6}", "train.save_every=1"};
  run_through("shared", keys, 5);
  for (int64_t update = 2; update <= 12; update++) {
    tarn__checkpoint_file before, after;
    open_numbered(&before, "shared", update - 1);
    open_numbered(&after, "shared", update);
    int found = 0;
    for (size_t i = 0; i < after.tensors.count; i++) {
      const tarn__stored *a = &after.tensors.tensors[i], *b = &before.tensors.tensors[i];
      if (strcmp(a->name, TABLE) != 0) continue;
      found++;
      if ((memcmp(a->data, b->data, a->bytes) == 0) != (update > 6)) fail_msg("update %d", (int)update);
    }
    assert_int_equal(found, 1);
    tarn__checkpoint_file_close(&before);
    tarn__checkpoint_file_close(&after);
  }
}

static void the_log_tells(void **state) {
  (void)state;
  run_through("told", NULL, 0);
  json_t *log = read_log("told");
  size_t i;
  json_t *record;
  int told = 0;
  static const char *const expected[] = {"[\"embeddings.source\"]", "[\"encoder.L1\"]", "[\"encoder.layer3\"]"};
  json_array_foreach(log, i, record) {
    if (strcmp(json_string_value(json_object_get(record, "kind")), "freeze") != 0) continue;
    char *layers = json_dumps(json_object_get(record, "layers"), JSON_COMPACT);
    assert_true(told < 3);
    assert_string_equal(layers, expected[told]);
    assert_int_equal(json_integer_value(json_object_get(record, "step")), told == 0 ? 3 : told == 1 ? 5 : 8);
    free(layers);
    told++;
  }
  assert_int_equal(told, 3);
  json_decref(log);
}

static void resuming_gives_the_same_bits(void **state) {
  (void)state;
  static const char *const variants[][3] = {
      {"train.precision=fp32", "train.recompute=none", "encoder.layerdrop=0"},
      {"train.precision=bf16", "train.recompute=block", "encoder.layerdrop=0.3"},
  };
  for (int v = least(); v < 2; v++) {
    const char *whole = v ? "whole1" : "whole0";
    const char *pieces = v ? "pieces1" : "pieces0";
    run_through(whole, variants[v], 3);
    run_in_pieces(pieces, v ? 2 : 1, variants[v], 3);
    assert_same_run(whole, pieces);
  }
}

// Nodes of the newest graph, and how many of them are the backward pass of a part of the model.
static size_t backward_nodes(const tarn__graph *graph, const char *label) {
  size_t count = 0;
  for (size_t i = graph->forward_count; i < graph->node_count; i++) {
    const char *of = graph->nodes[i]->label;
    count += of && strncmp(of, label, strlen(label)) == 0;
  }
  return count;
}

// The backward pass stops above the highest layer below which nothing learns.
static void frozen_parts_leave_the_step(void **state) {
  (void)state;
  tarn_train *t;
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = "nodes";
  if (tarn_train_open(&t, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  const tarn__loaded *loaded = tarn__loader_next(t->loader);
  static const int64_t updates[] = {0, 3, 5, 8};
  size_t before = SIZE_MAX;
  for (int i = 0; i < 4; i++) {
    tarn__stepper_loss loss;
    assert_int_equal(tarn__freeze_apply(t->model, updates[i], 0, NULL), TARN_STATUS_OK);
    assert_int_equal(tarn__stepper_train(&t->stepper, &loss, &loaded->batch, i), TARN_STATUS_OK);
    const tarn__graph *graph = &t->stepper.graph;
    assert_true(graph->node_count < before);
    assert_true(graph->workspace_bytes <= t->stepper.workspace_bytes);
    before = graph->node_count;
    assert_int_equal(backward_nodes(graph, "encoder 1") > 0, updates[i] < 5);
    assert_int_equal(backward_nodes(graph, "encoder 2") > 0, updates[i] < 5);
    assert_int_equal(backward_nodes(graph, "encoder 3") > 0, updates[i] < 8);
    assert_int_equal(backward_nodes(graph, "encoder 4") > 0, updates[i] < 8);
    assert_true(backward_nodes(graph, "decoder 1") > 0);
  }
  tarn_train_close(&t);
}

static void the_rule_of_autofreeze(void **state) {
  (void)state;
  static const struct {
    double changes[6];
    size_t count;
    double percentile;
    size_t frozen;
  } cases[] = {
      {{0.1, 0.2, 0.5, 0.4}, 4, 50, 2},            // the median is 0.3
      {{0.4, 0.1, 0.1, 0.1}, 4, 50, 0},            // only from the bottom
      {{0.1, 0.1, 0.4, 0.1, 0.5, 0.6}, 6, 50, 2},  // and only as far as they are below it
      {{0.3, 0.2, 0.1}, 3, 0, 0},                  // the smallest change is reached by all
      {{0.1, 0.2, 0.5, 0.4}, 4, 100, 2},           // the largest
      {{0.1, 0.2, 0.3, 0.4, 0.5}, 5, 80, 4},       // 0.42
      {{0.2, 0.2, 0.2}, 3, 50, 0},
      {{7}, 1, 50, 0},
      {{0}, 0, 50, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(tarn__autofreeze_rule(cases[i].changes, cases[i].count, cases[i].percentile), cases[i].frozen);
}

static const char *const automatic[] = {"train.freeze=", "train.autofreeze=2", "train.autofreeze_percentile=90",
                                        "encoder.layers=L L1 R L L1 L", "train.max_updates=16"};

// Records of the kind "freeze" of a run.
static size_t freeze_records(const char *run, bool *embedding) {
  json_t *log = read_log(run);
  json_t *record;
  size_t i;
  size_t count = 0;
  json_array_foreach(log, i, record) {
    if (strcmp(json_string_value(json_object_get(record, "kind")), "freeze") != 0) continue;
    json_t *layers = json_object_get(record, "layers");
    int64_t step = json_integer_value(json_object_get(record, "step"));
    assert_true(step >= 4 && step % 2 == 0);
    assert_true(json_array_size(layers) > 0);
    if (count == 0) *embedding = strcmp(json_string_value(json_array_get(layers, 0)), "embeddings.source") == 0;
    count++;
  }
  json_decref(log);
  return count;
}

static void autofreeze_goes_on_exactly(void **state) {
  (void)state;
  static const char *const precisions[] = {"train.precision=fp32", "train.precision=bf16"};
  for (int v = least(); v < 2; v++) {
    const char *overrides[7];
    bool embedding = false;
    memcpy(overrides, automatic, sizeof automatic);
    overrides[5] = precisions[v];
    overrides[6] = v ? "encoder.layerdrop=0.1" : "train.accumulate=2";
    const char *whole = v ? "auto1" : "auto0";
    const char *pieces = v ? "autopieces1" : "autopieces0";
    run_through(whole, overrides, 7);
    run_in_pieces(pieces, v ? 3 : 1, overrides, 7);
    assert_same_run(whole, pieces);
    assert_true(freeze_records(whole, &embedding) > 0);
    assert_true(embedding);
  }
}

// The sums are those of the gradients before clipping, and a test clears them.
static void autofreeze_sums_gradients(void **state) {
  (void)state;
  tarn_train *t;
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = "sums";
  options.overrides = automatic;
  options.override_count = 5;
  if (tarn_train_open(&t, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  tarn__train_update_result result;
  size_t with = 0;
  assert_int_equal(tarn__train_step(t, &result), TARN_STATUS_OK);
  for (size_t i = 0; i < t->model->param_count; i++) {
    const tarn__param *param = t->model->params[i];
    bool expected = param->trained && strncmp(param->name, "encoder.", 8) == 0;
    assert_int_equal(param->training.grad_sum != NULL, expected);
    if (!expected) continue;
    assert_memory_equal(param->training.grad_sum, param->training.grad,
                        (size_t)(param->rows * param->cols) * sizeof(float));
    with++;
  }
  assert_true(with > 20);
  assert_int_equal(tarn__train_step(t, &result), TARN_STATUS_OK);
  assert_int_equal(tarn__autofreeze_test(t->model, NULL, &t->progress), TARN_STATUS_OK);
  assert_int_equal(t->progress.norm_count, 4);  // four trained sets: L1 is one
  assert_int_equal(t->progress.frozen_sets, 0);
  for (size_t i = 0; i < t->model->param_count; i++)
    if (t->model->params[i]->training.grad_sum) assert_true(t->model->params[i]->training.grad_sum[0] == 0);
  for (int i = 0; i < 4; i++) assert_true(t->progress.norms[i] > 0);
  tarn_train_close(&t);
}

// A description stays valid when it is pruned, but a training of which nothing is left to learn is none.
static void layers_that_are_left_out_do_not_learn(void **state) {
  (void)state;
  const char *overrides[] = {"train.freeze={ encoder.layer1: 5, decoder: 6, embeddings: 7 }", "encoder.layers=L L",
                             "encoder.layers_to_keep=[1]"};
  tarn_config *config;
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", overrides, 2), TARN_STATUS_OK);
  assert_int_equal(tarn_config_check_training(config), TARN_STATUS_OK);
  tarn_config_close(&config);
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", overrides, 3), TARN_STATUS_OK);
  assert_int_equal(tarn_config_check_training(config), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "everything would be frozen that layers_to_keep leaves"));
  tarn_config_close(&config);
  const char *unfrozen[] = {"train.freeze=", "train.autofreeze=4", "encoder.layers=R L", "encoder.layers_to_keep=[1]"};
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", unfrozen, 4), TARN_STATUS_OK);
  assert_int_equal(tarn_config_check_training(config), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "no trained layer that could be frozen"));
  tarn_config_close(&config);
}

static void refuse(const char *freeze, const char *message) {
  char override[300];
  const char *overrides[] = {override};
  tarn_config *config;
  snprintf(override, sizeof override, "train.freeze=%s", freeze);
  tarn_status status = tarn_config_read(&config, "tiny.yaml", overrides, 1);
  if (status == TARN_STATUS_OK) tarn_config_close(&config);
  assert_int_equal(status, message ? TARN_STATUS_USAGE : TARN_STATUS_OK);
  if (message && !strstr(tarn_error_message(), message)) fail_msg("%s", tarn_error_message());
}

static void what_cannot_be_frozen_is_refused(void **state) {
  (void)state;
  refuse("{ encoder: 5 }", NULL);
  refuse("{ decoder: 5, encoder.layer3: 7 }", NULL);
  refuse("{ embeddings: 5 }", NULL);
  refuse("{}", NULL);
  refuse("{ encoder.layer4: 5 }",
         "train.freeze: encoder.layer4 is not a part of the model; did you mean \"encoder.layer3\"?");
  refuse("{ encodr: 5 }", "did you mean \"encoder\"?");
  refuse("{ embeddings.sourc: 5 }", "did you mean \"embeddings.source\"?");
  refuse("{ everything at all: 5 }", "there are decoder, embeddings, encoder, and sets such as");
  refuse("{ encoder.layer2: 5 }", "train.freeze: encoder.layer2 is frozen from the start");
  refuse("{ encoder: 5, encoder.L1: 6 }", "both freeze encoder.L1; name it once");
  refuse("{ encoder.L1: 5, encoder.L1: 6 }", "given twice");
  refuse("{ encoder: 5, decoder: 6, embeddings: 7 }", "in the end everything would be frozen");
  refuse("{ encoder.L1: -1 }", "train.freeze: encoder.L1: -1 is out of range (0 .. 1000000000000)");
  refuse("{ encoder.L1: soon }", "train.freeze: encoder.L1: \"soon\" is not an integer");
  refuse("{ encoder.L1: [1, 2] }", "train.freeze: encoder.L1: expected the number of an update");
  refuse("encoder.L1", "expected layers and updates, such as { encoder.layer1: 1000 }");
  refuse("[encoder.L1]", "expected layers and updates");
  const char *frozen[] = {"train.freeze=", "train.autofreeze=2", "encoder.layers=R R"};
  tarn_config *config;
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", frozen, 3), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "train.autofreeze: the encoder has no trained layer"));
}

// The list of names to choose the nearest one from has room for all that a model can have.
static void the_largest_model_has_room(void **state) {
  (void)state;
  const char *overrides[] = {"model.embeddings=none",         "model.positions=learned", "model.norm=pre",
                             "model.output_bias=yes",         "encoder.layers=L*512",    "decoder.layers=L*512",
                             "train.freeze={ qqqqqqqqqq: 5 }"};
  tarn_config *config;
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", overrides, 7), TARN_STATUS_USAGE);
  if (!strstr(tarn_error_message(), "encoder, and sets such as \"decoder.layer512\""))
    fail_msg("%s", tarn_error_message());
}

static void the_configuration_reads_back(void **state) {
  (void)state;
  tarn_config *config;
  tarn_config *back;
  char *text;
  char *again;
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", NULL, 0), TARN_STATUS_OK);
  assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
  assert_non_null(strstr(text, "  freeze: {embeddings.source: 3, encoder.L1: 5, encoder.layer3: 8}\n"));
  assert_int_equal(tarn_config_parse(&back, "back", text, strlen(text), NULL, 0), TARN_STATUS_OK);
  assert_int_equal(tarn_config_write(back, &again), TARN_STATUS_OK);
  assert_string_equal(text, again);
  tarn_config_text_close(&text);
  tarn_config_text_close(&again);
  tarn_config_close(&back);
  tarn_config_close(&config);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_rule_of_autofreeze),
      cmocka_unit_test(autofreeze_goes_on_exactly),
      cmocka_unit_test(autofreeze_sums_gradients),
      cmocka_unit_test(bytes_stay_from_the_update_on),
      cmocka_unit_test(what_a_kind_shares_stops_with_its_layers),
      cmocka_unit_test(the_log_tells),
      cmocka_unit_test(resuming_gives_the_same_bits),
      cmocka_unit_test(frozen_parts_leave_the_step),
      cmocka_unit_test(what_cannot_be_frozen_is_refused),
      cmocka_unit_test(layers_that_are_left_out_do_not_learn),
      cmocka_unit_test(the_largest_model_has_room),
      cmocka_unit_test(the_configuration_reads_back),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
