// No n-gram stands twice in prompt and text (Paulus et al., "A Deep Reinforced Model for Abstractive Summarization",
// ICLR 2018): tokens that would complete one that is there already cannot be chosen.
#include <math.h>
#include <string.h>

#include "decode/processor_list.h"

static bool acts(const tarn__processing *processing) { return processing->no_repeat_ngram > 0; }

static void apply(tarn__logit_edits *edits, const tarn__processing *processing, const tarn__so_far *so_far) {
  const int64_t before = processing->no_repeat_ngram - 1;
  if (so_far->length < before) return;
  const int32_t *end = so_far->ids + so_far->length - before;
  for (int64_t i = 0; i + before < so_far->length; i++)
    if (before == 0 || memcmp(so_far->ids + i, end, (size_t)before * sizeof *end) == 0)
      tarn__logit_edit_of(edits, so_far->ids[i + before])->less = INFINITY;
}

const tarn__logits_processor tarn__processor_ngram = {acts, apply};
