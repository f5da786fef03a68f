// Models of LLaMA's kind (Touvron et al. 2023) in formats of other programs: the package transformers (config.json with
// "model_type" llama, mistral or qwen2, and model.safetensors) and GGUF. Pre-norm decoders with RMSNorm, rotary
// positions, FFNs with a gate, and heads that may share keys and values. tarn's layers have biases, which are zeros
// where a file has none.
#ifndef TARN_FOREIGN_LLAMA_FORMAT_H
#define TARN_FOREIGN_LLAMA_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "foreign/hf_config.h"
#include "foreign/hf_import.h"
#include "foreign/hf_write.h"
#include "store/checkpoint.h"
#include "tarn/lab/foreign.h"

#define TARN__LLAMA_PREFIX "model."  // of all names of the package but the output's

// The tensors of a layer: each has the name of its part and ".weight", and its bias the same with ".bias".
typedef enum tarn__llama_part {
  TARN__LLAMA_ATTENTION_NORM,
  TARN__LLAMA_Q,
  TARN__LLAMA_K,
  TARN__LLAMA_V,
  TARN__LLAMA_O,
  TARN__LLAMA_FFN_NORM,
  TARN__LLAMA_UP,
  TARN__LLAMA_GATE,
  TARN__LLAMA_DOWN,
  TARN__LLAMA_PARTS
} tarn__llama_part;

// The names of a format.
typedef struct tarn__llama_names {
  const char *embedding, *norm, *output;  // of the model: "embed_tokens"
  const char *layer;                      // of a layer, before its number from 0: "layers."
  const char *parts[TARN__LLAMA_PARTS];
  // In queries and keys the rows that are turned together are neighbours, not half a head apart as in the package and
  // here.
  bool interleaved;
} tarn__llama_names;
extern const tarn__llama_names tarn__llama_hf_names;

// A parameter of a layer of ours, without ".weight" and ".bias", and its parts from the top.
typedef struct tarn__llama_row {
  const char *ours;
  tarn__llama_part parts[TARN__HF_PARTS];
  int count;
  bool norm;  // it is a gain, without a bias
} tarn__llama_row;
// The rows of a layer: those with as many heads of keys and values as of queries have one matrix for them.
const tarn__llama_row *tarn__llama_rows(bool grouped, int *count);

// The model's settings.
typedef struct tarn__llama_config {
  tarn_llama_format format;
  int64_t d_model, layers, heads, kv_heads, head_width, ffn, positions, vocab;
  const struct tarn__part *channel;  // the FFN, which its activation gives
  double epsilon;                    // of norms
  double attention_dropout;
  // Of rotary positions.
  double base, share, factor, low_freq_factor, high_freq_factor;
  int64_t original_length;  // 0: `factor` is for all frequencies
  bool tied;
  bool qkv_bias, out_bias, ffn_bias;  // whether there are such biases
  int64_t bos, eos;                   // -1: missing, or several
} tarn__llama_config;

// The word of a format: "llama".
const char *tarn__llama_word(tarn_llama_format format);

// Reads a config.json. Fails with IO, MEMORY, or DATA, naming a key that is missing or has an unsupported value.
tarn_status tarn__llama_config_read(tarn__llama_config *config, const char *path) TARN_CHECKED;
tarn_status tarn__llama_config_write(const tarn__llama_config *config, const char *path) TARN_CHECKED;

// Whether a part has a bias in the file.
bool tarn__llama_has_bias(const tarn__llama_config *config, tarn__llama_part part);

// An import: its settings, tensors and vocabulary are there.
typedef struct tarn__llama_source {
  tarn__hf_import import;
  tarn__llama_config config;
  const tarn__llama_names *names;
} tarn__llama_source;
// Makes the model and writes the checkpoint; `keys` as for tarn__hf_import_describe().
tarn_status tarn__llama_import(tarn__llama_source *source, const char *output, const tarn__hf_key *keys) TARN_CHECKED;

// Fills in the settings of a checkpoint, whose values the writer gives. Fails with USAGE for a model that is none of
// LLaMA's kind.
tarn_status tarn__llama_describe(tarn__llama_config *config, const tarn__checkpoint *checkpoint,
                                 tarn__hf_writer *writer) TARN_CHECKED;
// Adds all tensors of a model with these settings to a writer, under the names of a format, with `prefix` before all
// but the output's. Biases that the settings exclude are left out.
tarn_status tarn__llama_add(tarn__hf_writer *writer, const tarn__llama_config *config, const tarn__llama_names *names,
                            const char *prefix) TARN_CHECKED;

// Swaps the orders of the rows of queries or keys [heads * width, cols] from half a head apart to neighbours, or back.
void tarn__llama_interleave(float *out, const float *values, int64_t heads, int64_t width, int64_t cols, bool back);

#endif
