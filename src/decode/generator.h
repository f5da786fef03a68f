// Continuation of prompts, given as ids, by a language model in memory: greedy search, beam search (src/decode/beam.h)
// or sampling (src/ops/sampler.h). The model processes each token once; states, keys and values are kept in the
// decoder's caches (src/decode/decoder.h).
#ifndef TARN_DECODE_GENERATOR_H
#define TARN_DECODE_GENERATOR_H

#include <stdint.h>

#include "base/status.h"
#include "decode/decoder.h"

typedef struct tarn__generator_options {
  int64_t max_tokens;                  // of a continuation, including its end of sentence, 1 .. 2^30; default 100
  int64_t min_tokens;                  // before an end of sentence, 0 .. max_tokens; default 0
  int64_t number;                      // continuations per prompt, 1 .. 1000000; for a search at most `beam`; default 1
  int64_t beam;                        // hypotheses of a search, 1 .. 1024; 1: greedy; default 1
  double length_penalty;               // for a search: score = log-probability / length^length_penalty; default 1
  bool samples;                        // draw `number` samples instead of searching; beam is 1; default false
  tarn__sampling sampling;             // default: temperature 1, all tokens, seed 1
  const tarn__processing *processing;  // of logits, must live as long as the generator uses it; default NULL: none
  const tarn__stops *stops;            // likewise; default NULL: none
  int64_t groups;                      // of diverse beam search, 1 .. beam and a divisor of it; default 1
  double diversity;                    // its penalty, 0 or more; default 0
  int32_t banned[TARN__BANNED];        // tokens that are never chosen; default none
  int banned_count;
  int threads;              // 0: those of the thread pool; default 0
  tarn__rounding rounding;  // of weights of products, whose activations are then INT8; default none
} tarn__generator_options;

void tarn__generator_default(tarn__generator_options *options);

typedef struct tarn__generator tarn__generator;

// The model must be a language model, and stay open and unchanged: its weights are packed once. `eos` is the end of
// sentence. Fails with USAGE (options) or MEMORY.
tarn_status tarn__generator_open(tarn__generator **generator, const tarn__model *model, int32_t eos,
                                 const tarn__generator_options *options) TARN_CHECKED;
void tarn__generator_close(tarn__generator **generator);

// Changes the options, except threads and rounding, for the same model. Discards the results of the last run. Fails
// with USAGE or MEMORY, leaving everything unchanged.
tarn_status tarn__generator_set(tarn__generator *generator, const tarn__generator_options *options) TARN_CHECKED;

// Maximum length of a prompt in tokens: one less than model.max_length, or unlimited for a model without positions.
int64_t tarn__generator_longest(const tarn__generator *generator);

// Continues `prompts` prompts. Prompt p is ids[offsets[p]] .. ids[offsets[p + 1] - 1] and may be empty; the model reads
// the end of sentence before it. results [prompts] receive the continuations, which end with the end of sentence unless
// max_tokens or model.max_length stopped them: those of a search best first (fewer than `number` only if the vocabulary
// is too small), samples in order. Their data live until the next run or close. A sample is a function of model,
// prompt, seed and its number, so equal prompts have equal samples.
// Fails with DATA (a prompt is too long, an id is outside the vocabulary), NUMERIC or MEMORY.
tarn_status tarn__generator_run(tarn__generator *generator, tarn__translation *results, const int32_t *ids,
                                const int64_t *offsets, int64_t prompts) TARN_CHECKED;

// Continues the prompts of a feed (crew.h: tarn__crew_feed()).
tarn_status tarn__generator_feed(tarn__generator *generator, bool draws, const tarn__feed *feed) TARN_CHECKED;
// Options as those of an item of a feed, and whether that is drawn: all but a beam, where greedy search draws the most
// likely token. Fails with USAGE if they are not possible for the generator's model.
tarn_status tarn__generator_item(const tarn__generator *generator, tarn__item_options *own, bool *draws,
                                 const tarn__generator_options *options) TARN_CHECKED;

// Whether a prompt can be continued, `number` in messages; and what stands for it in random numbers.
tarn_status tarn__generator_check_prompt(const tarn__generator *generator, const int32_t *ids, int64_t length,
                                         int64_t number) TARN_CHECKED;
uint64_t tarn__generator_key(const int32_t *ids, int64_t length);

// Totals of all runs since open.
void tarn__generator_get_stats(const tarn__generator *generator, tarn__decoder_stats *stats);

#endif
