// BLEU of the translations of a set: a measure computed by running the model, not from its loss.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/work.h"
#include "train/set_measure.h"

typedef struct bleu {
  tarn__set_site site;
  int64_t sentences;  // number of sentences translated, from the beginning
  int32_t *ids;
  int64_t *offsets;  // [sentences + 1]
  tarn__translation *translations;
  tarn__translator *translator;
  const char **hypotheses, **references;  // [sentences]
  char **texts;                           // [sentences] own references, decoded; NULL if they come from a file
  tarn_score_lines lines;                 // references from a file
  tarn_bleu_options options;
  bool cut;  // some sources were truncated to model.max_length
  char hash[TARN__HASH_TEXT];
} bleu;

// Sentences longer than the model's maximum are truncated, as in `tarn translate`.
static tarn_status read_sources(bleu *v) {
  int64_t most = v->site.model->config->model.max_length;
  int64_t total = 0;
  void *memory;
  for (int64_t i = 0; i < v->sentences; i++) total += tarn__shard_source_length(v->site.shard, i);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)total, sizeof(int32_t)));
  v->ids = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)v->sentences + 1, sizeof(int64_t)));
  v->offsets = memory;
  for (int64_t i = 0; i < v->sentences; i++) {
    int64_t length = tarn__shard_source_length(v->site.shard, i);
    int32_t *ids = v->ids + v->offsets[i];
    tarn__shard_source(v->site.shard, i, ids);
    if (length > most) {
      length = most;
      v->cut = true;
      ids[length - 1] = v->site.shard->source_eos;
    }
    v->offsets[i + 1] = v->offsets[i] + length;
  }
  return TARN_STATUS_OK;
}

static tarn_status decode(const tarn_vocab *vocab, char **out, const int32_t *ids, int64_t length) {
  tarn_vocab_text text = {0};
  tarn_status status = tarn_vocab_decode(vocab, &text, ids, (size_t)length);
  if (status == TARN_STATUS_OK) status = tarn__strndup(out, text.data ? text.data : "", text.length);
  tarn_vocab_text_close(&text);
  return status;
}

static tarn_status decode_references(bleu *v) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)v->sentences, sizeof(char *)));
  v->texts = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)v->site.shard->longest_target, sizeof(int32_t)));
  int32_t *ids = memory;
  tarn_status status = TARN_STATUS_OK;
  for (int64_t i = 0; i < v->sentences && status == TARN_STATUS_OK; i++) {
    tarn__shard_target(v->site.shard, i, ids);
    status = decode(v->site.target, &v->texts[i], ids, tarn__shard_target_length(v->site.shard, i) - 1);
    v->references[i] = v->texts[i];
  }
  tarn__free(ids);
  return status;
}

static tarn_status read_references(bleu *v) {
  const char *path = v->site.what->reference;
  if (!path) return decode_references(v);
  TARN_TRY(tarn_score_lines_open(&v->lines, path));
  TARN_REQUIRE(
      (int64_t)v->lines.count == v->site.shard->pairs, DATA,
      "%s has %zu lines, but the validation data %s has %lld pairs; prepare leaves out pairs with an empty side", path,
      v->lines.count, v->site.what->data, (long long)v->site.shard->pairs);
  for (int64_t i = 0; i < v->sentences; i++) v->references[i] = v->lines.items[i];
  return TARN_STATUS_OK;
}

void tarn__validator_translation(tarn__translator_options *options, const tarn_config *config, int threads) {
  const int64_t least = 64;  // with fewer rows, products are slow
  tarn__translator_from_config(options, config);
  int64_t tokens = config->train.max_tokens / 4 > least ? config->train.max_tokens / 4 : least;
  if (tokens < options->max_tokens) options->max_tokens = tokens;
  options->beam = config->valid.beam;
  options->length_penalty = config->valid.length_penalty;
  options->threads = threads;
  options->weights_change = true;
}

static tarn_status open_parts(bleu *v, int threads) {
  const tarn_config_valid *config = &v->site.model->config->valid;
  v->sentences = v->site.shard->pairs;
  const int64_t most = v->site.what->max_sentences;
  if (most > 0 && most < v->sentences) v->sentences = most;
  tarn_bleu_default(&v->options);
  v->options.lowercase = config->lowercase;
  v->options.tokenizer = config->tokenize;
  size_t n = (size_t)v->sentences;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, n, sizeof(char *)));
  v->references = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, n, sizeof(char *)));
  v->hypotheses = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, n, sizeof *v->translations));
  v->translations = memory;
  TARN_TRY(read_sources(v));
  TARN_TRY(read_references(v));
  tarn__translator_options options;
  tarn__validator_translation(&options, v->site.model->config, threads);
  options.comm = v->site.comm;
  options.mask = tarn_vocab_special(v->site.target, TARN_SPECIAL_MASK);
  options.unk = tarn_vocab_unk(v->site.target);
  return tarn__translator_open(&v->translator, v->site.model, v->site.shard->target_eos, &options);
}

static void add_lines(bleu *v) {
  char all[2 * TARN__HASH_TEXT];
  for (int64_t i = 0; v->lines.count > 0 && i < v->sentences; i++) {
    const char *line = v->references[i];
    snprintf(all, sizeof all, "%s%016" PRIx64, v->hash, tarn__hash64(line, strlen(line), 0));
    tarn__hash(v->hash, all, strlen(all));
  }
}

static void make_hash(bleu *v) {
  char all[TARN__HASH_TEXT + 64];
  snprintf(all, sizeof all, "%s %" PRId64 " %" PRId64, v->site.shard->hash, v->sentences,
           v->cut ? v->site.model->config->model.max_length : 0);
  tarn__hash(v->hash, all, strlen(all));
  add_lines(v);
}

static void close_bleu(void *own) {
  bleu *v = own;
  tarn__translator_close(&v->translator);
  for (int64_t i = 0; v->texts && i < v->sentences; i++) tarn__free(v->texts[i]);
  tarn_score_lines_close(&v->lines);
  tarn__free(v->texts);
  tarn__free(v->references);
  tarn__free(v->hypotheses);
  tarn__free(v->translations);
  tarn__free(v->ids);
  tarn__free(v->offsets);
  tarn__free(v);
}

static tarn_status open_bleu(void **own, const tarn__set_site *site, int threads) {
  TARN_TRY(tarn__alloc(own, TARN__MEMORY_OTHER, 1, sizeof(bleu)));
  bleu *v = *own;
  v->site = *site;
  const tarn_status status = open_parts(v, threads);
  if (status == TARN_STATUS_OK) {
    make_hash(v);
  } else {
    close_bleu(v);
    *own = NULL;
  }
  return status;
}

static tarn_status score(bleu *v, tarn__validation *result) {
  tarn_bleu_result found;
  const char *const *const stream = v->references;
  TARN_TRY(tarn_bleu_corpus(&found, v->hypotheses, &stream, (size_t)v->sentences, 1, &v->options));
  result->scores[TARN__METRIC_BLEU] = found.score;
  tarn_bleu_signature(result->signature, &found, &v->options);
  return TARN_STATUS_OK;
}

// Scores the translations, which are on rank 0.
static tarn_status score_translations(bleu *v, tarn__validation *result) {
  tarn_status status = TARN_STATUS_OK;
  for (int64_t i = 0; i < v->sentences && status == TARN_STATUS_OK; i++) {
    const tarn__hypothesis *best = &v->translations[i].hypotheses[0];
    char *text = NULL;
    status = decode(v->site.target, &text, best->ids, best->length - 1);
    v->hypotheses[i] = text;
  }
  if (status == TARN_STATUS_OK) status = score(v, result);
  for (int64_t i = 0; i < v->sentences; i++) {
    tarn__free((void *)(uintptr_t)v->hypotheses[i]);
    v->hypotheses[i] = NULL;
  }
  return status;
}

static tarn_status run_bleu(void *own, tarn__validation *result, const tarn__stepper *stepper,
                            const volatile sig_atomic_t *stop) {
  bleu *v = own;
  TARN_TRY(tarn__validator_check_stop(v->site.comm, stop));
  tarn__translator_lend(v->translator, stepper->workspace, stepper->workspace_bytes);
  tarn__work work;
  tarn__work_begin(&work, "validating by translation", "sentences");
  tarn__work_part(&work, 0, 0, (double)v->sentences, 1);
  tarn_status status = tarn__translator_run(v->translator, v->translations, v->ids, v->offsets, v->sentences);
  tarn__work_end(&work);
  tarn__translator_lend(v->translator, NULL, 0);
  TARN_TRY(status);
  TARN_TRY(tarn__validator_check_stop(v->site.comm, stop));
  return v->site.comm->rank == 0 ? score_translations(v, result) : TARN_STATUS_OK;
}

static bool wanted(const tarn__validator_data *what) { return what->bleu; }

static const char *hash_of(const void *own) { return ((const bleu *)own)->hash; }

const tarn__set_measure tarn__set_bleu = {.metric = TARN__METRIC_BLEU,
                                          .wanted = wanted,
                                          .open = open_bleu,
                                          .close = close_bleu,
                                          .hash = hash_of,
                                          .run = run_bleu};
