// The vocabulary of images: a token for the class token, <cls>, and one for any patch, <patch>, whose vectors are the
// class token and the bias of the projection of patches. Its file is the one line "tarn-vocab patches 1". It is built
// in: tarn_vocab_open() gives it for the name TARN__PATCHES_NAME. tarn__patches_kind (text/vocab_kind.h) opens it.
#ifndef TARN_TEXT_PATCHES_H
#define TARN_TEXT_PATCHES_H

#include <stdbool.h>

#define TARN__PATCHES_NAME "<patches>"
#define TARN__PATCHES_FILE "tarn-vocab patches 1\n"

enum { TARN__PATCH_CLS, TARN__PATCH, TARN__PATCH_TOKENS };

#endif
