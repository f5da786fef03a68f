// Masked language models: an encoder alone learns from masks, resumes to the bit, has the same bits on memory that the
// host cannot touch, and is kept apart from models that translate or go on with a text.
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

#include "base/memory.h"
#include "same_run.h"
#include "sample_step.h"
#include "score/scorer.h"
#include "shadow_device.h"
#include "store/checkpoint.h"
#include "tarn/translate.h"
#include "tiny_run.h"

static const char description[] =
    "model: { d_model: 16, dropout: 0.1, positions: learned, max_length: 64, segments: 2, embedding_norm: yes }\n"
    "encoder: { layers: L R L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: { width: 32, activation: gelu } }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "data: { vocab: masks, train: text, valid: valid_text }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 400, label_smoothing: 0, log_every: 2, save_every: 5,\n"
    "         keep_last: 2, average: 2, threads: 2 }\n"
    "valid: { every: 4 }\n";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  tarn_vocab *vocab = make_masked_vocab(TINY_VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  sandbox_write("masks", bytes, size);
  make_text_shard_of("text", 120, vocab, 5);
  make_text_shard_of("valid_text", 12, vocab, 6);
  // Sentences in which each word follows from its neighbours.
  tarn__shard_writer *writer;
  if (tarn__shard_writer_open(&writer, "easy", NULL, vocab) != TARN_STATUS_OK) return -1;
  for (int32_t i = 0; i < 300; i++) {
    int32_t ids[12];
    for (int32_t k = 0; k < 12; k++) ids[k] = 6 + (i * 7 + k) % (TINY_VOCAB - 6);
    if (tarn__shard_writer_put(writer, NULL, 0, ids, 12) != TARN_STATUS_OK) return -1;
  }
  if (tarn__shard_writer_commit(&writer) != TARN_STATUS_OK) return -1;
  tarn_vocab_close(&vocab);
  sandbox_write("tiny.yaml", description, strlen(description));
  return 0;
}

static void a_model_has_embeddings_layers_and_a_head(void **state) {
  (void)state;
  static const char *const names[] = {"embeddings.weight",
                                      "embeddings.positions.weight",
                                      "embeddings.segments.weight",
                                      "embeddings.norm.gain",
                                      "embeddings.norm.bias",
                                      "output.dense.weight",
                                      "output.dense.bias",
                                      "output.norm.gain",
                                      "output.norm.bias",
                                      "output.bias",
                                      "encoder.layer1.self_attn.qkv.weight"};
  tarn_config *config;
  tarn__model *model;
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", NULL, 0), TARN_STATUS_OK);
  assert_int_equal(tarn__model_open(&model, config, TINY_VOCAB, TINY_VOCAB, TARN__F32, true), TARN_STATUS_OK);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(model->params[i]->name, names[i]) != 0)
      fail_msg("parameter %zu is %s, expected %s", i, model->params[i]->name, names[i]);
  assert_ptr_equal(model->weights.output_table, model->weights.target_table);
  assert_int_equal(model->decoder.count, 0);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

static void it_resumes_to_the_bit(void **state) {
  (void)state;
  static const char *const variants[][3] = {
      {"model.segments=0", "model.embedding_norm=no", "masking.whole_words=yes"},
      {"train.precision=bf16", "train.accumulate=2", "train.clip_norm=1"},
      {"model.embeddings=none", "model.frozen_embeddings=encoder", "model.positions=rotary"},
      {"model.adaptive_input_cutoff=[20, 40]", "model.adaptive_softmax_cutoff=[20, 40]", "train.clip_norm=1"}};
  run_through("whole", NULL, 0);
  run_in_pieces("pieces", 3, NULL, 0);
  assert_same_run("whole", "pieces");
  const size_t each = (size_t)sample_step(2);
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i += each) check_stops(i, 5, variants[i], 3);
}

static void it_is_the_same_on_a_device(void **state) {
  (void)state;
  run_through("here", NULL, 0);
  tarn__device_use(&shadow_device);
  run_in_pieces("apart", 5, NULL, 0);
  tarn__device_use(NULL);
  assert_true(shadow.most > 0);
  assert_int_equal(shadow.now, 0);
  assert_same_run("here", "apart");
}

// The last value of a key in a run's log.
static double last_of(const char *run, const char *key) {
  json_t *log = read_log(run);
  double value = NAN;
  for (size_t i = 0; i < json_array_size(log); i++) {
    const json_t *found = json_object_get(json_array_get(log, i), key);
    if (found) value = json_number_value(found);
  }
  json_decref(log);
  return value;
}

// Words in bands: the likeliest of each row is found among those of all bands.
static void it_learns_in_bands(void **state) {
  (void)state;
  static const char *const keys[] = {"data.train=easy",
                                     "data.valid=easy",
                                     "train.max_updates=400",
                                     "train.average=0",
                                     "valid.every=400",
                                     "model.d_model=32",
                                     "model.dropout=0",
                                     "train.warmup=20",
                                     "model.adaptive_input_cutoff=[20, 40]",
                                     "model.adaptive_softmax_cutoff=[20, 40]",
                                     "model.adaptive_input_factor=2",
                                     "model.adaptive_softmax_factor=2"};
  run_through("bands", keys, sizeof keys / sizeof *keys);
  const double accuracy = last_of("bands", "valid_accuracy"), nll = last_of("bands", "valid_nll");
  // Of equal chances: 0.02 and 4.
  if (!(accuracy > 0.4 && accuracy <= 1.0 && nll < 2.0)) fail_msg("accuracy %g, nll %g", accuracy, nll);
}

static void it_learns_and_is_scored(void **state) {
  (void)state;
  static const char *const keys[] = {
      "data.train=easy", "data.valid=easy",  "train.max_updates=400", "train.lr=0.01",   "train.average=0",
      "valid.every=100", "model.d_model=32", "valid.metric=accuracy", "model.dropout=0", "train.warmup=20"};
  run_through("easy_run", keys, sizeof keys / sizeof *keys);
  const double accuracy = last_of("easy_run", "valid_accuracy"), nll = last_of("easy_run", "valid_nll");
  if (!(accuracy > 0.6 && accuracy <= 1.0)) fail_msg("accuracy %g, nll %g", accuracy, nll);
  assert_true(nll < 1.5);  // 4: it knows nothing
  assert_true(fabs(last_of("easy_run", "valid_loss") - nll) < 1e-6);
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "easy_run", TARN__F32), TARN_STATUS_OK);
  assert_int_equal(c->config->model.task, TARN__LEARNS_MASKED_LANGUAGE_MODEL);
  tarn__checkpoint_close(&c);
  // Its weights begin another training.
  const char *from[] = {"train.init_from=easy_run", "model.d_model=32", "train.max_updates=1", "valid.at_start=yes",
                        "data.valid=easy"};
  run_through("again", from, sizeof from / sizeof *from);
  assert_true(last_of("again", "valid_nll") < 2.0);
}

static void assert_same_weights(const char *a, const char *b) {
  tarn__checkpoint *x, *y;
  assert_int_equal(tarn__checkpoint_open(&x, a, TARN__F32), TARN_STATUS_OK);
  assert_int_equal(tarn__checkpoint_open(&y, b, TARN__F32), TARN_STATUS_OK);
  for (size_t i = 0; i < x->model->param_count; i++) {
    const tarn__param *p = x->model->params[i], *q = y->model->params[i];
    if (memcmp(p->value, q->value, (size_t)(p->rows * p->cols) * sizeof(float)) != 0)
      fail_msg("%s differs between %s and %s", p->name, a, b);
  }
  tarn__checkpoint_close(&x);
  tarn__checkpoint_close(&y);
}

static void an_update_without_masks_changes_nothing(void **state) {
  (void)state;
  const char *keys[] = {"masking.share=0.000001",
                        "data.valid=",
                        "train.average=0",
                        "train.optimiser=adamw",
                        "train.weight_decay=0.5",
                        "train.precision=fp32",
                        NULL,
                        NULL};
  static const char *const clips[] = {"train.clip_norm=0", "train.clip_norm=1"};  // at once, and at the end
  for (int i = 0; i < 2; i++) {
    const char *one = i ? "end1" : "once1", *more = i ? "end7" : "once7";
    keys[6] = clips[i];
    keys[7] = "train.max_updates=1";
    run_through(one, keys, 8);
    keys[7] = "train.max_updates=7";
    run_through(more, keys, 8);
    assert_same_weights(one, more);
  }
}

static void wrong_use_is_refused(void **state) {
  (void)state;
  make_text_shard("plain_text", 20, TINY_VOCAB, 5);
  const char *unmasked[] = {"data.vocab=vocab", "data.train=plain_text", "data.valid="};
  assert_int_equal(tiny_train("tiny.yaml", "refused", unmasked, 3, NULL, NULL, NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "has no <mask>, which a masked language model reads"));
  const char *few[] = {"masking.share=0.000001"};
  assert_int_equal(tiny_train("tiny.yaml", "few", few, 1, NULL, NULL, NULL), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "no token of which is masked; raise masking.share"));
  run_through("masked", NULL, 0);
  tarn_translator_options options;
  tarn_translator *translator;
  tarn_translator_default(&options);
  assert_int_equal(tarn_translator_open(&translator, "masked", &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "a masked language model does not translate"));
}

// -log p of one token that is hidden, by the graph of training.
static double hidden_loss(tarn__model *model, const int32_t *ids, int64_t length, int64_t token, int32_t mask) {
  int32_t row[32], positions[32], segments[32] = {0}, selected = (int32_t)token;
  const int32_t offsets[] = {0, (int32_t)length}, target = ids[token];
  memcpy(row, ids, (size_t)length * sizeof *ids);
  row[token] = mask;
  tarn__packed_positions(positions, offsets, 1);
  const tarn__packed packed = {1, length, length, row, positions, offsets, segments, NULL};
  const tarn__batch batch = {.target = packed, .predictions = 1, .selected = &selected, .targets = &target};
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, model->device, model->dtype, false, 1);
  tarn__tensor *loss = tarn__model_build_loss(model, &graph, &batch, NULL, 0.0, 1.0, NULL);
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_OK);
  void *workspace;
  assert_int_equal(tarn__alloc(&workspace, TARN__MEMORY_ACTIVATION, graph.workspace_bytes, 1), TARN_STATUS_OK);
  tarn__graph_bind(&graph, workspace);
  assert_int_equal(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}), TARN_STATUS_OK);
  const double nll = ((const double *)loss->data)[1];
  tarn__graph_close(&graph);
  tarn__free(workspace);
  return nll;
}

enum { SCORED = 5, LONGEST = 12, CLS = 3, MASK = 4, END = 2 };

// Sentences of rising length, the first without a token, scored in batches of so many tokens.
static void score_masked(double found[SCORED][LONGEST], tarn__scorer_sentence sentences[SCORED], tarn__model *model,
                         int64_t max_tokens) {
  static int32_t ids[SCORED][LONGEST];
  tarn__scorer_options options;
  tarn__scorer_default(&options);
  options.mask = MASK;
  options.first = CLS;
  options.max_tokens = max_tokens;
  for (int s = 0; s < SCORED; s++) {
    const int64_t length = s == 0 ? 1 : LONGEST - 2 * s;
    for (int64_t i = 0; i < length; i++)
      ids[s][i] = i == length - 1 ? END : (int32_t)(6 + (s * 5 + i * i) % (TINY_VOCAB - 6));
    sentences[s] = (tarn__scorer_sentence){.ids = ids[s], .length = length, .log_probabilities = found[s]};
  }
  tarn__scorer *scorer;
  assert_int_equal(tarn__scorer_open(&scorer, model, END, &options), TARN_STATUS_OK);
  assert_int_equal(tarn__scorer_run(scorer, sentences, SCORED), TARN_STATUS_OK);
  tarn__scorer_close(&scorer);
}

// Pseudo-log-likelihoods are those of sentences with one token hidden at a time, however they are computed together.
static void pseudo_log_likelihoods(void **state) {
  (void)state;
  static double found[2][SCORED][LONGEST];
  tarn__scorer_sentence sentences[SCORED];
  tarn_config *config;
  tarn__model *model;
  assert_int_equal(tarn_config_parse(&config, "test", description, strlen(description), NULL, 0), TARN_STATUS_OK);
  assert_int_equal(tarn__model_open(&model, config, TINY_VOCAB, TINY_VOCAB, TARN__F32, false), TARN_STATUS_OK);
  assert_int_equal(tarn__model_allocate(model), TARN_STATUS_OK);
  assert_int_equal(tarn__model_initialise(model, 3), TARN_STATUS_OK);
  score_masked(found[0], sentences, model, 4096);
  score_masked(found[1], sentences, model, 20);
  assert_memory_equal(found[0], found[1], sizeof found[0]);
  for (int s = 0; s < SCORED; s++) {
    int32_t row[LONGEST + 1] = {CLS};
    const int64_t length = sentences[s].length;
    memcpy(row + 1, sentences[s].ids, (size_t)length * sizeof *row);
    for (int64_t t = 0; t < length - 1; t++)
      assert_true(fabs(found[0][s][t] + hidden_loss(model, row, length + 1, t + 1, MASK)) < 1e-5);
    assert_true(found[0][s][length - 1] == 0.0);
  }
  // A masked model cannot do without its mask.
  tarn__scorer_options options;
  tarn__scorer *scorer;
  tarn__scorer_default(&options);
  assert_int_equal(tarn__scorer_open(&scorer, model, END, &options), TARN_STATUS_INTERNAL);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pseudo_log_likelihoods),
      cmocka_unit_test(a_model_has_embeddings_layers_and_a_head),
      cmocka_unit_test(it_resumes_to_the_bit),
      cmocka_unit_test(it_is_the_same_on_a_device),
      cmocka_unit_test(it_learns_and_is_scored),
      cmocka_unit_test(it_learns_in_bands),
      cmocka_unit_test(an_update_without_masks_changes_nothing),
      cmocka_unit_test(wrong_use_is_refused),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
