// How the tokenizers of Llama 3 and Qwen2 cut a text into pieces before byte-pair encoding, as OpenAI's cl100k_base
// does:
//
//     (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//     ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// Qwen2's has \p{N} in place of \p{N}{1,3}.
#ifndef TARN_TEXT_LLAMA3_SPLIT_H
#define TARN_TEXT_LLAMA3_SPLIT_H

// The end of the piece that begins at `at` < `end`; numbers are cut after `digits` of them. Categories are those of
// gpt2_split.h.
const char *tarn__llama3_split(const char *at, const char *end, int digits);

#endif
