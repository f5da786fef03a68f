// The character vocabulary: a token for each sufficiently frequent Unicode code point of a text.
//
// The file is text: a line "tarn-vocab char 1" (the last word is the version), a line "lowercase 0" or "lowercase 1", a
// line "size N", and N - 3 lines with a code point each, such as U+00E4, for the ids from 3 on: the ids 0, 1 and 2 are
// <unk>, <s> and </s>. All are distinct. In a file of version 2 the ids 3, 4 and 5 are <cls>, <sep> and <mask>, and the
// code points follow. tarn__chars_kind (text/vocab_kind.h) opens it.
#ifndef TARN_TEXT_CHARS_H
#define TARN_TEXT_CHARS_H

#include <stddef.h>

#include "tarn/vocab.h"
#include "text/next.h"

// Counts the characters of the lines from `next` and makes the bytes of a file, which the caller frees with
// tarn__free(). More frequent characters come first, equally frequent ones in the order of their code points.
tarn_status tarn__chars_train(char **bytes, size_t *size, tarn__text_next next, void *user,
                              const tarn_vocab_options *options) TARN_CHECKED;

#endif
