// The references of a corpus, for all scores.
#ifndef TARN_EVAL_SCORE_REFERENCES_H
#define TARN_EVAL_SCORE_REFERENCES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Either `streams[r][s]` for a corpus, or `single[r]` for its only sentence; the other one is NULL.
typedef struct tarn__references {
  const char *const *const *streams;
  const char *const *single;
  size_t count;
} tarn__references;

// Reference r of sentence s; NULL if absent.
static inline const char *tarn__reference(const tarn__references *references, size_t r, size_t s) {
  return references->streams ? references->streams[r][s] : references->single[r];
}

// Checks that there are sentences and that each of them has a hypothesis and a reference, and sets *number to the
// number of references per sentence, -1 if it varies.
tarn_status tarn__references_check(int64_t *number, const tarn__references *references, const char *const *hypotheses,
                                   size_t sentences) TARN_CHECKED;

// The value of `nrefs` in a signature: the number, or "var".
enum { TARN__NREFS_TEXT = 24 };
void tarn__references_text(char text[TARN__NREFS_TEXT], int64_t number);

#endif
