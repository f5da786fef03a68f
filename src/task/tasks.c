#include <math.h>
#include <stdio.h>
#include <string.h>

#include "task/labelled.h"
#include "task/task.h"

const tarn__task *tarn__task_at(int index) {
  for (int i = 0; i < tarn__task_count; i++)
    for (const tarn__task *const *entry = tarn__task_table[i]; *entry; entry++)
      if (index-- == 0) return *entry;
  return NULL;
}

const char *tarn_task_word(int task) {
#define WORD(NAME, entries, word, text) word,
  static const char *const words[] = {TARN__TASK_LIST(WORD)};
#undef WORD
  return task >= 0 && task < TARN__LEARNS_COUNT ? words[task] : NULL;
}

const tarn__task *tarn__task_usual(tarn_architecture architecture) {
  const tarn__task *task;
  int i = 0;
  while ((task = tarn__task_at(i++)) != NULL && (task->named || task->architecture != architecture)) continue;
  return task;
}

const tarn__task *tarn__config_task(const tarn_config *config) {
  const tarn_config_model *model = &config->model;
  const tarn__task *task;
  for (int i = 0; (task = tarn__task_at(i)) != NULL; i++)
    if (task->architecture == model->architecture && (int)task->task == model->task) return task;
  return NULL;
}

const char *tarn__architecture_text(tarn_architecture architecture) {
  static const char *const texts[] = {[TARN_ARCHITECTURE_ENCODER_DECODER] = "an encoder and a decoder",
                                      [TARN_ARCHITECTURE_DECODER] = "a decoder alone",
                                      [TARN_ARCHITECTURE_ENCODER] = "an encoder alone"};
  return texts[architecture];
}

static unsigned stacks_of(const tarn__task *task) {
  unsigned stacks = 0;
  for (int s = 0; s < task->stack_count; s++) stacks |= 1u << task->stacks[s].id;
  return stacks;
}

const tarn__task *tarn__task_with(unsigned stacks) {
  const tarn__task *task;
  int i = 0;
  while ((task = tarn__task_at(i++)) != NULL && (task->named || stacks_of(task) != stacks)) continue;
  return task;
}

tarn__stack_id tarn__task_missing(unsigned stacks) {
  const tarn__task *least = NULL, *task;
  for (int i = 0; (task = tarn__task_at(i)) != NULL; i++)
    if ((stacks_of(task) & stacks) == stacks && (!least || task->stack_count < least->stack_count)) least = task;
  tarn__stack_id id = TARN__STACK_DECODER;
  for (int s = 0; least && s < least->stack_count; s++)
    if (!(stacks >> least->stacks[s].id & 1u)) id = least->stacks[s].id;
  return id;
}

const tarn__task_stack *tarn__task_stack_of(const tarn__task *task, tarn__stack_id id) {
  for (int s = 0; s < task->stack_count; s++)
    if (task->stacks[s].id == id) return &task->stacks[s];
  return NULL;
}

bool tarn__task_reads(const tarn__task *task, tarn__side side) {
  for (int s = 0; s < task->stack_count; s++)
    if (task->stacks[s].side == side || (task->stacks[s].prefix && side == TARN__SIDE_SOURCE)) return true;
  return false;
}

int tarn__task_sides(const tarn__task *task) {
  int sides = 0;
  for (int side = 0; side < TARN__SIDES; side++) sides += tarn__task_reads(task, (tarn__side)side);
  return sides;
}

const tarn__task_stack *tarn__task_bottom(const tarn__task *task) {
  for (int s = 0; s < task->stack_count; s++)
    if (task->stacks[s].bottom) return &task->stacks[s];
  return NULL;
}

void tarn__task_embeddings(char text[TARN__TASK_TEXT], const tarn__task *task, unsigned among) {
  static const char *const words[] = {
#define WORD(value, word, text) [value] = word,
      TARN_EMBEDDINGS_MAP(WORD)
#undef WORD
  };
  unsigned left = among & task->embeddings;
  int used = 0;
  text[0] = 0;
  for (int e = 0; e < TARN_EMBEDDINGS_COUNT; e++) {
    if (!(left >> e & 1u)) continue;
    left &= ~(1u << e);
    const char *separator = used == 0 ? "" : left ? ", " : " or ";
    used += snprintf(text + used, TARN__TASK_TEXT - (size_t)used, "%s%s", separator, words[e]);
  }
}

const tarn_stack *tarn__config_stack(const tarn_config *config, tarn__stack_id id) {
  return id == TARN__STACK_ENCODER ? &config->encoder : &config->decoder;
}

const char *tarn__stack_name(tarn__stack_id id) { return id == TARN__STACK_ENCODER ? "encoder" : "decoder"; }

bool tarn__config_final_norm(const tarn_config *config, tarn__stack_id id) {
  const tarn_stack *stack = tarn__config_stack(config, id);
  if (stack->depth == 0) return false;
  if (stack->final_norm != TARN_FINAL_NORM_AUTO) return stack->final_norm == TARN_FINAL_NORM_YES;
  return config->kinds[stack->pattern[stack->depth - 1].kind].norm == TARN_NORM_PRE;
}

bool tarn__config_crosses(const tarn_config *config, const tarn_kind *kind) {
  const tarn__task *task = tarn__config_task(config);
  if (!tarn__mixer_of(kind)->attends) return false;
  for (int s = 0; s < task->stack_count; s++)
    if (task->stacks[s].attends && tarn__stack_has(tarn__config_stack(config, task->stacks[s].id), config, kind))
      return true;
  return false;
}

bool tarn__stack_has(const tarn_stack *stack, const tarn_config *config, const tarn_kind *kind) {
  for (int32_t i = 0; i < stack->count; i++)
    if (&config->kinds[stack->layers[i].kind] == kind) return true;
  return false;
}

bool tarn__task_has(const tarn__task *task, int metric) { return (task->keeps & tarn__measure_at(metric)->of) != 0; }

tarn_status tarn__task_scores(double scores[TARN_MEASURES], const tarn__task *task, const tarn__task_tally *tally) {
  const bool rows =
      (task->keeps & (1u << TARN__KEPT_CLASSES | 1u << TARN__KEPT_WORD_CLASSES | 1u << TARN__KEPT_NUMBERS)) != 0;
  tarn__agreement answers = {0};
  if (rows) {
    tarn__labelled_answers(&answers, tally);
    TARN_TRY(tarn__agreement_open(&answers));
  }
  for (int m = 0; m < TARN__METRIC_COUNT; m++) {
    const tarn__measure *measure = tarn__measure_at(m);
    if (!tarn__task_has(task, m)) continue;
    if (rows && measure->rows)
      scores[m] = measure->rows(&answers, NULL);
    else if (measure->sums)
      scores[m] = measure->sums(tally);
  }
  if (rows) tarn__agreement_close(&answers);
  return TARN_STATUS_OK;
}

tarn_status tarn__task_require(const tarn_config *config, tarn__use use, const char *path) {
  static const char *const verbs[] = {[TARN__USE_TRANSLATE] = "translate",
                                      [TARN__USE_SCORE_TEXT] = "score single sentences",
                                      [TARN__USE_CONTINUE_TEXT] = "continue text",
                                      [TARN__USE_LABEL] = "tell labels"};
  const tarn__task *task = tarn__config_task(config), *other;
  char others[256] = "";
  if (task->uses >> use & 1u) return TARN_STATUS_OK;
  TARN_REQUIRE(path, USAGE, "%s does not %s", task->model, verbs[use]);
  for (int i = 0; (other = tarn__task_at(i)) != NULL; i++) {
    const size_t used = strlen(others);
    if (!(other->uses >> use & 1u) || strstr(others, other->models))
      continue;  // several tasks may be described by the
                 // same words
    snprintf(others + used, sizeof others - used, "%s%s", used > 0 ? " and " : "", other->models);
  }
  return tarn__fail(TARN_STATUS_USAGE, "%s: %s does not %s; only %s do", path, task->model, verbs[use], others);
}

bool tarn_config_has_use(const tarn_config *config, const char *use) {
  static const struct {
    const char *word;
    tarn__use use;
  } words[] = {{"translate", TARN__USE_TRANSLATE},
               {"attend", TARN__USE_TRANSLATE},
               {"score", TARN__USE_SCORE_TEXT},
               {"generate", TARN__USE_CONTINUE_TEXT}};
  const tarn__task *task = tarn__config_task(config);
  if (strcmp(use, "refine") == 0)
    return (task->uses >> TARN__USE_TRANSLATE & 1u) && task->decoding != TARN__DECODING_TOKENS;
  if (strcmp(use, "edit") == 0) return task->decoding == TARN__DECODING_EDITS;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i].word, use) == 0) return (task->uses >> words[i].use & 1u) != 0;
  return task->verb && strcmp(task->verb->word, use) == 0;
}

// Whether an entry before number `index` has the same verb.
static bool is_known(const tarn_verb *verb, int index) {
  for (int i = 0; i < index; i++)
    if (tarn__task_at(i)->verb == verb) return true;
  return false;
}

const tarn_verb *tarn_verb_at(int index) {
  const tarn__task *task;
  for (int i = 0; (task = tarn__task_at(i)) != NULL; i++)
    if (task->verb && !is_known(task->verb, i) && index-- == 0) return task->verb;
  return NULL;
}

tarn_status tarn__task_require_verb(const tarn_config *config, const char *verb, const char *path) {
  const tarn__task *task = tarn__config_task(config);
  TARN_TRY(tarn__task_require(config, TARN__USE_LABEL, path));
  TARN_REQUIRE(!verb || strcmp(task->verb->word, verb) == 0, USAGE, "%s: %s does not %s; its verb is %s (tarn %s)",
               path, task->model, verb, task->verb->word, task->verb->word);
  return TARN_STATUS_OK;
}

static tarn_status check_metric(const tarn__task *task, int metric, const tarn__task_keys *keys) {
  char text[256];
  if (tarn__task_has(task, metric)) return TARN_STATUS_OK;
  int used = snprintf(text, sizeof text, "%s has no %s; its measures are", task->model, tarn_measure_of(metric)->word);
  const char *separator = " ";
  for (int m = 0; m < TARN__METRIC_COUNT; m++) {
    if (!tarn__task_has(task, m)) continue;
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%s", separator, tarn_measure_of(m)->word);
    separator = ", ";
  }
  return keys->fail(keys->root, "valid.metric", text);
}

tarn_status tarn__task_first(int32_t *first, const tarn_config *config, const tarn_vocab *target) {
  const tarn__task *task = tarn__config_task(config);
  *first = -1;
  return task->first ? task->first(first, config, target) : TARN_STATUS_OK;
}

tarn_status tarn__task_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                               const tarn_vocab *target) {
  const tarn__task *task = tarn__config_task(config);
  TARN_TRY(tarn__task_first(&options->first, config, target));
  if (config->model.decoder_start >= 0) options->first = (int32_t)config->model.decoder_start;
  return task->batches ? task->batches(options, config, shard, target) : TARN_STATUS_OK;
}

void tarn__task_largest(tarn__batch *batch, const tarn_config *config) {
  const tarn__task *task = tarn__config_task(config);
  const tarn__packed *target = &batch->target;
  batch->predictions =
      task->most_predictions ? task->most_predictions(config, target->rows, target->sentences) : target->rows;
  if (task->edits) batch->kept = *target;
}

tarn_status tarn__task_resolve(tarn_config *config, const tarn__task_keys *keys) {
  const tarn__task *task = tarn__config_task(config);
  if (config->model.segments > 0 && !task->segments)
    return keys->fail(keys->root, "model.segments", "is for an encoder alone, whose rows may have two sentences");
  if (config->model.decoder_start >= 0 && !task->source && task->task != TARN__LEARNS_LANGUAGE_MODEL)
    return keys->fail(keys->root, "model.decoder_start", "is for a decoder behind an encoder and for language models");
  if (!tarn__task_has(task, TARN__METRIC_BLEU)) {
    char text[TARN__TASK_TEXT];
    snprintf(text, sizeof text, "%s does not translate", task->model);
    if (config->valid.bleu && keys->given(keys->root, "valid.bleu")) return keys->fail(keys->root, "valid.bleu", text);
    config->valid.bleu = false;
  }
  if (isnan(config->train.label_smoothing)) config->train.label_smoothing = task->label_smoothing;
  TARN_TRY(task->resolve(config, keys));
  return check_metric(task, config->valid.metric, keys);
}
