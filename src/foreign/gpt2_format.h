// GPT-2 in the format of the package transformers: config.json and model.safetensors. Matrices of its layers are
// [inputs, outputs] (its Conv1D), ours [outputs, inputs].
#ifndef TARN_FOREIGN_GPT2_FORMAT_H
#define TARN_FOREIGN_GPT2_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "description/description.h"
#include "foreign/hf_config.h"

#define TARN__GPT2_PREFIX "transformer."  // of all names except lm_head in files of whole models

// A parameter in both formats.
typedef struct tarn__gpt2_name {
  const char *theirs, *ours;  // of a layer: "attn.c_attn.weight" (of "h.0."), "self_attn.qkv.weight" (of its set)
  bool transposed;
} tarn__gpt2_name;

enum { TARN__GPT2_LAYER_NAMES = 12, TARN__GPT2_MODEL_NAMES = 5 };
extern const tarn__gpt2_name tarn__gpt2_layer_names[TARN__GPT2_LAYER_NAMES];
// Of the whole model; the first and the last are the embedding and the output's matrix of an untied model.
extern const tarn__gpt2_name tarn__gpt2_model_names[TARN__GPT2_MODEL_NAMES];
enum { TARN__GPT2_EMBEDDING = 0, TARN__GPT2_OUTPUT = TARN__GPT2_MODEL_NAMES - 1 };

// The model's settings in config.json.
typedef struct tarn__gpt2_config {
  int64_t d_model, layers, heads, ffn, positions, vocab;
  const struct tarn__part *activation;
  double dropout, embedding_dropout, attention_dropout;
  double epsilon;  // of norms
  bool tied;
  int64_t eos;  // -1: missing
} tarn__gpt2_config;

// Reads a config.json. Fails with IO, MEMORY, or DATA, naming a key that is missing or has an unsupported value.
tarn_status tarn__gpt2_config_read(tarn__gpt2_config *config, const char *path) TARN_CHECKED;
tarn_status tarn__gpt2_config_write(const tarn__gpt2_config *config, const char *path) TARN_CHECKED;

#endif
