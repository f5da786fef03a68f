// A request to a model: what the JSON of its body asks for, and its answer.
#ifndef TARN_TOOLS_SERVE_REQUEST_H
#define TARN_TOOLS_SERVE_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/classify.h"
#include "tarn/lm.h"

typedef enum serve_use {
  SERVE_TRANSLATE,
  SERVE_SCORE,
  SERVE_GENERATE,
  SERVE_LABEL,
  SERVE_ATTEND,
  SERVE_USES
} serve_use;

// "translate", "score", "generate", "attend"; the word of the verb of SERVE_LABEL.
const char *serve_use_word(serve_use use, const tarn_verb *verb);

// What a request may ask for.
typedef struct serve_limits {
  int64_t texts;          // texts of a request
  int64_t text_bytes;     // of one text
  int64_t tokens;         // tokens that a request for generation may ask for, of all continuations together
  int64_t beam;           // of translation, which is its default too
  double length_penalty;  // of translation, where a request has none
} serve_limits;

typedef struct serve_request {
  serve_use use;
  const tarn_verb *verb;  // of SERVE_LABEL
  json_t *body;           // what `texts` point into, but for pairs
  const char **texts;     // [count]
  size_t *lengths;        // [count]
  size_t count, bytes;
  const char *target;  // of SERVE_ATTEND: a translation of the text
  size_t target_length;
  char *pairs;  // sentences with a tab between them
  bool tokens;  // the answer is to have the tokens
  // Of translation: beam, translations of a text, and what divides their scores.
  int64_t beam, n_best;
  double length_penalty;
  tarn_generator_options generation;
  double deadline;  // seconds of the monotonic clock; behind it nobody works on the request any more
  // The answer.
  int code;      // of HTTP; 0: none yet
  char *answer;  // JSON, of malloc()
  size_t answer_size;
  int64_t source_tokens, target_tokens;  // read and written by the model
} serve_request;

// Reads a body for request->use. False: it was refused, and the request has its answer: 400 if it is not JSON or has an
// unknown key or a value that is not allowed, 413 if it has too many texts or too long ones, 500 without memory.
bool serve_request_read(serve_request *request, const char *bytes, size_t size, const serve_limits *limits);

// Whether two requests can be computed together: they ask for the same of the same model.
bool serve_request_together(void *user, const void *first, const void *other);

// Makes {"error": ...} the answer.
void serve_request_refuse(serve_request *request, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Makes an object the answer with code 200, or 500 where it is NULL for want of memory. Takes the object over.
void serve_request_answer(serve_request *request, json_t *object);

// Frees what was asked for. The answer stays.
void serve_request_forget(serve_request *request);

void serve_request_close(serve_request *request);

#endif
