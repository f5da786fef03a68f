// Vocabularies in bands: which parameters there are in every way of sharing of every task, what cannot be asked for,
// round trips of descriptions and checkpoints, what training costs, and the warning of bands that are not by frequency.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "config/config_write.h"
#include "model/model.h"
#include "model/plan.h"
#include "store/checkpoint.h"
#include "tarn/process.h"
#include "tiny_run.h"

#define KINDS "kinds:\n  L: { heads: 2, ffn: 16 }\n"
#include "beside_layers.h"

#define INPUT "adaptive_input_cutoff: [6, 14], adaptive_input_factor: 2"
#define OUTPUT "adaptive_softmax_cutoff: [6, 14], adaptive_softmax_factor: 2"

static void every_sharing_of_every_task(void **state) {
  (void)state;
  static const struct {
    const char *model, *stacks, *params;
  } cases[] = {
      {"embeddings: none, frozen_embeddings: decoder, " INPUT, DECODER,
       "input.band1.weight 6x8f 1, input.band1.projection.weight 8x8f 1, input.band2.weight 8x4f 1, "
       "input.band2.projection.weight 8x4f 1, input.band3.weight 6x2f 1, input.band3.projection.weight 8x2f 1, "
       "output.weight 20x8 1"},
      {"embeddings: none, embedding_size: 4, output_bias: yes, " OUTPUT, DECODER,
       "input.weight 20x4 1, output.band1.weight 8x8 1, output.band2.weight 8x4 1, output.band3.weight 6x2 1, "
       "input.projection.weight 8x4 1, input.projection.bias 1x8 1, output.band1.bias 1x8 1, "
       "output.band2.projection.weight 4x8 1, output.band2.bias 1x8 1, output.band3.projection.weight 2x8 1, "
       "output.band3.bias 1x6 1"},
      {"embeddings: decoder, " INPUT ", " OUTPUT, DECODER,
       "band1.weight 8x8 2, band1.projection.weight 8x8 1, band2.weight 8x4 2, band2.projection.weight 8x4 1, "
       "band3.weight 6x2 2, band3.projection.weight 8x2 1, output.band2.projection.weight 4x8 1, "
       "output.band3.projection.weight 2x8 1"},
      {"embeddings: all, tie_adaptive_proj: yes, " INPUT ", " OUTPUT, ENCODER DECODER,
       "band1.weight 8x8 3, band1.projection.weight 8x8 2, band2.weight 8x4 3, band2.projection.weight 8x4 3, "
       "band3.weight 6x2 3, band3.projection.weight 8x2 3"},
      {"embeddings: encoder_decoder, frozen_embeddings: both, adaptive_input_cutoff: [6], " OUTPUT, ENCODER DECODER,
       "source.band1.weight 6x8f 2, source.band1.projection.weight 8x8f 2, source.band2.weight 14x2f 2, "
       "source.band2.projection.weight 8x2f 2, output.band1.weight 8x8 1, output.band2.weight 8x4 1, "
       "output.band3.weight 6x2 1, output.band2.projection.weight 4x8 1, output.band3.projection.weight 2x8 1"},
      {"embeddings: encoder_output, adaptive_input_cutoff: [6], adaptive_softmax_cutoff: [6]", ENCODER DECODER,
       "source.band1.weight 7x8 2, source.band1.projection.weight 8x8 1, source.band2.weight 14x2 2, "
       "source.band2.projection.weight 8x2 1, target.band1.weight 6x8 1, target.band1.projection.weight 8x8 1, "
       "target.band2.weight 14x2 1, target.band2.projection.weight 8x2 1, output.band2.projection.weight 2x8 1"},
      {"adaptive_input_cutoff: [6], adaptive_softmax_cutoff: [6]", ENCODER,
       "band1.weight 7x8 2, band1.projection.weight 8x8 1, band2.weight 14x2 2, band2.projection.weight 8x2 1, "
       "output.dense.weight 8x8 1, output.dense.bias 1x8 1, output.norm.gain 1x8 1, output.norm.bias 1x8 1, "
       "output.band1.bias 1x7 1, output.band2.projection.weight 2x8 1, output.band2.bias 1x14 1"},
      {"task: regression, adaptive_input_cutoff: [6], adaptive_softmax_cutoff: [6]", DECODER,
       "band1.weight 7x8 1, band1.projection.weight 8x8 1, band2.weight 14x2 1, band2.projection.weight 8x2 1, "
       "output.weight 1x8 1, output.bias 1x1 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_beside(cases[i].model, cases[i].stacks, cases[i].params);
}

static void what_cannot_be(void **state) {
  (void)state;
  static const char none[] = "embeddings: none, ";
  static const struct {
    const char *model, *stacks, *message;
  } cases[] = {
      {"adaptive_input_cutoff: [9, 6]", DECODER,
       "m.yaml:1: model.adaptive_input_cutoff: must rise, and 6 comes after 9"},
      {"adaptive_softmax_cutoff: [9, 9]", DECODER, "model.adaptive_softmax_cutoff: 9 is given twice"},
      {"adaptive_softmax_cutoff: [0]", DECODER, "m.yaml:1: model.adaptive_softmax_cutoff: "},
      {"adaptive_softmax_cutoff: 6", DECODER, "m.yaml:1: model.adaptive_softmax_cutoff: expected a list"},
      {"adaptive_input_cutoff: [1, 2, 3, 4, 5, 6, 7, 8]", DECODER, "there are 8 cut-offs, and at most 7"},
      {"adaptive_softmax_cutoff: [4, 6]", DECODER,
       "m.yaml:1: model.adaptive_softmax_factor: with 4 the last of 3 bands"},
      {"adaptive_input_factor: 2", DECODER, "m.yaml:1: model.adaptive_input_factor: changes nothing without cut-offs"},
      {"adaptive_softmax_dropout: 0.1", DECODER, "m.yaml:1: model.adaptive_softmax_dropout: changes nothing"},
      {"embeddings: none, adaptive_softmax_cutof: [4]", DECODER, "did you mean \"adaptive_softmax_cutoff\"?"},
      {OUTPUT, DECODER, "m.yaml:1: model.adaptive_softmax_cutoff: with this model.embeddings the output shares"},
      {INPUT, DECODER, "m.yaml:1: model.adaptive_input_cutoff: with this model.embeddings the output shares"},
      {OUTPUT ", adaptive_input_cutoff: [6, 15], adaptive_input_factor: 2", DECODER, "the same cut-offs and factor"},
      {OUTPUT ", adaptive_input_cutoff: [6, 14], adaptive_input_factor: 2.5", DECODER, "the same cut-offs and factor"},
      {"embeddings: none, tie_adaptive_proj: yes, " OUTPUT ", " INPUT, DECODER, "m.yaml:1: model.tie_adaptive_proj: "},
      {"embedding_size: 4, " INPUT ", " OUTPUT, DECODER, "m.yaml:1: model.embedding_size: "},
      {"embeddings: none, output_rank: 4, " OUTPUT, DECODER,
       "m.yaml:1: model.output_rank: with model.adaptive_softmax"},
      {"embeddings: none, output_mixtures: 4, " OUTPUT, DECODER,
       "m.yaml:1: model.output_mixtures: with model.adaptive"},
      {"embeddings: none, " OUTPUT " }\ntrain: { label_smoothing: 0.1", DECODER,
       "m.yaml:2: train.label_smoothing: with model.adaptive_softmax_cutoff there is no softmax over all words"},
      {"task: regression, embeddings: none, " OUTPUT, DECODER, "model.adaptive_softmax_cutoff: no words are predicted"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) refused(cases[i].model, cases[i].stacks, cases[i].message);
  char text[80];
  tarn__model *model;
  snprintf(text, sizeof text, "%sadaptive_softmax_cutoff: [6, 20], adaptive_softmax_factor: 2", none);
  tarn_config *config = parse(text, DECODER);
  assert_int_equal(tarn__model_open(&model, config, WORDS, WORDS, TARN__F32, true), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(),
                      "model.adaptive_softmax_cutoff: 20 is not below the vocabulary, which has 20 tokens");
  tarn_config_close(&config);
}

// What is written is read back as it was, and a description without the keys is written without them.
static void descriptions(void **state) {
  (void)state;
  char *text[3];
  tarn_config *config = parse(INPUT ", adaptive_softmax_dropout: 0.2, tie_adaptive_proj: yes, " OUTPUT, DECODER),
              *again;
  assert_true(config->train.label_smoothing == 0.0);
  assert_int_equal(tarn_config_write(config, &text[0]), TARN_STATUS_OK);
  assert_int_equal(tarn_config_parse(&again, "again", text[0], strlen(text[0]), NULL, 0), TARN_STATUS_OK);
  assert_int_equal(again->model.adaptive_input_cutoffs, 2);
  assert_int_equal(again->model.adaptive_softmax_cutoff[1], 14);
  assert_true(again->model.adaptive_softmax_factor == 2.0 && again->model.adaptive_softmax_dropout == 0.2);
  assert_true(again->model.tie_adaptive_proj);
  assert_int_equal(tarn_config_write(again, &text[1]), TARN_STATUS_OK);
  assert_string_equal(text[0], text[1]);
  tarn_config_close(&again);
  tarn_config_close(&config);
  config = parse("norm: pre", DECODER);
  assert_int_equal(tarn__config_write_model(config, &text[2]), TARN_STATUS_OK);
  assert_null(strstr(text[2], "adaptive"));
  tarn_config_close(&config);
  for (int i = 0; i < 3; i++) tarn_config_text_close(&text[i]);
}

// A hand count of the output's operations: the head reads all rows, a tail those of Zipf's law.
static void operations(void **state) {
  (void)state;
  tarn_config *config = parse("embeddings: none, " OUTPUT, DECODER);
  tarn__model *model = open_model(config);
  const tarn__plan_batch batch = {.target_rows = 1000, .target_length = 10, .longest_target = 10};
  tarn_plan plan;
  assert_int_equal(tarn__plan_model(&plan, model, &batch, 1), TARN_STATUS_OK);
  const tarn_plan_part *part = &plan.parts[plan.part_count - 1];
  for (size_t i = 0; i < plan.part_count; i++)
    if (strcmp(plan.parts[i].label, "output") == 0) part = &plan.parts[i];
  // log(2 * 6 + 1), log(2 * 14 + 1) and log(2 * 20 + 1): 691, 216 and 93 of 1,000 rows.
  const double rows[] = {1000, 216, 93}, words[] = {8, 8, 6}, widths[] = {8, 4, 2};
  double forward = 0;
  for (int b = 0; b < 3; b++) forward += 2 * rows[b] * words[b] * widths[b] + (b > 0) * 2 * rows[b] * widths[b] * D;
  assert_true(fabs(part->forward_flops - forward / 1000) < 1e-9);
  assert_true(fabs(part->backward_flops - 2 * forward / 1000) < 1e-9);
  assert_int_equal(part->trained_parameters, 8 * 8 + 8 * 4 + 6 * 2 + 4 * 8 + 2 * 8);
  tarn_plan_close(&plan);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

static int warnings;

static void on_log(void *user, tarn_log_level level, const char *text) {
  (void)user;
  warnings += level == TARN_LOG_WARNING && strstr(text, "are more frequent in the") != NULL;
}

// A run: its checkpoint is read, and has the bands. Ids of the data are equally frequent but for the end of sentence,
// 2, so that a first band of two words is not that of the frequent ones.
static void a_run(void **state) {
  (void)state;
  static const char path[] = "run/" TARN__CHECKPOINT_LAST;
  const char *overrides[] = {"model.adaptive_input_cutoff=[20, 45]", "model.adaptive_softmax_cutoff=[20, 45]",
                             "train.average=0", "model.tie_adaptive_proj=yes"};
  tarn_log_set(on_log, NULL);
  if (tiny_train("tiny.yaml", "run", overrides, 4, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  const char *rare[] = {"model.adaptive_input_cutoff=[2]", "model.embeddings=none", "train.max_updates=1",
                        "train.average=0"};
  const int before = warnings;
  if (tiny_train("tiny.yaml", "rare", rare, 4, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  tarn_log_set(NULL, NULL);
  assert_int_equal(warnings, before + 2);
  tarn__checkpoint *checkpoint;
  if (tarn__checkpoint_open(&checkpoint, path, TARN__F32) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  const tarn__bands *bands = &checkpoint->model->weights.output_bands;
  assert_int_equal(bands->count, 3);
  assert_int_equal(bands->table[0]->rows, 22);
  assert_int_equal(bands->first[3], TINY_VOCAB);
  assert_true(bands->transposed && bands->projection[2] == checkpoint->model->weights.source_bands.projection[2]);
  tarn__checkpoint_close(&checkpoint);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_sharing_of_every_task), cmocka_unit_test(what_cannot_be),
                                     cmocka_unit_test(descriptions), cmocka_unit_test(operations),
                                     cmocka_unit_test(a_run)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
