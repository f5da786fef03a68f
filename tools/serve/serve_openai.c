#include "serve/serve_openai.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "json_output.h"
#include "serve/serve_events.h"
#include "serve/serve_keys.h"

json_t *serve_openai_error(int code, const char *key, const char *line) {
  const char *type = code >= 500 ? "server_error" : code == 429 ? "rate_limit_error" : "invalid_request_error";
  const char *word = code == 401                                       ? "invalid_api_key"
                     : code == 429                                     ? "rate_limit_exceeded"
                     : code == 404 && key && strcmp(key, "model") == 0 ? "model_not_found"
                                                                       : NULL;
  return json_pack("{s:{s:o, s:s, s:o, s:s?}}", "error", "message", json_output_text(line), "type", type, "param",
                   json_output_text(key), "code", word);
}

// --- requests --------------------------------------------------------------------------------------------------------

// Keys that are refused with a value that asks for something, because nothing here does it.
static bool check_absent(serve_request *request) {
  static const struct {
    const char *key, *why;
  } absent[] = {{"suffix", "text is only continued, not inserted before a suffix"},
                {"logit_bias", "\"banned\" names texts that are never generated"}};
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
    const json_t *value = json_object_get(request->body, absent[i].key);
    const bool empty = json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0) ||
                       (json_is_object(value) && json_object_size(value) == 0);
    if (!value || empty) continue;
    serve_request_refuse_key(request, 400, absent[i].key, "\"%s\" is not possible here: %s", absent[i].key,
                             absent[i].why);
    return false;
  }
  return true;
}

static bool read_stream_options(serve_request *request) {
  const json_t *options = json_object_get(request->body, "stream_options");
  const char *name;
  json_t *value;
  if (!options || json_is_null(options)) return true;
  if (!json_is_object(options) || !request->streams) {
    serve_request_refuse_key(request, 400, "stream_options", "\"stream_options\" is an object, with \"stream\": true");
    return false;
  }
  json_object_foreach((json_t *)(uintptr_t)options, name, value) {
    if (strcmp(name, "include_usage") == 0 && json_is_boolean(value)) {
      request->usage = json_is_true(value);
      continue;
    }
    if (strcmp(name, "include_obfuscation") == 0 && json_is_boolean(value)) continue;
    serve_request_refuse_key(request, 400, "stream_options",
                             "\"stream_options\" may have \"include_usage\": true or false");
    return false;
  }
  return true;
}

static bool check_logprobs(serve_request *request, int64_t logprobs) {
  request->logprobs = logprobs >= 0;
  request->tops = logprobs > 0 ? logprobs : 0;
  if (!request->logprobs || !request->echo) return true;
  serve_request_refuse_key(request, 400, "echo", "\"echo\" excludes \"logprobs\"; /score has those of a text");
  return false;
}

// A temperature of 0 stands for the most likely token, of which all continuations are. Clients of OpenAI send "top_p"
// with it; what is tarn's own and would have no effect is refused, as by /generate.
static bool settle_temperature(serve_request *request) {
  tarn_generator_options *g = &request->generation;
  g->method = TARN_GENERATOR_METHOD_SAMPLE;
  if (g->temperature > 0 && g->temperature < 1e-3) {
    serve_request_refuse_key(request, 400, "temperature", "\"temperature\" must be 0, or from 0.001 to 100");
    return false;
  }
  if (g->temperature > 0) return true;
  const char *useless = g->top_k > 0                ? "top_k"
                        : g->decoding.min_p > 0     ? "min_p"
                        : g->decoding.typical_p < 1 ? "typical_p"
                                                    : NULL;
  if (useless) {
    serve_request_refuse_key(request, 400, useless, "\"%s\" has no effect with a \"temperature\" of 0", useless);
    return false;
  }
  g->temperature = g->top_p = 1;
  g->top_k = 1;
  return true;
}

// Without a seed every request has another one.
static void settle_seed(serve_request *request, int64_t seed) {
  request->generation.seed = (uint64_t)seed;
  if (!serve_keys_given(request, "seed") &&
      getrandom(&request->generation.seed, sizeof request->generation.seed, 0) < 0)
    request->generation.seed = (uint64_t)time(NULL);
}

static void name_answer(serve_request *request) {
  unsigned char bytes[12] = {0};
  if (getrandom(bytes, sizeof bytes, 0) < 0) bytes[0] = 1;
  int at = snprintf(request->id, sizeof request->id, "cmpl-");
  for (size_t i = 0; i < sizeof bytes; i++)
    at += snprintf(request->id + at, sizeof request->id - (size_t)at, "%02x", bytes[i]);
  request->created = (int64_t)time(NULL);
}

bool serve_openai_read(serve_request *request, const serve_limits *limits) {
  tarn_generator_options *g = &request->generation;
  tarn_decoding *d = &g->decoding;
  const double seeds = 9007199254740992.0;  // 2^53
  const unsigned use = 1u << SERVE_GENERATE;
  int64_t seed = 1, logprobs = -1, best_of = 0;
  serve_strings banned = {&request->banned, &d->banned, &d->banned_count},
                stop = {&request->stop, &g->stop, &g->stop_count};
  g->max_tokens = 16;
  const serve_key keys[] = {
      {"model", SERVE_KEY_OWN, use, NULL, 0, 0, NULL},
      {"prompt", SERVE_KEY_OWN, use, NULL, 0, 0, NULL},
      {"max_tokens", SERVE_KEY_WHOLE, use, &g->max_tokens, 1, (double)limits->tokens, NULL},
      {"temperature", SERVE_KEY_REAL, use, &g->temperature, 0, 100, NULL},
      {"top_p", SERVE_KEY_REAL, use, &g->top_p, 1e-6, 1, NULL},
      {"n", SERVE_KEY_WHOLE, use, &g->number, 1, (double)limits->samples, NULL},
      {"best_of", SERVE_KEY_WHOLE, use, &best_of, 1, (double)limits->samples, NULL},
      {"stop", SERVE_KEY_STRINGS, use, &stop, 0, SERVE_KEY_STOP_BYTES, NULL},
      {"seed", SERVE_KEY_WHOLE, use, &seed, -seeds, seeds, NULL},
      {"presence_penalty", SERVE_KEY_REAL, use, &d->presence_penalty, -100, 100, NULL},
      {"frequency_penalty", SERVE_KEY_REAL, use, &d->frequency_penalty, -100, 100, NULL},
      {"logprobs", SERVE_KEY_WHOLE, use, &logprobs, 0, 5, NULL},
      {"echo", SERVE_KEY_FLAG, use, &request->echo, 0, 0, NULL},
      {"stream", SERVE_KEY_FLAG, use, &request->streams, 0, 0, NULL},
      {"stream_options", SERVE_KEY_OWN, use, NULL, 0, 0, NULL},
      {"suffix", SERVE_KEY_OWN, use, NULL, 0, 0, NULL},
      {"logit_bias", SERVE_KEY_OWN, use, NULL, 0, 0, NULL},
      {"user", SERVE_KEY_OWN, use, NULL, 0, 0, NULL},
      // Not of OpenAI's; clients send them as extra values.
      {"min_tokens", SERVE_KEY_WHOLE, use, &g->min_tokens, 0, (double)limits->tokens, NULL},
      {"top_k", SERVE_KEY_WHOLE, use, &g->top_k, 0, 1e9, NULL},
      {"min_p", SERVE_KEY_REAL, use, &d->min_p, 0, 0.999999, NULL},
      {"typical_p", SERVE_KEY_REAL, use, &d->typical_p, 1e-6, 1, NULL},
      {"repetition_penalty", SERVE_KEY_REAL, use, &d->repetition_penalty, 1e-3, 100, NULL},
      {"no_repeat_ngram", SERVE_KEY_WHOLE, use, &d->no_repeat_ngram, 0, 1000, NULL},
      {"banned", SERVE_KEY_STRINGS, use, &banned, 0, 0, NULL},
  };
  if (!json_is_object(request->body)) {
    serve_request_refuse(request, 400, "the body must be a JSON object");
    return false;
  }
  const bool read =
      serve_keys_read(request, "/v1/completions", keys, sizeof keys / sizeof *keys, true, limits->text_bytes);
  // The request owns an open stream if it has one, also when it is refused.
  const bool streams = request->streams;
  request->streams = false;
  if (!read || !check_absent(request)) return false;
  if (!serve_keys_given(request, "prompt")) {
    serve_request_refuse_key(request, 400, "prompt", "\"prompt\" is missing");
    return false;
  }
  request->streams = streams;
  const bool options = read_stream_options(request);
  request->streams = false;
  if (!options || !serve_request_texts(request, "prompt", limits)) return false;
  for (size_t i = 0; i < request->count; i++) request->bytes += request->lengths[i];
  if (best_of > 0 && best_of != g->number) {
    serve_request_refuse_key(request, 400, "best_of",
                             "\"best_of\" must be equal to \"n\": nothing is chosen among more");
    return false;
  }
  if (!settle_temperature(request) || !check_logprobs(request, logprobs) ||
      !serve_request_check_generation(request, limits))
    return false;
  settle_seed(request, seed);
  name_answer(request);
  request->streams = streams;
  return true;
}

// --- answers ---------------------------------------------------------------------------------------------------------

static const char *finish_reason(tarn_generator_end end) {
  return end == TARN_GENERATOR_END_EOS || end == TARN_GENERATOR_END_STOP ? "stop" : "length";
}

// Tokens with their log-probabilities, and the likeliest ones in their places.
typedef struct chosen {
  const int32_t *ids, *top_ids;
  const float *values, *top_values;
  int64_t count, tops;
} chosen;

// The likeliest tokens in the place of token `at`, and this one if it is none of them.
static json_t *top_logprobs(const tarn_generator *generator, const chosen *c, int64_t at) {
  json_t *object = json_object();
  int failed = !object;
  for (int64_t i = c->tops; i >= 0 && !failed; i--) {  // of two that look alike the likelier one stays
    const bool own = i == c->tops;
    const int32_t id = own ? c->ids[at] : c->top_ids[at * c->tops + i];
    if (id < 0) continue;
    json_t *name = json_output_text(tarn_generator_piece(generator, id));
    const double value = (double)(own ? c->values[at] : c->top_values[at * c->tops + i]);
    failed |= !name || json_object_set_new(object, json_string_value(name), json_output_real(value));
    json_decref(name);
  }
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

static json_t *logprobs(const serve_request *request, const tarn_generator *generator, const chosen *c) {
  if (!request->logprobs) return json_null();
  json_t *tokens = json_array(), *token_logprobs = json_array();
  json_t *tops = request->tops > 0 ? json_array() : json_null();
  int failed = !tokens || !token_logprobs || !tops;
  for (int64_t i = 0; !failed && i < c->count; i++) {
    failed |= json_array_append_new(tokens, json_output_text(tarn_generator_piece(generator, c->ids[i])));
    failed |= json_array_append_new(token_logprobs, json_output_real((double)c->values[i]));
    if (request->tops > 0) failed |= json_array_append_new(tops, top_logprobs(generator, c, i));
  }
  json_t *object =
      failed ? NULL
             : json_pack("{s:O, s:O, s:O}", "tokens", tokens, "token_logprobs", token_logprobs, "top_logprobs", tops);
  json_decref(tokens);
  json_decref(token_logprobs);
  json_decref(tops);
  return object;
}

// {text, index, logprobs, finish_reason}; takes ownership of the log-probabilities. The text follows `lead`, if any.
static json_t *choice(const char *lead, size_t lead_length, const char *text, size_t length, int64_t index,
                      json_t *logs, const char *reason) {
  char *joined = malloc(lead_length + length + 1);
  if (joined && lead_length > 0) memcpy(joined, lead, lead_length);
  if (joined) memcpy(joined + lead_length, text, length);
  json_t *whole = joined ? json_stringn(joined, lead_length + length) : NULL;
  free(joined);
  return json_pack("{s:o, s:I, s:o, s:s?}", "text", whole, "index", (json_int_t)index, "logprobs", logs,
                   "finish_reason", reason);
}

json_t *serve_openai_choices(const serve_request *request, const tarn_generator *generator, size_t text,
                             const tarn_generator_result *result) {
  json_t *choices = json_array();
  int failed = !choices;
  for (int64_t i = 0; !failed && i < result->count; i++) {
    const tarn_generator_text *t = &result->texts[i];
    const chosen c = {t->ids, t->top_ids, t->log_probabilities, t->top_log_probabilities, t->tokens, t->tops};
    failed |= json_array_append_new(
        choices, choice(request->texts[text], request->echo ? request->lengths[text] : 0, t->continuation,
                        t->continuation_length, (int64_t)text * request->generation.number + i,
                        logprobs(request, generator, &c), finish_reason(t->end)));
  }
  if (!failed) return choices;
  json_decref(choices);
  return NULL;
}

static json_t *usage(const serve_request *request) {
  return json_pack("{s:I, s:I, s:I}", "prompt_tokens", (json_int_t)request->source_tokens, "completion_tokens",
                   (json_int_t)request->target_tokens, "total_tokens",
                   (json_int_t)(request->source_tokens + request->target_tokens));
}

// A completion with these choices, of which it takes ownership; `numbers`: its usage, or NULL.
static json_t *completion(const serve_request *request, json_t *choices, json_t *numbers) {
  json_t *object =
      json_pack("{s:s, s:s, s:I, s:o, s:o}", "id", request->id, "object", "text_completion", "created",
                (json_int_t)request->created, "model", json_output_text(request->offer->id), "choices", choices);
  if (object && numbers && json_object_set_new(object, "usage", numbers) == 0) return object;
  if (object && !numbers) return object;
  if (!object) json_decref(numbers);
  json_decref(object);
  return NULL;
}

json_t *serve_openai_answer(const serve_request *request) {
  json_t *choices = json_array();
  int failed = !choices;
  for (size_t i = 0; !failed && i < request->count; i++)
    failed |= json_array_extend(choices, request->prompts[i].answer);
  json_t *numbers = usage(request);
  if (!failed && numbers) return completion(request, choices, numbers);
  json_decref(choices);
  json_decref(numbers);
  return NULL;
}

// --- streams ---------------------------------------------------------------------------------------------------------

bool serve_openai_stream(serve_prompt *prompt, const tarn_generator *generator, const tarn_generator_event *event) {
  serve_request *r = prompt->request;
  bool *begun = &prompt->begun[event->sample];
  const bool lead = r->echo && !*begun;
  if (event->length == 0 && !lead && !event->last && !r->logprobs) return serve_stream_is_read(&r->stream);
  *begun = true;
  const chosen c = {&event->id, event->top_ids, &event->log_probability, event->top_log_probabilities, 1, event->tops};
  json_t *logs = logprobs(r, generator, &c);
  json_t *one = choice(r->texts[prompt->number], lead ? r->lengths[prompt->number] : 0, event->text, event->length,
                       (int64_t)prompt->number * r->generation.number + event->sample, logs,
                       event->last ? finish_reason(event->end) : NULL);
  // "usage" is null in all chunks but the last, if it was asked for.
  return serve_events_put(r, completion(r, json_pack("[o]", one), r->usage ? json_null() : NULL));
}

void serve_openai_stream_end(serve_request *request) {
  if (!request->usage || serve_events_put(request, completion(request, json_array(), usage(request))))
    serve_events_end(request);
  else
    serve_events_fail(request, 503, "there is not enough memory");
}

// --- models ----------------------------------------------------------------------------------------------------------

json_t *serve_openai_models(const serve_offers *offers, int64_t created, const char *only) {
  json_t *list = json_array();
  int failed = !list;
  for (size_t i = 0; !failed && i < offers->count; i++) {
    const char *id = offers->items[i].id;
    if (only && strcmp(id, only) != 0) continue;
    json_t *model = json_pack("{s:o, s:s, s:I, s:s}", "id", json_output_text(id), "object", "model", "created",
                              (json_int_t)created, "owned_by", "tarn");
    if (only) {
      json_decref(list);
      return model;
    }
    failed |= json_array_append_new(list, model);
  }
  if (!failed && !only) return json_pack("{s:s, s:o}", "object", "list", "data", list);
  json_decref(list);
  return NULL;
}
