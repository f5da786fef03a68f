// What every vocabulary that was read must be able to do.
#ifndef TARN_TESTS_FUZZ_VOCAB_USE_H
#define TARN_TESTS_FUZZ_VOCAB_USE_H

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "tarn/vocab.h"

// Encodes a text, decodes it and some ids, and asks for pieces. `exact`: decoding gives the text back.
static inline void vocab_use(const tarn_vocab *vocab, const char *text, size_t length, bool exact) {
  tarn_vocab_ids ids = {0};
  tarn_vocab_text back = {0};
  const int32_t size = tarn_vocab_size(vocab), eos = tarn_vocab_eos(vocab);
  FUZZ_REQUIRE(size > 0 && eos >= 0 && eos < size && tarn_vocab_unk(vocab) < size && tarn_vocab_bos(vocab) < size &&
               tarn_vocab_pad(vocab) < size && strlen(tarn_vocab_hash(vocab)) == 32);
  if (fuzz_good(tarn_vocab_encode(vocab, &ids, text, length))) {
    for (size_t i = 0; i < ids.count; i++) FUZZ_REQUIRE(ids.data[i] >= 0 && ids.data[i] < size);
    if (fuzz_good(tarn_vocab_decode(vocab, &back, ids.data, ids.count)))
      FUZZ_REQUIRE(!exact || (back.length == length && memcmp(back.data, text, length) == 0));
  }
  for (int32_t id = -1; id <= size && id < 300; id++) FUZZ_REQUIRE(tarn_vocab_piece(vocab, id));
  for (int32_t id = 0; id < size && id < 40; id++) {
    const int32_t two[] = {id, size - 1 - id};
    (void)fuzz_good(tarn_vocab_decode(vocab, &back, two, 2));
  }
  const int32_t outside[] = {size};
  FUZZ_REQUIRE(!fuzz_good(tarn_vocab_decode(vocab, &back, outside, 1)));
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&back);
}

// The bytes of a vocabulary, and a text that is encoded: part of the file itself, so that it has its words.
static inline void vocab_read(const uint8_t *data, size_t size, bool exact) {
  tarn_vocab *vocab;
  if (!fuzz_good(tarn_vocab_open_memory(&vocab, data, size))) return;
  size_t same;
  FUZZ_REQUIRE(memcmp(tarn_vocab_bytes(vocab, &same), data, size) == 0 && same == size);
  const size_t part = size < 400 ? size : 400;
  vocab_use(vocab, (const char *)data + (size - part), part, exact);
  vocab_use(vocab, "The caf\xc3\xa9 \xff, 12 o'clock's  \xe2\x82", 28, exact);
  tarn_vocab_close(&vocab);
}

#endif
