#include "serve/serve_request.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_memory.h"
#include "json_output.h"
#include "tarn/text.h"

enum { MOST_CONTINUATIONS = 64, MOST_STRINGS = 64 };

const char *serve_use_word(serve_use use, const tarn_verb *verb) {
  static const char *const words[SERVE_USES] = {"translate", "score", "generate", NULL, "attend"};
  return use == SERVE_LABEL ? verb->word : words[use];
}

static void set_answer(serve_request *request, int code, json_t *object) {
  static const char out_of_memory[] = "{\"error\":\"there is not enough memory\"}";
  free(request->answer);
  request->answer = object ? json_dumps(object, JSON_COMPACT) : NULL;
  json_decref(object);
  request->code = request->answer ? code : 503;
  if (!request->answer) request->answer = strdup(out_of_memory);
  request->answer_size = request->answer ? strlen(request->answer) : 0;
}

void serve_request_refuse(serve_request *request, int code, const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  json_t *object = json_object();
  if (object && json_object_set_new(object, "error", json_output_text(line)) != 0) {
    json_decref(object);
    object = NULL;
  }
  set_answer(request, code, object);
}

void serve_request_answer(serve_request *request, json_t *object) { set_answer(request, 200, object); }

void serve_request_forget(serve_request *request) {
  json_decref(request->body);
  free(request->texts);
  free(request->lengths);
  free(request->pairs);
  free(request->banned);
  free(request->stop);
  request->banned = request->stop = NULL;
  request->body = NULL;
  request->texts = NULL;
  request->lengths = NULL;
  request->pairs = NULL;
  request->target = NULL;
  request->count = 0;
}

void serve_request_close(serve_request *request) {
  serve_request_forget(request);
  free(request->answer);
  *request = (serve_request){0};
}

bool serve_request_together(void *user, const void *first, const void *other) {
  const serve_request *a = first, *b = other;
  (void)user;
  if (a->use != b->use || a->use == SERVE_ATTEND) return false;
  if (!tarn_decoding_same(&a->decoding, &b->decoding)) return false;
  if (a->use == SERVE_TRANSLATE)
    return a->beam == b->beam && a->length_penalty == b->length_penalty && a->iterations == b->iterations;
  if (a->use != SERVE_GENERATE) return true;
  const tarn_generator_options *x = &a->generation, *y = &b->generation;
  if (x->stop_count != y->stop_count) return false;
  for (size_t i = 0; i < x->stop_count; i++)
    if (strcmp(x->stop[i], y->stop[i]) != 0) return false;
  return x->method == y->method && x->max_tokens == y->max_tokens && x->min_tokens == y->min_tokens &&
         x->number == y->number && x->beam == y->beam && x->length_penalty == y->length_penalty &&
         x->temperature == y->temperature && x->top_k == y->top_k && x->top_p == y->top_p && x->seed == y->seed;
}

// --- keys ------------------------------------------------------------------------------------------------------------

typedef enum key_type { TEXTS, PAIRS, TARGET, FLAG, WHOLE, REAL, METHOD, STRINGS } key_type;

typedef struct key {
  const char *name;
  key_type type;
  unsigned uses;  // one bit each
  void *value;    // bool, int64_t, double, strings
  double low, high;
} key;

enum { ANY = (1 << SERVE_USES) - 1, KEYS = 29 };
#define USE(use) (1u << SERVE_##use)

// Where an array of strings is stored.
typedef struct strings {
  const char ***memory, *const **items;
  size_t *count;
} strings;

// A string, or an array of strings, none of them empty.
static bool read_strings(serve_request *request, const key *k, const json_t *value) {
  const strings *to = k->value;
  const size_t count = json_is_array(value) ? json_array_size(value) : 1;
  if (count > MOST_STRINGS) {
    serve_request_refuse(request, 400, "\"%s\" may have at most %d strings", k->name, MOST_STRINGS);
    return false;
  }
  const char **items = *to->memory = malloc((count + 1) * sizeof *items);
  if (!items) {
    serve_request_answer(request, NULL);
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
    items[i] = json_string_value(item);
    if (items[i] && *items[i] && strlen(items[i]) == json_string_length(item)) continue;
    serve_request_refuse(request, 400, "\"%s\" must be a string that is not empty, or an array of such", k->name);
    return false;
  }
  *to->items = items;
  *to->count = count;
  return true;
}

// Checks a value and stores it.
static bool read_key(serve_request *request, const key *k, const json_t *value) {
  static const char *const methods[TARN_GENERATOR_METHOD_COUNT] = {"greedy", "beam", "sample"};
  const double number = json_number_value(value);
  switch (k->type) {
    case TEXTS:
    case PAIRS:
    case TARGET:
      return true;  // read together
    case FLAG:
      *(bool *)k->value = json_is_true(value);
      if (json_is_boolean(value)) return true;
      serve_request_refuse(request, 400, "\"%s\" must be true or false", k->name);
      return false;
    case WHOLE:
      *(int64_t *)k->value = (int64_t)json_integer_value(value);
      if (json_is_integer(value) && number >= k->low && number <= k->high) return true;
      serve_request_refuse(request, 400, "\"%s\" must be a whole number from %.0f to %.0f", k->name, k->low, k->high);
      return false;
    case REAL:
      *(double *)k->value = number;
      if (json_is_number(value) && number >= k->low && number <= k->high) return true;
      serve_request_refuse(request, 400, "\"%s\" must be a number from %g to %g", k->name, k->low, k->high);
      return false;
    case STRINGS:
      return read_strings(request, k, value);
    case METHOD:
      for (int i = 0; json_is_string(value) && i < TARN_GENERATOR_METHOD_COUNT; i++) {
        if (strcmp(json_string_value(value), methods[i]) != 0) continue;
        request->generation.method = (tarn_generator_method)i;
        return true;
      }
      serve_request_refuse(request, 400, "\"%s\" must be \"greedy\", \"beam\" or \"sample\"", k->name);
      return false;
  }
  return false;
}

// Names the nearest key that the request does not have yet, and all valid keys.
static void refuse_key(serve_request *request, const char *name, const char *const names[], size_t count) {
  const char *missing[KEYS];
  size_t missing_count = 0;
  for (size_t i = 0; i < count; i++)
    if (!json_object_get(request->body, names[i])) missing[missing_count++] = names[i];
  const char *nearest = tarn_text_nearest(name, missing, missing_count);
  char all[1024] = "";
  for (size_t i = 0, used = 0; i < count && used < sizeof all; i++)
    used += (size_t)snprintf(all + used, sizeof all - used, "%s\"%s\"", i ? ", " : "", names[i]);
  serve_request_refuse(request, 400, "/%s knows no \"%.60s\"%s%s%s keys are %s",
                       serve_use_word(request->use, request->verb), name, nearest ? "; did you mean \"" : "",
                       nearest ? nearest : "", nearest ? "\"? Its" : "; its", all);
}

static bool read_keys(serve_request *request, const key keys[KEYS]) {
  const char *name;
  json_t *value;
  json_object_foreach(request->body, name, value) {
    const char *names[KEYS];
    size_t count = 0, at = KEYS;
    for (size_t i = 0; i < KEYS; i++) {
      if (!(keys[i].uses & 1u << request->use)) continue;
      names[count++] = keys[i].name;
      if (strcmp(keys[i].name, name) == 0) at = i;
    }
    if (at == KEYS) {
      refuse_key(request, name, names, count);
      return false;
    }
    if (!read_key(request, &keys[at], value)) return false;
  }
  return true;
}

// --- texts -----------------------------------------------------------------------------------------------------------

static bool check_text(serve_request *request, const json_t *text, const char *name, const serve_limits *limits) {
  if (!json_is_string(text)) {
    serve_request_refuse(request, 400, "\"%s\" must be a string, or an array of strings", name);
    return false;
  }
  if ((int64_t)json_string_length(text) > limits->text_bytes) {
    serve_request_refuse(request, 413, "a text has %zu bytes, but may have at most %lld", json_string_length(text),
                         (long long)limits->text_bytes);
    return false;
  }
  return true;
}

static const json_t *text_at(const json_t *texts, size_t index) {
  return json_is_array(texts) ? json_array_get(texts, index) : texts;
}

// The texts of classification with a second sentence each, after a tab.
static bool join_pairs(serve_request *request, const json_t *texts, const json_t *pairs, const serve_limits *limits) {
  size_t size = 0;
  if (json_is_array(texts) != json_is_array(pairs) ||
      (json_is_array(pairs) && json_array_size(pairs) != request->count)) {
    serve_request_refuse(request, 400, "\"pair\" must have as many strings as \"text\"");
    return false;
  }
  for (size_t i = 0; i < request->count; i++) {
    if (!check_text(request, text_at(pairs, i), "pair", limits)) return false;
    if (strchr(json_string_value(text_at(pairs, i)), '\t')) {
      serve_request_refuse(request, 400, "\"pair\" has a tab");
      return false;
    }
    size += request->lengths[i] + json_string_length(text_at(pairs, i)) + 2;
  }
  char *at = request->pairs = malloc(size + 1);
  if (!at) {
    serve_request_answer(request, NULL);
    return false;
  }
  for (size_t i = 0; i < request->count; i++) {
    const json_t *pair = text_at(pairs, i);
    const size_t first = request->lengths[i], second = json_string_length(pair);
    memcpy(at, request->texts[i], first);
    at[first] = '\t';
    memcpy(at + first + 1, json_string_value(pair), second);
    request->texts[i] = at;
    request->lengths[i] = first + 1 + second;
    at += first + 1 + second;
    *at++ = '\0';
  }
  return true;
}

// The translation for the single text of SERVE_ATTEND.
static bool read_target(serve_request *request, const json_t *texts, const serve_limits *limits) {
  const json_t *target = json_object_get(request->body, "target");
  if (!json_is_string(texts) || !json_is_string(target)) {
    serve_request_refuse(request, 400, "\"text\" and \"target\" must be strings");
    return false;
  }
  request->target = json_string_value(target);
  request->target_length = json_string_length(target);
  return check_text(request, target, "target", limits);
}

static bool read_texts(serve_request *request, const serve_limits *limits) {
  const json_t *texts = json_object_get(request->body, "text"), *pairs = json_object_get(request->body, "pair");
  request->count = json_is_array(texts) ? json_array_size(texts) : 1;
  if (request->count == 0) {
    serve_request_refuse(request, 400, "\"text\" has no string");
    return false;
  }
  if ((int64_t)request->count > limits->texts) {
    serve_request_refuse(request, 413, "%zu texts, but a request may have at most %lld", request->count,
                         (long long)limits->texts);
    return false;
  }
  request->texts = malloc(request->count * sizeof *request->texts);
  request->lengths = malloc(request->count * sizeof *request->lengths);
  if (!request->texts || !request->lengths) {
    serve_request_answer(request, NULL);
    return false;
  }
  for (size_t i = 0; i < request->count; i++) {
    const json_t *text = text_at(texts, i);
    if (!check_text(request, text, "text", limits)) return false;
    request->texts[i] = json_string_value(text);
    request->lengths[i] = json_string_length(text);
    if (request->use == SERVE_LABEL && !request->verb->words && strchr(request->texts[i], '\t')) {
      serve_request_refuse(request, 400, "\"text\" has a tab; the second sentences of pairs go into \"pair\"");
      return false;
    }
  }
  if (pairs && request->verb->words) {
    serve_request_refuse(request, 400, "\"pair\" is for labels of pairs of texts");
    return false;
  }
  if (pairs && !join_pairs(request, texts, pairs, limits)) return false;
  for (size_t i = 0; i < request->count; i++) request->bytes += request->lengths[i];
  return request->use != SERVE_ATTEND || read_target(request, texts, limits);
}

// --- whole requests --------------------------------------------------------------------------------------------------

// Checks combinations of keys.
static bool check_generation(serve_request *request, const serve_limits *limits) {
  const tarn_generator_options *o = &request->generation;
  const int64_t most = o->method == TARN_GENERATOR_METHOD_SAMPLE ? MOST_CONTINUATIONS
                       : o->method == TARN_GENERATOR_METHOD_BEAM ? o->beam
                                                                 : 1;
  const int64_t width = o->method == TARN_GENERATOR_METHOD_BEAM ? o->beam : o->number;
  if (o->number > most)
    serve_request_refuse(request, 400, "\"number\" may be at most %lld with this method%s", (long long)most,
                         o->method == TARN_GENERATOR_METHOD_GREEDY ? " (there are \"beam\" and \"sample\")" : "");
  else if (o->min_tokens > o->max_tokens)
    serve_request_refuse(request, 400, "\"min_tokens\" is larger than \"max_tokens\"");
  else if ((int64_t)request->count * width > limits->tokens / o->max_tokens)
    serve_request_refuse(request, 413,
                         "%zu texts with %lld continuations of up to %lld tokens are more than %lld tokens",
                         request->count, (long long)width, (long long)o->max_tokens, (long long)limits->tokens);
  else
    return true;
  return false;
}

static bool read_object(serve_request *request, const serve_limits *limits) {
  tarn_generator_options *g = &request->generation;
  const double seeds = 9007199254740992.0;  // 2^53: the range of exact integers in JSON in most programs
  tarn_decoding *d = &request->decoding;
  const unsigned searches = limits->refines ? 0 : USE(TRANSLATE), refines = limits->refines ? USE(TRANSLATE) : 0;
  const unsigned lengths = limits->edits ? 0 : refines;
  int64_t seed = 1;
  strings banned = {&request->banned, &d->banned, &d->banned_count}, stop = {&request->stop, &g->stop, &g->stop_count};
  const unsigned both = USE(TRANSLATE) | USE(GENERATE);
  const key keys[KEYS] = {
      {"text", TEXTS, ANY, NULL, 0, 0},
      {"pair", PAIRS, USE(LABEL), NULL, 0, 0},
      {"target", TARGET, USE(ATTEND), NULL, 0, 0},
      {"tokens", FLAG, USE(TRANSLATE) | USE(SCORE) | USE(GENERATE), &request->tokens, 0, 0},
      {"n_best", WHOLE, USE(TRANSLATE), &request->n_best, 1, (double)limits->beam},
      {"beam", WHOLE, searches, &request->beam, 1, (double)limits->beam},
      {"length_penalty", REAL, searches, &request->length_penalty, -10, 10},
      {"length_beam", WHOLE, lengths, &request->beam, 1, (double)limits->beam},
      {"iterations", WHOLE, refines, &request->iterations, 1, (double)limits->iterations},
      {"method", METHOD, USE(GENERATE), NULL, 0, 0},
      {"max_tokens", WHOLE, USE(GENERATE), &g->max_tokens, 1, (double)limits->tokens},
      {"min_tokens", WHOLE, USE(GENERATE), &g->min_tokens, 0, (double)limits->tokens},
      {"number", WHOLE, USE(GENERATE), &g->number, 1, MOST_CONTINUATIONS},
      {"beam", WHOLE, USE(GENERATE), &g->beam, 1, MOST_CONTINUATIONS},
      {"length_penalty", REAL, USE(GENERATE), &g->length_penalty, -10, 10},
      {"temperature", REAL, USE(GENERATE), &g->temperature, 1e-3, 1e3},
      {"top_k", WHOLE, USE(GENERATE), &g->top_k, 0, 1e9},
      {"top_p", REAL, USE(GENERATE), &g->top_p, 1e-6, 1},
      {"seed", WHOLE, USE(GENERATE), &seed, 0, seeds},
      {"repetition_penalty", REAL, both, &d->repetition_penalty, 1e-3, 100},
      {"presence_penalty", REAL, both, &d->presence_penalty, -100, 100},
      {"frequency_penalty", REAL, both, &d->frequency_penalty, -100, 100},
      {"no_repeat_ngram", WHOLE, both, &d->no_repeat_ngram, 0, 1000},
      {"banned", STRINGS, both, &banned, 0, 0},
      {"groups", WHOLE, both, &d->groups, 1, MOST_CONTINUATIONS},
      {"diversity_penalty", REAL, both, &d->diversity_penalty, 0, 1000},
      {"min_p", REAL, USE(GENERATE), &d->min_p, 0, 0.999999},
      {"typical_p", REAL, USE(GENERATE), &d->typical_p, 1e-6, 1},
      {"stop", STRINGS, USE(GENERATE), &stop, 0, 0},
  };
  if (!json_is_object(request->body)) {
    serve_request_refuse(request, 400, "the body must be a JSON object");
    return false;
  }
  if (!read_keys(request, keys)) return false;  // first: a misspelt key is more informative than a missing one
  if (!json_object_get(request->body, "text")) {
    serve_request_refuse(request, 400, "\"text\" is missing");
    return false;
  }
  if (request->n_best > request->beam && request->use == SERVE_TRANSLATE) {
    serve_request_refuse(request, 400, "\"n_best\" may be at most the \"%s\" of %lld",
                         limits->refines ? "length_beam" : "beam", (long long)request->beam);
    return false;
  }
  g->seed = (uint64_t)seed;
  g->decoding = request->decoding;
  return read_texts(request, limits) && (request->use != SERVE_GENERATE || check_generation(request, limits));
}

// Each JSON value takes some 100 bytes of memory, however short it is in the body, so values beyond any valid request
// are refused before they are created. Commas and colons within strings do not count.
static bool has_too_many_values(const char *bytes, size_t size, int64_t most) {
  bool inside = false;
  int64_t values = 1;
  for (size_t i = 0; i < size; i++) {
    const char c = bytes[i];
    if (inside && c == '\\')
      i++;
    else if (c == '"')
      inside = !inside;
    else if (!inside && (c == ',' || c == ':' || c == '[' || c == '{'))
      values++;
  }
  return values > most;
}

bool serve_request_read(serve_request *request, const char *bytes, size_t size, const serve_limits *limits) {
  json_error_t error;
  request->n_best = 1;
  request->beam = limits->beam;
  request->iterations = limits->iterations;
  request->length_penalty = limits->length_penalty;
  tarn_generator_default(&request->generation);
  tarn_decoding_default(&request->decoding);
  if (request->generation.max_tokens > limits->tokens) request->generation.max_tokens = limits->tokens;
  const int64_t most = 2 * limits->texts + 4 * KEYS + 2 * MOST_STRINGS;  // a pair is two texts
  if (has_too_many_values(bytes, size, most)) {
    serve_request_refuse(request, 413, "the body has more than %lld values; a request may have at most %lld texts",
                         (long long)most, (long long)limits->texts);
    return false;
  }
  bool ended;
  request->body = json_memory_read(bytes, size, JSON_REJECT_DUPLICATES, &error, &ended);
  if (ended) {
    serve_request_answer(request, NULL);
    return false;
  }
  if (!request->body) {
    serve_request_refuse(request, 400, "the body is not JSON: line %d, column %d: %s", error.line, error.column,
                         error.text);
    return false;
  }
  return read_object(request, limits);
}
