// Exponents over a training (tarn_train_dynamics).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"
#include "config/config_vocabs.h"
#include "dynamics/dynamics.h"
#include "store/model_copy.h"
#include "text/lines.h"
#include "train/trainer.h"

// The model that is followed, and the sentences.
typedef struct following {
  tarn__checkpoint seen;  // its model is a copy; all else belongs to others
  bool drawn;             // the copy has its memory
  tarn_dynamics_options options;
  tarn__arena texts;
  const char **lines;
  size_t *lengths;
  size_t count, line_room, length_room;
} following;

static tarn_dynamics_options options_of(const tarn_config_dynamics *wanted, int threads) {
  tarn_dynamics_options o;
  tarn_dynamics_default(&o);
  o.precision =
      wanted->precision == TARN_ITERATING_DOUBLE ? TARN_DYNAMICS_PRECISION_DOUBLE : TARN_DYNAMICS_PRECISION_FP32;
  o.map = (tarn_dynamics_map)wanted->map;  // in the same order (names.c)
  o.first_layer = (int)wanted->first_layer;
  o.last_layer = (int)wanted->last_layer;
  o.iterations = wanted->iterations;
  o.exponents = wanted->exponents;
  o.discard = wanted->discard;
  // Nothing of these is logged.
  o.apart = 0;
  o.kept = 0;
  o.longest_period = 1;
  o.threads = threads;
  return o;
}

static tarn_status add_line(following *f, const char *line, size_t length) {
  void *memory;
  TARN_TRY(tarn__grow(&f->lines, &f->line_room, f->count + 1, sizeof *f->lines));
  TARN_TRY(tarn__grow(&f->lengths, &f->length_room, f->count + 1, sizeof *f->lengths));
  TARN_TRY(tarn__arena_alloc(&f->texts, &memory, length + 1, 1));
  memcpy(memory, line, length);
  f->lines[f->count] = memory;
  f->lengths[f->count++] = length;
  return TARN_STATUS_OK;
}

// The sentences are read once: the file may change while the training runs.
static tarn_status read_lines(following *f, const char *path, int64_t most) {
  tarn__lines lines;
  const char *line = "";
  size_t length;
  TARN_TRY(tarn__lines_open(&lines, path, false));
  lines.raw = true;  // encoding a line handles invalid bytes
  tarn_status status = TARN_STATUS_OK;
  while (status == TARN_STATUS_OK && line && (most == 0 || (int64_t)f->count < most)) {
    status = tarn__lines_next(&lines, &line, &length);
    if (status == TARN_STATUS_OK && line) status = add_line(f, line, length);
  }
  tarn__lines_close(&lines);
  TARN_TRY(status);
  TARN_REQUIRE(f->count > 0, DATA, "%s: there are no sentences to start from", path);
  return TARN_STATUS_OK;
}

static tarn_status open_now(tarn_dynamics **d, following *f) {
  TARN_TRY(tarn__dynamics_open_checkpoint(d, &f->seen, !f->drawn, &f->options));
  const tarn_status status = tarn_dynamics_encode(*d, f->lines, f->lengths, f->count);
  if (status == TARN_STATUS_OK) return status;
  tarn_dynamics_close(d);
  return tarn__fail_prefix(status, "%s: ", f->seen.config->dynamics.input);
}

// Reads the sentences, and checks all with a model of names and shapes.
static tarn_status begin(following *f, const tarn_config *config, int threads) {
  tarn_dynamics *d;
  f->seen.config = (tarn_config *)(uintptr_t)config;  // is only read
  f->seen.path = (char *)(uintptr_t)config->name;
  f->options = options_of(&config->dynamics, threads);
  TARN_TRY(read_lines(f, config->dynamics.input, config->dynamics.sentences));
  TARN_TRY(open_now(&d, f));
  const tarn_status status = tarn__dynamics_check(d);
  tarn_dynamics_close(&d);
  return status;
}

static void end(following *f) {
  tarn__model_close(&f->seen.model);
  tarn__free(f->lines);
  tarn__free(f->lengths);
  tarn__arena_close(&f->texts);
}

// Of all sentences, each with its length in front.
static tarn_status identify(char identity[TARN_TRAIN_IDENTITY], const following *f) {
  size_t size = 0;
  void *memory;
  _Static_assert((int)TARN_TRAIN_IDENTITY >= (int)TARN__HASH_TEXT, "a hash fits");
  for (size_t i = 0; i < f->count; i++) size += sizeof(uint64_t) + f->lengths[i];
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, size, 1));
  char *at = memory;
  for (size_t i = 0; i < f->count; i++) {
    const uint64_t length = f->lengths[i];
    memcpy(at, &length, sizeof length);
    memcpy(at + sizeof length, f->lines[i], f->lengths[i]);
    at += sizeof length + f->lengths[i];
  }
  tarn__hash(identity, memory, size);
  tarn__free(memory);
  return TARN_STATUS_OK;
}

static void close_following(void *state) {
  end(state);
  tarn__free(state);
}

static tarn_status on_progress(void *user, int64_t done, int64_t total) {
  const tarn_train *t = user;
  (void)done, (void)total;
  return t->stop && *t->stop ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static tarn_status open_following(void **state, tarn_train *t, char identity[TARN_TRAIN_IDENTITY]) {
  TARN_TRY(tarn__alloc(state, TARN__MEMORY_OTHER, 1, sizeof(following)));
  following *f = *state;
  f->seen.source = t->source;
  f->seen.target = t->target;
  tarn_status status = tarn__model_copy_open(&f->seen.model, t->model);
  if (status == TARN_STATUS_OK) status = begin(f, t->config, t->threads);
  if (status == TARN_STATUS_OK) status = identify(identity, f);
  f->options.progress = on_progress;
  f->options.user = t;
  if (status != TARN_STATUS_OK) close_following(f);
  return status;
}

// The medians of the exponents after the first.
static tarn_status add_spectrum(tarn_train_values *out, const tarn_dynamics_result *result) {
  tarn_dynamics_spread spread;
  char name[32];
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)result->count, sizeof(double)));
  double *values = memory;
  tarn_status status = TARN_STATUS_OK;
  for (int64_t k = 1; k < result->exponents && status == TARN_STATUS_OK; k++) {
    for (int64_t i = 0; i < result->count; i++) {
      const double value = result->sentences[i].exponents[k];
      values[i] = isfinite(value) ? value : NAN;
    }
    tarn__dynamics_spread_of(&spread, values, result->count);
    snprintf(name, sizeof name, "exponent_%lld", (long long)k + 1);
    status = tarn_train_values_add(out, name, spread.median);
  }
  tarn__free(values);
  return status;
}

static tarn_status add_values(tarn_train_values *out, const tarn_dynamics_result *result) {
  tarn_dynamics_summary s;
  TARN_TRY(tarn_dynamics_summarise(&s, result));
  TARN_TRY(tarn_train_values_add(out, "exponent", s.exponent.median));
  TARN_TRY(tarn_train_values_add(out, "exponent_lower", s.exponent.lower));
  TARN_TRY(tarn_train_values_add(out, "exponent_upper", s.exponent.upper));
  TARN_TRY(add_spectrum(out, result));
  const struct {
    const char *name;
    const tarn_dynamics_spread *spread;
  } medians[] = {{"kaplan_yorke", &s.kaplan_yorke},   {"growth", &s.growth},
                 {"expansion_end", &s.expansion_end}, {"participation", &s.participation},
                 {"rank_collapse", &s.rank_collapse}, {"token_distance", &s.token_distance},
                 {"token_cosine", &s.token_cosine}};
  for (size_t i = 0; i < sizeof medians / sizeof *medians; i++)
    TARN_TRY(tarn_train_values_add(out, medians[i].name, medians[i].spread->median));
  const double count = (double)s.sentences;
  for (int v = 0; v < TARN_DYNAMICS_VERDICT_UNKNOWN; v++)
    TARN_TRY(tarn_train_values_add(out, tarn_dynamics_verdict_name((tarn_dynamics_verdict)v),
                                   (double)s.verdicts[v] / count));
  return tarn_train_values_add(out, "vanished", (double)s.vanished / count);
}

static tarn_status compute(void *state, tarn_train *t, tarn_train_values *out) {
  following *f = state;
  const tarn__part_reader parts = {.read = tarn__train_read_part, .user = t};
  tarn_dynamics *d;
  tarn_dynamics_result *result = NULL;
  const int64_t update = tarn_train_update(t);
  if (!f->drawn) TARN_TRY(tarn__model_copy_allocate(f->seen.model, t->model, update));
  f->drawn = true;
  f->seen.update = update;
  TARN_TRY(tarn__model_copy_take(f->seen.model, t->model, update, &parts));
  TARN_TRY(open_now(&d, f));
  tarn_status status = tarn_dynamics_run(d, &result);
  if (status == TARN_STATUS_OK) status = add_values(out, result);
  tarn_dynamics_result_close(&result);
  tarn_dynamics_close(&d);
  return status;
}

void tarn_dynamics_follow(tarn_train_options *options) {
  static const tarn_train_dynamics dynamics = {open_following, compute, close_following};
  options->dynamics = &dynamics;
}

static tarn_status check(following *f, const tarn_config *config) {
  TARN_TRY(tarn__config_open_vocabs(config, &f->seen.source, &f->seen.target));
  TARN_TRY(tarn__model_open(&f->seen.model, config, tarn_vocab_size(f->seen.source), tarn_vocab_size(f->seen.target),
                            tarn__model_copy_type(config), false));
  // What is checked does not depend on the threads, and those of the process stay.
  return begin(f, config, tarn__threads());
}

tarn_status tarn_dynamics_check(const tarn_config *config) {
  const tarn_config_data *data = &config->data;
  following f = {0};
  if (!config->dynamics.input || !data->vocab || !tarn__file_exists(data->vocab) ||
      !tarn__file_exists(data->target_vocab) || !tarn__file_exists(config->dynamics.input))
    return TARN_STATUS_OK;
  const tarn_status status = check(&f, config);
  if (f.seen.target != f.seen.source) tarn_vocab_close(&f.seen.target);
  tarn_vocab_close(&f.seen.source);
  end(&f);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "dynamics: ");
}
