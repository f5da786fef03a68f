#include "data/sentence_words.h"

#include <string.h>

#include "base/memory.h"
#include "text/utf8.h"
#include "text/vocab_formats.h"

tarn__piece tarn__next_word(const char **at, const char *end) {
  const char *first = *at;
  while (first < end && tarn__utf8_is_space(*first)) first++;
  const char *last = first;
  while (last < end && !tarn__utf8_is_space(*last)) last++;
  *at = last;
  return (tarn__piece){first, (size_t)(last - first)};
}

// The space before a word is a part of its first token, as in "Ġword", or a token of its own.
static tarn_status encode(tarn__sentence_words *row, const tarn_vocab *vocab, const tarn__piece *word) {
  const bool spaced = tarn__vocab_is_gpt2(vocab) || tarn__vocab_is_roberta(vocab) || tarn__vocab_is_spelling(vocab);
  if (!spaced || row->words == 1) return tarn_vocab_encode(vocab, &row->encoded, word->text, word->length);
  TARN_TRY(tarn__grow(&row->spaced, &row->spaced_room, word->length + 1, 1));
  row->spaced[0] = ' ';
  memcpy(row->spaced + 1, word->text, word->length);
  return tarn_vocab_encode(vocab, &row->encoded, row->spaced, word->length + 1);
}

// What a normalization leaves nothing of, such as U+FFFD, is unknown.
static tarn_status put_unknown(tarn__sentence_words *row, const tarn_vocab *vocab) {
  if (tarn_vocab_unk(vocab) < 0) return TARN_STATUS_OK;
  tarn_vocab_ids *ids = &row->encoded;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, 1, sizeof *ids->data));
  ids->data[ids->count++] = tarn_vocab_unk(vocab);
  return TARN_STATUS_OK;
}

static tarn_status add_word(tarn__sentence_words *row, const tarn_vocab *vocab, const tarn__piece *word, int64_t most) {
  row->words++;
  TARN_TRY(encode(row, vocab, word));
  if (row->encoded.count == 0) TARN_TRY(put_unknown(row, vocab));
  const int64_t count = (int64_t)row->encoded.count;
  // Among bytes and characters the space stands alone, and the word begins behind it.
  const int64_t before = tarn__vocab_is_spelling(vocab) && row->words > 1;
  if (count <= before && !row->empty) row->empty = row->words;
  if (row->empty) return TARN_STATUS_OK;
  if (row->cut_off > 0 || row->length + count + 1 > most) {
    row->cut_off += count;
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__grow(&row->ids, &row->ids_room, (size_t)(row->length + count), sizeof *row->ids));
  TARN_TRY(tarn__grow(&row->first, &row->first_room, (size_t)row->words, sizeof *row->first));
  memcpy(row->ids + row->length, row->encoded.data, (size_t)count * sizeof *row->ids);
  row->first[row->whole++] = (int32_t)(row->length + before);
  row->length += count;
  return TARN_STATUS_OK;
}

tarn_status tarn__sentence_words_make(tarn__sentence_words *row, const tarn_vocab *vocab, const tarn__piece *text,
                                      int64_t most) {
  const char *at = text->text, *end = at + text->length;
  row->words = row->whole = row->length = row->cut_off = row->empty = 0;
  for (tarn__piece word; (word = tarn__next_word(&at, end)).length > 0;) TARN_TRY(add_word(row, vocab, &word, most));
  TARN_TRY(tarn__grow(&row->ids, &row->ids_room, (size_t)row->length + 1, sizeof *row->ids));
  row->ids[row->length++] = tarn_vocab_eos(vocab);
  return TARN_STATUS_OK;
}

void tarn__sentence_words_close(tarn__sentence_words *row) {
  tarn_vocab_ids_close(&row->encoded);
  tarn__free(row->ids);
  tarn__free(row->first);
  tarn__free(row->spaced);
  *row = (tarn__sentence_words){0};
}
