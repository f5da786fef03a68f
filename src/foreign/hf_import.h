// Shared by imports from the package transformers: a folder with config.json, model.safetensors and a vocabulary
// becomes a checkpoint. The file of the format reads config.json and maps the tensors.
#ifndef TARN_FOREIGN_HF_IMPORT_H
#define TARN_FOREIGN_HF_IMPORT_H

#include "foreign/hf_config.h"
#include "foreign/hf_name.h"
#include "foreign/hf_tensors.h"
#include "model/model.h"
#include "tarn/vocab.h"

// Zero-initialise it except the folder, and close it even after a failure.
typedef struct tarn__hf_import {
  const char *folder;
  const char *settings;  // the file of the settings, for messages; NULL: config.json in the folder
  tarn__hf_tensors tensors;
  tarn_vocab *vocab, *target_vocab;  // target_vocab NULL: one serves both sides
  tarn_config *description;
  tarn__model *model;
  // Changes the values of one of the first `arranged` parts of the parameter called `name`, [rows, cols], whose order
  // is another one in the file; NULL: none is.
  tarn_status (*arrange)(const void *arranger, const char *name, float *values, int64_t rows, int64_t cols);
  const void *arranger;
  int arranged;
  bool transposed;  // matrices (".weight") are [inputs, outputs] in the file, ours [outputs, inputs]
} tarn__hf_import;
void tarn__hf_import_close(tarn__hf_import *import);

// Opens the tensors, whose names may have a prefix: of model.safetensors, or of the files of its index. A folder that
// has only pickles, such as pytorch_model.bin, is refused with the way to convert them.
tarn_status tarn__hf_import_tensors(tarn__hf_import *import, const char *prefix) TARN_CHECKED;

// Fails with DATA if a folder has a file of weights that is a pickle.
tarn_status tarn__hf_refuse_pickles(const char *folder) TARN_CHECKED;

// Opens a vocabulary, which must have `size` tokens. Fails with DATA.
tarn_status tarn__hf_import_vocab_file(tarn__hf_import *import, const char *path, int64_t size) TARN_CHECKED;
// Opens the vocabulary `given` or, if NULL, the folder's, of which one of two files must exist (`files`, called `what`
// in messages). It must have `size` tokens. *from is its source. Fails with DATA.
tarn_status tarn__hf_import_vocab(tarn__hf_import *import, const char **from, const char *given,
                                  const char *const files[2], const char *what, int64_t size) TARN_CHECKED;

// Reads the model's description from `text`, YAML made from config.json; `keys` as for tarn__hf_name_key(), so that
// messages name the format's keys.
tarn_status tarn__hf_import_describe(tarn__hf_import *import, const char *text, size_t length,
                                     const tarn__hf_key *keys) TARN_CHECKED;

// The model's parameter of that name. Fails with INTERNAL if there is none.
tarn_status tarn__hf_import_param(tarn__param **param, const tarn__hf_import *import, const char *name) TARN_CHECKED;

// Sets a parameter that a format does not have to zeros.
tarn_status tarn__hf_import_zeros(tarn__param *param) TARN_CHECKED;

// Checks the tensors of the parameter `ours`, its parts from top to bottom, or with `set` takes their values.
// tensors[i] is that of names[i], which ends with the first NULL; NULL: missing, as the message says. The first
// `skipped` rows of each tensor are meaningless.
tarn_status tarn__hf_import_parts(tarn__hf_import *import, const char *ours,
                                  const tarn__stored *const tensors[TARN__HF_PARTS],
                                  const char *const names[TARN__HF_PARTS], int64_t skipped, bool set) TARN_CHECKED;

// Fails with DATA unless a tensor equals `first`, to which it is tied.
tarn_status tarn__hf_import_same(const tarn__hf_import *import, const tarn__stored *tensor,
                                 const tarn__stored *first) TARN_CHECKED;

// The conversion of a format's tensors to parameters.
typedef struct tarn__hf_import_steps {
  tarn_status (*take)(void *user, bool set);    // checks the tensors of all parameters, or takes their values
  tarn_status (*check_rest)(const void *user);  // checks the unused tensors
  void *user;
  uint64_t seed;  // initialises all parameters before the tensors are taken; 0: no initialisation
} tarn__hf_import_steps;

// Makes the model of the description and writes the checkpoint. `vocab` is the size of the source's vocabulary.
tarn_status tarn__hf_import_write(tarn__hf_import *import, const char *output, int64_t vocab,
                                  const tarn__hf_import_steps *steps) TARN_CHECKED;

#endif
