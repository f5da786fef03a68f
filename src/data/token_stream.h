// A text as one stream of tokens that goes over its line ends, as language models of long texts read it: nothing is
// left out, and a line end is a token. It is the vocabulary's own where that has one (bytes, GPT-2), and else its end
// of sentence. With a vocabulary of which a token is a newline, the bytes of the file are taken as they are, CR and
// byte order marks too, so that the tokens give the file back and bits per byte are of the true file, as on enwik8
// (Al-Rfou et al. 2019). With others a CR before a line end and a byte order mark at the start are left out, as
// everywhere.
#ifndef TARN_DATA_TOKEN_STREAM_H
#define TARN_DATA_TOKEN_STREAM_H

#include <stdint.h>

#include "base/status.h"
#include "data/encoded_lines.h"
#include "tarn/vocab.h"

// Zero-initialise or open; close accepts both. Read the counts, do not write them; they are of what was given so far.
typedef struct tarn__token_stream {
  int64_t tokens, unknown;
  int64_t bytes, characters;  // of the text, line ends counted as one each
  int64_t lines, joined;      // and those that lose joiners (text/joiners.h)
  int64_t cut, split;  // lines that were encoded in parts, and parts that end within a word (tarn_vocab_encode())
  int32_t line_end;    // the token of a line end
  tarn__encoded_lines encoded;
  // Private.
  const tarn__encoded_line *line;  // waits behind a line end
  bool due;                        // a line end, if another line follows or the file ends in one
} tarn__token_stream;

// Vocabulary and pool must stay open; `memory` is that of tarn__encoded_lines_open(). `strict` refuses invalid UTF-8,
// which else is taken as it is by vocabularies of bytes and replaced by U+FFFD for others. Fails as tarn__lines_open()
// does, or with MEMORY.
tarn_status tarn__token_stream_open(tarn__token_stream *stream, const tarn_vocab *vocab, tarn__encode_pool *pool,
                                    size_t memory, const char *path, bool strict) TARN_CHECKED;
void tarn__token_stream_close(tarn__token_stream *stream);

// Gives the next tokens, at least one of them, valid until the next call; *count is 0 at the end of the text. Fails
// with IO or DATA (a file that is no text) or MEMORY.
tarn_status tarn__token_stream_next(tarn__token_stream *stream, const int32_t **ids, int64_t *count) TARN_CHECKED;

#endif
