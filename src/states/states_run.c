// Runs texts through the model, batch by batch, and extracts the selected arrays.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "base/work.h"
#include "decode/shown_values.h"
#include "states/states.h"
#include "task/labelled.h"

// An array of a batch: its tensor in the host's memory, and memory for the numbers of a sentence.
typedef struct reading {
  tarn__shown_values of;
  void *stage;
  size_t stage_room;
} reading;

// A computation of all sentences.
typedef struct job {
  tarn_states *states;
  reading *readings;  // [arrays]
  const void **told;  // [arrays]
  void *const *buffers;
  tarn_states_sink sink;
  void *user;
  int64_t first, last;  // sentences of the batch
} job;

static int64_t length_of(const tarn_states *states, tarn_states_side side, int64_t sentence) {
  const int64_t *offsets = states->sides[side].offsets;
  return offsets[sentence + 1] - offsets[sentence];
}

static bool is_missing(const tarn_states *states, const tarn_states_array *array) {
  return !states->sides[array->side].given;
}

int64_t tarn__states_numbers(const tarn_states *states, const tarn_states_array *array, int64_t sentence) {
  if (array->form == TARN_STATES_FORM_SENTENCE) return array->width;
  const int64_t tokens = length_of(states, array->side, sentence);
  if (array->form == TARN_STATES_FORM_TOKENS) return array->width * tokens;
  return array->width * tokens * length_of(states, array->key_side, sentence);
}

int64_t tarn_states_place(const tarn_states *states, size_t array, int64_t sentence) {
  const tarn_states_array *a = &states->selected.arrays[array];
  if (is_missing(states, a)) return -1;
  if (states->summary.sentences == 0) return 0;
  if (a->form == TARN_STATES_FORM_SENTENCE) return a->width * sentence;
  if (a->form == TARN_STATES_FORM_TOKENS) return a->width * states->sides[a->side].offsets[sentence];
  int64_t place = 0;
  for (int64_t s = 0; s < sentence; s++) place += tarn__states_numbers(states, a, s);
  return place;
}

void tarn_states_places(const tarn_states *states, size_t array, int64_t *places) {
  const tarn_states_array *a = &states->selected.arrays[array];
  places[0] = is_missing(states, a) ? -1 : 0;
  for (int64_t s = 0; s < states->summary.sentences; s++)
    places[s + 1] = is_missing(states, a) ? -1 : places[s] + tarn__states_numbers(states, a, s);
}

// The sides that the selection reads.
static int sides_of(const tarn_states *states) { return states->task->source && states->stacks > 1 ? 2 : 1; }

// The end of the batch beginning with sentence `first`: at most `together` tokens per side.
static int64_t batch_end(const tarn_states *states, int64_t first) {
  int64_t last = first + 1;
  for (; last < states->summary.sentences; last++)
    for (int i = 0; i < sides_of(states); i++)
      if (states->sides[i].offsets[last + 1] - states->sides[i].offsets[first] > states->together) return last;
  return last;
}

static tarn_status pack_side(const job *j, tarn__packed *packed, tarn_states_side side) {
  tarn_states *states = j->states;
  const tarn__states_text *text = &states->sides[side];
  const int64_t begin = text->offsets[j->first], rows = text->offsets[j->last] - begin, count = j->last - j->first;
  TARN_TRY(tarn__grow(&states->positions[side], &states->positions_room[side], (size_t)rows, sizeof(int32_t)));
  TARN_TRY(tarn__grow(&states->offsets[side], &states->offsets_room[side], (size_t)count + 1, sizeof(int32_t)));
  int32_t *offsets = states->offsets[side];
  int64_t longest = 0;
  for (int64_t i = 0; i <= count; i++) offsets[i] = (int32_t)(text->offsets[j->first + i] - begin);
  for (int64_t i = 0; i < count; i++)
    if (offsets[i + 1] - offsets[i] > longest) longest = offsets[i + 1] - offsets[i];
  tarn__packed_positions(states->positions[side], offsets, count);
  *packed = (tarn__packed){.sentences = count,
                           .rows = rows,
                           .longest = longest,
                           .ids = text->ids + begin,
                           .positions = states->positions[side],
                           .offsets = offsets,
                           .segments = text->segments ? text->segments + begin : NULL};
  return TARN_STATUS_OK;
}

static tarn_status make_batch(const job *j, tarn__batch *batch) {
  tarn_states *states = j->states;
  const int64_t count = j->last - j->first;
  *batch = (tarn__batch){.source = {.sentences = count}, .target = {.sentences = count}, .predictions = count};
  TARN_TRY(pack_side(j, states->task->source ? &batch->source : &batch->target, TARN_STATES_SIDE_SOURCE));
  if (sides_of(states) > 1) TARN_TRY(pack_side(j, &batch->target, TARN_STATES_SIDE_TARGET));
  if (states->task->labelled != TARN__LABELLED_SENTENCES) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&states->pooled, &states->pooled_room, (size_t)count, sizeof(int32_t)));
  tarn__pooled_rows(states->pooled, batch->target.offsets, count, states->checkpoint->config->head.pool);
  batch->selected = states->pooled;
  return TARN_STATUS_OK;
}

static tarn_status make_room(tarn_states *states) {
  const tarn__device *device = states->checkpoint->model->device;
  if (states->graph.workspace_bytes <= states->workspace_bytes) return TARN_STATUS_OK;
  if (states->workspace) tarn__device_free(device, states->workspace);
  states->workspace = NULL;
  states->workspace_bytes = 0;
  TARN_TRY(
      tarn__device_allocate(device, &states->workspace, TARN__MEMORY_ACTIVATION, states->graph.workspace_bytes, 1));
  states->workspace_bytes = states->graph.workspace_bytes;
  return TARN_STATUS_OK;
}

static tarn_status plan_batch(job *j) {
  tarn_states *states = j->states;
  tarn__batch batch;
  TARN_TRY(make_batch(j, &batch));
  tarn__model_begin(states->checkpoint->model, &states->graph, false, tarn__threads());
  tarn__model_build_shows(states->checkpoint->model, &states->graph, &batch, states->stacks, &states->shows);
  return tarn__graph_plan(&states->graph);
}

// Plans the batch that begins with j->first, with fewer sentences if they need too much memory.
static tarn_status begin_batch(job *j) {
  tarn_states *states = j->states;
  const size_t most = states->options.max_memory;
  for (;;) {
    j->last = batch_end(states, j->first);
    TARN_TRY(plan_batch(j));
    if (most == 0 || states->graph.workspace_bytes <= most) break;
    TARN_REQUIRE(j->last - j->first > 1, MEMORY,
                 "line %lld alone needs %.1f MB to be computed, and %.1f MB are allowed: allow more, or select less",
                 (long long)j->first + 1, (double)states->graph.workspace_bytes / 1e6, (double)most / 1e6);
    int64_t tokens = 1;
    for (int i = 0; i < sides_of(states); i++) {
      const int64_t side = states->sides[i].offsets[j->last] - states->sides[i].offsets[j->first];
      if (side > tokens) tokens = side;
    }
    states->together = tokens / 2;
  }
  TARN_TRY(make_room(states));
  tarn__graph_bind(&states->graph, states->workspace);
  return tarn__graph_run(&states->graph, &(tarn__exec){.threads = tarn__threads()});
}

static tarn_status read_batch(job *j) {
  const tarn__graph *graph = &j->states->graph;
  for (size_t a = 0; a < j->states->selected.count; a++) {
    const tarn__shown shown = tarn__states_shown(j->states, a);
    TARN_REQUIRE(shown.tensor, INTERNAL, "%s was not computed", j->states->selected.arrays[a].name);
    TARN_TRY(tarn__shown_read(&j->readings[a].of, graph, &shown));
  }
  return TARN_STATUS_OK;
}

// The softmax of `count` numbers.
static void normalise(float *x, int64_t count) {
  float most = x[0], sum = 0.0F;
  for (int64_t i = 1; i < count; i++)
    if (x[i] > most) most = x[i];
  for (int64_t i = 0; i < count; i++) sum += x[i] = (float)exp((double)(x[i] - most));
  for (int64_t i = 0; i < count; i++) x[i] /= sum;
}

static void copy_row(float *out, const reading *r, int64_t row) {
  const tarn__shown *shown = &r->of.shown;
  const tarn__shown_matrix *values = &r->of.values;
  const int64_t width = shown->width, at = row * values->cols + shown->column;
  if (values->dtype == TARN__F32)
    memcpy(out, (const float *)values->values + at, (size_t)width * sizeof *out);
  else
    for (int64_t c = 0; c < width; c++) out[c] = tarn__shown_value(values, at + c);
  if (shown->form == TARN__SHOWN_SIGMOID)
    for (int64_t c = 0; c < width; c++) out[c] = (float)(1.0 / (1.0 + exp(-(double)out[c])));
  if (shown->form == TARN__SHOWN_SOFTMAX)
    for (int64_t c = 0; c < width; c += shown->group) normalise(out + c, shown->group);
}

// Whether all numbers are finite: only other floats have all bits of the exponent set.
static bool are_finite(const float *x, int64_t count) {
  uint32_t worst = 0;
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    bits &= 0x7F800000u;
    worst = bits > worst ? bits : worst;
  }
  return worst < 0x7F800000u;
}

// The numbers of a sentence of an array.
static tarn_status fill(const job *j, void *out, size_t a, int64_t sentence) {
  const tarn_states *states = j->states;
  const tarn_states_array *array = &states->selected.arrays[a];
  const reading *r = &j->readings[a];
  const int64_t *offsets = states->sides[array->side].offsets;
  int64_t row = offsets[sentence] - offsets[j->first], rows = length_of(states, array->side, sentence);
  if (array->form == TARN_STATES_FORM_SENTENCE) {
    row = sentence - j->first;
    rows = 1;
  }
  if (array->form == TARN_STATES_FORM_ATTENTION) {
    const int64_t *keys = states->sides[array->key_side].offsets;
    TARN_TRY(tarn__shown_attention(out, &r->of, row, rows, keys[sentence] - keys[j->first],
                                   length_of(states, array->key_side, sentence), tarn__threads()));
  } else if (array->type == TARN_STATES_TYPE_I32) {
    for (int64_t i = 0; i < rows; i++)
      memcpy((int32_t *)out + i * array->width, (const int32_t *)r->of.values.values + (row + i) * r->of.values.cols,
             (size_t)array->width * sizeof(int32_t));
    return TARN_STATUS_OK;
  } else {
    for (int64_t i = 0; i < rows; i++) copy_row((float *)out + i * array->width, r, row + i);
  }
  TARN_REQUIRE(are_finite(out, tarn__states_numbers(states, array, sentence)), NUMERIC,
               "line %lld: %s has a number that is not finite", (long long)sentence + 1, array->name);
  return TARN_STATUS_OK;
}

// `places` of the sentence in the buffers.
static tarn_status give(const job *j, int64_t sentence, int64_t *places) {
  const tarn_states *states = j->states;
  for (size_t a = 0; a < states->selected.count; a++) {
    const int64_t count = tarn__states_numbers(states, &states->selected.arrays[a], sentence);
    reading *r = &j->readings[a];
    if (j->buffers && !j->buffers[a]) continue;
    if (!j->buffers) TARN_TRY(tarn__grow(&r->stage, &r->stage_room, (size_t)count, sizeof(float)));
    void *out = j->buffers ? (char *)j->buffers[a] + (size_t)places[a] * sizeof(float) : r->stage;
    TARN_TRY(fill(j, out, a, sentence));
    places[a] += count;
    if (!j->buffers) j->told[a] = out;
  }
  return j->sink ? j->sink(j->user, sentence, j->told) : TARN_STATUS_OK;
}

static tarn_status run_all(job *j, tarn__work *work, int64_t *places) {
  tarn_states *states = j->states;
  const tarn_states_options *o = &states->options;
  int64_t total = 0;
  for (int i = 0; i < sides_of(states); i++) total += states->sides[i].tokens;
  states->together = o->max_tokens;
  for (j->first = 0; j->first < states->summary.sentences; j->first = j->last) {
    TARN_TRY(begin_batch(j));
    TARN_TRY(read_batch(j));
    // Before results computed from the file are returned.
    TARN_TRY(tarn__map_check(&states->checkpoint->file.map));
    for (int64_t s = j->first; s < j->last; s++) TARN_TRY(give(j, s, places));
    int64_t done = 0;
    for (int i = 0; i < sides_of(states); i++) done += states->sides[i].offsets[j->last];
    tarn__work_at(work, (double)done, (double)done / (double)total);
    if (o->progress) TARN_TRY(o->progress(o->user, done, total));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__states_check(const tarn_states *states) {
  double bytes = 0.0;
  TARN_REQUIRE(states->selected.count > 0, USAGE, "nothing is selected of %s", states->checkpoint->path);
  for (size_t a = 0; a < states->selected.count; a++) {
    const tarn_states_array *array = &states->selected.arrays[a];
    TARN_REQUIRE(!is_missing(states, array), USAGE,
                 "%s is of the decoder, which reads targets, and there are none; give them with --target", array->name);
    bytes += (double)tarn_states_place(states, a, states->summary.sentences) * (double)sizeof(float);
  }
  const double most = (double)states->options.max_result;
  TARN_REQUIRE(most == 0.0 || bytes <= most, USAGE,
               "the results would be %.1f MB, and %.1f MB are allowed: select less, give fewer lines, or allow more",
               bytes / 1e6, most / 1e6);
  return TARN_STATUS_OK;
}

static tarn_status run(tarn_states *states, void *const *buffers, tarn_states_sink sink, void *user) {
  const size_t count = states->selected.count;
  void *readings = NULL, *told = NULL, *places = NULL;
  TARN_TRY(tarn__states_check(states));
  tarn_status status = tarn__alloc(&readings, TARN__MEMORY_OTHER, count, sizeof(reading));
  if (status == TARN_STATUS_OK) status = tarn__alloc(&told, TARN__MEMORY_OTHER, count, sizeof(void *));
  if (status == TARN_STATUS_OK) status = tarn__alloc(&places, TARN__MEMORY_OTHER, count, sizeof(int64_t));
  job j = {.states = states, .readings = readings, .told = told, .buffers = buffers, .sink = sink, .user = user};
  tarn__work work;
  tarn__work_begin(&work, "looking inside", "tokens");
  if (status == TARN_STATUS_OK) status = run_all(&j, &work, places);
  tarn__work_end(&work);
  for (size_t a = 0; readings && a < count; a++) {
    tarn__shown_values_close(&j.readings[a].of);
    tarn__free(j.readings[a].stage);
  }
  tarn__free(readings);
  tarn__free(told);
  tarn__free(places);
  return status;
}

tarn_status tarn_states_compute(tarn_states *states, void *const *buffers) {
  return tarn__map_judge(&states->checkpoint->file.map, run(states, buffers, NULL, NULL));
}

tarn_status tarn_states_each(tarn_states *states, tarn_states_sink sink, void *user) {
  return tarn__map_judge(&states->checkpoint->file.map, run(states, NULL, sink, user));
}
