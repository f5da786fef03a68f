#include "serve/serve_set.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void serve_set_open(serve_set *set, const cli_command *command, int64_t memory) {
  memset(set, 0, sizeof *set);
  set->command = command;
  set->memory = memory;
  set->reload.use = SERVE_USES;
  pthread_mutex_init(&set->offers.lock, NULL);
}

bool serve_set_add(serve_set *set, const char *name, const serve_models *model) {
  if (!set->offers.items) set->offers.items = calloc(SERVE_SET_MODELS, sizeof *set->offers.items);
  if (!set->offers.items || set->offers.count == SERVE_SET_MODELS) return false;
  serve_offer *offer = &set->offers.items[set->offers.count];
  snprintf(offer->id, sizeof offer->id, "%s", name);
  serve_models *m = &set->models[set->offers.count++];
  *m = *model;
  m->offer = offer;
  m->pause = &set->pause;
  return true;
}

void serve_set_close(serve_set *set) {
  for (size_t i = 0; i < set->offers.count; i++) {
    serve_models_close(&set->models[i]);
    tarn_checkpoint_found_close(&set->models[i].found);
  }
  free(set->offers.items);
  pthread_mutex_destroy(&set->offers.lock);
}

// --- memory ----------------------------------------------------------------------------------------------------------

static int64_t resident(void) {
  long long all, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (fscanf(file, "%lld %lld", &all, &pages) != 2) pages = 0;
  fclose(file);
  return (int64_t)pages * (int64_t)sysconf(_SC_PAGESIZE);
}

static int64_t file_bytes(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 ? (int64_t)about.st_size : 0;
}

static int64_t in_use(const serve_set *set) {
  int64_t bytes = 0;
  for (size_t i = 0; i < set->offers.count; i++)
    if (set->models[i].loaded) bytes += set->bytes[i];
  return bytes;
}

static void tell(const serve_set *set, bool read) {
  int64_t count = 0;
  for (size_t i = 0; i < set->offers.count; i++) count += set->models[i].loaded;
  serve_metrics_models(set->models[0].metrics, count, in_use(set), read);
}

// Forgets the model that was used least recently, but not the one of this number. False: there is no other.
static bool forget_one(serve_set *set, size_t except) {
  size_t oldest = set->offers.count;
  for (size_t i = 0; i < set->offers.count; i++)
    if (set->models[i].loaded && i != except && (oldest == set->offers.count || set->used[i] < set->used[oldest]))
      oldest = i;
  if (oldest == set->offers.count) return false;
  serve_models_close(&set->models[oldest]);
  malloc_trim(0);
  tell(set, false);
  return true;
}

// Reads a model, and measures it: what it takes can only be known then.
static tarn_status read_model(serve_set *set, size_t number) {
  serve_models *m = &set->models[number];
  const int64_t before = resident();
  const tarn_status status = serve_models_open(m);
  const int64_t grown = resident() - before, file = file_bytes(m->found.path);
  if (status == TARN_STATUS_OK) set->bytes[number] = grown > file ? grown : file;
  return status;
}

static tarn_status too_large(serve_set *set, size_t number, int64_t bytes) {
  snprintf(set->why, sizeof set->why, "the model \"%.200s\" takes %lld bytes, more than the %lld of --model-memory",
           set->models[number].offer->id, (long long)bytes, (long long)set->memory);
  return TARN_STATUS_MEMORY;
}

// Has a model in memory.
static tarn_status ready(serve_set *set, size_t number) {
  serve_models *m = &set->models[number];
  const double begin = serve_seconds();
  set->why[0] = '\0';
  set->used[number] = ++set->clock;
  if (m->loaded) return TARN_STATUS_OK;
  const int64_t expected = set->bytes[number] > 0 ? set->bytes[number] : file_bytes(m->found.path);
  // What can never have room does not take that of others.
  if (set->memory > 0 && expected > set->memory) return too_large(set, number, expected);
  while (set->memory > 0 && in_use(set) + expected > set->memory && forget_one(set, number)) continue;
  tarn_status status = read_model(set, number);
  while (status == TARN_STATUS_MEMORY && forget_one(set, number)) status = read_model(set, number);
  while (set->memory > 0 && m->loaded && in_use(set) > set->memory && forget_one(set, number)) continue;
  if (set->memory > 0 && m->loaded && in_use(set) > set->memory) {
    status = too_large(set, number, set->bytes[number]);
    serve_models_close(m);
  }
  tell(set, status == TARN_STATUS_OK);
  set->pause = (serve_pause){.until = serve_seconds(), .seconds = serve_seconds() - begin};
  return status;
}

tarn_status serve_set_start(void *user) {
  serve_set *set = user;
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; status == TARN_STATUS_OK && i < set->offers.count; i++)
    status = serve_models_look(&set->models[i]);
  if (status != TARN_STATUS_OK) return status;
  return ready(set, 0);
}

// --- reading again ---------------------------------------------------------------------------------------------------

static bool same_limits(const serve_limits *a, const serve_limits *b) {
  return a->refines == b->refines && a->edits == b->edits && a->beam == b->beam && a->iterations == b->iterations &&
         a->length_penalty == b->length_penalty;
}

// Finds a model's file again and reads it, if it is in memory, beside the old one, which stays if anything fails:
// requests were read for the uses and limits of the old one.
static void read_again(serve_set *set, size_t number) {
  serve_models *m = &set->models[number];
  serve_models fresh = *m;
  serve_offer offer = *m->offer;
  memset(offer.uses, 0, sizeof offer.uses);
  offer.verb = NULL;
  fresh.offer = &offer;
  fresh.found = (tarn_checkpoint_found){0};
  fresh.loaded = false;
  fresh.translator = NULL;
  fresh.lm = NULL;
  fresh.generator = NULL;
  fresh.classifier = NULL;
  fresh.states = NULL;
  fresh.texts = NULL;
  fresh.lengths = NULL;
  fresh.results = NULL;
  fresh.texts_room = fresh.results_bytes = 0;
  const char *why = "the new file has another task, or other limits";
  tarn_status status = serve_models_look(&fresh);
  bool good = status == TARN_STATUS_OK && memcmp(offer.uses, m->offer->uses, sizeof offer.uses) == 0 &&
              offer.verb == m->offer->verb && same_limits(&offer.limits, &m->offer->limits);
  if (good && m->loaded) good = (status = serve_models_open(&fresh)) == TARN_STATUS_OK;
  if (status != TARN_STATUS_OK) why = *tarn_error_message() ? tarn_error_message() : tarn_status_text(status);
  if (!good) {
    fprintf(stderr, "tarn %s: %s stays as it is: %s\n", set->command->name, m->offer->id, why);
    serve_models_close(&fresh);
    tarn_checkpoint_found_close(&fresh.found);
    return;
  }
  serve_models_close(m);
  tarn_checkpoint_found_close(&m->found);
  fresh.offer = m->offer;
  *m = fresh;
  pthread_mutex_lock(&set->offers.lock);
  memcpy(m->offer->name, offer.name, sizeof offer.name);
  m->offer->precision = offer.precision;
  pthread_mutex_unlock(&set->offers.lock);
  fprintf(stderr, "tarn %s: %s is now %s\n", set->command->name, m->offer->id, m->found.path);
  tell(set, m->loaded);
}

static void read_all_again(serve_set *set) {
  const double begin = serve_seconds();
  for (size_t i = 0; i < set->offers.count; i++) read_again(set, i);
  malloc_trim(0);
  set->pause = (serve_pause){.until = serve_seconds(), .seconds = serve_seconds() - begin};
}

void serve_set_work(void *user, void *const *items, size_t count) {
  serve_set *set = user;
  serve_request *const *requests = (serve_request *const *)items;
  if (requests[0]->use == SERVE_USES) {
    read_all_again(set);
    return;
  }
  const size_t number = (size_t)(requests[0]->offer - set->offers.items);
  serve_models *m = &set->models[number];
  const tarn_status status = ready(set, number);
  if (status == TARN_STATUS_OK) {
    serve_models_run(m, requests, count);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    if (set->why[0])
      serve_request_refuse(requests[i], 503, "%s", set->why);
    else
      serve_models_fail(requests[i], status);
    m->done(requests[i]);
  }
}
