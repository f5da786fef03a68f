// Reads a list of tokens, such as a torchtext vocabulary written to a file: tokens.NAME.txt, with a token on each line
// in the order of the ids. An empty line is a token of white space. The special tokens are known by their names, such
// as <unk>, <bos>, <eos> and <pad>.
#ifndef TARN_TEXT_LIST_H
#define TARN_TEXT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

// Whether a path is called tokens.NAME.txt.
bool tarn__list_is_original(const char *path);

// Makes the bytes of a vocabulary of such a file: of the whitespace kind (text/words.h), for texts that are tokens with
// blanks between them, or of Marian's kind (text/marian.h) if a SentencePiece model NAME.spm in the folder cuts texts.
// The caller frees them with tarn__free(). Fails with IO, MEMORY, or DATA, naming the line.
tarn_status tarn__list_import(char **bytes, size_t *size, const char *path) TARN_CHECKED;

#endif
