// The tables of parts: every entry and every key of it is documented, written, and read back; what belongs to another
// entry is refused with the words that have it; what an entry cannot do is refused where it is needed. An entry is
// covered by its line in the table.
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

#include "config/config_part.h"
#include "model/model.h"
#include "parts/table/part_table.h"

enum { TEXT = 4096 };

// How a part is named in a description: what stands before and behind its word and keys.
static const struct {
  const char *before, *after;
  const char *key;  // the path of its keys; "" if they are siblings of the word
} slots[TARN__TABLE_COUNT] = {
    [TARN__TABLE_MIXER] = {"encoder: { layers: K }\ndecoder: { layers: L }\nkinds: { L: , K: { mixer: ", " } }\n", ""},
    [TARN__TABLE_CHANNEL] = {"decoder: { layers: K }\nkinds: { K: { ffn: { type: ", " } } }\n", "kinds.K.ffn"},
    [TARN__TABLE_NORM] = {"decoder: { layers: K }\nkinds: { K: { norm_type: { type: ", " } } }\n", "kinds.K.norm_type"},
    [TARN__TABLE_POSITION] = {"decoder: { layers: K }\nkinds: { K: }\nmodel: { positions: { type: ", " } }\n",
                              "model.positions"},
    [TARN__TABLE_ACTIVATION] = {"decoder: { layers: K }\nkinds: { K: }\nmodel: { activation: { type: ", " } }\n",
                                "model.activation"},
};

static tarn_status parse(tarn_config **config, const char *text) {
  return tarn_config_parse(config, "p.yaml", text, strlen(text), NULL, 0);
}

static void describe(char text[TEXT], tarn__part_table table, const char *word, const char *keys) {
  snprintf(text, TEXT, "%s%s%s%s", slots[table].before, word, keys, slots[table].after);
}

// A description with every default filled in.
static char *written(const char *text) {
  tarn_config *config;
  char *all;
  if (parse(&config, text) != TARN_STATUS_OK) fail_msg("%s: %s", text, tarn_error_message());
  assert_int_equal(tarn_config_write(config, &all), TARN_STATUS_OK);
  tarn_config_close(&config);
  return all;
}

static void expect_round_trip(const char *text) {
  char *once = written(text), *twice = written(once);
  assert_string_equal(once, twice);
  tarn_config_text_close(&once);
  tarn_config_text_close(&twice);
}

// A key at another value than its default is written, and makes another text.
static void expect_written(const char *text, const char *plain, const char *key, const char *value) {
  char line[128], *once = written(text), *without = written(plain);
  snprintf(line, sizeof line, " %s: %s\n", key, value);
  if (!strstr(once, line)) fail_msg("%s: there is no%s in %s", text, line, once);
  if (strcmp(once, without) == 0) fail_msg("%s: as without it", text);
  tarn_config_text_close(&once);
  tarn_config_text_close(&without);
  expect_round_trip(text);
}

static void expect_same(const char *text, const char *other) {
  char *a = written(text), *b = written(other);
  assert_string_equal(a, b);
  tarn_config_text_close(&a);
  tarn_config_text_close(&b);
}

// A value of an option that is not its default; false where there is none that does without other keys.
static bool other_value(char value[64], const tarn__option *option) {
  const double plain = option->value ? strtod(option->value, NULL) : 0;
  const tarn__part *part = NULL;
  switch (option->type) {
    case TARN__OPTION_BOOL:
      snprintf(value, 64, "%s", strcmp(option->value, "no") == 0 ? "yes" : "no");
      return true;
    case TARN__OPTION_INTEGER:
      if (option->derived && strcmp(option->derived, "model.max_length") == 0) {  // which is the least it may be
        snprintf(value, 64, "4096");
        return true;
      }
      if (fmod(plain, 2) == 0 && plain >= 8)
        snprintf(value, 64, "%lld", (long long)plain / 2);
      else
        snprintf(value, 64, "%lld", plain == 2 ? 4LL : fmod(plain, 2) == 1 && plain > 1 ? (long long)plain + 2 : 2LL);
      return true;
    case TARN__OPTION_REAL:
      snprintf(value, 64, "%g",
               option->least >= 0.5             ? (plain / 2 < option->least ? 2 * plain : plain / 2)
               : plain == 0.5 || !option->value ? 0.25
                                                : 0.5);
      return true;
    case TARN__OPTION_WORD:
      snprintf(value, 64, "%s", option->words[option->word_count - 1].word);
      return true;
    case TARN__OPTION_PART:
      part = tarn__part_at(option->table, 1);
      snprintf(value, 64, "%s", part ? part->word : "");
      return part != NULL;
    default:
      return false;
  }
}

// What a key of that name does not do without.
static const char *needed_by(const char *name) {
  return strcmp(name, "importance") == 0 || strcmp(name, "load") == 0 ? ", gating: noisy" : "";
}

// Each entry alone, which is the same as with each of its keys at its default, and with each at another value.
static void entries_are_written_and_read(void **state) {
  (void)state;
  char text[TEXT], plain[TEXT], keys[128], value[64];
  const tarn__part *part;
  for (tarn__part_table table = 0; table < TARN__TABLE_COUNT; table++)
    for (int i = 0; (part = tarn__part_at(table, i)) != NULL; i++) {
      assert_ptr_equal(tarn__part_find(table, part->word), part);
      describe(plain, table, part->word, "");
      expect_round_trip(plain);
      for (int k = 0; k < part->option_count; k++) {
        // Writing has no form for the other types in a part.
        assert_true(part->options[k].type <= TARN__OPTION_WORD || part->options[k].type == TARN__OPTION_PART);
        describe(plain, table, part->word, "");
        if (part->options[k].value) {
          snprintf(keys, sizeof keys, ", %s: %s", part->options[k].name, part->options[k].value);
          describe(text, table, part->word, keys);
          expect_same(text, plain);
        }
        if (!other_value(value, &part->options[k])) continue;
        const char *needed = needed_by(part->options[k].name);
        snprintf(keys, sizeof keys, "%s, %s: %s", needed, part->options[k].name, value);
        describe(text, table, part->word, keys);
        describe(plain, table, part->word, needed);
        // A width alone is the plain number.
        const bool number =
            table == TARN__TABLE_CHANNEL && i == 0 && strcmp(part->options[k].name, tarn__kind_width_name()) == 0;
        expect_written(text, plain, number ? strrchr(slots[table].key, '.') + 1 : part->options[k].name, value);
      }
    }
}

static bool is_documented(const char *key, const char *owner, const char *word) {
  tarn_config_option option;
  tarn_config_word one;
  for (size_t i = 0; tarn_config_option_at(i, &option); i++) {
    if (strcmp(strrchr(option.key, '.') + 1, key) != 0 || strcmp(option.part, owner) != 0) continue;
    if (!word) return option.help[0] != 0;
    for (size_t w = 0; tarn_config_option_word(&option, w, &one); w++)
      if (strcmp(one.word, word) == 0) return one.text[0] != 0;
  }
  return false;
}

static void entries_are_documented(void **state) {
  (void)state;
  static const char *const names[TARN__TABLE_COUNT] = {"mixer", "ffn", "norm_type", "positions", "activation"};
  const tarn__part *part;
  char owner[48];
  for (tarn__part_table table = 0; table < TARN__TABLE_COUNT; table++)
    for (int i = 0; (part = tarn__part_at(table, i)) != NULL; i++) {
      if (!is_documented(names[table], "", part->word)) fail_msg("%s is not documented", part->word);
      snprintf(owner, sizeof owner, "%s %s", tarn__part_noun(table), part->word);
      for (int k = 0; k < part->option_count; k++)
        if (!is_documented(part->options[k].name, owner, NULL))
          fail_msg("%s of %s is not documented", part->options[k].name, owner);
    }
}

// A key that another entry of the table has, and a word with a letter too many.
static void others_are_refused(void **state) {
  (void)state;
  const tarn__part *part, *other;
  char text[TEXT], keys[128], expected[512], words[TARN__PART_LIST];
  tarn_config *config;
  for (tarn__part_table table = 0; table < TARN__TABLE_COUNT; table++)
    for (int i = 0; (part = tarn__part_at(table, i)) != NULL; i++) {
      snprintf(keys, sizeof keys, "%sq", part->word);
      describe(text, table, keys, "");
      assert_int_equal(parse(&config, text), TARN_STATUS_USAGE);
      snprintf(expected, sizeof expected, "\"%sq\" is not one of ", part->word);
      assert_non_null(strstr(tarn_error_message(), expected));
      snprintf(expected, sizeof expected, "did you mean \"%s\"?", part->word);
      if (!strstr(tarn_error_message(), expected)) fail_msg("%s", tarn_error_message());
      for (int o = 0; (other = tarn__part_at(table, o)) != NULL; o++)
        for (int k = 0; k < other->option_count; k++) {
          const char *key = other->options[k].name;
          if (tarn__part_option(part, key)) continue;
          snprintf(keys, sizeof keys, ", %s: 1", key);
          describe(text, table, part->word, keys);
          assert_int_equal(parse(&config, text), TARN_STATUS_USAGE);
          snprintf(expected, sizeof expected, "%s %s has no %s; there is one with %s", tarn__part_noun(table),
                   part->word, key, tarn__part_list(words, table, tarn__part_has_key, key));
          if (!strstr(tarn_error_message(), expected)) fail_msg("%s", tarn_error_message());
        }
    }
}

static void expect_refused(const char *text, const char *message) {
  tarn_config *config;
  assert_int_equal(parse(&config, text), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(), message);
}

#define LM "decoder: { layers: K }\nkinds:\n  K: "

// A word of another program for an activation: all of ours are named, and the one that is meant.
static void expect_word_refused(const char *word, const char *meant) {
  char text[256], message[512];
  const tarn__part *part;
  snprintf(text, sizeof text, LM "{ ffn: { width: 8, activation: %s } }\n", word);
  int used = snprintf(message, sizeof message, "p.yaml:3: kinds.K.ffn.activation: \"%s\" is not one of ", word);
  for (int i = 0; (part = tarn__part_at(TARN__TABLE_ACTIVATION, i)) != NULL; i++)
    used += snprintf(message + used, sizeof message - (size_t)used, "%s%s", i ? ", " : "", part->word);
  snprintf(message + used, sizeof message - (size_t)used, "; did you mean \"%s\"?", meant);
  expect_refused(text, message);
}

static void keys_of_parts_are_checked(void **state) {
  (void)state;
  expect_refused(LM "{ ffn: { hidden_size: 3 } }\n",
                 "p.yaml:3: unknown key \"hidden_size\" in kinds.K.ffn; did you mean \"width\"?");
  expect_refused(LM "{ ffn: { type: fnn } }\n",
                 "p.yaml:3: kinds.K.ffn.type: \"fnn\" is not one of ffn, glu, geglu, reglu, swiglu, liglu, moe, "
                 "switch, product_keys, gated_linear; did you mean \"ffn\"?");
  expect_refused(LM "{ ffn: big }\n",
                 "p.yaml:3: kinds.K.ffn: \"big\" is neither a number nor one of ffn, glu, geglu, reglu, swiglu, liglu, "
                 "moe, switch, product_keys, gated_linear");
  expect_refused(LM "{ ffn: { type: switch, capacity: 0 } }\n",
                 "p.yaml:3: kinds.K.ffn.capacity: 0 is out of range (0 < x <= 1048576)");
  expect_refused(LM "{ ffn: { type: moe, experts: 3, top: 4 } }\n",
                 "p.yaml:3: kinds.K.ffn.top: 4 choices, but there are 3 experts");
  expect_refused(LM "{ ffn: { type: moe, gating: noisy, top: 1 } }\n",
                 "p.yaml:3: kinds.K.ffn.top: with gating: noisy there are 2 choices or more: the gate of a single one "
                 "is 1");
  expect_refused(LM "{ ffn: { type: moe, gating: noisy, experts: 2 } }\n",
                 "p.yaml:3: kinds.K.ffn.top: with gating: noisy there are fewer choices than experts");
  expect_refused(LM "{ ffn: { type: moe, gating: noisy, balance: 0.1 } }\n",
                 "p.yaml:3: kinds.K.ffn.balance: with gating: noisy there are the losses `importance` and `load`");
  expect_refused(LM "{ ffn: { type: moe, gating: noisy, noise: 0.1 } }\n",
                 "p.yaml:3: kinds.K.ffn.noise: with gating: noisy the size of the noise is learnt");
  expect_refused(LM "{ ffn: { type: moe, load: 0.1 } }\n",
                 "p.yaml:3: kinds.K.ffn.load: with gating: softmax the loss of balance has the weight `balance`");
  // Zero has as little effect there as any other weight.
  expect_refused(LM "{ ffn: { type: moe, importance: 0 } }\n",
                 "p.yaml:3: kinds.K.ffn.importance: with gating: softmax the loss of balance has the weight `balance`");
  expect_refused(LM "{ ffn: { type: moe, gating: noisy, balance: 0 } }\n",
                 "p.yaml:3: kinds.K.ffn.balance: with gating: noisy there are the losses `importance` and `load`");
  expect_refused(LM "{ ffn: { type: moe, gating: noisy, noise: 0 } }\n",
                 "p.yaml:3: kinds.K.ffn.noise: with gating: noisy the size of the noise is learnt");
  expect_refused(LM "{ ffn: { type: moe, gating: nois } }\n",
                 "p.yaml:3: kinds.K.ffn.gating: \"nois\" is not one of softmax, noisy; did you mean \"noisy\"?");
  expect_refused(LM "{ ffn: { type: switch, gating: noisy } }\n",
                 "p.yaml:3: kinds.K.ffn.gating: channel mixer switch has no gating; there is one with moe");
  expect_refused(LM "{ frozen: yes, ffn: { type: moe, train_router: yes } }\n",
                 "p.yaml:3: kinds.K.ffn.train_router: nothing of a frozen layer is trained; use frozen: matrices in "
                 "the kind");
  expect_refused(LM "{ norm: none, norm_type: rms }\n",
                 "p.yaml:3: kinds.K.norm_type: a layer with norm none has none to choose; leave it out");
  expect_refused(LM "{ residual: no, norm_type: rms }\n",
                 "p.yaml:3: kinds.K.norm_type: a layer without residual has no norm; leave it out");
  expect_refused(LM "{ ffn: { type: swiglu, width: 0 } }\n",
                 "p.yaml:3: kinds.K.ffn.width: 0 is out of range (1 .. 1048576)");
  expect_refused(LM "{ ffn: { type: swiglu, activation: elu } }\n",
                 "p.yaml:3: kinds.K.ffn.activation: channel mixer swiglu has no activation; there is one with ffn, "
                 "moe and switch");
  expect_refused(LM "{ ffn: { type: swigul } }\n",
                 "p.yaml:3: kinds.K.ffn.type: \"swigul\" is not one of ffn, glu, geglu, reglu, swiglu, liglu, moe, "
                 "switch, product_keys, gated_linear; did you mean \"swiglu\"?");
  expect_word_refused("silu", "swish");
  expect_refused(LM "{ ffn: { width: 0, activation: gelu } }\n",
                 "p.yaml:3: kinds.K.ffn.activation: an FFN of width 0 is none; leave it out, or give a width");
  expect_refused(LM "{ ffn: -1 }\n", "p.yaml:3: kinds.K.ffn: -1 is out of range (0 .. 1048576)");
  expect_refused(LM "{ ffn: [1] }\n", "p.yaml:3: kinds.K.ffn: expected one value, not a list");
  expect_refused(LM "{ norm_type: { epsilon: 0 } }\n",
                 "p.yaml:3: kinds.K.norm_type.epsilon: 0 is out of range (1e-30 <= x <= 1)");
  expect_word_refused("gelu_new", "gelu_tanh");
  expect_refused(LM "{ norm_type: { type: rms, epsilon: -1 } }\n",
                 "p.yaml:3: kinds.K.norm_type.epsilon: -1 is out of range (1e-30 <= x <= 1)");
}

static void keys_of_mixers_and_positions_are_checked(void **state) {
  (void)state;
  expect_refused(LM "{ mixer: pooling, window: 1 }\n", "p.yaml:3: kinds.K.window: 1 is out of range (2 .. 65536)");
  expect_refused(
      "encoder: { layers: K }\ndecoder: { layers: L }\nkinds:\n  L:\n  K: { mixer: pooling, window: 2 }\n",
      "p.yaml:5: kinds.K.window: 2 is even, but a layer of the encoder sees as many tokens before it as after "
      "it; use 3");
  expect_refused(
      LM "{ mixer: gmlp, tokens: 1023 }\n",
      "p.yaml:3: kinds.K.tokens: 1023 places are fewer than model.max_length (1024), and a sentence may be as "
      "long as that; leave the key out, or lower model.max_length");
  expect_refused(LM "{ mixer: amlp, hidden: 33 }\n",
                 "p.yaml:3: kinds.K.hidden: 33 is odd, but one half gates the other; use 34");
  expect_refused(LM "{ mixer: synthesizer_random, fixed: yes, frozen: yes }\n",
                 "p.yaml:3: kinds.K.fixed: the whole layer is frozen; leave it out");
  expect_refused(LM "{ mixer: synthesizer_dense, heads: 3 }\nmodel: { d_model: 64 }\n",
                 "p.yaml:3: kinds.K.heads: 3 does not divide model.d_model 64");
  expect_refused(LM "{ mixer: synthesizer_factorised_dense, factor: 9 }\nmodel: { max_length: 8 }\n",
                 "p.yaml:3: kinds.K.factor: 9 is more than model.max_length (8)");
  expect_refused(LM "{ mixer: { type: gru } }\n", "p.yaml:3: kinds.K.mixer: expected one value, not a map");
  expect_refused(
      "encoder: { layers: K }\ndecoder: { layers: L }\nkinds:\n  L:\n  K: { mixer: pooling, window: 4 }\n",
      "p.yaml:5: kinds.K.window: 4 is even, but a layer of the encoder sees as many tokens before it as after "
      "it; use 3 or 5");
  expect_refused(LM "{ heads: 8 }\nmodel: { d_model: 64, positions: { type: rotary, share: 0.6 } }\n",
                 "p.yaml:3: kinds.K.heads: 8 heads have 8 columns each, of which rotary positions turn 4.8; it must be "
                 "an even number: change heads, model.d_model or model.positions.share");
  expect_refused(LM "{ heads: 8 }\nmodel: { positions: { type: rotary, base: 1 } }\n",
                 "p.yaml:4: model.positions.base: 1 is out of range (1 < x <= 1000000000000)");
  expect_refused(LM "{ mixer: evolved_conv }\nmodel: { d_model: 15, positions: none }\n",
                 "p.yaml:3: kinds.K.mixer: one of its branches is half as wide as model.d_model, 15, which is odd");
  expect_refused(LM "{ heads: 4, head_width: 5 }\nmodel: { positions: rotary }\n",
                 "p.yaml:3: kinds.K.heads: 4 heads have 5 columns each, of which rotary positions turn 5; it must be "
                 "an even number: change heads, model.d_model or model.positions.share");
  expect_refused(LM "{ heads: 8, kv_heads: 3 }\n", "p.yaml:3: kinds.K.kv_heads: 3 does not divide heads 8");
  expect_refused(LM "{ heads: 8 }\nmodel: { positions: { type: t5, buckets: 7 } }\n",
                 "p.yaml:4: model.positions.buckets: 7 is odd; half of the buckets are for keys after the query");
  expect_refused(LM "{ heads: 8 }\nmodel: { positions: { type: t5, max_distance: 16 } }\n",
                 "p.yaml:4: model.positions.max_distance: 16 is not more than 16, half of the buckets, "
                 "which hold one distance each");
  expect_refused(LM "{ heads: 8 }\nmodel: { positions: { type: shaw, max_relative_position: 0 } }\n",
                 "p.yaml:4: model.positions.max_relative_position: 0 is out of range (1 .. 65536)");
  expect_refused("model: { positions: shaw }\ndecoder: { layers: G }\nkinds: { G: { mixer: gru }, K: }\n",
                 "p.yaml:1: model.positions: shaw adds to the scores of queries and keys, and no layer has any; mixers "
                 "that have them: attention");
  expect_refused(LM "{ heads: 8 }\nmodel: { positions: { type: shape, shift: 0 } }\n",
                 "p.yaml:4: model.positions.shift: 0 is out of range (1 .. 16777216)");
  expect_refused("model: { positions: t5 }\ndecoder: { layers: A B }\nkinds:\n  A: { heads: 2 }\n  B: { heads: 4 }\n",
                 "p.yaml:5: kinds.B.heads: there are 4, but with model.positions t5 all layers of the decoder share "
                 "biases by head, "
                 "and the first of them has 2");
  expect_refused(LM "{ heads: 8 }\nmodel: { positions: { type: alibi, exponent: 0 } }\n",
                 "p.yaml:4: model.positions.exponent: 0 is out of range (0 < x <= 64)");
  expect_refused(LM "{ heads: 8 }\nmodel: { positions: { type: alibi, alibi_bias_max: 4 } }\n",
                 "p.yaml:4: unknown key \"alibi_bias_max\" in model.positions; did you mean \"exponent\"?");
}

// What a key is called elsewhere, or where it stands, whichever table has it.
static void keys_elsewhere_are_found(void **state) {
  (void)state;
  expect_refused(LM "\nmodel: { heads: 8 }\n", "p.yaml:4: unknown key \"heads\" in model; there is one in kinds");
  expect_refused(LM "\nheads: 8\n", "p.yaml:4: unknown section \"heads\"; it is a key of kinds");
  expect_refused(LM "\nmodel: { positions: rotary, rope_theta: 8 }\n",
                 "p.yaml:4: unknown key \"rope_theta\" in model; did you mean \"model.positions.base\"?");
  expect_refused(LM "\nmodel: { layer_norm_eps: 1 }\n",
                 "p.yaml:4: unknown key \"layer_norm_eps\" in model; did you mean \"model.norm_type.epsilon\"?");
  expect_refused(LM "{ epsilon: 1 }\n",
                 "p.yaml:3: unknown key \"epsilon\" in kinds.K; there is one in kinds.NAME.norm_type");
  expect_refused(LM "{ ffn: { heads: 4 } }\n", "p.yaml:3: unknown key \"heads\" in kinds.K.ffn; there is one in kinds");
  expect_refused(LM "\nmodel: { positions: rotary }\nrope_theta: 8\n",
                 "p.yaml:5: unknown section \"rope_theta\"; did you mean \"model.positions.base\"?");
}

// A key of a part is set whether the part is written as a word, a number or a map.
static void parts_are_opened_for_their_keys(void **state) {
  (void)state;
  static const struct {
    const char *text, *set, *same;
  } cases[] = {
      {LM "\nmodel: { positions: rotary }\n", "model.positions.base=500",
       LM "\nmodel: { positions: { type: rotary, base: 500 } }\n"},
      {LM "\nmodel: { norm_type: rms }\n", "model.norm_type.epsilon=0.5",
       LM "\nmodel: { norm_type: { type: rms, epsilon: 0.5 } }\n"},
      {LM "{ norm_type: rms }\n", "kinds.K.norm_type.epsilon=0.5", LM "{ norm_type: { type: rms, epsilon: 0.5 } }\n"},
      {LM "{ ffn: 8 }\n", "kinds.K.ffn.activation=gelu", LM "{ ffn: { width: 8, activation: gelu } }\n"},
      {LM "{ ffn: 8 }\n", "kinds.K.ffn.width=16", LM "{ ffn: 16 }\n"},
      {LM "{ ffn: ffn }\n", "kinds.K.ffn.width=16", LM "{ ffn: 16 }\n"},
      {LM "\nmodel: { positions: rotary }\n", "model.positions=learned", LM "\nmodel: { positions: learned }\n"},
      {LM "\n", "model.norm_type.epsilon=0.5", LM "\nmodel: { norm_type: { epsilon: 0.5 } }\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_config *config;
    char *text, *same = written(cases[i].same);
    if (tarn_config_parse(&config, "p.yaml", cases[i].text, strlen(cases[i].text), &cases[i].set, 1) != TARN_STATUS_OK)
      fail_msg("%s", tarn_error_message());
    assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
    assert_string_equal(text, same);
    tarn_config_text_close(&text);
    tarn_config_text_close(&same);
    tarn_config_close(&config);
  }
}

// What is at its default, or that of the model, is a word or a number as it always was.
static void parts_are_written_shortly(void **state) {
  (void)state;
  static const struct {
    const char *text, *there, *absent;
  } cases[] = {
      {LM "{ ffn: { width: 8 } }\n", "\n    ffn: 8\n", "norm_type"},
      {LM "{ ffn: { width: 8, activation: gelu } }\nmodel: { activation: gelu }\n", "\n    ffn: 8\n", "type: ffn"},
      {LM "{ ffn: { width: 8, activation: gelu } }\n",
       "\n    ffn:\n      type: ffn\n      width: 8\n      activation: gelu\n", "norm_type"},
      {LM "{ ffn: { width: 0 } }\n", "\n    ffn: 0\n", "type: ffn"},
      {LM "{ norm_type: { epsilon: 1e-6 } }\n", "\n    norm_type:\n      type: layer\n      epsilon: 1e-06\n",
       "\n  norm_type"},
      {LM "{ norm_type: { epsilon: 1e-6 } }\nmodel: { norm_type: { epsilon: 1e-6 } }\n",
       "\n  norm_type:\n    type: layer\n    epsilon: 1e-06\n", "\n    norm_type"},
      {LM "{ norm_type: layer }\nmodel: { norm_type: { epsilon: 1e-6 } }\n", "\n    norm_type: layer\n",
       "\n    norm_type:\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_config *config;
    char *text;
    if (parse(&config, cases[i].text) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
    assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
    if (!strstr(text, cases[i].there) || strstr(text, cases[i].absent)) fail_msg("%zu: %s", i, text);
    tarn_config_text_close(&text);
    tarn_config_close(&config);
    expect_round_trip(cases[i].text);
  }
}

// The norm's kind and epsilon reach the final norm of the stack, and come from its highest layer.
static void final_norms_have_the_kind(void **state) {
  (void)state;
  tarn_config *config;
  tarn__model *model;
  assert_int_equal(parse(&config,
                         "model: { d_model: 8, norm: pre }\ndecoder: { layers: L K }\n"
                         "kinds: { L: , K: { norm_type: { epsilon: 0.25 } } }\n"),
                   TARN_STATUS_OK);
  assert_int_equal(tarn__model_open(&model, config, 9, 9, TARN__F32, false), TARN_STATUS_OK);
  assert_ptr_equal(model->decoder.norm.use.part, config->kinds[1].norm_type.part);
  assert_ptr_equal(model->decoder.norm.use.keys, config->kinds[1].norm_type.keys);
  double epsilon;
  assert_true(tarn__kind_number(&config->kinds[1], "norm_type.epsilon", &epsilon) && epsilon == 0.25);
  assert_true(tarn__kind_number(&config->kinds[0], "norm_type.epsilon", &epsilon) && epsilon == 1e-5);
  tarn__model_close(&model);
  tarn_config_close(&config);
  // In both stacks, and where the highest layer is left out.
  assert_int_equal(parse(&config,
                         "model: { d_model: 8, norm: pre }\nencoder: { layers: L K }\n"
                         "decoder: { layers: L K, layers_to_keep: [1] }\n"
                         "kinds: { L: , K: { norm_type: { type: rms, epsilon: 0.25 } } }\n"),
                   TARN_STATUS_OK);
  assert_int_equal(tarn__model_open(&model, config, 9, 9, TARN__F32, false), TARN_STATUS_OK);
  assert_ptr_equal(model->encoder.norm.use.keys, config->kinds[1].norm_type.keys);
  assert_ptr_equal(model->decoder.norm.use.keys, config->kinds[1].norm_type.keys);
  assert_ptr_equal(model->decoder.norm.use.part, &tarn__norm_rms.part);
  tarn__model_close(&model);
  tarn_config_close(&config);
  // One that stands behind post-norm layers, and is a part that may be frozen; and none behind pre-norm layers.
  assert_int_equal(parse(&config,
                         "model: { d_model: 8 }\nencoder: { layers: L, final_norm: yes }\n"
                         "decoder: { layers: K, final_norm: no }\n"
                         "kinds: { L: , K: { norm: pre } }\ntrain: { freeze: { encoder.norm: 5 } }\n"),
                   TARN_STATUS_OK);
  assert_int_equal(tarn__model_open(&model, config, 9, 9, TARN__F32, false), TARN_STATUS_OK);
  assert_ptr_equal(model->encoder.norm.use.part, &tarn__norm_layer.part);
  assert_null(model->decoder.norm.use.part);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

// A scheme that turns queries and keys stays valid where pruning leaves no layer that has any.
static void pruned_models_stay_valid(void **state) {
  (void)state;
  tarn_config *config;
  if (parse(&config,
            "model: { positions: rotary }\ndecoder: { layers: G K, layers_to_keep: [1] }\n"
            "kinds: { G: { mixer: gru }, K: }\n") != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  tarn_config_close(&config);
  expect_refused("model: { positions: rotary }\ndecoder: { layers: G }\nkinds: { G: { mixer: gru }, K: }\n",
                 "p.yaml:1: model.positions: rotary turns queries and keys, and no layer has any; mixers that have "
                 "them: attention");
  expect_refused(
      "model: { positions: alibi }\ndecoder: { layers: G }\nkinds: { G: { mixer: gru }, K: }\n",
      "p.yaml:1: model.positions: alibi adds to the scores of queries and keys, and no layer has any; mixers "
      "that have them: attention");
}

static tarn_status refuse_nested(const tarn__part_site *site, void *keys) {
  (void)keys;
  return tarn__part_fail(site, "slope", "asked");
}

// Keys of a part within a part are checked and looked at as those of any other.
static void parts_within_parts_are_reached(void **state) {
  (void)state;
  typedef struct nested_keys {
    double drop;
  } nested_keys;
  static const tarn__option options[] = {
      {"drop", TARN__KEY_REAL(nested_keys, drop, 0, 1), .value = "0", .help = "", .random = true}};
  const tarn__yaml_node root = {.type = TARN__YAML_SCALAR, .text = "", .origin = "p.yaml", .line = 1};
  tarn_config *config;
  double p;
  char key[TARN__KIND_KEY];
  assert_int_equal(parse(&config, LM "{ ffn: 8 }\n"), TARN_STATUS_OK);
  const tarn_kind *kind = &config->kinds[0];
  tarn_part_use *use = (tarn_part_use *)(void *)(uintptr_t)tarn__kind_part(kind, "ffn.activation");
  nested_keys keys = {0.5};
  tarn__activation_entry entry = {.part = {.word = "leaky", TARN__PART_KEYS(nested_keys, options)}};
  config->kinds[0].dropout = 0;
  assert_false(tarn__kind_random(key, kind, &p));
  *use = (tarn_part_use){&entry.part, &keys};
  assert_true(tarn__kind_random(key, kind, &p));
  assert_string_equal(key, "ffn.activation.drop");
  assert_true(p == 0.5);
  assert_int_equal(tarn__parts_resolve_kind(config, kind, &root), TARN_STATUS_OK);
  entry.part.resolve = refuse_nested;
  assert_int_equal(tarn__parts_resolve_kind(config, kind, &root), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(), "p.yaml:1: kinds.K.ffn.activation.slope: asked");
  tarn_config_close(&config);
}

// Whether a model ends at max_length is said by its position scheme.
static void schemes_say_where_positions_end(void **state) {
  (void)state;
  const tarn__part *part;
  for (int i = 0; (part = tarn__part_at(TARN__TABLE_POSITION, i)) != NULL; i++) {
    char text[TEXT];
    tarn_config *config;
    tarn__model *model;
    snprintf(text, sizeof text, LM "{ heads: 2 }\nmodel: { d_model: 8, max_length: 17, positions: %s }\n", part->word);
    if (parse(&config, text) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
    assert_int_equal(tarn__model_open(&model, config, 9, 9, TARN__F32, false), TARN_STATUS_OK);
    // Without positions there is no end, nor of distances; only learned ones are a table.
    const bool endless = part == &tarn__position_none.part || part == &tarn__position_alibi.part ||
                         part == &tarn__position_t5.part || part == &tarn__position_shaw.part;
    assert_int_equal(tarn__model_longest(model) == 17, !endless);
    assert_int_equal(tarn__model_longest(model) > 1 << 20, endless);
    assert_int_equal(model->target_positions != NULL, part == &tarn__position_learned.part);
    tarn__model_close(&model);
    tarn_config_close(&config);
  }
}

// So it is by mixers whose weights are indexed by position.
static void mixers_say_where_positions_end(void **state) {
  (void)state;
  const tarn__part *part;
  int bounded = 0;
  for (int i = 0; (part = tarn__part_at(TARN__TABLE_MIXER, i)) != NULL; i++) {
    const tarn__mixer_entry *mixer = (const tarn__mixer_entry *)(const void *)part;
    char text[TEXT];
    tarn_config *config;
    tarn__model *model;
    if (!mixer->causal) continue;
    snprintf(text, sizeof text, LM "{ mixer: %s }\nmodel: { d_model: 8, max_length: 17, positions: none }\n",
             part->word);
    if (parse(&config, text) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
    assert_int_equal(tarn__model_open(&model, config, 9, 9, TARN__F32, false), TARN_STATUS_OK);
    assert_int_equal(tarn__model_longest(model) == 17, mixer->bounded);
    bounded += mixer->bounded;
    tarn__model_close(&model);
    tarn_config_close(&config);
  }
  assert_true(bounded > 0);
}

static void what_a_part_cannot_do_is_refused(void **state) {
  (void)state;
  char words[TARN__PART_LIST], text[TEXT], expected[512];
  const tarn__part *part;
  tarn_config *config;
  for (int i = 0; (part = tarn__part_at(TARN__TABLE_MIXER, i)) != NULL; i++) {
    snprintf(text, sizeof text, "decoder:\n  layers: K\nkinds: { K: { mixer: %s } }\n", part->word);
    const tarn_status status = parse(&config, text);
    if (tarn__part_is_causal(part, NULL)) {
      assert_int_equal(status, TARN_STATUS_OK);
      tarn_config_close(&config);
      continue;
    }
    assert_int_equal(status, TARN_STATUS_USAGE);
    snprintf(expected, sizeof expected,
             "p.yaml:2: decoder.layers: layer 1 is of kind K, whose mixer %s reads later tokens too; it can stand in "
             "the encoder only; in a decoder there are %s",
             part->word, tarn__part_list(words, TARN__TABLE_MIXER, tarn__part_is_causal, NULL));
    assert_string_equal(tarn_error_message(), expected);
  }
}

// A mixer like the first one, but without a form for decoding.
static void decoding_needs_a_form(void **state) {
  (void)state;
  tarn_config *config;
  assert_int_equal(parse(&config, LM "{ heads: 2 }\n"), TARN_STATUS_OK);
  assert_int_equal(tarn__config_check_decoding(config), TARN_STATUS_OK);
  tarn__mixer_entry mixer = *tarn__mixer_of(&config->kinds[0]);
  mixer.decodes = false;
  config->kinds[0].mixer.part = &mixer.part;
  assert_int_equal(tarn__config_check_decoding(config), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(),
                         "p.yaml: kinds.K.mixer: attention has no form for decoding token by token; mixers that have "
                         "one are "));
  const tarn__yaml_node root = {.type = TARN__YAML_SCALAR, .text = "", .origin = "p.yaml", .line = 1};
  config->valid.bleu = true;
  assert_int_equal(tarn__parts_check_places(config, &root), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(),
                      "p.yaml:1: valid.bleu: the mixer attention of kind K has no form for decoding token by token; "
                      "set it to no");
  assert_int_equal(tarn__parts_check_bleu(config, &root, "sets.test"), TARN_STATUS_USAGE);
  assert_string_equal(
      tarn_error_message(),
      "p.yaml:1: sets.test.bleu: the mixer attention of kind K has no form for decoding token by token; "
      "set it to no");
  tarn_config_close(&config);
}

// The default of a part may be another entry than the first.
static void defaults_may_be_any_entry(void **state) {
  (void)state;
  tarn_config *config;
  assert_int_equal(parse(&config, LM "{ heads: 2, ffn: 8 }\n"), TARN_STATUS_OK);
  const tarn__section *section = tarn__config_section(TARN__SECTION_MODEL);
  int i = 0;
  while (strcmp(section->options[i].name, "activation") != 0) i++;
  tarn__option option = section->options[i];
  assert_int_equal(option.type, TARN__OPTION_PART);
  tarn_part_use first = {tarn__part_at(option.table, 0), NULL}, second = {tarn__part_at(option.table, 1), NULL};
  option.inherits = 0;
  option.value = NULL;
  assert_true(tarn__option_is_default(&option, &first, &config->model));
  assert_false(tarn__option_is_default(&option, &second, &config->model));
  option.value = second.part->word;
  assert_false(tarn__option_is_default(&option, &first, &config->model));
  assert_true(tarn__option_is_default(&option, &second, &config->model));
  tarn_config_close(&config);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_are_written_and_read),
      cmocka_unit_test(entries_are_documented),
      cmocka_unit_test(others_are_refused),
      cmocka_unit_test(keys_of_parts_are_checked),
      cmocka_unit_test(keys_of_mixers_and_positions_are_checked),
      cmocka_unit_test(keys_elsewhere_are_found),
      cmocka_unit_test(parts_are_opened_for_their_keys),
      cmocka_unit_test(parts_are_written_shortly),
      cmocka_unit_test(final_norms_have_the_kind),
      cmocka_unit_test(pruned_models_stay_valid),
      cmocka_unit_test(parts_within_parts_are_reached),
      cmocka_unit_test(schemes_say_where_positions_end),
      cmocka_unit_test(mixers_say_where_positions_end),
      cmocka_unit_test(what_a_part_cannot_do_is_refused),
      cmocka_unit_test(decoding_needs_a_form),
      cmocka_unit_test(defaults_may_be_any_entry),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
