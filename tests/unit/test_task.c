// A task that is no more than its entry: a model with an encoder alone, which learns to say of every token whether its
// id is even. It is described, trained, scored, stopped and resumed, and nothing outside of the entry knows of it.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "same_run.h"
#include "store/checkpoint.h"
#include "task/next_token.h"
#include "tiny_run.h"

// It calls a model lost whose loss is above this.
static const double LOST = 50.0;

static int64_t counted_sets;

static tarn_status resolve(tarn_config *config, const tarn__task_keys *keys) {
  (void)keys;
  if (config->valid.metric == TARN__METRIC_COUNT) config->valid.metric = TARN__METRIC_PPL;
  return TARN_STATUS_OK;
}

static tarn_status declare_tables(const tarn__task_site *site, tarn__task_weights *weights) {
  TARN_TRY(tarn__next_token_table(&weights->target_table, &weights->target_bands, site, "letters.weight",
                                  site->target_vocab, true, false));
  return site->declare->status;
}

// A head of its own, of two classes, with a bias.
static tarn_status declare_output(const tarn__task_site *site, tarn__task_weights *weights) {
  const tarn__init init = {TARN__INIT_NORMAL, 0.1, 1}, zero = {TARN__INIT_ZERO, 0.0, 1};
  weights->output_table = tarn__declare_param(site->declare, "classes.weight", 2, site->declare->d_model, true, init);
  weights->output_bias = tarn__declare_param(site->declare, "classes.bias", 1, 2, true, zero);
  return site->declare->status;
}

static tarn__tensor *output_input(tarn__graph *graph, tarn__tensor *states, const tarn__task_weights *weights) {
  (void)graph;
  (void)weights;
  return states;
}

static tarn__tensor *loss(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__batch *batch = from->batch;
  graph->label = "output";
  tarn__tensor *ids = tarn__graph_input(graph, batch->predictions, batch->targets, "classes");
  return tarn__output_loss(graph, from->states, from->weights->output_table, from->weights->output_bias, ids, 0.0,
                           from->grad_scale);
}

// Every token has a class, which is made where batches are.
static int64_t count_classes(void *user, int64_t pair, uint64_t seed, int64_t epoch) {
  (void)seed;
  (void)epoch;
  return tarn__shard_target_length(user, pair);
}

static void put_classes(void *user, tarn__batch *batch, const tarn__batch_room *room, uint64_t seed, int64_t epoch) {
  (void)user;
  (void)seed;
  (void)epoch;
  for (int64_t i = 0; i < batch->target.rows; i++) room->targets[i] = batch->target.ids[i] % 2;
  batch->predictions = batch->target.rows;
  batch->targets = room->targets;
}

static tarn_status form_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                                const tarn_vocab *target) {
  (void)config;
  (void)target;
  options->rows = TARN__ROWS_WHOLE;
  options->finish = (tarn__batch_finish){.user = (void *)(uintptr_t)shard, .count = count_classes, .run = put_classes};
  return TARN_STATUS_OK;
}

static bool diverged(char is[TARN__TASK_TEXT], double value, int64_t words) {
  (void)words;
  snprintf(is, TARN__TASK_TEXT, "%.3g, and lost,", value);
  return value > LOST;
}

static tarn_status count(tarn__task_tally *tally, const tarn_config *config, const tarn__shard *shard,
                         const tarn_vocab *target) {
  (void)config;
  (void)target;
  counted_sets++;
  tally->characters = shard->target_tokens;
  return TARN_STATUS_OK;
}

static const tarn__task parity = {
    .name = "parity",
    .model = "a model of parity",
    .models = "models of parity",
    .task = TARN__LEARNS_MASKED_LANGUAGE_MODEL,
    .architecture = TARN_ARCHITECTURE_ENCODER,
    .stack_count = 1,
    .stacks = {{.id = TARN__STACK_ENCODER, .side = TARN__SIDE_TARGET}},
    .other_stacks = "parity has an encoder",
    .embeddings = 1u << TARN_EMBEDDINGS_DECODER,
    .keeps = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_WORDS,
    .declare_tables = declare_tables,
    .declare_output = declare_output,
    .output_input = output_input,
    .loss = loss,
    .batches = form_batches,
    .watched = TARN__METRIC_LOSS,
    .diverged = diverged,
    .count = count,
    .resolve = resolve,
};

// In place of the program's own registry.
static const tarn__task *const parities[] = {&parity, NULL};
const tarn__task *const *const tarn__task_table[] = {tarn__tasks_translation, tarn__tasks_language, parities};
const int tarn__task_count = sizeof tarn__task_table / sizeof *tarn__task_table;

static const char description[] =
    "model: { d_model: 16, dropout: 0.1 }\n"
    "encoder: { layers: L R L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "data: { vocab: vocab, train: text, valid: valid_text }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 400, log_every: 2, save_every: 5, keep_last: 2,\n"
    "         average: 2, threads: 2 }\n"
    "valid: { every: 4 }\n";

static int open_all(void **state) { return tiny_open_text(state, description); }

static tarn_config *parsed(const char *override) {
  tarn_config *config;
  if (tarn_config_parse(&config, "m.yaml", description, strlen(description), &override, override ? 1 : 0) !=
      TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  return config;
}

static void a_description_is_that_of_the_entry(void **state) {
  (void)state;
  tarn_config *config = parsed(NULL), *again;
  char *text;
  assert_int_equal(config->model.architecture, TARN_ARCHITECTURE_ENCODER);
  assert_int_equal(config->valid.metric, TARN__METRIC_PPL);
  assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
  assert_non_null(strstr(text, "\nencoder:"));
  assert_null(strstr(text, "\ndecoder:"));
  assert_int_equal(tarn_config_parse(&again, "w.yaml", text, strlen(text), NULL, 0), TARN_STATUS_OK);
  tarn_config_close(&again);
  tarn_config_text_close(&text);
  tarn_config_close(&config);
  const char *override = "valid.metric=nll";
  assert_int_equal(tarn_config_parse(&config, "m.yaml", description, strlen(description), &override, 1),
                   TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "a model of parity has no nll; its measures are loss, ppl"));
  override = "train.freeze=[{layers: encoder.layer9, at: 5}]";
  assert_int_equal(tarn_config_parse(&config, "m.yaml", description, strlen(description), &override, 1),
                   TARN_STATUS_USAGE);
}

static void a_model_has_what_the_entry_declares(void **state) {
  (void)state;
  tarn_config *config = parsed(NULL);
  tarn__model *model;
  assert_int_equal(tarn__model_open(&model, config, TINY_VOCAB, TINY_VOCAB, TARN__F32, true), TARN_STATUS_OK);
  assert_null(model->weights.source_table);
  assert_int_equal(model->weights.output_table->rows, 2);
  assert_string_equal(model->params[0]->name, "embeddings.letters.weight");
  assert_int_equal(model->encoder.count, 3);
  assert_int_equal(model->decoder.count, 0);
  assert_int_equal(tarn__model_bottom(model), 0);
  for (size_t i = 0; i < model->param_count; i++) assert_null(strstr(model->params[i]->name, "cross"));
  tarn__model_close(&model);
  tarn_config_close(&config);
}

static void it_learns_and_is_scored(void **state) {
  (void)state;
  counted_sets = 0;
  run_through("parity", NULL, 0);
  assert_int_equal(counted_sets, 1);
  run_in_pieces("parity_pieces", 3, NULL, 0);
  assert_same_run("parity", "parity_pieces");
  static const char *const longer[] = {"train.max_updates=200", "valid.every=100"};
  run_through("parity_long", longer, 2);
  json_t *log = read_log("parity_long");
  double ppl = 0;
  for (size_t i = 0; i < json_array_size(log); i++) {
    const json_t *record = json_array_get(log, i), *loss_of = json_object_get(record, "valid_loss");
    assert_null(json_object_get(record, "valid_nll"));
    assert_null(json_object_get(record, "nll"));
    if (loss_of) ppl = exp(json_real_value(loss_of));
  }
  assert_true(ppl > 1 && ppl < 1.2);  // 2: it knows nothing
  json_decref(log);
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "parity_long", TARN__F32), TARN_STATUS_OK);
  tarn__checkpoint_close(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_description_is_that_of_the_entry),
      cmocka_unit_test(a_model_has_what_the_entry_declares),
      cmocka_unit_test(it_learns_and_is_scored),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
