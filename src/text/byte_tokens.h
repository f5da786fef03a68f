// The tokens and merges of byte-pair encodings whose files are text: a line "size N" and N lines with a token each in
// the order of their ids, a line "merges M" and M lines with two tokens and a blank between them, in order of priority.
// Tokens are written as in GPT-2's own files, a character for each byte: the printable characters of Latin-1 stand for
// themselves, and the other 68 bytes become U+0100 to U+0143 in order.
#ifndef TARN_TEXT_BYTE_TOKENS_H
#define TARN_TEXT_BYTE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/memory.h"
#include "text/pair_table.h"
#include "text/vocab_kind.h"

enum { TARN__BYTE_TOKENS_MOST = 1000000 };  // tokens, and merges

// What a token is for. Tokens of different sorts may have the same bytes.
typedef enum tarn__token_sort {
  TARN__TOKEN_PLAIN,    // merges make it
  TARN__TOKEN_ADDED,    // found in texts before all others
  TARN__TOKEN_SPECIAL,  // never of a text
  TARN__TOKEN_UNUSED    // a number without a token
} tarn__token_sort;

typedef struct tarn__byte_token {
  const char *text;     // as in the file, zero-terminated
  uint32_t at, length;  // its bytes
  tarn__token_sort sort;
  bool whole;  // the merges turn its bytes into this token, so a piece of text can be looked up directly
} tarn__byte_token;

// Zero-initialise.
typedef struct tarn__byte_tokens {
  tarn__byte_token *tokens;
  int32_t count;
  char *bytes;        // of all tokens, one after the other
  tarn__index index;  // by bytes and sort
  tarn__pair_table merges;
  tarn__arena arena;
} tarn__byte_tokens;

void tarn__byte_tokens_close(tarn__byte_tokens *tokens);

// Reads "size N" and the tokens. With `marks` each line begins with the mark of its sort (tarn__token_marks); without,
// all are PLAIN. Fails with DATA.
extern const char tarn__token_marks[4];
tarn_status tarn__byte_tokens_read(tarn__byte_tokens *tokens, tarn__vocab_reader *reader, bool marks) TARN_CHECKED;

// The plain token of some bytes, or the one of another sort; -1: there is none.
int32_t tarn__byte_tokens_find(const tarn__byte_tokens *tokens, const char *bytes, size_t length);
int32_t tarn__byte_tokens_find_sort(const tarn__byte_tokens *tokens, const char *bytes, size_t length,
                                    tarn__token_sort sort);

// Reads "merges M" and the merges, none of which may be of a token of `special` [count] or make one. *at is the number
// of the merge that is read. Fails with DATA.
tarn_status tarn__byte_tokens_read_merges(tarn__byte_tokens *tokens, tarn__vocab_reader *reader, const int32_t *special,
                                          int count, int64_t *at) TARN_CHECKED;

// The text of some bytes: one or two bytes for each, and a zero byte. Returns its length.
size_t tarn__byte_text(char *text, const char *bytes, size_t length);

#endif
