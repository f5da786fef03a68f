// Presence and frequency penalty, as OpenAI's interface defines them: a token that has been generated c > 0 times loses
// presence_penalty + c frequency_penalty. The prompt does not count.
#include "decode/processor_list.h"

static bool acts(const tarn__processing *processing) {
  return processing->presence_penalty != 0.0 || processing->frequency_penalty != 0.0;
}

static void apply(tarn__logit_edits *edits, const tarn__processing *processing, const tarn__so_far *so_far) {
  for (int64_t i = so_far->prompt; i < so_far->length; i++) {
    tarn__logit_edit *edit = tarn__logit_edit_of(edits, so_far->ids[i]);
    edit->count++;
    edit->less = (float)(processing->presence_penalty + edit->count * processing->frequency_penalty);
  }
}

const tarn__logits_processor tarn__processor_counts = {acts, apply};
