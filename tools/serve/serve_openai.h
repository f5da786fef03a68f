// OpenAI's completions (POST /v1/completions, GET /v1/models), as its clients send and read them.
#ifndef TARN_TOOLS_SERVE_OPENAI_H
#define TARN_TOOLS_SERVE_OPENAI_H

#include <jansson.h>

#include "serve/serve_request.h"

// {"error": {"message", "type", "param", "code"}} for a code of HTTP; `key` NULL: no key is at fault.
json_t *serve_openai_error(int code, const char *key, const char *line);

// Reads request->body. False: it was refused.
bool serve_openai_read(serve_request *request, const serve_limits *limits);

// The choices of a text, whose continuations are numbered from text * generation.number on.
json_t *serve_openai_choices(const serve_request *request, const tarn_generator *generator, size_t text,
                             const tarn_generator_result *result);
// The whole answer, with the choices of all its texts. Takes no ownership.
json_t *serve_openai_answer(const serve_request *request);

// Puts what was generated into the stream, and in the end the last chunks. False: nobody reads it, and generation may
// stop.
bool serve_openai_stream(serve_prompt *prompt, const tarn_generator *generator, const tarn_generator_event *event);
void serve_openai_stream_end(serve_request *request);

// The list of models, or the one of this name, NULL if there is no such one.
json_t *serve_openai_models(const serve_offers *offers, int64_t created, const char *only);

#endif
