// What the tokens of translations attend to, as commands and the server give it.
#ifndef TARN_TOOLS_ALIGNMENT_OUTPUT_H
#define TARN_TOOLS_ALIGNMENT_OUTPUT_H

#include <jansson.h>

#include "tarn/translate.h"

// The source token to which token `token` of a hypothesis attends most, the first of equal ones.
int64_t alignment_most(const tarn_translate_result *result, const tarn_translate_hypothesis *hypothesis, int64_t token);

// That of each token; and the weights of each, as rows. NULL without memory.
json_t *alignment_json(const tarn_translate_result *result, const tarn_translate_hypothesis *hypothesis);
json_t *alignment_weights(const tarn_translate_result *result, const tarn_translate_hypothesis *hypothesis);

// The texts of the source tokens of a line of the last call. NULL without memory.
json_t *alignment_source(const tarn_translator *translator, size_t line);

#endif
