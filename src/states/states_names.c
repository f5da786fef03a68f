// The available arrays of a model, their names, and the selection.
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "states/states.h"
#include "tarn/text.h"

// Arrays of a layer: suffix of the name, and meaning.
static const struct {
  const char *suffix, *text;
} SHOWS[TARN__SHOWS] = {
    [TARN__SHOW_OUTPUT] = {"", "residual stream after the layer"},
    [TARN__SHOW_ATTENTION] = {".attention", "weights of self-attention: heads, tokens, tokens"},
    [TARN__SHOW_CROSS_ATTENTION] = {".cross_attention",
                                    "weights of attention to the encoder: heads, target tokens, source tokens"},
    [TARN__SHOW_STATES] = {".states", "states of the recurrent units"},
    [TARN__SHOW_CELLS] = {".cells", "cell states of the LSTM"},
    [TARN__SHOW_GATES] = {".gates", "gates, after their activation functions"},
    [TARN__SHOW_KERNEL] = {".kernel", "kernels of the convolution's heads, after the softmax"},
    [TARN__SHOW_HIDDEN] = {".hidden", "hidden layer of the feed-forward network, after its activation or gate"},
};

static const struct {
  const char *name, *words, *classes;  // classes: the meaning for a model with one prediction per sentence
} ANSWERS[TARN__ANSWERS] = {
    [TARN__ANSWER_INPUT] = {"output.input", "what the output layer reads", "what the output layer reads"},
    [TARN__ANSWER_LOGITS] = {"output", "logits of all words", "logits of the classes, or the number"},
    [TARN__ANSWER_LOG_PROBABILITIES] = {"output.log_probabilities", "log-probabilities of all words",
                                        "log-probabilities of the classes"},
    [TARN__ANSWER_TOP] = {"output.topK", "log-probabilities of the K likeliest words",
                          "log-probabilities of the K likeliest classes"},
    [TARN__ANSWER_TOP_IDS] = {"output.topK.ids", "ids of the K likeliest words", "ids of the K likeliest classes"},
};

enum { NAME = 64 };

void tarn__states_list_close(tarn__states_list *list) {
  tarn__free(list->arrays);
  tarn__free(list->origins);
  tarn__arena_close(&list->names);
  *list = (tarn__states_list){0};
}

// Adds an array of that name, unless there is one.
static tarn_status add(tarn__states_list *list, const char *name, tarn_states_array array,
                       const tarn__states_origin *origin) {
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->arrays[i].name, name) == 0) return TARN_STATUS_OK;
  char *copy;
  TARN_TRY(tarn__grow(&list->arrays, &list->arrays_room, list->count + 1, sizeof *list->arrays));
  TARN_TRY(tarn__grow(&list->origins, &list->origins_room, list->count + 1, sizeof *list->origins));
  TARN_TRY(tarn__arena_strdup(&list->names, &copy, name));
  array.name = copy;
  list->arrays[list->count] = array;
  list->origins[list->count++] = *origin;
  return TARN_STATUS_OK;
}

static tarn_states_side side_of(const tarn__task *task, tarn__side side) {
  return task->source && side == TARN__SIDE_TARGET ? TARN_STATES_SIDE_TARGET : TARN_STATES_SIDE_SOURCE;
}

// The arrays of a stack, as shown by its layers.
static tarn_status offer_stack(tarn_states *states, int number) {
  const tarn__task_stack *what = &states->task->stacks[number];
  const tarn__model_stack *stack = tarn__model_stack_at(states->checkpoint->model, what->id);
  const char *name = tarn__stack_name(what->id);
  const tarn_states_side side = side_of(states->task, what->side);
  tarn__states_origin origin = {.stack = what->id, .stacks = number + 1};
  char text[NAME];
  for (origin.layer = 0; origin.layer <= stack->count; origin.layer++)
    for (origin.show = 0; origin.show < TARN__SHOWS; origin.show++) {
      const tarn__shown *shown = &states->shows.layers[what->id][origin.layer].shown[origin.show];
      if (!shown->tensor) continue;
      tarn_states_array array = {
          .text = SHOWS[origin.show].text, .side = side, .key_side = side, .width = shown->width};
      if (origin.layer == 0) array.text = "embeddings, as they enter the first layer";
      if (shown->form == TARN__SHOWN_ATTENTION) array.form = TARN_STATES_FORM_ATTENTION;
      if (origin.show == TARN__SHOW_CROSS_ATTENTION) array.key_side = TARN_STATES_SIDE_SOURCE;
      snprintf(text, sizeof text, "%s.%d%s", name, origin.layer, SHOWS[origin.show].suffix);
      TARN_TRY(add(&states->offered, text, array, &origin));
    }
  origin.from = TARN__STATES_STACK;
  const tarn_states_array whole = {.text = "output of the stack, after its final norm if it has one",
                                   .side = side,
                                   .width = states->shows.stack[what->id]->cols};
  return add(&states->offered, name, whole, &origin);
}

static tarn_status offer_answers(tarn_states *states) {
  const tarn__task *task = states->task;
  const tarn_states_side side = side_of(task, task->stacks[task->stack_count - 1].side);
  for (int i = 0; i < TARN__ANSWERS; i++) {
    const tarn__tensor *tensor = states->shows.answer[i];
    const tarn__states_origin origin = {.from = TARN__STATES_ANSWER, .answer = i, .stacks = task->stack_count};
    if (!tensor) continue;
    const bool top = i == TARN__ANSWER_TOP || i == TARN__ANSWER_TOP_IDS;
    const tarn_states_array array = {
        .text = task->labelled ? ANSWERS[i].classes : ANSWERS[i].words,
        .type = i == TARN__ANSWER_TOP_IDS ? TARN_STATES_TYPE_I32 : TARN_STATES_TYPE_F32,
        .form = task->labelled == TARN__LABELLED_SENTENCES ? TARN_STATES_FORM_SENTENCE : TARN_STATES_FORM_TOKENS,
        .side = side,
        .width = top ? 0 : tensor->cols};
    TARN_TRY(add(&states->offered, ANSWERS[i].name, array, &origin));
  }
  return TARN_STATUS_OK;
}

// Requests everything or nothing.
static void want(tarn_states *states, bool all) {
  for (int s = 0; s < TARN__STACKS; s++) {
    const int count = tarn__model_stack_at(states->checkpoint->model, (tarn__stack_id)s)->count;
    states->shows.whole[s] = all;
    for (int i = 0; states->shows.layers[s] && i <= count; i++)
      states->shows.layers[s][i] = (tarn__shows){.wanted = all ? (1u << TARN__SHOWS) - 1 : 0};
  }
  states->shows.answers = all ? (1u << TARN__ANSWERS) - 1 : 0;
  states->shows.best = 1;
}

// Builds the graph of a sentence without its tokens: the layers show all available tensors.
tarn_status tarn__states_offer(tarn_states *states) {
  const tarn__model *model = states->checkpoint->model;
  const tarn__packed packed = {.sentences = 1, .rows = 1, .longest = 1};
  const tarn__batch batch = {.source = packed, .target = packed, .predictions = 1};
  for (int i = 0; i < states->task->stack_count; i++) {
    const tarn__stack_id id = states->task->stacks[i].id;
    const size_t count = (size_t)tarn__model_stack_at(model, id)->count + 1;
    void *memory;
    TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(tarn__shows)));
    states->shows.layers[id] = memory;
  }
  want(states, true);
  tarn__model_begin(model, &states->graph, false, 1);
  tarn__model_build_shows(model, &states->graph, &batch, states->task->stack_count, &states->shows);
  TARN_TRY(states->graph.status);
  for (int i = 0; i < states->task->stack_count; i++) TARN_TRY(offer_stack(states, i));
  TARN_TRY(offer_answers(states));
  want(states, false);
  return TARN_STATUS_OK;
}

// Attention to an encoder, for a layer or a model without one.
static tarn_status refuse_cross(const tarn_states *states, const char *name) {
  const tarn__states_list *offered = &states->offered;
  const char *path = states->checkpoint->path;
  for (size_t i = 0; i < offered->count; i++)
    if (offered->origins[i].from == TARN__STATES_LAYER && offered->origins[i].show == TARN__SHOW_CROSS_ATTENTION)
      return tarn__fail(TARN_STATUS_USAGE,
                        "%s: it has no \"%.100s\"; the first layer that attends to the encoder is "
                        "\"%s\"",
                        path, name, offered->arrays[i].name);
  return tarn__fail(TARN_STATUS_USAGE, "%s: it has no \"%.100s\", because no layer of %s attends to an encoder", path,
                    name, states->task->source ? "this model" : states->task->model);
}

static tarn_status refuse(const tarn_states *states, const char *name) {
  const tarn__states_list *offered = &states->offered;
  if (strstr(name, SHOWS[TARN__SHOW_CROSS_ATTENTION].suffix)) return refuse_cross(states, name);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, offered->count, sizeof(char *)));
  const char **names = memory;
  for (size_t i = 0; i < offered->count; i++) names[i] = offered->arrays[i].name;
  const char *path = states->checkpoint->path, *nearest = tarn_text_nearest(name, names, offered->count);
  const char *first = names[0];
  tarn__free(memory);
  if (!nearest)
    return tarn__fail(TARN_STATUS_USAGE, "%s: it has no \"%.100s\"; it has \"%s\", and more that --list names", path,
                      name, first);
  const bool ids = strcmp(nearest, ANSWERS[TARN__ANSWER_TOP_IDS].name) == 0;
  if (ids || strcmp(nearest, ANSWERS[TARN__ANSWER_TOP].name) == 0)
    return tarn__fail(TARN_STATUS_USAGE, "%s: it has no \"%.100s\"; of \"%s\" K is a number, as in \"output.top10%s\"",
                      path, name, nearest, ids ? ".ids" : "");
  return tarn__fail(TARN_STATUS_USAGE, "%s: it has no \"%.100s\"; did you mean \"%s\"?", path, name, nearest);
}

// The likeliest words: "output.top10", with their ids; "output.top10.ids": only these.
static tarn_status select_top(tarn_states *states, const char *name, bool *found) {
  static const char prefix[] = "output.top";
  const tarn__states_list *offered = &states->offered;
  char *end, text[NAME];
  *found = false;
  if (strncmp(name, prefix, sizeof prefix - 1) != 0 || !isdigit((unsigned char)name[sizeof prefix - 1]))
    return TARN_STATUS_OK;
  const long long best = strtoll(name + sizeof prefix - 1, &end, 10);
  const bool ids = strcmp(end, ".ids") == 0;
  if (*end && !ids) return TARN_STATUS_OK;
  for (size_t i = 0; i < offered->count; i++) {
    const tarn__states_origin *origin = &offered->origins[i];
    tarn_states_array array = offered->arrays[i];
    if (origin->from != TARN__STATES_ANSWER || array.width != 0) continue;
    if (ids && origin->answer != TARN__ANSWER_TOP_IDS) continue;
    const long long words = states->checkpoint->model->weights.output_table->rows;
    TARN_REQUIRE(best >= 1 && best <= words, USAGE, "%.100s: K is a number from 1 to %lld, what the model tells apart",
                 name, words);
    array.width = best;
    snprintf(text, sizeof text, "%s%lld%s", prefix, best, origin->answer == TARN__ANSWER_TOP_IDS ? ".ids" : "");
    TARN_TRY(add(&states->selected, text, array, origin));
    *found = true;
  }
  return TARN_STATUS_OK;
}

static tarn_status select_name(tarn_states *states, const char *name) {
  const tarn__states_list *offered = &states->offered;
  const bool pattern = strpbrk(name, "*?") != NULL;
  bool found;
  TARN_TRY(select_top(states, name, &found));
  for (size_t i = 0; i < offered->count; i++) {
    const tarn_states_array *array = &offered->arrays[i];
    if (array->width == 0) continue;
    if (pattern ? fnmatch(name, array->name, FNM_NOESCAPE) != 0 : strcmp(name, array->name) != 0) continue;
    TARN_TRY(add(&states->selected, array->name, *array, &offered->origins[i]));
    found = true;
  }
  return found ? TARN_STATUS_OK : refuse(states, name);
}

static void clear_selection(tarn_states *states) {
  states->selected.count = 0;
  tarn__arena_reset(&states->selected.names);
  states->stacks = 0;
  want(states, false);
}

tarn_status tarn_states_select(tarn_states *states, const char *const *names, size_t count) {
  tarn_status status = TARN_STATUS_OK;
  clear_selection(states);
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) status = select_name(states, names[i]);
  if (status != TARN_STATUS_OK) {
    clear_selection(states);
    return status;
  }
  for (size_t i = 0; i < states->selected.count; i++) {
    const tarn__states_origin *origin = &states->selected.origins[i];
    if (origin->stacks > states->stacks) states->stacks = origin->stacks;
    if (origin->from == TARN__STATES_LAYER)
      states->shows.layers[origin->stack][origin->layer].wanted |= 1u << origin->show;
    if (origin->from == TARN__STATES_STACK) states->shows.whole[origin->stack] = true;
    if (origin->from != TARN__STATES_ANSWER) continue;
    const int64_t width = states->selected.arrays[i].width;
    const bool top = origin->answer == TARN__ANSWER_TOP || origin->answer == TARN__ANSWER_TOP_IDS;
    states->shows.answers |= 1u << origin->answer;
    if (top && width > states->shows.best) states->shows.best = width;
  }
  return TARN_STATUS_OK;
}

const tarn_states_array *tarn_states_offered(const tarn_states *states, size_t *count) {
  *count = states->offered.count;
  return states->offered.arrays;
}

const tarn_states_array *tarn_states_selected(const tarn_states *states, size_t *count) {
  *count = states->selected.count;
  return states->selected.arrays;
}

tarn__shown tarn__states_shown(const tarn_states *states, size_t array) {
  const tarn__states_origin *origin = &states->selected.origins[array];
  if (origin->from == TARN__STATES_LAYER) return states->shows.layers[origin->stack][origin->layer].shown[origin->show];
  return (tarn__shown){.tensor = origin->from == TARN__STATES_STACK ? states->shows.stack[origin->stack]
                                                                    : states->shows.answer[origin->answer],
                       .width = states->selected.arrays[array].width};
}
