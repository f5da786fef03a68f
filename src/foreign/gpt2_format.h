// GPT-2 in formats of other programs: the package transformers (config.json and model.safetensors), in whose files
// matrices of layers are [inputs, outputs] (its Conv1D), and GGUF, where they are [outputs, inputs] as here.
#ifndef TARN_FOREIGN_GPT2_FORMAT_H
#define TARN_FOREIGN_GPT2_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "description/description.h"
#include "foreign/hf_config.h"
#include "foreign/hf_import.h"
#include "foreign/hf_write.h"
#include "store/checkpoint.h"

#define TARN__GPT2_PREFIX "transformer."  // of all names except lm_head in files of whole models

enum { TARN__GPT2_LAYER_NAMES = 12, TARN__GPT2_MODEL_NAMES = 5 };
enum { TARN__GPT2_EMBEDDING = 0, TARN__GPT2_OUTPUT = TARN__GPT2_MODEL_NAMES - 1 };

// The names of a format.
typedef struct tarn__gpt2_names {
  // Of the whole model; the first and the last are the embedding and the output's matrix of an untied model.
  const char *model[TARN__GPT2_MODEL_NAMES];
  const char *layer[TARN__GPT2_LAYER_NAMES];  // "attn.c_attn.weight" (of "h.0.")
  const char *at;                             // of a layer, before its number from 0: "h."
  bool transposed;                            // matrices of layers are [inputs, outputs]
} tarn__gpt2_names;
extern const tarn__gpt2_names tarn__gpt2_hf_names, tarn__gpt2_gguf_names;

// Our names of the same parameters, those of a layer within its set: "self_attn.qkv.weight".
extern const char *const tarn__gpt2_model_ours[TARN__GPT2_MODEL_NAMES];
extern const char *const tarn__gpt2_layer_ours[TARN__GPT2_LAYER_NAMES];
// Whether a format stores parameter number `i` of a layer transposed.
bool tarn__gpt2_is_transposed(const tarn__gpt2_names *names, int i);

// The model's settings.
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

// An import: its settings, tensors and vocabulary are there.
typedef struct tarn__gpt2_source {
  tarn__hf_import import;
  tarn__gpt2_config config;
  const tarn__gpt2_names *names;
} tarn__gpt2_source;
// Makes the model and writes the checkpoint; `keys` as for tarn__hf_import_describe().
tarn_status tarn__gpt2_model_import(tarn__gpt2_source *source, const char *output,
                                    const tarn__hf_key *keys) TARN_CHECKED;

// Fills in the settings of a checkpoint, and warns of what GPT-2's formats lose. Fails with USAGE for a model that they
// cannot express.
tarn_status tarn__gpt2_describe(tarn__gpt2_config *config, const tarn__checkpoint *checkpoint) TARN_CHECKED;
// Adds all tensors of a checkpoint with these settings to a writer, under the names of a format, with `prefix` before
// all but the output's.
tarn_status tarn__gpt2_add(tarn__hf_writer *writer, const tarn__gpt2_config *config, const tarn__checkpoint *checkpoint,
                           const tarn__gpt2_names *names, const char *prefix) TARN_CHECKED;

#endif
