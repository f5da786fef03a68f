#include "config/config_vocabs.h"

#include <string.h>

#include "config/config_fail.h"
#include "text/vocab_kind.h"

// Sides that share a matrix must have the same list of tokens.
static tarn_status check_tokens(const tarn_config *config, const tarn_vocab *source, const tarn_vocab *target) {
  const tarn_embeddings share = config->model.embeddings;
  if (share == TARN_EMBEDDINGS_NONE || share == TARN_EMBEDDINGS_DECODER || tarn__vocab_same_tokens(source, target))
    return TARN_STATUS_OK;
  return tarn__config_fail(config, TARN_STATUS_USAGE, "model.embeddings",
                           "both sides share a matrix, so data.target_vocab must have the tokens of data.vocab");
}

tarn_status tarn__config_open_vocabs(const tarn_config *config, tarn_vocab **source, tarn_vocab **target) {
  const tarn_config_data *data = &config->data;
  TARN_TRY(tarn_vocab_open(source, data->vocab));
  *target = *source;
  if (!data->target_vocab || strcmp(data->target_vocab, data->vocab) == 0) return TARN_STATUS_OK;
  *target = NULL;
  TARN_TRY(tarn_vocab_open(target, data->target_vocab));
  // Two files with the same contents are one vocabulary.
  if (strcmp(tarn_vocab_hash(*source), tarn_vocab_hash(*target)) != 0) return check_tokens(config, *source, *target);
  tarn_vocab_close(target);
  *target = *source;
  return TARN_STATUS_OK;
}
