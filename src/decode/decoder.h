// One decoder: runs searches over sentences with incremental decoding, and takes in new ones as others finish, so that
// its products stay as tall as they began. Of a translation model it encodes sentences and translates them; of a
// language model it reads prompts and continues them. Several decoders may share a queue, each on a thread of its own.
//
// A step computes one row per running hypothesis. Keys and values, of self-attention and of the encoder's output,
// inputs of convolutions and states of recurrences are appended to packed caches, and which rows a hypothesis sees is a
// list of numbers: no cache is copied when hypotheses fork, and a sentence that is finished costs nothing from then on.
// The list is no longer than what the model's mixers see: behind recurrences and convolutions alone it does not grow
// with the text, and beside layers that see all of it they have lists and caches of their own. What a model reads
// before its first own token (the end of sentence, then the prompt) goes through as many rows of a step as there is
// room for, or one a step where a mixer needs the state of the token before; the output layer is computed for the last
// of them alone. Samples of one prompt that are in work together read it once.
#ifndef TARN_DECODE_DECODER_H
#define TARN_DECODE_DECODER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"
#include "decode/beam.h"
#include "model/model.h"
#include "ops/sampler.h"

typedef struct tarn__decoder_options {
  tarn__beam_options search;
  const tarn__sampling *sampling;  // draws each next token; search.beam is 1, and each item one sample. NULL: searches
  // A result of a translation model has at most max_len_a * source tokens + max_len_b tokens before its end of
  // sentence, one of a language model at most max_len_b with it; neither has more than fit into the model's max_length,
  // which is no limit for a language model without positions.
  double max_len_a;
  int64_t max_len_b;
  int64_t max_tokens;            // most source or prompt tokens in work, and most hypotheses; a longer item is alone
  int64_t n_best;                // hypotheses to return of each item, 1 .. beam
  struct tarn_profile *profile;  // NULL: nothing is measured
} tarn__decoder_options;

typedef struct tarn__hypothesis {
  const int32_t *ids;              // [length]; the last one is the end of sentence, unless its end is open
  const float *log_probabilities;  // [length], of each token, natural logarithm
  int64_t length;                  // 1 or more
  double log_probability;          // their sum
  double score;                    // log_probability / length^length_penalty
} tarn__hypothesis;

// Hypotheses of one item, best first; at least one, at most n_best (fewer only where the vocabulary is too small for
// n_best different ones).
typedef struct tarn__translation {
  const tarn__hypothesis *hypotheses;
  int64_t count;
} tarn__translation;

typedef struct tarn__decoder_stats {
  int64_t sentences, source_tokens, target_tokens;  // target: of the best hypothesis
  int64_t steps, rows;                              // decoder steps, and rows computed in them
  int64_t seen;                                     // cache rows that these rows saw, their own counted
} tarn__decoder_stats;

// A sentence or prompt of the input.
typedef struct tarn__item {
  const int32_t *ids;  // [length]; a prompt may be empty
  int64_t length;
  int64_t index;  // of its result
  // Sampling: what its random numbers are made of.
  uint64_t key;
  uint32_t sample;
} tarn__item;

// The sentences that nobody has taken yet: items[next] .. items[count - 1].
typedef struct tarn__queue {
  pthread_mutex_t lock;
  const tarn__item *items;
  int64_t count, next;
  int64_t share;  // most items that one decoder has in work, so that few of them are shared out
  // How far the work is: of what items weigh, their lengths plus one. NULL: nobody is told.
  struct tarn__work *work;
  double weight;
  _Atomic int64_t finished;
} tarn__queue;

// Most hypotheses of one decoder. Products of so many rows run at full speed; more would only leave the caches.
enum { TARN__DECODER_ROWS = 320 };

typedef struct tarn__decoder tarn__decoder;

// Computes with `threads` threads. The options are copied, but for what they point to.
tarn_status tarn__decoder_open(tarn__decoder **decoder, const tarn__model *model, const tarn__decoder_options *options,
                               int threads) TARN_CHECKED;
void tarn__decoder_close(tarn__decoder **decoder);

// Lends memory, aligned to 64 bytes, and gives back all large blocks that the decoder holds (tarn__translator_lend()).
void tarn__decoder_lend(tarn__decoder *decoder, void *memory, size_t bytes);

// Forgets the results of earlier runs.
void tarn__decoder_reset(tarn__decoder *decoder);

// Works on items of the queue until it is empty: results[index] of each. What they point to belongs to the decoder and
// lives until reset or close. A failure empties the queue, so that other decoders stop as well.
tarn_status tarn__decoder_run(tarn__decoder *decoder, tarn__queue *queue, tarn__translation *results) TARN_CHECKED;

// Adds what the decoder has done since it was opened.
void tarn__decoder_add_stats(const tarn__decoder *decoder, tarn__decoder_stats *stats);

#endif
