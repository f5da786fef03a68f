// Language models beside what transformers computes of them (make_gpt2.py, make_llama.py). Include it after cmocka.h
// and import_check.h.
#ifndef TARN_TESTS_LANGUAGE_CHECK_H
#define TARN_TESTS_LANGUAGE_CHECK_H

#include <math.h>
#include <string.h>

#include "decode/generator.h"
#include "golden/import_check.h"
#include "score/scorer.h"

enum { LANGUAGE_TOKENS = 259, LANGUAGE_LENGTH = 12, LANGUAGE_PROMPT = 4, LANGUAGE_NEW = 11, LANGUAGE_END = 2 };

// The log-probability of the file's tokens (of each, or of every n-th) behind every token of its sentences.
static inline void check_language_scores(const tarn__checkpoint *c, const tarn__safetensors *file) {
  const tarn__stored *shape = tarn__safetensors_find(file, "log_probabilities");
  const int32_t *ids = tarn__safetensors_find(file, "ids")->data;
  const float *wanted = shape->data;
  const int sentence_count = (int)shape->shape[0], columns = (int)shape->shape[2];
  const int step = (LANGUAGE_TOKENS + columns - 1) / columns;
  static int32_t tokens[LANGUAGE_TOKENS][LANGUAGE_LENGTH];
  static double values[LANGUAGE_TOKENS][LANGUAGE_LENGTH];
  static tarn__scorer_sentence sentences[LANGUAGE_TOKENS];
  tarn__scorer *scorer;
  tarn__scorer_options options;
  double worst = 0.0;
  int compared = 0;
  assert_int_equal(shape->shape[1], LANGUAGE_LENGTH);
  tarn__scorer_default(&options);
  must(tarn__scorer_open(&scorer, c->model, LANGUAGE_END, &options));
  for (int s = 0; s < sentence_count; s++) {
    for (int k = 0; k < columns; k++) {
      memcpy(tokens[k], ids + s * LANGUAGE_LENGTH + 1, (LANGUAGE_LENGTH - 1) * sizeof **tokens);
      tokens[k][LANGUAGE_LENGTH - 1] = k * step;
      sentences[k] =
          (tarn__scorer_sentence){.ids = tokens[k], .length = LANGUAGE_LENGTH, .log_probabilities = values[k]};
    }
    must(tarn__scorer_run(scorer, sentences, columns));
    for (int k = 0; k < columns; k++)
      for (int t = 0; t < LANGUAGE_LENGTH; t++) {
        if (tokens[k][t] % step) continue;
        const float expected = wanted[(s * LANGUAGE_LENGTH + t) * columns + tokens[k][t] / step];
        worst = fmax(worst, fabs(values[k][t] - (double)expected));
        compared++;
      }
  }
  assert_true(compared >= sentence_count * columns);
  if (!(worst < 1e-5)) fail_msg("%s: a log-probability is off by %g", c->path, worst);
  tarn__scorer_close(&scorer);
}

static inline void check_language_greedy(const tarn__checkpoint *c, const tarn__safetensors *file) {
  enum { MOST = 8, ALL = 1 + LANGUAGE_PROMPT + LANGUAGE_NEW };
  const tarn__stored *stored = tarn__safetensors_find(file, "greedy");
  const int32_t *greedy = stored->data;
  const int count = (int)stored->shape[0];
  tarn__generator *generator;
  tarn__generator_options options;
  tarn__translation results[MOST];
  int32_t prompts[MOST * LANGUAGE_PROMPT];
  int64_t offsets[MOST + 1] = {0};
  assert_true(count <= MOST && stored->shape[1] == ALL);
  for (int s = 0; s < count; s++) {
    memcpy(prompts + s * LANGUAGE_PROMPT, greedy + s * ALL + 1, LANGUAGE_PROMPT * sizeof *prompts);
    offsets[s + 1] = (s + 1) * LANGUAGE_PROMPT;
  }
  tarn__generator_default(&options);
  options.max_tokens = options.min_tokens = LANGUAGE_NEW;
  must(tarn__generator_open(&generator, c->model, LANGUAGE_END, &options));
  must(tarn__generator_run(generator, results, prompts, offsets, count));
  for (int s = 0; s < count; s++) {
    assert_int_equal(results[s].hypotheses[0].length, LANGUAGE_NEW);
    assert_memory_equal(results[s].hypotheses[0].ids, greedy + s * ALL + 1 + LANGUAGE_PROMPT,
                        LANGUAGE_NEW * sizeof *greedy);
  }
  tarn__generator_close(&generator);
}

static inline void check_language_model(const char *checkpoint, const char *expected) {
  tarn__checkpoint *c;
  tarn__safetensors file = {0};
  must(tarn__checkpoint_open(&c, checkpoint, TARN__F32));
  must(tarn__safetensors_open(&file, expected));
  check_language_scores(c, &file);
  check_language_greedy(c, &file);
  tarn__safetensors_close(&file);
  tarn__checkpoint_close(&c);
}

// Two checkpoints hold the same tensors with the same values.
static inline void check_same_tensors(const char *one, const char *other) {
  tarn__safetensors a = {0}, b = {0};
  must(tarn__safetensors_open(&a, one));
  must(tarn__safetensors_open(&b, other));
  assert_int_equal(a.count, b.count);
  for (size_t i = 0; i < a.count; i++) {
    assert_string_equal(a.tensors[i].name, b.tensors[i].name);
    assert_int_equal(a.tensors[i].bytes, b.tensors[i].bytes);
    assert_memory_equal(a.tensors[i].data, b.tensors[i].data, a.tensors[i].bytes);
  }
  tarn__safetensors_close(&a);
  tarn__safetensors_close(&b);
}

// The log-probability of a short text.
static inline double score_text(const char *path, int32_t end) {
  tarn__checkpoint *c;
  tarn__scorer *scorer;
  tarn__scorer_options options;
  int32_t ids[10] = {3, 9, 27, 81, 5, 15, 45, 7, 21, end};
  double values[10], sum = 0.0;
  must(tarn__checkpoint_open(&c, path, TARN__F32));
  tarn__scorer_default(&options);
  must(tarn__scorer_open(&scorer, c->model, tarn_vocab_eos(c->target), &options));
  must(tarn__scorer_run(scorer, &(tarn__scorer_sentence){.ids = ids, .length = 10, .log_probabilities = values}, 1));
  for (int i = 0; i < 10; i++) sum += values[i];
  tarn__scorer_close(&scorer);
  tarn__checkpoint_close(&c);
  return sum;
}

#endif
