#include "alignment_output.h"

#include "json_output.h"

int64_t alignment_most(const tarn_translate_result *result, const tarn_translate_hypothesis *hypothesis,
                       int64_t token) {
  const float *row = hypothesis->attention + token * result->source_tokens;
  int64_t most = 0;
  for (int64_t x = 1; x < result->source_tokens; x++)
    if (row[x] > row[most]) most = x;
  return most;
}

// A complete array, or NULL.
static json_t *whole(json_t *array, int failed) {
  if (!failed) return array;
  json_decref(array);
  return NULL;
}

json_t *alignment_json(const tarn_translate_result *result, const tarn_translate_hypothesis *hypothesis) {
  json_t *array = json_array();
  int failed = 0;
  for (int64_t i = 0; i < hypothesis->tokens; i++)
    failed |= json_array_append_new(array, json_integer((json_int_t)alignment_most(result, hypothesis, i)));
  return whole(array, failed);
}

json_t *alignment_weights(const tarn_translate_result *result, const tarn_translate_hypothesis *hypothesis) {
  json_t *rows = json_array();
  int failed = 0;
  for (int64_t i = 0; i < hypothesis->tokens && !failed; i++) {
    json_t *row = json_array();
    failed |= json_array_append_new(rows, row);
    for (int64_t x = 0; x < result->source_tokens && !failed; x++)
      failed |= json_array_append_new(row, json_real((double)hypothesis->attention[i * result->source_tokens + x]));
  }
  return whole(rows, failed);
}

json_t *alignment_source(const tarn_translator *translator, size_t line) {
  const int32_t *ids;
  const int64_t count = tarn_translator_source(translator, &ids, line);
  json_t *pieces = json_array();
  int failed = 0;
  for (int64_t i = 0; i < count; i++)
    failed |= json_array_append_new(pieces, json_output_text(tarn_translator_source_piece(translator, ids[i])));
  return whole(pieces, failed);
}
