// The vocabularies of a description.
#ifndef TARN_CONFIG_CONFIG_VOCABS_H
#define TARN_CONFIG_CONFIG_VOCABS_H

#include "description/description.h"
#include "tarn/vocab.h"

// Opens data.vocab, and data.target_vocab if it is another one; else *target == *source. Fails with USAGE if sides that
// share a matrix have other tokens, or like tarn_vocab_open(); the caller closes what is there in any case, NULL
// before.
tarn_status tarn__config_open_vocabs(const tarn_config *config, tarn_vocab **source, tarn_vocab **target) TARN_CHECKED;

#endif
