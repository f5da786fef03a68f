// model.safetensors for the package transformers: the parameters of a model in F32, under names of the package.
#ifndef TARN_FOREIGN_HF_WRITE_H
#define TARN_FOREIGN_HF_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "foreign/hf_name.h"
#include "model/model.h"
#include "store/safetensors.h"
#include "tarn/vocab.h"

// Zero-initialise it with its model; the arena owns names and values.
typedef struct tarn__hf_writer {
  const tarn__model *model;
  tarn__stored *tensors;
  size_t count, capacity;
  tarn__arena arena;
} tarn__hf_writer;
void tarn__hf_writer_close(tarn__hf_writer *writer);

// The values of a parameter as a matrix in the host's memory; a structured one is NAME.signs instead of NAME.weight.
// They live as long as the model and the writer.
tarn_status tarn__hf_values(tarn__hf_writer *writer, const char *name, const float **values, int64_t *rows,
                            int64_t *cols) TARN_CHECKED;

// Adds a tensor. The values are not copied, and must live until the file is written; a vector has one row.
tarn_status tarn__hf_add(tarn__hf_writer *writer, const char *name, const float *values, int64_t rows, int64_t cols,
                         bool vector) TARN_CHECKED;

// Adds the parameter `ours`, or its parts, under names that begin with `prefix`.
tarn_status tarn__hf_add_parts(tarn__hf_writer *writer, const char *prefix, const tarn__hf_name *name,
                               const char *ours) TARN_CHECKED;

// Fails with USAGE if heads of the kind's attention share keys and values, which the named format does not support.
tarn_status tarn__hf_check_heads(const char *path, const tarn_kind *kind, const char *format) TARN_CHECKED;

// The same for a vocabulary in bands, embeddings with a projection, and an output with a mixture or two matrices, which
// no other program's format supports.
tarn_status tarn__hf_check_tables(const char *path, const tarn_config_model *model, const char *format) TARN_CHECKED;
// The same for a norm of the embeddings, which BERT's format has.
tarn_status tarn__hf_check_embedding_norm(const char *path, const tarn_config_model *model,
                                          const char *format) TARN_CHECKED;
// The same for stacks with steps of a Universal Transformer, or with a norm behind post-norm layers.
tarn_status tarn__hf_check_stacks(const char *path, const tarn_config *config, const char *format) TARN_CHECKED;
// A number of a kind by its key, 0: none; and its activation.
double tarn__hf_number(const tarn_kind *kind, const char *key);
const tarn__part *tarn__hf_ffn_activation(const tarn_kind *kind);

tarn_status tarn__hf_write(const tarn__hf_writer *writer, const char *path) TARN_CHECKED;

// Writes the vocabulary into the folder in transformers' form, WordPiece's, GPT-2's or tokenizer.json; warns if it is
// of another kind.
tarn_status tarn__hf_write_vocab(const char *folder, const tarn_vocab *vocab) TARN_CHECKED;

#endif
