// Phrases that a hypothesis has to contain, and how far it has come with each: its last tokens are so many of the
// phrase's first ones, at most; a phrase that stood whole anywhere stays complete. Phrases may overlap in the text.
//
// The search keeps hypotheses apart by the number of these tokens, its banks (beam.h). One is kept only while the
// phrases that it lacks still fit, one after another, into the tokens that are left, so every search that can begin
// finds them, unless something else forbids a token of theirs.
#ifndef TARN_DECODE_FORCED_H
#define TARN_DECODE_FORCED_H

#include <stdint.h>

#include "decode/processors.h"

typedef struct tarn__forced {
  const tarn__phrase *phrases;  // [count], no two of them equal
  const char *const *texts;     // [count], for messages
  int64_t count, tokens;        // tokens: of all phrases
  int64_t line;                 // of the text that is translated, for messages
} tarn__forced;

// Moves on by a token: `next` [count] from `progress` [count], which may be the same array. Returns their sum.
int64_t tarn__forced_advance(const tarn__forced *forced, int32_t *next, const int32_t *progress, int32_t id);

// How many tokens complete all phrases, one after another and the furthest one first.
int64_t tarn__forced_need(const tarn__forced *forced, const int32_t *progress);

// The next tokens of the phrases that are not complete, `ids` [count], each once, the rest -1.
void tarn__forced_wanted(const tarn__forced *forced, int32_t *ids, const int32_t *progress);

#endif
