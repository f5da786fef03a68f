// What imports of all formats of the package transformers share: a folder with config.json, model.safetensors and a
// vocabulary becomes a checkpoint. The format's own file reads its config.json and says which tensors are which.
#ifndef TARN_FOREIGN_HF_IMPORT_H
#define TARN_FOREIGN_HF_IMPORT_H

#include "foreign/hf_config.h"
#include "foreign/hf_name.h"
#include "foreign/hf_tensors.h"
#include "model/model.h"
#include "tarn/vocab.h"

// Zero-initialise it but for the folder, and close it whatever failed.
typedef struct tarn__hf_import {
  const char *folder;
  tarn__hf_tensors tensors;
  tarn_vocab *vocab, *target_vocab;  // target_vocab NULL: one serves both sides
  tarn_config *description;
  tarn__model *model;
} tarn__hf_import;
void tarn__hf_import_close(tarn__hf_import *import);

// The tensors, whose names may have a prefix.
tarn_status tarn__hf_import_tensors(tarn__hf_import *import, const char *prefix) TARN_CHECKED;

// The vocabulary `given`, or where that is NULL the folder's, which has one where one of two files is there (`files`,
// for people `what`). It must have `size` tokens. *from is where it came from. Fails with DATA.
tarn_status tarn__hf_import_vocab(tarn__hf_import *import, const char **from, const char *given,
                                  const char *const files[2], const char *what, int64_t size) TARN_CHECKED;

// Reads the model's description from `text`, YAML that tarn made of config.json; `keys` as tarn__hf_name_key() has
// them, so that messages name the format's keys.
tarn_status tarn__hf_import_describe(tarn__hf_import *import, const char *text, size_t length,
                                     const tarn__hf_key *keys) TARN_CHECKED;

// The model's parameter of that name. Fails with INTERNAL if there is none.
tarn_status tarn__hf_import_param(tarn__param **param, const tarn__hf_import *import, const char *name) TARN_CHECKED;

// Checks the tensors of the parameter `ours`, which are its parts from the top to the bottom, or with `set` takes their
// values. tensors[i] is that of names[i], which ends with the first NULL; NULL where it is missing, as the message
// says. The first `skipped` rows of each tensor have no meaning.
tarn_status tarn__hf_import_parts(tarn__hf_import *import, const char *ours,
                                  const tarn__stored *const tensors[TARN__HF_PARTS],
                                  const char *const names[TARN__HF_PARTS], int64_t skipped, bool set) TARN_CHECKED;

// Fails with DATA unless a tensor equals `first`, to which it is tied.
tarn_status tarn__hf_import_same(const tarn__hf_import *import, const tarn__stored *tensor,
                                 const tarn__stored *first) TARN_CHECKED;

// How a format's tensors become parameters.
typedef struct tarn__hf_import_steps {
  tarn_status (*take)(void *user, bool set);    // checks the tensors of all parameters, or takes their values
  tarn_status (*check_rest)(const void *user);  // judges the tensors that became no parameter
  void *user;
  uint64_t seed;  // with which all parameters are initialised before the tensors are taken; 0: they are not
} tarn__hf_import_steps;

// Makes the model of the description and writes the checkpoint. `vocab` is the size of the source's vocabulary.
tarn_status tarn__hf_import_write(tarn__hf_import *import, const char *output, int64_t vocab,
                                  const tarn__hf_import_steps *steps) TARN_CHECKED;

#endif
