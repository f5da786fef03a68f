#include "decode/generator.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"
#include "decode/crew.h"
#include "decode/steering.h"
#include "task/task.h"

// Active prompt tokens of one decoder, whose keys and values stay in its caches.
enum { PROMPT_TOKENS = 1 << 16 };

struct tarn__generator {
  tarn__generator_options options;
  const tarn__model *model;
  int threads;
  void *packed;  // weights of products; NULL on the reference device
  tarn__crew crew;
  // State of one run.
  tarn__item *items;
  tarn__translation *found;  // of each item
  size_t items_capacity, found_capacity;
  tarn__arena results;
};

void tarn__generator_default(tarn__generator_options *options) {
  *options = (tarn__generator_options){.max_tokens = 100,
                                       .number = 1,
                                       .beam = 1,
                                       .length_penalty = 1.0,
                                       .sampling = {.temperature = 1.0, .top_p = 1.0, .seed = 1, .typical_p = 1.0},
                                       .groups = 1};
}

static tarn_status check_options(const tarn__generator_options *o, const tarn__model *model, int32_t eos) {
  TARN_TRY(tarn__task_require(model->config, TARN__USE_CONTINUE_TEXT, NULL));
  TARN_REQUIRE(o->max_tokens >= 1 && o->max_tokens <= (int64_t)1 << 30, USAGE,
               "max-tokens must be from 1 to %d, not %lld", 1 << 30, (long long)o->max_tokens);
  TARN_REQUIRE(o->min_tokens >= 0 && o->min_tokens <= o->max_tokens, USAGE,
               "min-tokens must be from 0 to the max-tokens of %lld, not %lld", (long long)o->max_tokens,
               (long long)o->min_tokens);
  TARN_REQUIRE(o->beam >= 1 && o->beam <= 1024, USAGE, "beam must be from 1 to 1024, not %lld", (long long)o->beam);
  TARN_REQUIRE(o->length_penalty >= -100 && o->length_penalty <= 100, USAGE,
               "length penalty must be from -100 to 100, not %g", o->length_penalty);
  TARN_REQUIRE(o->number >= 1 && o->number <= 1000000, USAGE, "number must be from 1 to 1000000, not %lld",
               (long long)o->number);
  TARN_REQUIRE(!o->samples || o->beam == 1, USAGE, "a beam searches and does not sample");
  TARN_REQUIRE(o->samples || o->number <= o->beam, USAGE,
               "a beam of %lld gives at most as many continuations, not %lld", (long long)o->beam,
               (long long)o->number);
  if (o->samples) TARN_TRY(tarn__steering_check_sampling(&o->sampling));
  TARN_TRY(tarn__model_pack_check(model, o->rounding));
  TARN_REQUIRE(o->banned_count >= 0 && o->banned_count <= TARN__BANNED, USAGE, "too many tokens are banned");
  TARN_REQUIRE(eos >= 0 && eos < model->target_vocab, DATA, "the end of sentence %d is outside the vocabulary", eos);
  return TARN_STATUS_OK;
}

// They point to the sampling of `o`.
static tarn__decoder_options decoder_options(const tarn__generator_options *o, int32_t eos) {
  tarn__decoder_options own = {.search = {.beam = o->beam,
                                          .length_penalty = o->length_penalty,
                                          .eos = eos,
                                          .min_length = o->min_tokens,
                                          .open_end = true,
                                          .banned_count = o->banned_count,
                                          .groups = o->groups,
                                          .diversity = o->diversity},
                               .sampling = o->samples ? &o->sampling : NULL,
                               .processing = o->processing,
                               .stops = o->stops,
                               .max_len_b = o->max_tokens,
                               .max_tokens = PROMPT_TOKENS,
                               .n_best = o->samples ? 1 : o->number};
  memcpy(own.search.banned, o->banned, sizeof o->banned);
  return own;
}

// The options must be the generator's own, because its decoders point to the sampling in them.
static tarn_status open_crew(tarn__crew *crew, const tarn__generator *g, int32_t eos) {
  const tarn__decoder_options own = decoder_options(&g->options, eos);
  return tarn__crew_open(crew, g->model, &own, g->threads);
}

static tarn_status open_all(tarn__generator *g, int32_t eos) {
  const tarn__generator_options *o = &g->options;
  TARN_TRY(open_crew(&g->crew, g, eos));
  const size_t bytes = tarn__model_pack_bytes(g->model, o->rounding);
  TARN_TRY(tarn__device_allocate(g->model->device, &g->packed, TARN__MEMORY_OTHER, bytes, 1));
  return tarn__model_pack(g->model, g->packed, o->rounding, g->threads);
}

tarn_status tarn__generator_open(tarn__generator **generator, const tarn__model *model, int32_t eos,
                                 const tarn__generator_options *options) {
  *generator = NULL;
  TARN_TRY(check_options(options, model, eos));
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__generator)));
  tarn__generator *g = memory;
  g->options = *options;
  g->model = model;
  g->threads = options->threads > 0 ? options->threads : tarn__threads();
  tarn_status status = open_all(g, eos);
  if (status != TARN_STATUS_OK) {
    tarn__generator_close(&g);
    return status;
  }
  *generator = g;
  return TARN_STATUS_OK;
}

tarn_status tarn__generator_set(tarn__generator *generator, const tarn__generator_options *options) {
  const tarn__generator_options before = generator->options;
  const int32_t eos = generator->crew.options.search.eos;
  tarn__crew crew;
  TARN_TRY(check_options(options, generator->model, eos));
  generator->options = *options;
  generator->options.threads = before.threads;
  generator->options.rounding = before.rounding;
  const tarn_status status = open_crew(&crew, generator, eos);
  if (status != TARN_STATUS_OK) {
    tarn__crew_close(&crew);
    generator->options = before;
    return status;
  }
  tarn__crew_close(&generator->crew);
  generator->crew = crew;
  return TARN_STATUS_OK;
}

void tarn__generator_close(tarn__generator **generator) {
  tarn__generator *g = *generator;
  if (!g) return;
  tarn__crew_close(&g->crew);
  if (g->packed) {
    tarn__model_unpack(g->model);
    tarn__device_free(g->model->device, g->packed);
  }
  tarn__free(g->items);
  tarn__free(g->found);
  tarn__arena_close(&g->results);
  tarn__free(g);
  *generator = NULL;
}

int64_t tarn__generator_longest(const tarn__generator *generator) { return tarn__model_longest(generator->model) - 1; }

void tarn__generator_get_stats(const tarn__generator *generator, tarn__decoder_stats *stats) {
  tarn__crew_get_stats(&generator->crew, stats);
}

tarn_status tarn__generator_check_prompt(const tarn__generator *g, const int32_t *ids, int64_t length, int64_t number) {
  const int64_t longest = tarn__generator_longest(g);
  TARN_REQUIRE(length <= longest, DATA, "prompt %lld has %lld tokens, and the model takes %lld before the next one",
               (long long)number, (long long)length, (long long)longest);
  for (int64_t i = 0; i < length; i++)
    TARN_REQUIRE(ids[i] >= 0 && ids[i] < g->model->target_vocab, DATA,
                 "prompt %lld has the token %d, which is not in the vocabulary of %lld tokens", (long long)number,
                 ids[i], (long long)g->model->target_vocab);
  return TARN_STATUS_OK;
}

uint64_t tarn__generator_key(const int32_t *ids, int64_t length) {
  return tarn__hash64(ids, (size_t)length * sizeof *ids, 0);
}

// Each sample of a prompt is a separate item.
static int64_t items_each(const tarn__generator *g) { return g->options.samples ? g->options.number : 1; }

static tarn_status make_items(tarn__generator *g, const int32_t *ids, const int64_t *offsets, int64_t prompts) {
  const int64_t each = items_each(g);
  size_t count;
  TARN_TRY(tarn__mul_size(&count, (size_t)prompts, (size_t)each));
  TARN_TRY(tarn__grow(&g->items, &g->items_capacity, count, sizeof *g->items));
  TARN_TRY(tarn__grow(&g->found, &g->found_capacity, count, sizeof *g->found));
  for (int64_t p = 0; p < prompts; p++) {
    tarn__item item = {.ids = ids + offsets[p], .length = offsets[p + 1] - offsets[p]};
    TARN_TRY(tarn__generator_check_prompt(g, item.ids, item.length, p + 1));
    item.key = tarn__generator_key(item.ids, item.length);
    for (int64_t s = 0; s < each; s++) {
      item.sample = (uint32_t)s;
      item.index = p * each + s;
      g->items[item.index] = item;
    }
  }
  return TARN_STATUS_OK;
}

// Collects the samples of each prompt.
static tarn_status gather(tarn__generator *g, tarn__translation *results, int64_t prompts) {
  const int64_t each = items_each(g);
  for (int64_t p = 0; p < prompts; p++) {
    results[p] = g->found[p * each];
    if (each == 1) continue;
    void *memory;
    TARN_TRY(tarn__arena_alloc(&g->results, &memory, (size_t)each, sizeof(tarn__hypothesis)));
    tarn__hypothesis *hypotheses = memory;
    for (int64_t s = 0; s < each; s++) hypotheses[s] = g->found[p * each + s].hypotheses[0];
    results[p] = (tarn__translation){hypotheses, each};
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__generator_run(tarn__generator *generator, tarn__translation *results, const int32_t *ids,
                                const int64_t *offsets, int64_t prompts) {
  tarn__crew_reset(&generator->crew);
  tarn__arena_reset(&generator->results);
  TARN_TRY(make_items(generator, ids, offsets, prompts));
  TARN_TRY(tarn__crew_run(&generator->crew, generator->items, prompts * items_each(generator), generator->found));
  return gather(generator, results, prompts);
}

tarn_status tarn__generator_item(const tarn__generator *g, tarn__item_options *own, bool *draws,
                                 const tarn__generator_options *options) {
  const int32_t eos = g->crew.options.search.eos;
  TARN_TRY(check_options(options, g->model, eos));
  const tarn__decoder_options decoder = decoder_options(options, eos);
  *own = tarn__decoder_item(&decoder);
  *draws = options->beam == 1;
  if (*draws && !options->samples)
    own->sampling = (tarn__sampling){.temperature = 1.0, .top_k = 1, .top_p = 1.0, .typical_p = 1.0};
  return TARN_STATUS_OK;
}

tarn_status tarn__generator_feed(tarn__generator *generator, bool draws, const tarn__feed *feed) {
  return tarn__crew_feed(&generator->crew, draws, feed);
}
