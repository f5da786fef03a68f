// Marian in the format of the package transformers: config.json, generation_config.json and model.safetensors, and the
// files of its vocabulary. A post-norm encoder and decoder; the decoder reads padding first.
#ifndef TARN_FOREIGN_MARIAN_FORMAT_H
#define TARN_FOREIGN_MARIAN_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "foreign/hf_config.h"
#include "foreign/hf_name.h"

#define TARN__MARIAN_PREFIX "model."  // of all names except the output's
#define TARN__MARIAN_SHARED "shared.weight"
#define TARN__MARIAN_ENCODER_WORDS "encoder.embed_tokens.weight"
#define TARN__MARIAN_DECODER_WORDS "decoder.embed_tokens.weight"
#define TARN__MARIAN_OUTPUT "lm_head.weight"
#define TARN__MARIAN_BIAS "final_logits_bias"
#define TARN__MARIAN_GENERATION "generation_config.json"
#define TARN__MARIAN_EPSILON 1e-5  // of all norms

// Names of a layer: those after the first TARN__MARIAN_ENCODER_NAMES are only in decoders.
enum { TARN__MARIAN_ENCODER_NAMES = 12, TARN__MARIAN_LAYER_NAMES = 20 };
extern const tarn__hf_name tarn__marian_layer_names[TARN__MARIAN_LAYER_NAMES];

typedef struct tarn__marian_stack {
  int64_t layers, heads, ffn;
  double layerdrop;
} tarn__marian_stack;

// The model's settings in the two files.
typedef struct tarn__marian_config {
  tarn__marian_stack encoder, decoder;
  int64_t d_model, positions, vocab, target_vocab;
  int64_t padding, start;  // tokens; the decoder reads `start` first, which is the padding in Marian's own models
  const struct tarn__part *activation;
  double dropout, attention_dropout;
  bool scaled;  // embeddings are scaled by sqrt(d_model)
  bool shared;  // encoder and decoder read one matrix
  bool tied;    // the output's matrix is the decoder's
  int64_t eos;  // -1: missing
  // Of translation.
  int64_t beam, longest, shortest;  // lengths include the decoder's first token
  double length_penalty;
  bool early_stopping;
  bool renormalised;  // probabilities are among all tokens but padding
} tarn__marian_config;

// Reads the two files of a folder, the second of which is optional. Fails with IO, MEMORY, or DATA, naming a key that
// is missing or has an unsupported value.
tarn_status tarn__marian_config_read(tarn__marian_config *config, const char *folder) TARN_CHECKED;
tarn_status tarn__marian_config_write(const tarn__marian_config *config, const char *folder) TARN_CHECKED;

#endif
