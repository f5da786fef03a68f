// Cutting lines that are too long for SentencePiece, which takes about 220 bytes of memory per byte of a line.
#ifndef TARN_TEXT_CUT_H
#define TARN_TEXT_CUT_H

#include <stdbool.h>
#include <stddef.h>

// Bytes. Lines up to this length go to SentencePiece whole, longer ones in parts. The sentences of real corpora are far
// shorter: the longest line of newstest has 1 kB.
enum { TARN__CUT_LONGEST = 65536 };
// Bytes of the longest run without a blank that is passed to SentencePiece's trainers: they end the process somewhere
// above 30,000 letters (BPE) and 60,000 (unigram).
enum { TARN__CUT_LONGEST_WORD = 16384 };

// The first part of a text: up to its last blank within the first `most` >= 4 bytes, which belongs to no part; else up
// to other white space, with which the next part begins; else, within a word, up to a character that is no combining
// mark. `length` if it is at most `most`. *next is the beginning of the next part; *within says that a word was cut.
size_t tarn__cut(size_t *next, bool *within, const char *text, size_t length, size_t most);

// The same, but no run without a blank may be longer than `most`: up to the first cut of such a run.
size_t tarn__cut_words(size_t *next, bool *within, const char *text, size_t length, size_t most);

#endif
