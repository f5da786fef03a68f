// Generation of text by a language model: it continues prompts, or begins sentences of its own.
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
// A generator is used by one thread at a time; it computes with the pool of threads of the process, whose size it sets.
#ifndef TARN_GENERATE_H
#define TARN_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/export.h"
#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_generator_method {
  TARN_GENERATOR_METHOD_GREEDY,  // the most likely token, every time
  TARN_GENERATOR_METHOD_BEAM,    // beam search, with fairseq's rules
  TARN_GENERATOR_METHOD_SAMPLE,  // draws every token
  TARN_GENERATOR_METHOD_COUNT
} tarn_generator_method;

// Never generated are the begin of sentence, padding and the unknown token, where the vocabulary has them as tokens of
// their own: they have no text.
typedef struct tarn_generator_options {
  tarn_generator_method method;  // default greedy
  int64_t max_tokens;            // of a continuation, its end of sentence counted, 1 .. 2^30; default 100
  int64_t min_tokens;  // before an end of sentence, which until then has probability 0; 0 .. max_tokens; default 0
  int64_t number;      // continuations of a prompt: samples, 1 .. 1000000; best hypotheses, 1 .. beam; greedy: 1.
                       // Default 1
  // Beam search.
  int64_t beam;           // hypotheses, 1 .. 1024; default 5
  double length_penalty;  // score = log-probability / tokens^length_penalty; default 1
  // Sampling, in this order: logits are divided by the temperature; the top_k most likely tokens stay; of those the
  // nucleus stays, the fewest most likely ones with a probability of at least top_p together (Holtzman et al. 2020).
  double temperature;  // above 0; default 1
  int64_t top_k;       // 1 or more, or 0: all; default 0
  double top_p;        // above 0, at most 1; default 1: all
  uint64_t seed;       // default 1

  int64_t window;                      // prompts of a file that are read and continued together, 1 .. 10000000;
                                       // default 1000
  tarn_translate_precision precision;  // default auto
  bool strict;                         // refuse prompts with invalid UTF-8 or unknown tokens; default false
  int threads;                         // 0: all that the process may use; default 0
} tarn_generator_options;

TARN_API void tarn_generator_default(tarn_generator_options *options);

typedef enum tarn_generator_end {
  TARN_GENERATOR_END_EOS,         // the model ended the sentence
  TARN_GENERATOR_END_MAX_TOKENS,  // max_tokens
  TARN_GENERATOR_END_MAX_LENGTH,  // model.max_length: the model has no further positions
  TARN_GENERATOR_END_COUNT
} tarn_generator_end;

// The word of an end: "eos", "max_tokens", "max_length"; NULL for another value.
TARN_API const char *tarn_generator_end_word(tarn_generator_end end);

// One continuation. Texts are UTF-8 with a zero byte at the end: where bytes make no character, such as one that
// is cut off at the end, they are replaced by U+FFFD. They may hold line ends if the vocabulary can.
typedef struct tarn_generator_text {
  const char *text;  // prompt and continuation
  size_t length;
  const char *continuation;  // what `text` has more than the prompt's tokens
  size_t continuation_length;
  int64_t tokens;                  // of the continuation, the end of sentence counted; 1 or more
  const int32_t *ids;              // [tokens]
  const float *log_probabilities;  // [tokens], natural logarithm; the model's, whatever the method
  double log_probability;          // their sum
  double score;                    // log_probability / tokens^length_penalty; without beam search the penalty is 1
  tarn_generator_end end;
} tarn_generator_text;

typedef struct tarn_generator_result {
  int64_t number;         // of the prompt, from 1
  int64_t prompt_tokens;  // 0: the text begins a sentence
  int64_t unknown;        // of them, unknown ones
  const tarn_generator_text *texts;
  int64_t count;  // options.number, or fewer for a beam over a tiny vocabulary
} tarn_generator_result;

// Totals since open.
typedef struct tarn_generator_summary {
  int64_t prompts, texts;
  int64_t prompt_tokens, unknown, tokens;  // tokens: generated, with ends of sentence
  int64_t cut;                             // prompts so long that they were encoded in parts (tarn_vocab_encode())
  double seconds;                          // spent in generation
} tarn_generator_summary;

typedef struct tarn_generator tarn_generator;

// Opens a checkpoint, or of a run directory the one that tarn_checkpoint_find() takes (tarn/checkpoint.h). Fails
// with USAGE (options, a translation model), IO, DATA (a damaged checkpoint), or MEMORY.
TARN_API tarn_status tarn_generator_open(tarn_generator **generator, const char *path,
                                         const tarn_generator_options *options) TARN_CHECKED;
TARN_API void tarn_generator_close(tarn_generator **generator);

// Sets other options for the same model, which is not read again; precision, threads and window stay as they were. If
// it fails (USAGE for the options, or MEMORY), the generator is as before.
TARN_API tarn_status tarn_generator_set(tarn_generator *generator, const tarn_generator_options *options) TARN_CHECKED;

// The file that was opened, and the text of a token ("" for an id that is none); valid until close.
TARN_API const char *tarn_generator_path(const tarn_generator *generator);
TARN_API const char *tarn_generator_piece(const tarn_generator *generator, int32_t id);

// Continues `count` prompts of lengths[i] bytes; an empty one begins a sentence. GPT-2's and byte vocabularies read
// every byte of a prompt as it is, so that a model may complete a character. results [count] are filled in the order of
// the prompts; what they point to belongs to the generator and lives until its next call. A sample is a function of the
// model, the prompt, the seed and its number from 0: it does not depend on other prompts or on the number of threads.
// A model ends at model.max_length unless model.positions is none, alibi or t5, with which it goes on to max_tokens;
// every token costs the same if its mixers are recurrent or convolutions.
// Fails with DATA (a prompt of model.max_length tokens or more for a model that ends there, what `strict` refuses),
// NUMERIC or MEMORY.
TARN_API tarn_status tarn_generator_lines(tarn_generator *generator, tarn_generator_result *results,
                                          const char *const *prompts, const size_t *lengths, size_t count) TARN_CHECKED;

// Receives the result of a prompt; anything but TARN_STATUS_OK stops the work and is returned to the caller.
typedef tarn_status (*tarn_generator_sink)(void *user, const tarn_generator_result *result);

// Continues every line of a text file, or of a pipe or device ("-": standard input), and gives the results to `sink`,
// in order. Numbers of prompts are lines of the file. Fails as tarn_generator_lines() does, and with IO, DATA (a file
// that is not text), or what the sink returns.
TARN_API tarn_status tarn_generator_file(tarn_generator *generator, const char *path, tarn_generator_sink sink,
                                         void *user) TARN_CHECKED;

// What all calls so far did.
TARN_API void tarn_generator_get_summary(const tarn_generator *generator, tarn_generator_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
