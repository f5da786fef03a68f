// A folder with a model as Marian itself writes it: decoder.yml, which names the other files, the weights (.npz), the
// vocabularies (.yml, .json or .spm), and the SentencePiece models source.spm and target.spm that cut the text.
#ifndef TARN_TEXT_MARIAN_OWN_H
#define TARN_TEXT_MARIAN_OWN_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "base/status.h"

#define TARN__MARIAN_DECODER "decoder.yml"
#define TARN__MARIAN_MODELS "models"  // its key of the weights
#define TARN__MARIAN_WEIGHTS "model.npz"

// Whether a folder is of this form, and not of the package transformers.
bool tarn__marian_is_own(const char *folder);

// Reads decoder.yml, an object from settings to values; without that file it is empty. The caller frees it with
// json_decref(). Fails with IO, MEMORY or DATA.
tarn_status tarn__marian_decoder_read(json_t **decoder, const char *folder) TARN_CHECKED;

// The path of the first (with `last`, of the last) file of at most `most` that a key lists. All stand in the folder,
// whatever paths the key has. `other` is the name if there is no such key. Fails with DATA.
tarn_status tarn__marian_file(char path[PATH_MAX], const char *folder, const json_t *decoder, const char *key,
                              size_t most, bool last, const char *other) TARN_CHECKED;

// The files of a side's vocabulary: its list of tokens, and the SentencePiece model, which may be the same.
typedef struct tarn__marian_side {
  char list[PATH_MAX], model[PATH_MAX];
} tarn__marian_side;

// The tokens of a side and their ids, and after them one more, which the decoder reads first; and the files. The
// caller frees the object with json_decref(). Fails with IO, MEMORY or DATA.
tarn_status tarn__marian_own_tokens(json_t **tokens, tarn__marian_side *side, const char *folder,
                                    bool target) TARN_CHECKED;

// Whether the added token, which the decoder reads first, can have this name.
bool tarn__marian_is_start(const char *token);

#endif
