// Drawing the next token where the log-probabilities are.
#include "ops/sample.h"

#include <string.h>

static tarn_status check(const tarn__node *node) {
  const tarn__tensor *draws = node->in[TARN__SAMPLE_DRAWS];
  const int64_t rows = node->in[TARN__SAMPLE_VALUES]->rows;
  for (int64_t i = 0; i < draws->cols; i += TARN__DRAW_WORDS) {
    const tarn__sampling how = tarn__draw_how(draws->host + i);
    TARN_REQUIRE(draws->host[i + TARN__DRAW_ROW] >= 0 && draws->host[i + TARN__DRAW_ROW] < rows, INTERNAL,
                 "sample: draw %lld is of row %d of %lld", (long long)(i / TARN__DRAW_WORDS),
                 (int)draws->host[i + TARN__DRAW_ROW], (long long)rows);
    TARN_REQUIRE(!node->in[TARN__SAMPLE_IDS] || !tarn__sampling_typical(&how), INTERNAL,
                 "sample: draw %lld is typical, and not of all words", (long long)(i / TARN__DRAW_WORDS));
  }
  return TARN_STATUS_OK;
}

static const tarn__op op_sample = {.id = TARN__OP_SAMPLE, .name = "sample", .check = check};

tarn__top tarn__sample_rows(tarn__graph *graph, tarn__top from, tarn__tensor *draws, const tarn__sample_spec *spec) {
  const tarn__tensor *values = from.values, *ids = from.ids;
  if (draws->dtype != TARN__I32 || draws->cols % TARN__DRAW_WORDS != 0 || spec->banned_count > TARN__SAMPLE_BANNED ||
      (ids && (ids->rows != values->rows || ids->cols + 1 != values->cols)) ||
      (!ids && (spec->eos < 0 || spec->eos >= values->cols)))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "sample: %s [%lld, %lld] do not fit their ids or draws", values->name,
                     (long long)values->rows, (long long)values->cols);
  tarn__node *node = tarn__graph_node(graph, &op_sample, sizeof(tarn__sample_attr));
  *(tarn__sample_attr *)node->attr = *spec;
  node->in[TARN__SAMPLE_VALUES] = from.values;
  node->in[TARN__SAMPLE_IDS] = from.ids;
  node->in[TARN__SAMPLE_DRAWS] = draws;
  const int64_t count = draws->cols / TARN__DRAW_WORDS;
  const tarn__top drawn = {tarn__graph_tensor(graph, TARN__F32, count, 2, "drawn_log_probabilities"),
                           tarn__graph_tensor(graph, TARN__I32, count, 1, "drawn_ids")};
  node->out[0] = drawn.values;
  node->out[1] = drawn.ids;
  tarn__graph_emit(graph, node);
  return drawn;
}

void tarn__sample_draw(const tarn__node *node, int64_t draw, const float *row, tarn__candidate *room, int32_t *id,
                       float *values) {
  const tarn__sample_attr *attr = node->attr;
  const int32_t *words = (const int32_t *)node->in[TARN__SAMPLE_DRAWS]->data + draw * TARN__DRAW_WORDS;
  const tarn__tensor *ids = node->in[TARN__SAMPLE_IDS];
  const int64_t width = tarn__sample_width(node);
  int32_t banned[TARN__SAMPLE_BANNED + 1];
  memcpy(banned, attr->banned, sizeof attr->banned);
  tarn__ban ban = {banned, attr->banned_count};
  if (!words[TARN__DRAW_ENDS]) banned[ban.count++] = attr->eos;
  const int32_t *row_ids = ids ? (const int32_t *)ids->data + words[TARN__DRAW_ROW] * width : NULL;
  const int64_t found = tarn__sample_collect(room, row_ids, row, width, ban);
  const uint64_t key = (uint64_t)(uint32_t)words[TARN__DRAW_KEY] | (uint64_t)(uint32_t)words[TARN__DRAW_KEY + 1] << 32;
  const tarn__sampling how = tarn__draw_how(words);
  const double uniform =
      tarn__sampling_uniform(how.seed, key, (uint32_t)words[TARN__DRAW_SAMPLE], (uint32_t)words[TARN__DRAW_POSITION]);
  const tarn__candidate drawn = tarn__sample(&how, room, found, row, uniform);
  *id = drawn.id;
  values[0] = drawn.log_probability;
  values[1] = row[ids ? width : attr->eos];
}
