// The vocabulary of one side of a Marian model, as Hugging Face's MarianTokenizer has it: a SentencePiece model cuts
// the text, and a list maps pieces to tokens. Both sides may have the same list; pieces missing from it are <unk>. A
// text may begin with a code such as ">>deu<<", which is one token.
//
// The file: a line "tarn-vocab marian 1", a line "size N" and N lines with a token each in the order of their ids, a
// line "model B", and the B bytes of the SentencePiece model. <unk>, </s> and <pad> are special, and nothing begins a
// sentence. In a file of version 2 the special tokens are known by their names, such as <bos>
// (tarn__vocab_named_facts()).
#ifndef TARN_TEXT_MARIAN_H
#define TARN_TEXT_MARIAN_H

#include <stdbool.h>
#include <stddef.h>

#include "tarn/vocab.h"

#define TARN__MARIAN_MAGIC "tarn-vocab marian "
#define TARN__MARIAN_SIZE "size "
#define TARN__MARIAN_MODEL "model "

enum { TARN__MARIAN_MOST = 1000000, TARN__MARIAN_NEWEST = 2 };  // tokens; the version that is read

// The files of a folder that save_pretrained() wrote.
#define TARN__MARIAN_TOKENS "vocab.json"
#define TARN__MARIAN_TARGET_TOKENS "target_vocab.json"
#define TARN__MARIAN_SETTINGS "tokenizer_config.json"

// The name of a side's SentencePiece model there.
const char *tarn__marian_model_name(bool target);

// Makes the bytes of our file from the files in `folder`. The caller frees them with tarn__free(). Fails with IO, or
// DATA, naming the file and the token or the key.
tarn_status tarn__marian_import(char **bytes, size_t *size, const char *folder, bool target) TARN_CHECKED;

#endif
