// What depends on the depth of a model: factors and first values of DeepNorm and Fixup, gates, and stacks of hundreds
// of layers, trained for a few updates.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "device/devices.h"
#include "list_optimiser.h"
#include "model/model.h"
#include "parts/depth.h"
#include "parts/table/part_table.h"

enum { VOCAB = 13, ROWS = 8, THREADS = 2 };

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static tarn__model *open_model(const char *text, const char *override, bool training, tarn_config **config) {
  must(tarn_config_parse(config, "test", text, strlen(text), &override, override ? 1 : 0));
  tarn__model *model;
  must(tarn__model_open(&model, *config, VOCAB, VOCAB, TARN__F32, training));
  must(tarn__model_allocate(model));
  must(tarn__model_initialise(model, 3));
  return model;
}

static void close_model(tarn__model *model, tarn_config *config) {
  tarn__model_close(&model);
  tarn_config_close(&config);
}

static const tarn__param *param_of(const tarn__model *model, const char *name) {
  for (size_t i = 0; i < model->param_count; i++)
    if (strcmp(model->params[i]->name, name) == 0) return model->params[i];
  fail_msg("no %s", name);
  return NULL;
}

// By hand from the table of Wang et al. 2022 (figure 2), and Zhang et al. 2019, section 3.1.
static void test_factors(void **state) {
  (void)state;
  const struct {
    int64_t depth, other;
    bool attends;
    double alpha, beta;
  } cases[] = {{1000, 0, false, 6.6874030, 0.1057371},
               {100, 100, false, 3.4157416, 0.2063095},
               {100, 100, true, 4.1617915, 0.1699044},
               {2, 16, false, 1.1455130, 0.6151837}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const tarn__deepnorm found = tarn__deepnorm_of(cases[i].depth, cases[i].other, cases[i].attends);
    assert_true(fabs(found.alpha - cases[i].alpha) < 1e-6);
    assert_true(fabs(found.beta - cases[i].beta) < 1e-6);
  }
  assert_true(fabs(tarn__fixup_factor(64, 2) - 0.125) < 1e-12);
  assert_true(fabs(tarn__fixup_factor(64, 4) - 0.5) < 1e-12);
}

#define DESCRIPTION                                                   \
  "model: { d_model: 8, embeddings: none, norm: post, dropout: 0 }\n" \
  "encoder: { layers: \"L*3\" }\ndecoder: { layers: \"L*2\" }\n"      \
  "kinds: { L: { mixer: attention, heads: 2, ffn: 12, init_gain: 0.8 } }\n"

// First values, as a multiple of those with norm post.
static void check_values(const tarn__model *model, const tarn__model *plain, const char *name, int64_t first,
                         int64_t rows, double factor) {
  const tarn__param *param = param_of(model, name), *other = param_of(plain, name);
  const float *found = param->value, *expected = other->value;
  for (int64_t i = first * param->cols; i < (first + rows) * param->cols; i++)
    if (!(fabs((double)found[i] - factor * (double)expected[i]) <= 1e-6))
      fail_msg("%s at %lld is %g, %g times %g expected", name, (long long)i, (double)found[i], factor,
               (double)expected[i]);
}

static void test_first_values_of_deepnorm(void **state) {
  (void)state;
  static const char *const inits[] = {"xavier", "normal", "orthogonal"};
  for (int k = 0; k < 3; k++) {
    char init[320], deep[384];
    snprintf(init, sizeof init, "%s", DESCRIPTION);
    char *at = strstr(init, "init_gain");
    char rest[64];
    snprintf(rest, sizeof rest, "init: %s, %s", inits[k], at);
    memcpy(at, rest, strlen(rest) + 1);
    snprintf(deep, sizeof deep, "%s", init);
    tarn_config *config, *plain_config;
    tarn__model *plain = open_model(init, NULL, false, &plain_config);
    tarn__model *model = open_model(deep, "kinds.L.norm=deepnorm", false, &config);
    // The paper's gain of queries and keys is 1, fairseq's 1 / sqrt(2); orthogonal ones have 1 in any case.
    const double scores = k == 2 ? 1.0 : sqrt(2.0);
    const double encoder = 0.87 / pow(81.0 * 2.0, 1.0 / 16.0), decoder = pow(24.0, -0.25);
    check_values(model, plain, "encoder.layer2.self_attn.qkv.weight", 0, 16, scores);
    check_values(model, plain, "encoder.layer2.self_attn.qkv.weight", 16, 8, scores * encoder);
    check_values(model, plain, "encoder.layer2.self_attn.out.weight", 0, 8, encoder);
    check_values(model, plain, "encoder.layer3.ffn.in.weight", 0, 12, encoder);
    check_values(model, plain, "encoder.layer3.ffn.out.weight", 0, 8, encoder);
    check_values(model, plain, "decoder.layer1.cross_attn.q.weight", 0, 8, scores);
    check_values(model, plain, "decoder.layer1.cross_attn.kv.weight", 0, 8, scores);
    check_values(model, plain, "decoder.layer1.cross_attn.kv.weight", 8, 8, scores * decoder);
    check_values(model, plain, "decoder.layer1.cross_attn.out.weight", 0, 8, decoder);
    check_values(model, plain, "decoder.layer2.ffn.out.weight", 0, 8, decoder);
    assert_true(fabs(model->decoder.skip - pow(6.0, 0.25)) < 1e-12);
    close_model(model, config);
    close_model(plain, plain_config);
  }
}

// What makes the logits of Synthesizers has the gain of scores where it is trained, and where it is frozen the one that
// checkpoints of older versions have on record.
static void test_deepnorm_of_synthesizers(void **state) {
  (void)state;
  for (int frozen = 0; frozen < 2; frozen++) {
    char text[384];
    snprintf(text, sizeof text,
             "model: { d_model: 8, embeddings: none, norm: post, dropout: 0, max_length: 16 }\n"
             "encoder: { layers: \"L*3\" }\ndecoder: { layers: \"L*2\" }\n"
             "kinds: { L: { mixer: synthesizer_dense, heads: 2, ffn: 12, frozen: %s } }\n",
             frozen ? "yes" : "no");
    tarn_config *config, *plain_config;
    tarn__model *plain = open_model(text, NULL, false, &plain_config);
    tarn__model *model = open_model(text, "kinds.L.norm=deepnorm", false, &config);
    const double factor = frozen ? 0.87 / pow(81.0 * 2.0, 1.0 / 16.0) : 1.0;
    static const char *const names[] = {"encoder.layer2.synthesizer.token.weight",
                                        "encoder.layer2.synthesizer.logits.weight"};
    for (int i = 0; i < 2; i++) check_values(model, plain, names[i], 0, param_of(model, names[i])->rows, factor);
    close_model(model, config);
    close_model(plain, plain_config);
  }
}

// A set that both stacks have gets its first values once, by the encoder's depth; what the decoder alone has by its
// own.
static void test_deepnorm_of_shared_sets(void **state) {
  (void)state;
  static const char *const frozen[] = {"no", "yes"};
  for (int k = 0; k < 2; k++) {
    char texts[2][384];
    for (int deep = 0; deep < 2; deep++)
      snprintf(texts[deep], sizeof texts[deep],
               "model: { d_model: 8, embeddings: none, share_stacks: yes, norm: %s }\nencoder: { layers: \"L1*4\" }\n"
               "decoder: { layers: \"L1 L L1\" }\n"
               "kinds: { L: { mixer: attention, heads: 2, ffn: 12, init: xavier, frozen: %s } }\n",
               deep ? "deepnorm" : "post", frozen[k]);
    tarn_config *config, *plain_config;
    tarn__model *plain = open_model(texts[0], NULL, false, &plain_config);
    tarn__model *model = open_model(texts[1], NULL, false, &config);
    const double encoder = 0.87 / pow(256.0 * 3.0, 1.0 / 16.0), decoder = pow(36.0, -0.25), scores = sqrt(2.0);
    const tarn__param *shared = param_of(model, "encoder.L1.self_attn.qkv.weight");
    assert_int_equal(shared->uses, 6);
    assert_true(fabs(shared->last_gain - encoder) < 1e-12);
    check_values(model, plain, "encoder.L1.self_attn.qkv.weight", 0, 16, scores);
    check_values(model, plain, "encoder.L1.self_attn.qkv.weight", 16, 8, scores * encoder);
    check_values(model, plain, "encoder.L1.self_attn.out.weight", 0, 8, encoder);
    check_values(model, plain, "encoder.L1.ffn.in.weight", 0, 12, encoder);
    check_values(model, plain, "decoder.layer2.self_attn.qkv.weight", 16, 8, scores * decoder);
    close_model(model, config);
    close_model(plain, plain_config);
  }
}

// Three layers of two branches in the encoder and two of three in the decoder: twelve.
static void test_first_values_of_fixup(void **state) {
  (void)state;
  static const char *const frozen[] = {"no", "matrices", "yes"};
  for (int k = 0; k < 3; k++) {
    char text[384], key[64];
    snprintf(text, sizeof text, "%s", DESCRIPTION);
    char *at = strstr(text, "init_gain");
    snprintf(key, sizeof key, "init: xavier, frozen: %s } }\n", frozen[k]);
    memcpy(at, key, strlen(key) + 1);
    tarn_config *config, *plain_config;
    tarn__model *plain = open_model(text, NULL, false, &plain_config);
    tarn__model *model = open_model(text, "kinds.L.norm=fixup", false, &config);
    const double scores = pow(12.0, -1.0 / 6.0), other = pow(12.0, -0.5), last = k == 0 ? 0.0 : other;
    check_values(model, plain, "encoder.layer2.self_attn.qkv.weight", 0, 24, scores);
    check_values(model, plain, "encoder.layer2.self_attn.out.weight", 0, 8, last);
    check_values(model, plain, "encoder.layer2.ffn.in.weight", 0, 12, other);
    check_values(model, plain, "encoder.layer2.ffn.out.weight", 0, 8, last);
    check_values(model, plain, "decoder.layer2.cross_attn.kv.weight", 0, 16, scores);
    // A branch is shut at first, by its last matrix or by its factor, unless it would stay shut.
    const tarn__param *gate = param_of(model, "decoder.layer2.cross_attn.gate");
    assert_true(*(const float *)gate->value == (k == 1 ? 0.0f : 1.0f));
    assert_true(gate->trained == (k < 2));
    assert_true(*(const float *)param_of(model, "decoder.layer2.ffn.shift")->value == 0.0f);
    close_model(model, config);
    close_model(plain, plain_config);
  }
}

// With every mixer: no two parameters of one name, and each branch shut once, by its output or by its factor.
static void test_fixup_of_every_mixer(void **state) {
  (void)state;
  const tarn__part *part;
  for (int k = 0; (part = tarn__part_at(TARN__TABLE_MIXER, k)) != NULL; k++) {
    char text[256];
    snprintf(text, sizeof text,
             "model: { d_model: 8, embeddings: none, max_length: 16 }\nencoder: { layers: B }\ndecoder: { layers: L }\n"
             "kinds: { L: { heads: 2 }, B: { mixer: %s, norm: fixup } }\n",
             part->word);
    tarn_config *config;
    tarn__model *model = open_model(text, NULL, false, &config);
    int gates = 0;
    for (size_t i = 0; i < model->param_count; i++) {
      const char *name = model->params[i]->name, *dot = strrchr(name, '.');
      for (size_t j = 0; j < i; j++)
        if (strcmp(model->params[j]->name, name) == 0) fail_msg("%s: two parameters are called %s", part->word, name);
      if (strcmp(dot, ".gate") != 0) continue;
      char out[128];
      bool zero = false;
      snprintf(out, sizeof out, "%.*s.out.weight", (int)(dot - name), name);
      for (size_t j = 0; j < model->param_count; j++)
        zero |= strcmp(model->params[j]->name, out) == 0 && model->params[j]->init.kind == TARN__INIT_ZERO;
      if (*(const float *)model->params[i]->value != (zero ? 1.0f : 0.0f)) fail_msg("%s: %s", part->word, name);
      gates++;
    }
    assert_int_equal(gates, 1 + !((const tarn__mixer_entry *)(const void *)part)->empty);
    close_model(model, config);
  }
}

static void test_gates(void **state) {
  (void)state;
  tarn_config *config;
  tarn__model *model = open_model(
      "model: { d_model: 8, norm: none }\ndecoder: { layers: \"L R\" }\nkinds:\n  L: { heads: 2, ffn: 12, gate: scalar "
      "}\n"
      "  R: { heads: 2, ffn: 12, norm: pre, norm_type: scale, frozen: matrices, gate: scalar, gate_init: 0.25 }\n",
      NULL, false, &config);
  assert_true(*(const float *)param_of(model, "decoder.layer1.self_attn.gate")->value == 0.0f);
  const tarn__param *gate = param_of(model, "decoder.layer2.ffn.gate"), *gain = param_of(model, "decoder.norm.gain");
  assert_true(gate->trained && gate->rows == 1 && gate->cols == 1);
  assert_true(*(const float *)gate->value == 0.25f);
  assert_true(gain->cols == 1 && fabs((double)*(const float *)gain->value - sqrt(8.0)) < 1e-6);
  close_model(model, config);
}

static void test_bad_keys(void **state) {
  (void)state;
  static const struct {
    const char *keys, *message;
  } cases[] = {
      {"gate: rezero", "not one of none, scalar"},
      {"gate_init: 0.5", "has no gate"},
      {"frozen: yes, gate: scalar", "would stay shut"},
      {"norm: fixup, gate: scalar", "a factor of its own"},
      {"norm: fixup, norm_type: rms", "has none to choose"},
      {"norm: b2t, ffn: 0", "needs a token mixer and an FFN"},
      {"norm: b2t, mixer: none", "needs a token mixer and an FFN"},
      {"norm: deepnorm, frozen: yes, init: hadamard", "set it to orthogonal"},
      {"residual: no, mixer: gru, ffn: 0, gate: scalar", "has no branch"},
      {"gate: scalar, gate_init: 1001", "1000"},
      {"norm: deep", "deepnorm"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[256];
    tarn_config *config;
    snprintf(text, sizeof text, "model: { d_model: 8 }\ndecoder: { layers: L }\nkinds:\n  L: { %s }\n", cases[i].keys);
    if (tarn_config_parse(&config, "bad.yaml", text, strlen(text), NULL, 0) != TARN_STATUS_USAGE)
      fail_msg("%s is not refused", cases[i].keys);
    const char *said = tarn_error_message();
    if (!strstr(said, cases[i].message) || !strstr(said, "bad.yaml:4"))
      fail_msg("%s: \"%s\", without \"%s\"", cases[i].keys, said, cases[i].message);
  }
}

// Loss of one sentence, and the gradients.
static double step(tarn__model *model, size_t *bytes) {
  static const int32_t in[ROWS] = {2, 3, 4, 5, 6, 7, 8, 9}, out[ROWS] = {3, 4, 5, 6, 7, 8, 9, 2};
  static const int32_t positions[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7}, offsets[2] = {0, ROWS};
  const tarn__packed text = {
      .sentences = 1, .rows = ROWS, .longest = ROWS, .ids = in, .positions = positions, .offsets = offsets};
  const tarn__batch batch = {.target = text, .predictions = ROWS, .targets = out};
  tarn__graph graph = {0};
  tarn__model_begin(model, &graph, true, THREADS);
  tarn__tensor *loss = tarn__model_build_loss(model, &graph, &batch, NULL, 0.0, 1.0 / ROWS, NULL);
  tarn__model_differentiate(model, &graph, loss);
  must(tarn__graph_plan(&graph));
  void *workspace;
  must(tarn__alloc(&workspace, TARN__MEMORY_OTHER, graph.workspace_bytes, 1));
  tarn__graph_bind(&graph, workspace);
  for (size_t i = 0; i < model->param_count; i++) model->params[i]->training.grad_written = false;
  must(tarn__graph_run(&graph, &(tarn__exec){.threads = THREADS, .seed = 1, .step = 1}));
  const double value = ((const double *)loss->data)[0] / ROWS;
  *bytes = graph.workspace_bytes;
  tarn__free(workspace);
  tarn__graph_close(&graph);
  return value;
}

// Six updates of a stack of 200 layers, whose weights are their own or shared.
static void test_two_hundred_layers(void **state) {
  (void)state;
  static const struct {
    const char *pattern, *keys;
  } cases[] = {{"L*200", "norm: deepnorm"},
               {"L1*200", "norm: deepnorm"},
               {"(L R)*100", "norm: none, gate: scalar"},
               {"L*200", "norm: fixup"}};
  size_t bytes[4] = {0};
  for (int k = 0; k < 4; k++) {
    char text[384];
    snprintf(text, sizeof text,
             "model: { d_model: 8, dropout: 0 }\ndecoder: { layers: \"%s\" }\ntrain: { recompute: %s }\nkinds:\n"
             "  L: { heads: 2, ffn: 8, %s }\n  R: { heads: 2, ffn: 8, norm: none, frozen: matrices, gate: scalar }\n",
             cases[k].pattern, k == 0 ? "none" : "block", cases[k].keys);
    tarn_config *config;
    tarn__model *model = open_model(text, NULL, true, &config);
    tarn__model_size size;
    tarn__model_measure(model, &size);
    assert_true(k == 1 ? size.trained < 1000 : size.trained > 25000);
    for (size_t i = 0; i < model->param_count; i++) {
      tarn__param *param = model->params[i];
      const size_t n = (size_t)(param->rows * param->cols);
      if (!param->trained) continue;
      void *moments;
      must(tarn__arena_alloc(&model->arena, &moments, 2 * n, sizeof(float)));
      param->training.moment1 = moments;
      param->training.moment2 = (float *)moments + n;
    }
    const tarn__adam_options options = {.learning_rate = 0.002, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-8};
    double first = 0.0, last = 0.0;
    for (int update = 1; update <= 6; update++) {
      last = step(model, &bytes[k]);
      if (update == 1) first = last;
      step_list(&tarn__device_cpu, model->params, model->param_count, &options, update, 1.0, THREADS);
    }
    if (!(last < first - 0.05)) fail_msg("%s, %s: loss %g, then %g", cases[k].pattern, cases[k].keys, first, last);
    close_model(model, config);
  }
  assert_true(bytes[1] * 4 < bytes[0]);  // the layers' inputs alone are kept
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_factors),
      cmocka_unit_test(test_first_values_of_deepnorm),
      cmocka_unit_test(test_deepnorm_of_synthesizers),
      cmocka_unit_test(test_deepnorm_of_shared_sets),
      cmocka_unit_test(test_first_values_of_fixup),
      cmocka_unit_test(test_fixup_of_every_mixer),
      cmocka_unit_test(test_gates),
      cmocka_unit_test(test_bad_keys),
      cmocka_unit_test(test_two_hundred_layers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
