// How GPT-2's tokenizer cuts a text into pieces before byte-pair encoding (Radford et al. 2019):
//
//     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A piece is a contraction, a run of letters, of numbers or of anything else, each with the one blank before it, or
// white space, whose last character is left for what follows.
#ifndef TARN_TEXT_GPT2_SPLIT_H
#define TARN_TEXT_GPT2_SPLIT_H

// The end of the piece that begins at `at` < `end`. Categories of characters are those of Unicode 16 with every
// release of ICU. Each maximal invalid subpart counts as U+FFFD does: neither letter, number nor white space.
const char *tarn__gpt2_split(const char *at, const char *end);

#endif
