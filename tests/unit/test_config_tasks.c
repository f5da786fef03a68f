// What a description says of the task: architecture, measures, scored sets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "config_text.h"
#include "task/labelled.h"
#include "task/task.h"

// What a model learns is decided by its stacks; the key says the same or nothing.
static void tasks_have_measures(void **state) {
  (void)state;
  static const struct {
    const char *text, *override, *message;
  } cases[] = {
      {SMALL, "model.architecture=decoder",
       "--set model.architecture=decoder: model.architecture: a decoder has no encoder; leave out the section encoder, "
       "or choose encoder-decoder"},
      {SMALL, "valid.metric=bpc",
       "--set valid.metric=bpc: valid.metric: a translation model has no bpc; its measures are loss, nll, ppl, bleu"},
      {"decoder: { layers: L }\nkinds: { L: }\nvalid:\n  metric: bleu\n", NULL,
       "m.yaml:4: valid.metric: a language model has no bleu; its measures are loss, nll, ppl, bpc, bpb"},
      {"decoder: { layers: L }\nkinds: { L: }\nmodel: { architecture: encoder-decoder }\n", NULL,
       "m.yaml:3: model.architecture: encoder-decoder needs encoder.layers, or encoder.place; a language model is a "
       "decoder"},
      {"encoder: { layers: L }\nkinds: { L: }\nmodel: { task: translation }\n", NULL,
       "m.yaml:3: model.task: translation is learnt by an encoder and a decoder or a decoder alone; this is an encoder "
       "alone"},
      {"encoder: { layers: L }\nkinds: { L: }\nmodel: { architecture: decoder }\n", NULL,
       "m.yaml:3: model.architecture: a decoder has no encoder; leave out the section encoder, or choose "
       "encoder-decoder"},
      {SMALL, "masking={share: 0.2}",
       "--set masking={share: 0.2}: masking.share: a translation model has no masking; leave the section out"},
      {SMALL, "model.segments=2",
       "--set model.segments=2: model.segments: is for an encoder alone, whose rows may have two sentences"},
      {"decoder: { layers: L }\nkinds: { L: }\nmodel: { segments: 2 }\n", NULL,
       "m.yaml:3: model.segments: is for an encoder alone, whose rows may have two sentences"},
      {"encoder: { layers: L }\nkinds: { L: }\nmodel: { embeddings: decoder }\n", NULL,
       "m.yaml:3: model.embeddings: there is an encoder alone; choose encoder_output or none"},
      {"encoder: { layers: L }\nkinds: { L: }\nmodel: { embeddings: none, output_rank: 4 }\n", NULL,
       "m.yaml:3: model.output_rank: the head of a masked language model has one matrix of words"},
      {"encoder: { layers: L }\nkinds: { L: }\nmodel: { frozen_embeddings: encoder }\n", NULL,
       "m.yaml:3: model.frozen_embeddings: with this model.embeddings the encoder shares its matrix with the output "
       "layer, which is trained; set model.embeddings to none"},
      {"encoder: { layers: L }\nkinds: { L: }\ntrain: { cache_frozen: yes }\n", NULL,
       "m.yaml:3: train.cache_frozen: masks change what the encoder reads in every epoch"},
      {"encoder: { layers: L }\nkinds: { L: }\nmasking: { random: 0.5, keep: 0.6 }\n", NULL,
       "m.yaml:3: masking.keep: masking.random and masking.keep are more than 1 together"},
      {"encoder: { layers: L }\nkinds: { L: }\nmasking: { share: 0 }\n", NULL,
       "m.yaml:3: masking.share: 0 is out of range (0 < x <= 1)"},
      {"encoder: { layers: L }\nkinds: { L: }\nvalid: { metric: bleu }\n", NULL,
       "m.yaml:3: valid.metric: a masked language model has no bleu; its measures are loss, nll, ppl, accuracy"},
      {"encoder: { layers: L }\ndecoder: { layers: L }\nkinds: { L: }\nmodel: { architecture: encoder_decoder }\n",
       NULL,
       "m.yaml:4: model.architecture: \"encoder_decoder\" is not one of encoder-decoder, decoder, encoder; did you "
       "mean "
       "\"encoder-decoder\"?"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_error(cases[i].text, cases[i].override, cases[i].message);
  tarn_config *config = parsed(
      "decoder: { layers: L }\nkinds: { L: }\nmodel: { architecture: decoder, embeddings: none }\n"
      "valid: { metric: bpc }\n",
      NULL);
  char *text;
  assert_int_equal(config->valid.metric, TARN__METRIC_BPC);
  assert_int_equal(config->model.architecture, TARN_ARCHITECTURE_DECODER);
  assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
  assert_null(strstr(text, "architecture"));  // what follows from the stacks is not written
  assert_non_null(strstr(text, "metric: bpc"));
  tarn_config_text_close(&text);
  tarn_config_close(&config);
}

// The head of a classifier, and its labels, come back as they were written; names hold what they like.
static const char *word_of_measure(int i) {
  const tarn_measure *measure = tarn_measure_of(i);
  return measure ? measure->word : NULL;
}

// A line that names all words of a list: BEGIN "first, second, ..." END.
static const char *with_words(const char *begin, const char *(*word)(int index), const char *end) {
  static char line[512];
  snprintf(line, sizeof line, "%s", begin);
  for (int i = 0; word(i); i++) {
    const size_t used = strlen(line);
    snprintf(line + used, sizeof line - used, "%s%s", i > 0 ? ", " : "", word(i));
  }
  strcat(line, end);
  return line;
}

static void wrong_words_are_told_the_right_ones(void **state) {
  (void)state;
  expect_error("encoder: { layers: L }\nkinds: { L: }\nmodel: { task: masked-languge-model }\n", NULL,
               with_words("m.yaml:3: model.task: \"masked-languge-model\" is not one of ", tarn_task_word,
                          "; did you mean \"masked-language-model\"?"));
  expect_error(
      "decoder: { layers: L }\nkinds: { L: }\nvalid: { metric: pll }\n", NULL,
      with_words("m.yaml:3: valid.metric: \"pll\" is not one of ", word_of_measure, "; did you mean \"nll\"?"));
}

static void measures_have_two_spellings(void **state) {
  (void)state;
  static const char *const names[] = {"valid.metric=loss", "valid.metric=valid/loss", "valid.metric=valid_loss"};
  for (size_t i = 0; i < 3; i++) {
    tarn_config *config = parsed(SMALL, names[i]);
    assert_int_equal(config->valid.metric, TARN__METRIC_LOSS);
    tarn_config_close(&config);
  }
  tarn_config *config = parsed(SMALL, NULL);
  assert_int_equal(config->valid.metric, TARN__METRIC_BLEU);
  tarn_config_close(&config);
  expect_error(SMALL, "valid.metric=valid_blue",
               with_words("--set valid.metric=valid_blue: valid.metric: \"blue\" is not one of ", word_of_measure,
                          "; did you mean \"bleu\"?"));
}

static void classifiers_know_their_labels(void **state) {
  (void)state;
  static const char small[] =
      "model: { task: classification, d_model: 8 }\nencoder: { layers: L }\nkinds: { L: }\n"
      "head: { labels: \"no|yes, || or \\\"perhaps\\\"\", hidden: 4 }\n";
  tarn_config *config = parsed(small, "head.dropout=0.25");
  char *text, *again;
  for (int round = 0; round < 2; round++) {
    tarn__label_names names;
    assert_true(config->model.task == TARN__LEARNS_CLASSIFICATION && config->valid.metric == TARN__METRIC_ACCURACY);
    assert_true(config->head.pool == TARN_POOL_CLS && config->head.hidden == 4 && config->head.dropout == 0.25);
    assert_int_equal(tarn__label_names_open(&names, config->head.labels), TARN_STATUS_OK);
    assert_int_equal(names.count, 2);
    assert_string_equal(names.names[0], "no");
    assert_string_equal(names.names[1], "yes, | or \"perhaps\"");
    assert_int_equal(tarn__label_names_join(&again, (const char *const *)(const void *)names.names, 2), TARN_STATUS_OK);
    assert_string_equal(again, config->head.labels);
    tarn__free(again);
    tarn__label_names_close(&names);
    if (round) break;
    assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
    tarn_config_close(&config);
    config = parsed(text, NULL);
    assert_int_equal(tarn_config_write(config, &again), TARN_STATUS_OK);
    assert_string_equal(text, again);
    tarn_config_text_close(&again);
    tarn_config_text_close(&text);
  }
  tarn_config_close(&config);
  tarn__label_names empty;
  assert_int_equal(tarn__label_names_open(&empty, "a|"), TARN_STATUS_USAGE);
  assert_int_equal(tarn__label_names_open(&empty, "|a"), TARN_STATUS_USAGE);
  assert_int_equal(tarn__label_names_open(&empty, NULL), TARN_STATUS_OK);
  config = parsed("model: { task: regression }\ndecoder: { layers: L }\nkinds: { L: }\n", NULL);
  assert_true(config->head.pool == TARN_POOL_LAST && !config->head.labels && config->train.label_smoothing == 0.0 &&
              config->valid.metric == TARN__METRIC_PEARSON);
  tarn_config_close(&config);
  expect_error(small, "head.labels=a|b|c|b",
               "--set head.labels=a|b|c|b: head.labels: classes 2 and 4 are both called \"b\"");
  expect_error(SMALL, "head.pool=mean",
               "--set head.pool=mean: head.pool: a translation model has no head; leave the section out");
}

// What is suggested is what the model would then take: one that says otherwise leads from one refusal to the next.
static void suggestions_would_be_taken(void **state) {
  (void)state;
#define BARE "{ layers: L }\nkinds: { L: { ffn: 8 } }\n"
#define L "{ layers: L }\nkinds: { L: { heads: 2, ffn: 8 } }\n"
  static const struct {
    const char *text, *override, *message;
  } cases[] = {
      {"model: { embeddings: encoder }\nencoder: " L, NULL,
       "m.yaml:1: model.embeddings: \"encoder\" is not one of none, decoder, encoder_decoder, encoder_output, all; did "
       "you mean \"encoder_output\"?"},
      {"model: { embeddings: encoder }\ndecoder: " L, NULL,
       "m.yaml:1: model.embeddings: \"encoder\" is not one of none, decoder, encoder_decoder, encoder_output, all; did "
       "you mean \"decoder\"?"},
      {"maskng: { share: 0.2 }\nencoder: " L, NULL, "m.yaml:1: unknown section \"maskng\"; did you mean \"masking\"?"},
      {"maskng: { share: 0.2 }\ndecoder: " L, NULL, "m.yaml:1: unknown section \"maskng\""},
      {"model: { segmnts: 2 }\nencoder: " L, NULL,
       "m.yaml:1: unknown key \"segmnts\" in model; did you mean \"segments\"?"},
      {"model: { segmnts: 2 }\ndecoder: " L, NULL, "m.yaml:1: unknown key \"segmnts\" in model"},
      {"train: { share: 0.2 }\nencoder: " L, NULL, "m.yaml:1: unknown key \"share\" in train; there is one in masking"},
      {"train: { share: 0.2 }\ndecoder: " L, NULL, "m.yaml:1: unknown key \"share\" in train"},
      {"train: { lr: 1, lrr: 2 }\ndecoder: " L, NULL, "m.yaml:1: unknown key \"lrr\" in train"},
      {"train: { lr: 1 }\ndecoder: " L, "train.lrr=2",
       "--set train.lrr=2: unknown key \"lrr\" in train; did you mean \"lr\"?"},
      {"train: { lrr: 2 }\ndecoder: " L, NULL, "m.yaml:1: unknown key \"lrr\" in train; did you mean \"lr\"?"},
      {"model: { rope_theta: 8 }\ndecoder: " L, NULL, "m.yaml:1: unknown key \"rope_theta\" in model"},
      {"decoder: " L, "kinds.L.leak_rat=0.5", "--set kinds.L.leak_rat=0.5: unknown key \"leak_rat\" in kinds.L"},
      {"decoder: " BARE, "kinds.L.mixer=fne",
       "--set kinds.L.mixer=fne: kinds.L.mixer: \"fne\" is not one of attention, none, "},
      {"encoder: " BARE, "kinds.L.mixer=fne", "did you mean \"fnet\"?"},
      {"decoder: { layers: R }\nkinds: { M: { mixer: fnet }, L: }\n", NULL,
       "m.yaml:1: decoder.layers: at character 1: kind \"R\" is not defined under kinds; did you mean \"L\"?"},
      {"encoder: " L, "train.freeze={encoder.layer1: 5, encoder.layer2: 6}",
       "--set train.freeze={encoder.layer1: 5, encoder.layer2: 6}: train.freeze: encoder.layer2 is not a part of the "
       "model; there are encoder, embeddings, and sets such as \"encoder.layer1\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_config *config;
    assert_int_equal(parse(&config, cases[i].text, cases[i].override), TARN_STATUS_USAGE);
    const char *said = tarn_error_message();
    const bool whole = i != 13 && i != 14;  // lists of all mixers
    if (whole ? strcmp(said, cases[i].message) != 0 : !strstr(said, cases[i].message))
      fail_msg("%zu: %s: expected %s", i, said, cases[i].message);
    if (i == 13) assert_null(strstr(said, "did you mean"));
  }
#undef L
#undef BARE
}

// Labels are smoothed by default where sentences are translated. What a description says stands, such as that of a run
// from before other tasks had another default; and the smoothed loss chooses no checkpoint unless it is asked to.
static void smoothing_is_for_translation(void **state) {
  (void)state;
#define DECODER "decoder: { layers: L }\nkinds: { L: }\n"
#define ENCODER "encoder: { layers: L }\nkinds: { L: }\n"
#define CLASSES "head: { labels: a|b }\n"
  static const struct {
    const char *text;
    double smoothing;
    int metric;
  } cases[] = {
      {SMALL, 0.1, TARN__METRIC_BLEU},
      {SMALL "valid: { bleu: no }\n", 0.1, TARN__METRIC_NLL},
      {DECODER, 0.0, TARN__METRIC_NLL},
      {ENCODER, 0.0, TARN__METRIC_NLL},
      {"model: { task: classification }\n" CLASSES ENCODER, 0.0, TARN__METRIC_ACCURACY},
      {"model: { task: classification }\n" CLASSES DECODER, 0.0, TARN__METRIC_ACCURACY},
      {"model: { task: regression }\n" ENCODER, 0.0, TARN__METRIC_PEARSON},
      {"train: { label_smoothing: 0.1 }\nvalid: { metric: loss }\n" DECODER, 0.1, TARN__METRIC_LOSS},
      {"train: { label_smoothing: 0.1 }\nvalid: { metric: loss }\n" ENCODER, 0.1, TARN__METRIC_LOSS},
      {"model: { task: classification }\ntrain: { label_smoothing: 0.1 }\n" CLASSES ENCODER, 0.1,
       TARN__METRIC_ACCURACY},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_config *config = parsed(cases[i].text, NULL);
    char *text;
    for (int round = 0; round < 2; round++) {
      if (config->train.label_smoothing != cases[i].smoothing || config->valid.metric != cases[i].metric)
        fail_msg("%s: %g, %d", cases[i].text, config->train.label_smoothing, (int)config->valid.metric);
      if (round) break;
      assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
      assert_non_null(strstr(text, cases[i].smoothing > 0 ? "\n  label_smoothing: 0.1\n" : "\n  label_smoothing: 0\n"));
      tarn_config_close(&config);
      config = parsed(text, NULL);
      tarn_config_text_close(&text);
    }
    tarn_config_close(&config);
  }
}

// An encoder alone learns from masks; what is not said of it is not written, and what is said comes back.
static void encoders_learn_from_masks(void **state) {
  (void)state;
  tarn_config *config =
      parsed("encoder: { layers: L }\nkinds: { L: }\nmodel: { segments: 2, embedding_norm: yes }\n", NULL);
  char *text, *again;
  assert_int_equal(config->model.architecture, TARN_ARCHITECTURE_ENCODER);
  assert_int_equal(config->model.task, TARN__LEARNS_MASKED_LANGUAGE_MODEL);
  assert_int_equal(config->model.embeddings, TARN_EMBEDDINGS_ENCODER_OUTPUT);
  assert_true(config->masking.share == 0.15 && config->masking.random == 0.1 && config->masking.keep == 0.1);
  assert_false(config->masking.whole_words || config->valid.bleu);
  assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
  tarn_config_close(&config);
  assert_null(strstr(text, "task:"));
  assert_non_null(strstr(text, "\nmasking:\n  share: 0.15\n"));
  assert_non_null(strstr(text, "\n  segments: 2\n"));
  assert_non_null(strstr(text, "\n  embedding_norm: yes\n"));
  config = parsed(text, NULL);
  assert_int_equal(tarn_config_write(config, &again), TARN_STATUS_OK);
  assert_string_equal(text, again);
  tarn_config_text_close(&text);
  tarn_config_text_close(&again);
  tarn_config_close(&config);
  config = parsed("encoder: { layers: L }\nkinds: { L: }\nmodel: { task: masked-language-model }\n", "masking.share=1");
  assert_true(config->masking.share == 1.0);
  tarn_config_close(&config);
}

static void sets_are_scored(void **state) {
  (void)state;
  static const struct {
    const char *text, *override, *message;
  } cases[] = {
      {SMALL, "sets={valid: {data: x}}",
       "--set sets={valid: {data: x}}: sets: \"valid\" is not a name of a set: at most 31 letters, digits and "
       "underscores, from a letter on, and no word that lines of the log begin with"},
      {SMALL, "sets={test: {every: 5}}", "--set sets={test: {every: 5}}: sets.test.data is missing"},
      {SMALL, "sets={test: {data: x, evry: 5}}",
       "--set sets={test: {data: x, evry: 5}}: unknown key \"evry\" in sets.test; did you mean \"every\"?"},
      {"decoder: { layers: L }\nkinds: { L: }\nsets:\n  test: { data: x,\n    bleu: yes }\n", NULL,
       "m.yaml:5: sets.test.bleu: a language model does not translate"},
      {"decoder: { layers: L }\nkinds: { L: }\nsets:\n  test: { data: x,\n    max_sentences: 9 }\n", NULL,
       "m.yaml:5: sets.test.max_sentences: a language model does not translate"},
      {SMALL, "sets={test: {data: x, bleu: no, max_sentences: 9}}",
       "--set sets={test: {data: x, bleu: no, max_sentences: 9}}: sets.test.max_sentences is for translations, and "
       "sets.test.bleu is no"},
      {SMALL, "sets={test: {data: x, bleu: no, reference: r}}",
       "--set sets={test: {data: x, bleu: no, reference: r}}: sets.test.reference is for translations, and "
       "sets.test.bleu is no"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_error(cases[i].text, cases[i].override, cases[i].message);
  tarn_config *config = parsed(SMALL, "sets={test: {data: a b, reference: r}, other: {data: c, every: 0, bleu: no}}");
  char *text, *again;
  assert_int_equal(config->set_count, 2);
  assert_int_equal(config->sets[0].every, config->valid.every);
  assert_true(config->sets[0].bleu && !config->sets[1].bleu);
  assert_int_equal(config->sets[1].every, 0);
  assert_int_equal(tarn_config_write(config, &text), TARN_STATUS_OK);
  tarn_config_close(&config);
  config = parsed(text, NULL);
  assert_int_equal(tarn_config_write(config, &again), TARN_STATUS_OK);
  assert_string_equal(text, again);
  tarn_config_text_close(&text);
  tarn_config_text_close(&again);
  tarn_config_close(&config);
}

// The defaults of the keys that begin with `section`; those that are not for the text's task are left out, as they are
// refused.
static size_t check_defaults(const char *text, const char *section) {
  tarn_config *config = parsed(text, NULL);
  const tarn__task *task = tarn__config_task(config);
  char *expected;
  char *actual;
  size_t count = 0, checked = 0;
  assert_int_equal(tarn_config_write(config, &expected), TARN_STATUS_OK);
  tarn_config_close(&config);
  tarn_config_option option;
  for (; tarn_config_option_at(count, &option); count++) {
    char override[160], why[2 * TARN__TASK_TEXT];
    const char *name = strstr(option.key, "NAME");
    assert_true(option.help[0] != 0);
    if (strncmp(option.key, section, strlen(section)) != 0) continue;
    if (strncmp(option.key, "translate.", 10) == 0 && !tarn__decoding_has(why, task, option.key + 10)) continue;
    if (strncmp(option.key, "valid.", 6) == 0 && !tarn__decoding_has(why, task, option.key + 6)) continue;
    bool plain = option.value[0] != 0 && !strchr(option.value, ' ') && !strstr(option.value, "model.") &&
                 !strstr(option.value, "valid.") && !strstr(option.value, "data.") && !strstr(option.key, ".place.") &&
                 !option.part[0];
    if (!plain) continue;
    snprintf(override, sizeof override, "%s=%s", option.key, option.value);
    if (name && strncmp(option.key, "sets.", 5) == 0)
      snprintf(override, sizeof override, "sets.t%s=%s", name + 4, option.value);
    else if (name)
      snprintf(override, sizeof override, "kinds.L%s=%s", name + 4, option.value);
    config = parsed(text, override);
    assert_int_equal(tarn_config_write(config, &actual), TARN_STATUS_OK);
    assert_string_equal(actual, expected);
    tarn_config_text_close(&actual);
    tarn_config_close(&config);
    checked++;
  }
  tarn_config_text_close(&expected);
  return checked;
}

// Every default in the list of options is a value that can be written, and changes nothing. Those of parts:
// unit/test_parts.
static void listed_defaults_are_the_defaults(void **state) {
  (void)state;
  static const char text[] =
      "encoder: { layers: L }\ndecoder: { layers: L }\nkinds: { L: }\nsets: { t: { data: d } }\n";
  static const char masked[] =
      "model: { task: masked-translation }\nencoder: { layers: L }\ndecoder: { layers: L }\nkinds: { L: }\n";
  assert_true(check_defaults(text, "") > 60);
  assert_true(check_defaults(masked, "translate.") >= 3);  // iterations, length_beam, max_tokens
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_have_measures),
                                     cmocka_unit_test(wrong_words_are_told_the_right_ones),
                                     cmocka_unit_test(measures_have_two_spellings),
                                     cmocka_unit_test(classifiers_know_their_labels),
                                     cmocka_unit_test(suggestions_would_be_taken),
                                     cmocka_unit_test(smoothing_is_for_translation),
                                     cmocka_unit_test(encoders_learn_from_masks),
                                     cmocka_unit_test(sets_are_scored),
                                     cmocka_unit_test(listed_defaults_are_the_defaults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
