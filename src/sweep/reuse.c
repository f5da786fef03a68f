// Reuse of runs of another sweep with the same settings, seed, training data, test and version of the program. They are
// copied completely, so that every sweep's folder is self-contained.
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json_io.h"
#include "base/log.h"
#include "data/batch.h"
#include "data/shard.h"
#include "report/reused.h"
#include "run/names.h"
#include "sweep/spec.h"
#include "tarn/status.h"

// A folder with finished runs, and the texts of the configurations wanted.
typedef struct search {
  tarn_sweep *sweep;
  const char *folder;
  char **wanted;                  // [runs]; NULL: a run that needs none
  char (*data)[TARN__HASH_TEXT];  // [variants] hash of the training data; "": not needed so far
  size_t others;                  // runs of the folder from another version,
  char version[32];               // and the version of the first
} search;

static tarn_status want(search *s) {
  tarn_sweep *sweep = s->sweep;
  for (size_t i = 0; i < sweep->run_count; i++) {
    const tarn_sweep_run *run = &sweep->runs[i];
    tarn_config *config;
    if (run->state != TARN_SWEEP_WAITING || s->wanted[i]) continue;
    TARN_TRY(tarn__sweep_config(sweep, &config, &sweep->memory->edits[run->variant], run->seed));
    tarn_status status = tarn_config_write(config, &s->wanted[i]);
    tarn_config_close(&config);
    TARN_TRY(status);
  }
  return TARN_STATUS_OK;
}

// Whether a run is over and of this program's version, and the hash of its data; runs of other versions are counted,
// for one warning per folder. Their files may not even be readable.
static tarn_status same_version(bool *same, char data[TARN__HASH_TEXT], search *s, const char *run) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, run, TARN__RUN_RESULT));
  json_t *result = NULL;
  if (tarn__file_exists(path)) TARN_TRY(tarn__json_file(&result, path, 0, NULL));
  const char *version = json_string_value(json_object_get(result, "version"));
  const char *hash = json_string_value(json_object_get(result, "data_hash"));
  *same = version && strcmp(version, tarn_version()) == 0;
  if (version && !*same && s->others++ == 0) snprintf(s->version, sizeof s->version, "%s", version);
  snprintf(data, TARN__HASH_TEXT, "%s", hash ? hash : "");
  json_decref(result);
  return TARN_STATUS_OK;
}

// Whether a run was trained on what the path of a variant leads to now: equal paths may be of other folders, or times.
static tarn_status same_data(bool *same, const search *s, size_t variant, const char *data) {
  char blocks[TARN__HASH_TEXT], *own = s->data[variant];
  if (!*own) {
    tarn__shard shard = {0};
    TARN_TRY(tarn__shard_open(&shard, s->sweep->variants[variant].config->data.train));
    snprintf(own, TARN__HASH_TEXT, "%s", shard.hash);
    tarn__shard_close(&shard);
  }
  tarn__batcher_hash_in_blocks(blocks, own);
  *same = tarn__hash_same(data, own) || tarn__hash_same(data, blocks);
  return TARN_STATUS_OK;
}

// The configuration of a run as text; NULL, with a warning, if it is invalid.
static tarn_status read_config(char **text, const char *file) {
  tarn_config *config;
  *text = NULL;
  tarn_status status = tarn_config_read(&config, file, NULL, 0);
  if (status == TARN_STATUS_USAGE || status == TARN_STATUS_DATA) {
    tarn__log(TARN_LOG_WARNING, "%s: the run is not reused", tarn_error_message());
    return TARN_STATUS_OK;
  }
  if (status == TARN_STATUS_OK) status = tarn_config_write(config, text);
  tarn_config_close(&config);
  return status;
}

// Offers a run directory to all waiting runs; at most one matches, because variants differ.
static tarn_status offer(void *user, const char *path, const char *variant, int64_t seed) {
  search *s = user;
  (void)variant;
  (void)seed;
  char file[PATH_MAX], data[TARN__HASH_TEXT];
  char *text;
  bool same = false;
  TARN_TRY(tarn__path_join(file, path, TARN__RUN_CONFIG));
  if (!tarn__file_exists(file)) return TARN_STATUS_OK;
  TARN_TRY(same_version(&same, data, s, path));
  if (!same) return TARN_STATUS_OK;
  TARN_TRY(read_config(&text, file));
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; text && i < s->sweep->run_count && status == TARN_STATUS_OK; i++) {
    tarn_sweep_run *run = &s->sweep->memory->runs[i];
    tarn_sweep_run other = {.variant = run->variant, .seed = run->seed, .path = path};
    if (!s->wanted[i] || run->reuse || strcmp(text, s->wanted[i]) != 0) continue;
    status = same_data(&same, s, run->variant, data);
    if (status == TARN_STATUS_OK && !same)
      tarn__log(TARN_LOG_WARNING, "%s: %s: the run is not reused", path,
                *data ? "it was trained on other data than those of data.train"
                      : "it does not tell (\"data_hash\" of " TARN__RUN_RESULT ") what data it was trained on");
    if (status != TARN_STATUS_OK || !same) break;
    status = tarn__sweep_look(s->sweep, &other);
    if (status != TARN_STATUS_OK || other.state != TARN_SWEEP_FINISHED) break;
    status = tarn__sweep_text(s->sweep, &run->reuse, "%s", path);
  }
  tarn_config_text_close(&text);
  return status;
}

static tarn_status look_into(search *s) {
  char path[PATH_MAX];
  json_error_t error;
  bool same;
  TARN_TRY(tarn__path_join(path, s->folder, TARN__SWEEP_JSON));
  TARN_REQUIRE(tarn__file_exists(path), USAGE, "%s: there is no sweep whose runs could be reused: no " TARN__SWEEP_JSON,
               s->folder);
  json_t *json;
  TARN_TRY(tarn__json_file(&json, path, 0, &error));
  TARN_REQUIRE(json, DATA, "%s:%d: %s", path, error.line, error.text);
  tarn_status status = tarn__sweep_same_test(&same, s->sweep, json);
  if (status == TARN_STATUS_OK && !same)
    tarn__log(TARN_LOG_WARNING,
              "%s: its runs were tested otherwise (test: source, reference, beam, blimp, labelled, text, window, "
              "stride, precision, checkpoint): none "
              "is reused",
              s->folder);
  s->others = 0;
  if (status == TARN_STATUS_OK && same) status = tarn__sweep_each_run(s->folder, json, offer, s);
  if (s->others > 0)
    tarn__log(TARN_LOG_WARNING,
              "%s: %zu of its runs were made by version %s of the program, this is %s: they are not reused", s->folder,
              s->others, s->version, tarn_version());
  json_decref(json);
  return status;
}

tarn_status tarn__sweep_find_reuse(tarn_sweep *sweep, const char *const *folders, size_t count) {
  void *memory;
  if (count == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, sweep->run_count, sizeof(char *)));
  search s = {.sweep = sweep, .wanted = memory};
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, sweep->variant_count, TARN__HASH_TEXT);
  if (status == TARN_STATUS_OK) s.data = memory;
  if (status == TARN_STATUS_OK) status = want(&s);
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    s.folder = folders[i];
    status = look_into(&s);
  }
  for (size_t i = 0; i < sweep->run_count; i++) tarn_config_text_close(&s.wanted[i]);
  tarn__free(s.wanted);
  tarn__free(s.data);
  return status;
}

static tarn_status copy_files(const char *from, const char *to) {
  DIR *folder = opendir(from);
  TARN_REQUIRE(folder, IO, "%s: cannot read the folder: %s", from, strerror(errno));
  tarn_status status = TARN_STATUS_OK;
  for (const struct dirent *entry; status == TARN_STATUS_OK && (entry = readdir(folder));) {
    const char *name = entry->d_name;
    if (name[0] != '.' && strcmp(name, TARN__RUN_LOCK) != 0 && strncmp(name, TARN__RUN_LOCK ".", 5) != 0 &&
        strcmp(name, TARN__RUN_ERRORS) != 0)
      status = tarn__file_copy(from, to, name);
  }
  closedir(folder);
  return status;
}

// The remains of an interrupted copy may be of another run.
static tarn_status empty_folder(const char *path) {
  DIR *folder = opendir(path);
  TARN_REQUIRE(folder, IO, "%s: cannot read the folder: %s", path, strerror(errno));
  tarn_status status = TARN_STATUS_OK;
  for (const struct dirent *entry; status == TARN_STATUS_OK && (entry = readdir(folder));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(dirfd(folder), entry->d_name, 0) != 0)
      status = tarn__fail(TARN_STATUS_IO, "%s/%s: cannot remove: %s", path, entry->d_name, strerror(errno));
  }
  closedir(folder);
  return status;
}

tarn_status tarn__sweep_drop_partial(const tarn_sweep *sweep, const tarn_sweep_run *run) {
  char partial[PATH_MAX];
  TARN_TRY(tarn__sweep_seed_file(partial, sweep, run, TARN__SWEEP_PARTIAL));
  if (!tarn__file_exists(partial)) return TARN_STATUS_OK;
  TARN_TRY(empty_folder(partial));
  TARN_REQUIRE(rmdir(partial) == 0, IO, "%s: cannot remove: %s", partial, strerror(errno));
  return TARN_STATUS_OK;
}

static tarn_status copy_run(const tarn_sweep_run *run, const char *partial) {
  char origin[PATH_MAX];
  TARN_TRY(empty_folder(partial));
  TARN_TRY(copy_files(run->reuse, partial));
  // A copy of a copy is one of the first.
  TARN_TRY(tarn__path_join(origin, partial, TARN__RUN_REUSED));
  if (!tarn__file_exists(origin)) TARN_TRY(tarn__reused_write(partial, run->reuse));
  // A kill here leaves a folder that nothing reads; the next copy empties it.
  TARN_REQUIRE(rename(partial, run->path) == 0, IO, "%s: cannot put the reused run here: %s", run->path,
               strerror(errno));
  tarn__sync_folder_of(run->path);
  return TARN_STATUS_OK;
}

// Removes the remains of a failed copy, and keeps its error message.
static tarn_status drop_copy(tarn_status status, const tarn_sweep *sweep, const tarn_sweep_run *run) {
  char line[1024];
  snprintf(line, sizeof line, "%s", tarn_error_message());
  const tarn_status dropped = tarn__sweep_drop_partial(sweep, run);  // if it remains, the next sweep removes it
  (void)dropped;
  return tarn__fail(status, "%s", line);
}

tarn_status tarn__sweep_reuse(tarn_sweep *sweep, tarn_sweep_run *run) {
  char partial[PATH_MAX];
  TARN_TRY(tarn__sweep_seed_file(partial, sweep, run, TARN__SWEEP_PARTIAL));
  TARN_TRY(tarn__mkdir(partial));
  tarn_status status = copy_run(run, partial);
  if (status != TARN_STATUS_OK) return drop_copy(status, sweep, run);
  run->reuse = NULL;
  return tarn__sweep_look(sweep, run);
}
