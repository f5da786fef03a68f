// A C face of SentencePiece. The C++ behind it never lets an exception through and says nothing on standard error.
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

// Opens a serialized model whose structure tarn__spm_check() has found sound.
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

// As the functions of tarn/vocab.h, but encode appends to the ids; decode takes ids that are in range.
tarn_status tarn__spm_encode(const tarn__spm *spm, tarn_vocab_ids *ids, const char *text, size_t length) TARN_CHECKED;
tarn_status tarn__spm_decode(const tarn__spm *spm, tarn_vocab_text *text, const int32_t *ids,
                             size_t count) TARN_CHECKED;

// The pieces of a text as they are written, what the model does not know as it stands in the text: `take` is given one
// after the other, each `length` bytes, and a failure of it ends the work and is returned.
typedef tarn_status (*tarn__spm_take)(void *user, const char *piece, size_t length);
tarn_status tarn__spm_encode_pieces(const tarn__spm *spm, tarn__spm_take take, void *user, const char *text,
                                    size_t length) TARN_CHECKED;
// The text of pieces, which need not be pieces of this model: those that it does not have stand for themselves.
tarn_status tarn__spm_decode_pieces(const tarn__spm *spm, tarn_vocab_text *text, const char *const *pieces,
                                    size_t count) TARN_CHECKED;

// Told how many pieces a training has, and its share that is done, 0 .. 1.
typedef void (*tarn__spm_tell)(void *user, double pieces, double share);

// Trains a model and gives its bytes, which the caller frees with tarn__free(). Every line that `next` gives must have
// at most TARN__CUT_LONGEST bytes and something that is left behind SentencePiece's normalisation: its trainers skip
// longer lines, and end the process where no line has anything.
// options->normalization is not AUTO.
// `tell` NULL, or another training is told: nobody is; else std::cerr of the process is SentencePiece's meanwhile.
tarn_status tarn__spm_train(char **bytes, size_t *size, tarn__text_next next, tarn__spm_tell tell, void *user,
                            const tarn_vocab_options *options) TARN_CHECKED;

// What the bytes of a model whose structure is sound say of it.
enum { TARN__SPM_NAME = 48 };
typedef struct tarn__spm_facts {
  const char *type;                    // "SentencePiece bpe", ...
  char normalization[TARN__SPM_NAME];  // the name of its rule
  bool loses_joiners;                  // the rule replaces U+200C or U+200D
} tarn__spm_facts;
void tarn__spm_describe(tarn__spm_facts *facts, const void *bytes, size_t size);
// The compiled table of its normaliser, in these bytes. False: there is none, text is left as it is.
bool tarn__spm_table(const void **table, size_t *table_size, const void *bytes, size_t size);
// The rule of SentencePiece that a normalization is but for the joiners, or itself.
tarn_vocab_normalization tarn__spm_base(tarn_vocab_normalization normalization);
// Changes a sound table such that U+200C and U+200D stay as they are. False: it is no table.
bool tarn__spm_keep_joiners(void *table, size_t size);

// Checks what SentencePiece itself trusts: that the bytes are well-formed protocol buffers, and that the normaliser's
// compiled table of characters, a double-array trie, points nowhere outside itself.
tarn_status tarn__spm_check(const void *bytes, size_t size) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
