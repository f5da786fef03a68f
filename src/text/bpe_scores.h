// Merges from the scores of tokens, as SentencePiece's byte-pair encodings have them: any two neighbours whose union is
// a token are merged, those of the highest score first.
#ifndef TARN_TEXT_BPE_SCORES_H
#define TARN_TEXT_BPE_SCORES_H

#include "text/tokenizer_json.h"

// Makes the bytes of a vocabulary file from rules, tokens [count], and either `merges`, texts with a blank between two
// tokens in the characters for bytes, each ended by a newline, or, if that is NULL, `scores` [count]. The caller frees
// them with tarn__free(). Fails with DATA.
tarn_status tarn__bpe_make(char **bytes, size_t *size, const tarn__bpe_rules *rules, const tarn__bpe_token *tokens,
                           int64_t count, const tarn_vocab_text *merges, const float *scores) TARN_CHECKED;

#endif
