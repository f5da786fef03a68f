// Opens run directories and groups them.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "config/config_part.h"
#include "config/config_seed.h"
#include "config/config_write.h"
#include "parts/block.h"
#include "report/results_memory.h"
#include "report/run_find.h"
#include "report/run_read.h"
#include "run/names.h"
#include "run/run_file.h"
#include "tarn/measure.h"
#include "tarn/text.h"

static const char *const state_names[TARN_RESULTS_STATES] = {"finished", "failed", "unfinished", "pending"};

const char *tarn_results_state_name(tarn_results_state state) {
  return (unsigned)state < TARN_RESULTS_STATES ? state_names[state] : "?";
}

// The change that takes a run's seed out of train.init_from, where the sweep has put it there. No text: it has not.
static void neutral_body(tarn__buffer *edit, const tarn_results_run *run, const char *body) {
  const char *path = run->config->train.init_from;
  tarn__buffer own = {0};
  if (!body || !path) return;
  tarn__config_place_seed(&own, body, run->seed);
  if (own.status == TARN_STATUS_OK && strcmp(own.data, path) == 0) tarn__config_init_from(edit, body);
  if (edit->status == TARN_STATUS_OK) edit->status = own.status;
  tarn__buffer_close(&own);
}

// A key that is equal for runs that differ only in their seed. `body`: train.init_from in the sweep, with {seed}; or
// NULL.
static tarn_status config_key(char key[TARN__HASH_TEXT], const tarn_results_run *run, const char *body) {
  const char *neutral[] = {"train.seed=", "train.seeds=", NULL};
  tarn_config *config = NULL;
  char *text = NULL;
  tarn__buffer edit = {0};
  neutral_body(&edit, run, body);
  neutral[2] = edit.data;
  tarn_status status = edit.status;
  if (status == TARN_STATUS_OK)
    status = tarn_config_parse(&config, run->config->name, run->config_text, strlen(run->config_text), neutral,
                               edit.data ? 3 : 2);
  tarn__buffer_close(&edit);
  if (status == TARN_STATUS_OK) status = tarn_config_write(config, &text);
  if (status == TARN_STATUS_OK) tarn__hash(key, text, strlen(text));
  tarn_config_text_close(&text);
  tarn_config_close(&config);
  return status;
}

tarn_status tarn__results_add_group(struct tarn__results_memory *m, const char *name, const char *changes,
                                    const char *equalized) {
  TARN_TRY(tarn__grow(&m->groups, &m->group_capacity, m->group_count + 1, sizeof *m->groups));
  m->groups[m->group_count++] =
      (tarn__results_group){.public = {.name = name, .changes = changes, .equalized = equalized}};
  return TARN_STATUS_OK;
}

// Whether a group has this name, or this name followed by a slash.
static bool is_taken(const struct tarn__results_memory *m, const char *name) {
  size_t length = strlen(name);
  for (size_t g = 0; g < m->group_count; g++) {
    const char *other = m->groups[g].public.name;
    if (strncmp(other, name, length) == 0 && (other[length] == '\0' || other[length] == '/')) return true;
  }
  return false;
}

tarn_status tarn__results_free_name(const char **name, struct tarn__results_memory *m, const char *path) {
  const char *wanted = *name;
  if (is_taken(m, wanted)) *name = path;
  for (int i = 2; is_taken(m, *name); i++) TARN_TRY(tarn__arena_print(name, &m->arena, "%s (%d)", wanted, i));
  return TARN_STATUS_OK;
}

// The name of a group whose first run this is: its folder, or the one above "seed-N".
static tarn_status group_name(const char **name, struct tarn__results_memory *m, size_t run) {
  char *text;
  TARN_TRY(tarn__arena_strdup(&m->arena, &text, m->real_paths[run]));
  char *slash = strrchr(text, '/');
  if (slash && strncmp(slash + 1, TARN__RUN_SEED, 5) == 0 && slash[6] &&
      strspn(slash + 6, "0123456789") == strlen(slash + 6)) {
    *slash = '\0';
    slash = strrchr(text, '/');
  }
  *name = slash && slash[1] ? slash + 1 : m->runs[run].path;
  return tarn__results_free_name(name, m, m->runs[run].path);
}

// Adds a run that has been read to its group.
static tarn_status place(struct tarn__results_memory *m, size_t index, size_t group) {
  tarn_results_run *run = &m->runs[index];
  char key[TARN__HASH_TEXT] = "";
  if (run->config) TARN_TRY(config_key(key, run, group < m->group_count ? m->groups[group].body : NULL));
  if (group == m->group_count) {
    for (group = 0; group < m->group_count && strcmp(m->groups[group].key, key) != 0;) group++;
    if (group == m->group_count) {
      const char *name;
      TARN_TRY(group_name(&name, m, index));
      TARN_TRY(tarn__results_add_group(m, name, NULL, NULL));
    }
  }
  tarn__results_group *g = &m->groups[group];
  if (run->config && !*g->key) memcpy(g->key, key, sizeof key);
  TARN_REQUIRE(!run->config || strcmp(g->key, key) == 0, DATA,
               "%s: its configuration is another one than that of the other runs of %s", run->path, g->public.name);
  run->group = group;
  for (size_t i = 0; i < g->count; i++) {
    const tarn_results_run *other = &m->runs[g->runs[i]];
    TARN_REQUIRE(other->seed != run->seed, USAGE, "%s and %s are runs of one configuration and one seed (%lld)",
                 other->path, run->path, (long long)run->seed);
  }
  TARN_TRY(tarn__grow(&g->runs, &g->capacity, g->count + 1, sizeof *g->runs));
  g->runs[g->count++] = index;
  return TARN_STATUS_OK;
}

static tarn_status real_path(const char **out, struct tarn__results_memory *m, const char *path) {
  char real[PATH_MAX];
  char *copy;
  TARN_REQUIRE(realpath(path, real), IO, "%s: it cannot be read", path);
  for (size_t i = 0; i < m->count; i++)
    TARN_REQUIRE(!m->real_paths[i] || strcmp(m->real_paths[i], real) != 0, USAGE, "%s is given twice", path);
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, real));
  *out = copy;
  return TARN_STATUS_OK;
}

tarn_status tarn__results_add_run(struct tarn__results_memory *m, const char *path, size_t group, int64_t seed) {
  const char *real = NULL;
  bool exists = tarn__run_is(path) || tarn__run_has_result(path);
  if (exists) TARN_TRY(real_path(&real, m, path));
  TARN_TRY(tarn__grow(&m->runs, &m->runs_capacity, m->count + 1, sizeof *m->runs));
  TARN_TRY(tarn__grow(&m->configs, &m->configs_capacity, m->count + 1, sizeof *m->configs));
  TARN_TRY(tarn__grow(&m->real_paths, &m->paths_capacity, m->count + 1, sizeof *m->real_paths));
  size_t index = m->count++;
  tarn_results_run *run = &m->runs[index];
  m->configs[index] = NULL;
  m->real_paths[index] = real;
  tarn__run_blank(run, path);
  run->seed = seed;
  if (exists) TARN_TRY(tarn__run_read(run, &m->configs[index], &m->arena));
  TARN_REQUIRE(seed < 0 || run->seed == seed, DATA, "%s: its configuration has the seed %lld", path,
               (long long)run->seed);
  return place(m, index, group);
}

// --- layers of a group, for drawing

static bool is_partly_frozen(const tarn_kind *kind) {
  const tarn__mixer_entry *mixer = tarn__mixer_of(kind);
  return mixer->partly_frozen && mixer->partly_frozen(kind->mixer.keys);
}

static tarn_status describe_stack(tarn_results_stack *out, const tarn_config *config, const tarn_stack *stack,
                                  tarn__arena *arena) {
  void *memory;
  char *pattern;
  char *copy = NULL;
  if (stack->count == 0) return TARN_STATUS_OK;  // a language model has no encoder
  TARN_TRY(tarn__config_pattern(config, stack, &pattern));
  tarn_status status = tarn__arena_strdup(arena, &copy, pattern);
  tarn_config_text_close(&pattern);
  TARN_TRY(status);
  TARN_TRY(tarn__arena_alloc(arena, &memory, (size_t)stack->count, sizeof *out->layers));
  tarn_results_layer *layers = memory;
  *out = (tarn_results_stack){.layers = layers, .count = stack->count, .pattern = copy};
  for (int32_t i = 0; i < stack->count; i++) {
    const tarn_layer *layer = &stack->layers[i];
    const tarn_kind *kind = &config->kinds[layer->kind];
    layers[i] = (tarn_results_layer){.kind = kind->name,
                                     .set = layer->set,
                                     .mixer = tarn__part_word(&kind->mixer),
                                     .frozen = kind->frozen != TARN_FROZEN_NO,
                                     .matrices = kind->frozen == TARN_FROZEN_MATRICES,
                                     .partly_frozen = kind->frozen == TARN_FROZEN_NO && is_partly_frozen(kind),
                                     .first = layer->first,
                                     .empty = tarn__mixer_of(kind)->empty};
    out->frozen += layers[i].frozen;
    out->trained += !layers[i].frozen;
  }
  for (int32_t i = 0; i < stack->count; i++) {
    if (layers[i].first == i) continue;
    layers[i].shared = layers[layers[i].first].shared = true;
  }
  return TARN_STATUS_OK;
}

static void sort_by_seed(tarn__results_group *g, const tarn_results_run *runs) {
  for (size_t i = 1; i < g->count; i++) {
    size_t moved = g->runs[i];
    size_t j = i;
    for (; j > 0 && runs[g->runs[j - 1]].seed > runs[moved].seed; j--) g->runs[j] = g->runs[j - 1];
    g->runs[j] = moved;
  }
}

static tarn_status complete_group(struct tarn__results_memory *m, tarn_results_group *out, tarn__results_group *g) {
  void *memory;
  sort_by_seed(g, m->runs);
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, g->count, sizeof *g->runs));
  memcpy(memory, g->runs, g->count * sizeof *g->runs);
  *out = g->public;
  out->runs = memory;
  out->run_count = g->count;
  for (size_t i = 0; i < g->count; i++) {
    const tarn_results_run *run = &m->runs[g->runs[i]];
    out->finished += run->state == TARN_RESULTS_FINISHED;
    out->failed += run->state == TARN_RESULTS_FAILED;
    if (!run->config || out->decoder.layers) continue;
    TARN_TRY(describe_stack(&out->encoder, run->config, &run->config->encoder, &m->arena));
    TARN_TRY(describe_stack(&out->decoder, run->config, &run->config->decoder, &m->arena));
    out->layer_drop = fmax(run->config->encoder.layerdrop, run->config->decoder.layerdrop);
  }
  return TARN_STATUS_OK;
}

static tarn_status complete(struct tarn__results_memory *m) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, m->group_count, sizeof(tarn_results_group)));
  tarn_results_group *groups = memory;
  for (size_t g = 0; g < m->group_count; g++) TARN_TRY(complete_group(m, &groups[g], &m->groups[g]));
  if (m->public.baseline == SIZE_MAX) m->public.baseline = m->group_count;
  m->public.runs = m->runs;
  m->public.run_count = m->count;
  m->public.groups = groups;
  m->public.group_count = m->group_count;
  return tarn__results_choose(m, groups);
}

static tarn_status collect(struct tarn__results_memory *m, tarn__found_list *found, const char *const *paths,
                           size_t count) {
  for (size_t i = 0; i < count; i++) TARN_TRY(tarn__run_find(found, paths[i], &m->arena));
  for (size_t i = 0; i < found->count; i++) {
    const tarn__found *item = &found->items[i];
    if (item->sweep)
      TARN_TRY(tarn__results_add_sweep(m, item->path, found->count == 1));
    else
      TARN_TRY(tarn__results_add_run(m, item->path, m->group_count, -1));
  }
  return complete(m);
}

tarn_status tarn_results_open(tarn_results **results, const char *const *paths, size_t count) {
  *results = NULL;
  void *memory;
  TARN_REQUIRE(count > 0, USAGE, "there is no run directory to read");
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(struct tarn__results_memory)));
  struct tarn__results_memory *m = memory;
  m->public.memory = m;
  m->public.baseline = SIZE_MAX;
  tarn__found_list found = {0};
  tarn_status status = collect(m, &found, paths, count);
  tarn__free(found.items);
  *results = &m->public;
  if (status != TARN_STATUS_OK) tarn_results_close(results);
  return status;
}

void tarn_results_close(tarn_results **results) {
  if (!*results) return;
  struct tarn__results_memory *m = (*results)->memory;
  for (size_t i = 0; i < m->count; i++) tarn_config_close(&m->configs[i]);
  for (size_t g = 0; g < m->group_count; g++) tarn__free(m->groups[g].runs);
  tarn__free(m->groups);
  tarn__free(m->runs);
  tarn__free(m->configs);
  tarn__free(m->real_paths);
  tarn__arena_close(&m->arena);
  tarn__free(m);
  *results = NULL;
}

const tarn_results_series *tarn_results_find(const tarn_results_run *run, const char *name) {
  char full[256];
  for (size_t i = 0; i < run->series_count; i++)
    if (strcmp(run->series[i].name, name) == 0) return &run->series[i];
  const bool fits = snprintf(full, sizeof full, "valid/%s", name) < (int)sizeof full;
  for (size_t i = 0; fits && i < run->series_count; i++)
    if (strcmp(run->series[i].name, full) == 0) return &run->series[i];
  for (size_t i = 0; i < run->series_count; i++)
    if (tarn_measure_same_name(run->series[i].name, name)) return &run->series[i];
  return NULL;
}

// A metric that only some of the finished runs have would be refused later.
static bool is_common(const tarn_results *results, const char *name) {
  for (size_t i = 0; i < results->run_count; i++)
    if (results->runs[i].state == TARN_RESULTS_FINISHED && !tarn_results_find(&results->runs[i], name)) return false;
  return true;
}

static tarn_status fail_unknown(const tarn_results *results, const char *name) {
  const char *names[256];
  size_t count = 0;
  for (size_t i = 0; i < results->run_count; i++)
    for (size_t s = 0; s < results->runs[i].series_count; s++) {
      const char *known = results->runs[i].series[s].name;
      if (count + 2 > sizeof names / sizeof *names) break;
      if (!is_common(results, known)) continue;
      names[count++] = known;
      if (strncmp(known, "valid/", 6) == 0) names[count++] = known + 6;
    }
  const char *nearest = tarn_text_nearest(name, names, count);
  if (nearest) return tarn__fail(TARN_STATUS_USAGE, "no run has a score \"%s\"; did you mean \"%s\"?", name, nearest);
  return tarn__fail(TARN_STATUS_USAGE, "no run has a score \"%s\"; scores are such as bleu, loss, ppl, train/loss",
                    name);
}

tarn_status tarn_results_check_name(const tarn_results *results, const char *name) {
  for (size_t i = 0; i < results->run_count; i++)
    if (tarn_results_find(&results->runs[i], name)) return TARN_STATUS_OK;
  return fail_unknown(results, name);
}
