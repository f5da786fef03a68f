// The byte vocabulary: a token for each of the 256 bytes, after <unk> (which never results from text), <s> and </s>, so
// that byte b has the id 3 + b. The file is the one line "tarn-vocab byte 1", or "tarn-vocab byte 2", which also has
// <cls>, <sep> and <mask>, with the ids 259 to 261. tarn__bytes_kind (text/vocab_kind.h) opens it.
#ifndef TARN_TEXT_BYTES_H
#define TARN_TEXT_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "tarn/vocab.h"

// Makes the bytes of the file, which the caller frees with tarn__free().
tarn_status tarn__bytes_train(char **bytes, size_t *size, bool mask_symbols) TARN_CHECKED;

#endif
