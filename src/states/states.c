#include "states/states.h"

#include "base/memory.h"
#include "base/threads.h"
#include "decode/translate.h"

void tarn_states_default(tarn_states_options *options) {
  *options = (tarn_states_options){.precision = TARN_TRANSLATE_PRECISION_AUTO,
                                   .overlong = TARN_TRANSLATE_OVERLONG_REFUSE,
                                   .max_tokens = 4096,
                                   .max_memory = 1000000000,
                                   .max_result = 8000000000};
}

static tarn_status pack(tarn_states *states) {
  const tarn__rounding rounding = tarn__rounding_of(states->options.precision);
  tarn__model *model = states->checkpoint->model;
  TARN_TRY(tarn__model_pack_check(model, rounding));
  TARN_TRY(tarn__device_allocate(model->device, &states->packed, TARN__MEMORY_OTHER,
                                 tarn__model_pack_bytes(model, rounding), 1));
  return tarn__model_pack(model, states->packed, rounding, tarn__threads());
}

static tarn_status check_options(const tarn_states_options *o) {
  TARN_REQUIRE(o->max_tokens >= 1 && o->max_tokens <= 1 << 24, USAGE,
               "the tokens computed together are 1 to %d, not %lld", 1 << 24, (long long)o->max_tokens);
  TARN_TRY(tarn__checkpoint_check_use(o->threads, o->overlong));
  return TARN_STATUS_OK;
}

// `shared`: an external checkpoint with prepared weights; NULL: opens that of the path.
static tarn_status open_all(tarn_states *states, const char *path, tarn__checkpoint *shared) {
  tarn_states_options *o = &states->options;
  TARN_TRY(check_options(o));
  states->shared = shared != NULL;
  states->checkpoint = shared;
  if (!shared) {
    tarn__threads_set(o->threads);
    TARN_TRY(tarn__checkpoint_open_use(&states->checkpoint, path, &o->precision, NULL));
  }
  states->task = tarn__config_task(states->checkpoint->config);
  states->sides[TARN_STATES_SIDE_SOURCE].given = true;  // no sentences yet; only targets can be missing
  TARN_TRY(tarn__task_first(&states->first, states->checkpoint->config, states->checkpoint->target));
  TARN_TRY(tarn__states_offer(states));
  return states->shared ? TARN_STATUS_OK : pack(states);
}

// A row of the model's stacks is a token of a side.
static tarn_status check_rows(const tarn_states *states) {
  const tarn__checkpoint *c = states->checkpoint;
  TARN_REQUIRE(c->config->encoder.pool_count == 0, USAGE,
               "%s: encoder.pool_after pools rows, so its states belong to no token", c->path);
  TARN_REQUIRE(!states->task->stacks[0].prefix, USAGE, "%s: %s, whose stack reads source and target as one sequence",
               c->path, states->task->model);
  return TARN_STATUS_OK;
}

static tarn_status open_states(tarn_states **out, const char *path, tarn__checkpoint *shared,
                               const tarn_states_options *options) {
  void *memory;
  *out = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_states)));
  tarn_states *states = memory;
  states->options = *options;
  tarn_status status = open_all(states, path, shared);
  if (status == TARN_STATUS_OK) status = check_rows(states);
  if (status != TARN_STATUS_OK) {
    tarn_states_close(&states);
    return status;
  }
  *out = states;
  return TARN_STATUS_OK;
}

tarn_status tarn_states_open(tarn_states **states, const char *path, const tarn_states_options *options) {
  return open_states(states, path, NULL, options);
}

tarn_status tarn_states_open_translator(tarn_states **states, tarn_translator *translator,
                                        const tarn_states_options *options) {
  tarn_states_options own = *options;
  own.precision = tarn_translator_settings(translator)->precision;
  return open_states(states, NULL, tarn__translator_checkpoint(translator), &own);
}

tarn_status tarn__states_open_checkpoint(tarn_states **states, tarn__checkpoint *checkpoint,
                                         const tarn_states_options *options) {
  return open_states(states, NULL, checkpoint, options);
}

static void close_text(tarn__states_text *text) {
  tarn__free(text->ids);
  tarn__free(text->segments);
  tarn__free(text->offsets);
}

void tarn_states_close(tarn_states **out) {
  tarn_states *states = *out;
  if (!states) return;
  if (states->packed) {
    tarn__model_unpack(states->checkpoint->model);
    tarn__device_free(states->checkpoint->model->device, states->packed);
  }
  if (states->workspace) tarn__device_free(states->checkpoint->model->device, states->workspace);
  tarn__graph_close(&states->graph);
  if (!states->shared) tarn__checkpoint_close(&states->checkpoint);
  tarn__states_list_close(&states->offered);
  tarn__states_list_close(&states->selected);
  for (int i = 0; i < TARN__STACKS; i++) tarn__free(states->shows.layers[i]);
  for (int i = 0; i < TARN_STATES_SIDE_COUNT; i++) {
    close_text(&states->sides[i]);
    tarn__free(states->positions[i]);
    tarn__free(states->offsets[i]);
  }
  tarn__free(states->pooled);
  tarn_vocab_ids_close(&states->line_ids);
  tarn__sentence_pair_close(&states->pair);
  tarn__free(states->repaired.data);
  tarn__free(states);
  *out = NULL;
}

const char *tarn_states_path(const tarn_states *states) { return states->checkpoint->path; }
int tarn_states_sides(const tarn_states *states) { return states->task->source ? 2 : 1; }
