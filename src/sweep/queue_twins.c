// Runs that several sweeps of a queue have: with the same description, seed, data and test. Such a run is trained once.
// What one sweep has recorded the others copy (reuse.c, which checks the training data again), and what is at work for
// one the others wait for.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "data/shard.h"
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

// Adds the contents of a file to `key`, or the hash of a shard; NULL: there is none. *known: it could be read so far.
static tarn_status add_file(uint64_t *key, bool *known, const tarn__queue_sweep *s, const char *name, bool is_shard) {
  char path[PATH_MAX], hash[TARN__HASH_TEXT];
  if (!name || !*known) return TARN_STATUS_OK;
  if (name[0] == '/')
    TARN_TRY(tarn__path_join(path, "/", name + 1));
  else
    TARN_TRY(tarn__queue_path(path, s, name));
  tarn__shard shard = {0};
  tarn_status status = is_shard ? tarn__shard_open(&shard, path) : tarn__hash_file(hash, path);
  if (status == TARN_STATUS_MEMORY) return status;
  if (is_shard && status == TARN_STATUS_OK) snprintf(hash, sizeof hash, "%s", shard.hash);
  tarn__shard_close(&shard);
  *known = status == TARN_STATUS_OK;
  if (*known) *key = tarn__hash64(hash, strlen(hash), *key);
  return TARN_STATUS_OK;
}

// The files of which a record does not tell, as far as they are files: equal paths may be of others in each folder.
static tarn_status take_files(tarn__queue_sweep *s, size_t variant) {
  const tarn_config *config = s->outline->variants[variant].config;
  uint64_t key = 1;
  bool known = true;
  TARN_TRY(add_file(&key, &known, s, config->data.valid, true));
  TARN_TRY(add_file(&key, &known, s, config->data.valid_reference, false));
  for (int32_t i = 0; i < config->set_count; i++) {
    TARN_TRY(add_file(&key, &known, s, config->sets[i].data, true));
    TARN_TRY(add_file(&key, &known, s, config->sets[i].reference, false));
  }
  TARN_TRY(add_file(&key, &known, s, s->outline->test_source, false));
  TARN_TRY(add_file(&key, &known, s, s->outline->test_reference, false));
  TARN_TRY(add_file(&key, &known, s, s->outline->test_labelled, true));
  TARN_TRY(add_file(&key, &known, s, s->outline->test_text, false));
  s->files[variant] = known ? key | 1 : 0;
  return TARN_STATUS_OK;
}

tarn_status tarn__queue_take_keys(tarn__queue_sweep *s) {
  const tarn_sweep *sweep = s->outline;
  json_t *object = tarn__sweep_test_json(sweep);
  char *test = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  tarn_status status = TARN_STATUS_OK;
  json_decref(object);
  TARN_REQUIRE(test, MEMORY, "out of memory: the test of a sweep");
  for (size_t v = 0; v < sweep->variant_count && status == TARN_STATUS_OK; v++) {
    status = take_files(s, v);
    for (size_t i = 0; i < sweep->seed_count && status == TARN_STATUS_OK; i++)
      status = key_of(&s->keys[v * sweep->seed_count + i], sweep, v, sweep->seeds[i], test);
  }
  free(test);
  return status;
}

static bool other_data(const tarn__queue_sweep *a, size_t variant, const tarn__queue_sweep *b, size_t other) {
  const bool trained = *a->data[variant] && *b->data[other] && strcmp(a->data[variant], b->data[other]) != 0;
  return trained || (a->files[variant] && b->files[other] && a->files[variant] != b->files[other]);
}

typedef enum twin { NO_TWIN, AT_WORK, RECORDED } twin;

// What another sweep has of a run.
static twin look_into(const tarn__queue_sweep *other, const tarn__queue_sweep *s, size_t variant, uint64_t key) {
  const size_t seeds = other->outline->seed_count, runs = other->outline->variant_count * seeds;
  for (size_t i = 0; i < runs; i++) {
    if (other->keys[i] != key || other_data(s, variant, other, i / seeds)) continue;
    if (other->recorded[i]) return RECORDED;
    if (other->states[i] == TARN__QUEUE_RUNNING) return AT_WORK;
    // It may be over, and not be read from the records yet.
    const bool late = other->unrecorded || other->unread_since > 0;
    return late && !other->public->problem ? AT_WORK : NO_TWIN;
  }
  return NO_TWIN;
}

// A training that was begun goes on: copies are for those of which nothing is there.
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
  bool at_work = false, begun = false;
  s->sources[run] = NULL;
  if (s->states[run] != TARN__QUEUE_READY || s->keys[run] == 0 || s->bodies[run]) return TARN_STATUS_OK;
  for (size_t i = 0; i < q->public.count && !s->sources[run]; i++) {
    const tarn__queue_sweep *other = &q->sweeps[i];
    if (i == index || !other->outline || !other->states) continue;
    const twin found = look_into(other, s, variant, s->keys[run]);
    if (found == RECORDED) s->sources[run] = other;
    at_work = at_work || found == AT_WORK;
  }
  if (s->sources[run] || at_work) TARN_TRY(is_begun(&begun, s, variant, seed));
  if (begun) s->sources[run] = NULL;
  if (s->sources[run]) s->seconds[run] = fmin(s->seconds[run], COPY);
  if (at_work && !begun && !s->sources[run]) s->states[run] = TARN__QUEUE_WAITING;
  return TARN_STATUS_OK;
}

tarn_status tarn__queue_twins(struct tarn__queue_memory *q, size_t index) {
  const tarn__queue_sweep *s = &q->sweeps[index];
  for (size_t v = 0; v < s->outline->variant_count; v++)
    for (size_t i = 0; i < s->outline->seed_count; i++) TARN_TRY(find_twins(q, index, v, i));
  return TARN_STATUS_OK;
}
