// Vocabularies of the kinds that other programs have: which a vocabulary is, and writing it as their files.
#ifndef TARN_TEXT_VOCAB_FORMATS_H
#define TARN_TEXT_VOCAB_FORMATS_H

#include "tarn/vocab.h"

// Opens what tarn_vocab_import_marian() writes, without writing it. Fails as that does, and with MEMORY.
tarn_status tarn__vocab_open_marian(tarn_vocab **vocab, const char *folder, bool target) TARN_CHECKED;
bool tarn__vocab_is_marian(const tarn_vocab *vocab);
bool tarn__vocab_is_sentencepiece(const tarn_vocab *vocab);
// Writes vocabularies of Marian's kind, or SentencePiece models, one of which may serve both sides, as those files into
// an existing folder. Fails with USAGE for other kinds or for one of each, IO or MEMORY.
bool tarn__vocab_has_marian_form(const tarn_vocab *source, const tarn_vocab *target);
tarn_status tarn__vocab_export_marian(const char *folder, const tarn_vocab *source,
                                      const tarn_vocab *target) TARN_CHECKED;

// The same vocabulary with a token in front of each text that is not empty (text/prefixed.h); one with such a token
// already is copied. Fails with DATA or MEMORY.
tarn_status tarn__vocab_open_prefixed(tarn_vocab **vocab, const tarn_vocab *other, int32_t first) TARN_CHECKED;
// Whether there is such a token, which is tarn_vocab_bos().
bool tarn__vocab_is_prefixed(const tarn_vocab *vocab);

// Whether a vocabulary is of GPT-2's or of RoBERTa's kind, and writing either as vocab.json and merges.txt into an
// existing folder. Fails with USAGE for another kind, IO or MEMORY.
bool tarn__vocab_is_gpt2(const tarn_vocab *vocab);
bool tarn__vocab_is_roberta(const tarn_vocab *vocab);
tarn_status tarn__vocab_export_gpt2(const char *folder, const tarn_vocab *vocab) TARN_CHECKED;

// Opens the vocabulary of a tokenizer.json, or of a folder with one, for a model of `size` tokens (0: as many as it
// has) with these tokens at the beginning and the end (-1: as tokenizer_config.json beside it says). Fails as
// tarn_vocab_import_tokenizer() does.
tarn_status tarn__vocab_open_tokenizer(tarn_vocab **vocab, const char *path, int64_t size, int64_t bos,
                                       int64_t eos) TARN_CHECKED;

// Whether a vocabulary comes from a tokenizer.json, and writing it as tokenizer.json and tokenizer_config.json into an
// existing folder. Fails with USAGE for another kind, IO or MEMORY.
bool tarn__vocab_is_bpe(const tarn_vocab *vocab);
tarn_status tarn__vocab_export_tokenizer(const char *folder, const tarn_vocab *vocab) TARN_CHECKED;

// Whether a vocabulary is WordPiece, and writing it as vocab.txt and tokenizer_config.json into an existing folder.
// Fails with USAGE for another kind, IO or MEMORY.
bool tarn__vocab_is_wordpiece(const tarn_vocab *vocab);
tarn_status tarn__vocab_export_wordpiece(const char *folder, const tarn_vocab *vocab) TARN_CHECKED;

// Whether the tokens of a vocabulary are bytes or characters, so that what a model makes of them is a figure on each
// character.
bool tarn__vocab_is_spelling(const tarn_vocab *vocab);

#endif
