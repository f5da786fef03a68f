#include "decode/translate.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"
#include "decode/aligner.h"
#include "decode/crew.h"
#include "decode/engine.h"
#include "decode/steering.h"
#include "decode/translate_share.h"

struct tarn__translator {
  tarn__translator_options options;
  const tarn__model *model;
  int threads;
  void *packed;  // weights (tarn__model_pack()), if they do not change; NULL on the reference device
  tarn__crew crew;
  int64_t earlier_iterations;  // of crews before this one
  void *lent_packed;           // for weights that change, in lent memory; NULL: too small
  tarn__translate_share shared;
  const int32_t *prefix_ids;  // of the next run
  const int64_t *prefix_offsets;
  const tarn__forced *forced;  // the same
  tarn__aligner aligner;       // open if it was ever needed
  tarn__arena samples;         // of the last run
};

void tarn__translator_default(tarn__translator_options *options) {
  *options = (tarn__translator_options){.beam = 5,
                                        .length_penalty = 1.0,
                                        .max_len_a = 1.2,
                                        .max_len_b = 10,
                                        .max_tokens = 4096,
                                        .n_best = 1,
                                        .min_length = 1,
                                        .early_stopping = true,
                                        .iterations = 10,
                                        .length_beam = 5,
                                        .placeholder_penalty = 0,
                                        .threads = 0,
                                        .groups = 1,
                                        .sampling = {.temperature = 1.0, .top_p = 1.0, .seed = 1, .typical_p = 1.0},
                                        .pad = -1,
                                        .unk = -1,
                                        .allow_unk = true,
                                        .mask = -1};
}

void tarn__translator_from_config(tarn__translator_options *options, const tarn_config *config) {
  tarn__translator_default(options);
  options->beam = config->translate.beam;
  options->length_penalty = config->translate.length_penalty;
  options->max_len_a = config->translate.max_len_a;
  options->max_len_b = config->translate.max_len_b;
  options->max_tokens = config->translate.max_tokens;
  options->min_length = config->translate.min_length;
  options->early_stopping = config->translate.early_stopping;
  options->allow_unk = config->translate.allow_unk;
  options->iterations = config->translate.iterations;
  options->length_beam = config->translate.length_beam;
  options->placeholder_penalty = config->translate.placeholder_penalty;
}

static tarn_status check_options(const tarn__translator_options *options, const tarn__model *model, int32_t eos) {
  TARN_TRY(tarn__engine_of(model->config)->check(options));
  TARN_REQUIRE(options->max_tokens >= 1 && options->max_tokens <= 1 << 24, USAGE,
               "max-tokens must be from 1 to 16777216, not %lld", (long long)options->max_tokens);
  TARN_TRY(tarn__model_pack_check(model, options->rounding));
  TARN_REQUIRE(eos >= 0 && eos < model->target_vocab, DATA, "the end of sentence %d is outside the vocabulary", eos);
  return TARN_STATUS_OK;
}

static void ban(tarn__beam_options *search, int32_t id) {
  if (id >= 0 && id != search->eos) search->banned[search->banned_count++] = id;
}

// They point to the sampling of `options`.
static tarn__decoder_options decoder_options(const tarn__translator_options *options, int32_t eos) {
  const int64_t beam = options->samples > 0 ? 1 : options->beam;
  tarn__decoder_options own = {.search = {.beam = beam,
                                          .length_penalty = options->length_penalty,
                                          .eos = eos,
                                          .min_length = options->min_length,
                                          .late_stop = !options->early_stopping && beam > 1,
                                          .groups = options->groups,
                                          .diversity = options->diversity},
                               .sampling = options->samples > 0 ? &options->sampling : NULL,
                               .processing = options->processing,
                               .forced = options->forced,
                               .max_len_a = options->max_len_a,
                               .max_len_b = options->max_len_b,
                               .max_tokens = options->max_tokens,
                               .n_best = options->samples > 0               ? 1
                                         : options->coverage_penalty != 0.0 ? beam
                                                                            : options->n_best,
                               .iterations = options->iterations,
                               .length_beam = options->length_beam,
                               .placeholder_penalty = options->placeholder_penalty,
                               .mask = options->mask,
                               .profile = options->profile};
  ban(&own.search, options->pad);
  if (!options->allow_unk) ban(&own.search, options->unk);
  return own;
}

static tarn_status open_crew(tarn__crew *crew, const tarn__translator *t, int32_t eos) {
  const tarn__decoder_options own = decoder_options(&t->options, eos);
  return tarn__crew_open(crew, t->model, &own, t->threads);
}

static bool aligns(const tarn__translator_options *options) {
  return options->coverage_penalty != 0.0 || options->alignment;
}

// Opens what the options need, unless it is open.
static tarn_status open_aligner(tarn__translator *t, int32_t eos, const tarn__translator_options *options) {
  if (!aligns(options) || t->aligner.model) return TARN_STATUS_OK;
  const tarn_status status = tarn__aligner_open(&t->aligner, t->model, eos, options->max_tokens, t->threads);
  if (status != TARN_STATUS_OK) tarn__aligner_close(&t->aligner);
  return status;
}

tarn_status tarn__translator_open(tarn__translator **translator, const tarn__model *model, int32_t eos,
                                  const tarn__translator_options *options) {
  *translator = NULL;
  TARN_TRY(check_options(options, model, eos));
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__translator)));
  tarn__translator *t = memory;
  t->options = *options;
  t->model = model;
  t->threads = options->threads > 0 ? options->threads : tarn__threads();
  tarn_status status = tarn__translate_share_open(&t->shared, options->comm);
  if (status == TARN_STATUS_OK) status = open_crew(&t->crew, t, eos);
  if (status == TARN_STATUS_OK) status = open_aligner(t, eos, options);
  if (status == TARN_STATUS_OK && !options->weights_change)
    status = tarn__device_allocate(model->device, &t->packed, TARN__MEMORY_OTHER,
                                   tarn__model_pack_bytes(model, options->rounding), 1);
  if (status == TARN_STATUS_OK && t->packed) status = tarn__model_pack(model, t->packed, options->rounding, t->threads);
  if (status != TARN_STATUS_OK) {
    tarn__translator_close(&t);
    return status;
  }
  *translator = t;
  return TARN_STATUS_OK;
}

tarn_status tarn__translator_set(tarn__translator *translator, const tarn__translator_options *options) {
  const tarn__translator_options before = translator->options;
  const int32_t eos = translator->crew.options.search.eos;
  TARN_TRY(check_options(options, translator->model, eos));
  TARN_TRY(open_aligner(translator, eos, options));
  if (options->beam == before.beam && options->n_best == before.n_best &&
      options->length_penalty == before.length_penalty && options->max_len_a == before.max_len_a &&
      options->max_len_b == before.max_len_b && options->max_tokens == before.max_tokens &&
      options->iterations == before.iterations && options->length_beam == before.length_beam &&
      options->placeholder_penalty == before.placeholder_penalty && options->groups == before.groups &&
      options->diversity == before.diversity && options->forced == before.forced &&
      options->coverage_penalty == before.coverage_penalty && !options->processing && !before.processing &&
      options->samples == 0 && before.samples == 0) {
    translator->options.alignment = options->alignment;  // all that may differ
    return TARN_STATUS_OK;
  }
  tarn__crew crew;
  translator->options = *options;
  const tarn_status status = open_crew(&crew, translator, eos);
  if (status != TARN_STATUS_OK) {
    tarn__crew_close(&crew);
    translator->options = before;
    return status;
  }
  tarn__translator_stats stats;
  tarn__crew_get_stats(&translator->crew, &stats);
  translator->earlier_iterations += stats.iterations;
  tarn__crew_close(&translator->crew);
  translator->crew = crew;
  return TARN_STATUS_OK;
}

void tarn__translator_close(tarn__translator **translator) {
  tarn__translator *t = *translator;
  if (!t) return;
  tarn__crew_close(&t->crew);
  tarn__translate_share_close(&t->shared);
  tarn__arena_close(&t->samples);
  tarn__aligner_close(&t->aligner);
  if (t->packed) {
    tarn__model_unpack(t->model);
    tarn__device_free(t->model->device, t->packed);
  }
  tarn__free(t);
  *translator = NULL;
}

void tarn__translator_get_stats(const tarn__translator *translator, tarn__translator_stats *stats) {
  tarn__crew_get_stats(&translator->crew, stats);
  stats->iterations += translator->earlier_iterations;
}

void tarn__translator_lend(tarn__translator *translator, void *memory, size_t bytes) {
  const tarn__translator_options *options = &translator->options;
  size_t pack = options->weights_change ? tarn__model_pack_bytes(translator->model, options->rounding) : 0;
  pack = (pack + 63) & ~(size_t)63;
  if (pack > bytes) pack = 0;
  translator->lent_packed = pack > 0 ? memory : NULL;
  tarn__crew_lend(&translator->crew, memory ? (char *)memory + pack : NULL, bytes - pack);
}

static int longest_first(const void *a, const void *b) {
  const tarn__item *x = a;
  const tarn__item *y = b;
  if (x->length != y->length) return x->length < y->length ? 1 : -1;
  return (x->index > y->index) - (x->index < y->index);
}

// Each sample of a sentence is an item.
static int64_t items_each(const tarn__translator *t) { return t->options.samples > 0 ? t->options.samples : 1; }

// The number of a sentence, of which there are `each` items.
static long long number_of(const tarn__item *sentence, int64_t each) { return (long long)(sentence->index / each) + 1; }

static tarn_status check_sentence(const tarn__translator *t, const tarn__item *sentence, int64_t each) {
  int64_t longest = t->model->config->model.max_length;
  TARN_REQUIRE(sentence->length >= 1 && sentence->length <= longest, DATA,
               "sentence %lld has %lld tokens, and the model takes 1 to %lld", number_of(sentence, each),
               (long long)sentence->length, (long long)longest);
  for (int64_t i = 0; i < sentence->length; i++)
    TARN_REQUIRE(sentence->ids[i] >= 0 && sentence->ids[i] < t->model->source_vocab, DATA,
                 "sentence %lld has the token %d, which is outside the vocabulary", number_of(sentence, each),
                 sentence->ids[i]);
  return TARN_STATUS_OK;
}

static tarn_status check_prefix(const tarn__translator *t, const tarn__item *sentence, int64_t each) {
  const int64_t longest = t->model->config->model.max_length - 2;
  TARN_REQUIRE(sentence->prefix_length <= longest, DATA,
               "the prefix of sentence %lld has %lld tokens, and the model takes at most %lld",
               number_of(sentence, each), (long long)sentence->prefix_length, (long long)longest);
  for (int64_t i = 0; i < sentence->prefix_length; i++)
    TARN_REQUIRE(sentence->prefix[i] >= 0 && sentence->prefix[i] < t->model->target_vocab, DATA,
                 "the prefix of sentence %lld has the token %d, which is outside the vocabulary",
                 number_of(sentence, each), sentence->prefix[i]);
  return TARN_STATUS_OK;
}

static tarn_status translate_items(tarn__translator *t, tarn__item *items, int64_t sentences,
                                   tarn__translation *translations) {
  for (int64_t s = 0; s < sentences; s++) {
    TARN_TRY(check_sentence(t, &items[s], items_each(t)));
    TARN_TRY(check_prefix(t, &items[s], items_each(t)));
  }
  qsort(items, (size_t)sentences, sizeof *items, longest_first);
  return tarn__crew_run(&t->crew, items, sentences, translations);
}

// Packs changing weights for this run only.
static tarn_status translate_packed(tarn__translator *t, tarn__item *items, int64_t sentences,
                                    tarn__translation *translations) {
  void *own = NULL;
  if (!t->lent_packed)
    TARN_TRY(tarn__device_allocate(t->model->device, &own, TARN__MEMORY_OTHER,
                                   tarn__model_pack_bytes(t->model, t->options.rounding), 1));
  tarn_status status = tarn__model_pack(t->model, own ? own : t->lent_packed, t->options.rounding, t->threads);
  if (status == TARN_STATUS_OK) status = translate_items(t, items, sentences, translations);
  tarn__model_unpack(t->model);
  if (own) tarn__device_free(t->model->device, own);
  return status;
}

static void fill_items(const tarn__translator *t, tarn__item *items, const int32_t *ids, const int64_t *offsets,
                       int64_t sentences) {
  const int64_t each = items_each(t);
  for (int64_t s = 0; s < sentences; s++) {
    tarn__item item = {.ids = ids + offsets[s], .length = offsets[s + 1] - offsets[s]};
    if (t->prefix_offsets) {
      item.prefix = t->prefix_ids + t->prefix_offsets[s];
      item.prefix_length = t->prefix_offsets[s + 1] - t->prefix_offsets[s];
    }
    if (t->forced && t->forced[s].count > 0) item.forced = &t->forced[s];
    if (t->options.samples > 0) item.key = tarn__hash64(item.ids, (size_t)item.length * sizeof *ids, 0);
    for (int64_t n = 0; n < each; n++) {
      item.sample = (uint32_t)n;
      item.index = s * each + n;
      items[item.index] = item;
    }
  }
}

// Collects the samples of each sentence.
static tarn_status gather(tarn__translator *t, tarn__translation *translations, const tarn__translation *found,
                          int64_t sentences) {
  const int64_t each = items_each(t), kept = t->options.n_best;
  tarn__arena_reset(&t->samples);
  for (int64_t s = 0; s < sentences; s++) {
    void *memory;
    TARN_TRY(tarn__arena_alloc(&t->samples, &memory, (size_t)kept, sizeof(tarn__hypothesis)));
    tarn__hypothesis *hypotheses = memory;
    for (int64_t n = 0; n < kept; n++) hypotheses[n] = found[s * each + n].hypotheses[0];
    translations[s] = (tarn__translation){hypotheses, kept};
  }
  return TARN_STATUS_OK;
}

// Of each item the best `keep` hypotheses remain.
static tarn_status align(tarn__translator *t, tarn__translation *found, const tarn__item *items, int64_t count,
                         int64_t keep, const tarn__translator_options *o) {
  const tarn__align_options options = {o->coverage_penalty, o->alignment};
  return aligns(o) ? tarn__aligner_run(&t->aligner, found, items, count, keep, &options) : TARN_STATUS_OK;
}

static tarn_status run_items(tarn__translator *t, tarn__item *items, int64_t count, tarn__translation *found) {
  TARN_TRY(t->options.weights_change ? translate_packed(t, items, count, found)
                                     : translate_items(t, items, count, found));
  return align(t, found, items, count, t->options.samples > 0 ? 1 : t->options.n_best, &t->options);
}

// A run without other ranks.
static tarn_status run_alone(tarn__translator *t, tarn__translation *translations, const int32_t *ids,
                             const int64_t *offsets, int64_t sentences) {
  tarn__crew_reset(&t->crew);
  void *memory, *found = NULL;
  size_t count;
  TARN_TRY(tarn__mul_size(&count, (size_t)sentences, (size_t)items_each(t)));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(tarn__item)));
  tarn__item *items = memory;
  fill_items(t, items, ids, offsets, sentences);
  tarn_status status = TARN_STATUS_OK;
  if (t->options.samples == 0) {
    status = run_items(t, items, sentences, translations);
  } else {
    status = tarn__alloc(&found, TARN__MEMORY_OTHER, count, sizeof(tarn__translation));
    if (status == TARN_STATUS_OK) status = run_items(t, items, (int64_t)count, found);
    if (status == TARN_STATUS_OK) status = gather(t, translations, found, sentences);
  }
  tarn__free(found);
  tarn__free(items);
  return status;
}

void tarn__translator_prefix(tarn__translator *translator, const int32_t *ids, const int64_t *offsets) {
  translator->prefix_ids = ids;
  translator->prefix_offsets = offsets;
}

void tarn__translator_force(tarn__translator *translator, const tarn__forced *forced) { translator->forced = forced; }

tarn_status tarn__translator_feed(tarn__translator *translator, bool draws, const tarn__feed *feed) {
  TARN_REQUIRE(!translator->options.weights_change && !translator->shared.share.comm, INTERNAL,
               "a feed is translated by one process, with weights that stay");
  return tarn__crew_feed(&translator->crew, draws, feed);
}

tarn_status tarn__translator_item(tarn__translator *t, tarn__item_options *own,
                                  const tarn__translator_options *options) {
  const int32_t eos = t->crew.options.search.eos;
  TARN_TRY(check_options(options, t->model, eos));
  TARN_TRY(open_aligner(t, eos, options));
  const tarn__decoder_options decoder = decoder_options(options, eos);
  *own = tarn__decoder_item(&decoder);
  return TARN_STATUS_OK;
}

tarn_status tarn__translator_check_item(const tarn__translator *translator, const tarn__item *item) {
  TARN_TRY(check_sentence(translator, item, 1));
  return check_prefix(translator, item, 1);
}

tarn_status tarn__translator_complete(tarn__translator *translator, tarn__translation *found, const tarn__item *item,
                                      const tarn__translator_options *options) {
  tarn__item own = *item;
  own.index = 0;
  return align(translator, found, &own, 1, options->n_best, options);
}

// Rank 0 checks all sentences, so that messages contain the original numbers.
static tarn_status check_all(const tarn__translator *t, const int32_t *ids, const int64_t *offsets, int64_t sentences) {
  for (int64_t s = 0; s < sentences; s++) {
    const tarn__item sentence = {.ids = ids + offsets[s], .length = offsets[s + 1] - offsets[s], .index = s};
    TARN_TRY(check_sentence(t, &sentence, 1));
  }
  return TARN_STATUS_OK;
}

static tarn_status run_shared(tarn__translator *t, tarn__translation *translations, const int32_t *ids,
                              const int64_t *offsets, int64_t sentences, const tarn__map *map, bool *more) {
  tarn__translate_share *s = &t->shared;
  if (s->share.comm->rank == 0) TARN_TRY(check_all(t, ids, offsets, sentences));
  TARN_TRY(tarn__translate_share_deal(s, ids, offsets, sentences, more));
  if (!*more) return TARN_STATUS_OK;
  tarn_status status = TARN_STATUS_OK;
  if (s->sentences > 0) status = run_alone(t, s->translations, s->ids, s->offsets, s->sentences);
  TARN_TRY(map ? tarn__map_judge(map, status) : status);
  return tarn__translate_share_collect(s, translations, sentences);
}

tarn_status tarn__translator_run(tarn__translator *translator, tarn__translation *translations, const int32_t *ids,
                                 const int64_t *offsets, int64_t sentences) {
  bool more;
  if (!translator->shared.share.comm) return run_alone(translator, translations, ids, offsets, sentences);
  return run_shared(translator, translations, ids, offsets, sentences, NULL, &more);
}

tarn_status tarn__translator_help(tarn__translator *translator, const tarn__map *map) {
  for (bool more = true; more;) TARN_TRY(run_shared(translator, NULL, NULL, NULL, 0, map, &more));
  return TARN_STATUS_OK;
}

tarn_status tarn__translator_end(tarn__translator *translator) {
  return translator->shared.share.comm ? tarn__share_end(&translator->shared.share) : TARN_STATUS_OK;
}

tarn_status tarn__translator_plan(size_t *bytes, const tarn__model *model, const tarn__translator_options *options,
                                  double length, int64_t sentences) {
  // Each thread has a decoder of its own.
  const int64_t each = (sentences + options->threads - 1) / options->threads;
  size_t own;
  TARN_TRY(tarn__engine_of(model->config)->plan(&own, model, options, length, each));
  *bytes = tarn__model_pack_bytes(model, options->rounding) + (size_t)options->threads * own;
  return TARN_STATUS_OK;
}
