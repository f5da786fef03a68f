// BERT and RoBERTa as the package transformers stores them: config.json and model.safetensors. Both are encoders alone
// with norms behind their branches; they differ in the names of the output, in the place of the first position, and in
// the vocabulary.
#ifndef TARN_FOREIGN_BERT_FORMAT_H
#define TARN_FOREIGN_BERT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "description/description.h"
#include "foreign/hf_config.h"
#include "foreign/hf_name.h"

// What the two do not share.
typedef struct tarn__bert_family {
  const char *type;        // "bert": model_type, and with a dot the prefix of names
  const char *name;        // "BERT"
  const char *prefix;      // "bert."
  const char *masked;      // the package's class of a masked language model
  const char *labelled;    // of a classifier of sentences
  const char *vocabulary;  // the files of its vocabulary, for messages
  double epsilon;          // of norms, where a file does not say
  int64_t segments;        // type_vocab_size, where a file does not say
  int64_t padding;         // pad_token_id, where a file does not say
  bool shifted;            // the first position is pad_token_id + 1
  const char *bias;        // of the output layer: its name says that there is a masked language model's output
} tarn__bert_family;
enum { TARN__BERT_FAMILIES = 2 };
extern const tarn__bert_family tarn__bert_families[TARN__BERT_FAMILIES];

enum { TARN__BERT_LAYER_NAMES = 12, TARN__BERT_MODEL_NAMES = 5, TARN__BERT_HEAD_NAMES = 5 };
extern const tarn__hf_name tarn__bert_layer_names[TARN__BERT_LAYER_NAMES];
// Of the embeddings: words (tied or not, tarn__bert_words()), positions, segments, and the norm.
enum { TARN__BERT_WORDS, TARN__BERT_POSITIONS };
extern const tarn__hf_name tarn__bert_model_names[TARN__BERT_MODEL_NAMES];
// Of the output, without the prefix, by family.
extern const tarn__hf_name tarn__bert_head_names[TARN__BERT_FAMILIES][TARN__BERT_HEAD_NAMES];
// Of the output of a classifier; the last but one says that there is one. BERT's layer below it is the pooler.
enum { TARN__BERT_LABEL_NAMES = 4, TARN__BERT_CLASSES = 2 };
extern const tarn__hf_name tarn__bert_label_names[TARN__BERT_FAMILIES][TARN__BERT_LABEL_NAMES];
// What an output of its own has, and a tied one may repeat, by family: the words' matrix and their bias.
extern const char *const tarn__bert_decoders[TARN__BERT_FAMILIES][2];

// What config.json says of the model.
typedef struct tarn__bert_config {
  const tarn__bert_family *family;
  int64_t d_model, layers, heads, ffn, positions, segments, vocab;  // positions: rows of their table, shifted or not
  int64_t padding;
  const struct tarn__part *activation;
  double dropout, attention_dropout, label_dropout;  // the last of a classifier's output
  double epsilon;                                    // of norms
  bool tied;
  bool labelled;    // it may be a classifier: the class that was saved is none, or one of sentences
  bool regression;  // its labels are numbers
  char *labels;     // names of classes as tarn_config_head.labels has them, to be given to tarn__free(); NULL: numbers
} tarn__bert_config;

static inline int tarn__bert_family_index(const tarn__bert_config *config) {
  return (int)(config->family - tarn__bert_families);
}
// Rows of the table of positions before that of the first token.
static inline int64_t tarn__bert_first_position(const tarn__bert_config *config) {
  return config->family->shifted ? config->padding + 1 : 0;
}

// Reads a config.json; `labels` is the caller's also where it fails. Fails with IO, MEMORY, or DATA, naming the key
// that is missing or has a value that tarn does not have.
tarn_status tarn__bert_config_read(tarn__bert_config *config, const char *path) TARN_CHECKED;
// cls, sep: ids of the vocabulary that is written beside it. Of a classifier `labelled` is set.
tarn_status tarn__bert_config_write(const tarn__bert_config *config, int32_t cls, int32_t sep,
                                    const char *path) TARN_CHECKED;

#endif
