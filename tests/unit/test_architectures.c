// Whole architectures (docs/architectures.md) in training: their logs, checkpoints and resumed runs, translation, and
// what is refused. Their numbers are proved in tests/golden, their decoding in test_decode.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "same_run.h"

#define ACT                                                                          \
  "encoder={ layers: \"L1*4\", step_embeddings: yes, act_threshold: 0.9 }",          \
      "decoder={ layers: \"(L1 C1)*3\", act_threshold: 0.8, act_loss_weight: 0.1 }", \
      "kinds.C={ mixer: light_conv, kernel: 3, heads: 2, ffn: 0 }"

// A field of every line of the log that tells of updates: all are within [least, most].
static void assert_field(const char *run, const char *field, double least, double most) {
  json_t *log = read_log(run);
  int lines = 0;
  for (size_t i = 0; i < json_array_size(log); i++) {
    const json_t *record = json_array_get(log, i);
    if (strcmp(json_string_value(json_object_get(record, "kind")), "train") != 0) continue;
    const double value = json_number_value(json_object_get(record, field));
    if (!(value >= least && value <= most)) fail_msg("%s: %s is %g", run, field, value);
    lines++;
  }
  json_decref(log);
  assert_true(lines > 0);
}

// The steps of all updates of a line, which a stop between two lines does not change.
static void steps_are_logged(void **state) {
  (void)state;
  static const char *const act[] = {ACT, "train.log_every=2"}, *const one[] = {ACT, "encoder.act_threshold=1e-9"};
  run_through("act", act, 4);
  assert_field("act", "encoder_steps", 1.0, 4.0);
  assert_field("act", "decoder_steps", 1.0, 3.0);
  run_in_pieces("act-pieces", 3, act, 4);
  assert_same_log("act", "act-pieces");
  assert_same_run("act", "act-pieces");
  run_through("one", one, 4);
  assert_field("one", "encoder_steps", 1.0, 1.0);
}

// With fixed steps and no embeddings of steps a Universal Transformer is a stack of one set.
static void fixed_steps_are_a_shared_stack(void **state) {
  (void)state;
  static const char *const shared[] = {"encoder.layers=L1*4"};
  static const char *const universal[] = {"encoder.layers=L1*4", "encoder.step_embeddings=no",
                                          "encoder.act_threshold=0"};
  run_through("shared", shared, 1);
  run_through("universal", universal, 3);
  assert_same_run("shared", "universal");
}

static void others_are_resumed(void **state) {
  (void)state;
  static const char *const transparent[] = {"decoder={ layers: L L1 L1, transparent_attention: yes }"};
  static const char *const branched[] = {
      "kinds.R={ mixer: branched_attention, heads: 2, branch_ffn: 8, ffn: 0, frozen: yes }",
      "kinds.L={ mixer: branched_attention, heads: 2, branch_ffn: 8, ffn: 0 }"};
  run_through("transparent", transparent, 1);
  run_in_pieces("transparent-pieces", 3, transparent, 1);
  assert_same_run("transparent", "transparent-pieces");
  static const char *const funnel[] = {"encoder={ layers: R1 L1 R1 L1 L, pool_after: [1, 3], upsample_after: 4 }",
                                       "model.positions=rotary", "train.recompute=block"};
  run_through("funnel", funnel, 3);
  run_in_pieces("funnel-pieces", 3, funnel, 3);
  assert_same_run("funnel", "funnel-pieces");
  static const char *const evolved[] = {"kinds.G={ mixer: none, ffn: gated_linear }",
                                        "kinds.B={ mixer: evolved_conv, ffn: 0 }",
                                        "kinds.C={ mixer: evolved_conv, ffn: 0, frozen: yes }",
                                        "kinds.A={ mixer: evolved_attention, heads: 2, ffn: 0 }",
                                        "encoder.layers=G B L C",
                                        "decoder.layers=A C1 L C1",
                                        "kinds.L.head_width=5"};
  run_through("evolved", evolved, 7);
  run_in_pieces("evolved-pieces", 3, evolved, 7);
  assert_same_run("evolved", "evolved-pieces");
  run_through("branched", branched, 2);
  run_in_pieces("branched-pieces", 3, branched, 2);
  assert_same_run("branched", "branched-pieces");
}

#define PREFIX "encoder=", "decoder={ layers: \"L R1 L\" }", "model.task=translation"

// A decoder alone that translates: trained, resumed, and scored by BLEU.
static void a_decoder_translates(void **state) {
  (void)state;
  static const char *const prefix[] = {PREFIX, "train.recompute=cheap"};
  run_through("prefix", prefix, 4);
  run_in_pieces("prefix-pieces", 3, prefix, 4);
  assert_same_run("prefix", "prefix-pieces");
  json_t *log = read_log("prefix");
  bool bleu = false;
  for (size_t i = 0; i < json_array_size(log); i++)
    bleu |= json_object_get(json_array_get(log, i), "valid_bleu") != NULL;
  json_decref(log);
  assert_true(bleu);
}

static void must_refuse(const char *override, const char *more, const char *words) {
  const char *keys[] = {override, more};
  assert_int_not_equal(tiny_train("tiny.yaml", "refused", keys, more ? 2 : 1, NULL, NULL, NULL), TARN_STATUS_OK);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  assert_null(strchr(tarn_error_message(), '\n'));
}

static void must_refuse_prefix(const char *override, const char *words) {
  const char *keys[] = {PREFIX, override};
  assert_int_not_equal(tiny_train("tiny.yaml", "refused", keys, 4, NULL, NULL, NULL), TARN_STATUS_OK);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  must_refuse_prefix("model.positions=alibi", "model.positions: source and target of a decoder alone are one sequence");
  must_refuse_prefix("model.positions=learned", "choose sinusoidal");
  must_refuse_prefix("model.embeddings=none", "model.embeddings: source and target of a decoder alone");
  must_refuse_prefix("kinds.L.mixer=gru", "kinds.L.mixer: of a decoder alone that translates is attention");
  must_refuse("decoder.step_embeddings=yes", "decoder.layers=L*3",
              "decoder.step_embeddings: the layers of decoder.layers are no steps");
  must_refuse("encoder.act_threshold=0.9", "encoder.layers=L1 L2 L1", "encoder.act_threshold: the layers");
  must_refuse("encoder.act_threshold=1", NULL, "encoder.act_threshold");
  must_refuse("encoder.act_loss_weight=0.1", NULL, "encoder.act_loss_weight: weighs the steps");
  must_refuse("encoder.step_embeddings=yes", "model.d_model=15", "even");
  must_refuse("encoder.transparent_attention=yes", NULL, "encoder.transparent_attention: is of the decoder");
  must_refuse("decoder={ layers: G, transparent_attention: yes }", "kinds.G={ mixer: none }",
              "decoder.transparent_attention: no layer of the decoder attends");
  must_refuse("encoder.pool_after=[1, 4]", NULL,
              "encoder.pool_after: layers 1 to 3 of 4, ascending, are expected, not 4");
  must_refuse("encoder.pool_after=[2, 1]", NULL, "ascending");
  must_refuse("encoder.pool_after=[2]", NULL, "a translation model needs a row for every token behind the encoder");
  must_refuse("encoder.upsample_after=3", NULL, "encoder.upsample_after: no rows are pooled");
  must_refuse("encoder.pool_after=[2]", "encoder.upsample_after=2", "encoder.upsample_after: a layer above");
  must_refuse("decoder.pool_after=[1]", NULL, "decoder.pool_after: a pooled row would see the token behind it");
  must_refuse("encoder={ layers: L*3, pool_after: [1], upsample_after: 3 }", "decoder.transparent_attention=yes",
              "encoder.pool_after: decoder.transparent_attention adds up");
  must_refuse("kinds.L={ mixer: evolved_attention, heads: 16 }", NULL,
              "kinds.L.heads: self-attention has twice as many, 32, which do not divide model.d_model 16");
  must_refuse("kinds.L={ mixer: branched_attention, heads: 3 }", NULL,
              "kinds.L.heads: 3 does not divide model.d_model 16");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_logged),          cmocka_unit_test(fixed_steps_are_a_shared_stack),
      cmocka_unit_test(others_are_resumed),        cmocka_unit_test(a_decoder_translates),
      cmocka_unit_test(what_cannot_be_is_refused),
  };
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
