// GPT-2's vocabulary: byte-level byte-pair encoding (Radford et al. 2019). No text is unknown; decoding restores the
// same bytes, invalid UTF-8 included. The only special token, <|endoftext|>, is begin and end. RoBERTa's vocabulary
// (Liu et al. 2019) has other special tokens: <s> begins, </s> ends, <mask> hides, and optionally <pad> and <unk>,
// which never result from text.
//
// The file is text in UTF-8: a line "tarn-vocab gpt2 1" or "tarn-vocab roberta 1" (the last word is the version), a
// line "size N" and N lines with a token each in the order of their ids, a line "merges M" and M lines with two tokens
// and a blank between them, in order of priority. Tokens are written as in GPT-2's own files, a character for each
// byte: the printable characters of Latin-1 stand for themselves, and the other 68 bytes become U+0100 to U+0143 in
// order.
#ifndef TARN_TEXT_GPT2_H
#define TARN_TEXT_GPT2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/vocab.h"

#define TARN__GPT2_MAGIC "tarn-vocab gpt2 "
#define TARN__ROBERTA_MAGIC "tarn-vocab roberta "
#define TARN__GPT2_END "<|endoftext|>"

// Whether a path is a folder, or a file with one of the four names of GPT-2's files.
bool tarn__gpt2_is_original(const char *path);

// The kind with which the bytes of our file begin, or none.
typedef enum tarn__gpt2_sort { TARN__GPT2_NONE, TARN__GPT2_OWN, TARN__GPT2_ROBERTA } tarn__gpt2_sort;
tarn__gpt2_sort tarn__gpt2_sort_of(const void *bytes, size_t size);

// Makes the bytes of our file from GPT-2's two files, as tarn_vocab_import_gpt2() says, and reads them once, so that
// errors name their file and the line of a merge. The caller frees them with tarn__free().
tarn_status tarn__gpt2_import(char **bytes, size_t *size, const char *path) TARN_CHECKED;

// Reads the bytes of our file and keeps nothing. If a merge is wrong *merge is its number, else -1.
tarn_status tarn__gpt2_check(int64_t *merge, const char *bytes, size_t size) TARN_CHECKED;

#endif
