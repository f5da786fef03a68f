// What steers the choice of tokens, as its users state it (tarn/decoding.h), checked and in tokens of a vocabulary.
#ifndef TARN_DECODE_STEERING_H
#define TARN_DECODE_STEERING_H

#include "base/memory.h"
#include "decode/continuation.h"
#include "decode/processors.h"
#include "ops/sampler.h"
#include "tarn/decoding.h"

// Zero-initialise.
typedef struct tarn__steering {
  tarn_decoding decoding;  // whose texts are copies
  tarn__processing processing;
  tarn__stops stops;
  tarn__arena memory;
} tarn__steering;

// Fails with USAGE, or MEMORY. stop [stop_count]: strings that end a continuation. After a failure too, close.
tarn_status tarn__steering_open(tarn__steering *steering, const tarn_decoding *decoding, const char *const *stop,
                                size_t stop_count, const tarn_vocab *vocab) TARN_CHECKED;
void tarn__steering_close(tarn__steering *steering);

// The tokens of a text, in memory of the arena; `ids`: scratch. `what` it is, for messages: "banned" or "forced". Fails
// with USAGE if it has no token, or one that is not in the vocabulary, or MEMORY.
tarn_status tarn__steering_phrase(tarn__arena *memory, tarn__phrase *phrase, const char *what, const char *text,
                                  size_t length, const tarn_vocab *vocab, tarn_vocab_ids *ids) TARN_CHECKED;

// Checks for a search with `beam` hypotheses, or `samples` samples (0: a search). Nothing of one is ignored in the
// other. Fails with USAGE.
tarn_status tarn__steering_check_search(const tarn_decoding *decoding, int64_t beam, int64_t samples) TARN_CHECKED;
// Whether a search has values of sampling that would have no effect. Fails with USAGE.
tarn_status tarn__steering_check_drawing(double temperature, int64_t top_k, double top_p, bool samples) TARN_CHECKED;
tarn_status tarn__steering_check_sampling(const tarn__sampling *sampling) TARN_CHECKED;

#endif
