// Translation models of PyTorch's nn.Transformer, or of nn.TransformerEncoder and nn.TransformerDecoder, with
// embeddings, positions and an output layer around them, as in PyTorch's tutorial on translation. A folder has the
// state dict as model.safetensors, config.json with what tensors do not tell, under the names of nn.Transformer's
// arguments, and for each side tokens.SIDE.txt (text/list.h), SIDE.spm, or both; SIDE is source or target.
#ifndef TARN_FOREIGN_TORCH_FORMAT_H
#define TARN_FOREIGN_TORCH_FORMAT_H

#include <stdbool.h>

#include "base/status.h"
#include "foreign/marian_format.h"

#define TARN__TORCH_TYPE "nn.Transformer"  // "model_type" of config.json
#define TARN__TORCH_PREFIX "module."       // of all names, with nn.DataParallel

// The decoder's cross-attention: one matrix, and one bias, of the queries, keys and values one below another.
#define TARN__TORCH_CROSS_WEIGHT "multihead_attn.in_proj_weight"
#define TARN__TORCH_CROSS_BIAS "multihead_attn.in_proj_bias"

enum { TARN__TORCH_NAME = 128, TARN__TORCH_SIDES = 2 };  // bytes of the name of a module

typedef struct tarn__torch_source {
  tarn__marian_source base;
  char stacks[TARN__TORCH_SIDES][TARN__TORCH_NAME];  // before "layers.0.": "transformer.encoder."
  char tables[TARN__MARIAN_TABLES][TARN__TORCH_NAME];
  char bias[TARN__TORCH_NAME];                          // of the output
  char positions[TARN__TORCH_SIDES][TARN__TORCH_NAME];  // ""; there is no tensor
  // The sinusoids alternate between sines and cosines, so that every vector of width d_model is reordered.
  bool interleaved;
  bool begins;  // a source begins with the token that the decoder reads first
} tarn__torch_source;

// Reads the settings, of which those that the tensors tell are taken from them. Fails with IO, MEMORY, or DATA, naming
// the key or the tensor.
tarn_status tarn__torch_config(tarn__torch_source *source) TARN_CHECKED;

// The rows of a table of positions of this width, which may have dimensions of 1 beside two others; 0: it is none.
int64_t tarn__torch_position_rows(const tarn__stored *tensor, int64_t width);

// Imports such a folder; as tarn_checkpoint_import().
tarn_status tarn__torch_import(const char *output, const char *folder, const char *vocab,
                               const char *target_vocab) TARN_CHECKED;

#endif
