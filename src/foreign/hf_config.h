// config.json of the package transformers for any model: an object whose keys are read one by one.
#ifndef TARN_FOREIGN_HF_CONFIG_H
#define TARN_FOREIGN_HF_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define TARN__HF_CONFIG "config.json"
#define TARN__HF_WEIGHTS "model.safetensors"
#define TARN__HF_INDEX "model.safetensors.index.json"

typedef struct tarn__hf_config {
  const char *path;
  json_t *object;
  const char *model;         // "GPT-2", for messages
  const char *const *known;  // its keys, read or irrelevant here
  size_t known_count;
} tarn__hf_config;

// Opens a file, which must be a JSON object. Fails with IO, MEMORY or DATA.
tarn_status tarn__hf_config_open(tarn__hf_config *config, const char *path) TARN_CHECKED;
void tarn__hf_config_close(tarn__hf_config *config);

// All of the following fail with DATA, naming the key. The value of a key; NULL if missing or null.
json_t *tarn__hf_value(const tarn__hf_config *config, const char *key);
// A whole number of 1 or more, which may be written as 1e3; `other` (0: none) if the key is missing.
tarn_status tarn__hf_size(const tarn__hf_config *config, int64_t *number, const char *key, int64_t other) TARN_CHECKED;
tarn_status tarn__hf_real(const tarn__hf_config *config, double *number, const char *key, double other) TARN_CHECKED;
tarn_status tarn__hf_flag(const tarn__hf_config *config, bool *flag, const char *key, bool other) TARN_CHECKED;
// A token's id; `other` if the key is missing, -1 for a list of several tokens.
tarn_status tarn__hf_token(const tarn__hf_config *config, int64_t *id, const char *key, int64_t other) TARN_CHECKED;
// A text; `other` (NULL: none) if the key is missing. It lives as long as the object.
tarn_status tarn__hf_word(const tarn__hf_config *config, const char **word, const char *key,
                          const char *other) TARN_CHECKED;
// An activation, by the package's words; `other` if the key is missing.
struct tarn__part;
tarn_status tarn__hf_activation(const tarn__hf_config *config, const struct tarn__part **activation, const char *key,
                                const char *other) TARN_CHECKED;
// The word of an activation; NULL: it has none.
const char *tarn__hf_activation_word(const struct tarn__part *activation);
// Fails unless a key that changes the arithmetic has the supported value.
tarn_status tarn__hf_demand(const tarn__hf_config *config, const char *key, bool needed) TARN_CHECKED;

// Fails if the file says another number than `shown`, that of the tensors in `origin`; it may say none.
tarn_status tarn__hf_demand_size(const tarn__hf_config *config, const char *key, int64_t shown,
                                 const char *origin) TARN_CHECKED;

// Fail if a stack cannot have as many layers as `key` says, or if the number of `key` does not divide that of `whole`.
tarn_status tarn__hf_check_layers(const tarn__hf_config *config, const char *key, int64_t layers) TARN_CHECKED;
tarn_status tarn__hf_check_divides(const tarn__hf_config *config, const char *key, int64_t number, const char *whole,
                                   int64_t all) TARN_CHECKED;

// Warns in one line about all unknown keys.
void tarn__hf_tell_unknown(const tarn__hf_config *config);

// Writes an object as a file and frees it. NULL: memory had run out.
tarn_status tarn__hf_config_write(json_t *object, const char *path) TARN_CHECKED;

// Names a value that our description refuses by its key in their file, `origin`. `status` is that of reading the
// description, `keys` are pairs of our key with colon and blank and theirs, ended by NULLs.
typedef struct tarn__hf_key {
  const char *ours, *theirs;
} tarn__hf_key;
tarn_status tarn__hf_name_key(tarn_status status, const tarn__hf_key *keys, const char *origin);

#endif
