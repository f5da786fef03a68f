// The inside of a model on given texts, token by token: outputs of layers, weights of attention, gates and states of
// recurrences, what the output layer says.
//
//   tarn_states_options options;
//   tarn_states_default(&options);
//   tarn_states *states;
//   status = tarn_states_open(&states, "runs/model2", &options);
//   const char *const names[] = {"encoder.3", "encoder.3.attention"};
//   status = tarn_states_select(states, names, 2);
//   status = tarn_states_encode_file(states, "test.de", NULL);
//   float *buffers[2] = {malloc(sizeof(float) * tarn_states_place(states, 0, sentences)), ...};
//   status = tarn_states_compute(states, (void *const *)buffers);
//   tarn_states_close(&states);
//
// Names, S being encoder or decoder, as the model has them, and N a layer from 1, as in the pattern of the description:
//   S.0                  the embeddings, with positions, as they enter the first layer
//   S.N                  the residual stream behind layer N, every branch of the layer added
//   S                    the output of the stack: behind its last layer and its final norm, if it has one
//   S.N.attention        weights of self-attention, behind their softmax
//   S.N.cross_attention  of a decoder that has an encoder: weights of attention to the encoder's output
//   S.N.states           of recurrences and echo state networks: the states of the units, before the projection that
//                        leads out of the mixer; of two directions those forward, then those in reverse
//   S.N.cells            of LSTM: the cells, which lie behind the gates
//   S.N.gates            of GRU r, z, n and of LSTM i, f, g, o, behind their functions (of two directions all of one,
//                        then of the other); of convolutions the gates of the gated linear unit
//   S.N.kernel           of dynamic convolutions: the kernel of each head, behind its softmax
//   S.N.hidden           of a feed-forward network: what is between its products, behind the activation or the gate
//   output               logits of words or classes, not normalised; of regression the number
//   output.log_probabilities, output.topK, output.topK.ids
//                        of words or classes: log-probabilities of all, and of the K likeliest with their numbers, by
//                        falling probability
//   output.input         what the output layer's table reads: behind the head, where the model has one
// In a name that is asked for, * stands for any characters and ? for one: all names that fit are meant, those of the K
// likeliest excepted.
//
// A model is used by one thread at a time; it computes with the pool of threads of the process, whose size it sets.
#ifndef TARN_STATES_H
#define TARN_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/export.h"
#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

// Is told after every batch how many tokens of all there are have been computed; anything but TARN_STATUS_OK stops the
// work and is returned. It is for whoever may stop the work; what people want to see comes by tarn/progress.h.
typedef tarn_status (*tarn_states_progress)(void *user, int64_t done, int64_t total);

typedef struct tarn_states_options {
  tarn_translate_precision precision;  // default fp32. Results are in fp32 whatever it is
  tarn_translate_overlong overlong;    // a line of more tokens than model.max_length is truncated, or refused with
                                       // DATA; default: refuse. Language models with model.positions none or alibi have
                                       // no limit
  int64_t max_tokens;                  // tokens of a side computed together, 1 .. 2^24; a longer line goes alone;
                                       // default 4096
  size_t max_memory;                   // bytes for what is computed together, beside the model and the results: fewer
                      // tokens go together if need be, and a line that alone needs more is refused with
                      // MEMORY; 0: no limit. Default 1e9
  size_t max_result;              // bytes of all results together; more is refused with USAGE before anything is
                                  // computed; 0: no limit. Default 8e9
  bool strict;                    // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;                    // 0: all that the process may use; default 0
  tarn_states_progress progress;  // NULL: nobody is told; default NULL
  void *user;                     // of `progress`
} tarn_states_options;

TARN_API void tarn_states_default(tarn_states_options *options);

typedef struct tarn_states tarn_states;

// Opens a checkpoint, or the one that tarn_checkpoint_find() takes of a run directory (tarn/checkpoint.h). Nothing is
// selected. Fails with USAGE (options), IO, DATA (a damaged checkpoint), or MEMORY.
TARN_API tarn_status tarn_states_open(tarn_states **states, const char *path,
                                      const tarn_states_options *options) TARN_CHECKED;
TARN_API void tarn_states_close(tarn_states **states);

// The file that was opened; valid until close.
TARN_API const char *tarn_states_path(const tarn_states *states);

// What a token or a sentence belongs to. Of models that read one text, it is the source.
typedef enum tarn_states_side {
  TARN_STATES_SIDE_SOURCE,
  TARN_STATES_SIDE_TARGET,
  TARN_STATES_SIDE_COUNT
} tarn_states_side;
// How many sides the model reads: 2 of translation models, else 1.
TARN_API int tarn_states_sides(const tarn_states *states);

typedef enum tarn_states_type { TARN_STATES_TYPE_F32, TARN_STATES_TYPE_I32 } tarn_states_type;

// What the numbers of a sentence are, row-major: a row for every token of `side`, [tokens, width]; one row, [width]; or
// a matrix for every head, [width heads, tokens of `side`, tokens of `key_side`], whose rows sum to 1: token i attends
// to token j. What a token does not see is 0.
typedef enum tarn_states_form {
  TARN_STATES_FORM_TOKENS,
  TARN_STATES_FORM_SENTENCE,
  TARN_STATES_FORM_ATTENTION
} tarn_states_form;

// One kind of results. Sentences lie one behind the other, in the order of the lines.
typedef struct tarn_states_array {
  const char *name;  // as above
  const char *text;  // what it is, for people; a static string
  tarn_states_type type;
  tarn_states_form form;
  tarn_states_side side, key_side;
  int64_t width;  // 0 of what is offered as output.topK
} tarn_states_array;

// What the model offers, in the order of its layers. Valid until close.
TARN_API const tarn_states_array *tarn_states_offered(const tarn_states *states, size_t *count);

// Selects by name what is to be computed, in place of an earlier selection; names that are there already count once.
// Fails with USAGE for a name that the model does not offer; the message has the nearest one.
TARN_API tarn_status tarn_states_select(tarn_states *states, const char *const *names, size_t count) TARN_CHECKED;
// What is selected; valid until the next selection.
TARN_API const tarn_states_array *tarn_states_selected(const tarn_states *states, size_t *count);

// Takes the sentences that states are wanted of, in place of earlier ones: `count` lines of lengths[i] bytes, and of a
// translation model their translations, or targets NULL: only what the encoder computes can be had. What the model
// reads: of a source its tokens and the end of sentence; of a target, and of the text of a language model, the end of
// sentence (or model.decoder_start) and then the tokens, so that a row predicts the token behind it; of masked models
// and classifiers the token that begins a row, if there is one, the tokens, and the end of sentence, and two sentences
// where a tab separates them and the model knows pairs. Fails with DATA (a line without a token of a model that cannot
// read such a one, what `strict` and `overlong` refuse), USAGE (targets of a model that reads one text) or MEMORY.
TARN_API tarn_status tarn_states_encode(tarn_states *states, const char *const *lines, const size_t *lengths,
                                        const char *const *targets, const size_t *target_lengths,
                                        size_t count) TARN_CHECKED;
// The same of the lines of text files, pipes or devices ("-": standard input). Fails as well with IO, and DATA where a
// file is not text or the two have different numbers of lines. Of the text only its tokens are kept, 4 bytes each.
TARN_API tarn_status tarn_states_encode_file(tarn_states *states, const char *path,
                                             const char *target_path) TARN_CHECKED;

// What became of the lines.
typedef struct tarn_states_summary {
  int64_t sentences;
  int64_t tokens[TARN_STATES_SIDE_COUNT];
  int64_t truncated, replaced;  // lines of either side: shortened; in which invalid UTF-8 was replaced
  int64_t unknown;              // tokens of both sides that are not in the vocabulary
} tarn_states_summary;
TARN_API void tarn_states_get_summary(const tarn_states *states, tarn_states_summary *summary);

// The tokens that the model reads on a side: ids [tokens], and offsets [sentences + 1], where each sentence begins.
// NULL for a side that it was not given. Valid until the next sentences are taken.
TARN_API const int32_t *tarn_states_ids(const tarn_states *states, tarn_states_side side);
TARN_API const int64_t *tarn_states_offsets(const tarn_states *states, tarn_states_side side);
// The text of a token of a side ("" for an id that is none), valid until close.
TARN_API const char *tarn_states_piece(const tarn_states *states, tarn_states_side side, int32_t id);

// The number of selected array `array` at which sentence `sentence` begins; for the number of sentences, how many
// numbers there are in all. -1 where it cannot be had of the sentences: a target is missing.
TARN_API int64_t tarn_states_place(const tarn_states *states, size_t array, int64_t sentence);
// The same of all sentences, and how many numbers there are: places [sentences + 1].
TARN_API void tarn_states_places(const tarn_states *states, size_t array, int64_t *places);

// Computes what is selected of all sentences into memory of the caller: buffers[a], float or int32_t, has room for all
// numbers of array a; NULL: that array is not wanted. Nothing else of that size is held in memory. The numbers of a
// sentence do not depend on what it is computed with. Fails with USAGE (a target is missing, max_result), MEMORY,
// NUMERIC (a result is not a finite number), or what `progress` returns.
TARN_API tarn_status tarn_states_compute(tarn_states *states, void *const *buffers) TARN_CHECKED;

// Receives the numbers of a sentence, from 0: values[a] of array a, valid during the call. Anything but TARN_STATUS_OK
// stops the work and is returned.
typedef tarn_status (*tarn_states_sink)(void *user, int64_t sentence, const void *const *values);
// The same given to `sink`, sentence by sentence in their order: of the results one batch is held in memory.
TARN_API tarn_status tarn_states_each(tarn_states *states, tarn_states_sink sink, void *user) TARN_CHECKED;

// Files of results. They have an array for each that is selected, of its name and shape [tokens, width] or [sentences,
// width], over all sentences; of attention all numbers in one row, as they are told of a sentence, and NAME.offsets,
// I64 [sentences + 1], the number at which each sentence begins. Beside them are the tokens that the model reads, I32,
// and where sentences begin among them, I64 [sentences + 1]: "tokens" and "offsets", or of a translation model
// "source.tokens", "source.offsets", and with targets "target.tokens" and "target.offsets".
typedef enum tarn_states_format {
  TARN_STATES_FORMAT_SAFETENSORS,  // one file; of attention its metadata has "NAME.heads" too
  TARN_STATES_FORMAT_NPY           // a folder, which is made if need be, with a file NAME.npy for each
} tarn_states_format;

// Computes what is selected and writes it batch by batch: of the results one batch is held in memory. A file that is
// there is replaced when all is written, or stays as it was. Fails as tarn_states_compute() does, and with IO.
TARN_API tarn_status tarn_states_write(tarn_states *states, const char *path, tarn_states_format format) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
