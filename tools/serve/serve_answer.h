// Results as JSON, in the format of a server's answers.
#ifndef TARN_TOOLS_SERVE_ANSWER_H
#define TARN_TOOLS_SERVE_ANSWER_H

#include <jansson.h>

#include "serve/serve_request.h"
#include "tarn/classify.h"
#include "tarn/lm.h"
#include "tarn/translate.h"

// Each creates the answer of a request whose first text has results[0], and counts its tokens; NULL without memory.
// `results` of translation are those of the whole batch; the request's begin at `from`.
json_t *serve_answer_translations(serve_request *request, const tarn_translator *translator,
                                  const tarn_translate_result *results, size_t from);
// Of the text on this line of the last call of the translator, without counting.
json_t *serve_answer_translation(const serve_request *request, const tarn_translator *translator,
                                 const tarn_translate_result *result, size_t line);
// {"text", "probability"}: a token.
json_t *serve_answer_piece(const char *text, double log_probability);
json_t *serve_answer_scores(serve_request *request, const tarn_lm *lm, const tarn_lm_line *results);
// Of one text, without counting; and of all of request->prompts, as this array.
json_t *serve_answer_prompt(const serve_request *request, const tarn_generator *generator,
                            const tarn_generator_result *result);
json_t *serve_answer_prompts(const serve_request *request, const char *name);
// Takes ownership of the labels.
json_t *serve_answer_labels(serve_request *request, json_t **labels);
// For a single text.
json_t *serve_answer_label(const tarn_classifier *classifier, const tarn_classify_result *result);
// Appends a word to the answer of its text, which the first word creates; takes ownership of it, NULL if memory ran
// out.
json_t *serve_answer_word(json_t *answer, const tarn_classifier *classifier, const tarn_classify_result *result);

#endif
