#include "decode/processors.h"

#include <string.h>

#include "base/memory.h"
#include "decode/processor_list.h"
#include "ops/ops.h"

// The table.
#define TARN__PROCESSOR(name) &tarn__processor_##name,
static const tarn__logits_processor *const processors[] = {TARN__PROCESSORS(TARN__PROCESSOR)};
#undef TARN__PROCESSOR
enum { PROCESSORS = sizeof processors / sizeof processors[0] };

bool tarn__processing_acts(const tarn__processing *processing) {
  for (int i = 0; i < PROCESSORS; i++)
    if (processors[i]->acts(processing)) return true;
  return false;
}

void tarn__logit_edits_close(tarn__logit_edits *edits) {
  tarn__free(edits->row);
  tarn__free(edits->place);
  tarn__free(edits->words);
  *edits = (tarn__logit_edits){0};
}

tarn_status tarn__logit_edits_begin(tarn__logit_edits *edits, int64_t rows, int64_t vocab) {
  if (!edits->place) {
    void *memory;
    TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)vocab, sizeof *edits->place));
    edits->place = memory;
    edits->vocab = vocab;
  }
  TARN_TRY(tarn__grow(&edits->words, &edits->words_room, (size_t)rows + 1, sizeof *edits->words));
  edits->rows = rows;
  edits->done = 0;
  edits->count = rows + 1;
  edits->words[0] = 0;
  return TARN_STATUS_OK;
}

tarn__logit_edit *tarn__logit_edit_of(tarn__logit_edits *edits, int32_t id) {
  static _Thread_local tarn__logit_edit nothing;
  if (edits->status != TARN_STATUS_OK || id < 0 || id >= edits->vocab) return &nothing;
  const int32_t place = edits->place[id];
  if (place < edits->row_count && edits->row[place].id == id) return &edits->row[place];
  edits->status = tarn__grow(&edits->row, &edits->row_room, (size_t)edits->row_count + 1, sizeof *edits->row);
  if (edits->status != TARN_STATUS_OK) return &nothing;
  edits->place[id] = (int32_t)edits->row_count;
  edits->row[edits->row_count] = (tarn__logit_edit){.id = id, .scale = 1.0f};
  return &edits->row[edits->row_count++];
}

// Appends the row to the words.
static tarn_status end_row(tarn__logit_edits *edits) {
  const int64_t need = edits->count + edits->row_count * TARN__EDIT_WORDS;
  TARN_REQUIRE(need < INT32_MAX, MEMORY, "too many hypotheses are decoded together");
  TARN_TRY(tarn__grow(&edits->words, &edits->words_room, (size_t)need, sizeof *edits->words));
  for (int64_t i = 0; i < edits->row_count; i++) {
    int32_t *words = edits->words + edits->count;
    words[0] = edits->row[i].id;
    memcpy(words + 1, &edits->row[i].scale, sizeof *words);
    memcpy(words + 2, &edits->row[i].less, sizeof *words);
    edits->count += TARN__EDIT_WORDS;
  }
  edits->done++;
  edits->words[edits->done] = (int32_t)((edits->count - edits->rows - 1) / TARN__EDIT_WORDS);
  return TARN_STATUS_OK;
}

tarn_status tarn__logit_edits_add(tarn__logit_edits *edits, const tarn__processing *processing,
                                  const tarn__so_far *so_far) {
  edits->row_count = 0;
  edits->status = TARN_STATUS_OK;
  for (int i = 0; i < PROCESSORS; i++)
    if (processors[i]->acts(processing)) processors[i]->apply(edits, processing, so_far);
  TARN_TRY(edits->status);
  return end_row(edits);
}
