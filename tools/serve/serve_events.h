// Server-sent events (WHATWG HTML, 9.2) of an answer that is sent while it is computed, and those of tarn's own
// requests.
#ifndef TARN_TOOLS_SERVE_EVENTS_H
#define TARN_TOOLS_SERVE_EVENTS_H

#include "serve/serve_request.h"

// Sends an object, of which it takes ownership; NULL: there was no memory. False: nobody reads any more, or there was
// no memory for it.
bool serve_events_put(serve_request *request, json_t *object);
// The last event: data: [DONE].
void serve_events_end(serve_request *request);
// An event with an error, in the language of the request; without memory it says that.
void serve_events_fail(serve_request *request, int code, const char *line);

// {"index": text, "part": ...}: a part of the translation of a text, if it has any byte.
bool serve_events_part(serve_request *request, size_t text, const char *part, size_t length);
// The same of a continuation, with its number among the samples, and the token if they were asked for.
bool serve_events_token(serve_prompt *prompt, const tarn_generator *generator, const tarn_generator_event *event);
// {"index": text, NAME: answer}: what the whole answer would have of this text; takes ownership of it.
bool serve_events_answer(serve_request *request, size_t text, const char *name, json_t *answer);

#endif
