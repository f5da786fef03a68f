// Runs of a queue that begin with the weights of another training (train.init_from), such as fine-tunings of bodies
// that the same queue trains: they wait until that training is over.
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

// A checkpoint, or the directory of a training that is over: of one at work other weights would be taken each time.
static bool is_there(const char *path) {
  char result[PATH_MAX];
  struct stat info;
  if (stat(path, &info) != 0) return false;
  if (!S_ISDIR(info.st_mode)) return true;
  return tarn__path_join(result, path, TARN__RUN_RESULT) == TARN_STATUS_OK && tarn__file_exists(result);
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
