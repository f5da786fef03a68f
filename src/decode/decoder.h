// A decoder: it runs searches over sentences with incremental decoding, and accepts new ones as others finish, so that
// its products keep their size. With a translation model it encodes sentences and translates them; with a language
// model it reads prompts and continues them. Several decoders may share a queue, each on its own thread.
//
// A step computes one row per running hypothesis. Keys and values, of self-attention and of the encoder's output,
// inputs of convolutions and states of recurrences are appended to packed caches, and a hypothesis sees a list of row
// numbers. So no cache is copied when hypotheses fork, and a finished sentence costs nothing more. The list is only as
// long as the model's mixers require: with recurrences and convolutions alone it does not grow with the text; if other
// layers see the whole text, the two groups of layers have separate lists and caches. The model's input before its
// first own token (the end of sentence, then the prompt) takes as many rows of a step as there is room for, or one per
// step if a mixer needs the state of the previous token; the output layer is computed only for the last one. Samples of
// one prompt that are active together read it once.
#ifndef TARN_DECODE_DECODER_H
#define TARN_DECODE_DECODER_H

#include <stdint.h>

#include "base/status.h"
#include "decode/beam.h"
#include "decode/continuation.h"
#include "decode/processors.h"
#include "decode/queue.h"
#include "model/model.h"
#include "ops/sampler.h"

// A token of an item, as soon as it is chosen.
typedef struct tarn__heard {
  int32_t id;  // -1: a step of a beam of more than 1, whose tokens are not certain before its end
  float log_probability;
  bool last;  // the item is complete with it
  // The likeliest tokens in its place, as the model itself has them, best first [tops]; padded with -1.
  const int32_t *top_ids;
  const float *top_log_probabilities;
  int64_t tops;
} tarn__heard;

// Is told of every token of an item. Any status but OK ends the item as its failure.
typedef struct tarn__listener {
  tarn_status (*hear)(void *user, const tarn__heard *heard);
  void *user;
} tarn__listener;

// What an item of a feed has in place of the decoder's options (below). A decoder that draws draws all of its items,
// each with a beam of 1.
typedef struct tarn__item_options {
  tarn__beam_options search;  // with the decoder's end of sentence and banned tokens
  tarn__sampling sampling;    // where the decoder draws
  const tarn__processing *processing;
  const tarn__stops *stops;
  double max_len_a;
  int64_t max_len_b, n_best;
  int64_t tops;             // likeliest tokens that the listener is told of; 0 where the decoder searches
  tarn__listener listener;  // hear() NULL: nobody hears
} tarn__item_options;

// The options of every kind of decoder. One with a feed searches with a beam of 1 here, and its items have others.
typedef struct tarn__decoder_options {
  tarn__beam_options search;
  const tarn__sampling *sampling;  // draws each next token; search.beam is 1, and each item is one sample. NULL: search
  const tarn__processing *processing;  // changes logits; NULL: nothing does
  const tarn__stops *stops;            // end continuations; NULL: nothing does
  bool forced;                         // items may have phrases that their translations have to contain
  // A translation has at most max_len_a * source tokens + max_len_b tokens before its end of sentence, its prefix
  // counted; a continuation by a language model has at most max_len_b including it. Neither exceeds the model's
  // max_length, except that a language model without positions has no such limit.
  double max_len_a;
  int64_t max_len_b;
  int64_t max_tokens;               // maximum of active source or prompt tokens, and of hypotheses; a longer item is
                                    // processed alone
  int64_t n_best;                   // hypotheses to return per item, 1 .. beam
  int64_t iterations, length_beam;  // of a decoder that refines whole sentences (translate.h)
  double placeholder_penalty;
  int32_t mask;                  // the token that it fills in
  struct tarn_profile *profile;  // NULL: no measurement
} tarn__decoder_options;

typedef struct tarn__hypothesis {
  const int32_t *ids;              // [length]; the last one is the end of sentence, except with an open end
  const float *log_probabilities;  // [length], of each token, natural logarithm
  int64_t length;                  // 1 or more
  double log_probability;          // their sum
  double score;                    // log_probability / length^length_penalty
  const float *attention;          // [length][source tokens] (aligner.h); NULL: not asked for
} tarn__hypothesis;

// Hypotheses of one item, best first; from one to n_best (fewer than n_best only if the vocabulary is too small for
// n_best different ones).
typedef struct tarn__translation {
  const tarn__hypothesis *hypotheses;
  int64_t count;
} tarn__translation;

typedef struct tarn__decoder_stats {
  int64_t sentences, source_tokens, target_tokens;  // target: of the best hypothesis
  int64_t steps, rows;                              // decoder steps, and rows computed in them
  int64_t seen;                                     // cache rows seen by these rows, including their own
  int64_t iterations;  // over sentences, of decoders that refine them; each as many as it took
} tarn__decoder_stats;

// Maximum number of hypotheses per decoder. Products of this many rows run at full speed; more would overflow the
// caches.
enum { TARN__DECODER_ROWS = 320 };

// Options as those of an item.
tarn__item_options tarn__decoder_item(const tarn__decoder_options *options);

typedef struct tarn__decoder tarn__decoder;

// Uses `threads` threads. The options are copied, but not the data they point to.
tarn_status tarn__decoder_open(tarn__decoder **decoder, const tarn__model *model, const tarn__decoder_options *options,
                               int threads) TARN_CHECKED;
void tarn__decoder_close(tarn__decoder **decoder);

// Lends memory, aligned to 64 bytes, and releases all large blocks that the decoder holds (tarn__translator_lend()).
void tarn__decoder_lend(tarn__decoder *decoder, void *memory, size_t bytes);

// The place of a decoder among those that share a feed, and its threads from now on.
void tarn__decoder_seat(tarn__decoder *decoder, int place, int threads);
// What it has at work of a feed, also between two runs.
tarn__at_work tarn__decoder_at_work(const tarn__decoder *decoder);

// Discards the results of earlier runs.
void tarn__decoder_reset(tarn__decoder *decoder);

// Processes items of the queue until it is empty: results[index] of each. Their data belong to the decoder and live
// until reset or close. A failure empties the queue, so that other decoders stop as well. With a feed, `results` may be
// NULL; an item whose listener fails, or for which nothing can be chosen, fails alone, and with a failure of the
// decoder itself all that it has. It may return while items of a feed are at work (tarn__queue_leaves()); the next run
// goes on with them.
tarn_status tarn__decoder_run(tarn__decoder *decoder, tarn__queue *queue, tarn__translation *results) TARN_CHECKED;

// Adds the decoder's totals since it was opened.
void tarn__decoder_add_stats(const tarn__decoder *decoder, tarn__decoder_stats *stats);

#endif
