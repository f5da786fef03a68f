// How GPT-2's tokenizer cuts a text into pieces before byte-pair encoding (Radford et al. 2019):
//
//     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A piece is a contraction, a run of letters, of numbers or of anything else, each with the one blank before it, or
// white space, whose last character is left for what follows.
#ifndef TARN_TEXT_GPT2_SPLIT_H
#define TARN_TEXT_GPT2_SPLIT_H

#include <stddef.h>

// The end of the piece that begins at `at` < `end`. Categories of characters are those of Unicode 16 with every
// release of ICU. Each maximal invalid subpart counts as U+FFFD does: neither letter, number nor white space.
const char *tarn__gpt2_split(const char *at, const char *end);

// What such rules are made of. The category of the first character before `end`, and its bytes; the end of a run of a
// category; and that of a run of white space, up to its last character if something else follows: \s+(?!\S)|\s+
typedef enum tarn__text_category {
  TARN__TEXT_OTHER,
  TARN__TEXT_LETTER,
  TARN__TEXT_NUMBER,
  TARN__TEXT_SPACE
} tarn__text_category;
tarn__text_category tarn__text_next_category(const char *at, const char *end, size_t *size);
const char *tarn__text_skip(const char *at, const char *end, tarn__text_category kind);
const char *tarn__text_split_space(const char *at, const char *end);

#endif
