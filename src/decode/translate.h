// Translation of token ids by a model in memory: beam search (src/decode/beam.h) with incremental decoding.
//
// Sentences are sorted by length and go through decoders (src/decode/crew.h), one a thread, each of which takes
// sentences from the common queue whenever a quarter of its places is free. So threads do not wait for one another, and
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
  int64_t beam;           // hypotheses a sentence, 1 .. 1024; 1: greedy. Default 5
  double length_penalty;  // score = log-probability / length^length_penalty, end of sentence counted; default 1
  double max_len_a;       // a translation has at most max_len_a * source tokens + max_len_b tokens, its end of
  int64_t max_len_b;      // sentence not counted, the source's counted (as in fairseq), and with its end of sentence
                          // never more than the model's max_length; default 1.2, 10
  int64_t max_tokens;   // most source tokens that a decoder has in work, and most hypotheses (of which it takes no more
                        // than make it faster); a longer sentence is translated alone. Default 4096
  int64_t n_best;       // hypotheses to return, 1 .. beam; default 1
  int threads;          // 0: those of the pool (tarn__threads()); default 0
  int64_t min_length;   // least tokens before the end of sentence; default 1
  bool early_stopping;  // decode/beam.h; a beam of 1 has it in any case; default true
  bool int8;            // weights of products as INT8, activations rounded to INT8 before each; default false
  bool weights_change;  // between runs, so that they are packed in every run; default false: once
  int32_t pad;          // of the target vocabulary, which is never taken; default -1: there is none
  struct tarn_profile *profile;  // measures runs (graph/profile.h); default NULL: nothing is measured
  tarn__comm *comm;              // its ranks share each run; default NULL: this process is alone
} tarn__translator_options;

// The constants above.
void tarn__translator_default(tarn__translator_options *options);
// What the description says under `translate`; the rest by tarn__translator_default().
void tarn__translator_from_config(tarn__translator_options *options, const tarn_config *config);

// Sentences and tokens with their ends of sentence.
typedef tarn__decoder_stats tarn__translator_stats;

typedef struct tarn__translator tarn__translator;

// The model must stay open, and may change its weights between two runs. `eos` is the end of sentence of the target
// vocabulary; it is also the first token that the decoder reads, unless model.decoder_start names another. Fails with
// USAGE (options) or MEMORY.
tarn_status tarn__translator_open(tarn__translator **translator, const tarn__model *model, int32_t eos,
                                  const tarn__translator_options *options) TARN_CHECKED;

// Sets another beam, n_best, length_penalty, max_len_a, max_len_b or max_tokens; the other options are those that it
// was opened with. What earlier runs returned is gone. Not for a translator that was lent memory. If it fails (USAGE,
// MEMORY), the translator is as before.
tarn_status tarn__translator_set(tarn__translator *translator, const tarn__translator_options *options) TARN_CHECKED;

void tarn__translator_close(tarn__translator **translator);

// Translates `sentences` sentences: sentence s is ids[offsets[s]] .. ids[offsets[s + 1] - 1], at least one token, the
// last one its end of sentence, and at most the model's max_length tokens. translations [sentences] are filled in the
// order of the sentences; what they point to belongs to the translator and lives until its next run or close. The
// result does not depend on which sentences are translated together, nor on the number of threads, but for the rounding
// of sums.
// Fails with DATA (a sentence is empty or too long, an id outside the vocabulary), NUMERIC (a log-probability that is
// not a number), or MEMORY.
tarn_status tarn__translator_run(tarn__translator *translator, tarn__translation *translations, const int32_t *ids,
                                 const int64_t *offsets, int64_t sentences) TARN_CHECKED;

// With several ranks a run is one of all: rank 0 gives the sentences and has the translations, and what others give is
// not looked at. tarn__translator_help() makes the runs of another rank until rank 0 calls tarn__translator_end(),
// which does nothing for a process alone; `map` is the file that the model is in.
tarn_status tarn__translator_help(tarn__translator *translator, const tarn__map *map) TARN_CHECKED;
tarn_status tarn__translator_end(tarn__translator *translator) TARN_CHECKED;

// Lends memory, aligned to 64 bytes, in which runs compute as far as it suffices, and gives back all large blocks that
// the translator holds; NULL and 0 end the lending. The translations of the last run stay.
void tarn__translator_lend(tarn__translator *translator, void *memory, size_t bytes);

// Bytes that a run of `sentences` sentences (1 or more) of `length` source tokens takes for workspaces and caches,
// estimated for translations of the greatest length, without taking them. options.threads must be known. Fails with
// MEMORY.
tarn_status tarn__translator_plan(size_t *bytes, const tarn__model *model, const tarn__translator_options *options,
                                  double length, int64_t sentences) TARN_CHECKED;

// The checkpoint of a translator of text, which is its owner. Its model is packed until the translator is closed.
struct tarn__checkpoint;
struct tarn_translator;
struct tarn__checkpoint *tarn__translator_checkpoint(struct tarn_translator *translator);

// Totals of all runs since open.
void tarn__translator_get_stats(const tarn__translator *translator, tarn__translator_stats *stats);

#endif
