// Factorised embeddings in every way of sharing of every task, and sets of weights that encoder and decoder share:
// which parameters there are, what cannot be asked for, round trips of descriptions and checkpoints.
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
#include "tiny_run.h"

#define KINDS                            \
  "kinds:\n  L: { heads: 2, ffn: 16 }\n" \
  "  R: { heads: 2, ffn: 16, frozen: yes, dropout: 0 }\n"
#include "beside_layers.h"

static const tarn__param *find(const tarn__model *model, const char *name) {
  for (size_t i = 0; i < model->param_count; i++)
    if (strcmp(model->params[i]->name, name) == 0) return model->params[i];
  return NULL;
}

static void every_sharing_of_every_task(void **state) {
  (void)state;
  static const struct {
    const char *model, *stacks, *params;
  } cases[] = {
      {"embeddings: none", ENCODER DECODER,
       "source.weight 20x4 1, target.weight 20x4 1, output.weight 20x8 1, source.projection.weight 8x4 1, "
       "source.projection.bias 1x8 1, target.projection.weight 8x4 1, target.projection.bias 1x8 1"},
      {"embeddings: none, output_rank: 3, frozen_embeddings: encoder", ENCODER DECODER,
       "source.weight 20x4f 1, target.weight 20x4 1, output.weight 20x3 1, source.projection.weight 8x4f 1, "
       "source.projection.bias 1x8f 1, target.projection.weight 8x4 1, target.projection.bias 1x8 1, output.in.weight "
       "3x8 "
       "1"},
      {"embeddings: decoder", ENCODER DECODER,
       "source.weight 20x4 1, target.weight 20x4 2, source.projection.weight 8x4 1, source.projection.bias 1x8 1, "
       "target.projection.weight 8x4 2, target.projection.bias 1x8 1"},
      {"embeddings: encoder_decoder, frozen_embeddings: both", ENCODER DECODER,
       "source.weight 20x4f 2, output.weight 20x8 1, source.projection.weight 8x4f 2, source.projection.bias 1x8f 2"},
      {"embeddings: encoder_output", ENCODER DECODER,
       "source.weight 20x4 2, target.weight 20x4 1, source.projection.weight 8x4 2, source.projection.bias 1x8 1, "
       "target.projection.weight 8x4 1, target.projection.bias 1x8 1"},
      {"embeddings: all, positions: learned, max_length: 6", ENCODER DECODER,
       "weight 20x4 3, source_positions.weight 6x4 1, target_positions.weight 6x4 1, projection.weight 8x4 3, "
       "projection.bias 1x8 2"},
      {"embeddings: all, embedding_norm: yes", ENCODER DECODER,
       "weight 20x4 3, source_norm.gain 1x4 1, source_norm.bias 1x4 1, target_norm.gain 1x4 1, target_norm.bias 1x4 1, "
       "projection.weight 8x4 3, projection.bias 1x8 2"},
      {"embeddings: decoder, output_bias: yes", DECODER,
       "weight 20x4 2, projection.weight 8x4 2, projection.bias 1x8 1, output.bias 1x20 1"},
      {"embeddings: none, frozen_embeddings: decoder", DECODER,
       "input.weight 20x4f 1, output.weight 20x8 1, input.projection.weight 8x4f 1, input.projection.bias 1x8f 1"},
      {"segments: 2, embedding_norm: yes", ENCODER,
       "weight 20x4 2, segments.weight 2x4 1, norm.gain 1x4 1, norm.bias 1x4 1, projection.weight 8x4 1, "
       "projection.bias 1x8 1, output.dense.weight 4x8 1, output.dense.bias 1x4 1, output.norm.gain 1x4 1, "
       "output.norm.bias 1x4 1, output.bias 1x20 1"},
      {"embeddings: none", ENCODER,
       "input.weight 20x4 1, output.weight 20x8 1, input.projection.weight 8x4 1, input.projection.bias 1x8 1, "
       "output.dense.weight 8x8 1, output.dense.bias 1x8 1, output.norm.gain 1x8 1, output.norm.bias 1x8 1, "
       "output.bias "
       "1x20 1"},
      {"task: regression", ENCODER,
       "weight 20x4 1, projection.weight 8x4 1, projection.bias 1x8 1, output.weight 1x8 1, output.bias 1x1 1"},
      {"task: regression", DECODER,
       "weight 20x4 1, projection.weight 8x4 1, projection.bias 1x8 1, output.weight 1x8 1, output.bias 1x1 1"},
      {"embeddings: all, output_mixtures: 3", ENCODER DECODER,
       "weight 20x4 3, projection.weight 8x4 2, projection.bias 1x8 2, output.latent.weight 12x8 1, output.latent.bias "
       "1x12 1, output.prior.weight 3x8 1"},
      {"embeddings: none, output_mixtures: 2, output_rank: 3, output_bias: yes", DECODER,
       "input.weight 20x4 1, output.weight 20x3 1, input.projection.weight 8x4 1, input.projection.bias 1x8 1, "
       "output.latent.weight 6x8 1, output.latent.bias 1x6 1, output.prior.weight 2x8 1, output.bias 1x20 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char model_keys[160];
    snprintf(model_keys, sizeof model_keys, "embedding_size: 4, %s", cases[i].model);
    assert_beside(model_keys, cases[i].stacks, cases[i].params);
  }
}

static void what_cannot_be(void **state) {
  (void)state;
  static const char both[] = "encoder: { layers: L1 R1 }\ndecoder: { layers: R1 L1 }\n";
  refused("embedding_size: 8", ENCODER DECODER,
          "m.yaml:1: model.embedding_size: must be even and below model.d_model (8)");
  refused("embedding_size: 3", DECODER, "m.yaml:1: model.embedding_size: must be even");
  refused("embedding_size: -2", DECODER, "m.yaml:1: model.embedding_size: ");
  refused("embedding_siz: 4", DECODER, "did you mean \"embedding_size\"?");
  refused("output_mixtures: 1", DECODER, "m.yaml:1: model.output_mixtures: a mixture has 2 softmaxes or more");
  refused("output_mixtures: 65", DECODER, "m.yaml:1: model.output_mixtures: ");
  refused("output_mixtures: 4", ENCODER,
          "m.yaml:1: model.output_mixtures: a masked language model has a head of its own");
  refused("output_mixtures: 4, task: regression", DECODER, "model.output_mixtures: ");
  refused("share_stacks: yes", DECODER, "m.yaml:1: model.share_stacks: there is one stack");
  refused("share_stacks: yes", ENCODER DECODER,
          "m.yaml:1: model.share_stacks: encoder and decoder name no set in common");
  refused("share_stacks: yes }\ntrain: { autofreeze: 5", both, "m.yaml:2: train.autofreeze: freezes layers");
  refused("share_stacks: yes", "encoder: { layers: L1 R1, layers_to_keep: [1] }\ndecoder: { layers: R1 }\n",
          "m.yaml:2: encoder.layers_to_keep: leaves out R1");
}

// What is written is read back as it was, and a description without the keys is written without them.
static void descriptions(void **state) {
  (void)state;
  static const char both[] = "encoder: { layers: L1 R1 }\ndecoder: { layers: R1 L1 }\n";
  char *text[3];
  tarn_config *config = parse("embedding_size: 4, share_stacks: yes, output_mixtures: 5", both), *again;
  assert_true(config->model.embedding_std == 0.5);  // 1 / sqrt(4)
  assert_int_equal(tarn_config_write(config, &text[0]), TARN_STATUS_OK);
  assert_int_equal(tarn_config_parse(&again, "again", text[0], strlen(text[0]), NULL, 0), TARN_STATUS_OK);
  assert_int_equal(again->model.embedding_size, 4);
  assert_true(again->model.share_stacks);
  assert_int_equal(again->model.output_mixtures, 5);
  assert_int_equal(tarn_config_write(again, &text[1]), TARN_STATUS_OK);
  assert_string_equal(text[0], text[1]);
  tarn_config_close(&again);
  tarn_config_close(&config);
  config = parse("norm: pre", both);
  assert_int_equal(tarn__config_write_model(config, &text[2]), TARN_STATUS_OK);
  assert_null(strstr(text[2], "embedding_size"));
  assert_null(strstr(text[2], "share_stacks"));
  assert_null(strstr(text[2], "output_mixtures"));
  tarn_config_close(&config);
  for (int i = 0; i < 3; i++) tarn_config_text_close(&text[i]);
}

static void shared_sets(void **state) {
  (void)state;
  static const char stacks[] = "encoder: { layers: L1 R1 L L1 }\ndecoder: { layers: R1 L1 R1 L2 }\n";
  for (int shared = 0; shared < 2; shared++) {
    tarn_config *config = parse(shared ? "share_stacks: yes" : "share_stacks: no", stacks);
    tarn__model *model = open_model(config);
    const tarn__param *ffn = find(model, "encoder.L1.ffn.in.weight"), *frozen = find(model, "encoder.R1.ffn.in.weight");
    assert_int_equal(ffn->uses, shared ? 3 : 2);
    assert_int_equal(frozen->uses, shared ? 3 : 1);
    assert_false(frozen->trained);
    assert_true((find(model, "decoder.L1.ffn.in.weight") == NULL) == (shared == 1));
    assert_true((find(model, "decoder.R1.self_attn.qkv.bias") == NULL) == (shared == 1));
    assert_int_equal(find(model, "decoder.R1.cross_attn.kv.weight")->uses, 2);
    assert_int_equal(find(model, "decoder.L1.cross_attn.norm.gain")->uses, 1);
    assert_null(find(model, "encoder.L1.cross_attn.q.weight"));
    assert_non_null(find(model, "decoder.L2.ffn.in.weight"));
    assert_ptr_not_equal(model->decoder.layers[1].weights, model->encoder.layers[0].weights);
    tarn__model_close(&model);
    tarn_config_close(&config);
  }
}

// A run with all of it: its checkpoint is read, and holds the frozen shared set as a recipe.
static void a_run(void **state) {
  (void)state;
  static const char path[] = "run/" TARN__CHECKPOINT_LAST;
  const char *overrides[] = {"model.embedding_size=6", "model.share_stacks=yes", "decoder.layers=R1 L1 L",
                             "train.average=0", "model.output_mixtures=3"};
  if (tiny_train("tiny.yaml", "run", overrides, 5, NULL, NULL, NULL) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  tarn__checkpoint_file file;
  bool cross = false, projection = false;
  assert_int_equal(tarn__checkpoint_file_open(&file, path), TARN_STATUS_OK);
  for (size_t i = 0; i < file.tensors.count; i++) {
    const char *name = file.tensors.tensors[i].name;
    assert_null(strstr(name, "R1.ffn"));
    assert_null(strstr(name, "decoder.L1.ffn"));
    cross |= strstr(name, "decoder.L1.cross_attn.q.weight") != NULL;
    projection |= strstr(name, "embeddings.projection.bias") != NULL;
  }
  assert_true(cross && projection);
  tarn__checkpoint_file_close(&file);
  tarn__checkpoint *checkpoint;
  if (tarn__checkpoint_open(&checkpoint, path, TARN__F32) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_int_equal(find(checkpoint->model, "embeddings.weight")->cols, 6);
  tarn__checkpoint_close(&checkpoint);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_sharing_of_every_task), cmocka_unit_test(what_cannot_be),
                                     cmocka_unit_test(descriptions), cmocka_unit_test(shared_sets),
                                     cmocka_unit_test(a_run)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
