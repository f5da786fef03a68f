// Opening of a queue: the folders of records and their descriptions.
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/threads.h"
#include "run/names.h"
#include "significance/sequential.h"
#include "sweep/queue_memory.h"

void tarn_queue_default(tarn_queue_options *options) { *options = (tarn_queue_options){0}; }

const char *tarn_queue_event_name(tarn_queue_event_kind kind) {
  static const char *const names[TARN_QUEUE_EVENTS] = {"started", "finished",  "failed",      "stopped",
                                                       "verdict", "committed", "uncommitted", "left out"};
  return (unsigned)kind < TARN_QUEUE_EVENTS ? names[kind] : NULL;
}

void tarn__queue_tell(const struct tarn__queue_memory *q, tarn_queue_event_kind kind, size_t sweep, const char *variant,
                      int64_t seed, const char *text) {
  if (!q->options.on_event) return;
  const tarn_queue_event event = {
      .kind = kind, .sweep = q->views[sweep].name, .variant = variant, .seed = seed, .text = text};
  q->options.on_event(q->options.user, &event);
}

tarn_status tarn__queue_leave(struct tarn__queue_memory *q, size_t sweep, const char *reason) {
  char *copy;
  TARN_TRY(tarn__arena_strdup(&q->arena, &copy, reason));
  q->views[sweep].problem = copy;
  q->lanes[sweep].left_out = true;
  tarn__queue_tell(q, TARN_QUEUE_EVENT_LEFT_OUT, sweep, NULL, -1, copy);
  return TARN_STATUS_OK;
}

tarn_status tarn__queue_path(char path[PATH_MAX], const tarn__queue_sweep *sweep, const char *name) {
  return tarn__path_join(path, sweep->public->work, name);
}

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// Of a folder as the user wrote it: without slashes at the end, with its last part as the name.
static tarn_status take_folder(struct tarn__queue_memory *q, const char *path) {
  tarn_queue_sweep *view = &q->views[q->public.count];
  tarn__queue_sweep *s = &q->sweeps[q->public.count];
  char *folder, *copy, full[PATH_MAX], file[PATH_MAX];
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') length--;
  TARN_TRY(tarn__arena_strdup(&q->arena, &folder, path));
  folder[length] = '\0';
  // "." and ".." have no name of their own.
  TARN_REQUIRE(realpath(folder, full), IO, "%s: it cannot be found", folder);
  const char *slash = strrchr(full, '/');
  TARN_TRY(tarn__arena_strdup(&q->arena, &copy, slash + 1));
  TARN_REQUIRE(*copy, USAGE, "%s is no folder of records", folder);
  for (size_t i = 0; i < q->public.count; i++)
    TARN_REQUIRE(strcmp(q->views[i].name, copy) != 0, USAGE,
                 "%s and %s have the same name, and so the same place in %s", q->views[i].folder, folder,
                 q->options.output);
  *view = (tarn_queue_sweep){.name = copy, .folder = folder};
  *s = (tarn__queue_sweep){.public = view, .lock = -1};
  TARN_TRY(tarn__path_join(file, q->options.output, copy));
  TARN_TRY(tarn__arena_strdup(&q->arena, &copy, file));
  view->work = copy;
  TARN_TRY(tarn__queue_path(file, s, "runs"));
  TARN_TRY(tarn__arena_strdup(&q->arena, &s->runs, file));
  TARN_TRY(tarn__path_join(file, full, TARN__SWEEP_FILE));
  TARN_TRY(tarn__arena_strdup(&q->arena, &s->file, file));
  q->public.count++;
  return TARN_STATUS_OK;
}

static tarn_status allocate(struct tarn__queue_memory *q, void *list, size_t count, size_t size) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(&q->arena, &memory, count, size));
  memcpy(list, &memory, sizeof memory);
  return TARN_STATUS_OK;
}

static tarn_status make_lists(struct tarn__queue_memory *q, size_t index) {
  tarn__queue_sweep *s = &q->sweeps[index];
  tarn_queue_sweep *view = s->public;
  const tarn_sweep *sweep = s->outline;
  const size_t runs = sweep->variant_count * sweep->seed_count;
  TARN_TRY(allocate(q, &s->states, runs, sizeof *s->states));
  TARN_TRY(allocate(q, &s->seconds, runs, sizeof *s->seconds));
  TARN_TRY(allocate(q, &s->verdicts, sweep->variant_count, sizeof *s->verdicts));
  TARN_TRY(allocate(q, &s->unaffordable, sweep->variant_count, sizeof *s->unaffordable));
  TARN_TRY(allocate(q, &s->retried, runs, sizeof *s->retried));
  TARN_TRY(allocate(q, &s->keys, runs, sizeof *s->keys));
  TARN_TRY(allocate(q, &s->recorded, runs, sizeof *s->recorded));
  TARN_TRY(allocate(q, &s->bodies, runs, sizeof *s->bodies));
  TARN_TRY(allocate(q, &s->files, sweep->variant_count, sizeof *s->files));
  TARN_TRY(allocate(q, &s->data, sweep->variant_count, sizeof *s->data));
  TARN_TRY(allocate(q, &s->sources, runs, sizeof *s->sources));
  TARN_TRY(allocate(q, &s->forecast, sweep->variant_count, sizeof *s->forecast));
  TARN_TRY(allocate(q, &s->comparisons, sweep->variant_count, sizeof *s->comparisons));
  TARN_TRY(allocate(q, &s->words, sweep->variant_count, sizeof *s->words));
  view->comparisons = s->comparisons;
  view->baseline = sweep->variants[sweep->baseline].name;
  view->design = sweep->sequential;
  for (size_t v = 0; v < sweep->variant_count; v++) {
    if (v == sweep->baseline) continue;
    tarn_queue_comparison *c = &s->comparisons[view->comparison_count++];
    *c = (tarn_queue_comparison){.variant = sweep->variants[v].name};
    tarn__sequential_blank(&c->verdict, &view->design, sweep->variant_count - 1);
  }
  q->lanes[index] = (tarn__queue_lane){.design = &view->design,
                                       .variants = sweep->variant_count,
                                       .seeds = sweep->seed_count,
                                       .baseline = sweep->baseline,
                                       .states = s->states,
                                       .seconds = s->seconds,
                                       .keys = s->keys,
                                       .verdicts = s->verdicts,
                                       .unaffordable = s->unaffordable,
                                       .share = q->options.shares > 0 ? (size_t)q->options.share - 1 : 0,
                                       .shares = (size_t)q->options.shares};
  return TARN_STATUS_OK;
}

// Whether a folder below has a description.
static bool holds_sweeps(const char *folder) {
  bool found = false;
  DIR *dir = opendir(folder);
  for (const struct dirent *entry; dir && !found && (entry = readdir(dir));) {
    char path[PATH_MAX];
    found = entry->d_name[0] != '.' &&
            snprintf(path, sizeof path, "%s/%s/" TARN__SWEEP_FILE, folder, entry->d_name) < (int)sizeof path &&
            tarn__file_exists(path);
  }
  if (dir) closedir(dir);
  return found;
}

// Reads the description of a folder; what is wrong with it is a problem of the folder alone.
static tarn_status open_sweep(struct tarn__queue_memory *q, size_t index) {
  tarn__queue_sweep *s = &q->sweeps[index];
  char text[TARN__QUEUE_TEXT];
  if (!tarn__file_exists(s->file)) {
    const char *folder = s->public->folder;
    if (holds_sweeps(folder))
      snprintf(text, sizeof text, "%s: it has no " TARN__SWEEP_FILE ", but folders in it have: give %s/*", folder,
               folder);
    else
      snprintf(text, sizeof text, "%s: it has no " TARN__SWEEP_FILE, folder);
    return tarn__queue_leave(q, index, text);
  }
  const tarn_status status = tarn__sweep_outline(&s->outline, s->file, s->runs);
  if (status == TARN_STATUS_MEMORY) return status;
  if (status != TARN_STATUS_OK) return tarn__queue_leave(q, index, tarn_error_message());
  if (s->outline->sequential.max_seeds == 0) {
    snprintf(text, sizeof text,
             "%s/" TARN__SWEEP_FILE ": it has no key sequential, such as sequential: { max_seeds: 12 }",
             s->public->folder);
    return tarn__queue_leave(q, index, text);
  }
  TARN_TRY(make_lists(q, index));
  TARN_TRY(tarn__queue_take_keys(s));
  TARN_TRY(tarn__mkdir(s->public->work));
  TARN_TRY(tarn__queue_read(q, index, false));
  bool open = false;
  for (size_t i = 0; i < s->public->comparison_count; i++)
    open = open || s->comparisons[i].verdict.decision == TARN_SEQUENTIAL_OPEN;
  return open && !s->public->problem ? tarn__queue_check(q, index) : TARN_STATUS_OK;
}

// Processes work in other folders.
static tarn_status find_program(struct tarn__queue_memory *q) {
  const char *program = q->options.program;
  char full[PATH_MAX], *copy;
  if (!program) return TARN_STATUS_OK;
  TARN_REQUIRE(realpath(program, full), IO, "%s: it cannot be found", program);
  TARN_TRY(tarn__arena_strdup(&q->arena, &copy, full));
  q->options.program = copy;
  return TARN_STATUS_OK;
}

static tarn_status open_parts(struct tarn__queue_memory *q) {
  tarn__queue_pick pick;
  bool found;
  const tarn_queue_options *o = &q->options;
  TARN_REQUIRE(o->output, USAGE, "a queue needs a folder for its runs");
  TARN_REQUIRE(isfinite(o->budget) && o->budget >= 0, USAGE, "the budget must be 0 or a number of seconds");
  TARN_REQUIRE(o->shares == 0 ? o->share == 0 : o->share >= 1 && o->share <= o->shares, USAGE,
               "share %lld of %lld: expected one from 1 to the number of shares", (long long)o->share,
               (long long)o->shares);
  TARN_TRY(find_program(q));
  TARN_TRY(allocate(q, &q->views, o->count, sizeof *q->views));
  TARN_TRY(allocate(q, &q->sweeps, o->count, sizeof *q->sweeps));
  TARN_TRY(allocate(q, &q->lanes, o->count, sizeof *q->lanes));
  tarn__threads_set(0);
  q->cores = tarn__threads();
  q->places = (size_t)q->cores;
  TARN_TRY(allocate(q, &q->jobs, q->places, sizeof *q->jobs));
  q->public.sweeps = q->views;
  q->until = o->budget > 0 ? tarn__seconds() + o->budget : INFINITY;
  for (size_t i = 0; i < o->count; i++)
    if (is_folder(o->folders[i]) || !tarn__file_exists(o->folders[i])) TARN_TRY(take_folder(q, o->folders[i]));
  TARN_REQUIRE(q->public.count > 0, USAGE, "there is no folder of records");
  for (size_t i = 0; i < q->public.count; i++) TARN_TRY(open_sweep(q, i));
  TARN_TRY(tarn__queue_take_bodies(q));
  return tarn__queue_next(q, &pick, &found);
}

tarn_status tarn_queue_open(tarn_queue **queue, const tarn_queue_options *options) {
  void *memory;
  *queue = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(struct tarn__queue_memory)));
  struct tarn__queue_memory *q = memory;
  q->options = *options;
  q->public.memory = q;
  *queue = &q->public;
  const tarn_status status = open_parts(q);
  if (status != TARN_STATUS_OK) tarn_queue_close(queue);
  return status;
}

void tarn_queue_close(tarn_queue **queue) {
  if (!*queue) return;
  struct tarn__queue_memory *q = (*queue)->memory;
  for (size_t i = 0; i < q->public.count; i++) tarn_sweep_close(&q->sweeps[i].outline);
  tarn__arena_close(&q->arena);
  tarn__free(q);
  *queue = NULL;
}
