// Generation by small random models of every mixer: greedy continuations against the argmax of the scorer, batches and
// prompts in pieces against one by one, samples against the model's own distribution, beams against all sentences,
// samples that share their prompt, ends, the cost of a token, bad input and no memory; and when the decoders of a large
// model divide prompts.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "decode/crew.h"
#include "decode/generator.h"
#include "score/scorer.h"

enum { EOS = 2, VOCAB = 53, PROMPTS = 11, TOKENS = PROMPTS * 12, TEXT = 40 };

#define LANGUAGE(model, layers, kinds) \
  "model: { d_model: 32, embeddings: none, " model " }\ndecoder: { layers: " layers " }\nkinds:\n" kinds

static const char *const DESCRIPTIONS[] = {
    LANGUAGE(
        "max_length: 60", "\"L R\"",
        "  L: { mixer: attention, heads: 4, ffn: 48 }\n  R: { mixer: attention, heads: 2, ffn: 48, frozen: yes }\n"),
    LANGUAGE("max_length: 60, norm: pre, positions: learned, activation: gelu_tanh", "L*2",
             "  L: { mixer: attention, heads: 4, ffn: 48 }\n"),
    LANGUAGE("positions: none, max_length: 60", "E*2",
             "  E: { mixer: esn, input: direct, residual: no, frozen: yes }\n"),
    LANGUAGE("positions: none, max_length: 60, output_bias: yes", "G*2",
             "  G: { mixer: lstm, hidden: 32, residual: no }\n"),
    LANGUAGE("positions: none, max_length: 60", "G N", "  G: { mixer: gru, ffn: 48 }\n  N: { mixer: none, ffn: 48 }\n"),
    LANGUAGE("positions: none, max_length: 60", "C*2", "  C: { mixer: light_conv, heads: 4, kernel: 3, ffn: 48 }\n"),
    LANGUAGE("positions: none, max_length: 60", "C D",
             "  C: { mixer: light_conv, heads: 4, kernel: 3 }\n  D: { mixer: dynamic_conv, heads: 2, kernel: 5 }\n"),
    LANGUAGE("positions: none, max_length: 60", "P*2", "  P: { mixer: pooling, window: 4, ffn: 48 }\n"),
    LANGUAGE(
        "max_length: 60, output_rank: 16", "L G C",
        "  L: { mixer: attention, heads: 4 }\n  G: { mixer: gru }\n  C: { mixer: light_conv, heads: 4, kernel: 5 }\n"),
    LANGUAGE("max_length: 60, norm: pre, norm_type: { type: rms, epsilon: 1e-6 }", "L P",
             "  L: { mixer: attention, heads: 4, ffn: 48 }\n  P: { mixer: pooling, norm: post, frozen: yes }\n"),
    LANGUAGE("max_length: 60, norm: pre, positions: { type: rotary, base: 100, share: 0.5 }", "L R*2",
             "  L: { mixer: attention, heads: 4 }\n  R: { mixer: attention, heads: 2, frozen: yes }\n"),
    LANGUAGE("max_length: 60, output_bias: yes, adaptive_input_cutoff: [20], "
             "adaptive_softmax_cutoff: [6, 12, 30], adaptive_softmax_factor: 2",
             "L", "  L: { mixer: attention, heads: 4, ffn: 48 }\n"),
    LANGUAGE("max_length: 60, norm: pre", "A B*2 L",
             "  A: { mixer: evolved_attention, heads: 4, ffn: 0 }\n  B: { mixer: evolved_conv, ffn: 0 }\n"
             "  L: { mixer: attention, heads: 4, head_width: 6, ffn: { width: 48, activation: swish } }\n"),
    // Linear biases have no end: texts are longer than max_length.
    LANGUAGE("max_length: 4, positions: { type: alibi, exponent: 5 }", "L R*2",
             "  L: { mixer: attention, heads: 4 }\n  R: { mixer: attention, heads: 2, frozen: yes }\n"),
};
enum { KINDS = sizeof DESCRIPTIONS / sizeof *DESCRIPTIONS, FIRST_RECURRENT = 2, FIRST_MIXED = 8 };

typedef struct fixture {
  tarn_config *config;
  tarn__model *model;
  int32_t ids[TOKENS];
  int64_t offsets[PROMPTS + 1];
} fixture;

// Under sanitizers and in the quick build: fewer tokens of each description, and one method for each.
static bool as_sample(void) { return getenv("TARN_SAMPLE") != NULL; }

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// Random weights that make a model choosy.
static void open_model(fixture *f, const char *text, int64_t vocab, tarn__dtype dtype) {
  must(tarn_config_parse(&f->config, "test", text, strlen(text), NULL, 0));
  must(tarn__model_open(&f->model, f->config, vocab, vocab, dtype, false));
  must(tarn__model_allocate(f->model));
  must(tarn__model_initialise(f->model, 11));
  tarn__param *table = f->model->weights.output_table;
  size_t count = (size_t)(table->rows * table->cols);
  float *values = malloc(count * sizeof *values);
  must(tarn__param_get(table, values));
  for (size_t i = 0; i < count; i++) values[i] *= 4.0f;
  must(tarn__param_set(table, values));
  free(values);
  tarn__random random;
  tarn__random_init(&random, 5, 0);
  int64_t used = f->offsets[0] = 0;
  for (int p = 0; p < PROMPTS; p++) {
    for (int64_t left = (p * 5) % 12; left > 0; left--)
      f->ids[used++] = 3 + (int32_t)tarn__random_below(&random, (uint64_t)vocab - 3);
    f->offsets[p + 1] = used;
  }
}

static void close_model(fixture *f) {
  tarn__model_close(&f->model);
  tarn_config_close(&f->config);
}

static tarn__generator *open_generator(const fixture *f, const tarn__generator_options *options) {
  tarn__generator *generator;
  must(tarn__generator_open(&generator, f->model, EOS, options));
  return generator;
}

static tarn__generator_options default_options(int64_t max_tokens) {
  tarn__generator_options options;
  tarn__generator_default(&options);
  options.max_tokens = max_tokens;
  options.threads = 1;  // more would wait for one another on such small models
  return options;
}

// The scorer's log-probabilities of every word behind `ids`: one sentence a word.
static void next_row(const fixture *f, double *row, const int32_t *ids, int64_t length) {
  const int64_t vocab = f->model->target_vocab;
  tarn__scorer_options options;
  tarn__scorer *scorer;
  tarn__scorer_default(&options);
  must(tarn__scorer_open(&scorer, f->model, EOS, &options));
  int32_t *all = malloc((size_t)(vocab * (length + 1)) * sizeof *all);
  double *values = malloc((size_t)(vocab * (length + 1)) * sizeof *values);
  tarn__scorer_sentence *sentences = malloc((size_t)vocab * sizeof *sentences);
  for (int64_t v = 0; v < vocab; v++) {
    if (length > 0) memcpy(all + v * (length + 1), ids, (size_t)length * sizeof *ids);
    all[v * (length + 1) + length] = (int32_t)v;
    sentences[v] = (tarn__scorer_sentence){.ids = all + v * (length + 1),
                                           .length = length + 1,
                                           .known = length,
                                           .log_probabilities = values + v * (length + 1)};
  }
  must(tarn__scorer_run(scorer, sentences, vocab));
  for (int64_t v = 0; v < vocab; v++) row[v] = values[v * (length + 1) + length];
  free(all);
  free(values);
  free(sentences);
  tarn__scorer_close(&scorer);
}

// Every token of a greedy continuation is the most likely one by the scorer, which computes whole sentences, and its
// log-probability is the scorer's.
static void greedy_is_the_argmax(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    fixture f = {0};
    open_model(&f, DESCRIPTIONS[kind], VOCAB, TARN__F32);
    const tarn__generator_options options = default_options(12);
    tarn__generator *generator = open_generator(&f, &options);
    tarn__translation results[PROMPTS];
    must(tarn__generator_run(generator, results, f.ids, f.offsets, PROMPTS));
    int different = 0;
    for (int p = 0; p < PROMPTS; p++) {
      const tarn__hypothesis *found = results[p].hypotheses;
      int32_t ids[64];
      int64_t length = f.offsets[p + 1] - f.offsets[p];
      memcpy(ids, f.ids + f.offsets[p], (size_t)length * sizeof *ids);
      assert_int_equal(results[p].count, 1);
      assert_true(found->length == 12 || found->ids[found->length - 1] == EOS);
      for (int64_t t = 0; t < found->length; t++) {
        double row[VOCAB], best = -INFINITY;
        const bool tried = !as_sample() || t % 4 == p % 4;
        if (tried) next_row(&f, row, ids, length);
        for (int v = 0; tried && v < VOCAB; v++) best = fmax(best, row[v]);
        assert_true(!tried || row[found->ids[t]] >= best - 1e-4);
        if (tried && !(fabs(row[found->ids[t]] - (double)found->log_probabilities[t]) < 1e-3))
          fail_msg("kind %d: %g and %g", kind, row[found->ids[t]], (double)found->log_probabilities[t]);
        different += t > 0 && found->ids[t] != found->ids[t - 1];
        ids[length++] = found->ids[t];
      }
    }
    assert_true(different > 5);
    tarn__generator_close(&generator);
    close_model(&f);
  }
}

// The losses of tokens, and for each row the likeliest token and its log-probability, of a text of its prompts.
static void losses_of(const fixture *f, const int32_t *targets, double losses[TEXT], int32_t best[TEXT],
                      float values[TEXT]) {
  int32_t positions[TEXT], rows[TEXT], offsets[2] = {0, TEXT};
  tarn__packed_positions(positions, offsets, 1);
  for (int i = 0; i < TEXT; i++) rows[i] = i;
  const tarn__packed text = {
      .sentences = 1, .rows = TEXT, .longest = TEXT, .ids = f->ids, .positions = positions, .offsets = offsets};
  tarn__graph graph = {0};
  tarn__top top;
  void *workspace, *read;
  tarn__model_begin(f->model, &graph, false, 1);
  tarn__tensor *found = tarn__model_build_scores(f->model, &graph, &text, rows, targets, TEXT, &top);
  must(tarn__graph_plan(&graph));
  must(tarn__alloc(&workspace, TARN__MEMORY_ACTIVATION, graph.workspace_bytes, 1));
  tarn__graph_bind(&graph, workspace);
  must(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}));
  must(tarn__graph_result(&graph, &read, found));
  for (int i = 0; i < TEXT; i++) losses[i] = ((const double *)read)[2 * i + 1];
  must(tarn__graph_result(&graph, &read, top.ids));
  memcpy(best, read, TEXT * sizeof *best);
  must(tarn__graph_result(&graph, &read, top.values));
  for (int i = 0; i < TEXT; i++) values[i] = ((const float *)read)[2 * i];
  tarn__graph_close(&graph);
  tarn__free(workspace);
}

// The loss of a token is that of the table by which the likeliest one is found, also if that is rounded.
static void losses_are_of_rounded_tables(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    fixture f = {0};
    double exact[TEXT], losses[TEXT];
    int32_t best[TEXT];
    float values[TEXT];
    open_model(&f, DESCRIPTIONS[kind], VOCAB, TARN__F32);
    if (tarn__model_pack_check(f.model, TARN__ROUNDING_INT8) == TARN_STATUS_OK) {
      void *packed;
      losses_of(&f, f.ids, losses, best, values);
      losses_of(&f, best, exact, best, values);
      must(tarn__alloc(&packed, TARN__MEMORY_OTHER, tarn__model_pack_bytes(f.model, TARN__ROUNDING_INT8), 1));
      must(tarn__model_pack(f.model, packed, TARN__ROUNDING_INT8, 1));
      losses_of(&f, f.ids, losses, best, values);
      losses_of(&f, best, losses, best, values);
      assert_true(memcmp(exact, losses, sizeof losses) != 0);
      for (int i = 0; i < TEXT; i++)
        if (!(fabs(losses[i] + (double)values[i]) < 1e-5))
          fail_msg("kind %d: %g, %g", kind, losses[i], (double)values[i]);
      tarn__model_unpack(f.model);
      tarn__free(packed);
    }
    close_model(&f);
  }
}

static void assert_same(const tarn__translation *a, const tarn__translation *b) {
  assert_int_equal(a->count, b->count);
  for (int64_t i = 0; i < a->count; i++) {
    assert_int_equal(a->hypotheses[i].length, b->hypotheses[i].length);
    const size_t length = (size_t)a->hypotheses[i].length;
    assert_memory_equal(a->hypotheses[i].ids, b->hypotheses[i].ids, length * sizeof(int32_t));
    assert_memory_equal(a->hypotheses[i].log_probabilities, b->hypotheses[i].log_probabilities, length * sizeof(float));
  }
}

// A prompt alone, all together, in another order and on other threads: the same bits.
static void batches_change_no_bit(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    for (int method = as_sample() ? kind % 3 : 0; method < 3; method += as_sample() ? 3 : 1) {
      fixture f = {0};
      open_model(&f, DESCRIPTIONS[kind], VOCAB, kind % 2 ? TARN__BF16 : TARN__F32);
      tarn__generator_options options = default_options(9);
      options.samples = method == 1;
      options.beam = method == 2 ? 3 : 1;
      options.number = method == 0 ? 1 : 3;
      tarn__generator *one = open_generator(&f, &options);
      options.threads = 3;
      tarn__generator *many = open_generator(&f, &options);
      tarn__translation together[PROMPTS], other[PROMPTS];
      must(tarn__generator_run(many, together, f.ids, f.offsets, PROMPTS));
      for (int p = 0; p < PROMPTS; p++) {
        const int64_t offsets[2] = {0, f.offsets[p + 1] - f.offsets[p]};
        must(tarn__generator_run(one, other, f.ids + f.offsets[p], offsets, 1));
        assert_same(&together[p], &other[0]);
      }
      tarn__generator_close(&one);
      tarn__generator_close(&many);
      close_model(&f);
    }
  }
}

// First tokens of many samples have the model's probabilities.
static void samples_fit_by_chi_square(void **state) {
  (void)state;
  enum { N = 20000, FEW = 9 };
  fixture f = {0};
  open_model(&f, DESCRIPTIONS[3], FEW, TARN__F32);
  tarn__generator_options options = default_options(1);
  options.samples = true;
  options.number = N;
  options.sampling.temperature = 2.0;
  options.banned[options.banned_count++] = 1;
  tarn__generator *generator = open_generator(&f, &options);
  tarn__translation results[PROMPTS];
  double row[FEW], sum = 0.0, chi = 0.0;
  int drawn[FEW] = {0};
  must(tarn__generator_run(generator, results, f.ids, f.offsets + 1, 1));
  next_row(&f, row, f.ids, f.offsets[2] - f.offsets[1]);
  for (int v = 0; v < FEW; v++) sum += row[v] = v == 1 ? 0.0 : exp(row[v] / 2.0);
  for (int i = 0; i < N; i++) drawn[results[0].hypotheses[i].ids[0]]++;
  assert_int_equal(drawn[1], 0);
  for (int v = 0; v < FEW; v++)
    if (v != 1) chi += pow(drawn[v] - row[v] / sum * N, 2) / (row[v] / sum * N);
  assert_true(chi < 24.3);  // 7 degrees of freedom: one in a thousand is larger
  tarn__generator_close(&generator);
  close_model(&f);
}

// All continuations of at most `most` tokens by the scorer, the best ones kept.
typedef struct best_list {
  int32_t ids[8];
  int64_t length;
  double score;
} best_list;

static void enumerate(const fixture *f, best_list *best, int count, int32_t *ids, int64_t prompt, int64_t length,
                      int64_t most, double sum) {
  double row[8];
  next_row(f, row, ids, prompt + length);
  for (int32_t v = 0; v < f->model->target_vocab; v++) {
    ids[prompt + length] = v;
    if (v != EOS && length + 1 < most) {
      enumerate(f, best, count, ids, prompt, length + 1, most, sum + row[v]);
      continue;
    }
    const double score = (sum + row[v]) / sqrt((double)(length + 1));
    int place = count;
    while (place > 0 && score > best[place - 1].score) place--;
    if (place == count) continue;
    memmove(best + place + 1, best + place, (size_t)(count - 1 - place) * sizeof *best);
    best[place].length = length + 1;
    best[place].score = score;
    memcpy(best[place].ids, ids + prompt, (size_t)(length + 1) * sizeof *ids);
  }
}

// A beam that holds all hypotheses finds what exhaustive search finds, in its order.
static void wide_beams_are_exhaustive(void **state) {
  (void)state;
  enum { FEW = 4, MOST = 4, SHOWN = 20 };
  for (int kind = 0; kind < KINDS; kind += 2) {
    fixture f = {0};
    open_model(&f, DESCRIPTIONS[kind], FEW, TARN__F32);
    tarn__generator_options options = default_options(MOST);
    options.beam = 256;
    options.number = SHOWN;
    options.length_penalty = 0.5;
    tarn__generator *generator = open_generator(&f, &options);
    tarn__translation results[2];
    must(tarn__generator_run(generator, results, f.ids, f.offsets, 2));
    for (int p = 0; p < 2; p++) {
      best_list best[SHOWN];
      int32_t ids[32];
      const int64_t prompt = f.offsets[p + 1] - f.offsets[p];
      for (int i = 0; i < SHOWN; i++) best[i].score = -INFINITY;
      memcpy(ids, f.ids + f.offsets[p], (size_t)prompt * sizeof *ids);
      enumerate(&f, best, SHOWN, ids, prompt, 0, MOST, 0.0);
      assert_int_equal(results[p].count, SHOWN);
      int ended = 0;
      for (int i = 0; i < SHOWN; i++) {
        const tarn__hypothesis *found = &results[p].hypotheses[i];
        assert_true(fabs(found->score - best[i].score) < 1e-4);
        // Scores that are as good as equal may change places.
        if (i + 1 < SHOWN && best[i].score - best[i + 1].score < 1e-4) continue;
        if (i > 0 && best[i - 1].score - best[i].score < 1e-4) continue;
        assert_int_equal(found->length, best[i].length);
        assert_memory_equal(found->ids, best[i].ids, (size_t)found->length * sizeof *found->ids);
        ended += found->ids[found->length - 1] == EOS;
      }
      assert_true(ended < SHOWN);
    }
    tarn__generator_close(&generator);
    close_model(&f);
  }
}

// A token of a model without attention sees the same number of cache rows, and takes the same memory, however long the
// text is; nothing of the prompt goes through the model twice.
static void cost_does_not_grow(void **state) {
  (void)state;
  static const int64_t sight[KINDS] = {0, 0, 2, 2, 2, 3, 5, 4};
  for (int kind = FIRST_RECURRENT; kind < FIRST_MIXED; kind++) {
    size_t memory[2];
    for (int far = 0; far < 2; far++) {
      fixture f = {0};
      open_model(&f, DESCRIPTIONS[kind], VOCAB, TARN__F32);
      const size_t before = tarn__memory_now(TARN__MEMORY_ACTIVATION);
      tarn__generator_options options = default_options(!far ? 100 : as_sample() ? 300 : 700);
      options.min_tokens = options.max_tokens;
      tarn__generator *generator = open_generator(&f, &options);
      tarn__translation results[PROMPTS];
      must(tarn__generator_run(generator, results, f.ids, f.offsets, PROMPTS));
      tarn__decoder_stats stats;
      tarn__generator_get_stats(generator, &stats);
      assert_int_equal(stats.target_tokens, PROMPTS * options.max_tokens);
      assert_int_equal(stats.rows, PROMPTS * options.max_tokens + f.offsets[PROMPTS]);
      assert_true(stats.seen <= sight[kind] * stats.rows);
      memory[far] = tarn__memory_now(TARN__MEMORY_ACTIVATION) - before;
      tarn__generator_close(&generator);
      close_model(&f);
    }
    assert_int_equal(memory[0], memory[1]);
  }
}

// Prompts of models without recurrences take one step, whatever their length.
static void prompts_are_read_at_once(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    fixture f = {0};
    open_model(&f, DESCRIPTIONS[kind], VOCAB, TARN__F32);
    tarn__generator_options options = default_options(1);
    tarn__generator *generator = open_generator(&f, &options);
    tarn__translation results[PROMPTS];
    tarn__decoder_stats stats;
    must(tarn__generator_run(generator, results, f.ids, f.offsets, PROMPTS));
    tarn__generator_get_stats(generator, &stats);
    bool sequential = false;
    for (int l = 0; l < f.model->decoder.count; l++)
      sequential |= tarn__mixer_of(f.model->decoder.layers[l].weights->kind)->sequential;
    assert_int_equal(stats.steps, sequential ? 12 : 1);
    tarn__generator_close(&generator);
    close_model(&f);
  }
}

// One sample of a prompt, by a decoder that has nothing else to do.
static void sample_alone(const fixture *f, tarn__translation *result, tarn__decoder **decoder,
                         const tarn__sampling *sampling, int p, uint32_t sample, int64_t tokens) {
  const int64_t length = f->offsets[p + 1] - f->offsets[p];
  const tarn__item item = {.ids = f->ids + f->offsets[p],
                           .length = length,
                           .key = tarn__hash64(f->ids + f->offsets[p], (size_t)length * sizeof *f->ids, 0),
                           .sample = sample};
  const tarn__decoder_options options = {
      .search = {.beam = 1, .length_penalty = 1.0, .eos = EOS, .min_length = tokens, .open_end = true},
      .sampling = sampling,
      .max_len_b = tokens,
      .max_tokens = 100,
      .n_best = 1};
  tarn__queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .items = &item, .count = 1, .share = {.items = 1}};
  must(tarn__decoder_open(decoder, f->model, &options, 1));
  must(tarn__decoder_run(*decoder, &queue, result));
}

// The samples of a prompt read it once, together, and are the ones that each would be alone.
static void samples_share_their_prompt(void **state) {
  (void)state;
  enum { N = 7, MOST = 9 };
  for (int kind = 0; kind < KINDS; kind++) {
    fixture f = {0};
    open_model(&f, DESCRIPTIONS[kind], VOCAB, TARN__F32);
    tarn__generator_options options = default_options(MOST);
    options.samples = true;
    options.min_tokens = MOST;
    options.number = N;
    options.sampling.top_k = kind % 2 ? 5 : 0;
    tarn__generator *generator = open_generator(&f, &options);
    tarn__translation results[PROMPTS];
    must(tarn__generator_run(generator, results, f.ids, f.offsets, PROMPTS));
    tarn__decoder_stats stats;
    tarn__generator_get_stats(generator, &stats);
    assert_int_equal(stats.rows, f.offsets[PROMPTS] + PROMPTS + PROMPTS * N * (MOST - 1));
    for (int p = 0; p < PROMPTS; p++) {
      assert_int_equal(results[p].count, N);
      for (uint32_t i = 0; i < N; i++) {
        tarn__decoder *decoder;
        tarn__translation alone;
        sample_alone(&f, &alone, &decoder, &options.sampling, p, i, MOST);
        const tarn__translation among = {&results[p].hypotheses[i], 1};
        assert_same(&among, &alone);
        tarn__decoder_close(&decoder);
      }
    }
    tarn__generator_close(&generator);
    close_model(&f);
  }
}

// More samples than a decoder has room for, of prompts that take turns with others: none is lost, and the bits are
// those of fewer.
static void many_samples_take_turns(void **state) {
  (void)state;
  enum { MANY = 2 * TARN__DECODER_ROWS + 11, FEW = 5 };
  fixture f = {0};
  open_model(&f, DESCRIPTIONS[FIRST_MIXED], VOCAB, TARN__F32);
  tarn__generator_options options = default_options(12);
  options.samples = true;
  tarn__translation all[3], some[3];
  options.number = MANY;
  tarn__generator *many = open_generator(&f, &options);
  options.number = FEW;
  tarn__generator *few = open_generator(&f, &options);
  must(tarn__generator_run(many, all, f.ids, f.offsets + 1, 3));
  must(tarn__generator_run(few, some, f.ids, f.offsets + 1, 3));
  for (int p = 0; p < 3; p++) {
    assert_int_equal(all[p].count, MANY);
    for (int i = 0; i < MANY; i++) assert_in_range(all[p].hypotheses[i].length, 1, 12);
    all[p].count = FEW;
    assert_same(&all[p], &some[p]);
  }
  tarn__generator_close(&many);
  tarn__generator_close(&few);
  close_model(&f);
}

static void ends(void **state) {
  (void)state;
  fixture f = {0};
  tarn__translation results[PROMPTS];
  open_model(&f, DESCRIPTIONS[1], VOCAB, TARN__F32);
  // A model with positions ends at its greatest length: 60 with the prompt.
  tarn__generator_options options = default_options(1000);
  options.min_tokens = 1000;
  tarn__generator *generator = open_generator(&f, &options);
  assert_int_equal(tarn__generator_longest(generator), 59);
  must(tarn__generator_run(generator, results, f.ids, f.offsets, PROMPTS));
  for (int p = 0; p < PROMPTS; p++)
    assert_int_equal(results[p].hypotheses[0].length, 60 - (f.offsets[p + 1] - f.offsets[p]));
  // The longest prompt has one token behind it.
  int32_t many[60];
  for (int i = 0; i < 60; i++) many[i] = 3 + i % 40;
  must(tarn__generator_run(generator, results, many, (int64_t[]){0, 59}, 1));
  assert_int_equal(results[0].hypotheses[0].length, 1);
  assert_int_equal(tarn__generator_run(generator, results, many, (int64_t[]){0, 60}, 1), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "prompt 1 has 60 tokens, and the model takes 59"));
  tarn__generator_close(&generator);
  // No banned token comes, whatever the method.
  for (int method = 0; method < 3; method++) {
    options = default_options(30);
    options.samples = method == 1;
    options.beam = method == 2 ? 4 : 1;
    for (int32_t id = 3; id < 7; id++) options.banned[options.banned_count++] = id;
    options.min_tokens = 5;
    generator = open_generator(&f, &options);
    must(tarn__generator_run(generator, results, f.ids, f.offsets, PROMPTS));
    for (int p = 0; p < PROMPTS; p++) {
      const tarn__hypothesis *found = results[p].hypotheses;
      for (int64_t t = 0; t < found->length; t++) {
        assert_true(found->ids[t] < 3 || found->ids[t] >= 7);
        if (found->ids[t] == EOS) assert_true(t >= 5 && t == found->length - 1);
      }
    }
    tarn__generator_close(&generator);
  }
  close_model(&f);
}

static void refused(const fixture *f, tarn__generator_options options, const char *words) {
  tarn__generator *generator;
  assert_int_equal(tarn__generator_open(&generator, f->model, EOS, &options), TARN_STATUS_USAGE);
  assert_null(generator);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

static void bad_input(void **state) {
  (void)state;
  fixture f = {0};
  open_model(&f, DESCRIPTIONS[0], VOCAB, TARN__F32);
  tarn__generator_options o = default_options(5), samples = o;
  samples.samples = true;
#define REFUSED(from, change, words)    \
  do {                                  \
    tarn__generator_options bad = from; \
    bad.change;                         \
    refused(&f, bad, words);            \
  } while (0)
  REFUSED(o, max_tokens = 0, "max-tokens must be from 1");
  REFUSED(o, min_tokens = 6, "min-tokens must be from 0 to the max-tokens of 5");
  REFUSED(o, beam = 0, "beam must be from 1");
  REFUSED(o, number = 2, "a beam of 1 gives at most as many");
  REFUSED(o, length_penalty = NAN, "length penalty");
  REFUSED(samples, beam = 2, "does not sample");
  REFUSED(samples, number = 0, "number must be from 1");
  REFUSED(samples, sampling.temperature = 0, "temperature must be above 0");
  REFUSED(samples, sampling.temperature = -1, "temperature must be above 0");
  REFUSED(samples, sampling.temperature = NAN, "temperature must be above 0");
  REFUSED(samples, sampling.temperature = INFINITY, "temperature must be above 0");
  REFUSED(samples, sampling.top_k = -1, "top-k must be 1 or more");
  REFUSED(samples, sampling.top_p = 0, "top-p must be above 0 and at most 1");
  REFUSED(samples, sampling.top_p = 1.01, "top-p must be above 0 and at most 1");
  REFUSED(samples, sampling.top_p = NAN, "top-p must be above 0 and at most 1");
  tarn__generator *generator = open_generator(&f, &o);
  tarn__translation results[2];
  int32_t ids[4] = {3, VOCAB, 5, 6};
  assert_int_equal(tarn__generator_run(generator, results, ids, (int64_t[]){0, 0, 4}, 2), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "prompt 2 has the token 53"));
  ids[1] = -1;
  assert_int_equal(tarn__generator_run(generator, results, ids, (int64_t[]){0, 4}, 1), TARN_STATUS_DATA);
  must(tarn__generator_run(generator, results, ids, (int64_t[]){0}, 0));
  tarn__generator_close(&generator);
  // Weights that are not numbers are noticed by every method.
  for (int64_t i = 0; i < 32; i++) ((float *)f.model->weights.output_table->value)[7 * 32 + i] = NAN;
  for (int method = 0; method < 2; method++) {
    generator = open_generator(&f, method ? &samples : &o);
    assert_int_equal(tarn__generator_run(generator, results, ids + 2, (int64_t[]){0, 2}, 1), TARN_STATUS_NUMERIC);
    tarn__generator_close(&generator);
  }
  close_model(&f);
  const char *translation =
      "model: { d_model: 32 }\nencoder: { layers: L }\ndecoder: { layers: L }\nkinds:\n  L: { heads: 4 }\n";
  must(tarn_config_parse(&f.config, "test", translation, strlen(translation), NULL, 0));
  must(tarn__model_open(&f.model, f.config, VOCAB, VOCAB, TARN__F32, false));
  refused(&f, o, "a translation model does not continue text");
  close_model(&f);
}

static void no_memory(void **state) {
  (void)state;
  fixture f = {0};
  open_model(&f, DESCRIPTIONS[FIRST_MIXED], VOCAB, TARN__F32);
  tarn__generator_options options = default_options(4);
  options.samples = true;
  options.number = 2;
  const size_t before = tarn__memory_now(TARN__MEMORY_ACTIVATION);
  for (uint64_t n = 1;; n++) {
    tarn__translation results[PROMPTS];
    tarn__generator *generator;
    tarn__memory_fail_after(n);
    tarn_status status = tarn__generator_open(&generator, f.model, EOS, &options);
    if (status == TARN_STATUS_OK) status = tarn__generator_run(generator, results, f.ids, f.offsets, PROMPTS);
    tarn__memory_fail_after(0);
    tarn__generator_close(&generator);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_ACTIVATION), before);
    if (status == TARN_STATUS_OK) {
      assert_true(n > 20);
      break;
    }
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
  close_model(&f);
}

// More than 16 million parameters, nearly all of them positions, which take no time.
static const char *const LARGE = LANGUAGE("max_length: 600000, norm: pre, positions: learned", "L",
                                          "  L: { mixer: attention, heads: 4, ffn: 48 }\n");

// Few rows share the steps of a decoder, as long as it has room for so many; in INT4 items alone count.
static void large_models_divide_rows(void **state) {
  (void)state;
  fixture f = {0};
  must(tarn_config_parse(&f.config, "test", LARGE, strlen(LARGE), NULL, 0));
  must(tarn__model_open(&f.model, f.config, VOCAB, VOCAB, TARN__F32, false));
  assert_int_equal(tarn__crew_decoders(f.model, 15, 1000, 2), 1);
  assert_int_equal(tarn__crew_decoders(f.model, 127, 127, 2), 1);
  assert_int_equal(tarn__crew_decoders(f.model, 128, 128, 2), 2);
  assert_int_equal(tarn__crew_decoders(f.model, 25, 125, 2), 1);
  assert_int_equal(tarn__crew_decoders(f.model, 26, 130, 2), 2);
  assert_int_equal(tarn__crew_decoders(f.model, 200, TARN__DECODER_ROWS - 1, 16), 1);
  assert_int_equal(tarn__crew_decoders(f.model, 200, TARN__DECODER_ROWS, 16), 16);
  f.model->params[0]->decoding.rounding = TARN__ROUNDING_INT4;
  assert_int_equal(tarn__crew_decoders(f.model, 15, 75, 2), 1);
  assert_int_equal(tarn__crew_decoders(f.model, 16, 16, 2), 2);
  close_model(&f);
}

// Prompts of a feed, and how many of them were asked for before the second decoder existed.
typedef struct feeding {
  const tarn__crew *crew;
  tarn__item_options own;
  int64_t given, done, all, alone;
} feeding;

static bool give_prompt(void *user, tarn__item *item) {
  static const int32_t prompt[1] = {3};
  feeding *f = user;
  if (f->given == f->all) return false;
  if (!f->crew->fed[0][1]) f->alone++;
  *item = (tarn__item){.ids = prompt, .length = 1, .index = f->given++, .own = &f->own};
  return true;
}

static void take_result(void *user, const tarn__item *item, tarn_status status, const tarn__translation *result) {
  feeding *f = user;
  (void)item;
  if (status == TARN_STATUS_OK && result) f->done++;
}

// A feed's beams are divided as soon as there are many rows, or the decoder that uses all threads has no room for the
// one that waits.
static void large_models_divide_feeds(void **state) {
  (void)state;
  static const struct {
    int64_t beam, max_tokens, alone;
  } cases[] = {{5, 1000, 26}, {12, 1000, 16}, {5, 64, 12}, {1, 64, 64}, {200, 1000, 1}};
  fixture f = {0};
  must(tarn_config_parse(&f.config, "test", LARGE, strlen(LARGE), NULL, 0));
  must(tarn__model_open(&f.model, f.config, VOCAB, VOCAB, TARN__F32, false));
  must(tarn__model_allocate(f.model));  // weights of 0, most of which are never touched
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn__decoder_options options = {.search = {.beam = 1, .length_penalty = 1.0, .eos = EOS, .groups = 1},
                                     .max_len_b = 3,
                                     .max_tokens = cases[i].max_tokens,
                                     .n_best = 1};
    tarn__crew crew;
    must(tarn__crew_open(&crew, f.model, &options, 2));
    feeding to = {.crew = &crew, .own = tarn__decoder_item(&options), .all = 2 * cases[i].alone + 1};
    to.own.search.beam = cases[i].beam;
    const tarn__feed feed = {.next = give_prompt, .done = take_result, .user = &to};
    must(tarn__crew_feed(&crew, false, &feed));
    assert_int_equal(to.alone, cases[i].alone + 1);
    assert_int_equal(to.done, to.all);
    tarn__crew_close(&crew);
  }
  close_model(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(greedy_is_the_argmax),
      cmocka_unit_test(losses_are_of_rounded_tables),
      cmocka_unit_test(batches_change_no_bit),
      cmocka_unit_test(samples_fit_by_chi_square),
      cmocka_unit_test(wide_beams_are_exhaustive),
      cmocka_unit_test(cost_does_not_grow),
      cmocka_unit_test(prompts_are_read_at_once),
      cmocka_unit_test(samples_share_their_prompt),
      cmocka_unit_test(many_samples_take_turns),
      cmocka_unit_test(ends),
      cmocka_unit_test(bad_input),
      cmocka_unit_test(no_memory),
      cmocka_unit_test(large_models_divide_rows),
      cmocka_unit_test(large_models_divide_feeds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
