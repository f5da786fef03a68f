// test.bleu of a recorded run: what BLEU is computed from, in place of translations and references.
//
// The first line is the signature of the score. Every other line has ten whole numbers with blanks between them for a
// sentence: matched n-grams of orders 1 to 4, n-grams of its translation of these orders, words of its translation and
// of its reference.
#ifndef TARN_REPORT_SENTENCE_BLEU_H
#define TARN_REPORT_SENTENCE_BLEU_H

#include "eval/statistics.h"

tarn_status tarn__sentence_bleu_write(const char *path, const tarn_statistics *statistics,
                                      const char *signature) TARN_CHECKED;

// Reads the file; the caller closes *statistics. Fails with DATA if it is damaged or has another signature.
tarn_status tarn__sentence_bleu_read(tarn_statistics **statistics, const char *path, const tarn_bleu_options *options,
                                     const char *signature) TARN_CHECKED;

#endif
