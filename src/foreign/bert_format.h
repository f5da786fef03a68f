// BERT and RoBERTa in the format of the package transformers: config.json and model.safetensors. Both are post-norm
// encoders; they differ in the names of the output, in the first position, and in the vocabulary.
#ifndef TARN_FOREIGN_BERT_FORMAT_H
#define TARN_FOREIGN_BERT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "description/description.h"
#include "foreign/hf_config.h"
#include "foreign/hf_name.h"

// The differences between the two.
typedef struct tarn__bert_family {
  const char *type;        // "bert": model_type, and with a dot the prefix of names
  const char *name;        // "BERT"
  const char *prefix;      // "bert."
  const char *masked;      // the package's class of a masked language model
  const char *labelled;    // of a classifier of sentences
  const char *vocabulary;  // the files of its vocabulary, for messages
  double epsilon;          // of norms, by default
  int64_t segments;        // type_vocab_size, by default
  int64_t padding;         // pad_token_id, by default
  bool shifted;            // the first position is pad_token_id + 1
  const char *bias;        // of the output layer: its presence indicates a masked language model's output
} tarn__bert_family;
enum { TARN__BERT_FAMILIES = 2 };
extern const tarn__bert_family tarn__bert_families[TARN__BERT_FAMILIES];

enum { TARN__BERT_LAYER_NAMES = 12, TARN__BERT_MODEL_NAMES = 5, TARN__BERT_HEAD_NAMES = 5 };
extern const tarn__hf_name tarn__bert_layer_names[TARN__BERT_LAYER_NAMES];
// Of the embeddings: words (tied or not), positions, segments, and the norm.
enum { TARN__BERT_WORDS, TARN__BERT_POSITIONS };
extern const tarn__hf_name tarn__bert_model_names[TARN__BERT_MODEL_NAMES];
// Names of the output, without the prefix, by family.
extern const tarn__hf_name tarn__bert_head_names[TARN__BERT_FAMILIES][TARN__BERT_HEAD_NAMES];
// Names of a classifier's output; the presence of the last but one indicates it. BERT's layer below it is the pooler.
enum { TARN__BERT_LABEL_NAMES = 4, TARN__BERT_CLASSES = 2 };
extern const tarn__hf_name tarn__bert_label_names[TARN__BERT_FAMILIES][TARN__BERT_LABEL_NAMES];
// The matrix and bias of a separate output layer, which a tied one may repeat, by family.
extern const char *const tarn__bert_decoders[TARN__BERT_FAMILIES][2];

// The model's settings in config.json.
typedef struct tarn__bert_config {
  const tarn__bert_family *family;
  int64_t d_model, layers, heads, ffn, positions, segments, vocab;  // positions: rows of their table, shifted or not
  int64_t padding;
  const struct tarn__part *activation;
  double dropout, attention_dropout, label_dropout;  // the last of a classifier's output
  double epsilon;                                    // of norms
  bool tied;
  bool labelled;    // it may be a classifier: the saved class is none, or a classifier of sentences
  bool regression;  // its labels are numbers
  char *labels;     // class names in the form of tarn_config_head.labels, freed with tarn__free(); NULL: numbers
} tarn__bert_config;

static inline int tarn__bert_family_index(const tarn__bert_config *config) {
  return (int)(config->family - tarn__bert_families);
}
// Rows of the table of positions before that of the first token.
static inline int64_t tarn__bert_first_position(const tarn__bert_config *config) {
  return config->family->shifted ? config->padding + 1 : 0;
}

// Reads a config.json; the caller frees `labels` even on failure. Fails with IO, MEMORY, or DATA, naming a key that is
// missing or has an unsupported value.
tarn_status tarn__bert_config_read(tarn__bert_config *config, const char *path) TARN_CHECKED;
// cls, sep: ids of the exported vocabulary. `labelled` is set for a classifier.
tarn_status tarn__bert_config_write(const tarn__bert_config *config, int32_t cls, int32_t sep,
                                    const char *path) TARN_CHECKED;

#endif
