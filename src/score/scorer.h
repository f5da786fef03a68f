// Log-probabilities of sentences under a language model in memory, or pseudo-log-likelihoods under a masked one
// (Salazar, Liang, Nguyen and Kirchhoff 2020, arXiv 1910.14659).
#ifndef TARN_SCORE_SCORER_H
#define TARN_SCORE_SCORER_H

#include <stdint.h>

#include "base/status.h"
#include "comm/comm.h"
#include "model/model.h"

typedef struct tarn__scorer_options {
  int64_t max_tokens;       // most tokens computed together; a longer sentence is computed alone. Default 4096
  int threads;              // 0: those of the pool; default 0
  tarn__rounding rounding;  // of weights of products, whose activations are then INT8; default none
  tarn__comm *comm;         // its ranks share each run; default NULL: this process is alone
  int32_t mask;             // of a masked language model: the mask token; default -1
  int32_t first;            // the first token of each row; -1, the default: none
} tarn__scorer_options;

void tarn__scorer_default(tarn__scorer_options *options);

// One sentence: w1 .. wn and the end of sentence. The model reads the end of sentence, or model.decoder_start, then w1
// .. wn. Or a window of a longer text. Of a masked language model: the model reads `first`, w1 .. wn and the end of
// sentence, once for each of w1 .. wn, hidden by the mask and predicted; `known` and `before` are ignored, and the
// log-probability of the end of sentence is 0.
typedef struct tarn__scorer_sentence {
  const int32_t *ids;  // [length]
  int64_t length;
  int64_t known;              // number of initial tokens without output layer: an earlier sentence of the list
                              // begins with the same ones; 0 .. length
  const int32_t *before;      // token read before w1; NULL: the first of every sentence
  double *log_probabilities;  // [length], natural logarithm; those of `known` tokens stay unchanged
  int32_t *best;  // [length], likewise: the most likely token at each place, where wanted; NULL: it is not. Ignored of
                  // a masked language model
} tarn__scorer_sentence;

typedef struct tarn__scorer tarn__scorer;

// The model must be a language model or a masked one, and stay open and unchanged: its weights are packed once. `eos`
// is the end of sentence. Fails with USAGE or MEMORY.
tarn_status tarn__scorer_open(tarn__scorer **scorer, const tarn__model *model, int32_t eos,
                              const tarn__scorer_options *options) TARN_CHECKED;
void tarn__scorer_close(tarn__scorer **scorer);

// Fills log_probabilities. Sentences are computed in batches of similar length; the bits of a sentence do not depend on
// the others. Fails with DATA (an id outside the vocabulary), NUMERIC (results are not finite) or MEMORY.
tarn_status tarn__scorer_run(tarn__scorer *scorer, const tarn__scorer_sentence *sentences, int64_t count) TARN_CHECKED;

// With several ranks all take part in a run: rank 0 gives the sentences and gets the log-probabilities; the others'
// arguments are ignored. tarn__scorer_help() does the runs of another rank until rank 0 calls tarn__scorer_end(), which
// does nothing for a single process.
tarn_status tarn__scorer_help(tarn__scorer *scorer) TARN_CHECKED;
tarn_status tarn__scorer_end(tarn__scorer *scorer) TARN_CHECKED;

#endif
