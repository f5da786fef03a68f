#include "train/validator.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "task/task.h"
#include "train/shard_check.h"

struct tarn__validator {
  tarn__validator_data what;
  const tarn__model *model;
  const tarn_vocab *target;
  tarn__shard shard;
  tarn__batcher *batcher;
  // For BLEU.
  int64_t sentences;  // translated, from the first
  int32_t *ids;
  int64_t *offsets;  // [sentences + 1]
  tarn__translation *translations;
  tarn__translator *translator;
  const char **hypotheses, **references;  // [sentences]
  char **texts;                           // [sentences] own references, decoded; NULL when they come from a file
  tarn_score_lines lines;                 // references of a file
  tarn_bleu_options bleu;
  bool cut;                // sources were, to model.max_length
  tarn__task_tally empty;  // what the task's measures need to know of the data, and no batch yet
  // Of the data: all that the scores depend on, and what the loss and BLEU each depend on (validator.h).
  char finish[sizeof((tarn__batch_finish){0}).text];  // what finishes the batches, in words; "": nothing
  char hash[TARN__HASH_TEXT], loss_hash[TARN__HASH_TEXT], bleu_hash[TARN__HASH_TEXT];
};

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static tarn_status open_batcher(tarn__validator *v) {
  const tarn_config *config = v->model->config;
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.shuffle = false;
  options.longest = config->model.max_length;
  options.max_tokens = config->train.max_tokens;
  // The budget is the training's, but every sentence must find room.
  TARN_TRY(tarn__task_batches(&options, config, &v->shard, v->target));
  memcpy(v->finish, options.finish.text, sizeof v->finish);
  int64_t longest = larger(v->shard.longest_source, v->shard.longest_target + (options.first >= 0 ? 1 : 0));
  if (longest > options.longest) longest = options.longest;
  if (longest > options.max_tokens) options.max_tokens = longest;
  tarn_status status = tarn__batcher_open(&v->batcher, &v->shard, &options);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", v->shard.path);
  return TARN_STATUS_OK;
}

void tarn__validator_warn_left_out(const tarn__validator *v) {
  const tarn_config *config = v->model->config;
  tarn__shard_warn_left_out(&v->shard, v->batcher, config, v->what.of);
}

// A sentence that is longer than the model takes is cut, as `tarn translate` does.
static tarn_status read_sources(tarn__validator *v) {
  int64_t most = v->model->config->model.max_length;
  int64_t total = 0;
  void *memory;
  for (int64_t i = 0; i < v->sentences; i++) total += tarn__shard_source_length(&v->shard, i);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)total, sizeof(int32_t)));
  v->ids = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)v->sentences + 1, sizeof(int64_t)));
  v->offsets = memory;
  for (int64_t i = 0; i < v->sentences; i++) {
    int64_t length = tarn__shard_source_length(&v->shard, i);
    int32_t *ids = v->ids + v->offsets[i];
    tarn__shard_source(&v->shard, i, ids);
    if (length > most) {
      length = most;
      v->cut = true;
      ids[length - 1] = v->shard.source_eos;
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

static tarn_status decode_references(tarn__validator *v) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)v->sentences, sizeof(char *)));
  v->texts = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)v->shard.longest_target, sizeof(int32_t)));
  int32_t *ids = memory;
  tarn_status status = TARN_STATUS_OK;
  for (int64_t i = 0; i < v->sentences && status == TARN_STATUS_OK; i++) {
    tarn__shard_target(&v->shard, i, ids);
    status = decode(v->target, &v->texts[i], ids, tarn__shard_target_length(&v->shard, i) - 1);
    v->references[i] = v->texts[i];
  }
  tarn__free(ids);
  return status;
}

static tarn_status read_references(tarn__validator *v) {
  const char *path = v->what.reference;
  if (!path) return decode_references(v);
  TARN_TRY(tarn_score_lines_open(&v->lines, path));
  TARN_REQUIRE(
      (int64_t)v->lines.count == v->shard.pairs, DATA,
      "%s has %zu lines, but the validation data %s has %lld pairs; prepare leaves out pairs with an empty side", path,
      v->lines.count, v->what.data, (long long)v->shard.pairs);
  for (int64_t i = 0; i < v->sentences; i++) v->references[i] = v->lines.items[i];
  return TARN_STATUS_OK;
}

void tarn__validator_translation(tarn__translator_options *options, const tarn_config *config, int threads) {
  const int64_t least = 64;  // rows below which products are slow
  tarn__translator_from_config(options, config);
  int64_t tokens = config->train.max_tokens / 4 > least ? config->train.max_tokens / 4 : least;
  if (tokens < options->max_tokens) options->max_tokens = tokens;
  options->beam = config->valid.beam;
  options->length_penalty = config->valid.length_penalty;
  options->threads = threads;
  options->weights_change = true;
}

static tarn_status open_bleu(tarn__validator *v, int threads) {
  const tarn_config_valid *config = &v->model->config->valid;
  v->sentences = v->shard.pairs;
  const int64_t most = v->what.max_sentences;
  if (most > 0 && most < v->sentences) v->sentences = most;
  tarn_bleu_default(&v->bleu);
  v->bleu.lowercase = config->lowercase;
  v->bleu.tokenizer = config->tokenize;
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
  tarn__validator_translation(&options, v->model->config, threads);
  return tarn__translator_open(&v->translator, v->model, v->shard.target_eos, &options);
}

static void add_lines(tarn__validator *v) {
  char all[2 * TARN__HASH_TEXT];
  for (int64_t i = 0; v->lines.count > 0 && i < v->sentences; i++) {
    const char *line = v->references[i];
    snprintf(all, sizeof all, "%s%016" PRIx64, v->bleu_hash, tarn__hash64(line, strlen(line), 0));
    tarn__hash(v->bleu_hash, all, strlen(all));
  }
}

static void make_hashes(tarn__validator *v) {
  char all[2 * TARN__HASH_TEXT + 64 + sizeof v->finish];
  // Which sentences are left out follows from their lengths, so that their number says which.
  snprintf(all, sizeof all, "%s %" PRId64, v->shard.hash, v->shard.pairs - tarn__batcher_left_out(v->batcher));
  if (*v->finish) snprintf(all + strlen(all), sizeof all - strlen(all), " %s", v->finish);
  tarn__hash(v->loss_hash, all, strlen(all));
  if (v->sentences > 0) {
    snprintf(all, sizeof all, "%s %" PRId64 " %" PRId64, v->shard.hash, v->sentences,
             v->cut ? v->model->config->model.max_length : 0);
    tarn__hash(v->bleu_hash, all, strlen(all));
    add_lines(v);
  }
  snprintf(all, sizeof all, "%s %s", v->loss_hash, v->bleu_hash);
  tarn__hash(v->hash, all, strlen(all));
}

static tarn_status open_parts(tarn__validator *v, const tarn_vocab *source, int threads) {
  const tarn_config *config = v->model->config;
  TARN_TRY(tarn__shard_open(&v->shard, v->what.data));
  TARN_TRY(tarn__shard_check(&v->shard, source, v->target, config));
  TARN_TRY(open_batcher(v));
  const tarn__task *task = tarn__config_task(config);
  if (task->count) TARN_TRY(task->count(&v->empty, &v->shard, v->target, config->model.max_length));
  const tarn_metric metric = config->valid.metric;
  TARN_REQUIRE((metric != TARN_METRIC_BPC && metric != TARN_METRIC_BPB) || v->empty.characters > 0, USAGE,
               "%s: %s of it are not known (valid.metric: %s); run tarn prepare --stream", v->shard.path,
               tarn_measure_of(metric)->name, tarn_measure_of(metric)->word);
  if (v->what.bleu) TARN_TRY(open_bleu(v, threads));
  TARN_TRY(tarn__validator_check(v));
  make_hashes(v);
  return TARN_STATUS_OK;
}

tarn_status tarn__validator_open(tarn__validator **validator, const tarn__validator_data *what,
                                 const tarn__model *model, const tarn_vocab *source, const tarn_vocab *target,
                                 int threads) {
  *validator = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **validator));
  tarn__validator *v = memory;
  v->what = *what;
  v->model = model;
  v->target = target;
  tarn_status status = open_parts(v, source, threads);
  if (status != TARN_STATUS_OK) {
    tarn__validator_close(&v);
    return status;
  }
  *validator = v;
  return TARN_STATUS_OK;
}

void tarn__validator_close(tarn__validator **validator) {
  tarn__validator *v = *validator;
  if (!v) return;
  tarn__translator_close(&v->translator);
  tarn__batcher_close(&v->batcher);
  tarn__shard_close(&v->shard);
  for (int64_t i = 0; v->texts && i < v->sentences; i++) tarn__free(v->texts[i]);
  tarn_score_lines_close(&v->lines);
  tarn__free(v->texts);
  tarn__free(v->references);
  tarn__free(v->hypotheses);
  tarn__free(v->translations);
  tarn__free(v->ids);
  tarn__free(v->offsets);
  tarn__free(v);
  *validator = NULL;
}

tarn_status tarn__validator_check(const tarn__validator *v) { return tarn__map_check(&v->shard.map); }

const char *tarn__validator_hash(const tarn__validator *v) { return v->hash; }
const char *tarn__validator_loss_hash(const tarn__validator *v) { return v->loss_hash; }
const char *tarn__validator_bleu_hash(const tarn__validator *v) { return v->bleu_hash; }

void tarn__validator_bounds(const tarn__validator *v, tarn__stepper_bounds *bounds) {
  tarn__stepper_bounds own;
  tarn__batcher_largest(v->batcher, &own.source_rows, &own.target_rows, &own.sentences);
  bounds->source_rows = larger(bounds->source_rows, own.source_rows);
  bounds->target_rows = larger(bounds->target_rows, own.target_rows);
  bounds->sentences = larger(bounds->sentences, own.sentences);
  bounds->longest_source = larger(bounds->longest_source, v->shard.longest_source);
  bounds->longest_target = larger(bounds->longest_target, tarn__batcher_longest_target(v->batcher));
}

static tarn_status check_stop(const volatile sig_atomic_t *stop) {
  TARN_REQUIRE(!stop || !*stop, INTERRUPTED, "stopped while validating");
  return TARN_STATUS_OK;
}

static tarn_status run_batches(tarn__validator *v, tarn__validation *result, tarn__stepper *stepper,
                               const volatile sig_atomic_t *stop) {
  const tarn__task *task = tarn__config_task(v->model->config);
  tarn__task_tally tally = v->empty;
  TARN_TRY(tarn__batcher_seek(v->batcher, 0, 0));
  int64_t batches = tarn__batcher_batches(v->batcher);
  for (int64_t b = 0; b < batches; b++) {
    TARN_TRY(check_stop(stop));
    tarn__batch batch;
    tarn__stepper_loss loss;
    tarn__batcher_next(v->batcher, &batch);
    TARN_TRY(tarn__stepper_evaluate(stepper, &loss, &batch));
    tally.loss += loss.loss;
    tally.watched += loss.watched;
    tally.predictions += batch.predictions;
    if (task->tally) task->tally(&tally, &batch, loss.answers);
  }
  TARN_REQUIRE(tally.predictions > 0, DATA, "%s: there is nothing to predict in these sentences%s", v->shard.path,
               task->sections >> TARN__TASK_MASKING & 1u ? ", no token of which is masked; raise masking.share" : "");
  task->scores(result->scores, &tally);
  return TARN_STATUS_OK;
}

static tarn_status score(tarn__validator *v, tarn__validation *result) {
  tarn_bleu_result bleu;
  const char *const *const stream = v->references;
  TARN_TRY(tarn_bleu_corpus(&bleu, v->hypotheses, &stream, (size_t)v->sentences, 1, &v->bleu));
  result->scores[TARN_METRIC_BLEU] = bleu.score;
  tarn_bleu_signature(result->signature, &bleu, &v->bleu);
  return TARN_STATUS_OK;
}

static tarn_status run_bleu(tarn__validator *v, tarn__validation *result, const tarn__stepper *stepper,
                            const volatile sig_atomic_t *stop) {
  TARN_TRY(check_stop(stop));
  tarn__translator_lend(v->translator, stepper->workspace, stepper->workspace_bytes);
  tarn_status status = tarn__translator_run(v->translator, v->translations, v->ids, v->offsets, v->sentences);
  tarn__translator_lend(v->translator, NULL, 0);
  if (status == TARN_STATUS_OK) status = check_stop(stop);
  for (int64_t i = 0; i < v->sentences && status == TARN_STATUS_OK; i++) {
    const tarn__hypothesis *best = &v->translations[i].hypotheses[0];
    char *text = NULL;
    status = decode(v->target, &text, best->ids, best->length - 1);
    v->hypotheses[i] = text;
  }
  if (status == TARN_STATUS_OK) status = score(v, result);
  for (int64_t i = 0; i < v->sentences; i++) {
    tarn__free((void *)(uintptr_t)v->hypotheses[i]);
    v->hypotheses[i] = NULL;
  }
  return status;
}

tarn_status tarn__validator_run(tarn__validator *validator, tarn__validation *result, tarn__stepper *stepper,
                                const volatile sig_atomic_t *stop) {
  *result = (tarn__validation){0};
  for (int m = 0; m < TARN_METRIC_COUNT; m++) result->scores[m] = NAN;
  double begin = tarn__seconds();
  TARN_TRY(run_batches(validator, result, stepper, stop));
  if (validator->translator) TARN_TRY(run_bleu(validator, result, stepper, stop));
  result->seconds = tarn__seconds() - begin;
  return TARN_STATUS_OK;
}
