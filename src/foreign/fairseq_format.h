// Translation models of fairseq (architectures "transformer"): a folder with the state dict as model.safetensors,
// config.json with what fairseq keeps beside it, under its names, and the dictionaries dict.LANGUAGE.txt
// (text/fairseq.h).
#ifndef TARN_FOREIGN_FAIRSEQ_FORMAT_H
#define TARN_FOREIGN_FAIRSEQ_FORMAT_H

#include <limits.h>
#include <stdbool.h>

#include "base/status.h"
#include "foreign/marian_format.h"

// fairseq leaves out the positions up to its padding, which is token 1; so do learned tables.
enum { TARN__FAIRSEQ_FIRST = 2, TARN__FAIRSEQ_LANGUAGE = 64 };

#define TARN__FAIRSEQ_ENCODER_WORDS "encoder.embed_tokens.weight"
#define TARN__FAIRSEQ_DECODER_WORDS "decoder.embed_tokens.weight"
#define TARN__FAIRSEQ_OUTPUT "decoder.output_projection.weight"

typedef struct tarn__fairseq_languages {
  char source[TARN__FAIRSEQ_LANGUAGE], target[TARN__FAIRSEQ_LANGUAGE];
} tarn__fairseq_languages;

// Whether a folder has a dictionary of fairseq.
bool tarn__fairseq_is_folder(const char *path);

// Reads the settings, of which those that the tensors tell are taken from them. Fails with IO, MEMORY, or DATA, naming
// the key or the tensor.
tarn_status tarn__fairseq_config(tarn__marian_source *source, tarn__fairseq_languages *languages) TARN_CHECKED;

// Imports such a folder; as tarn_checkpoint_import().
tarn_status tarn__fairseq_import_model(const char *output, const char *folder, const char *vocab,
                                       const char *target_vocab) TARN_CHECKED;

#endif
