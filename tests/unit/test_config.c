// Descriptions: defaults, overrides, messages, writing, the documentation and the examples.
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "config/config_options.h"
#include "config/config_part.h"
#include "config/config_write.h"
#include "config_text.h"
#include "option_row.h"
#include "task/measure_entry.h"

// A number among the keys of a kind; NaN: it has none of that name.
static double number(const tarn_config *config, int kind, const char *key) {
  double value;
  return tarn__kind_number(&config->kinds[kind], key, &value) ? value : (double)NAN;
}

static void expect_pattern(const tarn_config *config, const tarn_stack *stack, const char *expected) {
  char *text;
  assert_int_equal(tarn__config_pattern(config, stack, &text), TARN_STATUS_OK);
  assert_string_equal(text, expected);
  tarn_config_text_close(&text);
}

static void values_and_defaults(void **state) {
  (void)state;
  tarn_config *config = parsed(SMALL, NULL);
  assert_string_equal(config->name, "m.yaml");
  assert_int_equal(config->model.d_model, 8);
  assert_int_equal(config->model.max_length, 1024);
  assert_int_equal(config->model.embeddings, TARN_EMBEDDINGS_DECODER);
  assert_true(config->model.embedding_scale);
  assert_int_equal(config->encoder.count, 4);
  assert_string_equal(config->encoder.layers[2].set, "layer3");
  assert_string_equal(config->kinds[config->encoder.layers[2].kind].name, "R");
  assert_int_equal(config->decoder.count, 1);
  assert_int_equal(config->kind_count, 2);
  assert_true(number(config, 0, "ffn.width") == 16);
  assert_true(number(config, 1, "ffn.width") == 1024);
  assert_true(config->train.lr == 0.002);
  assert_true(config->train.beta2 == 0.98);
  assert_true(config->train.eps == 1e-8);
  assert_int_equal(config->train.seed_count, 0);
  assert_int_equal(config->valid.tokenize, TARN_BLEU_TOKENIZER_13A);
  assert_null(config->data.vocab);
  assert_int_equal(config->translate.beam, 5);
  tarn_config_close(&config);
  assert_null(config);
  tarn_config_close(&config);
}

static void patterns_name_bare_uses_by_their_kind(void **state) {
  (void)state;
  tarn_config *config = parsed(
      "encoder: { layers: layers L layers1 L, layers_to_keep: [1, 3, 4] }\ndecoder: { layers: L }\n"
      "kinds: { L: { mixer: none }, layers: { mixer: none } }\n",
      NULL);
  expect_pattern(config, &config->encoder, "layers layers1 L");
  tarn_config_close(&config);
}

static void defaults_that_depend_on_other_keys(void **state) {
  (void)state;
  tarn_config *config = parsed(
      "model: { norm: pre, dropout: 0.25 }\nencoder: { layers: L R F }\ndecoder: { layers: L }\n"
      "kinds: { L: , R: { frozen: yes, dropout: 0 }, F: { mixer: none, frozen: yes, init: xavier } }\n"
      "data: { vocab: a b }\nvalid: { bleu: no }\n",
      NULL);
  assert_int_equal(config->kinds[0].init, TARN_INIT_XAVIER);
  assert_int_equal(config->kinds[1].init, TARN_INIT_ORTHOGONAL);
  assert_int_equal(config->kinds[2].init, TARN_INIT_XAVIER);
  assert_int_equal(config->kinds[0].norm, TARN_NORM_PRE);
  assert_true(config->kinds[0].dropout == 0.25);
  assert_true(config->kinds[1].dropout == 0);
  assert_true(isnan(number(config, 2, "heads")));
  assert_string_equal(config->data.target_vocab, "a b");
  assert_int_equal(config->valid.metric, TARN__METRIC_NLL);
  tarn_config_close(&config);
  config = parsed("encoder: { layers: F }\ndecoder: { layers: F }\nkinds: { F: { mixer: none } }\n", NULL);
  assert_int_equal(config->kinds[0].norm, TARN_NORM_PRE);
  assert_int_equal(config->model.norm, TARN_NORM_POST);
  tarn_config_close(&config);
}

static void overrides_edit_the_file(void **state) {
  (void)state;
  const char *overrides[] = {"train.lr=1",        "train.lr=0.5",       "train.seeds=[5, 6]",
                             "kinds.R.frozen=no", "model.d_model=",     "data.vocab=\"x y\"",
                             "kinds.L.heads=8",   "kinds.N.mixer=none", "decoder.layers=N"};
  tarn_config *config;
  assert_int_equal(tarn_config_parse(&config, "m", SMALL, strlen(SMALL), overrides, 9), TARN_STATUS_OK);
  assert_true(config->train.lr == 0.5);
  assert_int_equal(config->train.seed_count, 2);
  assert_int_equal(config->train.seeds[1], 6);
  assert_false(config->kinds[1].frozen);
  assert_int_equal(config->model.d_model, 512);
  assert_string_equal(config->data.vocab, "x y");
  assert_string_equal(config->kinds[config->decoder.layers[0].kind].name, "N");
  tarn_config_close(&config);
}

static void placements_and_patterns_replace_each_other(void **state) {
  (void)state;
  tarn_config *config = parsed(SMALL, "encoder.place={ reservoirs: 2, of: 8 }");
  expect_pattern(config, &config->encoder, "L*2 R L R L*3");
  char *text;
  assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
  tarn_config_close(&config);
  config = parsed(text, "encoder.place={ reservoirs: 2, of: 4, rule: top, reservoir: R1 }");
  expect_pattern(config, &config->encoder, "L*2 R1*2");
  tarn_config_close(&config);
  tarn_config_text_close(&text);
  config = parsed(
      "encoder: { place: { reservoirs: 1, of: 3, trained: A, reservoir: B } }\n"
      "decoder: { layers: A }\nkinds: { A: , B: }\n",
      "encoder.layers=B*2");
  expect_pattern(config, &config->encoder, "B*2");
  tarn_config_close(&config);
}

static void messages_name_file_line_and_key(void **state) {
  (void)state;
  static const struct {
    const char *text, *override, *message;
  } cases[] = {
      {"encoder: { layers: L }\ndecoder: { layers: L }\nkinds:\n  L:\n    freeze: yes\n", NULL,
       "m.yaml:5: unknown key \"freeze\" in kinds.L; did you mean \"frozen\"?"},
      {"kinds:\n  L: { mixer: atention }\n", NULL,
       "m.yaml:2: kinds.L.mixer: \"atention\" is not one of attention, none, bigru, light_conv, dynamic_conv, gru, "
       "lstm, esn, pooling, fnet, mlp_mixer, gmlp, amlp, linear_attention, performer, linformer, hypermixer, "
       "synthesizer_dense, synthesizer_random, synthesizer_factorised_dense, synthesizer_factorised_random, "
       "branched_attention, evolved_attention, evolved_conv; did you "
       "mean \"attention\"?"},
      {"kinds:\n  R: { frozen: yes, init: hadamar }\n", NULL,
       "m.yaml:2: kinds.R.init: \"hadamar\" is not one of xavier, orthogonal, hadamard, normal; did you mean "
       "\"hadamard\"?"},
      {"train:\n  update_freq: 2\n", NULL,
       "m.yaml:2: unknown key \"update_freq\" in train; did you mean \"accumulate\"?"},
      {"train:\n  warmupp: 2\n", NULL, "m.yaml:2: unknown key \"warmupp\" in train; did you mean \"warmup\"?"},
      {"model:\n  lr: 2\n", NULL, "m.yaml:2: unknown key \"lr\" in model; there is one in train"},
      {"\nencodr: 1\n", NULL, "m.yaml:2: unknown section \"encodr\"; did you mean \"encoder\"?"},
      {"max_updates: 1\n", NULL, "m.yaml:1: unknown section \"max_updates\"; it is a key of train"},
      {"- 1\n", NULL, "m.yaml:1: expected keys such as model, encoder, decoder and kinds"},
      {"", NULL, "m.yaml:1: decoder.layers is missing"},
      {"encoder:\n  layers: (L Q)*2\nkinds: { L: , long_name: }\n", NULL,
       "m.yaml:2: encoder.layers: at character 4: kind \"Q\" is not defined under kinds; did you mean \"L\"?"},
      {"encoder: { layers: [L] }\nkinds: { L: }\n", NULL,
       "m.yaml:1: encoder.layers: expected a pattern such as (R L)*4"},
      {"encoder: { layers: L, place: { reservoirs: 1, of: 2 } }\nkinds: { L: }\n", NULL,
       "m.yaml:1: encoder: give either layers or place"},
      {"encoder:\n  place: { reservoirs: 3, of: 4 }\nkinds: { L: , R: }\n", NULL,
       "m.yaml:2: encoder.place: 3 reservoirs cannot alternate among 4 layers; at most 2 can"},
      {"encoder:\n  place: { reservoirs: 3 }\nkinds: { L: , R: }\n", NULL,
       "m.yaml:2: encoder.place: both reservoirs and of are needed, as in { reservoirs: 3, of: 8 }"},
      {"kinds:\n  L: 3\n", NULL, "m.yaml:2: kinds.L: expected keys and values"},
      {"kinds:\n  L1: {}\n", NULL,
       "m.yaml:2: kinds: \"L1\" is not a name of a kind: at most 31 letters and underscores (digits name sets, in "
       "patterns)"},
      {"kinds:\n  layer: {}\n", NULL,
       "m.yaml:2: kinds: the name \"layer\" is taken: bare uses are called layer1, layer2, ..."},
      {"kinds:\n  null: {}\n", NULL,
       "m.yaml:2: kinds: the name \"null\" is taken: in YAML it stands for nothing, so \"layers: null\" has no layers"},
      {SMALL, "kinds.L.heads=3", "--set kinds.L.heads=3: kinds.L.heads: 3 does not divide model.d_model 8"},
      {SMALL, "model.d_model=9", "--set model.d_model=9: model.d_model: must be even with sinusoidal positions"},
      {SMALL, "model.d_model=6.5", "--set model.d_model=6.5: model.d_model: \"6.5\" is not an integer"},
      {SMALL, "model.d_model=1.5e0", "--set model.d_model=1.5e0: model.d_model: \"1.5e0\" is not an integer"},
      {SMALL, "model.d_model=1e9", "--set model.d_model=1e9: model.d_model: 1e9 is out of range (1 .. 65536)"},
      {SMALL, "model.d_model=99999999999999999999",
       "--set model.d_model=99999999999999999999: model.d_model: 99999999999999999999 is out of range (1 .. 65536)"},
      {SMALL, "model.dropout=1", "--set model.dropout=1: model.dropout: 1 is out of range (0 <= x < 1)"},
      {SMALL, "model.dropout=nan", "--set model.dropout=nan: model.dropout: \"nan\" is not a number"},
      {SMALL, "model.dropout=[1]", "--set model.dropout=[1]: model.dropout: expected one value, not a list"},
      {SMALL, "kinds.R.frozen=perhaps",
       "--set kinds.R.frozen=perhaps: kinds.R.frozen: \"perhaps\" is not one of no, yes, matrices"},
      {SMALL, "train.eps=1e-46", "--set train.eps=1e-46: train.eps: 1e-46 is out of range (1e-30 <= x <= 1)"},
      {SMALL, "train.seeds=[1,1]", "--set train.seeds=[1,1]: train.seeds: 1 is given twice"},
      {SMALL, "train.average=6", "--set train.average=6: train.average: more checkpoints than train.keep_last keeps"},
      {SMALL, "kinds.l.frozen=yes",
       "--set kinds.l.frozen=yes: kinds.l: no layer is of this kind, and the file has no such kind; did you mean "
       "\"L\"?"},
      {SMALL, "valid={bleu: no, metric: bleu}",
       "--set valid={bleu: no, metric: bleu}: valid.metric: bleu needs valid.bleu: yes"},
      {SMALL, "train.lr", "--set train.lr: expected key=value, such as train.lr=0.001"},
      {SMALL, "=1", "--set =1: a key is words with dots between them, such as train.lr"},
      {SMALL, "train.lr.x=1", "--set train.lr.x=1: lr has no keys below it"},
      {"model: { d_model: 8 }\nmodel: {}\n", NULL, "m.yaml:2: key \"model\" is given twice"},
      {"model: &a { d_model: 8 }\n", NULL,
       "m.yaml:1: anchors and aliases (& and *) are not supported; put a pattern in quotes"},
      {"model: !!map {}\n", NULL, "m.yaml:1: tags (!) are not supported; put the text in quotes"},
      {"model: {}\n---\nmodel: {}\n", NULL, "m.yaml:2: more than one YAML document"},
      {"model: [[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]\n", NULL, "m.yaml:1: nested too deeply"},
      {"model:\n\tx: 1\n", NULL,
       "m.yaml:2: not valid YAML: while scanning for the next token, found character that cannot start any token"},
      {"model: \"a\\0b\"\n", NULL, "m.yaml:1: a zero byte in a value"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    expect_error(cases[i].text, cases[i].override, cases[i].message);
  }
}

// Language models, and layers without residual or FFN.
static void messages_of_language_models(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"decoder: { layers: L }\nkinds: { L: }\nmodel: { embeddings: all }\n",
       "m.yaml:3: model.embeddings: there is no encoder; choose decoder or none"},
      {"decoder: { layers: L }\nkinds: { L: }\nmodel: { embeddings: decoder, frozen_embeddings: decoder }\n",
       "m.yaml:3: model.frozen_embeddings: with this model.embeddings the decoder shares its matrix with the output "
       "layer, which is trained; set model.embeddings to none"},
      {"decoder: { layers: L }\nkinds: { L: }\nmodel: { embeddings: decoder, output_rank: 8 }\n",
       "m.yaml:3: model.output_rank: with this model.embeddings the output layer shares its matrix with an input; set "
       "model.embeddings to none"},
      {"decoder: { layers: L }\nkinds: { L: }\nvalid: { bleu: yes }\n",
       "m.yaml:3: valid.bleu: a language model does not translate"},
      {"decoder: { layers: L }\nkinds: { L: { mixer: none, ffn: 0 } }\n",
       "m.yaml:2: kinds.L.ffn: a layer with mixer none is its FFN, which cannot have width 0"},
      {"decoder: { layers: L }\nkinds: { L: { residual: no, norm: pre } }\n",
       "m.yaml:2: kinds.L.norm: a layer without residual has no norm; leave it out or set it to none"},
      {"decoder: { layers: L }\nkinds: { L: { residual: no, ffn: 8 } }\n",
       "m.yaml:2: kinds.L.ffn: a layer without residual has no FFN; leave it out or set it to 0"},
      {"decoder: { layers: L }\nkinds: { L: { mixer: lstm, residual: no, frozen_output: yes } }\n",
       "m.yaml:2: kinds.L.frozen_output: without residual, and with model.d_model units, the layer has no W_out; leave "
       "it out"},
      {"decoder: { layers: L }\nkinds: { L: { mixer: gru, frozen: yes, frozen_input: yes } }\n",
       "m.yaml:2: kinds.L.frozen_input: the whole layer is frozen; leave it out"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_error(cases[i].text, NULL, cases[i].message);
}

// A kind may have the name of a key that it does not have.
static void kinds_are_named_like_keys(void **state) {
  (void)state;
  static const char *const names[] = {"kernel", "hidden", "topology", "norm", "ffn", "frozen_output"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[256];
    snprintf(text, sizeof text, "decoder: { layers: %s }\nkinds: { %s: { mixer: %s, residual: no } }\n", names[i],
             names[i], i % 2 ? "lstm" : "attention");
    tarn_config *config = parsed(text, NULL);
    assert_string_equal(config->kinds[0].name, names[i]);
    tarn_config_close(&config);
  }
}

// A recurrence has heads in its cross-attention alone.
static void heads_divide_where_there_are_any(void **state) {
  (void)state;
  static const char *const fine[] = {
      "model: { d_model: 50 }\ndecoder: { layers: E G M }\n"
      "kinds: { E: { mixer: esn }, G: { mixer: gru }, M: { mixer: lstm } }\n",
      "model: { d_model: 50 }\nencoder: { layers: G }\ndecoder: { layers: L }\n"
      "kinds: { G: { mixer: gru }, L: { heads: 5 } }\n"};
  for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
    tarn_config *config;
    if (tarn_config_parse(&config, "m.yaml", fine[i], strlen(fine[i]), NULL, 0) != TARN_STATUS_OK)
      fail_msg("%s", tarn_error_message());
    tarn_config_close(&config);
  }
  expect_error("model: { d_model: 50 }\ndecoder: { layers: C }\nkinds:\n  C: { mixer: light_conv }\n", NULL,
               "m.yaml:4: kinds.C.heads: 4 does not divide model.d_model 50");
  expect_error(
      "model: { d_model: 50 }\nencoder: { layers: L }\ndecoder: { layers: E }\nkinds:\n  L: { heads: 5 }\n"
      "  E: { mixer: esn }\n",
      NULL, "m.yaml:6: kinds.E.heads: 4 does not divide model.d_model 50");
}

// Keys of convolutions.
static void messages_of_convolutions(void **state) {
  (void)state;
  static const struct {
    const char *override, *message;
  } cases[] = {
      {"kinds.L.kernel=3",
       "--set kinds.L.kernel=3: kinds.L.kernel: a layer with mixer attention has no kernel; "
       "there is one with light_conv and dynamic_conv"},
      {"kinds.L.kernel_dropout=0",
       "--set kinds.L.kernel_dropout=0: kinds.L.kernel_dropout: a layer with mixer attention has no "
       "kernel_dropout; there is one with light_conv and dynamic_conv"},
      {"kinds.L={mixer: light_conv, kernel: 4}",
       "--set kinds.L={mixer: light_conv, kernel: 4}: kinds.L.kernel: 4 is even, but a layer of the encoder sees as "
       "many tokens before it as after it; use 3 or 5"},
      {"kinds.L={mixer: dynamic_conv, kernel: 0}",
       "--set kinds.L={mixer: dynamic_conv, kernel: 0}: kinds.L.kernel: 0 is out of range (1 .. 1023)"},
      {"kinds.L={mixer: dynamic_conv, heads: 7}",
       "--set kinds.L={mixer: dynamic_conv, heads: 7}: kinds.L.heads: 7 does not divide model.d_model 8"},
      {"kinds.L={mixer: light_conv, weight_dropout: 0.1}",
       "--set kinds.L={mixer: light_conv, weight_dropout: 0.1}: unknown key \"weight_dropout\" in kinds.L; did you "
       "mean "
       "\"kernel_dropout\"?"},
      {"kinds.L.attn_pdrop=0.1",
       "--set kinds.L.attn_pdrop=0.1: unknown key \"attn_pdrop\" in kinds.L; did you mean \"attention_dropout\"?"},
      {"kinds.L.attention_dropout=1",
       "--set kinds.L.attention_dropout=1: kinds.L.attention_dropout: 1 is out of range (0 <= x < 1)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_error(SMALL, cases[i].override, cases[i].message);
  // A causal kernel may be even.
  tarn_config *config = parsed(
      "encoder: { layers: L }\ndecoder: { layers: C }\nkinds: { L: , C: { mixer: light_conv, kernel: 4 } }\n", NULL);
  assert_true(number(config, 1, "kernel") == 4);
  assert_true(isnan(number(config, 0, "kernel")));
  tarn_config_close(&config);
}

static void messages_of_backskipping(void **state) {
  (void)state;
  static const struct {
    const char *text, *override, *message;
  } cases[] = {
      {SMALL, "kinds.R.backskip.method=identitty",
       "--set kinds.R.backskip.method=identitty: kinds.R.backskip.method: \"identitty\" is not one of none, identity, "
       "feedback, predictor; did you mean \"identity\"?"},
      {SMALL, "kinds.R.backskip={metod: identity}",
       "--set kinds.R.backskip={metod: identity}: unknown key \"metod\" in kinds.R.backskip; did you mean \"method\"?"},
      {SMALL, "kinds.R.backskip=identity",
       "--set kinds.R.backskip=identity: kinds.R.backskip: expected keys and values"},
      {SMALL, "kinds.L.backskip.method=identity",
       "--set kinds.L.backskip.method=identity: kinds.L.backskip.method: the layer is trained, and its weights need "
       "the "
       "true gradient; set kinds.L.frozen to yes"},
      {SMALL, "kinds.R={frozen: matrices, backskip: {method: identity}}",
       "--set kinds.R={frozen: matrices, backskip: {method: identity}}: kinds.R.backskip.method: its norms and biases "
       "are trained and need the true gradient; set kinds.R.frozen to yes"},
      {SMALL, "kinds.R.backskip={method: predictor, refresh: 0}",
       "--set kinds.R.backskip={method: predictor, refresh: 0}: kinds.R.backskip.refresh: the predictor learns from "
       "true "
       "gradients; set it to 1 or more"},
      {SMALL, "kinds.R.backskip={method: identity, refresh: -1}",
       "--set kinds.R.backskip={method: identity, refresh: -1}: kinds.R.backskip.refresh: -1 is out of range (0 .. "
       "1000000000)"},
      {"encoder: { layers: L }\ndecoder: { layers: R }\nkinds:\n  L:\n  R: { frozen: yes, backskip: { method: feedback "
       "} "
       "}\n",
       NULL,
       "m.yaml:5: kinds.R.backskip.method: in the decoder kind R attends to the encoder, whose gradient has no "
       "stand-in; "
       "give the decoder a kind of its own without backskip, or one with mixer none and evolved_conv"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_error(cases[i].text, cases[i].override, cases[i].message);
}

static void sharing_across_sides_needs_one_vocabulary(void **state) {
  (void)state;
  static const char text[] = SMALL "data: { vocab: a, target_vocab: b }\n";
  expect_error(text, "model.embeddings=all",
               "--set model.embeddings=all: model.embeddings: both sides share a matrix, so data.target_vocab must be "
               "the same file as data.vocab");
  tarn_config *config = parsed(text, "model.embeddings=decoder");
  tarn_config_close(&config);
}

static void large_inputs_are_refused(void **state) {
  (void)state;
  size_t size = (1 << 20) + 1;
  char *text = malloc(size);
  tarn_config *config;
  assert_non_null(text);
  memset(text, '#', size);
  assert_int_equal(tarn_config_parse(&config, "m", text, size, NULL, 0), TARN_STATUS_USAGE);
  memset(text, '[', 100000);
  assert_int_equal(tarn_config_parse(&config, "m", text, 100000, NULL, 0), TARN_STATUS_USAGE);
  for (size_t i = 0; i + 4 < 100000; i += 4) memcpy(text + i, i ? "- a\n" : "x:\n\n", 4);
  assert_int_equal(tarn_config_parse(&config, "m", text, 99996, NULL, 0), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(), "m:10000: more than 10000 values");
  free(text);
  assert_int_equal(tarn_config_read(&config, "/dev/zero", NULL, 0), TARN_STATUS_USAGE);
  assert_int_equal(tarn_config_read(&config, "/nonexistent/m.yaml", NULL, 0), TARN_STATUS_IO);
}

// JSON is read as YAML, and says the same.
static void expect_same_as_json(const tarn_config *config, const char *text) {
  char *json;
  char *again;
  tarn_config *back;
  assert_int_equal(tarn_config_write_json(config, &json), TARN_STATUS_OK);
  json_error_t error;
  json_t *object = json_loads(json, JSON_REJECT_DUPLICATES, &error);
  if (!object) fail_msg("%s\n%s", error.text, json);
  json_decref(object);
  if (parse(&back, json, NULL) != TARN_STATUS_OK) fail_msg("%s\n%s", tarn_error_message(), json);
  assert_int_equal(tarn_config_write(back, &again), TARN_STATUS_OK);
  assert_string_equal(text, again);
  tarn_config_close(&back);
  tarn_config_text_close(&again);
  tarn_config_text_close(&json);
}

// Writes, reads back and writes again.
static void expect_round_trip(const tarn_config *config) {
  char *text;
  char *again;
  char *model;
  char hash[2][TARN_CONFIG_HASH];
  tarn_config *back;
  assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
  if (parse(&back, text, NULL) != TARN_STATUS_OK) fail_msg("%s\n%s", tarn_error_message(), text);
  assert_int_equal(tarn_config_write(back, &again), TARN_STATUS_OK);
  assert_string_equal(text, again);
  tarn_config_close(&back);
  expect_same_as_json(config, text);
  assert_int_equal(tarn__config_write_model(config, &model), TARN_STATUS_OK);
  if (parse(&back, model, NULL) != TARN_STATUS_OK) fail_msg("%s\n%s", tarn_error_message(), model);
  assert_int_equal(tarn__config_model_hash(config, hash[0]), TARN_STATUS_OK);
  assert_int_equal(tarn__config_model_hash(back, hash[1]), TARN_STATUS_OK);
  assert_string_equal(hash[0], hash[1]);
  tarn_config_close(&back);
  tarn_config_text_close(&text);
  tarn_config_text_close(&again);
  tarn_config_text_close(&model);
  assert_null(model);
}

static void writing_reads_back(void **state) {
  (void)state;
  static const char *const overrides[] = {"train.lr=0.1",
                                          "train.lr=0.00012345678901234567",
                                          "train.weight_decay=1e-300",
                                          "train.clip_norm=1000000",
                                          "train.seeds=[0, 4294967295]",
                                          "data.vocab='a \"quoted\" \\ path: #1 {ü}'",
                                          "data.train='~'",
                                          "encoder.layers=R1 L2*3 (R1 L)*4",
                                          "kinds={L: {ffn: 16}, R: {frozen: yes}, F: {mixer: none, frozen: yes}}",
                                          "kinds.R.backskip={method: feedback, refresh: 0}",
                                          "valid={bleu: no}"};
  for (size_t i = 0; i < sizeof overrides / sizeof *overrides; i++) {
    tarn_config *config = parsed(SMALL, overrides[i]);
    expect_round_trip(config);
    tarn_config_close(&config);
  }
}

static void json_has_values_of_their_types(void **state) {
  (void)state;
  tarn_config *config = parsed(SMALL, "data.train=\"a \\\"b\\\" \\\\ no\"");
  char *text;
  assert_int_equal(tarn_config_write_json(config, &text), TARN_STATUS_OK);
  json_t *object = json_loads(text, 0, NULL);
  assert_non_null(object);
  const json_t *train = json_object_get(object, "train"), *frozen = json_object_get(object, "kinds");
  frozen = json_object_get(json_object_get(frozen, "R"), "frozen");
  assert_true(json_real_value(json_object_get(train, "lr")) == 0.002);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "model"), "d_model")), 8);
  assert_true(json_is_false(json_object_get(json_object_get(object, "valid"), "lowercase")));
  assert_true(json_is_true(frozen) || strcmp(json_string_value(frozen), "yes") == 0);
  assert_string_equal(json_string_value(json_object_get(json_object_get(object, "encoder"), "layers")), "(R L)*2");
  assert_string_equal(json_string_value(json_object_get(json_object_get(object, "data"), "train")), "a \"b\" \\ no");
  json_decref(object);
  tarn_config_text_close(&text);
  tarn_config_close(&config);
}

static void the_model_hash_is_of_the_model_only(void **state) {
  (void)state;
  static const struct {
    const char *override;
    bool same;
  } cases[] = {{"train.lr=0.1", true},
               {"kinds={L: {heads: 2, ffn: 16}, R: {heads: 2, frozen: yes}, F: {mixer: none}}", true},
               {"encoder.layers=R L R L", true},
               {"encoder.layers=L*4", false},
               {"kinds.R.ffn=512", false},
               {"model.max_length=99", false},
               {"kinds.R.backskip.method=identity", true}};
  tarn_config *config = parsed(SMALL, NULL);
  char hash[TARN_CONFIG_HASH];
  assert_int_equal(tarn__config_model_hash(config, hash), TARN_STATUS_OK);
  tarn_config_close(&config);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char other[TARN_CONFIG_HASH];
    config = parsed(SMALL, cases[i].override);
    assert_int_equal(tarn__config_model_hash(config, other), TARN_STATUS_OK);
    assert_int_equal(strcmp(hash, other) == 0, cases[i].same);
    tarn_config_close(&config);
  }
}

static void training_needs_more(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {SMALL, "m.yaml: data.vocab is missing"},
      {SMALL "data: { vocab: v }", "m.yaml: data.train is missing"},
      {SMALL "data: { vocab: v, train: t }", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_config *config = parsed(cases[i].text, NULL);
    tarn_status status = tarn_config_check_training(config);
    assert_int_equal(status, cases[i].message ? TARN_STATUS_USAGE : TARN_STATUS_OK);
    if (cases[i].message) assert_string_equal(tarn_error_message(), cases[i].message);
    tarn_config_close(&config);
  }
  static const char *const refused[] = {"train.max_updates=0", "train.patience=3",
                                        "train={schedule: cosine, warmup: 10, max_updates: 10}"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    tarn_config *config = parsed(SMALL "data: { vocab: v, train: t }", refused[i]);
    assert_int_equal(tarn_config_check_training(config), TARN_STATUS_USAGE);
    tarn_config_close(&config);
  }
}

// A run's folder and a checkpoint hold the whole text: a key that came later must not stand there while it has its
// default, or a run of an earlier version would be said to have another configuration.
static void texts_of_the_first_version_are_kept(void **state) {
  static const char *const runs[] = {"resume/shared", "resume/predictor", "resume/cached", "sweep/full/seed-1"};
  (void)state;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    char path[512], *text, *written;
    size_t size;
    snprintf(path, sizeof path, TARN_SOURCE_DIR "/tests/versions/0.1.0/%s/config.yaml", runs[i]);
    assert_int_equal(tarn__file_read(path, &text, &size), TARN_STATUS_OK);
    tarn_config *config = parsed(text, NULL);
    assert_int_equal(tarn_config_write(config, &written), TARN_STATUS_OK);
    assert_string_equal(written, text);
    tarn_config_text_close(&written);
    tarn_config_close(&config);
    tarn__free(text);
  }
}

static char *option_tables(void) {
  char *text = NULL, *rows = NULL;
  size_t size, rows_size;
  char section[64] = "";
  tarn_config_option option;
  FILE *out = open_memstream(&text, &size), *row = NULL;
  assert_non_null(out);
  for (size_t i = 0; tarn_config_option_at(i, &option); i++) {
    size_t n = (size_t)(strrchr(option.key, '.') - option.key);
    if (option.part[0]) continue;  // on the page of the part, in docs/parts
    // A text that fills its room has lost its end.
    if (strlen(option.value) + 1 == sizeof option.value || strlen(option.range) + 1 == sizeof option.range)
      fail_msg("default or range of %s is too long: \"%s\", \"%s\"", option.key, option.value, option.range);
    if (strlen(section) != n || strncmp(section, option.key, n) != 0) {
      if (row) {
        assert_int_equal(fclose(row), 0);
        put_option_section(out, &text, section, rows);
        free(rows);
      }
      snprintf(section, sizeof section, "%.*s", (int)n, option.key);
      row = open_memstream(&rows, &rows_size);
      assert_non_null(row);
    }
    put_option_row(row, &option);
  }
  assert_non_null(row);
  assert_int_equal(fclose(row), 0);
  put_option_section(out, &text, section, rows);
  free(rows);
  assert_int_equal(fclose(out), 0);
  return text;
}

// Truth values of YAML keep their meaning next to `matrices`; a gain of 1 is not written, so that a description from
// before the key stays the same text.
static void test_frozen_words(void **state) {
  (void)state;
  static const struct {
    const char *override;
    tarn_frozen frozen;
    tarn_init init;
    const char *written;  // init_gain's line; NULL: none
  } cases[] = {{"kinds.R={frozen: True}", TARN_FROZEN_YES, TARN_INIT_ORTHOGONAL, NULL},
               {"kinds.R={frozen: off}", TARN_FROZEN_NO, TARN_INIT_XAVIER, NULL},
               {"kinds.R={frozen: matrices, init_gain: 0.25}", TARN_FROZEN_MATRICES, TARN_INIT_ORTHOGONAL,
                "    init_gain: 0.25\n"},
               {"kinds.R={frozen: yes, init_gain: 1.0}", TARN_FROZEN_YES, TARN_INIT_ORTHOGONAL, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_config *config;
    char *text;
    assert_int_equal(tarn_config_parse(&config, "m.yaml", SMALL, strlen(SMALL), &cases[i].override, 1), TARN_STATUS_OK);
    const tarn_kind *kind = &config->kinds[strcmp(config->kinds[0].name, "R") != 0];
    assert_int_equal(kind->frozen, cases[i].frozen);
    assert_int_equal(kind->init, cases[i].init);
    assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
    if (cases[i].written)
      assert_non_null(strstr(text, cases[i].written));
    else
      assert_null(strstr(text, "init_gain"));
    tarn_config_text_close(&text);
    tarn_config_close(&config);
  }
  static const struct {
    const char *text, *override, *message;
  } refused[] = {
      {SMALL, "kinds.R.frozen=matrics",
       "--set kinds.R.frozen=matrics: kinds.R.frozen: \"matrics\" is not one of no, yes, matrices; did you mean "
       "\"matrices\"?"},
      {SMALL, "kinds.R.init_gain=0", "--set kinds.R.init_gain=0: kinds.R.init_gain: 0 is out of range (0 < x <= 1000)"},
      {SMALL, "kinds.R.gain=2", "--set kinds.R.gain=2: unknown key \"gain\" in kinds.R; did you mean \"init_gain\"?"},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    expect_error(refused[i].text, refused[i].override, refused[i].message);
}

// A choice may have any number of words; a list of them that is too long ends in dots.
static void choices_of_many_words(void **state) {
  (void)state;
  enum { WORDS = 60 };
  char texts[WORDS][8];
  tarn_config_word words[WORDS];
  for (int i = 0; i < WORDS; i++) {
    snprintf(texts[i], sizeof texts[i], "word%02d", i);
    words[i] = (tarn_config_word){texts[i], "", i};
  }
  const tarn__option option = {.name = "many", .type = TARN__OPTION_WORD, .words = words, .word_count = WORDS};
  int value = -1;
  assert_int_equal(tarn__option_set(&option, &value, "word59", NULL), TARN_STATUS_OK);
  assert_int_equal(value, 59);
  assert_int_equal(tarn__option_set(&option, &value, "wodr59", NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "word00, word01, "));
  assert_non_null(strstr(tarn_error_message(), ", ..."));
  assert_int_equal(value, 59);
}

// docs/configuration.md ends with tables made from the options; TARN_UPDATE=1 makes them anew.
static void documentation_lists_every_option(void **state) {
  (void)state;
  static const char path[] = TARN_SOURCE_DIR "/docs/configuration.md";
  static const char mark[] = "<!-- options -->\n";
  char *page;
  size_t size;
  char *tables = option_tables();
  assert_int_equal(tarn__file_read(path, &page, &size), TARN_STATUS_OK);
  char *place = strstr(page, mark);
  assert_non_null(place);
  place += strlen(mark);
  if (getenv("TARN_UPDATE")) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "%.*s%s", (int)(place - page), page, tables);
    assert_int_equal(fclose(out), 0);
  } else {
    assert_string_equal(place, tables);
  }
  tarn__free(page);
  free(tables);
}

// A sweep names its base, and a recipe its task.
static bool is_description(const char *path) {
  char *text;
  size_t size;
  assert_int_equal(tarn__file_read(path, &text, &size), TARN_STATUS_OK);
  const bool other = strncmp(text, "base:", 5) == 0 || strstr(text, "\nbase:") || strstr(text, "\ntask:");
  tarn__free(text);
  return !other;
}

static void examples_are_valid(void **state) {
  (void)state;
  glob_t files;
  assert_int_equal(glob(TARN_SOURCE_DIR "/examples/*/*.yaml", 0, NULL, &files), 0);
  assert_true(files.gl_pathc >= 12);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    tarn_config *config;
    if (!is_description(files.gl_pathv[i])) continue;
    // The demo gives its files on the command line.
    bool ok = tarn_config_read(&config, files.gl_pathv[i], NULL, 0) == TARN_STATUS_OK &&
              (!config->data.train || tarn_config_check_training(config) == TARN_STATUS_OK);
    if (!ok) fail_msg("%s", tarn_error_message());
    expect_round_trip(config);
    tarn_config_close(&config);
  }
  globfree(&files);
}

static void every_failed_allocation_is_reported(void **state) {
  (void)state;
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  for (uint64_t n = 1;; n++) {
    tarn_config *config;
    char *text = NULL;
    assert_true(n < 1000);
    tarn__memory_fail_after(n);
    tarn_status status = parse(&config, SMALL "data: { vocab: v }", "train.seeds=[1,2]");
    if (status == TARN_STATUS_OK) status = tarn_config_write_json(config, &text);
    tarn__memory_fail_after(0);
    tarn_config_close(&config);
    tarn_config_text_close(&text);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
    if (status == TARN_STATUS_OK) return;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
}

// Damaged files give a message or a description that can be written and read back, and never anything else.
static void damaged_files_are_survived(void **state) {
  (void)state;
  tarn_config *config = parsed(SMALL "data: { vocab: \"v\\u00e4\", train: 't' }", "train.seeds=[1,2]");
  char *text;
  tarn__random random;
  assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
  tarn_config_close(&config);
  size_t size = strlen(text);
  static const char letters[] = "()*{}[]:,#'\"\\&!|>-~ \n\t0123456789LRx\x01\x85\xe2\xff";
  int good = 0;
  tarn__random_init(&random, 1, 0);
  for (int round = 0; round < 3000; round++) {
    char damaged[2048];
    assert_true(size < sizeof damaged);
    memcpy(damaged, text, size);
    uint64_t changes = 1 + tarn__random_below(&random, 4);
    for (uint64_t i = 0; i < changes; i++) {
      damaged[tarn__random_below(&random, size)] = letters[tarn__random_below(&random, sizeof letters)];
    }
    if (tarn_config_parse(&config, "m", damaged, size, NULL, 0) == TARN_STATUS_OK) {
      good++;
      expect_round_trip(config);
    } else {
      assert_true(tarn_error_message()[0] != 0);
    }
    tarn_config_close(&config);
  }
  assert_in_range(good, 10, 2970);
  tarn_config_text_close(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_and_defaults),
      cmocka_unit_test(patterns_name_bare_uses_by_their_kind),
      cmocka_unit_test(defaults_that_depend_on_other_keys),
      cmocka_unit_test(overrides_edit_the_file),
      cmocka_unit_test(placements_and_patterns_replace_each_other),
      cmocka_unit_test(messages_name_file_line_and_key),

      cmocka_unit_test(messages_of_language_models),
      cmocka_unit_test(kinds_are_named_like_keys),
      cmocka_unit_test(heads_divide_where_there_are_any),
      cmocka_unit_test(messages_of_convolutions),
      cmocka_unit_test(messages_of_backskipping),
      cmocka_unit_test(sharing_across_sides_needs_one_vocabulary),
      cmocka_unit_test(large_inputs_are_refused),
      cmocka_unit_test(writing_reads_back),
      cmocka_unit_test(json_has_values_of_their_types),
      cmocka_unit_test(the_model_hash_is_of_the_model_only),
      cmocka_unit_test(training_needs_more),
      cmocka_unit_test(texts_of_the_first_version_are_kept),
      cmocka_unit_test(documentation_lists_every_option),
      cmocka_unit_test(examples_are_valid),
      cmocka_unit_test(every_failed_allocation_is_reported),
      cmocka_unit_test(test_frozen_words),
      cmocka_unit_test(choices_of_many_words),
      cmocka_unit_test(damaged_files_are_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
