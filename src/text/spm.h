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
// `tell` NULL, or another training is told: nobody is; else std::cerr of the process is SentencePiece's meanwhile.
tarn_status tarn__spm_train(char **bytes, size_t *size, tarn__text_next next, tarn__spm_tell tell, void *user,
                            const tarn_vocab_options *options) TARN_CHECKED;

// Checks what SentencePiece itself trusts: that the bytes are well-formed protocol buffers, and that the normaliser's
// compiled table of characters, a double-array trie, points nowhere outside itself.
tarn_status tarn__spm_check(const void *bytes, size_t size) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
