#include "serve/serve_request.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_memory.h"
#include "json_output.h"
#include "serve/serve_keys.h"
#include "serve/serve_openai.h"

const char *serve_use_word(serve_use use, const tarn_verb *verb) {
  static const char *const words[SERVE_USES] = {"translate", "score", "generate", NULL, "attend"};
  return use == SERVE_LABEL ? verb->word : words[use];
}

static void set_answer(serve_request *request, int code, json_t *object) {
  static const char *const out_of_memory[] = {SERVE_NO_MEMORY, SERVE_NO_MEMORY_OPENAI};
  free(request->answer);
  request->answer = object ? json_dumps(object, JSON_COMPACT) : NULL;
  json_decref(object);
  request->code = request->answer ? code : 503;
  if (!request->answer) request->answer = strdup(out_of_memory[request->form == SERVE_FORM_OPENAI]);
  request->answer_size = request->answer ? strlen(request->answer) : 0;
}

static void refuse(serve_request *request, int code, const char *key, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
static void refuse(serve_request *request, int code, const char *key, const char *format, va_list args) {
  char line[1536];
  vsnprintf(line, sizeof line, format, args);
  if (request->form == SERVE_FORM_OPENAI) {
    set_answer(request, code, serve_openai_error(code, key, line));
    return;
  }
  json_t *object = json_object();
  if (object && json_object_set_new(object, "error", json_output_text(line)) != 0) {
    json_decref(object);
    object = NULL;
  }
  set_answer(request, code, object);
}

void serve_request_refuse(serve_request *request, int code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  refuse(request, code, NULL, format, args);
  va_end(args);
}

void serve_request_refuse_key(serve_request *request, int code, const char *key, const char *format, ...) {
  va_list args;
  va_start(args, format);
  refuse(request, code, key, format, args);
  va_end(args);
}

void serve_request_answer(serve_request *request, json_t *object) { set_answer(request, 200, object); }

void serve_request_forget(serve_request *request) {
  json_decref(request->body);
  free(request->texts);
  free(request->lengths);
  free(request->pairs);
  free(request->forced);
  free(request->force_words);
  free(request->banned);
  free(request->stop);
  for (size_t i = 0; request->prompts && i < request->count; i++) {
    json_decref(request->prompts[i].answer);
    free(request->prompts[i].begun);
  }
  free(request->prompts);
  request->prompts = NULL;
  request->banned = request->stop = request->force_words = NULL;
  request->body = NULL;
  request->texts = NULL;
  request->lengths = NULL;
  request->pairs = request->forced = NULL;
  request->target = NULL;
  request->count = 0;
}

void serve_request_close(serve_request *request) {
  serve_request_forget(request);
  if (request->streams) serve_stream_close(&request->stream);
  free(request->answer);
  *request = (serve_request){0};
}

// Of models that refine whole sentences.
static bool same_translation(const serve_request *a, const serve_request *b) {
  const tarn_translator_options *x = &a->translation, *y = &b->translation;
  return a->beam == b->beam && x->iterations == y->iterations && x->placeholder_penalty == y->placeholder_penalty;
}

bool serve_request_joins(const serve_request *request) {
  return request->use == SERVE_GENERATE || (request->use == SERVE_TRANSLATE && !request->offer->limits.refines);
}

bool serve_request_draws(const serve_request *request) {
  return request->use == SERVE_TRANSLATE ? request->translation.samples > 0
                                         : request->generation.method != TARN_GENERATOR_METHOD_BEAM;
}

bool serve_request_together(void *user, const void *first, const void *other) {
  const serve_request *a = first, *b = other;
  (void)user;
  if (a->offer != b->offer) return false;
  if (a->use != b->use) return false;
  if (serve_request_joins(a)) return serve_request_draws(a) == serve_request_draws(b);
  if (a->use == SERVE_ATTEND || a->streams || b->streams) return false;
  return a->use != SERVE_TRANSLATE || same_translation(a, b);
}

// --- texts -----------------------------------------------------------------------------------------------------------

static bool check_text(serve_request *request, const json_t *text, const char *name, const serve_limits *limits) {
  if (!json_is_string(text)) {
    serve_request_refuse_key(request, 400, name, "\"%s\" must be a string, or an array of strings", name);
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

// Each text with a second one after a tab: the other sentence of a pair, or the prefix of its translation; `name` is
// their key.
static bool join_pairs(serve_request *request, const char *name, const json_t *texts, const serve_limits *limits) {
  const json_t *pairs = json_object_get(request->body, name);
  size_t size = 0;
  if (json_is_array(texts) != json_is_array(pairs) ||
      (json_is_array(pairs) && json_array_size(pairs) != request->count)) {
    serve_request_refuse_key(request, 400, name, "\"%s\" must have as many strings as \"text\"", name);
    return false;
  }
  for (size_t i = 0; i < request->count; i++) {
    if (!check_text(request, text_at(pairs, i), name, limits)) return false;
    if (strchr(json_string_value(text_at(pairs, i)), '\t')) {
      serve_request_refuse_key(request, 400, name, "\"%s\" has a tab", name);
      return false;
    }
    if (strchr(request->texts[i], '\t')) {
      serve_request_refuse_key(request, 400, "text", "\"text\" has a tab, and \"%s\" is given", name);
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

// Each text with what its translation must contain in columns behind it, and behind its prefix: so requests with other
// words can be computed together.
static bool join_forced(serve_request *request, const serve_limits *limits) {
  const char *const *words = request->force_words;
  size_t size = 0, columns = 0;
  for (size_t w = 0; w < request->force_count; w++) {
    columns += strlen(words[w]) + 1;
    if (!strchr(words[w], '\t')) continue;
    serve_request_refuse_key(request, 400, "force_words", "\"force_words\" has a tab");
    return false;
  }
  for (size_t i = 0; i < request->count; i++) {
    const size_t all = request->lengths[i] + columns;
    if ((int64_t)all > limits->text_bytes) {
      serve_request_refuse_key(request, 413, "force_words",
                               "a text with its \"force_words\" has %zu bytes, but may have at most %lld", all,
                               (long long)limits->text_bytes);
      return false;
    }
    size += all + 1;
    if (request->translation.prefixes || !strchr(request->texts[i], '\t')) continue;
    serve_request_refuse_key(request, 400, "text", "\"text\" has a tab, and \"force_words\" is given");
    return false;
  }
  char *at = request->forced = malloc(size);
  if (!at) {
    serve_request_answer(request, NULL);
    return false;
  }
  for (size_t i = 0; i < request->count; i++) {
    const char *text = request->texts[i];
    request->texts[i] = at;
    memcpy(at, text, request->lengths[i]);
    at += request->lengths[i];
    for (size_t w = 0; w < request->force_count; w++) at += sprintf(at, "\t%s", words[w]);
    request->lengths[i] += columns;
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

bool serve_request_texts(serve_request *request, const char *name, const serve_limits *limits) {
  const json_t *texts = json_object_get(request->body, name);
  request->count = json_is_array(texts) ? json_array_size(texts) : 1;
  if (request->count == 0) {
    serve_request_refuse_key(request, 400, name, "\"%s\" has no string", name);
    return false;
  }
  if ((int64_t)request->count > limits->texts) {
    serve_request_refuse_key(request, 413, name, "%zu texts, but a request may have at most %lld", request->count,
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
    if (!check_text(request, text, name, limits)) return false;
    request->texts[i] = json_string_value(text);
    request->lengths[i] = json_string_length(text);
    if (request->use == SERVE_LABEL && !request->verb->words && strchr(request->texts[i], '\t')) {
      serve_request_refuse_key(request, 400, "text",
                               "\"text\" has a tab; the second sentences of pairs go into \"pair\"");
      return false;
    }
  }
  return true;
}

// What belongs to each text.
static bool read_beside(serve_request *request, const serve_limits *limits) {
  const json_t *texts = json_object_get(request->body, "text");
  if (json_object_get(request->body, "pair")) {
    if (request->verb->words) {
      serve_request_refuse_key(request, 400, "pair", "\"pair\" is for labels of pairs of texts");
      return false;
    }
    if (!join_pairs(request, "pair", texts, limits)) return false;
  }
  request->translation.prefixes = json_object_get(request->body, "prefix") != NULL;
  if (request->translation.prefixes && !join_pairs(request, "prefix", texts, limits)) return false;
  request->translation.force_columns = request->force_count > 0;
  if (request->force_count > 0 && !join_forced(request, limits)) return false;
  for (size_t i = 0; i < request->count; i++) request->bytes += request->lengths[i];
  return request->use != SERVE_ATTEND || read_target(request, texts, limits);
}

// --- combinations of keys --------------------------------------------------------------------------------------------

static const char *const drawing_keys[] = {"temperature", "top_k", "top_p", "min_p", "typical_p", "mbr", NULL};
static const char *const search_keys[] = {"beam", "groups", "diversity_penalty", NULL};

// The first of some keys that the body has; NULL: none.
static const char *first_given(const serve_request *request, const char *const *keys) {
  while (*keys && !serve_keys_given(request, *keys)) keys++;
  return *keys;
}

// What would have no effect is refused.
static bool refuse_useless(serve_request *request, const char *key, const char *why) {
  if (key) serve_request_refuse_key(request, 400, key, "\"%s\" has no effect %s", key, why);
  return !key;
}

// The method, if the request does not name it, is what its other keys are for.
static bool settle_method(serve_request *request) {
  tarn_generator_options *o = &request->generation;
  const char *drawing = first_given(request, drawing_keys);
  if (!serve_keys_given(request, "method") && drawing) o->method = TARN_GENERATOR_METHOD_SAMPLE;
  if (!serve_keys_given(request, "method") && serve_keys_given(request, "beam")) o->method = TARN_GENERATOR_METHOD_BEAM;
  if (!drawing && serve_keys_given(request, "seed")) drawing = "seed";
  if (o->method != TARN_GENERATOR_METHOD_SAMPLE && !refuse_useless(request, drawing, "without the method \"sample\""))
    return false;
  if (o->method == TARN_GENERATOR_METHOD_BEAM) return true;
  const char *search = serve_keys_given(request, "length_penalty") ? "length_penalty" : NULL;
  if (first_given(request, search_keys)) search = first_given(request, search_keys);
  return refuse_useless(request, search, "without the method \"beam\"");
}

bool serve_request_check_generation(serve_request *request, const serve_limits *limits) {
  const tarn_generator_options *o = &request->generation;
  const int64_t most = o->method == TARN_GENERATOR_METHOD_SAMPLE ? limits->samples
                       : o->method == TARN_GENERATOR_METHOD_BEAM ? o->beam
                                                                 : 1;
  const int64_t width = o->method == TARN_GENERATOR_METHOD_BEAM ? o->beam : o->number;
  if (o->number > most)
    serve_request_refuse_key(request, 400, "number", "\"number\" may be at most %lld with this method%s",
                             (long long)most,
                             o->method == TARN_GENERATOR_METHOD_GREEDY ? " (there are \"beam\" and \"sample\")" : "");
  else if (o->min_tokens > o->max_tokens)
    serve_request_refuse_key(request, 400, "min_tokens", "\"min_tokens\" is larger than \"max_tokens\"");
  else if ((int64_t)request->count * width > limits->tokens / o->max_tokens)
    serve_request_refuse_key(request, 413, "max_tokens",
                             "%zu texts with %lld continuations of up to %lld tokens are more than %lld tokens",
                             request->count, (long long)width, (long long)o->max_tokens, (long long)limits->tokens);
  else
    return true;
  return false;
}

static bool check_translation(serve_request *request, const serve_limits *limits) {
  tarn_translator_options *o = &request->translation;
  const bool draws = first_given(request, drawing_keys) || o->samples > 0;
  if (draws && o->samples == 0) o->samples = 1;
  if (draws && !refuse_useless(request, first_given(request, search_keys), "where translations are drawn"))
    return false;
  if (!draws && serve_keys_given(request, "seed") && !refuse_useless(request, "seed", "without \"samples\""))
    return false;
  const int64_t most = draws ? o->samples : request->beam;
  if (o->force_columns && (draws || request->beam < 2 || o->decoding.groups > 1))
    serve_request_refuse_key(request, 400, "force_words",
                             "\"force_words\" need a search with a beam of 2 or more, without groups");
  else if (request->n_best > most)
    serve_request_refuse_key(request, 400, "n_best", "\"n_best\" may be at most the \"%s\" of %lld",
                             draws             ? "samples"
                             : limits->refines ? "length_beam"
                                               : "beam",
                             (long long)most);
  else if (draws && (int64_t)request->count > limits->texts / o->samples)
    serve_request_refuse_key(request, 413, "samples", "%zu texts with %lld samples are more than %lld texts",
                             request->count, (long long)o->samples, (long long)limits->texts);
  else
    return true;
  return false;
}

// --- whole requests --------------------------------------------------------------------------------------------------

static bool read_options(serve_request *request, const serve_limits *limits, bool *streams) {
  static const char *const methods[] = {"greedy", "beam", "sample", NULL}, *const mbrs[] = {"bleu", "chrf", NULL};
  const double seeds = 9007199254740992.0;  // 2^53: the range of exact integers in JSON in most programs
  const bool translates = request->use == SERVE_TRANSLATE;
  tarn_generator_options *g = &request->generation;
  tarn_translator_options *t = &request->translation;
  tarn_decoding *d = translates ? &t->decoding : &g->decoding;
  const unsigned translate = 1u << SERVE_TRANSLATE, generate = 1u << SERVE_GENERATE, any = (1u << SERVE_USES) - 1;
  const unsigned searches = limits->refines ? 0 : translate, refines = limits->refines ? translate : 0;
  const unsigned lengths = limits->edits ? 0 : refines, edits = limits->edits ? refines : 0;
  const unsigned both = searches | generate;
  const double samples = (double)limits->samples;
  int64_t seed = 1;
  const char *const *forced;  // the array, which the request keeps
  int method = TARN_GENERATOR_METHOD_GREEDY, mbr = -1;
  serve_strings banned = {&request->banned, &d->banned, &d->banned_count},
                stop = {&request->stop, &g->stop, &g->stop_count},
                force = {&request->force_words, &forced, &request->force_count};
  const serve_key keys[] = {
      {"text", SERVE_KEY_OWN, any, NULL, 0, 0, NULL},
      {"pair", SERVE_KEY_OWN, 1u << SERVE_LABEL, NULL, 0, 0, NULL},
      {"target", SERVE_KEY_OWN, 1u << SERVE_ATTEND, NULL, 0, 0, NULL},
      {"prefix", SERVE_KEY_OWN, searches, NULL, 0, 0, NULL},
      {"force_words", SERVE_KEY_STRINGS, searches, &force, 0, SERVE_KEY_STOP_BYTES, NULL},
      {"coverage_penalty", SERVE_KEY_REAL, searches, &t->coverage_penalty, -100, 100, NULL},
      {"alignment", SERVE_KEY_FLAG, searches, &t->alignment, 0, 0, NULL},
      {"tokens", SERVE_KEY_FLAG, both | translate | 1u << SERVE_SCORE, &request->tokens, 0, 0, NULL},
      {"n_best", SERVE_KEY_WHOLE, translate, &request->n_best, 1, fmax(samples, (double)limits->beam), NULL},
      {"beam", SERVE_KEY_WHOLE, searches, &request->beam, 1, (double)limits->beam, NULL},
      {"length_beam", SERVE_KEY_WHOLE, lengths, &request->beam, 1, (double)limits->beam, NULL},
      {"iterations", SERVE_KEY_WHOLE, refines, &t->iterations, 1, (double)limits->iterations, NULL},
      {"placeholder_penalty", SERVE_KEY_REAL, edits, &t->placeholder_penalty, 0, 100, NULL},
      {"length_penalty", SERVE_KEY_REAL, searches, &t->length_penalty, -10, 10, NULL},
      {"samples", SERVE_KEY_WHOLE, searches, &t->samples, 1, samples, NULL},
      {"stream", SERVE_KEY_FLAG, both, streams, 0, 0, NULL},
      {"method", SERVE_KEY_WORD, generate, &method, 0, 0, methods},
      {"max_tokens", SERVE_KEY_WHOLE, generate, &g->max_tokens, 1, (double)limits->tokens, NULL},
      {"min_tokens", SERVE_KEY_WHOLE, generate, &g->min_tokens, 0, (double)limits->tokens, NULL},
      {"number", SERVE_KEY_WHOLE, generate, &g->number, 1, samples, NULL},
      {"beam", SERVE_KEY_WHOLE, generate, &g->beam, 1, samples, NULL},
      {"length_penalty", SERVE_KEY_REAL, generate, &g->length_penalty, -10, 10, NULL},
      {"temperature", SERVE_KEY_REAL, both, translates ? &t->temperature : &g->temperature, 1e-3, 1e3, NULL},
      {"top_k", SERVE_KEY_WHOLE, both, translates ? &t->top_k : &g->top_k, 0, 1e9, NULL},
      {"top_p", SERVE_KEY_REAL, both, translates ? &t->top_p : &g->top_p, 1e-6, 1, NULL},
      {"min_p", SERVE_KEY_REAL, both, &d->min_p, 0, 0.999999, NULL},
      {"typical_p", SERVE_KEY_REAL, both, &d->typical_p, 1e-6, 1, NULL},
      {"seed", SERVE_KEY_WHOLE, both, &seed, 0, seeds, NULL},
      {"mbr", SERVE_KEY_WORD, both, &mbr, 0, 0, mbrs},
      {"repetition_penalty", SERVE_KEY_REAL, both, &d->repetition_penalty, 1e-3, 100, NULL},
      {"presence_penalty", SERVE_KEY_REAL, both, &d->presence_penalty, -100, 100, NULL},
      {"frequency_penalty", SERVE_KEY_REAL, both, &d->frequency_penalty, -100, 100, NULL},
      {"no_repeat_ngram", SERVE_KEY_WHOLE, both, &d->no_repeat_ngram, 0, 1000, NULL},
      {"banned", SERVE_KEY_STRINGS, both, &banned, 0, 0, NULL},
      {"groups", SERVE_KEY_WHOLE, both, &d->groups, 1, fmax(samples, (double)limits->beam), NULL},
      {"diversity_penalty", SERVE_KEY_REAL, both, &d->diversity_penalty, 0, 1000, NULL},
      {"stop", SERVE_KEY_STRINGS, generate, &stop, 0, SERVE_KEY_STOP_BYTES, NULL},
      {"model", SERVE_KEY_OWN, any, NULL, 0, 0, NULL},
  };
  char path[32];
  snprintf(path, sizeof path, "/%s", serve_use_word(request->use, request->verb));
  if (!serve_keys_read(request, path, keys, sizeof keys / sizeof *keys, false, limits->text_bytes)) return false;
  t->seed = g->seed = (uint64_t)seed;
  g->method = (tarn_generator_method)method;
  if (mbr >= 0) d->mbr = (tarn_mbr)(mbr + 1);
  return true;
}

static bool read_object(serve_request *request, const serve_limits *limits) {
  if (!json_is_object(request->body)) {
    serve_request_refuse(request, 400, "the body must be a JSON object");
    return false;
  }
  // First: a misspelt key is more informative than a missing one.
  bool streams = false;
  if (!read_options(request, limits, &streams)) return false;
  if (!json_object_get(request->body, "text")) {
    serve_request_refuse_key(request, 400, "text", "\"text\" is missing");
    return false;
  }
  if (!serve_request_texts(request, "text", limits) || !read_beside(request, limits)) return false;
  if (request->use == SERVE_TRANSLATE && !check_translation(request, limits)) return false;
  if (request->use == SERVE_GENERATE && !(settle_method(request) && serve_request_check_generation(request, limits)))
    return false;
  if (streams && request->use == SERVE_GENERATE && !serve_request_draws(request)) {
    serve_request_refuse_key(request, 400, "stream",
                             "\"stream\" excludes the method \"beam\": nothing is certain before "
                             "its end");
    return false;
  }
  request->streams = streams;  // last: one that is refused has no stream
  return true;
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

bool serve_offer_fits(const serve_offer *offer, serve_use use, const tarn_verb *verb) {
  return offer->uses[use] && (!verb || verb == offer->verb);
}

// The model that the request names.
static bool choose_model(serve_request *request, const serve_offers *offers) {
  const json_t *model = json_object_get(request->body, "model");
  request->offer = &offers->items[0];
  if (!model || json_is_null(model)) {
    // Without a name the first one that can do it.
    for (size_t i = offers->count; i-- > 0;)
      if (serve_offer_fits(&offers->items[i], request->use, request->verb)) request->offer = &offers->items[i];
    return true;
  }
  if (!json_is_string(model)) {
    serve_request_refuse_key(request, 400, "model", "\"model\" must be a string");
    return false;
  }
  for (size_t i = 0; i < offers->count; i++) {
    if (strcmp(json_string_value(model), offers->items[i].id) != 0) continue;
    request->offer = &offers->items[i];
    if (serve_offer_fits(request->offer, request->use, request->verb)) return true;
    serve_request_refuse_key(request, 404, "model", "the model \"%.200s\" cannot do this", request->offer->id);
    return false;
  }
  serve_request_refuse_key(request, 404, "model",
                           "there is no model \"%.200s\"; /v1/models names those that are served",
                           json_string_value(model));
  return false;
}

static void set_defaults(serve_request *request, const serve_limits *limits) {
  request->n_best = 1;
  request->beam = limits->beam;
  tarn_translator_default(&request->translation);
  if (limits->refines)
    request->translation.iterations = limits->iterations;
  else
    request->translation.length_penalty = limits->length_penalty;
  tarn_generator_default(&request->generation);
  if (request->generation.max_tokens > limits->tokens) request->generation.max_tokens = limits->tokens;
}

bool serve_request_read(serve_request *request, const char *bytes, size_t size, const serve_offers *offers) {
  json_error_t error;
  const int64_t texts = offers->items[0].limits.texts;                           // the same for all models
  const int64_t most = 2 * texts + 4 * SERVE_KEYS + 2 * SERVE_KEY_STRINGS_MOST;  // a pair is two texts
  if (has_too_many_values(bytes, size, most)) {
    serve_request_refuse(request, 413, "the body has more than %lld values; a request may have at most %lld texts",
                         (long long)most, (long long)texts);
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
  if (!choose_model(request, offers)) return false;
  const serve_limits *limits = &request->offer->limits;
  set_defaults(request, limits);
  return request->form == SERVE_FORM_OPENAI ? serve_openai_read(request, limits) : read_object(request, limits);
}
