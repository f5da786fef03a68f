// A C interface to SentencePiece. Its C++ code lets no exception through and prints nothing on standard error.
#ifndef TARN_TEXT_SPM_H
#define TARN_TEXT_SPM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/vocab.h"
#include "text/next.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn__spm tarn__spm;

// Opens a serialized model that tarn__spm_check() has accepted.
tarn_status tarn__spm_open(tarn__spm **spm, const void *bytes, size_t size) TARN_CHECKED;
void tarn__spm_close(tarn__spm **spm);

int32_t tarn__spm_size(const tarn__spm *spm);
int32_t tarn__spm_unk(const tarn__spm *spm);
int32_t tarn__spm_bos(const tarn__spm *spm);
int32_t tarn__spm_eos(const tarn__spm *spm);
int32_t tarn__spm_pad(const tarn__spm *spm);
const char *tarn__spm_piece(const tarn__spm *spm, int32_t id);
// The id of a control symbol of this name, or -1.
int32_t tarn__spm_control(const tarn__spm *spm, const char *name);
// Whether a piece begins with the mark of a blank, or stands for no text.
bool tarn__spm_begins_word(const tarn__spm *spm, int32_t id);

// Like the functions of tarn/vocab.h, but encode appends to the ids; decode requires ids in range.
tarn_status tarn__spm_encode(const tarn__spm *spm, tarn_vocab_ids *ids, const char *text, size_t length) TARN_CHECKED;
tarn_status tarn__spm_decode(const tarn__spm *spm, tarn_vocab_text *text, const int32_t *ids,
                             size_t count) TARN_CHECKED;

// The pieces of a text in written form, unknown ones as in the text: `take` gets one after the other, each of `length`
// bytes; its failure ends the work and is returned.
typedef tarn_status (*tarn__spm_take)(void *user, const char *piece, size_t length);
tarn_status tarn__spm_encode_pieces(const tarn__spm *spm, tarn__spm_take take, void *user, const char *text,
                                    size_t length) TARN_CHECKED;
// The text of pieces; those that the model does not have stand for themselves.
tarn_status tarn__spm_decode_pieces(const tarn__spm *spm, tarn_vocab_text *text, const char *const *pieces,
                                    size_t count) TARN_CHECKED;

// Receives the number of pieces of a training so far, and the share that is done, 0 .. 1.
typedef void (*tarn__spm_tell)(void *user, double pieces, double share);

// Trains a model and returns its bytes, which the caller frees with tarn__free(). Every line from `next` must have at
// most TARN__CUT_LONGEST bytes and be non-empty after SentencePiece's normalisation: its trainers skip longer lines,
// and end the process if every line is empty. options->normalization is not AUTO. Without `tell`, or if another
// training reports, nothing is reported; else std::cerr of the process is redirected to SentencePiece's progress
// meanwhile.
tarn_status tarn__spm_train(char **bytes, size_t *size, tarn__text_next next, tarn__spm_tell tell, void *user,
                            const tarn_vocab_options *options) TARN_CHECKED;

// Facts from the bytes of an accepted model.
enum { TARN__SPM_NAME = 48 };
typedef struct tarn__spm_facts {
  const char *type;                    // "SentencePiece bpe", ...
  char normalization[TARN__SPM_NAME];  // name of its rule
  bool loses_joiners;                  // the rule replaces U+200C or U+200D
} tarn__spm_facts;
void tarn__spm_describe(tarn__spm_facts *facts, const void *bytes, size_t size);
// The compiled table of its normaliser, in these bytes. False: there is none, text stays unchanged.
bool tarn__spm_table(const void **table, size_t *table_size, const void *bytes, size_t size);
// SentencePiece's rule that differs from a normalization only in the joiners, or itself.
tarn_vocab_normalization tarn__spm_base(tarn_vocab_normalization normalization);
// Changes an accepted table to leave U+200C and U+200D unchanged. False: it is no table.
bool tarn__spm_keep_joiners(void *table, size_t size);

// Checks what SentencePiece itself trusts: that the bytes are well-formed protocol buffers, and that the normaliser's
// compiled table of characters, a double-array trie, does not point outside itself.
tarn_status tarn__spm_check(const void *bytes, size_t size) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
