// Byte-pair encoding as tokenizer.json of Hugging Face's tokenizers and GGUF files describe it, for models of LLaMA's
// kind. A text is cut at added tokens, normalised, cut into pieces by a rule, and each piece is merged from its bytes
// or, in the form of SentencePiece, whose blanks are U+2581, from its characters; characters without a token are bytes.
//
// The file is text: a line "tarn-vocab bpe 1", a line with a word and a number for each of the rules below, then the
// tokens and merges of byte_tokens.h, each token behind the mark of its sort: "=" plain, "+" added, "*" special, "-"
// none.
#ifndef TARN_TEXT_BPE_H
#define TARN_TEXT_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/byte_tokens.h"

#define TARN__BPE_MAGIC "tarn-vocab bpe "

// How a text is cut into pieces.
typedef enum tarn__bpe_split {
  TARN__SPLIT_NONE,    // not at all
  TARN__SPLIT_GPT2,    // gpt2_split.h
  TARN__SPLIT_LLAMA3,  // llama3_split.h
  TARN__SPLIT_QWEN2,   // the same with single digits
  TARN__SPLIT_DIGITS,  // each digit alone, the rest as GPT-2
  TARN__SPLIT_WORDS,   // before every U+2581
  TARN__SPLITS
} tarn__bpe_split;

// What is put before a text that is not empty, in the form of SentencePiece.
typedef enum tarn__bpe_prefix {
  TARN__PREFIX_NONE,
  TARN__PREFIX_ALWAYS,   // U+2581
  TARN__PREFIX_MISSING,  // the same, if the text does not begin with it
  TARN__PREFIX_FIRST,    // the same, not behind an added token
  TARN__PREFIXES
} tarn__bpe_prefix;

typedef struct tarn__bpe_rules {
  int64_t pieces;  // 1: the form of SentencePiece; 0: of bytes
  int64_t split, prefix;
  int64_t nfc;                 // 1: texts are in Unicode's composed form
  int64_t direct;              // 1: a piece that is a token is that token, whatever the merges make
  int64_t strip;               // 1: decoding drops a blank at the beginning
  int64_t unk, bos, eos, pad;  // tokens, from 1; 0: there is none. There is an eos
} tarn__bpe_rules;

// Writes the first lines of the file: those of the rules.
tarn_status tarn__bpe_write_rules(tarn_vocab_text *out, const tarn__bpe_rules *rules) TARN_CHECKED;
// Reads them.
tarn_status tarn__bpe_read_rules(tarn__bpe_rules *rules, tarn__vocab_reader *reader) TARN_CHECKED;

// Reads the bytes of our file and keeps nothing. Fails with DATA.
tarn_status tarn__bpe_check(const char *bytes, size_t size) TARN_CHECKED;

#endif
