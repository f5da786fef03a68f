// WordPiece (Schuster and Nakajima 2012) as BERT has it (Devlin et al. 2019): words as text/bert_split.h gives them,
// each split from the left into the longest tokens; those within a word begin with "##". A word that cannot be split,
// or has more than 100 characters, is one [UNK].
//
// The file is text in UTF-8: a line "tarn-vocab wordpiece 1" (the last word is the version), the lines "lowercase",
// "strip_accents" and "chinese", each with 0 or 1 (tarn__bert_rules), a line "size N" and N lines with a token each in
// the order of their ids. Of duplicate lines the last one counts. [UNK], [CLS] and [SEP] are required, of which the
// last two begin and end sentences; [PAD] and [MASK] are optional. tarn__wordpiece_kind (text/vocab_kind.h) opens it.
#ifndef TARN_TEXT_WORDPIECE_H
#define TARN_TEXT_WORDPIECE_H

#include <stdbool.h>
#include <stddef.h>

#include "tarn/vocab.h"
#include "text/bert_split.h"

#define TARN__WORDPIECE_MAGIC "tarn-vocab wordpiece "

enum { TARN__WORDPIECE_MOST = 4000000 };  // tokens

// Whether a path is a file named vocab.txt, or a folder that has one and none of GPT-2's files.
bool tarn__wordpiece_is_original(const char *path);

// Makes the bytes of our file from BERT's vocab.txt, as tarn_vocab_import_wordpiece() says. The caller frees them with
// tarn__free().
tarn_status tarn__wordpiece_import(char **bytes, size_t *size, const char *path,
                                   tarn_wordpiece_case casing) TARN_CHECKED;

// Appends the lines of our file that precede its tokens.
tarn_status tarn__wordpiece_head(tarn_vocab_text *out, const tarn__bert_rules *rules, size_t count) TARN_CHECKED;

#endif
