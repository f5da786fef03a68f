#include "decode/translate.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/threads.h"
#include "decode/decoder.h"

// Fewer sentences for each decoder are rather decoded by one, on all threads.
enum { LEAST_SENTENCES = 8 };

struct tarn__translator {
  tarn__translator_options options;
  const tarn__model *model;
  int threads;
  void *packed;             // weights (tarn__model_pack()), where they do not change; NULL with the reference
  tarn__decoder *together;  // computes with all threads
  tarn__decoder **apart;    // [threads] with one thread each; opened when there is use for them
  int32_t eos;
  void *lent_packed;  // room for weights that change, in lent memory; NULL: it does not suffice
  char *lent;         // the rest of it, shared out to the decoders
  size_t lent_bytes;
};

void tarn__translator_default(tarn__translator_options *options) {
  *options = (tarn__translator_options){.beam = 5,
                                        .length_penalty = 1.0,
                                        .max_len_a = 1.2,
                                        .max_len_b = 10,
                                        .max_tokens = 4096,
                                        .n_best = 1,
                                        .threads = 0,
                                        .backend = TARN__CPU};
}

void tarn__translator_from_config(tarn__translator_options *options, const tarn_config *config) {
  tarn__translator_default(options);
  options->beam = config->translate.beam;
  options->length_penalty = config->translate.length_penalty;
  options->max_len_a = config->translate.max_len_a;
  options->max_len_b = config->translate.max_len_b;
  options->max_tokens = config->translate.max_tokens;
}

static tarn_status check_options(const tarn__translator_options *options, const tarn__model *model, int32_t eos) {
  TARN_REQUIRE(options->beam >= 1 && options->beam <= 1024, USAGE, "beam must be from 1 to 1024, not %lld",
               (long long)options->beam);
  TARN_REQUIRE(options->n_best >= 1 && options->n_best <= options->beam, USAGE,
               "n-best must be from 1 to the beam of %lld, not %lld", (long long)options->beam,
               (long long)options->n_best);
  TARN_REQUIRE(options->length_penalty >= -100 && options->length_penalty <= 100, USAGE,
               "length penalty must be from -100 to 100, not %g", options->length_penalty);
  TARN_REQUIRE(options->max_len_a >= 0 && options->max_len_a <= 1e6 && options->max_len_b >= 0 &&
                   options->max_len_b <= (int64_t)1 << 30,
               USAGE, "the greatest length %g * source tokens + %lld is out of range", options->max_len_a,
               (long long)options->max_len_b);
  TARN_REQUIRE(options->max_tokens >= 1 && options->max_tokens <= 1 << 24, USAGE,
               "max-tokens must be from 1 to 16777216, not %lld", (long long)options->max_tokens);
  TARN_REQUIRE(model->dtype != TARN__F64 || options->backend == TARN__REFERENCE, USAGE,
               "double precision needs the reference backend");
  TARN_REQUIRE(eos >= 0 && eos < model->target_vocab, DATA, "the end of sentence %d is outside the vocabulary", eos);
  return TARN_STATUS_OK;
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
  t->eos = eos;
  t->threads = options->threads > 0 ? options->threads : tarn__threads();
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)t->threads, sizeof *t->apart);
  t->apart = memory;
  if (status == TARN_STATUS_OK) status = tarn__decoder_open(&t->together, model, eos, options, t->threads);
  if (status == TARN_STATUS_OK && options->backend == TARN__CPU && !options->weights_change)
    status = tarn__alloc(&t->packed, TARN__MEMORY_OTHER, tarn__model_pack_bytes(model, options->int8), 1);
  if (status != TARN_STATUS_OK) {
    tarn__translator_close(&t);
    return status;
  }
  if (t->packed) tarn__model_pack(model, t->packed, options->int8, t->threads);
  *translator = t;
  return TARN_STATUS_OK;
}

void tarn__translator_close(tarn__translator **translator) {
  tarn__translator *t = *translator;
  if (!t) return;
  tarn__decoder_close(&t->together);
  for (int i = 0; t->apart && i < t->threads; i++) tarn__decoder_close(&t->apart[i]);
  tarn__free(t->apart);
  if (t->packed) tarn__model_unpack(t->model);
  tarn__free(t->packed);
  tarn__free(t);
  *translator = NULL;
}

void tarn__translator_get_stats(const tarn__translator *translator, tarn__translator_stats *stats) {
  *stats = (tarn__translator_stats){0};
  tarn__decoder_add_stats(translator->together, stats);
  for (int i = 0; i < translator->threads; i++)
    if (translator->apart[i]) tarn__decoder_add_stats(translator->apart[i], stats);
}

// All of it to the one decoder, or a part to each of the others: only one or the others are at work.
static void lend_to(tarn__translator *t, tarn__decoder *decoder, int thread) {
  size_t part = t->lent_bytes / (size_t)t->threads & ~(size_t)63;
  if (decoder == t->together)
    tarn__decoder_lend(decoder, t->lent, t->lent_bytes);
  else
    tarn__decoder_lend(decoder, t->lent ? t->lent + part * (size_t)thread : NULL, part);
}

void tarn__translator_lend(tarn__translator *translator, void *memory, size_t bytes) {
  const tarn__translator_options *options = &translator->options;
  size_t pack = options->weights_change ? tarn__model_pack_bytes(translator->model, options->int8) : 0;
  pack = (pack + 63) & ~(size_t)63;
  if (pack > bytes) pack = 0;
  translator->lent_packed = pack > 0 ? memory : NULL;
  translator->lent = memory ? (char *)memory + pack : NULL;
  translator->lent_bytes = bytes - pack;
  lend_to(translator, translator->together, 0);
  for (int i = 0; i < translator->threads; i++)
    if (translator->apart[i]) lend_to(translator, translator->apart[i], i);
}

static int longest_first(const void *a, const void *b) {
  const tarn__item *x = a;
  const tarn__item *y = b;
  if (x->length != y->length) return x->length < y->length ? 1 : -1;
  return (x->index > y->index) - (x->index < y->index);
}

static tarn_status check_sentence(const tarn__translator *t, const tarn__item *sentence) {
  int64_t longest = t->model->config->model.max_length;
  TARN_REQUIRE(sentence->length >= 1 && sentence->length <= longest, DATA,
               "sentence %lld has %lld tokens, and the model takes 1 to %lld", (long long)sentence->index + 1,
               (long long)sentence->length, (long long)longest);
  for (int64_t i = 0; i < sentence->length; i++)
    TARN_REQUIRE(sentence->ids[i] >= 0 && sentence->ids[i] < t->model->source_vocab, DATA,
                 "sentence %lld has the token %d, which is outside the vocabulary", (long long)sentence->index + 1,
                 sentence->ids[i]);
  return TARN_STATUS_OK;
}

// One decoder a thread: they never wait for one another before the queue is empty.
static tarn_status run_apart(tarn__translator *t, tarn__queue *queue, tarn__translation *translations) {
  for (int i = 0; i < t->threads; i++) {
    if (t->apart[i]) continue;
    TARN_TRY(tarn__decoder_open(&t->apart[i], t->model, t->eos, &t->options, 1));
    lend_to(t, t->apart[i], i);
  }
  tarn__failure failure = {0};
#pragma omp parallel for num_threads(t->threads) schedule(static, 1)
  for (int i = 0; i < t->threads; i++)
    tarn__failure_note(&failure, tarn__decoder_run(t->apart[i], queue, translations));
  return tarn__failure_raise(&failure);
}

static tarn_status translate_items(tarn__translator *t, tarn__item *items, int64_t sentences,
                                   tarn__translation *translations) {
  for (int64_t s = 0; s < sentences; s++) TARN_TRY(check_sentence(t, &items[s]));
  qsort(items, (size_t)sentences, sizeof *items, longest_first);
  tarn__queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .items = items, .count = sentences};
  // A profile is one thread's.
  bool apart = t->threads > 1 && !t->options.profile && sentences >= (int64_t)LEAST_SENTENCES * t->threads;
  return apart ? run_apart(t, &queue, translations) : tarn__decoder_run(t->together, &queue, translations);
}

// Weights that change are packed for this run only.
static tarn_status translate_packed(tarn__translator *t, tarn__item *items, int64_t sentences,
                                    tarn__translation *translations) {
  void *own = NULL;
  if (!t->lent_packed)
    TARN_TRY(tarn__alloc(&own, TARN__MEMORY_OTHER, tarn__model_pack_bytes(t->model, t->options.int8), 1));
  tarn__model_pack(t->model, own ? own : t->lent_packed, t->options.int8, t->threads);
  tarn_status status = translate_items(t, items, sentences, translations);
  tarn__model_unpack(t->model);
  tarn__free(own);
  return status;
}

tarn_status tarn__translator_run(tarn__translator *translator, tarn__translation *translations, const int32_t *ids,
                                 const int64_t *offsets, int64_t sentences) {
  tarn__decoder_reset(translator->together);
  for (int i = 0; i < translator->threads; i++)
    if (translator->apart[i]) tarn__decoder_reset(translator->apart[i]);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)sentences, sizeof(tarn__item)));
  tarn__item *items = memory;
  for (int64_t s = 0; s < sentences; s++) items[s] = (tarn__item){ids + offsets[s], offsets[s + 1] - offsets[s], s};
  tarn_status status = translator->options.weights_change && translator->options.backend == TARN__CPU
                           ? translate_packed(translator, items, sentences, translations)
                           : translate_items(translator, items, sentences, translations);
  tarn__free(items);
  return status;
}
