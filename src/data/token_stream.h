// A text as one stream of tokens across line ends, as language models of long texts read it: nothing is skipped, and a
// line end is a token. It is the vocabulary's newline if it has one (bytes, GPT-2), else its end of sentence. With a
// newline in the vocabulary the bytes of the file are unchanged, including CR and byte order marks, so the tokens
// decode to the file and bits per byte refer to the true file, as on enwik8 (Al-Rfou et al. 2019). Otherwise a CR
// before a line end and a byte order mark at the start are dropped, as everywhere.
#ifndef TARN_DATA_TOKEN_STREAM_H
#define TARN_DATA_TOKEN_STREAM_H

#include <stdint.h>

#include "base/status.h"
#include "data/encoded_lines.h"
#include "tarn/vocab.h"

// Zero-initialise or open; close accepts both. The counts are read-only; they cover the tokens returned so far.
typedef struct tarn__token_stream {
  int64_t tokens, unknown;
  int64_t bytes, characters;  // of the text, each line end counted as one
  int64_t lines, joined;      // and those that lost joiners (text/joiners.h)
  int64_t cut, split;         // lines encoded in parts, and parts that end within a word (tarn_vocab_encode())
  int32_t line_end;           // the token of a line end
  tarn__encoded_lines encoded;
  // Private.
  const tarn__encoded_line *line;  // waits for a line end to be returned first
  bool due;                        // a line end is pending, if another line follows or the file ends in one
} tarn__token_stream;

// Vocabulary and pool must stay open; `memory` is that of tarn__encoded_lines_open(). `strict` rejects invalid UTF-8,
// which otherwise stays unchanged with vocabularies of bytes and becomes U+FFFD with others. Fails as
// tarn__lines_open() does, or with MEMORY.
tarn_status tarn__token_stream_open(tarn__token_stream *stream, const tarn_vocab *vocab, tarn__encode_pool *pool,
                                    size_t memory, const char *path, bool strict) TARN_CHECKED;
void tarn__token_stream_close(tarn__token_stream *stream);

// Returns the next tokens, at least one, valid until the next call; *count is 0 at the end of the text. Fails with IO,
// DATA (the file is not text) or MEMORY.
tarn_status tarn__token_stream_next(tarn__token_stream *stream, const int32_t **ids, int64_t *count) TARN_CHECKED;

#endif
