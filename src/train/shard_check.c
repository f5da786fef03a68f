#include "train/shard_check.h"

#include <string.h>

#include "base/log.h"
#include "task/task.h"
#include "train/feature.h"

// A shard's record of the vocabulary of one side.
typedef struct side {
  const char *name, *vocab_hash;
  int32_t vocab_size, eos;
} side;

// A shard with recomputed hashes may contain any values. Its ids are below its recorded vocabulary size, so they are
// valid rows of the model's matrices only if that equals the size of the vocabulary.
static tarn_status check_side(const char *path, const side *s, const tarn_vocab *vocab, const char *vocab_path) {
  TARN_REQUIRE(tarn__hash_same(s->vocab_hash, tarn_vocab_hash(vocab)), DATA,
               "%s: its %s was prepared with another vocabulary (hash %s) than %s (hash %s); run tarn prepare again",
               path, s->name, s->vocab_hash, vocab_path, tarn_vocab_hash(vocab));
  TARN_REQUIRE(s->vocab_size == tarn_vocab_size(vocab), DATA,
               "%s: damaged shard: its %s has a vocabulary of %d tokens, but %s has %d", path, s->name, s->vocab_size,
               vocab_path, tarn_vocab_size(vocab));
  TARN_REQUIRE(s->eos == tarn_vocab_eos(vocab), DATA,
               "%s: damaged shard: the sentences of its %s end with token %d, but those of %s with token %d", path,
               s->name, s->eos, vocab_path, tarn_vocab_eos(vocab));
  return TARN_STATUS_OK;
}

// Translation models train on sentence pairs, all others on a text, and classifiers on a labelled one, which their task
// checks.
static tarn_status check_sides(const tarn__shard *shard, const char *path, const tarn_config *config) {
  const tarn__task *task = tarn__config_task(config);
  TARN_REQUIRE(task->source || shard->text, DATA,
               "%s: it holds pairs of a translation, but %s is trained on %s; run tarn prepare %s", path, task->model,
               task->labelled ? "sentences with labels" : "a text",
               task->labelled == TARN__LABELLED_WORDS ? "--table --per-word"
               : task->labelled                       ? "--table"
                                                      : "--text");
  TARN_REQUIRE(!task->source || !shard->text, DATA,
               "%s: it holds %s, but %s is trained on pairs of sentences; run tarn prepare with --source and --target, "
               "or set model.task, or leave out the encoder",
               path, shard->classes || shard->numbers ? "sentences with labels" : "a text", task->model);
  return TARN_STATUS_OK;
}

// If the windows of a stream do not fit, nearly all of its text would be skipped.
static tarn_status check_windows(const tarn__shard *shard, const tarn_vocab *target, const tarn_config *config) {
  int32_t first;
  TARN_TRY(tarn__features_check_data(config, shard));
  TARN_TRY(tarn__task_first(&first, config, target));
  const int64_t most = config->model.max_length - (first >= 0 ? 1 : 0);
  TARN_REQUIRE(!shard->continues || shard->longest_target <= most, DATA,
               "%s: its windows have %lld tokens%s, more than model.max_length (%lld); run tarn prepare --stream %lld, "
               "or raise model.max_length",
               shard->path, (long long)shard->longest_target, first >= 0 ? " and one in front" : "",
               (long long)config->model.max_length, (long long)most);
  return TARN_STATUS_OK;
}

tarn_status tarn__shard_check(const tarn__shard *shard, const tarn_vocab *source, const tarn_vocab *target,
                              const tarn_config *config) {
  const char *path = shard->path;
  const char *target_path = config->data.target_vocab ? config->data.target_vocab : config->data.vocab;
  const side first = {"source", shard->source_vocab_hash, shard->source_vocab_size, shard->source_eos};
  const side second = {shard->text ? "text" : "target", shard->target_vocab_hash, shard->target_vocab_size,
                       shard->target_eos};
  TARN_TRY(check_sides(shard, path, config));
  if (!shard->text) TARN_TRY(check_side(path, &first, source, config->data.vocab));
  TARN_TRY(check_side(path, &second, target, target_path));
  return check_windows(shard, target, config);
}

void tarn__shard_warn_left_out(const tarn__shard *shard, const tarn__batcher *batcher, const tarn_config *config,
                               const char *of) {
  const int64_t left_out = tarn__batcher_left_out(batcher);
  const bool front = tarn__batcher_longest_target(batcher) > shard->longest_target;
  if (left_out > 0)
    tarn__log(TARN_LOG_WARNING,
              "%s: %lld of %lld %s are left out%s, because %s longer than model.max_length%s (%lld tokens)",
              shard->path, (long long)left_out, (long long)shard->pairs, shard->text ? "sentences" : "pairs", of,
              shard->text ? "they are" : "a side is", front ? " less the token in front" : "",
              (long long)(config->model.max_length - front));
}
