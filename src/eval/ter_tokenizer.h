// Tercom's normalisation as in sacreBLEU: the words of a line are then separated by white space.
#ifndef TARN_EVAL_TER_TOKENIZER_H
#define TARN_EVAL_TER_TOKENIZER_H

#include "eval/codepoints.h"
#include "tarn/score.h"

// Rewrites `text`, which has no white space at its end. `spare` is scratch memory that the caller keeps between calls.
tarn_status tarn__ter_tokenize(tarn__codepoints *text, tarn__codepoints *spare,
                               const tarn_ter_options *options) TARN_CHECKED;

#endif
