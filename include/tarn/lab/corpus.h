// The embedded corpus: a small German-English parallel text that a grammar generates, so that everything can be tried
// without a download. It has what makes German to English hard for a model that only counts words: agreement in
// gender, case, number and person, adjective endings, the verb at the end of subordinate clauses, separable verbs,
// modal verbs and the perfect tense.
#ifndef TARN_LAB_CORPUS_H
#define TARN_LAB_CORPUS_H

#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_corpus_options {
  const char *output;  // folder, made if it is missing; needed
  uint64_t seed;       // default 1; equal seeds and sizes give equal files on every machine
  int64_t sentences;   // pairs for training, 1 .. 1000000; default 12000
  int64_t held_out;    // pairs for validation, and as many for the test, 0 .. 100000; default 500
} tarn_corpus_options;

TARN_API void tarn_corpus_default(tarn_corpus_options *options);

// Writes train.de, train.en, valid.de, valid.en, test.de and test.en. All sentences are distinct on each side, so no
// sentence of one split is in another. Fails with USAGE (options) or IO.
TARN_API tarn_status tarn_corpus_write(const tarn_corpus_options *options) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
