// Language models: log-probabilities of sentences, perplexity, and minimal pairs; of masked language models the same by
// pseudo-log-likelihoods.
//
// A sentence w1 .. wn is read as <eos> w1 .. wn, and w1 .. wn <eos> are predicted; its log-probability is the sum over
// these n + 1 tokens, in natural logarithms.
// A masked language model reads <cls> w1 .. wn <eos>, if its vocabulary has <cls>, once for each of w1 .. wn, which the
// mask hides; the sum over these n tokens is the pseudo-log-likelihood (Salazar et al. 2020, arXiv 1910.14659), and
// exp(-sum / tokens) the pseudo-perplexity. A sentence of n tokens so costs what n sentences cost.
//
//   tarn_lm_options options;
//   tarn_lm_default(&options);
//   tarn_lm *lm;
//   status = tarn_lm_open(&lm, "runs/esn", &options);
//   status = tarn_lm_score(lm, scores, lines, lengths, count);
//   tarn_lm_close(&lm);
//
// A model is used by one thread at a time; it computes with the pool of threads of the process, whose size it sets.
#ifndef TARN_LM_H
#define TARN_LM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/export.h"
#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_lm_options {
  tarn_translate_precision precision;  // default auto
  tarn_translate_overlong overlong;    // a line of more tokens than model.max_length is cut, and counted as truncated,
                                       // or refused with DATA; default: refuse. Models with model.positions none,
                                       // alibi or t5 have no limit
  int64_t max_tokens;                  // tokens computed together, 1 .. 2^24; default 4096
  int64_t window;                      // lines that are read, sorted by length and scored together by
                                       // tarn_lm_score_file(), 1 .. 10000000; default 4000
  bool strict;                         // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;                         // 0: all that the process may use; default 0
  tarn_ranks *ranks;                   // share the work of tarn_lm_score_file(), tarn_lm_score_stream() and
                                       // tarn_minimal_pairs_run() (tarn/ranks.h); the caller's, and open as long as
                                       // the model. Default NULL: this process is alone
} tarn_lm_options;

TARN_API void tarn_lm_default(tarn_lm_options *options);

typedef struct tarn_lm tarn_lm;

// Opens a checkpoint, or of a run directory the one that tarn_checkpoint_find() takes (tarn/checkpoint.h). Fails
// with USAGE (options, a translation model), IO, DATA (a damaged checkpoint), or MEMORY.
TARN_API tarn_status tarn_lm_open(tarn_lm **lm, const char *path, const tarn_lm_options *options) TARN_CHECKED;
TARN_API void tarn_lm_close(tarn_lm **lm);
// The file that was opened; valid until close.
TARN_API const char *tarn_lm_path(const tarn_lm *lm);
// The text of a token ("" for an id that is none), valid until close.
TARN_API const char *tarn_lm_piece(const tarn_lm *lm, int32_t id);

// The score of a line. An empty line has one token, the end of sentence; under a masked language model none.
typedef struct tarn_lm_line {
  double log_probability;           // sum over the tokens
  int64_t tokens;                   // with the end of sentence, unless the model is a masked one
  const int32_t *ids;               // [tokens]
  const double *log_probabilities;  // [tokens]
  int64_t characters,
      bytes;  // of the line, its end counted as one where it is a token; code points, after replacing invalid UTF-8;
              // of a truncated line those of the text that its tokens give (tarn_vocab_decode())
  int64_t unknown;  // tokens not in the vocabulary; predicting them does not predict the text
  bool truncated;   // to what the model takes
  bool replaced;    // invalid UTF-8 by U+FFFD
  bool cut;         // it was so long that it was encoded in parts (tarn_vocab_encode())
} tarn_lm_line;

// Scores `count` lines of lengths[i] bytes. What the results point to belongs to the model and lives until its next
// call. Fails with DATA (what `strict` and `overlong` refuse), NUMERIC or MEMORY.
TARN_API tarn_status tarn_lm_score(tarn_lm *lm, tarn_lm_line *results, const char *const *lines, const size_t *lengths,
                                   size_t count) TARN_CHECKED;

// Sums over lines. All fields 0 to begin with.
typedef struct tarn_lm_total {
  int64_t lines, tokens, characters, bytes, unknown;
  int64_t truncated, replaced, cut;  // lines
  double log_probability;
} tarn_lm_total;

// Adds the score of one more line.
TARN_API void tarn_lm_total_add(tarn_lm_total *total, const tarn_lm_line *line);
// Perplexity of a token, exp(-log p / tokens), and bits of a character and of a byte; NAN without lines.
TARN_API double tarn_lm_perplexity(const tarn_lm_total *total);
TARN_API double tarn_lm_bits_per_character(const tarn_lm_total *total);
TARN_API double tarn_lm_bits_per_byte(const tarn_lm_total *total);

// Receives the score of a line, numbered from 1; anything but TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_lm_sink)(void *user, int64_t number, const tarn_lm_line *line);
// Scores a text file, or a pipe or device ("-": standard input), and gives each line to `sink`, in order. Fails as
// tarn_lm_score() does, and with IO, DATA (a file that is not text), or what the sink returns.
TARN_API tarn_status tarn_lm_score_file(tarn_lm *lm, const char *path, tarn_lm_sink sink, void *user) TARN_CHECKED;

// Scores a text file as one stream of tokens across its line ends, which are tokens too, as in
// tarn_prepare_options.stream (tarn/data.h). A window of `window` tokens (0: model.max_length) advances by `stride`
// tokens at a time, and only the tokens that are new in it are counted. So each token of the text is counted once:
// those of the first window are predicted from all tokens before them, and all others from at least window - stride
// tokens of the text. A smaller stride gives more context and costs more: window / stride times the arithmetic of
// windows that do not overlap.
typedef struct tarn_lm_stretch {
  int64_t first;                    // position of its first token in the text, from 0
  int64_t context;                  // tokens of the text that the model read before that one; the others have more
  int64_t count;                    // tokens, at least 1
  const int32_t *ids;               // [count]
  const double *log_probabilities;  // [count], natural logarithms
} tarn_lm_stretch;
// Receives the tokens, in order; anything but TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_lm_stream_sink)(void *user, const tarn_lm_stretch *stretch);
// `total` is of the whole text; a text without a token has tokens 0. The sink may be NULL. Fails with USAGE (a masked
// language model, a window that the model does not take, a stride that is not 1 .. window), IO, DATA, NUMERIC or
// MEMORY.
TARN_API tarn_status tarn_lm_score_stream(tarn_lm *lm, tarn_lm_total *total, const char *path, int64_t window,
                                          int64_t stride, tarn_lm_stream_sink sink, void *user) TARN_CHECKED;

// Minimal pairs (Warstadt et al., "BLiMP", TACL 2020): of two sentences the acceptable one should have the higher
// log-probability. Equal ones count as wrong. Files are JSON lines with the texts "sentence_good" and "sentence_bad",
// neither of them empty, and optionally "field", in whose name / counts as _ and which all pairs of a file share, and
// "linguistics_term".
typedef struct tarn_minimal_pairs_count {
  const char *name;          // of the paradigm (its file without .jsonl), or of the field
  const char *field, *term;  // of a paradigm: its field and the term of its first pair, "" where a file has none; of a
                             // field: ""
  int64_t pairs, right;
  double accuracy;   // right / pairs; of a field and overall: the mean over paradigms
  double low, high;  // 95 % confidence interval of it: Wilson's (1927) of a paradigm, and of a mean what those of its
                     // paradigms make together (Zou and Donner 2008), for k of them
                     // accuracy - sqrt(sum (accuracy_i - low_i)^2) / k, and the same above
  const char *answers;  // of a paradigm: a character a pair, in the order of the file, '1' for a right one and '0' for
                        // a wrong one; else NULL
} tarn_minimal_pairs_count;

typedef struct tarn_minimal_pairs_result {
  size_t paradigm_count, field_count;
  const tarn_minimal_pairs_count *paradigms;  // by name
  const tarn_minimal_pairs_count *fields;     // by name; accuracy is the mean over the field's paradigms
  tarn_minimal_pairs_count overall;           // accuracy: mean over all paradigms, as BLiMP is reported
  int64_t unknown;                            // tokens of all sentences that are not in the vocabulary
  int64_t truncated;                          // sentences that were cut to what the model takes
  int64_t replaced;                           // lines of the files in which invalid UTF-8 was replaced
  int64_t equal;  // pairs of two sentences with the same tokens, which cannot be right; BLiMP has 7 of equal text
  struct tarn__minimal_pairs_memory *memory;
} tarn_minimal_pairs_result;

// Called when a paradigm is done; NULL: never.
typedef void (*tarn_minimal_pairs_progress)(void *user, const tarn_minimal_pairs_count *paradigm, size_t done,
                                            size_t count);

// Scores every file *.jsonl of a folder. What a pair's sentences share at their beginning is predicted once. Fails with
// IO, DATA (no such file, a line that is no object, lacks a text, has an empty one or is of another field than those
// before it, what `strict` and `overlong` of the model refuse: file and line are named), NUMERIC or MEMORY. On other
// ranks than 0 *result is NULL.
TARN_API tarn_status tarn_minimal_pairs_run(tarn_minimal_pairs_result **result, tarn_lm *lm, const char *folder,
                                            tarn_minimal_pairs_progress progress, void *user) TARN_CHECKED;
TARN_API void tarn_minimal_pairs_close(tarn_minimal_pairs_result **result);

#ifdef __cplusplus
}
#endif
#endif
