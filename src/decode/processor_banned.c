// Banned phrases: the last token of one cannot be chosen where the tokens before it stand already, in the prompt or in
// the text.
#include <math.h>
#include <string.h>

#include "decode/processor_list.h"

static bool acts(const tarn__processing *processing) { return processing->banned_count > 0; }

static void apply(tarn__logit_edits *edits, const tarn__processing *processing, const tarn__so_far *so_far) {
  for (int64_t b = 0; b < processing->banned_count; b++) {
    const tarn__phrase *phrase = &processing->banned[b];
    const int64_t before = phrase->length - 1;
    if (before > so_far->length) continue;
    if (before == 0 ||
        memcmp(phrase->ids, so_far->ids + so_far->length - before, (size_t)before * sizeof(int32_t)) == 0)
      tarn__logit_edit_of(edits, phrase->ids[before])->less = INFINITY;
  }
}

const tarn__logits_processor tarn__processor_banned = {acts, apply};
