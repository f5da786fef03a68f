// Mask-predict: how many tokens an iteration masks and which, by the example of its paper and as many iterations as
// words; and translations of small random models, all sentences and lengths together, against one sentence of one
// length at a time with the graphs of training and a plain loop.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "decode/mask_predict.h"
#include "decode/translate.h"
#include "device/devices.h"
#include "model/stacks.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// --- without a model -------------------------------------------------------------------------------------------------

static void masks_decay_linearly(void **state) {
  (void)state;
  // Ghazvininejad et al. 2019, figure 1: a sentence of 12 tokens in 3 iterations.
  static const int64_t counts[] = {12, 8, 4};
  for (int64_t t = 0; t < 3; t++) assert_int_equal(tarn__mask_predict_count(12, t, 3), counts[t]);
  for (int64_t n = 1; n <= 40; n++) {
    // As many iterations as words: one word less is masked in each.
    for (int64_t t = 0; t < n; t++) assert_int_equal(tarn__mask_predict_count(n, t, n), n - t);
    for (int64_t iterations = 1; iterations <= 50; iterations++) {
      assert_int_equal(tarn__mask_predict_count(n, 0, iterations), n);
      for (int64_t t = 1; t < iterations; t++) {
        const int64_t count = tarn__mask_predict_count(n, t, iterations);
        assert_true(count >= 1 && count <= tarn__mask_predict_count(n, t - 1, iterations));
        assert_true(count == 1 ||
                    count == (int64_t)floor((double)n * (double)(iterations - t) / (double)iterations + 1e-9));
      }
    }
  }
}

static void the_least_likely_are_masked(void **state) {
  (void)state;
  int32_t at[64];
  static const float seven[] = {-0.5f, -3.0f, -0.1f, -3.0f, -9.0f, 0.0f, -0.5f};
  static const int32_t expected[][7] = {
      {4}, {1, 4}, {1, 3, 4}, {0, 1, 3, 4}, {0, 1, 3, 4, 6}, {0, 1, 2, 3, 4, 6}, {0, 1, 2, 3, 4, 5, 6}};
  for (int64_t count = 1; count <= 7; count++) {
    tarn__mask_predict_places(at, seven, 7, count);
    assert_memory_equal(at, expected[count - 1], (size_t)count * sizeof *at);
  }
  assert_true(fabs(tarn__mask_predict_score(seven, 7) + 16.1 / 7) < 1e-6);
  // Any values, many of them equal: no token outside is less likely than one that is masked.
  tarn__random random;
  tarn__random_init(&random, 3, 0);
  for (int round = 0; round < 500; round++) {
    float values[64];
    const int64_t length = 1 + (int64_t)tarn__random_below(&random, 64);
    const int64_t count = 1 + (int64_t)tarn__random_below(&random, (uint64_t)length);
    bool masked[64] = {false};
    for (int64_t i = 0; i < length; i++) values[i] = -(float)tarn__random_below(&random, 20);
    tarn__mask_predict_places(at, values, length, count);
    for (int64_t k = 0; k < count; k++) {
      assert_true(at[k] >= 0 && at[k] < length && (k == 0 || at[k] > at[k - 1]));
      masked[at[k]] = true;
    }
    for (int64_t i = 0; i < length; i++)
      for (int64_t j = 0; j < length; j++)
        if (masked[i] && !masked[j]) assert_true(values[i] < values[j] || (values[i] == values[j] && i < j));
  }
}

// --- with models -----------------------------------------------------------------------------------------------------

enum { EOS = 2, PAD = 3, MASK = 5, SOURCE_VOCAB = 37, TARGET_VOCAB = 53, LONGEST = 24, SENTENCES = 13, TOKENS = 256 };

static const char *const DESCRIPTIONS[] = {
    "model: { task: masked-translation, d_model: 32, norm: post, embeddings: none, max_length: 24 }\n"
    "encoder: { layers: \"R L\" }\n"
    "decoder: { layers: \"L F L1 L1\" }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 4, ffn: 48 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 48, frozen: yes }\n"
    "  F: { mixer: none, ffn: 48, frozen: yes }\n",
    // Mixers of encoders in the decoder, learned positions, fewer heads of keys and values.
    "model: { task: masked-translation, d_model: 48, norm: pre, embeddings: decoder, max_length: 24, positions: "
    "learned,\n"
    "         output_bias: yes }\n"
    "encoder: { layers: \"L\" }\n"
    "decoder: { layers: \"G C B L\" }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 3, ffn: 64 }\n"
    "  G: { mixer: attention, heads: 4, kv_heads: 2, ffn: 32 }\n"
    "  C: { mixer: light_conv, heads: 4, kernel: 5, ffn: 32 }\n"
    "  B: { mixer: bigru, hidden: 20, ffn: 32, frozen: yes }\n",
    // Transparent attention, words in bands, biases by distance.
    "model: { task: masked-translation, d_model: 32, norm: pre, embeddings: decoder, max_length: 24,\n"
    "         positions: t5,\n"
    "         adaptive_input_cutoff: [7, 20], adaptive_softmax_cutoff: [7, 20], tie_adaptive_proj: yes,\n"
    "         adaptive_softmax_factor: 2, adaptive_input_factor: 2 }\n"
    "encoder: { layers: \"L L\" }\n"
    "decoder: { layers: \"L R\", transparent_attention: yes }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 4, ffn: 48 }\n"
    "  R: { mixer: attention, heads: 4, ffn: 48, frozen: yes }\n"};
enum { KINDS = sizeof DESCRIPTIONS / sizeof *DESCRIPTIONS };

typedef struct fixture {
  tarn_config *config;
  tarn__model *model;
  int32_t ids[TOKENS];
  int64_t offsets[SENTENCES + 1];
} fixture;

static void scale(tarn__param *param, float factor) {
  const size_t count = (size_t)(param->rows * param->cols);
  float *values = malloc(count * sizeof *values);
  must(tarn__param_get(param, values));
  for (size_t i = 0; i < count; i++) values[i] *= factor;
  must(tarn__param_set(param, values));
  free(values);
}

// Weights that make a model choosy.
static void open_text(fixture *f, const char *text, tarn__dtype dtype) {
  must(tarn_config_parse(&f->config, "test", text, strlen(text), NULL, 0));
  must(tarn__model_open(&f->model, f->config, SOURCE_VOCAB, TARGET_VOCAB, dtype, false));
  must(tarn__model_allocate(f->model));
  must(tarn__model_initialise(f->model, 11));
  scale(f->model->weights.output_table, 2.5f);
  scale(f->model->weights.lengths, 1.5f);
  tarn__random random;
  tarn__random_init(&random, 5, 0);
  int64_t used = 0;
  for (int s = 0; s < SENTENCES; s++) {
    const int64_t length = 1 + (int64_t)tarn__random_below(&random, 15);
    for (int64_t i = 0; i < length - 1; i++)
      f->ids[used++] = 3 + (int32_t)tarn__random_below(&random, SOURCE_VOCAB - 3);
    f->ids[used++] = EOS;
    f->offsets[s + 1] = used;
  }
}

static void open_model(fixture *f, int kind, tarn__dtype dtype) { open_text(f, DESCRIPTIONS[kind], dtype); }

static void close_model(fixture *f) {
  tarn__model_close(&f->model);
  tarn_config_close(&f->config);
}

static tarn__translator *open_translator(const fixture *f, int64_t iterations, int64_t length_beam, int64_t n_best,
                                         int64_t max_tokens, int threads) {
  tarn__translator_options options;
  tarn__translator *translator;
  tarn__translator_default(&options);
  options.iterations = iterations;
  options.length_beam = length_beam;
  options.n_best = n_best;
  options.max_tokens = max_tokens;
  options.threads = threads;
  options.mask = MASK;
  options.pad = PAD;
  must(tarn__translator_open(&translator, f->model, EOS, &options));
  return translator;
}

// A graph with the output of the stacks, one sentence of each side; `count` 1: of the encoder.
static tarn__tensor *build(const fixture *f, tarn__graph *graph, int count, const tarn__packed *source,
                           const tarn__packed *target) {
  static const tarn__model_shortcuts whole = {0};
  const tarn__packed *const sides[TARN__SIDES] = {source, target};
  tarn__model_begin(f->model, graph, false, 1);
  return tarn__model_build_stacks(f->model, graph, count, sides, &whole, NULL);
}

static void run_graph(tarn__graph *graph, void **workspace) {
  must(tarn__graph_plan(graph));
  must(tarn__alloc(workspace, TARN__MEMORY_ACTIVATION, graph->workspace_bytes, 1));
  tarn__graph_bind(graph, *workspace);
  must(tarn__graph_run(graph, &(tarn__exec){.threads = 1}));
}

static void close_graph(tarn__graph *graph, void *workspace) {
  tarn__graph_close(graph);
  tarn__free(workspace);
}

static double number(const tarn__tensor *tensor, int64_t i) {
  return tensor->dtype == TARN__F64 ? ((const double *)tensor->data)[i] : (double)((const float *)tensor->data)[i];
}

typedef struct sentence {
  int32_t ids[LONGEST];
  float values[LONGEST];
  int64_t length;
  double score;
} sentence;

// The logits of lengths, from the products of the state behind the source with their vectors.
static void plain_lengths(const fixture *f, double logits[LONGEST], const tarn__packed *source) {
  tarn__graph graph = {0};
  void *workspace;
  float vectors[LONGEST * 64];
  tarn__tensor *states = build(f, &graph, 1, source, NULL);
  states->keep = states->result = true;
  run_graph(&graph, &workspace);
  must(tarn__param_get(f->model->weights.lengths, vectors));
  for (int n = 0; n < LONGEST; n++) {
    logits[n] = 0;
    for (int64_t i = 0; i < states->cols; i++)
      logits[n] += number(states, (source->rows - 1) * states->cols + i) * (double)vectors[n * states->cols + i];
  }
  close_graph(&graph, workspace);
}

// Mask-predict as the paper has it, for one length.
static void plain_mask_predict(const fixture *f, sentence *s, const tarn__packed *source, int64_t length,
                               int64_t iterations) {
  *s = (sentence){.length = length};
  for (int64_t t = 0; t < iterations; t++) {
    int32_t read[LONGEST], positions[LONGEST], masked[LONGEST], rows = (int32_t)length + 1;
    const int32_t offsets[] = {0, rows};
    int64_t count = length * (iterations - t) / iterations, found = 0;
    if (count == 0) count = 1;
    memcpy(read, s->ids, sizeof read);
    // Takes the worst one after the other.
    for (bool taken[LONGEST] = {false}; found < count; found++) {
      int64_t worst = -1;
      for (int64_t i = 0; i < length; i++)
        if (!taken[i] && (worst < 0 || s->values[i] < s->values[worst])) worst = i;
      taken[worst] = true;
      read[worst] = MASK;
    }
    found = 0;
    for (int64_t i = 0; i < length; i++)
      if (read[i] == MASK) masked[found++] = (int32_t)i;
    assert_int_equal(found, count);
    read[length] = EOS;
    tarn__packed_positions(positions, offsets, 1);
    const tarn__packed target = {1, rows, rows, read, positions, offsets, NULL, NULL};
    tarn__graph graph = {0};
    void *workspace;
    tarn__tensor *states = build(f, &graph, 2, source, &target);
    const tarn__top top = tarn__model_build_top(f->model, &graph, states, masked, count, 4, EOS);
    run_graph(&graph, &workspace);
    for (int64_t m = 0; m < count; m++)
      for (int k = 3; k >= 0; k--) {
        const int32_t id = ((const int32_t *)top.ids->data)[m * 4 + k];
        if (id == EOS || id == PAD || id == MASK) continue;
        s->ids[masked[m]] = id;
        s->values[masked[m]] = (float)number(top.values, m * 5 + k);
      }
    close_graph(&graph, workspace);
  }
  for (int64_t i = 0; i < length; i++) s->score += (double)s->values[i] / (double)length;
}

static int by_score(const void *a, const void *b) {
  const double x = ((const sentence *)a)->score, y = ((const sentence *)b)->score;
  return (x < y) - (x > y);
}

enum { BEAM = 4 };

// The translations of one sentence, best first.
static void translate_plainly(const fixture *f, sentence found[BEAM], int number_of, int64_t iterations) {
  int32_t positions[LONGEST];
  const int32_t rows = (int32_t)(f->offsets[number_of + 1] - f->offsets[number_of]), offsets[] = {0, rows};
  tarn__packed_positions(positions, offsets, 1);
  const tarn__packed source = {1, rows, rows, f->ids + f->offsets[number_of], positions, offsets, NULL, NULL};
  double logits[LONGEST];
  plain_lengths(f, logits, &source);
  for (int i = 0; i < BEAM; i++) {
    int best = 1;
    for (int n = 2; n < LONGEST; n++)
      if (logits[n] > logits[best]) best = n;
    logits[best] = -INFINITY;
    plain_mask_predict(f, &found[i], &source, best, iterations);
  }
  qsort(found, BEAM, sizeof *found, by_score);
}

static void compare(int kind, tarn__dtype dtype, const tarn__device *device, int64_t iterations, double bound) {
  fixture f = {0};
  open_model(&f, kind, dtype);
  f.model->device = device;
  tarn__translator *translator = open_translator(&f, iterations, BEAM, BEAM, 100, 1);
  tarn__translation translations[SENTENCES];
  must(tarn__translator_run(translator, translations, f.ids, f.offsets, SENTENCES));
  for (int s = 0; s < SENTENCES; s += 2) {
    sentence plain[BEAM];
    translate_plainly(&f, plain, s, iterations);
    assert_int_equal(translations[s].count, BEAM);
    for (int i = 0; i < BEAM; i++) {
      const tarn__hypothesis *h = &translations[s].hypotheses[i];
      assert_int_equal(h->length, plain[i].length + 1);
      assert_int_equal(h->ids[h->length - 1], EOS);
      assert_true(h->log_probabilities[h->length - 1] == 0);
      assert_memory_equal(h->ids, plain[i].ids, (size_t)plain[i].length * sizeof *h->ids);
      assert_true(fabs(h->score - plain[i].score) <= bound);
      assert_true(fabs(h->log_probability - plain[i].score * (double)plain[i].length) <= bound * LONGEST);
    }
  }
  tarn__translator_close(&translator);
  close_model(&f);
}

static void translations_are_those_of_a_plain_loop(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    compare(kind, TARN__F32, &tarn__device_cpu, 3, 1e-4);
    compare(kind, TARN__F64, &tarn__device_reference, 4, 1e-6);
  }
  // As many iterations as words, and more.
  compare(0, TARN__F64, &tarn__device_reference, LONGEST - 1, 1e-6);
}

static void assert_same(const tarn__translation *a, const tarn__translation *b) {
  assert_int_equal(a->count, b->count);
  for (int64_t h = 0; h < a->count; h++) {
    const tarn__hypothesis *x = &a->hypotheses[h], *y = &b->hypotheses[h];
    assert_int_equal(x->length, y->length);
    assert_memory_equal(x->ids, y->ids, (size_t)x->length * sizeof *x->ids);
    assert_true(fabs(x->score - y->score) <= 1e-4);
  }
}

// Groups, threads, lent memory and the rest of an n-best list make no difference.
static void groups_make_no_difference(void **state) {
  (void)state;
  static double memory[40000];
  for (int kind = 0; kind < KINDS; kind++) {
    fixture f = {0};
    open_model(&f, kind, TARN__F32);
    tarn__translator *first = open_translator(&f, 5, 3, 3, 4096, 1);
    tarn__translation a[SENTENCES], b[SENTENCES];
    must(tarn__translator_run(first, a, f.ids, f.offsets, SENTENCES));
    for (int other = 0; other < 4; other++) {
      tarn__translator *t = open_translator(&f, 5, 3, other == 3 ? 1 : 3, other == 0 ? 1 : 60, other == 1 ? 3 : 1);
      if (other == 2) tarn__translator_lend(t, memory, sizeof memory);
      must(tarn__translator_run(t, b, f.ids, f.offsets, SENTENCES));
      for (int s = 0; s < SENTENCES; s++) {
        if (other == 3) {
          assert_int_equal(b[s].count, 1);
          b[s].count = a[s].count = 1;
        }
        assert_same(&a[s], &b[s]);
      }
      tarn__translator_close(&t);
    }
    tarn__translator_stats stats;
    tarn__translator_get_stats(first, &stats);
    assert_int_equal(stats.sentences, SENTENCES);
    assert_int_equal(stats.source_tokens, f.offsets[SENTENCES]);
    tarn__translator_close(&first);
    close_model(&f);
  }
}

// Where the model has fewer lengths than are asked for, all of them are tried; other arithmetic works.
static void all_lengths_and_precisions(void **state) {
  (void)state;
  fixture f = {0};
  open_model(&f, 0, TARN__F32);
  tarn__translator_options options;
  tarn__translator *translator;
  tarn__translation found[SENTENCES];
  tarn__translator_default(&options);
  options.length_beam = options.n_best = 100;
  options.iterations = 2;
  options.mask = MASK;
  options.rounding = TARN__ROUNDING_INT8;
  must(tarn__translator_open(&translator, f.model, EOS, &options));
  must(tarn__translator_run(translator, found, f.ids, f.offsets, SENTENCES));
  for (int s = 0; s < SENTENCES; s++) {
    bool seen[LONGEST + 1] = {false};
    assert_int_equal(found[s].count, LONGEST - 1);
    for (int64_t h = 0; h < found[s].count; h++) {
      const int64_t length = found[s].hypotheses[h].length;
      assert_true(length >= 2 && length <= LONGEST && !seen[length]);
      seen[length] = true;
      assert_true(h == 0 || found[s].hypotheses[h].score <= found[s].hypotheses[h - 1].score);
    }
  }
  size_t bytes;
  options.threads = 1;
  must(tarn__translator_plan(&bytes, f.model, &options, 12.0, 1000));
  assert_true(bytes > 100000 && bytes < 100000000);
  tarn__translator_close(&translator);
  close_model(&f);
}

// The lengths of translations do not change what is taken at a time, and so the memory: an untrained model makes them
// far longer than their sources. It is that of the plan, of which most is in use.
static void long_translations_take_the_planned_memory(void **state) {
  (void)state;
  static const char text[] =
      "model: { task: masked-translation, d_model: 32, embeddings: decoder, max_length: 400 }\n"
      "encoder: { layers: L }\ndecoder: { layers: L }\nkinds: { L: { mixer: attention, heads: 2, ffn: 64 } }\n";
  fixture f = {0};
  open_text(&f, text, TARN__F32);
  tarn__translator_options options;
  tarn__translator *translator;
  tarn__translation found[SENTENCES];
  tarn__translator_default(&options);
  options.iterations = 1;
  options.mask = MASK;
  options.threads = 1;
  size_t bytes;
  const size_t before = tarn__memory_now(TARN__MEMORY_ACTIVATION);
  must(tarn__translator_plan(&bytes, f.model, &options, (double)f.offsets[SENTENCES] / SENTENCES, SENTENCES));
  must(tarn__translator_open(&translator, f.model, EOS, &options));
  must(tarn__translator_run(translator, found, f.ids, f.offsets, SENTENCES));
  tarn__translator_stats stats;
  tarn__translator_get_stats(translator, &stats);
  assert_true(stats.rows > 10 * options.length_beam * stats.source_tokens);
  const size_t used = tarn__memory_peak(TARN__MEMORY_ACTIVATION) - before;
  if (used > bytes || used < bytes / 4) fail_msg("%zu bytes were used, and %zu planned", used, bytes);
  tarn__translator_close(&translator);
  close_model(&f);
}

static void wrong_options_are_refused(void **state) {
  (void)state;
  fixture f = {0};
  open_model(&f, 0, TARN__F32);
  static const struct {
    int64_t iterations, length_beam, n_best;
    int32_t mask;
    const char *text;
  } cases[] = {{0, 5, 1, MASK, "iterations must be from 1 to 1024, not 0"},
               {1025, 5, 1, MASK, "iterations must be from 1 to 1024, not 1025"},
               {10, 0, 1, MASK, "length-beam must be from 1 to 1024, not 0"},
               {10, 5, 6, MASK, "n-best must be from 1 to the length-beam of 5, not 6"},
               {10, 5, 1, -1, "the vocabulary of the target has no <mask>, which mask-predict fills in"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn__translator_options options;
    tarn__translator *translator;
    tarn__translator_default(&options);
    options.iterations = cases[i].iterations;
    options.length_beam = cases[i].length_beam;
    options.n_best = cases[i].n_best;
    options.mask = cases[i].mask;
    assert_int_equal(tarn__translator_open(&translator, f.model, EOS, &options), TARN_STATUS_USAGE);
    assert_string_equal(tarn_error_message(), cases[i].text);
  }
  close_model(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_translations_take_the_planned_memory),  // first: it measures a peak
      cmocka_unit_test(masks_decay_linearly),
      cmocka_unit_test(the_least_likely_are_masked),
      cmocka_unit_test(translations_are_those_of_a_plain_loop),
      cmocka_unit_test(groups_make_no_difference),
      cmocka_unit_test(all_lengths_and_precisions),
      cmocka_unit_test(wrong_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
