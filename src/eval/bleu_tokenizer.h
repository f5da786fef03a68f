// sacreBLEU's tokenizers as rewriting of a line, whose words are then separated by white space.
#ifndef TARN_EVAL_BLEU_TOKENIZER_H
#define TARN_EVAL_BLEU_TOKENIZER_H

#include "eval/codepoints.h"
#include "tarn/score.h"

// Rewrites `text`, which has no white space at its end. `spare` is scratch memory that the caller keeps between calls.
tarn_status tarn__bleu_tokenize(tarn__codepoints *text, tarn__codepoints *spare,
                                tarn_bleu_tokenizer tokenizer) TARN_CHECKED;

#endif
