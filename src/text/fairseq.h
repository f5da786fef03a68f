// The vocabulary of one side of a fairseq model: a dictionary of tokens, and optionally the codes of byte-pair encoding
// (subword-nmt, fastBPE) that cut words into them; without codes a text is tokens with blanks between them. A token
// that ends in "@@" belongs to the next one's word.
//
// The file: a line "tarn-vocab fairseq 1", a line "size N" and N lines with a token each in the order of their ids, a
// line "codes B", and the B bytes of the codes.
#ifndef TARN_TEXT_FAIRSEQ_H
#define TARN_TEXT_FAIRSEQ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define TARN__FAIRSEQ_MAGIC "tarn-vocab fairseq "
#define TARN__FAIRSEQ_SIZE "size "
#define TARN__FAIRSEQ_CODES "codes "

// The first tokens of every dictionary, which its file does not have.
enum { TARN__FAIRSEQ_BOS, TARN__FAIRSEQ_PAD, TARN__FAIRSEQ_EOS, TARN__FAIRSEQ_UNK, TARN__FAIRSEQ_SPECIALS };
extern const char *const tarn__fairseq_specials[TARN__FAIRSEQ_SPECIALS];

enum { TARN__FAIRSEQ_MOST = 1000000 };  // tokens

// Whether a path is called dict.LANGUAGE.txt.
bool tarn__fairseq_is_original(const char *path);

// Whether a text is a count as dictionaries and codes have them: digits, perhaps behind a sign.
bool tarn__fairseq_is_count(const char *text, size_t length);

// Makes the bytes of a vocabulary from such a dictionary and what cuts texts in its folder: codes (bpecodes, codes or
// code), or a SentencePiece model (sentencepiece.bpe.model, sentencepiece.model or spm.model; then it is of Marian's
// kind). The caller frees them with tarn__free(). Fails with IO, MEMORY, or DATA, naming the line.
tarn_status tarn__fairseq_import(char **bytes, size_t *size, const char *path) TARN_CHECKED;

#endif
