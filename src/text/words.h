// The whitespace vocabulary: words of text that is already tokenized.
//
// The file is text in UTF-8: a line "tarn-vocab whitespace 1" (the last word is the version), a line "lowercase 0" or
// "lowercase 1", a line "size N", and N lines with a token each in the order of their ids. The first three are <unk>,
// <s> and </s>, in a file of version 2 the first six, with <cls>, <sep> and <mask> after them; all are distinct and
// contain no white space. In a file of version 3 the special tokens stand anywhere and are known by their names, such
// as <bos> (tarn__vocab_named_facts()), and empty lines are tokens that no text has. tarn__words_kind
// (text/vocab_kind.h) opens it.
#ifndef TARN_TEXT_WORDS_H
#define TARN_TEXT_WORDS_H

#include <stddef.h>

#include "tarn/vocab.h"
#include "text/next.h"

#define TARN__WORDS_MAGIC "tarn-vocab whitespace "

// Counts the words of the lines from `next` and makes the bytes of a file, which the caller frees with tarn__free().
// More frequent words come first, equally frequent ones in the order of their bytes.
tarn_status tarn__words_train(char **bytes, size_t *size, tarn__text_next next, void *user,
                              const tarn_vocab_options *options) TARN_CHECKED;

#endif
