// Models in GGUF: the names of their tensors, their settings as keys, and their vocabularies.
#ifndef TARN_FOREIGN_GGUF_FORMAT_H
#define TARN_FOREIGN_GGUF_FORMAT_H

#include "foreign/gguf_file.h"
#include "foreign/llama_format.h"
#include "tarn/vocab.h"

extern const tarn__llama_names tarn__llama_gguf_names;       // of llama, whose queries and keys are interleaved
extern const tarn__llama_names tarn__llama_gguf_half_names;  // of qwen2, whose are not

// The factors by which Llama 3.1's scaling divides frequencies, one a pair of columns, as the tensor of this name.
#define TARN__GGUF_FACTORS "rope_freqs.weight"
void tarn__gguf_factors(float *factors, const tarn__llama_config *config);

// Opens the vocabulary that the keys "tokenizer.ggml..." describe. Fails with DATA, naming a key that is missing or has
// an unsupported value.
tarn_status tarn__gguf_vocab(tarn_vocab **vocab, const tarn__gguf_file *file) TARN_CHECKED;

// The pretokenizers of "tokenizer.ggml.pre" and our rules.
typedef struct tarn__gguf_pre {
  const char *word;
  int64_t split;
  bool direct;
} tarn__gguf_pre;
extern const tarn__gguf_pre tarn__gguf_pres[];  // ended by NULL; the first word of a rule is written

#endif
