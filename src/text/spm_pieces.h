// The pieces of a SentencePiece model with their scores, and a model made of pieces: for formats that list them.
#ifndef TARN_TEXT_SPM_PIECES_H
#define TARN_TEXT_SPM_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/vocab.h"

// What a piece is, by the numbers of SentencePiece and of GGUF.
typedef enum tarn__spm_type {
  TARN__SPM_NORMAL = 1,
  TARN__SPM_UNKNOWN,
  TARN__SPM_CONTROL,
  TARN__SPM_OF_USER,
  TARN__SPM_UNUSED,
  TARN__SPM_BYTE
} tarn__spm_type;

typedef struct tarn__spm_entry {
  const char *text;
  size_t length;
  float score;
  tarn__spm_type type;
} tarn__spm_entry;

// A model. Zero-initialise; close frees the list, not the texts.
typedef struct tarn__spm_list {
  tarn__spm_entry *entries;
  size_t count, capacity;
  bool bpe;         // byte-pair encoding, and not a unigram model or another
  bool prefixes;    // a blank is put before a text
  bool squeezes;    // blanks at both ends, and all but one in a row, are removed
  bool normalises;  // texts are changed by a table
} tarn__spm_list;
void tarn__spm_list_close(tarn__spm_list *list);

// Reads an accepted model, into whose bytes the texts point. Fails with DATA for a piece of an unknown type.
tarn_status tarn__spm_list_read(tarn__spm_list *list, const void *bytes, size_t size) TARN_CHECKED;

// Appends a model with these pieces, whose tokens for the beginning, the end and padding are named (-1: none). It has
// no table.
typedef struct tarn__spm_named {
  int64_t bos, eos, pad;
} tarn__spm_named;
tarn_status tarn__spm_list_write(tarn_vocab_text *out, const tarn__spm_list *list,
                                 const tarn__spm_named *named) TARN_CHECKED;

#endif
