// Where lines that are too long for SentencePiece are cut: it takes some 220 bytes of memory for every byte of a line.
#ifndef TARN_TEXT_CUT_H
#define TARN_TEXT_CUT_H

#include <stdbool.h>
#include <stddef.h>

// Bytes. Lines up to here go to SentencePiece whole; of longer ones the parts do. The sentences of real corpora are
// far shorter: the longest line of newstest has 1 kB.
enum { TARN__CUT_LONGEST = 65536 };
// Bytes of the longest run without a blank that SentencePiece's trainers get: they end the process somewhere above
// 30,000 letters (BPE) and 60,000 (unigram).
enum { TARN__CUT_LONGEST_WORD = 16384 };

// The first part of a text: up to its last blank within the first `most` >= 4 bytes, which belongs to no part; else up
// to other white space, which the next part begins with; else, within a word, up to a character that begins something
// (no combining mark). `length` if it is at most `most`. *next is where the next part begins; *within says that a word
// was cut.
size_t tarn__cut(size_t *next, bool *within, const char *text, size_t length, size_t most);

// The same, where no run without a blank may be longer than `most`: up to the first place where one is cut.
size_t tarn__cut_words(size_t *next, bool *within, const char *text, size_t length, size_t most);

#endif
