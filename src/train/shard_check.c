#include "train/shard_check.h"

#include <string.h>

static tarn_status check_side(const char *path, const char *side, const char *shard_hash, const tarn_vocab *vocab,
                              const char *vocab_path) {
  TARN_REQUIRE(strcmp(shard_hash, tarn_vocab_hash(vocab)) == 0, DATA,
               "%s: its %s was prepared with another vocabulary (hash %s) than %s (hash %s); run tarn prepare again",
               path, side, shard_hash, vocab_path, tarn_vocab_hash(vocab));
  return TARN_STATUS_OK;
}

// A language model trains on a text, a translation model on pairs.
static tarn_status check_sides(const tarn__shard *shard, const char *path, const tarn_config *config) {
  bool text = config->encoder.count == 0;
  TARN_REQUIRE(!text || shard->text, DATA,
               "%s: it holds pairs, but a model without an encoder is trained on a text; run tarn prepare --text",
               path);
  TARN_REQUIRE(
      text || !shard->text, DATA,
      "%s: it holds a text, but a model with an encoder is trained on pairs; run tarn prepare with --source and "
      "--target, or leave out the encoder",
      path);
  return TARN_STATUS_OK;
}

tarn_status tarn__shard_check(const tarn__shard *shard, const char *path, const tarn_vocab *source,
                              const tarn_vocab *target, const tarn_config *config) {
  const char *target_path = config->data.target_vocab ? config->data.target_vocab : config->data.vocab;
  TARN_TRY(check_sides(shard, path, config));
  if (shard->text) return check_side(path, "text", shard->target_vocab_hash, target, target_path);
  TARN_TRY(check_side(path, "source", shard->source_vocab_hash, source, config->data.vocab));
  return check_side(path, "target", shard->target_vocab_hash, target, target_path);
}
