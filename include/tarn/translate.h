// Translation of raw text with a trained model: tokenization, beam search, detokenization (docs/translation.md).
//
//   tarn_translator_options options;
//   tarn_translator_default(&options);
//   tarn_translator *translator;
//   status = tarn_translator_open(&translator, "runs/model2", &options);
//   status = tarn_translator_lines(translator, results, lines, lengths, count);
//   tarn_translator_close(&translator);
//
// A translator is used by one thread at a time. It computes with the process's thread pool, whose size it sets.
#ifndef TARN_TRANSLATE_H
#define TARN_TRANSLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/checkpoint.h"
#include "tarn/config.h"
#include "tarn/decoding.h"
#include "tarn/plan.h"
#include "tarn/process.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// How to handle a line of more tokens than model.max_length (end of sentence included).
typedef enum tarn_translate_overlong {
  TARN_TRANSLATE_OVERLONG_TRUNCATE,  // translate its first max_length - 1 tokens; counted
  TARN_TRANSLATE_OVERLONG_REFUSE     // fail with DATA and the line number
} tarn_translate_overlong;

// Arithmetic of a translation.
typedef enum tarn_translate_precision {
  TARN_TRANSLATE_PRECISION_FP32,
  TARN_TRANSLATE_PRECISION_BF16,  // weights and activations; sums in fp32
  TARN_TRANSLATE_PRECISION_INT8,  // weights of products as 8-bit integers with a scale for each output, activations
                                  // quantized likewise, row by row, before each product; sums exact, the rest in fp32;
                                  // also embedding look-ups
  TARN_TRANSLATE_PRECISION_INT4,  // the same with 4-bit integers and a factor for 32 terms of an output as well; tables
                                  // of vocabularies stay in int8
  TARN_TRANSLATE_PRECISION_AUTO,  // int8 or int4 for a file that holds it (tarn_checkpoint_export_int8()), else fp32
  TARN_TRANSLATE_PRECISION_COUNT
} tarn_translate_precision;

// "fp32", "bf16", "int8", "int4" or "auto"; NULL for another value.
TARN_API const char *tarn_translate_precision_name(tarn_translate_precision precision);

// How a model translates follows from its task. Most write a translation token by token and search with a beam. Masked
// translation models (docs/non-autoregressive.md) fill in masks by iterations over whole sentences: they have
// `iterations` and `length_beam` instead of beam, length_penalty, max_len_a and max_len_b; Levenshtein Transformers
// edit whole sentences, and have `iterations` and `placeholder_penalty`. An option that the model does not have must
// keep its default.
//
// "default: description" means the value in the section `translate` of the checkpoint's description.
typedef struct tarn_translator_options {
  int64_t beam;           // beam size, 1 .. 1024; 1: greedy; default 0: description
  double length_penalty;  // score = log-probability / length^length_penalty; default NAN: description
  double max_len_a;       // a translation has at most max_len_a * source tokens + max_len_b tokens;
  int64_t max_len_b;      // default NAN and -1: description
  int64_t max_tokens;     // most source tokens translated together; default 0: description
  int64_t n_best;         // hypotheses returned per line, 1 .. beam, or length_beam, or 1; default 1
  // Sampling instead of a search: this many samples of each line are drawn, as by tarn_generator_options (tarn/lm.h),
  // and the n_best best of them returned, by score or, with decoding.mbr, by expected utility. 1 .. 1000000; default 0:
  // search. A sample depends on model, sentence, seed and its number alone.
  int64_t samples;
  double temperature;  // above 0; default 1
  int64_t top_k;       // 1 or more, or 0: all; default 0
  double top_p;        // above 0, at most 1; default 1: all
  uint64_t seed;       // default 1
  tarn_decoding
      decoding;  // penalties, banned texts, groups of a diverse beam (tarn/decoding.h), of the target's tokens
  // Texts that a translation must contain (lexically constrained decoding: Post and Vilar, NAACL 2018): sequences of
  // tokens, encoded as tarn_vocab_encode() does it, which may overlap, and of which those of a prefix count. They need
  // a beam of 2 or more without groups, and are copied. A translation that cannot have them fails the call with DATA,
  // which names one. Default NULL and 0: none. Not with several ranks
  const char *const *force_words;
  size_t force_words_count;
  bool force_columns;  // what follows each tab of a line (with prefixes, each after the first) is such a text, of that
                       // line alone; an empty one is none. Default false: a tab is text. Not with several ranks
  double coverage_penalty;  // beta of the coverage penalty (Wu et al. 2016, equation 14): beta * the sum over source
                            // tokens of ln(min(attention to it, 1)) is added to the scores of finished translations,
                            // with the attention below, before the best are taken. -100 .. 100; default 0: none
  bool alignment;           // hypotheses have their attention; default false. Not with several ranks
  bool prefixes;   // a line is a sentence, a tab, and the text with which its translation begins; a line without
                   // a tab is a sentence. Default false: a tab is text. Not with several ranks
  int64_t window;  // lines read, sorted by length and translated together by tarn_translator_file(), 1 ..
                   // 10000000; default 2000
  tarn_translate_precision precision;  // default auto
  tarn_translate_overlong overlong;    // default: truncate
  bool strict;                         // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;                         // 0: all available to the process; default 0
  tarn_prune prune;                    // layers to remove from the model; default none
  tarn_profile *profile;               // measures translation; owned by the caller. Default NULL: no profile
  tarn_ranks *ranks;                   // share the work of tarn_translator_file() (tarn/process.h); owned by the
                                       // caller, open as long as the translator. Default NULL: a single process
  int64_t iterations;                  // over a sentence, 1 .. 1024; default 0: description
  int64_t length_beam;                 // lengths whose translations are compared, 1 .. 1024; default 0: description
  double placeholder_penalty;          // of a Levenshtein Transformer: lowers the log-probability of inserting nothing
                                       // between two tokens, 0 .. 100; default NAN: description
} tarn_translator_options;

TARN_API void tarn_translator_default(tarn_translator_options *options);

// One translation of a line.
typedef struct tarn_translate_hypothesis {
  const char *text;  // `length` bytes of valid UTF-8 and a zero byte; line ends and zero bytes in it become spaces
  size_t length;
  int64_t tokens;          // with the end of sentence, without those of a prefix
  double log_probability;  // natural logarithm, sum over the tokens
  double score;  // log_probability / tokens^length_penalty; where processors or groups (tarn/decoding.h) change
                 // what is summed, of that sum; of masked translation and of a Levenshtein Transformer, where
                 // the end of sentence is not predicted and has log-probability 0, the mean of the other
                 // tokens; with decoding.mbr the expected utility; with a coverage penalty its sum with that
  // With options.alignment: the attention of each of its tokens to each of the source, both with their ends of sentence
  // and without those of a prefix, [tokens][source_tokens] of the result: the weights of the last layer of the decoder
  // that attends to the encoder's output, averaged over its heads, as they are when the translation is read again as a
  // whole. Else, and for an empty line, NULL.
  const float *attention;
} tarn_translate_hypothesis;

// The result of a line. A line without tokens (empty or blank) has one hypothesis: an empty text without tokens, with
// score 0.
typedef struct tarn_translate_result {
  int64_t number;                               // of the line, from 1
  const tarn_translate_hypothesis *hypotheses;  // best first
  int64_t count;                                // 1 .. n_best
  int64_t source_tokens;                        // number translated, with the end of sentence; 0: an empty line
  bool truncated;
} tarn_translate_result;

// Totals of a translator since it was opened.
typedef struct tarn_translate_summary {
  int64_t lines;
  int64_t empty, truncated, replaced;    // lines without a token; truncated; with invalid UTF-8 replaced
  int64_t cut;                           // lines encoded in parts because of their length (tarn_vocab_encode())
  int64_t unknown;                       // source tokens not in the vocabulary
  int64_t source_tokens, target_tokens;  // with ends of sentence; target: of the best hypotheses
  double seconds;                        // spent in translation
  int64_t iterations;                    // over all sentences together, of models that translate by iterations; else,
                                         // and where several ranks share the work, 0
} tarn_translate_summary;

typedef struct tarn_translator tarn_translator;

// Opens a checkpoint, or of a run directory the one chosen by tarn_checkpoint_find() (tarn/checkpoint.h). Fails with
// USAGE (options), IO, DATA (a damaged checkpoint) or MEMORY.
TARN_API tarn_status tarn_translator_open(tarn_translator **translator, const char *path,
                                          const tarn_translator_options *options) TARN_CHECKED;
TARN_API void tarn_translator_close(tarn_translator **translator);

// Changes beam, length_penalty, max_len_a, max_len_b, max_tokens, n_best, iterations, length_beam, placeholder_penalty,
// decoding, prefixes and the options of sampling without reading the model again; defaults are again those of the
// description, and the other options keep their values. Results of earlier calls become invalid. Ranks that share the
// work must set the same values. On failure (USAGE for the options, or MEMORY) the translator is unchanged.
TARN_API tarn_status tarn_translator_set(tarn_translator *translator,
                                         const tarn_translator_options *options) TARN_CHECKED;

// The file that was opened, and the options with all defaults filled in (precision is never auto), except those that
// the model does not have; valid until close.
TARN_API const char *tarn_translator_path(const tarn_translator *translator);
TARN_API const tarn_translator_options *tarn_translator_settings(const tarn_translator *translator);

// Translates `count` lines of lengths[i] bytes and fills results [count] in the order of the lines. The memory of the
// results is owned by the translator and valid until its next call. Fails with DATA (input refused by `strict` or
// `overlong`), NUMERIC (the model's output is not finite) or MEMORY.
TARN_API tarn_status tarn_translator_lines(tarn_translator *translator, tarn_translate_result *results,
                                           const char *const *lines, const size_t *lengths, size_t count) TARN_CHECKED;

// Receives a part of a translation, `length` bytes of UTF-8 and a zero byte; any status but TARN_STATUS_OK stops the
// work and is returned.
typedef tarn_status (*tarn_translator_part)(void *user, const char *text, size_t length);

// Translates one line, as tarn_translator_lines(), and passes its best translation to `part` while it is made: with a
// beam of 1, or one sample, after each token what can no longer change of the text; else the whole text when it is
// final. After each step of a search or of a sample `part` is called, maybe with no byte, so that it can stop the work;
// by models that do not write token by token only at the end; always on the thread of the call. The parts together are
// result->hypotheses[0].text. Fails likewise, and with the status of `part`.
TARN_API tarn_status tarn_translator_stream(tarn_translator *translator, tarn_translate_result *result,
                                            const char *line, size_t length, tarn_translator_part part,
                                            void *user) TARN_CHECKED;

// Continuous batching: lines join those that are being translated at the next token, each with options of its own, and
// leave when they are complete, in any order. Callbacks come one at a time, from the thread of the call or another one
// that computes. Samples and searches are computed in turns: a request of the other kind waits until those at work are
// complete, and no more join these.
typedef struct tarn_translator_request {
  const char *line;  // `length` bytes, which live until it is done
  size_t length;
  const tarn_translator_options *options;  // copied, with their texts; those that tarn_translator_set() sets count, but
                                           // max_tokens
  int64_t number;                          // of the line, in messages and in its result; 0: 1
  // Receives the best translation as tarn_translator_stream() gives it. Any status but TARN_STATUS_OK ends the request
  // as its failure. NULL: nobody does.
  tarn_translator_part part;
  void *item;  // the caller's, also the `user` of `part`
} tarn_translator_request;

// Where they come from.
typedef struct tarn_translator_requests {
  // Asked before each token while there is room: fills in the next request, or returns false if none waits.
  bool (*next)(void *user, tarn_translator_request *request);
  // A request is done: its result, whose memory lives until this returns, or NULL and the status of its failure, as of
  // tarn_translator_lines(), with a message for tarn_error_message(). Until then it is line 0 of the last call for the
  // functions below, but for tarn_translator_summary(), which other threads may be writing.
  void (*done)(void *user, void *item, tarn_status status, const tarn_translate_result *result);
  void *user;
} tarn_translator_requests;

// Translates the requests of a source until none waits and all are done. Results are those of tarn_translator_lines()
// for the line and its options alone, but for rounding of log-probabilities. Fails with USAGE (a function is missing,
// several ranks, or a model that does not write token by token), MEMORY, or as its device does; by then every request
// that was taken is done.
TARN_API tarn_status tarn_translator_serve(tarn_translator *translator,
                                           const tarn_translator_requests *source) TARN_CHECKED;

// The tokens of hypothesis `place` of line `line`, both from 0, in the last call of one of these: *ids and
// *log_probabilities (natural logarithms) [the hypothesis's `tokens`], ending with the end of sentence, valid like the
// results. Returns `tokens`; for an empty line, or without such a hypothesis, returns 0 and sets both to NULL.
TARN_API int64_t tarn_translator_tokens(const tarn_translator *translator, const int32_t **ids,
                                        const float **log_probabilities, size_t line, int64_t place);

// The tokens of line `line` of that call as they were translated, ending with the end of sentence: *ids, valid like the
// results. Returns their number; for an empty line, or without such a line, returns 0 and sets *ids to NULL.
TARN_API int64_t tarn_translator_source(const tarn_translator *translator, const int32_t **ids, size_t line);
// The text of a token of the source vocabulary ("" for an invalid id), valid until close.
TARN_API const char *tarn_translator_source_piece(const tarn_translator *translator, int32_t id);

// The text of a token of the target vocabulary ("" for an invalid id), valid until close.
TARN_API const char *tarn_translator_piece(const tarn_translator *translator, int32_t id);

// Receives the result of a line; any status but TARN_STATUS_OK stops the translation and is returned.
typedef tarn_status (*tarn_translate_sink)(void *user, const tarn_translate_result *result);

// Translates a text file, pipe or device ("-": standard input) and passes each line's result to `sink`, in order. Lines
// are numbered as in the file. Fails like tarn_translator_lines(), and with IO, DATA (not a text file) or the sink's
// status.
TARN_API tarn_status tarn_translator_file(tarn_translator *translator, const char *path, tarn_translate_sink sink,
                                          void *user) TARN_CHECKED;

// Totals of all calls so far.
TARN_API void tarn_translator_summary(const tarn_translator *translator, tarn_translate_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
