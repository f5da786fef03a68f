// Vocabularies: what turns a line of text into token ids and back.
//
// One object stands for two kinds of file. A SentencePiece model (Kudo and Richardson, EMNLP 2018; byte-pair encoding
// or unigram language model) works on raw text and its decoding gives plain text back. A whitespace vocabulary is a
// list of words for text that is split already. Files trained by tarn have the ids 0 = unknown word, 1 = begin of
// sentence, 2 = end of sentence; for SentencePiece models made elsewhere, ask for the ids.
//
// An open vocabulary does not change: encode and decode may be called from several threads at once.
#ifndef TARN_VOCAB_H
#define TARN_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_vocab_type {
  TARN_VOCAB_TYPE_BPE,
  TARN_VOCAB_TYPE_UNIGRAM,
  TARN_VOCAB_TYPE_WHITESPACE
} tarn_vocab_type;

typedef struct tarn_vocab_options {
  tarn_vocab_type type;  // default: byte-pair encoding
  // Tokens of the vocabulary with the three special ones, 4 .. 1000000; default 8000. SentencePiece gives exactly this
  // many or fails; a whitespace vocabulary has at most this many.
  int64_t size;
  // Share of the text's characters that get tokens of their own, 0.9 .. 1; default 1. SentencePiece only.
  double character_coverage;
  // Fold the case of all text, in training and in encoding; default false. SentencePiece normalises by nmt_nfkc_cf
  // instead of nmt_nfkc.
  bool lowercase;
  // Words that are rarer are left out, at least 1; default 1. Whitespace only.
  int64_t minimum_count;
  // Train on at most this many lines, sampled from all files with a fixed seed; default 0: all. SentencePiece only.
  int64_t sentences;
  // Threads of the training, 1 .. 1024; default 2. Unigram probabilities are summed thread by thread, so this number
  // is part of the result; it is a constant by default, so that equal text gives equal bytes on every machine.
  int threads;
} tarn_vocab_options;

void tarn_vocab_default(tarn_vocab_options *options);

// Trains a vocabulary on the lines of all `files` together and writes it to `output`, atomically. Lines of more than
// 65536 bytes and empty lines are skipped. Invalid UTF-8 is replaced by U+FFFD.
// Fails with USAGE (options, no file), IO, or DATA (the text has too few distinct pieces or too many characters for
// the size).
tarn_status tarn_vocab_train(const char *output, const char *const *files, size_t count,
                             const tarn_vocab_options *options) TARN_CHECKED;

typedef struct tarn_vocab tarn_vocab;

// Opens a file, or a copy of the bytes of one. Both kinds are told apart by their first bytes. A damaged file fails
// with DATA.
tarn_status tarn_vocab_open(tarn_vocab **vocab, const char *path) TARN_CHECKED;
tarn_status tarn_vocab_open_memory(tarn_vocab **vocab, const void *bytes, size_t size) TARN_CHECKED;
void tarn_vocab_close(tarn_vocab **vocab);

// Number of tokens; ids are 0 .. size-1.
int32_t tarn_vocab_size(const tarn_vocab *vocab);
// Special ids. Every vocabulary has an unknown token and an end of sentence; a SentencePiece model made elsewhere may
// lack the begin of sentence, which then is -1.
int32_t tarn_vocab_unk(const tarn_vocab *vocab);
int32_t tarn_vocab_bos(const tarn_vocab *vocab);
int32_t tarn_vocab_eos(const tarn_vocab *vocab);
// The text of one token ("▁Haus"), valid until close; "" for an id outside the vocabulary.
const char *tarn_vocab_piece(const tarn_vocab *vocab, int32_t id);

// The XXH3-128 hash of the file's bytes as 32 hexadecimal digits, and the bytes themselves; valid until close.
const char *tarn_vocab_hash(const tarn_vocab *vocab);
const void *tarn_vocab_bytes(const tarn_vocab *vocab, size_t *size);

// Growing buffers for results. Zero-initialise, use again as often as you like, close at the end.
typedef struct tarn_vocab_ids {
  int32_t *data;
  size_t count, capacity;
} tarn_vocab_ids;
typedef struct tarn_vocab_text {
  char *data;  // `length` bytes and a zero byte; NULL before the first use
  size_t length, capacity;
} tarn_vocab_text;
void tarn_vocab_ids_close(tarn_vocab_ids *ids);
void tarn_vocab_text_close(tarn_vocab_text *text);

// Replaces the contents of `ids` by the tokens of `length` bytes of text, without begin and end of sentence. Text never
// gives a special token other than the unknown one.
tarn_status tarn_vocab_encode(const tarn_vocab *vocab, tarn_vocab_ids *ids, const char *text,
                              size_t length) TARN_CHECKED;

// Receives the tokens of a line; anything but TARN_STATUS_OK stops the work and is returned to the caller.
typedef tarn_status (*tarn_vocab_sink)(void *user, const tarn_vocab_ids *ids);

// Encodes the lines of a text file, or of a pipe or device such as /dev/stdin, and gives each to `sink`, in order.
// Invalid UTF-8 is replaced by U+FFFD, and *replaced counts the lines where it was; `strict` refuses it with DATA.
// Fails with IO as well.
tarn_status tarn_vocab_encode_file(const tarn_vocab *vocab, int64_t *replaced, const char *path, bool strict,
                                   tarn_vocab_sink sink, void *user) TARN_CHECKED;

// Replaces the contents of `text` by the text of `count` tokens. Begin and end of sentence give nothing; unknown tokens
// give " ⁇ " (SentencePiece) or "<unk>" (whitespace). An id outside the vocabulary fails with DATA.
tarn_status tarn_vocab_decode(const tarn_vocab *vocab, tarn_vocab_text *text, const int32_t *ids,
                              size_t count) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
