// Writing GGUF, version 3: keys, then the tensors of a writer (hf_write.h), converted to a type.
#ifndef TARN_FOREIGN_GGUF_WRITE_H
#define TARN_FOREIGN_GGUF_WRITE_H

#include "foreign/gguf_file.h"
#include "foreign/hf_write.h"
#include "tarn/lab/foreign.h"

// The keys, as the bytes that a file has. Zero-initialise.
typedef struct tarn__gguf_keys {
  tarn_vocab_text bytes;
  uint64_t count;
} tarn__gguf_keys;
void tarn__gguf_keys_close(tarn__gguf_keys *keys);

tarn_status tarn__gguf_put_text(tarn__gguf_keys *keys, const char *name, const char *text) TARN_CHECKED;
tarn_status tarn__gguf_put_size(tarn__gguf_keys *keys, const char *name, int64_t value) TARN_CHECKED;
tarn_status tarn__gguf_put_real(tarn__gguf_keys *keys, const char *name, double value) TARN_CHECKED;
tarn_status tarn__gguf_put_flag(tarn__gguf_keys *keys, const char *name, bool value) TARN_CHECKED;
// An array: its head, behind which the caller appends `count` elements to `bytes`, texts with tarn__gguf_append_text().
tarn_status tarn__gguf_put_array(tarn__gguf_keys *keys, const char *name, tarn__gguf_type element,
                                 uint64_t count) TARN_CHECKED;
tarn_status tarn__gguf_append_text(tarn__gguf_keys *keys, const char *text, size_t length) TARN_CHECKED;

// Writes the keys "tokenizer.ggml..." of a vocabulary, and these tokens at the beginning and the end (-1: none). Warns,
// and writes the tokens alone, where GGUF has no form for a vocabulary of this kind; `path` is the file, for messages.
tarn_status tarn__gguf_put_vocab(tarn__gguf_keys *keys, const tarn_vocab *vocab, int64_t bos, int64_t eos,
                                 const char *path) TARN_CHECKED;

// Writes the file atomically. Matrices are of the type, but in Q8_0 those whose rows are no blocks are in F16; vectors
// are in F32. Fails with DATA if a number is too large for F16.
tarn_status tarn__gguf_write(const char *path, const tarn__gguf_keys *keys, const tarn__hf_writer *writer,
                             tarn_gguf_type type) TARN_CHECKED;

#endif
