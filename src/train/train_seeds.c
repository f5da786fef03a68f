// Several seeds of one description: a list of runs.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "comm/launcher.h"
#include "config/config_resume.h"
#include "run/names.h"
#include "tarn/process.h"
#include "tarn/train.h"
#include "train/trainer.h"

struct tarn__train_list_memory {
  tarn__arena arena;
  tarn__run_dir dir;
};

static tarn_status keep_text(tarn_train_list *list, const char **out, const char *text) {
  char *copy;
  TARN_TRY(tarn__arena_strdup(&list->memory->arena, &copy, text));
  *out = copy;
  return TARN_STATUS_OK;
}

// The options of one seed's run: the caller's, followed by the seed.
static tarn_status make_run(tarn_train_list *list, tarn_train_options *run, const tarn_train_options *options,
                            int64_t seed) {
  void *memory;
  char text[PATH_MAX];
  *run = *options;
  if (options->run) {
    run->folder = list->memory->dir.path;
    int length = snprintf(text, sizeof text, TARN__RUN_SEED_PATH, list->memory->dir.path, (long long)seed);
    TARN_REQUIRE(length < (int)sizeof text - 16, IO, "%s: the path is too long", options->run);
    TARN_TRY(keep_text(list, &run->run, text));
  }
  if (options->resume) {
    // A seed that has not started yet uses the common description.
    strcat(text, "/" TARN__RUN_CONFIG);
    if (tarn__file_exists(text)) return TARN_STATUS_OK;
    run->resume = false;
    run->config = list->memory->dir.config;
  }
  TARN_TRY(tarn__arena_alloc(&list->memory->arena, &memory, options->override_count + 2, sizeof(char *)));
  const char **overrides = memory;
  for (size_t i = 0; i < options->override_count; i++) overrides[i] = options->overrides[i];
  overrides[options->override_count] = "train.seeds=";
  snprintf(text, sizeof text, "train.seed=%" PRId64, seed);
  TARN_TRY(keep_text(list, &overrides[options->override_count + 1], text));
  run->overrides = overrides;
  run->override_count = options->override_count + 2;
  return TARN_STATUS_OK;
}

// Seeds are recorded only if they can be trained: a line found invalid later would prevent adding the correct one.
static tarn_status check_first(const tarn_train_list *list) {
  tarn_config *config;
  TARN_TRY(tarn__train_check(&config, &list->runs[0]));
  tarn_config_close(&config);
  return TARN_STATUS_OK;
}

// Records the common description of all seeds in the folder with their runs.
static tarn_status begin_all(const tarn_train_list *list, const tarn_config *config) {
  const tarn__run_dir *dir = &list->memory->dir;
  TARN_REQUIRE(!tarn__file_exists(dir->config), USAGE,
               "%s already holds runs; go on with: tarn train --resume %s, or give another --run", dir->path,
               dir->path);
  TARN_TRY(check_first(list));
  TARN_TRY(tarn__mkdir(dir->path));
  return tarn__train_write_config(dir, config);
}

// A seed that was started, locked, and its description with the overrides applied.
typedef struct begun_seed {
  tarn__run_dir dir;
  tarn_config *config;
} begun_seed;

typedef struct begun_seeds {
  size_t count;
  begun_seed *seeds;
} begun_seeds;

static void begun_close(begun_seeds *begun) {
  for (size_t i = 0; i < begun->count; i++) {
    tarn_config_close(&begun->seeds[i].config);
    tarn__run_dir_close(&begun->seeds[i].dir);
  }
  tarn__free(begun->seeds);
}

// Fails with BUSY while one of them is training. This precedes all checks, which would fail for lack of the memory in
// use.
static tarn_status lock_begun(begun_seeds *begun, const tarn_train_list *list) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, list->count, sizeof *begun->seeds));
  begun->seeds = memory;
  for (size_t i = 0; i < list->count; i++) {
    if (!list->runs[i].resume) continue;
    TARN_TRY(tarn__run_dir_open(&begun->seeds[begun->count].dir, list->runs[i].run));
    begun->count++;
  }
  return TARN_STATUS_OK;
}

// Checks each of them, because their checkpoints differ: one may have been validated, and another not.
static tarn_status check_begun(begun_seeds *begun, const tarn_train_list *list) {
  if (begun->count == 0) return check_first(list);
  size_t next = 0;
  for (size_t i = 0; i < list->count; i++)
    if (list->runs[i].resume) TARN_TRY(tarn__train_check(&begun->seeds[next++].config, &list->runs[i]));
  return TARN_STATUS_OK;
}

// Changes on resumption apply to all seeds, including those that run in another session: an average over seeds trained
// differently would be meaningless. So nothing is written until all seeds can be changed.
static tarn_status change_all(const tarn_train_list *list, const tarn_config *config) {
  begun_seeds begun = {0};
  tarn_status status = lock_begun(&begun, list);
  if (status == TARN_STATUS_OK) status = check_begun(&begun, list);
  for (size_t i = 0; i < begun.count && status == TARN_STATUS_OK; i++)
    status = tarn__train_write_config(&begun.seeds[i].dir, begun.seeds[i].config);
  if (status == TARN_STATUS_OK) status = tarn__train_write_config(&list->memory->dir, config);
  begun_close(&begun);
  return status;
}

// The common folder is written, and started seeds are locked, before there is a communicator.
static tarn_status check_ranks(const tarn_train_options *o) {
  const tarn__launcher launcher = tarn__launcher_find();
  if (launcher.size == 1 || (o->comm && strcmp(o->comm, tarn__comm_self.name) == 0)) return TARN_STATUS_OK;
  return tarn__fail(TARN_STATUS_USAGE,
                    "several seeds train on one rank each, not on %d: start one training for each seed", launcher.size);
}

static tarn_status fill(tarn_train_list *list, const tarn_train_options *options, const tarn_config *config) {
  int64_t seeds = config->train.seed_count;
  bool several = seeds > 0;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&list->memory->arena, &memory, several ? (size_t)seeds : 1, sizeof(tarn_train_options)));
  tarn_train_options *runs = memory;
  list->runs = runs;
  list->count = several ? (size_t)seeds : 1;
  runs[0] = *options;
  if (!several) return TARN_STATUS_OK;
  TARN_TRY(check_ranks(options));
  TARN_TRY(tarn__arena_alloc(&list->memory->arena, &memory, (size_t)seeds, sizeof(int64_t)));
  memcpy(memory, config->train.seeds, (size_t)seeds * sizeof(int64_t));
  list->seeds = memory;
  for (int64_t i = 0; i < seeds; i++) TARN_TRY(make_run(list, &runs[i], options, list->seeds[i]));
  if (options->plan_only || (options->resume && options->override_count == 0)) return TARN_STATUS_OK;
  TARN_TRY(tarn_config_check_training(config));
  return options->resume ? change_all(list, config) : begin_all(list, config);
}

static tarn_status open_list(tarn_train_list *list, const tarn_train_options *o) {
  TARN_TRY(tarn__train_check_options(o));
  if (o->run) TARN_TRY(tarn__run_dir_look(&list->memory->dir, o->run));
  const char *path = o->resume ? list->memory->dir.config : o->config;
  if (o->resume) {
    // Checked here, because a seed that has not started yet accepts every override.
    TARN_TRY(tarn__resume_check_overrides(o->overrides, o->override_count));
    TARN_TRY(tarn__run_dir_check(&list->memory->dir));
  }
  tarn_config *config;
  TARN_TRY(tarn_config_read(&config, path, o->overrides, o->override_count));
  tarn_status status = fill(list, o, config);
  tarn_config_close(&config);
  return status;
}

tarn_status tarn_train_list_open(tarn_train_list **out, const tarn_train_options *options) {
  *out = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_train_list)));
  tarn_train_list *list = memory;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *list->memory);
  list->memory = memory;
  if (list->memory) list->memory->dir.lock = -1;
  if (status == TARN_STATUS_OK) status = open_list(list, options);
  if (status != TARN_STATUS_OK) {
    tarn_train_list_close(&list);
    const bool told = tarn_ranks_fail(options->comm, status, tarn_error_message());
    if (options->told) *options->told = told;
    return status;
  }
  *out = list;
  return TARN_STATUS_OK;
}

void tarn_train_list_close(tarn_train_list **list) {
  if (!*list) return;
  if ((*list)->memory) {
    tarn__arena_close(&(*list)->memory->arena);
    tarn__run_dir_close(&(*list)->memory->dir);
  }
  tarn__free((*list)->memory);
  tarn__free(*list);
  *list = NULL;
}
