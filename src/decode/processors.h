// Processors of logits: what changes the distribution of the next token by the tokens before it. They act on the logits
// of a row, before its softmax, in the order of the table; each is one file and one line of processors.c. What they
// change of a row depends on its own tokens alone, so a hypothesis has the same bits in every batch.
//
// A processor changes few tokens of a row, so it lists them here, and the device applies the list where the logits are
// (ops/ops.h: tarn__adjust_rows()).
#ifndef TARN_DECODE_PROCESSORS_H
#define TARN_DECODE_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// A sequence of tokens, at least one.
typedef struct tarn__phrase {
  const int32_t *ids;
  int64_t length;
} tarn__phrase;

typedef struct tarn__processing {
  double repetition_penalty;                   // above 0; 1: none
  double presence_penalty, frequency_penalty;  // 0: none
  int64_t no_repeat_ngram;                     // 0: none
  const tarn__phrase *banned;                  // [banned_count]
  int64_t banned_count;
} tarn__processing;

// Nothing is changed.
static inline tarn__processing tarn__processing_none(void) { return (tarn__processing){.repetition_penalty = 1.0}; }

// The tokens of a hypothesis: those of the prompt, or of a translation's prefix, then its own. The marker with which
// the model begins to read is not among them.
typedef struct tarn__so_far {
  const int32_t *ids;  // [length]
  int64_t length, prompt;
} tarn__so_far;

typedef struct tarn__logit_edit {
  int32_t id, count;
  float scale, less;  // ops/ops.h
} tarn__logit_edit;

// The changes of the rows of a step. Zero-initialise.
typedef struct tarn__logit_edits {
  tarn__logit_edit *row;  // of the last row
  int32_t *place;         // [vocab] of a token in `row`, if it is there
  int32_t *words;         // [count] as the device takes them
  int64_t row_count, rows, done, count, vocab;
  size_t row_room, words_room;
  tarn_status status;
} tarn__logit_edits;

void tarn__logit_edits_close(tarn__logit_edits *edits);
// Begins a step of `rows` rows. After the last of them, words [count] are those for tarn__adjust_rows().
tarn_status tarn__logit_edits_begin(tarn__logit_edits *edits, int64_t rows, int64_t vocab) TARN_CHECKED;
// The next row: what the processors change for a hypothesis.
tarn_status tarn__logit_edits_add(tarn__logit_edits *edits, const tarn__processing *processing,
                                  const tarn__so_far *so_far) TARN_CHECKED;
// For processors: the change of a token in the current row, none so far if it is new. Without memory, or outside the
// vocabulary, it is one that has no effect; tarn__logit_edits_add() then fails.
tarn__logit_edit *tarn__logit_edit_of(tarn__logit_edits *edits, int32_t id);

typedef struct tarn__logits_processor {
  bool (*acts)(const tarn__processing *processing);
  void (*apply)(tarn__logit_edits *edits, const tarn__processing *processing, const tarn__so_far *so_far);
} tarn__logits_processor;

// Whether any of them acts.
bool tarn__processing_acts(const tarn__processing *processing);

#endif
