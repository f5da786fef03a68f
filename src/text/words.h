// The whitespace vocabulary: words of text that is split already.
//
// The file is text in UTF-8: a line "tarn-vocab whitespace 1" (the last word is the version), a line "lowercase 0" or
// "lowercase 1", a line "size N", and N lines with a token each in the order of their ids. The first three are <unk>,
// <s> and </s>; all are distinct and hold no white space.
#ifndef TARN_TEXT_WORDS_H
#define TARN_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/vocab.h"
#include "text/next.h"

typedef struct tarn__words tarn__words;

// Whether the bytes begin as a file of this kind does.
bool tarn__words_detect(const void *bytes, size_t size);

// The bytes must stay where they are as long as the object.
tarn_status tarn__words_open(tarn__words **words, const void *bytes, size_t size) TARN_CHECKED;
void tarn__words_close(tarn__words **words);
int32_t tarn__words_size(const tarn__words *words);
const char *tarn__words_piece(const tarn__words *words, int32_t id);
tarn_status tarn__words_encode(const tarn__words *words, tarn_vocab_ids *ids, const char *text,
                               size_t length) TARN_CHECKED;
tarn_status tarn__words_decode(const tarn__words *words, tarn_vocab_text *text, const int32_t *ids,
                               size_t count) TARN_CHECKED;

// Counts the words of the lines that `next` gives and makes the bytes of a file, which the caller frees with
// tarn__free(). More frequent words come first, equally frequent ones in the order of their bytes.
tarn_status tarn__words_train(char **bytes, size_t *size, tarn__text_next next, void *user,
                              const tarn_vocab_options *options) TARN_CHECKED;

#endif
