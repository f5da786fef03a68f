// Opening of a sweep: resolves the configurations of the variants, equalizes, plans and compares them; then inspects
// the folder.
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/threads.h"
#include "data/shard.h"
#include "device/devices.h"
#include "run/file_kind.h"
#include "run/names.h"
#include "sweep/spec.h"
#include "tarn/lab/dynamics.h"
#include "tarn/score.h"
#include "task/task.h"

void tarn_sweep_default(tarn_sweep_options *options) { *options = (tarn_sweep_options){0}; }

const char *tarn_sweep_state_name(tarn_sweep_state state) {
  static const char *const names[] = {"waiting", "begun", "trained", "finished", "failed"};
  return (unsigned)state < sizeof names / sizeof *names ? names[state] : NULL;
}

const char *tarn_sweep_launcher_name(tarn_sweep_launcher launcher) {
  static const char *const names[] = {"local", "slurm", "mpi"};
  return (unsigned)launcher < TARN_SWEEP_LAUNCHER_COUNT ? names[launcher] : NULL;
}

static tarn_status make_plan(const tarn_config *config, tarn_plan *plan) {
  tarn_plan_options options = {0};
  TARN_TRY(tarn_plan_make(plan, config, &options));
  tarn_plan_close(plan);  // only the parts
  return TARN_STATUS_OK;
}

static tarn_status resolve(tarn_sweep *sweep, size_t index, const tarn_plan *base) {
  struct tarn__sweep_memory *m = sweep->memory;
  tarn_sweep_variant *variant = &m->variants[index];
  if (variant->equalize != TARN_SWEEP_EQUALIZE_NO) TARN_TRY(tarn__sweep_equalize(sweep, index, base));
  TARN_TRY(tarn__sweep_config(sweep, &m->configs[index], &m->edits[index], sweep->seeds[0]));
  TARN_TRY(tarn__sweep_body(sweep, &m->bodies[index], &m->edits[index]));
  variant->config = m->configs[index];
  tarn_plan_options options = {0};
  TARN_TRY(tarn_plan_make(&variant->plan, variant->config, &options));
  return TARN_STATUS_OK;
}

static tarn_status base_plan(const tarn_sweep *sweep, tarn_plan *plan) {
  tarn_config *config;
  *plan = (tarn_plan){0};
  bool needed = false;
  for (size_t i = 0; i < sweep->variant_count; i++)
    needed = needed || sweep->variants[i].equalize != TARN_SWEEP_EQUALIZE_NO;
  if (!needed) return TARN_STATUS_OK;
  TARN_TRY(tarn__sweep_config(sweep, &config, NULL, sweep->seeds[0]));
  tarn_status status = make_plan(config, plan);
  tarn_config_close(&config);
  return status;
}

// Two names for one configuration would be compared as different ones.
static tarn_status check_collisions(const tarn_sweep *sweep) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, sweep->variant_count, sizeof(char *)));
  char **texts = memory;
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < sweep->variant_count && status == TARN_STATUS_OK; i++) {
    status = tarn_config_write(sweep->variants[i].config, &texts[i]);
    for (size_t j = 0; j < i && status == TARN_STATUS_OK; j++) {
      if (strcmp(texts[i], texts[j]) == 0)
        status = tarn__fail(TARN_STATUS_USAGE, "the variants %s and %s are the same configuration",
                            sweep->variants[j].name, sweep->variants[i].name);
    }
  }
  for (size_t i = 0; i < sweep->variant_count; i++) tarn_config_text_close(&texts[i]);
  tarn__free(texts);
  return status;
}

// Whether a run with a seed beyond those of the file is one of this sweep: it was begun, or is asked for.
static bool is_taken(const tarn_sweep *sweep, const tarn_sweep_run *run, const char *only) {
  char name[TARN_SWEEP_NAME + 32];
  snprintf(name, sizeof name, TARN__RUN_SEED_PATH, sweep->variants[run->variant].name, (long long)run->seed);
  return (only && strcmp(name, only) == 0) || (run->path && tarn__file_exists(run->path));
}

static tarn_status list_runs(tarn_sweep *sweep, const char *only) {
  struct tarn__sweep_memory *m = sweep->memory;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, sweep->variant_count * sweep->seed_count, sizeof *m->runs));
  m->runs = memory;
  sweep->runs = m->runs;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, sweep->variant_count * sweep->seed_count, sizeof *m->offsets));
  m->offsets = memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, sweep->variant_count * sweep->seed_count, sizeof *m->order));
  m->order = memory;
  for (size_t s = 0; s < sweep->seed_count; s++) {
    for (size_t v = 0; v < sweep->variant_count; v++) {
      tarn_sweep_run *run = &m->runs[sweep->run_count];
      *run = (tarn_sweep_run){
          .variant = v, .seed = sweep->seeds[s], .loss = NAN, .test_bleu = NAN, .test_blimp = NAN, .idle = NAN};
      for (int k = 0; k < TARN_MEASURES; k++) run->valid[k] = run->test[k] = NAN;
      if (sweep->folder)
        TARN_TRY(tarn__sweep_text(sweep, &run->path, "%s/" TARN__RUN_SEED_PATH, sweep->folder, sweep->variants[v].name,
                                  (long long)run->seed));
      if (s >= sweep->first_seeds && !is_taken(sweep, run, only)) continue;
      sweep->run_count++;
      if (sweep->folder) TARN_TRY(tarn__sweep_look(sweep, run));
    }
  }
  return TARN_STATUS_OK;
}

static bool same_path(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

// The plan does not need the data; a training does.
static tarn_status check_shard(const char *key, const char *path) {
  tarn__shard shard = {0};
  if (!path) return TARN_STATUS_OK;
  tarn_status status = tarn__shard_open(&shard, path);
  tarn__shard_close(&shard);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: ", key);
}

static tarn_status check_data(const tarn_sweep *sweep) {
  for (size_t i = 0; i < sweep->variant_count; i++) {
    const tarn_config_data *data = &sweep->variants[i].config->data;
    bool known = false;
    for (size_t j = 0; j < i && !known; j++) {
      const tarn_config_data *other = &sweep->variants[j].config->data;
      known = same_path(data->train, other->train) && same_path(data->valid, other->valid);
    }
    if (known) continue;
    tarn_status status = check_shard("data.train", data->train);
    if (status == TARN_STATUS_OK) status = check_shard("data.valid", data->valid);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "variant %s: ", sweep->variants[i].name);
  }
  return TARN_STATUS_OK;
}

// Exponents over the trainings.
static tarn_status check_dynamics(const tarn_sweep *sweep) {
  const char *measure = sweep->sequential.measure;
  for (size_t i = 0; i < sweep->variant_count; i++) {
    const tarn_config *config = sweep->variants[i].config;
    const char *input = config->dynamics.input;
    tarn_status status = TARN_STATUS_OK;
    if (!input && measure && strcmp(measure, "exponent") == 0)
      status = tarn__fail(TARN_STATUS_USAGE, "sequential.measure: there are no exponents without dynamics.input");
    if (input && !tarn__file_exists(input))
      status = tarn__fail(TARN_STATUS_IO, "dynamics.input: there is no file %s", input);
    if (status == TARN_STATUS_OK) status = tarn_dynamics_check(config);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "variant %s: ", sweep->variants[i].name);
  }
  return TARN_STATUS_OK;
}

static tarn_status check_pairs(const char *path) {
  size_t files = 0;
  DIR *folder = opendir(path);
  TARN_REQUIRE(folder, IO, "test: blimp: %s: cannot read the folder: %s", path, strerror(errno));
  for (const struct dirent *entry; (entry = readdir(folder));) {
    const char *dot = strrchr(entry->d_name, '.');
    files += dot && strcmp(dot, ".jsonl") == 0;
  }
  closedir(folder);
  TARN_REQUIRE(files > 0, DATA, "test: blimp: %s: there is no file *.jsonl of minimal pairs", path);
  return TARN_STATUS_OK;
}

static tarn_status check_labelled(const char *path) {
  tarn__shard shard = {0};
  tarn_status status = tarn__shard_open(&shard, path);
  if (status == TARN_STATUS_OK && !shard.classes && !shard.numbers)
    status = tarn__fail(TARN_STATUS_DATA, "%s: the shard has no labels (tarn prepare --labels)", path);
  tarn__shard_close(&shard);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "test: labelled: ");
}

static tarn_status check_text(const char *path) {
  TARN_REQUIRE(access(path, R_OK) == 0, IO, "test: text: %s: cannot be read: %s", path, strerror(errno));
  return TARN_STATUS_OK;
}

// Detects now what would end every run hours later.
static tarn_status check_test(const tarn_sweep *sweep) {
  tarn_score_lines source = {0};
  tarn_score_lines reference = {0};
  if (!sweep->test_source && !sweep->test_blimp && !sweep->test_labelled && !sweep->test_text) return TARN_STATUS_OK;
  for (size_t i = 0; i < sweep->variant_count; i++) {
    const tarn__task *task = tarn__config_task(sweep->variants[i].config);
    TARN_REQUIRE(!sweep->test_source || task->uses >> TARN__USE_TRANSLATE & 1u, USAGE,
                 "test: the variant %s is %s, which does not translate", sweep->variants[i].name, task->model);
    char text[2 * TARN__TASK_TEXT];
    TARN_REQUIRE(sweep->test_beam == 0 || !sweep->test_source || tarn__decoding_has(text, task, "beam"), USAGE,
                 "test.beam: variant %s: %s", sweep->variants[i].name, text);
    TARN_REQUIRE(!sweep->test_blimp || task->uses >> TARN__USE_SCORE_TEXT & 1u, USAGE,
                 "test: the variant %s is %s, and blimp is for language models", sweep->variants[i].name, task->model);
    TARN_REQUIRE(!sweep->test_text || task->uses >> TARN__USE_SCORE_TEXT & 1u, USAGE,
                 "test: the variant %s is %s, and text is for language models", sweep->variants[i].name, task->model);
    TARN_REQUIRE(!sweep->test_labelled || task->uses >> TARN__USE_LABEL & 1u, USAGE,
                 "test: the variant %s is %s, and labelled is for models that tell labels", sweep->variants[i].name,
                 task->model);
  }
  if (sweep->test_blimp) return check_pairs(sweep->test_blimp);
  if (sweep->test_labelled) return check_labelled(sweep->test_labelled);
  if (sweep->test_text) return check_text(sweep->test_text);
  tarn_status status = tarn_score_lines_open(&source, sweep->test_source);
  if (status == TARN_STATUS_OK) status = tarn_score_lines_open(&reference, sweep->test_reference);
  if (status == TARN_STATUS_OK) status = tarn_score_lines_match(&source, &reference);
  tarn_score_lines_close(&source);
  tarn_score_lines_close(&reference);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "test: ");
}

static void warn(const tarn_sweep *sweep) {
  tarn__threads_set(0);
  int cores = tarn__threads();
  size_t most = 0;
  const tarn__device *device;
  const bool known = tarn__device_default(&device, TARN__F32) == TARN_STATUS_OK;
  const size_t available = known ? tarn__device_available(device) : 0;
  int64_t together = sweep->parallel < (int64_t)sweep->run_count ? sweep->parallel : (int64_t)sweep->run_count;
  if (together * sweep->threads > cores)
    tarn__log(TARN_LOG_WARNING,
              "%lld runs of %lld threads at a time on %d processors: they will wait for each other, and their times "
              "will say little",
              (long long)together, (long long)sweep->threads, cores);
  for (size_t i = 0; i < sweep->variant_count; i++)
    if (sweep->variants[i].plan.total_bytes > most) most = sweep->variants[i].plan.total_bytes;
  if (available && most * (size_t)together > available)
    tarn__log(TARN_LOG_WARNING, "%lld runs at a time may need %.0f MB of memory, and %.0f MB are available",
              (long long)together, (double)most * (double)together / 1e6, (double)available / 1e6);
}

static tarn_status open_parts(tarn_sweep *sweep, const tarn_sweep_options *options) {
  tarn_plan base;
  const char *file = options->file;
  TARN_REQUIRE(file || options->folder, USAGE, "a sweep needs a file or the folder of a sweep that was begun");
  if (options->folder) TARN_TRY(tarn__sweep_text(sweep, &sweep->folder, "%s", options->folder));
  if (!file) {
    TARN_TRY(tarn__sweep_text(sweep, &file, "%s/" TARN__SWEEP_FILE, options->folder));
    TARN_REQUIRE(tarn__file_exists(file), USAGE, "%s: no sweep to go on with: there is no " TARN__SWEEP_FILE,
                 options->folder);
  }
  tarn_status status = tarn__sweep_read(sweep, file);
  if (status != TARN_STATUS_OK) return tarn__file_kind_explain(status, file, TARN__FILE_KIND_SWEEP_CONFIG);
  status = base_plan(sweep, &base);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", file);
  for (size_t i = 0; i < sweep->variant_count; i++) {
    status = resolve(sweep, i, &base);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: variant %s: ", file, sweep->variants[i].name);
  }
  status = check_collisions(sweep);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", file);
  status = check_data(sweep);
  if (status == TARN_STATUS_OK) status = check_dynamics(sweep);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", file);
  TARN_TRY(check_test(sweep));
  if (sweep->folder) TARN_TRY(tarn__sweep_check_folder(sweep));
  TARN_TRY(list_runs(sweep, options->only));
  TARN_TRY(tarn__sweep_find_reuse(sweep, options->reuse, options->reuse_count));
  warn(sweep);
  return TARN_STATUS_OK;
}

static tarn_status new_sweep(tarn_sweep **sweep) {
  void *memory;
  *sweep = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **sweep));
  tarn_sweep *s = memory;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *s->memory);
  if (status != TARN_STATUS_OK) {
    tarn__free(s);
    return status;
  }
  s->memory = memory;
  *sweep = s;
  return TARN_STATUS_OK;
}

tarn_status tarn_sweep_open(tarn_sweep **sweep, const tarn_sweep_options *options) {
  TARN_TRY(new_sweep(sweep));
  const tarn_status status = open_parts(*sweep, options);
  if (status != TARN_STATUS_OK) tarn_sweep_close(sweep);
  return status;
}

static tarn_status outline(tarn_sweep *sweep, const char *file, const char *folder) {
  sweep->folder = folder;
  tarn_status status = tarn__sweep_read(sweep, file);
  sweep->folder = NULL;
  if (status != TARN_STATUS_OK) return tarn__file_kind_explain(status, file, TARN__FILE_KIND_SWEEP_CONFIG);
  struct tarn__sweep_memory *m = sweep->memory;
  for (size_t i = 0; i < sweep->variant_count; i++) {
    status = tarn__sweep_config(sweep, &m->configs[i], &m->edits[i], sweep->seeds[0]);
    if (status == TARN_STATUS_OK) status = tarn__sweep_body(sweep, &m->bodies[i], &m->edits[i]);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: variant %s: ", file, sweep->variants[i].name);
    m->variants[i].config = m->configs[i];
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_outline(tarn_sweep **sweep, const char *file, const char *folder) {
  TARN_TRY(new_sweep(sweep));
  const tarn_status status = outline(*sweep, file, folder);
  if (status != TARN_STATUS_OK) tarn_sweep_close(sweep);
  return status;
}

void tarn_sweep_close(tarn_sweep **sweep) {
  tarn_sweep *s = *sweep;
  if (!s) return;
  struct tarn__sweep_memory *m = s->memory;
  for (size_t i = 0; m->configs && i < s->variant_count; i++) {
    tarn_config_close(&m->configs[i]);
    tarn_plan_close(&m->variants[i].plan);
    tarn__free(m->edits[i].items);
  }
  tarn__free(m->set.items);
  tarn__free(m->base_path);
  tarn__free(m->base_text);
  tarn__yaml_close(&m->tree);
  tarn__arena_close(&m->arena);
  tarn__free(m);
  tarn__free(s);
  *sweep = NULL;
}
