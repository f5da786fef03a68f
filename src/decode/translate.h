// Translation of token ids by a model in memory: beam search (src/decode/beam.h) with incremental decoding, or the
// engine of the model's task (src/decode/engine.h).
//
// Sentences are sorted by length and processed by decoders (src/decode/crew.h), one per thread, each of which takes
// sentences from a common queue whenever a quarter of its slots is free. So threads do not wait for each other, and
// steps stay full until the queue is empty.
#ifndef TARN_DECODE_TRANSLATE_H
#define TARN_DECODE_TRANSLATE_H

#include <stdint.h>

#include "base/map.h"
#include "base/status.h"
#include "comm/comm.h"
#include "decode/decoder.h"
#include "model/model.h"

typedef struct tarn__translator_options {
  int64_t beam;           // hypotheses per sentence, 1 .. 1024; 1: greedy. Default 5
  double length_penalty;  // score = log-probability / length^length_penalty, including the end of sentence; default 1
  double max_len_a;       // a translation has at most max_len_a * source tokens + max_len_b tokens, excluding its end
                          // of
  int64_t max_len_b;      // sentence but including the source's (as in fairseq), and with its end of sentence never
                          // more than the model's max_length; default 1.2, 10
  int64_t max_tokens;   // maximum of active source tokens of a decoder, and of hypotheses (a decoder uses no more than
                        // make it faster); a longer sentence is translated alone. Default 4096
  int64_t n_best;       // hypotheses to return, 1 .. beam; default 1
  int threads;          // 0: those of the thread pool (tarn__threads()); default 0
  int64_t min_length;   // minimum number of tokens before the end of sentence; default 1
  bool early_stopping;  // see decode/beam.h; always on with a beam of 1; default true
  tarn__rounding rounding;             // of weights of products, whose activations are then INT8; default none
  bool weights_change;                 // weights change between runs, so pack them in every run; default false: once
  const tarn__processing *processing;  // of logits, must live as long as the translator uses it; default NULL: none
  int64_t groups;                      // of diverse beam search, 1 .. beam and a divisor of it; default 1
  double diversity;                    // its penalty, 0 or more; default 0
  bool forced;                         // runs may have phrases (tarn__translator_force()); default false
  double coverage_penalty;             // beta of aligner.h, -100 .. 100; default 0: none
  bool alignment;                      // hypotheses get their attention (aligner.h); default false
  int64_t samples;  // of each sentence, drawn instead of a search, whose first n_best are returned in their order:
                    // 1 .. 1000000; 0: search. Default 0
  tarn__sampling sampling;  // default: temperature 1, all tokens, seed 1
  // Of models that refine whole sentences (refine.h), for which beam, length_penalty, max_len_a, max_len_b, min_length
  // and early_stopping mean nothing; n_best is 1 .. length_beam:
  int64_t iterations;            // over a sentence, 1 .. 1024; default 10
  int64_t length_beam;           // lengths of which the best translation is taken, 1 .. 1024; default 5
  double placeholder_penalty;    // lowers the log-probability of no placeholder, 0 .. 100; default 0
  int32_t mask;                  // of the target vocabulary; default -1: none, which these models do not take
  int32_t pad;                   // of the target vocabulary, never chosen; default -1: none
  int32_t unk;                   // of the target vocabulary; default -1: none
  bool allow_unk;                // whether that one may be chosen; default true
  struct tarn_profile *profile;  // measures runs (graph/profile.h); default NULL: no measurement
  tarn__comm *comm;              // its ranks share each run; default NULL: this process alone
} tarn__translator_options;

// The defaults above.
void tarn__translator_default(tarn__translator_options *options);
// The options in the description under `translate`; the others as in tarn__translator_default().
void tarn__translator_from_config(tarn__translator_options *options, const tarn_config *config);

// Sentences, and tokens including the ends of sentences.
typedef tarn__decoder_stats tarn__translator_stats;

typedef struct tarn__translator tarn__translator;

// The model must stay open, and may change its weights between two runs. `eos` is the end of sentence of the target
// vocabulary; it is also the first token that the decoder reads, unless model.decoder_start specifies another. Fails
// with USAGE (options) or MEMORY.
tarn_status tarn__translator_open(tarn__translator **translator, const tarn__model *model, int32_t eos,
                                  const tarn__translator_options *options) TARN_CHECKED;

// Sets beam, n_best, length_penalty, max_len_a, max_len_b, max_tokens, iterations, length_beam, placeholder_penalty,
// processing, groups, diversity, forced, coverage_penalty, alignment, samples and sampling; the other options stay as
// opened. Discards earlier results. Not for a translator with lent memory. After a failure (USAGE, MEMORY) the
// translator is unchanged.
tarn_status tarn__translator_set(tarn__translator *translator, const tarn__translator_options *options) TARN_CHECKED;

void tarn__translator_close(tarn__translator **translator);

// Translates `sentences` sentences. Sentence s is ids[offsets[s]] .. ids[offsets[s + 1] - 1]: at least one token, the
// last one its end of sentence, and at most the model's max_length tokens. translations [sentences] are filled in the
// order of the sentences; their data belong to the translator and live until its next run or close. Results do not
// depend on how sentences are grouped, nor on the number of threads, except for the rounding of sums.
// Fails with DATA (a sentence is empty or too long, an id is outside the vocabulary), NUMERIC (a log-probability is
// NaN), or MEMORY.
tarn_status tarn__translator_run(tarn__translator *translator, tarn__translation *translations, const int32_t *ids,
                                 const int64_t *offsets, int64_t sentences) TARN_CHECKED;

// The beginnings of the translations of the next run, on this process alone: that of sentence s is ids[offsets[s]] ..
// ids[offsets[s + 1] - 1], and may be empty. They are read and not chosen: hypotheses have the tokens behind them, with
// their scores. Must be valid during the run, which fails with DATA if one leaves no room within the model's max_length
// or has an id outside the target's vocabulary. NULL: none.
void tarn__translator_prefix(tarn__translator *translator, const int32_t *ids, const int64_t *offsets);

// The phrases that the translations of the next run have to contain (forced.h), of each sentence, on this process
// alone; one without has a count of 0. For a beam of 2 or more without groups. Must be valid during the run, which
// fails with DATA if a translation cannot have them. NULL: none.
void tarn__translator_force(tarn__translator *translator, const tarn__forced *forced);

// Continuous batching, on this process alone and with weights that do not change: translates the items of a feed
// (crew.h: tarn__crew_feed()).
tarn_status tarn__translator_feed(tarn__translator *translator, bool draws, const tarn__feed *feed) TARN_CHECKED;
// Options as those of an item of a feed, which point to `processing`; those that translator_set() does not set do not
// matter. Opens what else they need. Fails with USAGE or MEMORY.
tarn_status tarn__translator_item(tarn__translator *translator, tarn__item_options *own,
                                  const tarn__translator_options *options) TARN_CHECKED;
// Whether an item can be translated; messages name its index, from 1. Fails with DATA.
tarn_status tarn__translator_check_item(const tarn__translator *translator, const tarn__item *item) TARN_CHECKED;
// Completes what was found for an item with such options, as a run does: alignment and coverage penalty. The
// hypotheses live until the next call or run.
tarn_status tarn__translator_complete(tarn__translator *translator, tarn__translation *found, const tarn__item *item,
                                      const tarn__translator_options *options) TARN_CHECKED;

// With several ranks a run is collective: rank 0 supplies the sentences and receives the translations; the arguments of
// other ranks are ignored. tarn__translator_help() executes the runs on another rank until rank 0 calls
// tarn__translator_end(), which does nothing for a single process; `map` is the file with the model.
tarn_status tarn__translator_help(tarn__translator *translator, const tarn__map *map) TARN_CHECKED;
tarn_status tarn__translator_end(tarn__translator *translator) TARN_CHECKED;

// Lends memory, aligned to 64 bytes, for runs to use as far as it suffices, and releases all large blocks that the
// translator holds; NULL and 0 end the loan. The translations of the last run remain valid.
void tarn__translator_lend(tarn__translator *translator, void *memory, size_t bytes);

// Estimates the bytes of workspaces and caches for a run of `sentences` sentences (1 or more) of `length` source
// tokens, with translations of the maximum length, without allocating them. options.threads must be set. Fails with
// MEMORY.
tarn_status tarn__translator_plan(size_t *bytes, const tarn__model *model, const tarn__translator_options *options,
                                  double length, int64_t sentences) TARN_CHECKED;

// The checkpoint of a text translator, which owns it. Its model is packed until the translator is closed.
struct tarn__checkpoint;
struct tarn_translator;
struct tarn__checkpoint *tarn__translator_checkpoint(struct tarn_translator *translator);

// Totals of all runs since open.
void tarn__translator_get_stats(const tarn__translator *translator, tarn__translator_stats *stats);

#endif
