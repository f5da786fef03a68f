// Repetition penalty (Keskar et al., "CTRL", 2019): the logits of tokens that stand in the prompt or the text so far
// are divided by the penalty, negative ones multiplied.
#include "decode/processor_list.h"

static bool acts(const tarn__processing *processing) { return processing->repetition_penalty != 1.0; }

static void apply(tarn__logit_edits *edits, const tarn__processing *processing, const tarn__so_far *so_far) {
  for (int64_t i = 0; i < so_far->length; i++)
    tarn__logit_edit_of(edits, so_far->ids[i])->scale = (float)processing->repetition_penalty;
}

const tarn__logits_processor tarn__processor_repetition = {acts, apply};
