// Advice from several folders of records.
#include "tarn/lab/advice.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "advice/advice_memory.h"
#include "train/plan_config.h"

const char *tarn_advice_decision_name(tarn_advice_decision decision) {
  static const char *const names[TARN_ADVICE_DECISIONS] = {"undecided", "better", "equivalent", "worse"};
  return (unsigned)decision < TARN_ADVICE_DECISIONS ? names[decision] : NULL;
}

void tarn_advice_default(tarn_advice_options *options) { *options = (tarn_advice_options){0}; }

tarn_status tarn__advice_keep(const char **text, struct tarn__advice_memory *m, tarn__buffer *buffer) {
  char *copy = NULL;
  tarn_status status = buffer->status;
  if (status == TARN_STATUS_OK && buffer->used > 0) status = tarn__arena_strdup(&m->arena, &copy, buffer->data);
  tarn__buffer_close(buffer);
  *text = copy;
  return status;
}

// The plan of the configuration as it stands, and the identity of its training data.
static tarn_status plan_given(struct tarn__advice_memory *m) {
  tarn__planned planned;
  TARN_TRY(tarn__plan_ranks(&planned, m->config, &m->options.plan, 1));
  m->public.planned = (tarn_advice_plan){.trained_parameters = planned.plan.trained_parameters,
                                         .frozen_parameters = planned.plan.frozen_parameters,
                                         .optimiser_bytes = planned.plan.optimiser_bytes,
                                         .total_bytes = planned.plan.total_bytes};
  if (planned.shard.pairs > 0) memcpy(m->data, planned.shard.hash, sizeof m->data);
  tarn__planned_close(&planned);
  return TARN_STATUS_OK;
}

static bool is_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

// Why no record is of use, in one line.
static tarn_status fail_unused(const struct tarn__advice_memory *m) {
  const tarn_advice *a = &m->public;
  TARN_REQUIRE(a->record_count > 0, USAGE, "there is no folder of records");
  const tarn_advice_record *first = &a->records[0];
  if (a->record_count == 1)
    return tarn__fail(TARN_STATUS_USAGE, "%s says nothing about a model of the task %s: %s", first->folder, a->task,
                      first->left_out);
  return tarn__fail(TARN_STATUS_USAGE, "none of the %zu folders says anything about a model of the task %s; %s: %s",
                    a->record_count, a->task, first->folder, first->left_out);
}

static tarn_status make(struct tarn__advice_memory *m) {
  const tarn_advice_options *o = &m->options;
  void *memory;
  char *copy;
  TARN_REQUIRE(o->config, USAGE, "there is no configuration to advise on");
  TARN_TRY(tarn_config_read(&m->config, o->config, o->overrides, o->override_count));
  TARN_TRY(tarn__advice_tree_open(&m->tree, m->config));
  m->public.task = tarn_task_word(tarn_config_task(m->config));
  TARN_TRY(tarn__advice_model(&m->public.model, m, m->config));
  TARN_TRY(plan_given(m));
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, o->folder_count, sizeof *m->records));
  m->records = memory;
  m->public.records = m->records;
  for (size_t i = 0; i < o->folder_count; i++) {
    if (is_file(o->folders[i])) continue;
    tarn_advice_record *record = &m->records[m->public.record_count++];
    TARN_TRY(tarn__arena_strdup(&m->arena, &copy, o->folders[i]));
    for (size_t length = strlen(copy); length > 1 && copy[length - 1] == '/';) copy[--length] = '\0';
    record->folder = copy;
    TARN_TRY(tarn__advice_record(record, m));
    m->public.used += record->left_out == NULL;
  }
  return m->public.used > 0 ? TARN_STATUS_OK : fail_unused(m);
}

tarn_status tarn_advice_make(tarn_advice **advice, const tarn_advice_options *options) {
  void *memory;
  *advice = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(struct tarn__advice_memory)));
  struct tarn__advice_memory *m = memory;
  m->options = *options;
  m->public.memory = m;
  *advice = &m->public;
  const tarn_status status = make(m);
  if (status != TARN_STATUS_OK) tarn_advice_close(advice);
  return status;
}

void tarn_advice_close(tarn_advice **advice) {
  if (!*advice) return;
  struct tarn__advice_memory *m = (*advice)->memory;
  tarn__advice_tree_close(&m->tree);
  tarn_config_close(&m->config);
  tarn__arena_close(&m->arena);
  tarn__free(m);
  *advice = NULL;
}
