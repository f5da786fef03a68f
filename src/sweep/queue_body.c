// Runs of a queue that begin with the weights of another training (train.init_from), such as fine-tunings of bodies
// that the same queue trains: they wait until that training is over. It is done here, even if another sweep has a
// record of it, which has no weights.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "config/config_seed.h"
#include "run/names.h"
#include "sweep/queue_memory.h"

// Where a run finds its body, from the working folder, where its process starts; NULL: it has none.
static tarn_status body_path(char path[PATH_MAX], bool *any, const tarn__queue_sweep *s, size_t variant, int64_t seed) {
  const char *with_seed = s->outline->memory->bodies[variant];
  const char *body = with_seed ? with_seed : s->outline->variants[variant].config->train.init_from;
  *any = body != NULL;
  if (!body) return TARN_STATUS_OK;
  tarn__buffer placed = {0};
  tarn__config_place_seed(&placed, body, seed);
  tarn_status status = placed.status;
  if (status == TARN_STATUS_OK && placed.data[0] == '/')
    status = tarn__path_join(path, "/", placed.data + 1);
  else if (status == TARN_STATUS_OK)
    status = tarn__queue_path(path, s, placed.data);
  tarn__buffer_close(&placed);
  return status;
}

static bool has(const char *folder, const char *name) {
  char path[PATH_MAX];
  return tarn__path_join(path, folder, name) == TARN_STATUS_OK && tarn__file_exists(path);
}

// A checkpoint, or the directory of a training that is over: of one at work other weights would be taken each time. A
// run that was copied from records has no weights.
static bool is_there(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) return false;
  if (!S_ISDIR(info.st_mode)) return true;
  return has(path, TARN__RUN_RESULT) &&
         (has(path, TARN__CHECKPOINT_LAST) || has(path, TARN__CHECKPOINT_BEST) || has(path, TARN__CHECKPOINT_AVERAGE));
}

// Takes ".", ".." and empty parts out of an absolute path.
static void normalise(char *path) {
  char *to = path;
  for (const char *part = path; *part;) {
    while (*part == '/') part++;
    const size_t length = strcspn(part, "/");
    if (length == 2 && strncmp(part, "..", 2) == 0) {
      while (to > path && *--to != '/') continue;
    } else if (length > 0 && !(length == 1 && *part == '.')) {
      *to++ = '/';
      memmove(to, part, length);
      to += length;
    }
    part += length;
  }
  *to = '\0';
}

static tarn_status absolute(char full[PATH_MAX], const char *path) {
  char folder[PATH_MAX];
  TARN_REQUIRE(realpath(".", folder), IO, "the working folder cannot be found: %s", strerror(errno));
  TARN_TRY(*path == '/' ? tarn__path_join(full, "/", path + 1) : tarn__path_join(full, folder, path));
  normalise(full);
  return TARN_STATUS_OK;
}

// Marks the run of a path, or of a file in it, if it is one of the sweep's.
static void mark(tarn__queue_sweep *s, const char *runs, const char *path) {
  const size_t length = strlen(runs);
  if (strncmp(path, runs, length) != 0) return;
  for (size_t v = 0; v < s->outline->variant_count; v++)
    for (size_t i = 0; i < s->outline->seed_count; i++) {
      char name[TARN_SWEEP_NAME + 32];
      const int size = snprintf(name, sizeof name, "/" TARN__RUN_SEED_PATH, s->outline->variants[v].name,
                                (long long)s->outline->seeds[i]);
      const char *rest = path + length;
      if (strncmp(rest, name, (size_t)size) == 0 && (rest[size] == '\0' || rest[size] == '/'))
        s->bodies[v * s->outline->seed_count + i] = true;
    }
}

static tarn_status mark_bodies_of(const tarn__queue_sweep *other, tarn__queue_sweep *s) {
  char runs[PATH_MAX];
  TARN_TRY(absolute(runs, s->runs));
  for (size_t v = 0; v < other->outline->variant_count; v++)
    for (size_t i = 0; i < other->outline->seed_count; i++) {
      char path[PATH_MAX], full[PATH_MAX];
      bool any;
      TARN_TRY(body_path(path, &any, other, v, other->outline->seeds[i]));
      if (!any) break;
      TARN_TRY(absolute(full, path));
      mark(s, runs, full);
    }
  return TARN_STATUS_OK;
}

tarn_status tarn__queue_take_bodies(struct tarn__queue_memory *q) {
  for (size_t i = 0; i < q->public.count; i++)
    for (size_t k = 0; k < q->public.count && q->sweeps[i].states; k++)
      if (q->sweeps[k].states) TARN_TRY(mark_bodies_of(&q->sweeps[k], &q->sweeps[i]));
  return TARN_STATUS_OK;
}

tarn_status tarn__queue_await(struct tarn__queue_memory *q, size_t index) {
  tarn__queue_sweep *s = &q->sweeps[index];
  const tarn_sweep *sweep = s->outline;
  s->public->waiting = 0;
  s->public->awaited = NULL;
  for (size_t v = 0; v < sweep->variant_count; v++)
    for (size_t i = 0; i < sweep->seed_count; i++) {
      tarn__queue_state *state = &s->states[v * sweep->seed_count + i];
      char path[PATH_MAX];
      bool any;
      if (*state != TARN__QUEUE_READY && *state != TARN__QUEUE_WAITING) continue;
      TARN_TRY(body_path(path, &any, s, v, sweep->seeds[i]));
      *state = any && !is_there(path) ? TARN__QUEUE_WAITING : TARN__QUEUE_READY;
      if (*state == TARN__QUEUE_READY) continue;
      if (s->public->waiting++ == 0) memcpy(s->awaited, path, strlen(path) + 1);
    }
  if (s->public->waiting > 0) s->public->awaited = s->awaited;
  return TARN_STATUS_OK;
}
