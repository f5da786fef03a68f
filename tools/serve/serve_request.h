// A request to a model: the JSON of its body, and its answer.
#ifndef TARN_TOOLS_SERVE_REQUEST_H
#define TARN_TOOLS_SERVE_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/serve_stream.h"
#include "tarn/classify.h"
#include "tarn/lm.h"
#include "tarn/translate.h"

typedef enum serve_use {
  SERVE_TRANSLATE,
  SERVE_SCORE,
  SERVE_GENERATE,
  SERVE_LABEL,
  SERVE_ATTEND,
  SERVE_USES
} serve_use;

// The language of a request and its answer: tarn's own, or that of OpenAI's completions.
typedef enum serve_form { SERVE_FORM_TARN, SERVE_FORM_OPENAI } serve_form;

// "translate", "score", "generate", "attend"; the word of the verb of SERVE_LABEL.
const char *serve_use_word(serve_use use, const tarn_verb *verb);

// Limits of a request.
typedef struct serve_limits {
  int64_t texts;          // texts per request
  int64_t text_bytes;     // per text
  int64_t tokens;         // maximum tokens of a request for generation, all continuations together
  int64_t samples;        // samples of a text, and hypotheses of a search of generation
  bool refines, edits;    // translations have a length beam, for which `beam` stands, and iterations; or these alone
  int64_t beam;           // of translation, also the default
  int64_t iterations;     // the same
  double length_penalty;  // default for translation
} serve_limits;

// A model as its clients see it.
typedef struct serve_offer {
  char id[256];           // its name for clients
  char name[256];         // for people: the last two components of its file
  const char *precision;  // of its arithmetic
  bool uses[SERVE_USES];  // what it can be used for
  const tarn_verb *verb;  // of SERVE_LABEL
  serve_limits limits;
} serve_offer;

// All models; the first one is that of requests without a name.
typedef struct serve_offers {
  serve_offer *items;  // [count]
  size_t count;
  pthread_mutex_t lock;  // of `name` and `precision`, which a new file may change
} serve_offers;

bool serve_offer_fits(const serve_offer *offer, serve_use use, const tarn_verb *verb);

// A text of a request that joins a running batch (serve_joined.h), with what is known of it by then.
typedef struct serve_prompt {
  struct serve_request *request;
  size_t number;
  json_t *answer;  // of this text; NULL before
  bool *begun;     // [generation.number] something was told of this continuation; NULL where nothing is streamed
} serve_prompt;

typedef struct serve_request {
  serve_use use;  // SERVE_USES: no request, but that to read the models again
  serve_form form;
  const serve_offer *offer;  // the model
  const tarn_verb *verb;     // of SERVE_LABEL
  json_t *body;              // memory of `texts`, except pairs
  const char **texts;        // [count]
  size_t *lengths;           // [count]
  size_t count, bytes;
  const char *target;  // of SERVE_ATTEND: a translation of the text
  size_t target_length;
  char *pairs;   // sentences separated by a tab
  char *forced;  // texts, each with what its translation must contain in columns
  bool tokens;   // include the tokens in the answer
  // Of translation; where the model has a length beam, `beam` is that. n_best: translations per text in the answer.
  int64_t beam, n_best;
  tarn_translator_options translation;
  tarn_generator_options generation;
  bool streams;  // send the answer while it is computed
  // Of OpenAI's completions: whether to stream with a chunk of the numbers of tokens; to begin with the prompt; to tell
  // log-probabilities.
  bool usage, echo, logprobs;
  int64_t tops;  // how many of the likeliest tokens to tell of
  char id[40];
  int64_t created;                  // seconds of the epoch
  serve_stream stream;              // open if `streams`
  const tarn_generator *generator;  // which computes it
  serve_prompt *prompts;  // [count], while it is computed; of which `given` have begun and `left` are not done
  size_t given, left;
  struct serve_request *after;  // in the ring of those that have more to give
  int failed;                   // code of HTTP for a failure of one of them, and the line that says why
  char why[600];
  const char **banned, **stop, **force_words;  // the arrays of their texts, which are in `body`
  size_t force_count;
  double deadline;  // seconds of the monotonic clock; a request past it is not processed
  // The answer.
  int code;      // HTTP status; 0: none yet
  char *answer;  // JSON, of malloc()
  size_t answer_size;
  int64_t source_tokens, target_tokens;  // read and written by the model
  double arrived, began, first;          // seconds of the monotonic clock: complete; computed; first token; 0: not yet
} serve_request;

// Reads a body for request->use. False: it was refused, and the request has its answer: 400 if it is not JSON or has an
// unknown key or an invalid value, 404 for another model or one that cannot do it, 413 if it has too many or too long
// texts, 500 without memory.
bool serve_request_read(serve_request *request, const char *bytes, size_t size, const serve_offers *offers);

// The parts of reading that all forms have: the texts, of the key `name`; whether the options of generation fit.
bool serve_request_texts(serve_request *request, const char *name, const serve_limits *limits);
bool serve_request_check_generation(serve_request *request, const serve_limits *limits);

// Whether the request joins a running batch: a continuation, or a translation by a model that writes token by token;
// and whether it is drawn there, or a continuation is greedy, and not searched for by a beam.
bool serve_request_joins(const serve_request *request);
bool serve_request_draws(const serve_request *request);

// Whether two requests can be batched: same use and same settings; those that join, if both are drawn or neither is.
bool serve_request_together(void *user, const void *first, const void *other);

// Sets {"error": ...} as the answer.
void serve_request_refuse(serve_request *request, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The same; `key` is the key of the body that is at fault.
void serve_request_refuse_key(serve_request *request, int code, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// The answer with code 503 where there is no memory for another.
#define SERVE_NO_MEMORY "{\"error\":\"there is not enough memory\"}"
#define SERVE_NO_MEMORY_OPENAI \
  "{\"error\":{\"message\":\"there is not enough memory\",\"type\":\"server_error\",\"param\":null,\"code\":null}}"

// Sets an object as the answer with code 200, or 500 if it is NULL for lack of memory. Takes ownership of the object.
void serve_request_answer(serve_request *request, json_t *object);

// Frees the request but not the answer.
void serve_request_forget(serve_request *request);

void serve_request_close(serve_request *request);

#endif
