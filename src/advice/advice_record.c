// A record: its verdicts, and what its variants cost, as results and their comparison have them.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "advice/advice_memory.h"
#include "base/file.h"
#include "config/config_word.h"
#include "config/config_write.h"
#include "run/names.h"
#include "run/run_file.h"
#include "significance/sequential.h"

// What a record is read into, for the time of the reading.
typedef struct reading {
  tarn_results *results;
  tarn_results_table *table;
  const tarn_results_run *baseline;  // its first finished run
} reading;

static const tarn_results_run *first_finished(const tarn_results *r, size_t group) {
  const tarn_results_group *g = &r->groups[group];
  for (size_t i = 0; i < g->run_count; i++)
    if (r->runs[g->runs[i]].state == TARN_RESULTS_FINISHED) return &r->runs[g->runs[i]];
  return NULL;
}

// Of a variant the run with the baseline's seed where there is one, so that paths with the seed are equal.
static const tarn_results_run *beside(const reading *w, size_t group) {
  const tarn_results_group *g = &w->results->groups[group];
  for (size_t i = 0; i < g->run_count; i++) {
    const tarn_results_run *run = &w->results->runs[g->runs[i]];
    if (run->state == TARN_RESULTS_FINISHED && run->seed == w->baseline->seed) return run;
  }
  return first_finished(w->results, group);
}

static tarn_status pattern(const char **out, int32_t *layers, struct tarn__advice_memory *m, const tarn_config *config,
                           const tarn_stack *stack) {
  char *text, *copy = NULL;
  *layers = stack->count;
  if (stack->count == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__config_pattern(config, stack, &text));
  const tarn_status status = tarn__arena_strdup(&m->arena, &copy, text);
  tarn_config_text_close(&text);
  *out = copy;
  return status;
}

tarn_status tarn__advice_model(tarn_advice_model *model, struct tarn__advice_memory *m, const tarn_config *config) {
  char *copy;
  *model = (tarn_advice_model){.d_model = config->model.d_model,
                               .norm = tarn__config_word("model.norm", (int)config->model.norm)};
  TARN_TRY(pattern(&model->encoder, &model->encoder_layers, m, config, &config->encoder));
  TARN_TRY(pattern(&model->decoder, &model->decoder_layers, m, config, &config->decoder));
  if (!config->data.train) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, config->data.train));
  model->data = copy;
  return TARN_STATUS_OK;
}

// --- costs

// A number, without the scales of blocks and vectors in fp32.
static const double moment_bytes[TARN_MOMENTS_COUNT] = {
    [TARN_MOMENTS_FP32] = 4, [TARN_MOMENTS_BF16] = 2, [TARN_MOMENTS_FP8] = 1};

static tarn_status cost(tarn_advice_form *form, const reading *w, size_t group, const tarn_results_run *run) {
  const tarn_config_train *train = &run->config->train;
  form->parameters = run->parameters;
  form->trained_parameters = run->trained_parameters;
  form->frozen_parameters = run->frozen_parameters;
  form->frozen_share = NAN;
  form->trained_share = NAN;
  form->optimiser_bytes = NAN;
  if (run->trained_parameters >= 0 && w->baseline->trained_parameters > 0)
    form->trained_share = (double)run->trained_parameters / (double)w->baseline->trained_parameters;
  if (run->frozen_parameters >= 0 && run->parameters > 0)
    form->frozen_share = (double)run->frozen_parameters / (double)run->parameters;
  if (train->optimiser == TARN_OPTIMISER_RIDGE)
    form->optimiser_bytes = 0;
  else if (run->trained_parameters >= 0)
    form->optimiser_bytes = 2.0 * moment_bytes[train->moments] * (double)run->trained_parameters;
  return tarn__advice_update_share(&form->update_share, w->results, group);
}

// --- verdicts

// What the record judges: the measure of its design, else its test, else the best validation.
static int measure_of(const tarn_results_table *t) {
  static const int order[] = {TARN_RESULTS_JUDGED_TEST_BLEU, TARN_RESULTS_JUDGED_TEST_BLIMP,
                              TARN_RESULTS_JUDGED_TEST_SCORE, TARN_RESULTS_JUDGED_BEST};
  if (t->sequential) return (int)t->sequential_measure;
  for (size_t i = 0; i < sizeof order / sizeof *order; i++)
    if (t->judged[order[i]].rows > 0) return order[i];
  return TARN_RESULTS_JUDGED_BEST;
}

static tarn_status name_measure(tarn_advice_record *record, struct tarn__advice_memory *m, const tarn_results_table *t,
                                int judged) {
  const char *metric = strncmp(t->metric, "valid/", 6) == 0 ? t->metric + 6 : t->metric;
  const tarn_measure *logged = tarn_measure_find(t->metric);
  char *key;
  TARN_TRY(tarn__arena_strdup(&m->arena, &key, t->judged[judged].key));
  record->measure = key;
  record->less = t->judged[judged].less;
  record->digits = judged < TARN_RESULTS_JUDGED_TEST_SCORE ? 2 : logged ? logged->digits : 2;
  switch (judged) {
    case TARN_RESULTS_JUDGED_TEST_BLEU:
      record->title = "test BLEU";
      return TARN_STATUS_OK;
    case TARN_RESULTS_JUDGED_TEST_BLIMP:
      record->title = "BLiMP %";
      return TARN_STATUS_OK;
    case TARN_RESULTS_JUDGED_TEST_SCORE:
      record->digits = t->test_measure ? t->test_measure->digits : 2;
      return tarn__arena_print(&record->title, &m->arena, "test %s", t->test_measure ? t->test_measure->word : "score");
    case TARN_RESULTS_JUDGED_AUCC:
      return tarn__arena_print(&record->title, &m->arena, "area under %s", metric);
    default:
      return tarn__arena_print(&record->title, &m->arena, "best %s", metric);
  }
}

static tarn_status judge_sequential(tarn_advice_form *form, struct tarn__advice_memory *m,
                                    const tarn_sequential_verdict *v, const tarn_sequential_design *design) {
  char words[TARN_SEQUENTIAL_TEXT], *copy;
  tarn_sequential_words(words, v, design);
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, words));
  form->words = copy;
  form->difference = v->difference;
  form->low = v->low;
  form->high = v->high;
  form->p = v->looks > 0 ? v->p : NAN;
  form->p_equal = v->looks > 0 ? v->p_equal : NAN;
  // What is worse by less than the margin is equivalent within it: either is a verdict of its own.
  const bool equal = v->decision == TARN_SEQUENTIAL_EQUIVALENT ||
                     (v->decision == TARN_SEQUENTIAL_WORSE && design->equivalence > 0 && v->p_equal <= design->alpha);
  form->decision = v->decision == TARN_SEQUENTIAL_BETTER  ? TARN_ADVICE_BETTER
                   : equal                                ? TARN_ADVICE_EQUIVALENT
                   : v->decision == TARN_SEQUENTIAL_WORSE ? TARN_ADVICE_WORSE
                                                          : TARN_ADVICE_UNDECIDED;
  return TARN_STATUS_OK;
}

static tarn_status judge(tarn_advice_form *form, struct tarn__advice_memory *m, const reading *w, size_t row) {
  const tarn_results_table *t = w->table;
  if (t->sequential) return judge_sequential(form, m, &t->sequential[row], &w->results->sequential);
  const tarn_results_verdict *v = &t->judged[measure_of(t)].verdicts[row];
  form->difference = v->difference;
  form->low = v->low;
  form->high = v->high;
  form->p = v->p;
  form->p_equal = NAN;
  // One model of either is no verdict about the configurations.
  const bool told = v->basis == TARN_RESULTS_CONFIGURATIONS;
  form->decision = told && v->decision == TARN_RESULTS_BETTER  ? TARN_ADVICE_BETTER
                   : told && v->decision == TARN_RESULTS_WORSE ? TARN_ADVICE_WORSE
                                                               : TARN_ADVICE_UNDECIDED;
  char *copy;
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, v->words));
  form->words = copy;
  return TARN_STATUS_OK;
}

// --- forms

// Of "kinds.L.ffn=344 equalize=parameters value=... base=..." the keys of the description.
static tarn_status changed_keys(const char **out, struct tarn__advice_memory *m, const char *text) {
  tarn__buffer keys = {0};
  *out = NULL;
  for (const char *at = text; at && *at;) {
    const size_t length = strcspn(at, " ");
    if (memchr(at, '.', strcspn(at, "= ")))
      tarn__buffer_format(&keys, "%s%.*s", keys.used ? ", " : "", (int)length, at);
    at += length + (at[length] == ' ');
  }
  return tarn__advice_keep(out, m, &keys);
}

static tarn_status describe(tarn_advice_form *form, struct tarn__advice_memory *m, const tarn_config *config,
                            const tarn_config *base) {
  tarn__advice_pair pair = {.config = config, .base = base, .equalized = form->equalized};
  tarn_status status = tarn__advice_tree_open(&pair.tree, config);
  if (status == TARN_STATUS_OK) status = tarn__advice_tree_open(&pair.base_tree, base);
  if (status == TARN_STATUS_OK) status = tarn__advice_describe(form, m, &pair);
  if (status == TARN_STATUS_OK) status = tarn__advice_apply(form, m, &pair);
  tarn__advice_tree_close(&pair.tree);
  tarn__advice_tree_close(&pair.base_tree);
  return status;
}

static tarn_status take_form(tarn_advice_form *form, struct tarn__advice_memory *m, const reading *w, size_t group,
                             const tarn_results_run *run) {
  const tarn_results_group *g = &w->results->groups[group];
  char *copy;
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, g->name));
  form->variant = copy;
  form->runs = g->finished;
  TARN_TRY(changed_keys(&form->equalized, m, g->equalized));
  TARN_TRY(cost(form, w, group, run));
  TARN_TRY(judge(form, m, w, group));
  return describe(form, m, run->config, w->baseline->config);
}

static tarn_status take_forms(tarn_advice_record *record, struct tarn__advice_memory *m, const reading *w) {
  const tarn_results *r = w->results;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, r->group_count, sizeof(tarn_advice_form)));
  tarn_advice_form *forms = memory;
  record->forms = forms;
  for (size_t g = 0; g < r->group_count; g++) {
    const tarn_results_run *run = beside(w, g);
    if (g == r->baseline || !run || !tarn__advice_is_form(run->config, w->baseline->config)) continue;
    TARN_TRY(take_form(&forms[record->form_count], m, w, g, run));
    record->equalized |= r->groups[g].equalized != NULL;
    record->form_count++;
  }
  return TARN_STATUS_OK;
}

static double mean_of(const tarn_results *r, bool epochs) {
  const tarn_results_group *g = &r->groups[r->baseline];
  double sum = 0;
  for (size_t i = 0; i < g->run_count; i++) {
    const tarn_results_run *run = &r->runs[g->runs[i]];
    if (run->state == TARN_RESULTS_FINISHED) sum += epochs ? run->epoch : (double)run->step;
  }
  return sum / (double)g->finished;
}

static tarn_status take_record(tarn_advice_record *record, struct tarn__advice_memory *m, const reading *w) {
  const tarn_results *r = w->results;
  const tarn_results_table *t = w->table;
  char *copy;
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, r->groups[r->baseline].name));
  record->baseline = copy;
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, t->clock ? t->clock : "unknown"));
  record->clock = copy;
  TARN_TRY(tarn__advice_model(&record->model, m, w->baseline->config));
  record->baseline_freezes = tarn__advice_freezes(w->baseline->config);
  record->updates = mean_of(r, false);
  record->epochs = mean_of(r, true);
  record->sequential = t->sequential != NULL;
  record->alpha = record->sequential ? r->sequential.alpha : 0.05;
  record->margin = record->sequential ? r->sequential.equivalence : 0;
  TARN_TRY(name_measure(record, m, t, measure_of(t)));
  TARN_TRY(take_forms(record, m, w));
  TARN_TRY(tarn__advice_distance(record, m, w->baseline->data_hash));
  return tarn__advice_recommend(record, m);
}

// A record whose files were changed by hand is no evidence.
static tarn_status check_runs(const tarn_results *r) {
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    const char *why = run->log_changed ? run->log_changed : run->config_changed;
    TARN_REQUIRE(!why, DATA, "%s/%s is not that of the training: %s", run->path,
                 run->log_changed ? TARN__RUN_LOG : TARN__RUN_CONFIG, why);
  }
  return TARN_STATUS_OK;
}

// Reads the runs, and compares them unless the record is of no use.
static tarn_status read_record(tarn_advice_record *record, struct tarn__advice_memory *m, reading *w) {
  TARN_TRY(tarn_results_open(&w->results, &record->folder, 1));
  const tarn_results *r = w->results;
  size_t finished = 0;
  TARN_REQUIRE(r->baseline < r->group_count, USAGE,
               "%s/" TARN__SWEEP_JSON ": it has no \"baseline\", with which its variants would be compared",
               record->folder);
  TARN_TRY(check_runs(r));
  for (size_t g = 0; g < r->group_count; g++) finished += r->groups[g].finished;
  w->baseline = first_finished(r, r->baseline);
  if (finished == 0) return tarn__arena_print(&record->left_out, &m->arena, "none of its runs is finished");
  if (!w->baseline)
    return tarn__arena_print(&record->left_out, &m->arena, "no run of its baseline %s is finished",
                             r->groups[r->baseline].name);
  const int task = tarn_config_task(w->baseline->config);
  if (task != tarn_config_task(m->config))
    return tarn__arena_print(&record->left_out, &m->arena, "its task is %s", tarn_task_word(task));
  // Looks at such a measure chose its seeds, so that other verdicts on them would not hold at their level.
  if (r->sequential.max_seeds > 0 && tarn__sequential_is_neutral(&r->sequential))
    return tarn__arena_print(&record->left_out, &m->arena, "its design is about %s, by which no form is better",
                             r->sequential.measure);
  TARN_TRY(tarn_results_compare(&w->table, r, NULL));
  return take_record(record, m, w);
}

tarn_status tarn__advice_record(tarn_advice_record *record, struct tarn__advice_memory *m) {
  reading w = {0};
  char path[PATH_MAX];
  TARN_REQUIRE(tarn__file_exists(record->folder), IO, "%s: it cannot be found", record->folder);
  TARN_TRY(tarn__path_join(path, record->folder, TARN__SWEEP_JSON));
  if (!tarn__file_exists(path)) {
    TARN_TRY(tarn__path_join(path, record->folder, TARN__SWEEP_FILE));
    return tarn__arena_print(&record->left_out, &m->arena, "%s",
                             tarn__file_exists(path) ? "none of its runs has begun"
                                                     : "there is no record in it: it has no " TARN__SWEEP_JSON
                                                       ", which names the baseline (tarn record makes one)");
  }
  const tarn_status status = read_record(record, m, &w);
  tarn_results_table_close(&w.table);
  tarn_results_close(&w.results);
  return status;
}
