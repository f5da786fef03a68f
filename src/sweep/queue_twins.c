// Runs that several sweeps of a queue have: with the same description, seed, data and test. Such a run is trained once.
// What one sweep has recorded the others copy (reuse.c, which checks what is only supposed here), and what is at work
// for one the others wait for.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "sweep/queue_memory.h"

static const double COPY = 0.5;  // about the seconds that a copy takes

static tarn_status key_of(uint64_t *key, const tarn_sweep *sweep, size_t variant, int64_t seed, const char *test) {
  tarn_config *config;
  char *text;
  *key = 0;
  TARN_TRY(tarn__sweep_config(sweep, &config, &sweep->memory->edits[variant], seed));
  // Where training begins is another training's business: equal paths may be of other weights.
  const bool begun = config->train.init_from != NULL;
  tarn_status status = begun ? TARN_STATUS_OK : tarn_config_write(config, &text);
  tarn_config_close(&config);
  if (begun || status != TARN_STATUS_OK) return status;
  *key = tarn__hash64(text, strlen(text), tarn__hash64(test, strlen(test), 1)) | 1;
  tarn_config_text_close(&text);
  return TARN_STATUS_OK;
}

tarn_status tarn__queue_take_keys(tarn__queue_sweep *s) {
  const tarn_sweep *sweep = s->outline;
  json_t *object = tarn__sweep_test_json(sweep);
  char *test = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  tarn_status status = TARN_STATUS_OK;
  json_decref(object);
  TARN_REQUIRE(test, MEMORY, "out of memory: the test of a sweep");
  for (size_t v = 0; v < sweep->variant_count && status == TARN_STATUS_OK; v++)
    for (size_t i = 0; i < sweep->seed_count && status == TARN_STATUS_OK; i++)
      status = key_of(&s->keys[v * sweep->seed_count + i], sweep, v, sweep->seeds[i], test);
  free(test);
  return status;
}

static bool other_data(const tarn__queue_sweep *a, const tarn__queue_sweep *b) {
  return *a->data && *b->data && strcmp(a->data, b->data) != 0;
}

// Looks for a run in another sweep. *running: it is at work there.
static bool is_recorded(const tarn__queue_sweep *other, uint64_t key, bool *running) {
  const size_t runs = other->outline->variant_count * other->outline->seed_count;
  for (size_t i = 0; i < runs; i++) {
    if (other->keys[i] != key) continue;
    *running = *running || other->states[i] == TARN__QUEUE_RUNNING;
    return other->recorded[i];
  }
  return false;
}

// A training that was begun goes on: reuse is for those of which nothing is there.
static tarn_status is_begun(bool *begun, const tarn__queue_sweep *s, size_t variant, size_t seed) {
  char path[PATH_MAX];
  TARN_REQUIRE(snprintf(path, sizeof path, "%s/" TARN__RUN_SEED_PATH, s->runs, s->outline->variants[variant].name,
                        (long long)s->outline->seeds[seed]) < (int)sizeof path,
               IO, "%s: the path is too long", s->runs);
  *begun = tarn__file_exists(path);
  return TARN_STATUS_OK;
}

static tarn_status find_twins(struct tarn__queue_memory *q, size_t index, size_t variant, size_t seed) {
  tarn__queue_sweep *s = &q->sweeps[index];
  const size_t run = variant * s->outline->seed_count + seed;
  bool running = false, begun = false;
  s->sources[run] = NULL;
  if (s->states[run] != TARN__QUEUE_READY || s->keys[run] == 0) return TARN_STATUS_OK;
  for (size_t i = 0; i < q->public.count && !s->sources[run]; i++) {
    const tarn__queue_sweep *other = &q->sweeps[i];
    if (i == index || !other->outline || !other->states || other_data(s, other)) continue;
    if (is_recorded(other, s->keys[run], &running)) s->sources[run] = other;
  }
  if (s->sources[run] || running) TARN_TRY(is_begun(&begun, s, variant, seed));
  if (begun) s->sources[run] = NULL;
  if (s->sources[run]) s->seconds[run] = fmin(s->seconds[run], COPY);
  if (running && !begun && !s->sources[run]) s->states[run] = TARN__QUEUE_WAITING;
  return TARN_STATUS_OK;
}

tarn_status tarn__queue_twins(struct tarn__queue_memory *q, size_t index) {
  const tarn__queue_sweep *s = &q->sweeps[index];
  for (size_t v = 0; v < s->outline->variant_count; v++)
    for (size_t i = 0; i < s->outline->seed_count; i++) TARN_TRY(find_twins(q, index, v, i));
  return TARN_STATUS_OK;
}
