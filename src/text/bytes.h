// The byte vocabulary: a token for each of the 256 bytes, after <unk> (which no text gives), <s> and </s>, so that byte
// b has the id 3 + b. The file is the one line "tarn-vocab byte 1". tarn__bytes_kind (text/vocab_kind.h) opens it.
#ifndef TARN_TEXT_BYTES_H
#define TARN_TEXT_BYTES_H

#include <stddef.h>

#include "tarn/vocab.h"

// Makes the bytes of the file, which the caller frees with tarn__free().
tarn_status tarn__bytes_train(char **bytes, size_t *size) TARN_CHECKED;

#endif
