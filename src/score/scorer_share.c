#include "score/scorer_share.h"

#include <string.h>

#include "base/memory.h"

// The header of a sentence's ids in a parcel.
typedef struct heading {
  int64_t length, known, before;  // before: -1 for NULL
  int64_t wants_best;
} heading;

tarn_status tarn__scorer_share_open(tarn__scorer_share *share, tarn__comm *comm) {
  *share = (tarn__scorer_share){0};
  return tarn__share_open(&share->share, comm);
}

void tarn__scorer_share_close(tarn__scorer_share *share) {
  tarn__share_close(&share->share);
  tarn__free(share->whose);
  tarn__free(share->lengths);
  tarn__free(share->sentences);
  tarn__free(share->log_probabilities);
  tarn__free(share->best);
  tarn__free(share->wanted);
  *share = (tarn__scorer_share){0};
}

static int64_t new_tokens(const tarn__scorer_sentence *sentence) { return sentence->length - sentence->known; }

// A parcel: the number of sentences, and for each its header, the token before it, and its ids.
static tarn_status fill_parcels(tarn__scorer_share *s, const tarn__scorer_sentence *sentences, int64_t count) {
  const int ranks = s->share.comm->size;
  TARN_TRY(tarn__grow(&s->whose, &s->whose_room, (size_t)count, sizeof *s->whose));
  TARN_TRY(tarn__grow(&s->lengths, &s->lengths_room, (size_t)count, sizeof *s->lengths));
  for (int64_t i = 0; i < count; i++) s->lengths[i] = sentences[i].length;
  TARN_TRY(tarn__share_items(s->whose, s->lengths, count, ranks));
  tarn__share_begin(&s->share);
  for (int r = 0; r < ranks; r++) {
    tarn__buffer *parcel = &s->share.parcels[r];
    int64_t part = 0;
    for (int64_t i = 0; i < count; i++) part += s->whose[i] == r;
    tarn__share_put(parcel, &part, 1, sizeof part);
    for (int64_t i = 0; i < count; i++) {
      if (s->whose[i] != r) continue;
      const heading head = {sentences[i].length, sentences[i].known, sentences[i].before ? *sentences[i].before : -1,
                            sentences[i].best != NULL};
      tarn__share_put(parcel, &head, 1, sizeof head);
      tarn__share_put(parcel, sentences[i].before, sentences[i].before ? 1 : 0, sizeof(int32_t));
      tarn__share_put(parcel, sentences[i].ids, sentences[i].length, sizeof(int32_t));
    }
  }
  return TARN_STATUS_OK;
}

static tarn_status take_sentence(tarn__scorer_sentence *sentence, bool *wants_best, tarn__share_reader *from) {
  const heading *head;
  *sentence = (tarn__scorer_sentence){0};
  TARN_TRY(tarn__share_take(&head, from, 1, sizeof *head));
  sentence->length = head->length;
  sentence->known = head->known;
  *wants_best = head->wants_best != 0;
  if (head->before >= 0) TARN_TRY(tarn__share_take(&sentence->before, from, 1, sizeof *sentence->before));
  return tarn__share_take(&sentence->ids, from, sentence->length, sizeof *sentence->ids);
}

tarn_status tarn__scorer_share_deal(tarn__scorer_share *s, const tarn__scorer_sentence *sentences, int64_t count,
                                    bool *more) {
  tarn__share_reader parcel;
  const int64_t *part;
  int64_t tokens = 0;
  if (s->share.comm->rank == 0) TARN_TRY(fill_parcels(s, sentences, count));
  TARN_TRY(tarn__share_deal(&s->share, &parcel, more));
  if (!*more) return TARN_STATUS_OK;
  TARN_TRY(tarn__share_take(&part, &parcel, 1, sizeof *part));
  s->count = *part;
  TARN_TRY(tarn__grow(&s->sentences, &s->sentences_room, (size_t)s->count, sizeof *s->sentences));
  TARN_TRY(tarn__grow(&s->wanted, &s->wanted_room, (size_t)s->count, sizeof *s->wanted));
  for (int64_t i = 0; i < s->count; i++) {
    TARN_TRY(take_sentence(&s->sentences[i], &s->wanted[i], &parcel));
    tokens += s->sentences[i].length;
  }
  TARN_TRY(tarn__grow(&s->log_probabilities, &s->log_probabilities_room, (size_t)tokens, sizeof(double)));
  TARN_TRY(tarn__grow(&s->best, &s->best_room, (size_t)tokens, sizeof(int32_t)));
  int64_t next = 0;
  for (int64_t i = 0; i < s->count; next += s->sentences[i++].length) {
    s->sentences[i].log_probabilities = s->log_probabilities + next;
    if (s->wanted[i]) s->sentences[i].best = s->best + next;
  }
  return TARN_STATUS_OK;
}

// Takes rank 0's part of an answer: numbers of a sentence behind those that are known.
static tarn_status take_new(void *to, tarn__share_reader *from, int64_t count, size_t size) {
  const void *found;
  TARN_TRY(tarn__share_take(&found, from, count, size));
  if (count > 0) memcpy(to, found, (size_t)count * size);
  return TARN_STATUS_OK;
}

tarn_status tarn__scorer_share_collect(tarn__scorer_share *s, const tarn__scorer_sentence *sentences, int64_t count) {
  for (int64_t i = 0; i < s->count; i++) {
    const tarn__scorer_sentence *one = &s->sentences[i];
    tarn__buffer *answer = tarn__share_answer(&s->share);
    tarn__share_put(answer, one->log_probabilities + one->known, new_tokens(one), sizeof(double));
    if (one->best) tarn__share_put(answer, one->best + one->known, new_tokens(one), sizeof *one->best);
  }
  TARN_TRY(tarn__share_collect(&s->share));
  for (int64_t i = 0; i < count && s->share.comm->rank == 0; i++) {
    const tarn__scorer_sentence *one = &sentences[i];
    tarn__share_reader *from = &s->share.readers[s->whose[i]];
    TARN_TRY(take_new(one->log_probabilities + one->known, from, new_tokens(one), sizeof(double)));
    if (one->best) TARN_TRY(take_new(one->best + one->known, from, new_tokens(one), sizeof *one->best));
  }
  return TARN_STATUS_OK;
}
