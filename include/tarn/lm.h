// Language models: log-probabilities of texts and minimal pairs, and generation.
#ifndef TARN_LM_H
#define TARN_LM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/decoding.h"
#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

// Scoring: log-probabilities of sentences, perplexity, and minimal pairs; for masked language models the same with
// pseudo-log-likelihoods.
//
// The model reads a sentence w1 .. wn as <eos> w1 .. wn and predicts w1 .. wn <eos>. Its log-probability is the sum
// over these n + 1 tokens, in natural logarithms.
// A masked language model reads <cls> w1 .. wn <eos>, if its vocabulary has <cls>, once for each of w1 .. wn, with that
// token masked. The sum over these n tokens is the pseudo-log-likelihood (Salazar et al. 2020, arXiv 1910.14659), and
// exp(-sum / tokens) the pseudo-perplexity. A sentence of n tokens therefore costs as much as n sentences.
//
//   tarn_lm_options options;
//   tarn_lm_default(&options);
//   tarn_lm *lm;
//   status = tarn_lm_open(&lm, "runs/esn", &options);
//   status = tarn_lm_score(lm, scores, lines, lengths, count);
//   tarn_lm_close(&lm);
//
// A model is used by one thread at a time. It computes with the process's thread pool, whose size it sets.

typedef struct tarn_lm_options {
  tarn_translate_precision precision;  // default auto
  tarn_translate_overlong overlong;    // a line of more tokens than model.max_length is truncated and counted, or
                                       // refused with DATA; default: refuse. Models with model.positions none, alibi or
                                       // t5 have no limit
  int64_t max_tokens;                  // tokens computed together, 1 .. 2^24; default 4096
  int64_t window;                      // lines read, sorted by length and scored together by tarn_lm_score_file(), 1 ..
                                       // 10000000; default 4000
  bool strict;                         // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;                         // 0: all available to the process; default 0
  tarn_ranks *ranks;                   // share the work of tarn_lm_score_file(), tarn_lm_score_stream() and
                                       // tarn_minimal_pairs_run() (tarn/process.h); owned by the caller, open as long
                                       // as the model. Default NULL: a single process
} tarn_lm_options;

TARN_API void tarn_lm_default(tarn_lm_options *options);

typedef struct tarn_lm tarn_lm;

// Opens a checkpoint, or of a run directory the one chosen by tarn_checkpoint_find() (tarn/checkpoint.h). Fails with
// USAGE (options, a translation model), IO, DATA (a damaged checkpoint) or MEMORY.
TARN_API tarn_status tarn_lm_open(tarn_lm **lm, const char *path, const tarn_lm_options *options) TARN_CHECKED;
TARN_API void tarn_lm_close(tarn_lm **lm);
// The file that was opened; valid until close.
TARN_API const char *tarn_lm_path(const tarn_lm *lm);
// The text of a token ("" for an invalid id), valid until close.
TARN_API const char *tarn_lm_piece(const tarn_lm *lm, int32_t id);

// The score of a line. An empty line has one token, the end of sentence; with a masked language model none.
typedef struct tarn_lm_line {
  double log_probability;           // sum over the tokens
  int64_t tokens;                   // with the end of sentence, except for a masked model
  const int32_t *ids;               // [tokens]
  const double *log_probabilities;  // [tokens]
  int64_t characters,
      bytes;  // of the line, plus one for its end if that is a token; code points, after replacing invalid UTF-8; of a
              // truncated line those of the text of its tokens (tarn_vocab_decode())
  int64_t unknown;  // tokens not in the vocabulary; predicting them does not predict the text
  bool truncated;   // to the model's maximum
  bool replaced;    // invalid UTF-8 by U+FFFD
  bool cut;         // encoded in parts because of its length (tarn_vocab_encode())
} tarn_lm_line;

// Scores `count` lines of lengths[i] bytes. The memory of the results is owned by the model and valid until its next
// call. Fails with DATA (input refused by `strict` or `overlong`), NUMERIC or MEMORY.
TARN_API tarn_status tarn_lm_score(tarn_lm *lm, tarn_lm_line *results, const char *const *lines, const size_t *lengths,
                                   size_t count) TARN_CHECKED;

// Sums over lines. Zero-initialise.
typedef struct tarn_lm_total {
  int64_t lines, tokens, characters, bytes, unknown;
  int64_t truncated, replaced, cut;  // lines
  double log_probability;
} tarn_lm_total;

// Adds the score of one more line.
TARN_API void tarn_lm_total_add(tarn_lm_total *total, const tarn_lm_line *line);
// Perplexity per token, exp(-log p / tokens), bits per character and bits per byte; NAN without lines.
TARN_API double tarn_lm_perplexity(const tarn_lm_total *total);
TARN_API double tarn_lm_bits_per_character(const tarn_lm_total *total);
TARN_API double tarn_lm_bits_per_byte(const tarn_lm_total *total);

// Receives the score of a line, numbered from 1; any status but TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_lm_sink)(void *user, int64_t number, const tarn_lm_line *line);
// Scores a text file, pipe or device ("-": standard input) and passes each line to `sink`, in order. Fails like
// tarn_lm_score(), and with IO, DATA (not a text file) or the sink's status.
TARN_API tarn_status tarn_lm_score_file(tarn_lm *lm, const char *path, tarn_lm_sink sink, void *user) TARN_CHECKED;

// Scores a text file as one stream of tokens across its line ends, which are tokens too, as in
// tarn_prepare_options.stream (tarn/data.h). A window of `window` tokens (0: model.max_length) advances by `stride`
// tokens at a time, and only its new tokens count. So each token of the text counts once: tokens of the first window
// are predicted from all tokens before them, all others from at least window - stride tokens of the text. A smaller
// stride gives more context and costs more: window / stride times the arithmetic of non-overlapping windows.
typedef struct tarn_lm_stretch {
  int64_t first;                    // position of its first token in the text, from 0
  int64_t context;                  // tokens of the text read by the model before that one; the others have more
  int64_t count;                    // tokens, at least 1
  const int32_t *ids;               // [count]
  const double *log_probabilities;  // [count], natural logarithms
} tarn_lm_stretch;
// Receives the tokens, in order; any status but TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_lm_stream_sink)(void *user, const tarn_lm_stretch *stretch);
// `total` is for the whole text; a text without tokens has tokens 0. The sink may be NULL. Fails with USAGE (a masked
// language model, a window longer than the model allows, a stride outside 1 .. window), IO, DATA, NUMERIC or MEMORY.
TARN_API tarn_status tarn_lm_score_stream(tarn_lm *lm, tarn_lm_total *total, const char *path, int64_t window,
                                          int64_t stride, tarn_lm_stream_sink sink, void *user) TARN_CHECKED;

// Minimal pairs (Warstadt et al., "BLiMP", TACL 2020): the acceptable sentence of a pair should have the higher
// log-probability. Ties count as wrong. Files are JSON lines with non-empty texts "sentence_good" and "sentence_bad",
// and optionally "field", which is the same for all pairs of a file and in which / counts as _, and "linguistics_term".
typedef struct tarn_minimal_pairs_count {
  const char *name;          // of the paradigm (its file without .jsonl), or of the field
  const char *field, *term;  // of a paradigm: its field and the term of its first pair, "" if the file has none; of a
                             // field: ""
  int64_t pairs, right;
  double accuracy;   // right / pairs; of a field and overall: the mean over paradigms
  double low, high;  // its 95 % confidence interval: of a paradigm Wilson's (1927); of a mean the combination of those
                     // of its k paradigms (Zou and Donner 2008): accuracy - sqrt(sum (accuracy_i - low_i)^2) / k, and
                     // likewise above
  const char *answers;  // of a paradigm: one character per pair, in the order of the file: '1' for right, '0' for
                        // wrong; else NULL
} tarn_minimal_pairs_count;

typedef struct tarn_minimal_pairs_result {
  size_t paradigm_count, field_count;
  const tarn_minimal_pairs_count *paradigms;  // by name
  const tarn_minimal_pairs_count *fields;     // by name; accuracy is the mean over the field's paradigms
  tarn_minimal_pairs_count overall;           // accuracy: mean over all paradigms, as BLiMP is reported
  int64_t unknown;                            // tokens of all sentences not in the vocabulary
  int64_t truncated;                          // sentences truncated to the model's maximum
  int64_t replaced;                           // lines of the files with invalid UTF-8 replaced
  int64_t equal;  // pairs whose sentences have the same tokens, which cannot be right; BLiMP has 7 of equal text
  struct tarn__minimal_pairs_memory *memory;
} tarn_minimal_pairs_result;

// Called after each paradigm; NULL: never.
typedef void (*tarn_minimal_pairs_progress)(void *user, const tarn_minimal_pairs_count *paradigm, size_t done,
                                            size_t count);

// Scores all files *.jsonl of a folder. The common prefix of a pair is computed once. Fails with IO, DATA (no such
// file, a line that is not an object, lacks a text, has an empty one or another field than those before it, input
// refused by the model's `strict` or `overlong`; the message names file and line), NUMERIC or MEMORY. On ranks other
// than 0 *result is NULL.
TARN_API tarn_status tarn_minimal_pairs_run(tarn_minimal_pairs_result **result, tarn_lm *lm, const char *folder,
                                            tarn_minimal_pairs_progress progress, void *user) TARN_CHECKED;
TARN_API void tarn_minimal_pairs_close(tarn_minimal_pairs_result **result);

// Generation: a language model continues prompts, or generates sentences from scratch.
//
//   tarn_generator_options options;
//   tarn_generator_default(&options);
//   options.method = TARN_GENERATOR_METHOD_SAMPLE;
//   options.top_p = 0.9;
//   tarn_generator *generator;
//   status = tarn_generator_open(&generator, "runs/esn", &options);
//   status = tarn_generator_lines(generator, results, prompts, lengths, count);
//   tarn_generator_close(&generator);
//
// A generator is used by one thread at a time. It computes with the process's thread pool, whose size it sets.

typedef enum tarn_generator_method {
  TARN_GENERATOR_METHOD_GREEDY,  // the most likely token at each step
  TARN_GENERATOR_METHOD_BEAM,    // beam search, by fairseq's rules
  TARN_GENERATOR_METHOD_SAMPLE,  // sampling
  TARN_GENERATOR_METHOD_COUNT
} tarn_generator_method;

// The begin of sentence, padding and the unknown token have no text and are never generated, if the vocabulary has
// separate tokens for them.
typedef struct tarn_generator_options {
  tarn_generator_method method;  // default greedy
  int64_t max_tokens;            // of a continuation, end of sentence included, 1 .. 2^30; default 100
  int64_t min_tokens;  // before an end of sentence, which has probability 0 until then; 0 .. max_tokens; default 0
  int64_t number;      // continuations per prompt: samples, 1 .. 1000000; best hypotheses, 1 .. beam; greedy: 1.
                       // Default 1
  // Beam search.
  int64_t beam;           // hypotheses, 1 .. 1024; default 5
  double length_penalty;  // score = log-probability / tokens^length_penalty; default 1
  // Sampling, in this order: logits are divided by the temperature; the top_k most likely tokens are kept; of these the
  // nucleus is kept, the smallest set of most likely tokens with a total probability of at least top_p (Holtzman et al.
  // 2020).
  double temperature;  // above 0; default 1
  int64_t top_k;       // 1 or more, or 0: all; default 0
  double top_p;        // above 0, at most 1; default 1: all
  uint64_t seed;       // default 1

  tarn_decoding decoding;  // penalties, banned texts, min-p, typical sampling, groups of a beam (tarn/decoding.h)
  // A continuation ends where one of these strings, of at least a byte, begins in its text; it may lie across tokens,
  // all of which are counted and returned. Default NULL and 0: none.
  const char *const *stop;
  size_t stop_count;

  int64_t window;                      // prompts of a file read and continued together, 1 .. 10000000; default 1000
  tarn_translate_precision precision;  // default auto
  bool strict;                         // refuse prompts with invalid UTF-8 or unknown tokens; default false
  int threads;                         // 0: all available to the process; default 0
} tarn_generator_options;

TARN_API void tarn_generator_default(tarn_generator_options *options);

typedef enum tarn_generator_end {
  TARN_GENERATOR_END_EOS,         // the model generated the end of sentence
  TARN_GENERATOR_END_MAX_TOKENS,  // max_tokens
  TARN_GENERATOR_END_MAX_LENGTH,  // model.max_length: the model has no further positions
  TARN_GENERATOR_END_STOP,        // a stop string
  TARN_GENERATOR_END_COUNT
} tarn_generator_end;

// The word of an end: "eos", "max_tokens", "max_length", "stop"; NULL for another value.
TARN_API const char *tarn_generator_end_word(tarn_generator_end end);

// One continuation. Texts are UTF-8, terminated by a zero byte; bytes that do not form a character, such as one cut off
// at the end, are replaced by U+FFFD. They may contain line ends if the vocabulary has them.
typedef struct tarn_generator_text {
  const char *text;  // prompt and continuation
  size_t length;
  const char *continuation;  // the part of `text` after the prompt's tokens
  size_t continuation_length;
  int64_t tokens;                  // of the continuation, end of sentence included; at least 1
  const int32_t *ids;              // [tokens]
  const float *log_probabilities;  // [tokens], natural logarithms; the model's, whatever the method
  double log_probability;          // their sum
  double score;                    // log_probability / tokens^length_penalty; without beam search the penalty is 1; of
                                   // a beam search with processed logits or groups from what those left of it; with
                                   // decoding.mbr the expected utility
  tarn_generator_end end;
  // Of tarn_generator_serve(): in the place of each token the likeliest ones as the model has them, whatever the method
  // and processors of logits, best first, [tokens][tops]; an id is -1 where a vocabulary has fewer tokens.
  const int32_t *top_ids;
  const float *top_log_probabilities;
  int64_t tops;  // as its request asks; else 0
} tarn_generator_text;

typedef struct tarn_generator_result {
  int64_t number;         // of the prompt, from 1
  int64_t prompt_tokens;  // 0: the text begins a sentence
  int64_t unknown;        // unknown tokens among these
  const tarn_generator_text *texts;
  int64_t count;  // options.number, or fewer for a beam with a tiny vocabulary
} tarn_generator_result;

// Totals since open.
typedef struct tarn_generator_summary {
  int64_t prompts, texts;
  int64_t prompt_tokens, unknown, tokens;  // tokens: generated, with ends of sentence
  int64_t cut;                             // prompts encoded in parts because of their length (tarn_vocab_encode())
  double seconds;                          // spent in generation
} tarn_generator_summary;

typedef struct tarn_generator tarn_generator;

// Opens a checkpoint, or of a run directory the one chosen by tarn_checkpoint_find() (tarn/checkpoint.h). Fails with
// USAGE (options, a translation model), IO, DATA (a damaged checkpoint) or MEMORY.
TARN_API tarn_status tarn_generator_open(tarn_generator **generator, const char *path,
                                         const tarn_generator_options *options) TARN_CHECKED;
TARN_API void tarn_generator_close(tarn_generator **generator);

// Changes the options without reading the model again; precision, threads and window keep their values. On failure
// (USAGE for the options, or MEMORY) the generator is unchanged.
TARN_API tarn_status tarn_generator_set(tarn_generator *generator, const tarn_generator_options *options) TARN_CHECKED;

// The file that was opened, and the text of a token ("" for an invalid id); valid until close.
TARN_API const char *tarn_generator_path(const tarn_generator *generator);
TARN_API const char *tarn_generator_piece(const tarn_generator *generator, int32_t id);

// Continues `count` prompts of lengths[i] bytes; an empty prompt starts a new sentence. GPT-2's and byte vocabularies
// read every byte of a prompt as it is, so a model may complete a character. results [count] are in the order of the
// prompts; their memory is owned by the generator and valid until its next call. A sample is a function of the model,
// the prompt, the seed and its index from 0; it does not depend on other prompts or on the number of threads.
// Generation stops at model.max_length, or at max_tokens if model.positions is none, alibi or t5. With recurrent or
// convolutional mixers every token costs the same.
// Fails with DATA (a prompt of model.max_length tokens or more for a model with that limit, input refused by `strict`),
// NUMERIC or MEMORY.
TARN_API tarn_status tarn_generator_lines(tarn_generator *generator, tarn_generator_result *results,
                                          const char *const *prompts, const size_t *lengths, size_t count) TARN_CHECKED;

// Receives the result of a prompt; any status but TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_generator_sink)(void *user, const tarn_generator_result *result);

// Continues every line of a text file, pipe or device ("-": standard input) and passes the results to `sink`, in order.
// Prompts are numbered by the lines of the file. Fails like tarn_generator_lines(), and with IO, DATA (not a text file)
// or the sink's status.
TARN_API tarn_status tarn_generator_file(tarn_generator *generator, const char *path, tarn_generator_sink sink,
                                         void *user) TARN_CHECKED;

// Receives a part of a continuation's text, `length` bytes of UTF-8 and a zero byte, as soon as it is known; any status
// but TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_generator_part)(void *user, const char *text, size_t length);

// Continues one prompt, greedily or by one sample, and passes the text of the continuation to `part` while it is
// generated: after each token, what can no longer change, so neither half a character nor what may become a stop
// string. The parts together are result->texts[0].continuation. Fails like tarn_generator_lines(), and with USAGE (a
// beam, more than one continuation) or the status of `part`.
TARN_API tarn_status tarn_generator_stream(tarn_generator *generator, tarn_generator_result *result, const char *prompt,
                                           size_t length, tarn_generator_part part, void *user) TARN_CHECKED;

// Continuous batching: prompts join those that are being continued at the next token, each with options of its own, and
// leave when they are complete, in any order. Callbacks come one at a time, from the thread of the call or another one
// that computes. Beams, and what is drawn or greedy, are computed in turns: a request of the other kind waits until
// those at work are complete, and no more join these.

// A token of a continuation, as soon as it is chosen. After a step of a beam of more than 1 nothing is certain, and the
// event has no text and the id -1.
typedef struct tarn_generator_event {
  int64_t sample;          // which continuation of the prompt, from 0
  int32_t id;              // the token,
  float log_probability;   // and the model's own of it
  const char *text;        // what became certain of the text: `length` bytes of UTF-8, maybe none, and a zero byte;
  size_t length;           // those of all events together are the continuation
  bool last;               // the continuation is complete, and ended for this reason:
  tarn_generator_end end;  // meaningful only if `last`
  const int32_t *top_ids;  // [tops] the likeliest tokens in its place, as in tarn_generator_text
  const float *top_log_probabilities;
  int64_t tops;
} tarn_generator_event;

typedef struct tarn_generator_request {
  const char *prompt;  // `length` bytes, which live until it is done
  size_t length;
  const tarn_generator_options *options;  // copied, with their texts; precision, threads and window are the generator's
  // Told of every token; any status but TARN_STATUS_OK ends the request as its failure. NULL: nobody is.
  tarn_status (*hear)(void *item, const tarn_generator_event *event);
  void *item;    // the caller's
  int64_t tops;  // how many of the likeliest tokens are told with each token, 0 .. 100; with a beam 0
} tarn_generator_request;

typedef struct tarn_generator_source {
  // Asked before each token while there is room: fills in the next request, or returns false if none waits.
  bool (*next)(void *user, tarn_generator_request *request);
  // A request is done: its result, whose memory lives until this returns, or NULL and the status of its failure, as of
  // tarn_generator_lines(), with a message for tarn_error_message().
  void (*done)(void *user, void *item, tarn_status status, const tarn_generator_result *result);
  void *user;
} tarn_generator_source;

// Continues the requests of a source until none waits and all are done. Results are those of tarn_generator_lines() for
// the prompt and its options alone, but for rounding of log-probabilities. Fails with USAGE (a function is missing),
// MEMORY, or as its device does; by then every request that was taken is done.
TARN_API tarn_status tarn_generator_serve(tarn_generator *generator, const tarn_generator_source *source) TARN_CHECKED;

// Totals of all calls so far.
TARN_API void tarn_generator_get_summary(const tarn_generator *generator, tarn_generator_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
