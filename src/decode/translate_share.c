#include "decode/translate_share.h"

#include "base/memory.h"

// The header of a hypothesis in an answer, before its arrays.
typedef struct heading {
  int64_t length;
  double log_probability, score;
} heading;

tarn_status tarn__translate_share_open(tarn__translate_share *share, tarn__comm *comm) {
  *share = (tarn__translate_share){0};
  return tarn__share_open(&share->share, comm);
}

void tarn__translate_share_close(tarn__translate_share *share) {
  tarn__share_close(&share->share);
  tarn__arena_close(&share->hypotheses);
  tarn__free(share->whose);
  tarn__free(share->lengths);
  tarn__free(share->translations);
  *share = (tarn__translate_share){0};
}

// The contents of a parcel: number of sentences, their offsets, their ids.
static tarn_status fill_parcels(tarn__translate_share *s, const int32_t *ids, const int64_t *offsets,
                                int64_t sentences) {
  const int ranks = s->share.comm->size;
  TARN_TRY(tarn__grow(&s->whose, &s->whose_room, (size_t)sentences, sizeof *s->whose));
  TARN_TRY(tarn__grow(&s->lengths, &s->lengths_room, (size_t)sentences + 1, sizeof *s->lengths));
  for (int64_t i = 0; i < sentences; i++) s->lengths[i] = offsets[i + 1] - offsets[i];
  TARN_TRY(tarn__share_items(s->whose, s->lengths, sentences, ranks));
  tarn__share_begin(&s->share);
  for (int r = 0; r < ranks; r++) {
    tarn__buffer *parcel = &s->share.parcels[r];
    int64_t count = 0;
    s->lengths[0] = 0;  // from here on, offsets of the part
    for (int64_t i = 0; i < sentences; i++)
      if (s->whose[i] == r) s->lengths[count + 1] = s->lengths[count] + offsets[i + 1] - offsets[i], count++;
    tarn__share_put(parcel, &count, 1, sizeof count);
    tarn__share_put(parcel, s->lengths, count + 1, sizeof *s->lengths);
    for (int64_t i = 0; i < sentences; i++)
      if (s->whose[i] == r)
        tarn__buffer_put(parcel, (const char *)(ids + offsets[i]), (size_t)(offsets[i + 1] - offsets[i]) * sizeof *ids);
    if (s->lengths[count] % 2 == 1) tarn__buffer_put(parcel, (const char *)&(int32_t){0}, sizeof(int32_t));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__translate_share_deal(tarn__translate_share *s, const int32_t *ids, const int64_t *offsets,
                                       int64_t sentences, bool *more) {
  tarn__share_reader parcel;
  const int64_t *count;
  if (s->share.comm->rank == 0) TARN_TRY(fill_parcels(s, ids, offsets, sentences));
  TARN_TRY(tarn__share_deal(&s->share, &parcel, more));
  if (!*more) return TARN_STATUS_OK;
  TARN_TRY(tarn__share_take(&count, &parcel, 1, sizeof *count));
  s->sentences = *count;
  TARN_TRY(tarn__share_take(&s->offsets, &parcel, s->sentences + 1, sizeof *s->offsets));
  TARN_TRY(tarn__share_take(&s->ids, &parcel, s->offsets[s->sentences], sizeof *s->ids));
  return tarn__grow(&s->translations, &s->translations_room, (size_t)s->sentences, sizeof *s->translations);
}

static void put_translation(tarn__buffer *to, const tarn__translation *translation) {
  tarn__share_put(to, &translation->count, 1, sizeof translation->count);
  for (int64_t i = 0; i < translation->count; i++) {
    const tarn__hypothesis *h = &translation->hypotheses[i];
    const heading head = {h->length, h->log_probability, h->score};
    tarn__share_put(to, &head, 1, sizeof head);
    tarn__share_put(to, h->ids, h->length, sizeof *h->ids);
    tarn__share_put(to, h->log_probabilities, h->length, sizeof *h->log_probabilities);
  }
}

// The arrays of its hypotheses stay in the receive buffer.
static tarn_status take_translation(tarn__translate_share *s, tarn__translation *translation,
                                    tarn__share_reader *from) {
  const int64_t *count;
  void *memory;
  TARN_TRY(tarn__share_take(&count, from, 1, sizeof *count));
  TARN_TRY(tarn__arena_alloc(&s->hypotheses, &memory, (size_t)*count, sizeof(tarn__hypothesis)));
  tarn__hypothesis *hypotheses = memory;
  for (int64_t i = 0; i < *count; i++) {
    const heading *head;
    tarn__hypothesis *h = &hypotheses[i];
    TARN_TRY(tarn__share_take(&head, from, 1, sizeof *head));
    h->length = head->length;
    h->log_probability = head->log_probability;
    h->score = head->score;
    h->attention = NULL;
    TARN_TRY(tarn__share_take(&h->ids, from, h->length, sizeof *h->ids));
    TARN_TRY(tarn__share_take(&h->log_probabilities, from, h->length, sizeof *h->log_probabilities));
  }
  *translation = (tarn__translation){.hypotheses = hypotheses, .count = *count};
  return TARN_STATUS_OK;
}

tarn_status tarn__translate_share_collect(tarn__translate_share *s, tarn__translation *translations,
                                          int64_t sentences) {
  for (int64_t i = 0; i < s->sentences; i++) put_translation(tarn__share_answer(&s->share), &s->translations[i]);
  TARN_TRY(tarn__share_collect(&s->share));
  if (s->share.comm->rank > 0) return TARN_STATUS_OK;
  tarn__arena_reset(&s->hypotheses);
  for (int64_t i = 0; i < sentences; i++)
    TARN_TRY(take_translation(s, &translations[i], &s->share.readers[s->whose[i]]));
  return TARN_STATUS_OK;
}
