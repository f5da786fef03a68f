#include "serve/serve_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/serve_answer.h"
#include "serve/serve_attention.h"
#include "serve/serve_events.h"
#include "serve/serve_joined.h"
#include "tarn/checkpoint.h"
#include "tarn/config.h"

double serve_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// --- opening ---------------------------------------------------------------------------------------------------------

// "model2/checkpoint_best.safetensors"
static void take_name(serve_models *m) {
  const char *path = m->found.path, *at = path + strlen(path);
  for (int parts = 0; at > path && parts < 2; at--) parts += at[-1] == '/' && at[0] != '\0';
  if (at > path || *at == '/') at++;
  snprintf(m->offer->name, sizeof m->offer->name, "%s", *at == '/' ? at + 1 : at);
}

static void take_uses(serve_models *m, const tarn_config *config) {
  serve_offer *offer = m->offer;
  const tarn_verb *verb;
  for (int i = 0; (verb = tarn_verb_at(i)) != NULL; i++)
    if (!verb->images && tarn_config_has_use(config, verb->word)) offer->verb = verb;
  for (int use = 0; use < SERVE_USES; use++)
    offer->uses[use] =
        use == SERVE_LABEL ? offer->verb != NULL : tarn_config_has_use(config, serve_use_word((serve_use)use, NULL));
}

static tarn_status take_limits(serve_models *m, const tarn_config *config) {
  serve_limits *limits = &m->offer->limits;
  double beam = 1, other = 0;
  m->refines = limits->refines = tarn_config_has_use(config, "refine");
  m->edits = limits->edits = tarn_config_has_use(config, "edit");
  tarn_status status = TARN_STATUS_OK;
  if (!m->edits) status = tarn_config_number(config, m->refines ? "translate.length_beam" : "translate.beam", &beam);
  if (status == TARN_STATUS_OK)
    status = tarn_config_number(config, m->refines ? "translate.iterations" : "translate.length_penalty", &other);
  limits->iterations = m->refines ? (int64_t)other : 0;
  limits->length_penalty = m->refines ? 1.0 : other;
  limits->beam = m->options.beam > 0 ? m->options.beam : (int64_t)beam;
  if (limits->beam < 1) limits->beam = 1;
  return status;
}

tarn_status serve_models_look(serve_models *m) {
  tarn_checkpoint_info *info = NULL;
  tarn_config *config = NULL;
  tarn_status status = tarn_checkpoint_find(&m->found, m->options.given, m->options.choice);
  if (status == TARN_STATUS_OK) status = tarn_checkpoint_info_open(&info, m->found.path);
  if (status == TARN_STATUS_OK)
    status = tarn_config_parse(&config, m->found.path, info->config, strlen(info->config), NULL, 0);
  if (status == TARN_STATUS_OK) status = take_limits(m, config);
  if (status == TARN_STATUS_OK) {
    take_uses(m, config);
    take_name(m);
    tarn_translate_precision precision = m->options.precision;
    if (precision == TARN_TRANSLATE_PRECISION_AUTO)
      precision = strcmp(info->precision, "int4") == 0   ? TARN_TRANSLATE_PRECISION_INT4
                  : strcmp(info->precision, "int8") == 0 ? TARN_TRANSLATE_PRECISION_INT8
                                                         : TARN_TRANSLATE_PRECISION_FP32;
    m->offer->precision = tarn_translate_precision_name(precision);
  }
  tarn_config_close(&config);
  tarn_checkpoint_info_close(&info);
  return status;
}

// What a model has of beams.
static void set_beam(const serve_models *m, tarn_translator_options *options, int64_t beam) {
  options->n_best = beam;
  if (!m->edits) *(m->refines ? &options->length_beam : &options->beam) = beam;
}

// A request may ask for all hypotheses of the beam.
static tarn_status open_translator(serve_models *m) {
  const serve_models_options *o = &m->options;
  tarn_translator_options options;
  tarn_translator_default(&options);
  set_beam(m, &options, m->offer->limits.beam);
  if (m->refines) options.beam = o->beam;  // refused, as such a model has none
  options.precision = o->precision;
  options.overlong = o->overlong;
  options.threads = o->threads;
  return tarn_translator_open(&m->translator, m->found.path, &options);
}

static tarn_status open_lm(serve_models *m) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.precision = m->options.precision;
  options.overlong = m->options.overlong;
  options.threads = m->options.threads;
  return tarn_lm_open(&m->lm, m->found.path, &options);
}

static tarn_status open_generator(serve_models *m) {
  tarn_generator_options options;
  tarn_generator_default(&options);
  options.precision = m->options.precision;
  options.threads = m->options.threads;
  return tarn_generator_open(&m->generator, m->found.path, &options);
}

static tarn_status open_classifier(serve_models *m) {
  tarn_classify_options options;
  tarn_classify_default(&options);
  options.precision = m->options.precision;
  options.overlong = m->options.overlong;
  options.threads = m->options.threads;
  return tarn_classifier_open(&m->classifier, m->found.path, &options);
}

tarn_status serve_models_open(serve_models *m) {
  const bool *uses = m->offer->uses;
  tarn_status status = TARN_STATUS_OK;
  if (uses[SERVE_TRANSLATE]) status = open_translator(m);
  if (status == TARN_STATUS_OK && uses[SERVE_SCORE]) status = open_lm(m);
  if (status == TARN_STATUS_OK && uses[SERVE_GENERATE]) status = open_generator(m);
  if (status == TARN_STATUS_OK && uses[SERVE_LABEL]) status = open_classifier(m);
  m->loaded = status == TARN_STATUS_OK;
  if (!m->loaded) serve_models_close(m);
  return status;
}

void serve_models_close(serve_models *m) {
  tarn_states_close(&m->states);
  tarn_translator_close(&m->translator);
  tarn_lm_close(&m->lm);
  tarn_generator_close(&m->generator);
  tarn_classifier_close(&m->classifier);
  free(m->texts);
  free(m->lengths);
  free(m->results);
  m->texts = NULL;
  m->lengths = NULL;
  m->results = NULL;
  m->texts_room = m->results_bytes = 0;
  m->loaded = false;
}

// --- batches ---------------------------------------------------------------------------------------------------------

// Allocates space for `count` texts, and results of `size` bytes each.
static bool make_room(serve_models *m, size_t count, size_t size) {
  if (count > m->texts_room) {
    const char **texts = realloc(m->texts, 2 * count * sizeof *texts);
    if (texts) m->texts = texts;
    size_t *lengths = realloc(m->lengths, 2 * count * sizeof *lengths);
    if (lengths) m->lengths = lengths;
    if (!texts || !lengths) return false;
    m->texts_room = 2 * count;
  }
  if (count * size > m->results_bytes) {
    void *results = realloc(m->results, 2 * count * size);
    if (!results) return false;
    m->results = results;
    m->results_bytes = 2 * count * size;
  }
  memset(m->results, 0, count * size);
  return true;
}

typedef struct classifying {
  serve_models *models;
  json_t **answers;
} classifying;

static tarn_status note_label(void *user, int64_t number, const tarn_classify_result *result) {
  classifying *c = user;
  json_t **answer = &c->answers[number - 1];
  if (result->words > 0)
    *answer = serve_answer_word(*answer, c->models->classifier, result);
  else
    *answer = serve_answer_label(c->models->classifier, result);
  return TARN_STATUS_OK;
}

tarn_translator_options serve_models_translation(const serve_models *m, const serve_request *request) {
  const tarn_translator_options *wanted = &request->translation;
  tarn_translator_options options = *tarn_translator_settings(m->translator);
  set_beam(m, &options, request->beam);
  options.iterations = wanted->iterations;
  options.length_penalty = wanted->length_penalty;
  options.placeholder_penalty = wanted->placeholder_penalty;
  options.decoding = wanted->decoding;
  options.prefixes = wanted->prefixes;
  options.force_columns = wanted->force_columns;
  options.coverage_penalty = wanted->coverage_penalty;
  options.alignment = wanted->alignment;
  options.samples = wanted->samples;
  options.temperature = wanted->temperature;
  options.top_k = wanted->top_k;
  options.top_p = wanted->top_p;
  options.seed = wanted->seed;
  if (options.samples > 0) options.n_best = options.samples;  // the best ones are chosen among all
  return options;
}

// Computes the texts; the results are in m->results.
static tarn_status compute(serve_models *m, const serve_request *first, size_t texts) {
  classifying labels = {m, m->results};
  tarn_status status;
  if (first->use == SERVE_SCORE) return tarn_lm_score(m->lm, m->results, m->texts, m->lengths, texts);
  if (first->use == SERVE_TRANSLATE) {
    const tarn_translator_options options = serve_models_translation(m, first);
    status = tarn_translator_set(m->translator, &options);
    if (status != TARN_STATUS_OK) return status;
    return tarn_translator_lines(m->translator, m->results, m->texts, m->lengths, texts);
  }
  status = tarn_classifier_lines(m->classifier, m->texts, m->lengths, texts, note_label, &labels);
  for (size_t i = 0; status != TARN_STATUS_OK && i < texts; i++) json_decref(labels.answers[i]);
  return status;
}

static size_t result_size(serve_use use) {
  return use == SERVE_TRANSLATE ? sizeof(tarn_translate_result)
         : use == SERVE_SCORE   ? sizeof(tarn_lm_line)
                                : sizeof(json_t *);
}

// The answer of a request whose texts start at `from`.
static void answer(serve_models *m, serve_request *r, size_t from) {
  json_t *object = r->use == SERVE_TRANSLATE ? serve_answer_translations(r, m->translator, m->results, from)
                   : r->use == SERVE_SCORE   ? serve_answer_scores(r, m->lm, (const tarn_lm_line *)m->results + from)
                                             : serve_answer_labels(r, (json_t **)m->results + from);
  serve_request_answer(r, object);
}

// Computes the texts of some requests together. False: it failed, and none has an answer.
static bool run_together(serve_models *m, serve_request *const *requests, size_t count, tarn_status *status) {
  size_t texts = 0, at = 0;
  int64_t source = 0, target = 0;
  for (size_t i = 0; i < count; i++) texts += requests[i]->count;
  const double begin = serve_seconds();
  *status = TARN_STATUS_MEMORY;
  if (!make_room(m, texts, result_size(requests[0]->use))) return false;
  for (size_t i = 0; i < count; i++) {
    memcpy(m->texts + at, requests[i]->texts, requests[i]->count * sizeof *m->texts);
    memcpy(m->lengths + at, requests[i]->lengths, requests[i]->count * sizeof *m->lengths);
    at += requests[i]->count;
  }
  *status = compute(m, requests[0], texts);
  if (*status != TARN_STATUS_OK) return false;
  at = 0;
  for (size_t i = 0; i < count; i++) {
    answer(m, requests[i], at);
    at += requests[i]->count;
    source += requests[i]->source_tokens;
    target += requests[i]->target_tokens;
  }
  serve_metrics_batch(m->metrics, (int64_t)texts, serve_seconds() - begin, source, target);
  for (size_t i = 0; i < count; i++) m->done(requests[i]);
  return true;
}

int serve_models_code(tarn_status status) {
  const bool refused = status == TARN_STATUS_DATA || status == TARN_STATUS_USAGE;
  return refused ? 422 : status == TARN_STATUS_MEMORY ? 503 : 500;
}

void serve_models_fail(serve_request *request, tarn_status status) {
  serve_request_refuse(request, serve_models_code(status), "%s",
                       *tarn_error_message() ? tarn_error_message() : tarn_status_text(status));
}

static tarn_status attend(serve_models *m, serve_request *request) {
  tarn_states_options options;
  tarn_states_default(&options);
  options.overlong = m->options.overlong;
  const double begin = serve_seconds();
  const tarn_status status = serve_attention_answer(&m->states, m->translator, &options, request);
  if (status == TARN_STATUS_OK && request->code == 200)
    serve_metrics_batch(m->metrics, 1, serve_seconds() - begin, request->source_tokens, 0);
  return status;
}

static void run(serve_models *m, serve_request *const *requests, size_t count) {
  tarn_status status;
  if (requests[0]->use == SERVE_ATTEND) {  // never batched
    status = attend(m, requests[0]);
    if (status == TARN_STATUS_OK) {
      m->done(requests[0]);
      return;
    }
  } else if (run_together(m, requests, count, &status)) {
    return;
  }
  if (count > 1) {  // an error of one request must not affect the others
    for (size_t i = 0; i < count; i++) run(m, &requests[i], 1);
    return;
  }
  serve_models_fail(requests[0], status);
  m->done(requests[0]);
}

bool serve_models_late(const serve_models *m, const serve_request *request, double now) {
  return now > request->deadline + (request->arrived < m->pause->until ? m->pause->seconds : 0.0);
}

void serve_models_run(serve_models *m, serve_request *const *requests, size_t count) {
  serve_request *alive[SERVE_MODELS_BATCH];
  size_t living = 0;
  const double now = serve_seconds();
  if (serve_request_joins(requests[0])) {
    serve_joined_run(m, requests, count);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    if (!serve_models_late(m, requests[i], now)) {
      serve_metrics_waited(m->metrics, now - requests[i]->arrived);
      alive[living++] = requests[i];
    } else {
      serve_request_refuse(requests[i], 503, "the request waited too long for its turn");
      m->done(requests[i]);
    }
  }
  if (living > 0) run(m, alive, living);
}
