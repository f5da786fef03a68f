// Small helpers for words that a person typed.
#ifndef TARN_TEXT_H
#define TARN_TEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The word among `count` candidates that is nearest to `word` by edit distance with transpositions (Damerau 1964), or
// NULL when none is near enough (more than a third of the longer word's letters differ, at least one edit being
// allowed). The result is one of the candidates.
const char *tarn_text_nearest(const char *word, const char *const *candidates, size_t count);

#ifdef __cplusplus
}
#endif
#endif
