// Marian's models, in the format of the package transformers (config.json, generation_config.json and
// model.safetensors) and in Marian's own (npz, YAML), with the files of their vocabularies. The package has post-norm
// encoders and decoders only; the decoder reads padding first, for which Marian itself has an embedding of zeros.
#ifndef TARN_FOREIGN_MARIAN_FORMAT_H
#define TARN_FOREIGN_MARIAN_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "foreign/hf_config.h"
#include "foreign/hf_import.h"
#include "foreign/hf_name.h"

#define TARN__MARIAN_PREFIX "model."  // of all names except the output's
#define TARN__MARIAN_SHARED "shared.weight"
#define TARN__MARIAN_ENCODER_WORDS "encoder.embed_tokens.weight"
#define TARN__MARIAN_DECODER_WORDS "decoder.embed_tokens.weight"
#define TARN__MARIAN_OUTPUT "lm_head.weight"
#define TARN__MARIAN_BIAS "final_logits_bias"
#define TARN__MARIAN_GENERATION "generation_config.json"
#define TARN__MARIAN_EPSILON 1e-5  // of all norms of the package

// Names of a layer: those after the first TARN__MARIAN_ENCODER_NAMES are only in decoders.
enum { TARN__MARIAN_ENCODER_NAMES = 12, TARN__MARIAN_LAYER_NAMES = 20 };
typedef const char *const tarn__marian_parts[TARN__HF_PARTS];
extern tarn__marian_parts tarn__marian_package_names[TARN__MARIAN_LAYER_NAMES];  // in the package
extern tarn__marian_parts tarn__marian_own_names[TARN__MARIAN_LAYER_NAMES];      // in Marian's own format
// Number `i` of a format's names, with ours.
tarn__hf_name tarn__marian_name(tarn__marian_parts *names, int i);

typedef struct tarn__marian_stack {
  int64_t layers, heads, ffn;
  double layerdrop;
  bool top;  // a norm stands behind the highest layer
} tarn__marian_stack;

// The model's settings.
typedef struct tarn__marian_config {
  tarn__marian_stack encoder, decoder;
  int64_t d_model, positions, vocab, target_vocab;
  const struct tarn__part *sinusoids;
  int64_t first;           // position of the first token of a sentence, where it is not 0
  bool unbiased;           // logits have no bias
  double epsilon;          // of norms
  bool pre;                // norms stand before each sublayer
  bool embedding_norm;     // norms stand behind the sums of embeddings and positions
  const char *embeddings;  // model.embeddings
  int64_t padding, start;  // tokens; the decoder reads `start` first, which is the padding in Marian's own models
  const struct tarn__part *activation;
  double dropout, attention_dropout;
  bool scaled;  // embeddings are scaled by sqrt(d_model)
  bool shared;  // encoder and decoder read one matrix
  bool tied;    // the output's matrix is the decoder's
  int64_t eos;  // -1: missing
  // Of translation.
  double longest_share;             // a translation has at most this many tokens for each of the source, and
  int64_t beam, longest, shortest;  // `longest` more; these lengths include the decoder's first token
  double length_penalty;
  bool early_stopping;
  bool renormalised;  // probabilities are among all tokens but padding
  bool allow_unk;     // translations may have <unk>,
  int64_t unk;        // which is this token; -1: what the vocabulary says
} tarn__marian_config;

// Reads the two files of a folder, the second of which is optional. Fails with IO, MEMORY, or DATA, naming a key that
// is missing or has an unsupported value.
tarn_status tarn__marian_config_read(tarn__marian_config *config, const char *folder) TARN_CHECKED;
tarn_status tarn__marian_config_write(const tarn__marian_config *config, const char *folder) TARN_CHECKED;

// An import, of either format.
typedef struct tarn__marian_source {
  tarn__hf_import import;
  tarn__marian_config config;
} tarn__marian_source;

// The settings of a model in Marian's own format: `model` is the text of the array "special:model.yml" of the weights,
// which `origin` names; `decoder` are the settings of decoder.yml.
tarn_status tarn__marian_own_config(tarn__marian_config *config, const char *origin, json_t *decoder,
                                    const char *folder, const char *model, size_t size) TARN_CHECKED;

// Makes the description of the settings; `keys` as for tarn__hf_import_describe().
tarn_status tarn__marian_describe(tarn__marian_source *source, const tarn__hf_key *keys) TARN_CHECKED;

// How the tensors of a layer are called: `layer` is a format of the side and the layer's number, the first being
// `first`; `ending` follows the names of norms. `side`: how the side is called there; NULL: as here.
typedef struct tarn__marian_names {
  tarn__marian_parts *names;
  const char *layer, *side;
  int first;
  const char *ending;
} tarn__marian_names;
// Checks the tensors of a stack's layers, or with `set` takes their values; `count` names are of one layer, of which
// those without a name are left to the caller. `side` is ours, and theirs unless names->side is another one.
tarn_status tarn__marian_take_stack(tarn__marian_source *source, const tarn__marian_names *names,
                                    const tarn__marian_stack *stack, const char *side, int count,
                                    bool set) TARN_CHECKED;

// The same for the norm behind a stack, if there is one; names[]: formats of its gain and bias for their name of the
// side.
tarn_status tarn__marian_take_top(tarn__marian_source *source, const char *side, const char *theirs,
                                  const char *const names[2], bool set) TARN_CHECKED;

// The same for one tensor that is one parameter of ours, but for its first `skipped` rows; and for the matrices of the
// words, by the names of the source's, the target's and the output's.
tarn_status tarn__marian_take_one(tarn__marian_source *source, const char *theirs, const char *ours, int64_t skipped,
                                  bool set) TARN_CHECKED;
enum { TARN__MARIAN_SOURCE_TABLE, TARN__MARIAN_TARGET_TABLE, TARN__MARIAN_OUTPUT_TABLE, TARN__MARIAN_TABLES };
tarn_status tarn__marian_take_tables(tarn__marian_source *source, const char *const names[TARN__MARIAN_TABLES],
                                     bool set) TARN_CHECKED;
// Fills in which matrices of the words are one by their values, of which tied ones are copies: `output` may be NULL.
void tarn__marian_find_shared(tarn__marian_config *config, const tarn__stored *source, const tarn__stored *target,
                              const tarn__stored *output);
// Whether a tensor is such a copy, which is not taken.
bool tarn__marian_is_copy(const tarn__marian_config *config, const char *const names[TARN__MARIAN_TABLES],
                          const char *name);

// The logit of what is never chosen: exp() of it is 0, and with label smoothing a loss stays usable.
#define TARN__MARIAN_NEVER (-1e4f)

// Imports a folder in Marian's own format; as tarn_checkpoint_import_marian().
tarn_status tarn__marian_own_import(const char *output, const char *folder, const char *vocab,
                                    const char *target_vocab) TARN_CHECKED;

#endif
