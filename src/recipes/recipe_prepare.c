// Runs the steps of a recipe. What is done is in a file that is replaced after every step, with the data that it was
// made of, so that a recipe goes on where it was killed, and does not go on with other data.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json_io.h"
#include "base/temporary.h"
#include "recipes/recipe_spec.h"
#include "run/names.h"
#include "sweep/child.h"

#define LOCK ".recipe.lock"
#define ERRORS TARN__RUN_ERRORS
// Seconds between two looks at a step's process.
static const double LOOK = 0.02;

const char *const tarn__recipe_own[] = {TARN__RECIPE_STATE,
                                        TARN_RECIPE_SWEEP,
                                        TARN_RECIPE_MODEL,
                                        TARN_RECIPE_COPY,
                                        TARN_RECIPE_SCORE,
                                        TARN_RECIPE_INPUTS,
                                        ERRORS,
                                        TARN_RECIPE_RUNS,
                                        NULL};

typedef struct preparing {
  const tarn_recipe *recipe;
  const tarn_recipe_running *running;
  json_t *data;   // {link: {"bytes", "changed", "hash"}} of all files needed
  json_t *steps;  // [[word, ...]] done
  int64_t seeds;  // the most that were asked for
} preparing;

static void tell(const preparing *p, tarn_recipe_event_kind kind, size_t step, double seconds) {
  if (p->running->on_step) p->running->on_step(p->running->user, kind, step, seconds);
}

// --- what is done

static tarn_status no_memory(const void *object) {
  TARN_REQUIRE(object, MEMORY, "not enough memory for the list of steps");
  return TARN_STATUS_OK;
}

// A text in JSON: paths may have any bytes.
static tarn_status new_text(json_t **out, const char *text) {
  char *repaired;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 3 * strlen(text) + 1, 1));
  repaired = memory;
  tarn_text_repair(repaired, text);
  *out = json_string(repaired);
  tarn__free(memory);
  return no_memory(*out);
}

static tarn_status describe_data(json_t **out, const tarn_recipe *recipe) {
  *out = json_object();
  TARN_TRY(no_memory(*out));
  for (size_t i = 0; i < recipe->need_count; i++) {
    for (size_t k = 0; k < recipe->needs[i].file_count; k++) {
      const char *path = recipe->needs[i].files[k];
      struct stat info;
      json_t *name = NULL;
      TARN_REQUIRE(stat(path, &info) == 0, IO, "%s: %s", path, strerror(errno));
      TARN_TRY(new_text(&name, recipe->needs[i].links[k]));
      json_t *entry = json_pack("{s:I, s:I}", "bytes", (json_int_t)info.st_size, "changed", (json_int_t)info.st_mtime);
      const int failed = json_object_set_new(*out, json_string_value(name), entry);
      json_decref(name);
      TARN_REQUIRE(failed == 0, MEMORY, "not enough memory for the list of data");
    }
  }
  return TARN_STATUS_OK;
}

// What is known of a file: that of another list, or NULL.
static tarn_status find_file(json_t **entry, const json_t *data, const char *link) {
  json_t *name;
  TARN_TRY(new_text(&name, link));
  *entry = json_object_get(data, json_string_value(name));
  json_decref(name);
  return TARN_STATUS_OK;
}

static bool have_same(const json_t *a, const json_t *b, const char *key) {
  return json_equal(json_object_get(a, key), json_object_get(b, key)) == 1;
}

static tarn_status add_hash(json_t *entry, const char *path) {
  char hash[TARN__HASH_TEXT];
  TARN_TRY(tarn__hash_file(hash, path));
  TARN_REQUIRE(json_object_set_new(entry, "hash", json_string(hash)) == 0, MEMORY,
               "not enough memory for the list of data");
  return TARN_STATUS_OK;
}

// Whether a file is the one of an earlier list. Its bytes are read if its time is another, as that of a copy is, or if
// it was elsewhere.
static tarn_status is_file_same(bool *same, json_t *entry, const json_t *before, const tarn_recipe_need *need,
                                size_t file) {
  *same = have_same(entry, before, "bytes");
  if (!*same) return TARN_STATUS_OK;
  json_t *hash = json_object_get(before, "hash");
  const bool trusted = have_same(entry, before, "changed") && tarn__recipe_leads_to_data(need, file);
  if (trusted && hash)
    TARN_REQUIRE(json_object_set(entry, "hash", hash) == 0, MEMORY, "not enough memory for the list of data");
  if (trusted) return TARN_STATUS_OK;
  TARN_TRY(add_hash(entry, need->files[file]));
  *same = hash && have_same(entry, before, "hash");
  return TARN_STATUS_OK;
}

// *other: the link of a file that is not; NULL if the number of files is another.
static tarn_status are_data_same(bool *same, const char **other, const preparing *p, const json_t *before) {
  *other = NULL;
  *same = json_object_size(p->data) == json_object_size(before);
  for (size_t i = 0; i < p->recipe->need_count; i++) {
    for (size_t k = 0; *same && k < p->recipe->needs[i].file_count; k++) {
      const tarn_recipe_need *need = &p->recipe->needs[i];
      json_t *entry, *known;
      TARN_TRY(find_file(&entry, p->data, need->links[k]));
      TARN_TRY(find_file(&known, before, need->links[k]));
      TARN_TRY(is_file_same(same, entry, known, need, k));
      if (!*same) *other = need->links[k];
    }
  }
  return TARN_STATUS_OK;
}

// Adds the hashes that are not known yet.
static tarn_status hash_data(const preparing *p) {
  for (size_t i = 0; i < p->recipe->need_count; i++) {
    for (size_t k = 0; k < p->recipe->needs[i].file_count; k++) {
      const tarn_recipe_need *need = &p->recipe->needs[i];
      json_t *entry;
      TARN_TRY(find_file(&entry, p->data, need->links[k]));
      if (!json_object_get(entry, "hash")) TARN_TRY(add_hash(entry, need->files[k]));
    }
  }
  return TARN_STATUS_OK;
}

static tarn_status add_word(json_t *words, const char *text) {
  json_t *word;
  TARN_TRY(new_text(&word, text));
  TARN_REQUIRE(json_array_append_new(words, word) == 0, MEMORY, "not enough memory for the list of steps");
  return TARN_STATUS_OK;
}

// Its words, and ">" with the file for what it prints.
static tarn_status describe_step(json_t **out, const tarn_recipe_step *step) {
  *out = json_array();
  TARN_TRY(no_memory(*out));
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < step->word_count && status == TARN_STATUS_OK; i++) status = add_word(*out, step->words[i]);
  if (status == TARN_STATUS_OK && step->output) status = add_word(*out, ">");
  if (status == TARN_STATUS_OK && step->output) status = add_word(*out, step->output);
  if (status == TARN_STATUS_OK) return status;
  json_decref(*out);
  *out = NULL;
  return status;
}

// Earlier versions listed the data by their absolute paths.
static bool has_paths(json_t *data) {
  const char *link;
  json_t *entry;
  json_object_foreach(data, link, entry) {
    if (*link == '/') return true;
  }
  return false;
}

// The file of this folder, if it is that of the same data and steps.
static tarn_status read_state(preparing *p) {
  json_t *state;
  if (!tarn__file_exists(TARN__RECIPE_STATE)) {
    p->steps = json_array();
    return no_memory(p->steps);
  }
  TARN_TRY(tarn__json_file(&state, TARN__RECIPE_STATE, 0, NULL));
  p->steps = json_incref(json_object_get(state, "steps"));
  p->seeds = json_integer_value(json_object_get(state, "seeds"));
  const bool valid = json_is_array(p->steps);
  json_t *data = json_object_get(state, "data");
  const bool old = has_paths(data);
  bool same = true;
  const char *other = NULL;
  const tarn_status status = json_array_size(p->steps) > 0 ? are_data_same(&same, &other, p, data) : TARN_STATUS_OK;
  json_decref(state);
  TARN_TRY(status);
  TARN_REQUIRE(
      same || !old, USAGE,
      "this folder was made by an earlier version of tarn, which had no links to the data; give another output "
      "folder");
  TARN_REQUIRE(valid, DATA, "%s is damaged; give another output folder, or remove this one", TARN__RECIPE_STATE);
  TARN_REQUIRE(
      same, USAGE,
      "this folder was prepared from other data, or they have changed since%s%s%s; give another output folder, "
      "or remove this one",
      other ? " (" : "", other ? other : "", other ? ")" : "");
  TARN_REQUIRE(p->seeds <= p->recipe->seeds, USAGE,
               "this folder has the seeds 1 to %lld: give as many (--seeds %lld) or more, or another output folder",
               (long long)p->seeds, (long long)p->seeds);
  for (size_t i = 0; i < json_array_size(p->steps) && i < p->recipe->step_count; i++) {
    json_t *step;
    TARN_TRY(describe_step(&step, &p->recipe->steps[i]));
    const bool equal = json_equal(step, json_array_get(p->steps, i)) == 1;
    json_decref(step);
    TARN_REQUIRE(equal, USAGE,
                 "this folder was prepared by other steps (from step %zu on); give another output folder, or remove "
                 "this one",
                 i + 1);
  }
  return TARN_STATUS_OK;
}

static tarn_status write_state(const preparing *p) {
  json_t *name = NULL;
  TARN_TRY(new_text(&name, p->recipe->name));
  json_t *state = json_pack("{s:o, s:O, s:O, s:I}", "recipe", name, "data", p->data, "steps", p->steps, "seeds",
                            (json_int_t)p->recipe->seeds);
  char *text = tarn__json_dump(state, JSON_INDENT(1));
  json_decref(state);
  TARN_TRY(no_memory(text));
  const tarn_status status = tarn__file_write(TARN__RECIPE_STATE, text, strlen(text));
  free(text);
  return status;
}

// --- a step

static tarn_status start(pid_t *pid, const preparing *p, const tarn_recipe_step *step) {
  static const char name[] = "tarn";
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, step->word_count + 2, sizeof(char *)));
  const char **arguments = memory;
  arguments[0] = name;
  memcpy(arguments + 1, step->words, step->word_count * sizeof *arguments);
  const tarn__child child = {.program = p->running->program ? p->running->program : "/proc/self/exe",
                             .arguments = arguments,
                             .output = step->output,
                             .errors = ERRORS};
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < step->made_count && status == TARN_STATUS_OK; i++) status = tarn__mkdir_of_file(step->made[i]);
  if (status == TARN_STATUS_OK) status = tarn__child_start(pid, &child);
  tarn__free(memory);
  return status;
}

static bool is_stopped(const preparing *p) { return p->running->stop && *p->running->stop; }

static tarn_status wait_for(const preparing *p, pid_t pid, int *code) {
  bool asked = false;
  for (;;) {
    const pid_t ended = waitpid(pid, code, WNOHANG);
    if (ended == pid) return asked ? tarn__fail(TARN_STATUS_INTERRUPTED, "stopped by request") : TARN_STATUS_OK;
    // If the caller ignores SIGCHLD, the exit status is lost, and the number is no longer that of our process.
    TARN_REQUIRE(ended >= 0 || errno == EINTR, IO, "cannot wait for a process: %s", strerror(errno));
    if (is_stopped(p) && !asked) kill(pid, SIGTERM);
    asked = is_stopped(p);
    nanosleep(&(struct timespec){.tv_nsec = (long)(LOOK * 1e9)}, NULL);
  }
}

// What a step printed is on disk before it counts as done, as are the files that it wrote.
static tarn_status keep_output(const tarn_recipe_step *step) {
  if (!step->output) return TARN_STATUS_OK;
  const int fd = open(step->output, O_RDONLY | O_CLOEXEC);
  const bool kept = fd >= 0 && fsync(fd) == 0;
  const int reason = errno;
  if (fd >= 0) close(fd);
  TARN_REQUIRE(kept, IO, "%s: cannot write: %s", step->output, strerror(reason));
  tarn__sync_folder_of(step->output);
  return TARN_STATUS_OK;
}

static tarn_status run_step(preparing *p, size_t number) {
  const tarn_recipe_step *step = &p->recipe->steps[number];
  const double begun = tarn__seconds();
  pid_t pid;
  int code = 0;
  TARN_REQUIRE(!is_stopped(p), INTERRUPTED, "stopped by request");
  tell(p, TARN_RECIPE_EVENT_STARTED, number, 0);
  TARN_TRY(start(&pid, p, step));
  TARN_TRY(wait_for(p, pid, &code));
  if (!WIFEXITED(code) || WEXITSTATUS(code) != 0) {
    char text[1024];
    tarn__child_message(text, sizeof text, ERRORS, code);
    return tarn__fail(TARN_STATUS_DATA, "step %zu, tarn %s: %s", number + 1, step->words[0], text);
  }
  unlink(ERRORS);
  TARN_TRY(keep_output(step));
  json_t *done;
  TARN_TRY(describe_step(&done, step));
  TARN_REQUIRE(json_array_append_new(p->steps, done) == 0, MEMORY, "not enough memory for the list of steps");
  TARN_TRY(write_state(p));
  tell(p, TARN_RECIPE_EVENT_FINISHED, number, tarn__seconds() - begun);
  return TARN_STATUS_OK;
}

// --- all

static tarn_status check_data(const tarn_recipe *recipe) {
  for (size_t i = 0; i < recipe->need_count; i++)
    TARN_REQUIRE(recipe->needs[i].file_count > 0, USAGE, "data: %s is missing: %s", recipe->needs[i].name,
                 recipe->needs[i].choices);
  return TARN_STATUS_OK;
}

static tarn_status write_text(const char *path, const char *text) {
  return text ? tarn__file_write(path, text, strlen(text)) : TARN_STATUS_OK;
}

// Whether the current folder is a recipe's: nothing else may be in it before.
static tarn_status check_folder(void) {
  DIR *dir = tarn__file_exists(TARN__RECIPE_STATE) ? NULL : opendir(".");
  char other[NAME_MAX + 1] = "";
  if (!dir) return TARN_STATUS_OK;
  for (const struct dirent *entry; !*other && (entry = readdir(dir));) {
    const char *name = entry->d_name;
    // What a process leaves that is killed before it has written the first list of steps.
    static const char temporary[] = TARN__RECIPE_STATE TARN__TEMPORARY_MARK;
    const bool left = strcmp(name, LOCK) == 0 || strncmp(name, temporary, sizeof temporary - 1) == 0;
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !left) snprintf(other, sizeof other, "%s", name);
  }
  closedir(dir);
  TARN_REQUIRE(!*other, USAGE, "this folder has other files (%s) and was not made by a recipe; give a new one", other);
  return TARN_STATUS_OK;
}

// Whether a file is written as `made`, or as one of the files that begin with it: of a shard, in a folder.
static bool would_replace(const char *made, const char *file) {
  char path[PATH_MAX];
  if (tarn__file_same(made, file)) return true;
  if (snprintf(path, sizeof path, "%s.tarn", made) < (int)sizeof path && tarn__file_same(path, file)) return true;
  if (!realpath(made, path)) return false;
  const size_t length = strlen(path);
  return strncmp(path, file, length) == 0 && file[length] == '/';
}

// What is made must not replace the data.
static tarn_status check_made(const tarn_recipe *recipe) {
  for (size_t i = 0; i < recipe->need_count; i++) {
    for (size_t k = 0; k < recipe->needs[i].file_count; k++) {
      const char *file = recipe->needs[i].files[k], *over = NULL;
      for (const char *const *own = tarn__recipe_own; *own && !over; own++)
        if (would_replace(*own, file)) over = *own;
      for (size_t n = 0; n < recipe->step_count && !over; n++)
        for (size_t m = 0; m < recipe->steps[n].made_count && !over; m++)
          if (would_replace(recipe->steps[n].made[m], file)) over = recipe->steps[n].made[m];
      TARN_REQUIRE(!over, USAGE, "data.%s: %s would be replaced by %s of the recipe; give another output folder",
                   recipe->needs[i].name, file, over);
    }
  }
  return TARN_STATUS_OK;
}

static tarn_status begin(preparing *p) {
  TARN_TRY(check_folder());
  TARN_TRY(check_made(p->recipe));
  TARN_TRY(describe_data(&p->data, p->recipe));
  return read_state(p);
}

static bool is_done(const preparing *p) { return json_array_size(p->steps) >= p->recipe->step_count; }

// The runs are checked through the links to the data, so not if these have moved.
static tarn_status check(preparing *p) {
  TARN_TRY(begin(p));
  return is_done(p) && tarn__recipe_is_linked(p->recipe) ? tarn__recipe_check_runs(p->recipe) : TARN_STATUS_OK;
}

bool tarn_recipe_is_prepared(const tarn_recipe *recipe) {
  preparing p = {.recipe = recipe};
  bool prepared = recipe->missing == 0 && tarn__recipe_is_linked(recipe) && tarn__file_exists(TARN__RECIPE_STATE) &&
                  (!recipe->model || tarn__file_exists(TARN_RECIPE_SWEEP)) &&
                  describe_data(&p.data, recipe) == TARN_STATUS_OK && read_state(&p) == TARN_STATUS_OK;
  prepared = prepared && is_done(&p);
  json_decref(p.data);
  json_decref(p.steps);
  return prepared;
}

static tarn_status run_all(preparing *p) {
  TARN_TRY(begin(p));
  const size_t done = json_array_size(p->steps);
  // The same data may be elsewhere now, and the check of the runs reads them.
  if (done > 0) TARN_TRY(tarn__recipe_link_data(p->recipe));
  if (is_done(p)) TARN_TRY(tarn__recipe_check_runs(p->recipe));
  TARN_TRY(hash_data(p));
  TARN_TRY(write_state(p));  // before the first file, so that the folder is known to be a recipe's
  TARN_TRY(tarn__recipe_link_data(p->recipe));
  for (size_t i = 0; i < p->recipe->step_count; i++) {
    if (i < done)
      tell(p, TARN_RECIPE_EVENT_SKIPPED, i, 0);
    else
      TARN_TRY(run_step(p, i));
  }
  if (done < p->recipe->step_count) TARN_TRY(tarn__recipe_check_runs(p->recipe));
  TARN_TRY(write_text(TARN_RECIPE_COPY, p->recipe->text));
  TARN_TRY(write_text(TARN_RECIPE_MODEL, p->recipe->model_text));
  return write_text(TARN_RECIPE_SWEEP, p->recipe->sweep_text);
}

tarn_status tarn_recipe_prepare(const tarn_recipe *recipe, const tarn_recipe_running *running) {
  static const tarn_recipe_running nothing = {0};
  preparing p = {.recipe = recipe, .running = running ? running : &nothing};
  int lock = -1;
  TARN_TRY(check_data(recipe));
  TARN_TRY(check_folder());  // before a lock is left in it
  tarn_status status = p.running->only_check ? TARN_STATUS_OK : tarn__lock(&lock, LOCK);
  if (status == TARN_STATUS_OK) status = p.running->only_check ? check(&p) : run_all(&p);
  tarn__unlock(&lock);
  json_decref(p.data);
  json_decref(p.steps);
  return status;
}
