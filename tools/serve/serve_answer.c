#include "serve/serve_answer.h"

#include <math.h>

#include "alignment_output.h"
#include "json_output.h"

// Puts a member into an object, or appends an element to an array, and returns whether both were allocated: jansson
// treats a NULL value as a failure.
static bool put(json_t *object, const char *name, json_t *value) {
  return json_object_set_new(object, name, value) == 0;
}
static bool add(json_t *array, json_t *value) { return json_array_append_new(array, value) == 0; }

// {name: array}; takes ownership of the array.
static json_t *wrap(const char *name, json_t *array, bool good) {
  json_t *object = good ? json_object() : NULL;
  if (!object || !put(object, name, array)) {
    if (!object) json_decref(array);
    json_decref(object);
    return NULL;
  }
  return object;
}

// A complete object, or NULL.
static json_t *whole(json_t *object, bool good) {
  if (good) return object;
  json_decref(object);
  return NULL;
}

static json_t *whole_number(int64_t value) { return json_integer((json_int_t)value); }

json_t *serve_answer_piece(const char *text, double log_probability) {
  json_t *object = json_object();
  const bool good = object && put(object, "text", json_output_text(text)) &&
                    put(object, "probability", json_output_real(exp(log_probability)));
  return whole(object, good);
}

static json_t *translation_pieces(const tarn_translator *translator, size_t line, int64_t place) {
  const int32_t *ids;
  const float *log_probabilities;
  const int64_t count = tarn_translator_tokens(translator, &ids, &log_probabilities, line, place);
  json_t *pieces = json_array();
  bool good = pieces != NULL;
  for (int64_t i = 0; good && i < count; i++)
    good = add(pieces, serve_answer_piece(tarn_translator_piece(translator, ids[i]), (double)log_probabilities[i]));
  return whole(pieces, good);
}

static json_t *hypothesis(const tarn_translate_hypothesis *h) {
  json_t *object = json_object();
  const bool good = object && put(object, "text", json_stringn(h->text, h->length)) &&
                    put(object, "score", json_output_real(h->score)) &&
                    put(object, "log_probability", json_output_real(h->log_probability)) &&
                    put(object, "tokens", whole_number(h->tokens));
  return whole(object, good);
}

json_t *serve_answer_translation(const serve_request *request, const tarn_translator *translator,
                                 const tarn_translate_result *result, size_t line) {
  json_t *object = json_object(), *hypotheses = json_array();
  bool good = object && hypotheses;
  for (int64_t i = 0; good && i < result->count && i < request->n_best; i++) {
    json_t *one = hypothesis(&result->hypotheses[i]);
    good = add(hypotheses, one);
    if (good && request->tokens) good = put(one, "pieces", translation_pieces(translator, line, i));
    if (good && request->translation.alignment)
      good = put(one, "alignment", alignment_json(result, &result->hypotheses[i]));
  }
  if (good && request->translation.alignment) good = put(object, "source_pieces", alignment_source(translator, line));
  good = good && put(object, "source_tokens", whole_number(result->source_tokens)) &&
         put(object, "truncated", json_boolean(result->truncated)) &&
         put(object, "hypotheses", json_incref(hypotheses));
  json_decref(hypotheses);
  return whole(object, good);
}

json_t *serve_answer_translations(serve_request *request, const tarn_translator *translator,
                                  const tarn_translate_result *results, size_t from) {
  json_t *array = json_array();
  bool good = array != NULL;
  for (size_t i = from; good && i < from + request->count; i++) {
    good = add(array, serve_answer_translation(request, translator, &results[i], i));
    request->source_tokens += results[i].source_tokens;
    request->target_tokens += results[i].hypotheses[0].tokens;
  }
  return wrap("translations", array, good);
}

static json_t *score_pieces(const tarn_lm *lm, const tarn_lm_line *line) {
  json_t *pieces = json_array();
  bool good = pieces != NULL;
  for (int64_t i = 0; good && i < line->tokens; i++)
    good = add(pieces, serve_answer_piece(tarn_lm_piece(lm, line->ids[i]), line->log_probabilities[i]));
  return whole(pieces, good);
}

static json_t *score(const serve_request *request, const tarn_lm *lm, const tarn_lm_line *line) {
  tarn_lm_total total = {0};
  tarn_lm_total_add(&total, line);
  json_t *object = json_object();
  bool good = object && put(object, "log_probability", json_output_real(line->log_probability)) &&
              put(object, "tokens", whole_number(line->tokens)) &&
              put(object, "perplexity", json_output_real(tarn_lm_perplexity(&total))) &&
              put(object, "characters", whole_number(line->characters)) &&
              put(object, "unknown", whole_number(line->unknown)) &&
              put(object, "truncated", json_boolean(line->truncated));
  if (good && request->tokens) good = put(object, "pieces", score_pieces(lm, line));
  return whole(object, good);
}

json_t *serve_answer_scores(serve_request *request, const tarn_lm *lm, const tarn_lm_line *results) {
  json_t *array = json_array();
  bool good = array != NULL;
  for (size_t i = 0; good && i < request->count; i++) {
    good = add(array, score(request, lm, &results[i]));
    request->source_tokens += results[i].tokens;
  }
  return wrap("scores", array, good);
}

static json_t *text_pieces(const tarn_generator *generator, const tarn_generator_text *text) {
  json_t *pieces = json_array();
  bool good = pieces != NULL;
  for (int64_t i = 0; good && i < text->tokens; i++)
    good = add(pieces,
               serve_answer_piece(tarn_generator_piece(generator, text->ids[i]), (double)text->log_probabilities[i]));
  return whole(pieces, good);
}

static json_t *generated(const serve_request *request, const tarn_generator *generator,
                         const tarn_generator_text *text) {
  json_t *object = json_object();
  bool good = object && put(object, "text", json_stringn(text->text, text->length)) &&
              put(object, "continuation", json_stringn(text->continuation, text->continuation_length)) &&
              put(object, "tokens", whole_number(text->tokens)) &&
              put(object, "log_probability", json_output_real(text->log_probability)) &&
              put(object, "score", json_output_real(text->score)) &&
              put(object, "end", json_string(tarn_generator_end_word(text->end)));
  if (good && request->tokens) good = put(object, "pieces", text_pieces(generator, text));
  return whole(object, good);
}

json_t *serve_answer_prompt(const serve_request *request, const tarn_generator *generator,
                            const tarn_generator_result *result) {
  json_t *object = json_object(), *texts = json_array();
  bool good = object && texts;
  for (int64_t i = 0; good && i < result->count; i++) {
    good = add(texts, generated(request, generator, &result->texts[i]));
  }
  good = good && put(object, "prompt_tokens", whole_number(result->prompt_tokens)) &&
         put(object, "unknown", whole_number(result->unknown)) && put(object, "texts", json_incref(texts));
  json_decref(texts);
  return whole(object, good);
}

json_t *serve_answer_prompts(const serve_request *request, const char *name) {
  json_t *array = json_array();
  bool good = array != NULL;
  for (size_t i = 0; good && i < request->count; i++) good = add(array, json_incref(request->prompts[i].answer));
  return wrap(name, array, good);
}

json_t *serve_answer_label(const tarn_classifier *classifier, const tarn_classify_result *result) {
  json_t *object = json_object(), *probabilities = json_object();
  bool good = object && probabilities && put(object, "truncated", json_boolean(result->truncated));
  if (good && !result->probabilities) good = put(object, "number", json_output_real(result->number));
  const int32_t classes = result->probabilities ? tarn_classifier_classes(classifier) : 0;
  for (int32_t k = 0; good && k < classes; k++)
    good = put(probabilities, tarn_classifier_label(classifier, result->order[k]),
               json_output_real(result->probabilities[result->order[k]]));
  if (good && classes > 0)
    good = put(object, "label", json_output_text(tarn_classifier_label(classifier, result->order[0]))) &&
           put(object, "probabilities", json_incref(probabilities));
  json_decref(probabilities);
  return whole(object, good);
}

json_t *serve_answer_word(json_t *answer, const tarn_classifier *classifier, const tarn_classify_result *result) {
  if (result->word == 0) answer = json_pack("{s:b, s:[]}", "truncated", (int)result->truncated, "words");
  if (!answer) return NULL;
  json_t *word = json_object();
  bool good = word && put(word, "word", json_stringn(result->text, result->length));
  if (good && result->probabilities)
    good = put(word, "label", json_output_text(tarn_classifier_label(classifier, result->order[0]))) &&
           put(word, "probability", json_output_real(result->probabilities[result->order[0]]));
  if (!good) {
    json_decref(word);
    word = NULL;
  }
  if (word && json_array_append_new(json_object_get(answer, "words"), word) == 0) return answer;
  json_decref(answer);
  return NULL;
}

json_t *serve_answer_labels(serve_request *request, json_t **labels) {
  json_t *array = json_array();
  bool good = array != NULL;
  for (size_t i = 0; i < request->count; i++) {
    if (good)
      good = add(array, labels[i]);
    else
      json_decref(labels[i]);
  }
  return wrap("labels", array, good);
}
