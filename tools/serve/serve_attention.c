#include "serve/serve_attention.h"

#include <stdlib.h>
#include <string.h>

#include "json_output.h"

enum { MOST_WEIGHTS = 1 << 16 };  // per picture

// Opens the states of the model, and selects the last cross-attention of the decoder.
static tarn_status open_states(tarn_states **states, tarn_translator *translator, const tarn_states_options *options) {
  size_t count;
  tarn_status status = tarn_states_open_translator(states, translator, options);
  if (status != TARN_STATUS_OK) return status;
  const tarn_states_array *offered = tarn_states_offered(*states, &count);
  const char *name = "decoder.1.cross_attention";
  for (size_t i = 0; i < count; i++)
    if (offered[i].form == TARN_STATES_FORM_ATTENTION && strstr(offered[i].name, ".cross_attention"))
      name = offered[i].name;
  status = tarn_states_select(*states, &name, 1);
  if (status != TARN_STATUS_OK) tarn_states_close(states);
  return status;
}

// The tokens of a side. Of a target the predicted ones: each row of the model predicts the token after its own, and the
// last row the end of sentence, which is also the first input.
static json_t *pieces(const tarn_states *states, tarn_states_side side) {
  const int32_t *ids = tarn_states_ids(states, side);
  const int64_t count = tarn_states_offsets(states, side)[1];
  const bool shifted = side == TARN_STATES_SIDE_TARGET;
  json_t *array = json_array();
  bool good = array != NULL;
  for (int64_t i = 0; good && i < count; i++) {
    const int32_t id = ids[shifted ? (i + 1) % count : i];
    good = json_array_append_new(array, json_output_text(tarn_states_piece(states, side, id))) == 0;
  }
  if (good) return array;
  json_decref(array);
  return NULL;
}

// Rows of the mean over heads: weights [heads, targets, sources].
static json_t *mean(const float *weights, int64_t heads, int64_t targets, int64_t sources) {
  json_t *rows = json_array();
  bool good = rows != NULL;
  for (int64_t t = 0; good && t < targets; t++) {
    json_t *row = json_array();
    good = json_array_append_new(rows, row) == 0;
    for (int64_t s = 0; good && s < sources; s++) {
      double sum = 0.0;
      for (int64_t h = 0; h < heads; h++) sum += (double)weights[(h * targets + t) * sources + s];
      good = json_array_append_new(row, json_real(sum / (double)heads)) == 0;
    }
  }
  if (good) return rows;
  json_decref(rows);
  return NULL;
}

static void answer(const tarn_states *states, serve_request *request, const float *weights, int64_t heads) {
  const int64_t sources = tarn_states_offsets(states, TARN_STATES_SIDE_SOURCE)[1];
  const int64_t targets = tarn_states_offsets(states, TARN_STATES_SIDE_TARGET)[1];
  tarn_states_summary summary;
  tarn_states_get_summary(states, &summary);
  json_t *object = json_object();
  const bool good = object && json_object_set_new(object, "truncated", json_boolean(summary.truncated > 0)) == 0 &&
                    json_object_set_new(object, "source", pieces(states, TARN_STATES_SIDE_SOURCE)) == 0 &&
                    json_object_set_new(object, "target", pieces(states, TARN_STATES_SIDE_TARGET)) == 0 &&
                    json_object_set_new(object, "weights", mean(weights, heads, targets, sources)) == 0;
  if (!good) json_decref(object);
  request->source_tokens = sources;
  serve_request_answer(request, good ? object : NULL);
}

tarn_status serve_attention_answer(tarn_states **states, tarn_translator *translator,
                                   const tarn_states_options *options, serve_request *request) {
  size_t selected;
  tarn_status status = *states ? TARN_STATUS_OK : open_states(states, translator, options);
  if (status == TARN_STATUS_OK)
    status =
        tarn_states_encode(*states, request->texts, request->lengths, &request->target, &request->target_length, 1);
  if (status != TARN_STATUS_OK) return status;
  const int64_t heads = tarn_states_selected(*states, &selected)->width;
  const int64_t count = tarn_states_place(*states, 0, 1);
  if (count < 0 || heads < 1 || count / heads > MOST_WEIGHTS) {
    serve_request_refuse(request, 413, "a picture of attention may have at most %d weights", MOST_WEIGHTS);
    return TARN_STATUS_OK;
  }
  float *weights = malloc(((size_t)count + 1) * sizeof *weights);
  if (!weights) return TARN_STATUS_MEMORY;
  status = tarn_states_compute(*states, (void *const[]){weights});
  if (status == TARN_STATUS_OK) answer(*states, request, weights, heads);
  free(weights);
  return status;
}
