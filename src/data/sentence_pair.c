#include "data/sentence_pair.h"

#include <string.h>

#include "base/memory.h"
#include "text/vocab_formats.h"

// The tokens of both sentences that fit into `room` tokens: the longer one is cut first.
static void fit(int64_t *a, int64_t *b, int64_t room) {
  if (*a + *b <= room) return;
  const int64_t half = room / 2;
  if (*b <= half) {
    *a = room - *b;
  } else if (*a <= room - half) {
    *b = room - *a;
  } else {
    *b = half;
    *a = room - half;
  }
}

tarn_status tarn__sentence_pair_make(tarn__sentence_pair *row, const tarn_vocab *vocab, const tarn__piece *first,
                                     const tarn__piece *second, int64_t most) {
  const int32_t end = tarn_vocab_eos(vocab);
  const bool two = second->text != NULL;
  const int64_t between = tarn__vocab_is_roberta(vocab) ? 2 : 1;
  const int64_t ends = two ? between + 1 : 1;
  TARN_REQUIRE(most > ends + two, USAGE, "rows of %s have %lld tokens at least, not %lld",
               two ? "two sentences" : "a sentence", (long long)(ends + two + 1), (long long)most);
  TARN_TRY(tarn_vocab_encode(vocab, &row->first_ids, first->text, first->length));
  if (two) TARN_TRY(tarn_vocab_encode(vocab, &row->second_ids, second->text, second->length));
  int64_t a = (int64_t)row->first_ids.count, b = two ? (int64_t)row->second_ids.count : 0;
  const int64_t all = a + b;
  row->length = row->second = row->cut_off = 0;
  row->empty = a == 0 || (two && b == 0);
  if (row->empty) return TARN_STATUS_OK;
  fit(&a, &b, most - ends);
  row->cut_off = all - a - b;
  row->length = a + b + ends;
  row->second = two ? a + between : row->length;
  TARN_TRY(tarn__grow(&row->ids, &row->capacity, (size_t)row->length, sizeof *row->ids));
  memcpy(row->ids, row->first_ids.data, (size_t)a * sizeof *row->ids);
  row->ids[a] = end;
  if (!two) return TARN_STATUS_OK;
  row->ids[a + between - 1] = end;
  memcpy(row->ids + a + between, row->second_ids.data, (size_t)b * sizeof *row->ids);
  row->ids[row->length - 1] = end;
  return TARN_STATUS_OK;
}

void tarn__sentence_pair_close(tarn__sentence_pair *row) {
  tarn_vocab_ids_close(&row->first_ids);
  tarn_vocab_ids_close(&row->second_ids);
  tarn__free(row->ids);
  *row = (tarn__sentence_pair){0};
}
