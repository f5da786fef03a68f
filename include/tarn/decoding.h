// What steers the choice of tokens, in the same way when language models generate (tarn/lm.h) and when text is
// translated (tarn/translate.h). Definitions are those of Hugging Face's transformers, except where another source is
// named; they act on logits before the softmax (as in CTranslate2), so scores of a beam search are those of what is
// left. For models whose output layer is a mixture or has bands of words, log-probabilities stand for logits.
#ifndef TARN_DECODING_H
#define TARN_DECODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Minimum Bayes risk decoding (Eikema and Aziz 2022): of the samples of a text the one with the highest expected
// utility comes first, which is its mean score with all samples, itself among them, as references.
typedef enum tarn_mbr {
  TARN_MBR_NONE,
  TARN_MBR_BLEU,  // of sentences: 13a, effective order
  TARN_MBR_CHRF,
  TARN_MBR_COUNT
} tarn_mbr;

// "none", "bleu", "chrf"; NULL for another value.
TARN_API const char *tarn_mbr_word(tarn_mbr mbr);

// "So far" means the prompt of a language model, or the prefix of a translation, and what was generated behind it,
// without the token with which the model begins to read. Texts are encoded as tarn_vocab_encode() does it, so GPT-2's
// vocabularies need the space before a word; they are copied by the functions that take these options.
typedef struct tarn_decoding {
  double repetition_penalty;  // logits of tokens so far are divided by it, negative ones multiplied (Keskar et al.
                              // 2019); above 0, at most 100; default 1: none
  double presence_penalty;    // taken off the logits of tokens generated already, -100 .. 100; default 0
  double frequency_penalty;   // the same for every time that one was generated (both as in OpenAI's interface); -100 ..
                              // 100; default 0
  int64_t no_repeat_ngram;    // no n-gram of this length stands twice, 1 .. 1000; default 0: any may
  // Texts whose sequences of tokens are never completed. Default NULL and 0: none.
  const char *const *banned;
  size_t banned_count;
  // Sampling, after top_k and top_p: keep tokens at least min_p times as likely as the most likely one (Nguyen et al.
  // 2025), 0 .. 1 without 1, default 0: all; then the typical ones, whose information is nearest to the expected one,
  // with a total probability of at least typical_p (Meister et al. 2023), above 0, at most 1, default 1: all.
  double min_p, typical_p;
  // Diverse beam search (Vijayakumar et al. 2018): the beam is divided into groups, 1 .. beam and a divisor of it,
  // default 1; a token loses diversity_penalty for each time that an earlier group chose it in the same step, 0 ..
  // 1000, default 0.
  int64_t groups;
  double diversity_penalty;
  tarn_mbr mbr;  // of samples, whose scores become expected utilities, 0 .. 100; default none
} tarn_decoding;

TARN_API void tarn_decoding_default(tarn_decoding *decoding);

// Whether two are equal, texts by content.
TARN_API bool tarn_decoding_same(const tarn_decoding *a, const tarn_decoding *b);

#ifdef __cplusplus
}
#endif
#endif
