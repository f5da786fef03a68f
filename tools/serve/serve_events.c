#include "serve/serve_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_output.h"
#include "serve/serve_answer.h"
#include "serve/serve_openai.h"

#define SERVE_EVENT(text) "data: " text "\n\n"

bool serve_events_put(serve_request *request, json_t *object) {
  char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
  json_decref(object);
  const size_t length = text ? strlen(text) : 0;
  char *event = text ? malloc(length + sizeof "data: \n\n") : NULL;
  bool good = event != NULL;
  if (good) {
    const int size = sprintf(event, "data: %s\n\n", text);
    good = serve_stream_put(&request->stream, event, (size_t)size);
  }
  free(event);
  free(text);
  return good;
}

void serve_events_end(serve_request *request) { serve_stream_last(&request->stream, "data: [DONE]\n\n"); }

void serve_events_fail(serve_request *request, int code, const char *line) {
  const bool own = request->form == SERVE_FORM_TARN;
  json_t *error = own ? json_pack("{s:o}", "error", json_output_text(line)) : serve_openai_error(code, NULL, line);
  if (!serve_events_put(request, error))
    serve_stream_last(&request->stream, own ? SERVE_EVENT(SERVE_NO_MEMORY) : SERVE_EVENT(SERVE_NO_MEMORY_OPENAI));
}

bool serve_events_part(serve_request *request, size_t text, const char *part, size_t length) {
  if (length == 0) return serve_stream_is_read(&request->stream);
  return serve_events_put(request, json_pack("{s:I, s:s%}", "index", (json_int_t)text, "part", part, length));
}

bool serve_events_token(serve_prompt *prompt, const tarn_generator *generator, const tarn_generator_event *event) {
  serve_request *r = prompt->request;
  if (event->length == 0 && !r->tokens) return serve_stream_is_read(&r->stream);
  json_t *object = json_pack("{s:I, s:I, s:s%}", "index", (json_int_t)prompt->number, "sample",
                             (json_int_t)event->sample, "part", event->text, event->length);
  if (r->tokens && json_object_set_new(object, "piece",
                                       serve_answer_piece(tarn_generator_piece(generator, event->id),
                                                          (double)event->log_probability)) != 0) {
    json_decref(object);
    object = NULL;
  }
  return serve_events_put(r, object);
}

bool serve_events_answer(serve_request *request, size_t text, const char *name, json_t *answer) {
  return serve_events_put(request, json_pack("{s:I, s:o}", "index", (json_int_t)text, name, answer));
}
