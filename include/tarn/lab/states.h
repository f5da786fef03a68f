// What a model computes inside for given texts, token by token: layer outputs, attention weights, gates and states of
// recurrent layers, predictions of the output layer.
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
// Names: S is encoder or decoder, whichever the model has, and N the number of a layer, from 1, in the order of the
// description's pattern:
//   S.0                  the embeddings, with positions, as they enter the first layer
//   S.N                  the residual stream after layer N, with the outputs of all its sublayers added
//   S                    the output of the stack: after its last layer and its final norm, if it has one
//   S.N.attention        weights of self-attention, after the softmax
//   S.N.cross_attention  in a decoder that has an encoder: weights of attention to the encoder's output
//   S.N.states           recurrent layers and echo state networks: the states of the units, before the projection that
//                        follows them; bidirectional: the forward states, then the reverse ones
//   S.N.cells            LSTM: the cell states
//   S.N.gates            r, z, n of a GRU and i, f, g, o of an LSTM, after their activation functions (bidirectional:
//                        all of one direction, then of the other); convolutions: the gates of the gated linear unit
//   S.N.kernel           dynamic convolutions: the kernel of each head, after the softmax
//   S.N.hidden           the hidden layer of a feed-forward network, after the activation or the gate
//   output               logits of words or classes, not normalised; for regression, the number
//   output.log_probabilities, output.topK, output.topK.ids
//                        log-probabilities of all words or classes; those of the K likeliest, and their ids, by
//                        falling probability; K is a number, and output.topK brings output.topK.ids with it
//   output.input         what the output layer reads: the output of the head, where the model has one
// In a name that is asked for, * stands for any characters and ? for one; all names that match are selected, except
// those of the K likeliest.
//
// A model is used by one thread at a time; it computes with the pool of threads of the process, whose size it sets.
#ifndef TARN_LAB_STATES_H
#define TARN_LAB_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

// Is told after every batch how many of all tokens have been computed; anything but TARN_STATUS_OK stops the work and
// is returned. It is meant for stopping the work; for showing progress there is tarn/process.h.
typedef tarn_status (*tarn_states_progress)(void *user, int64_t done, int64_t total);

typedef struct tarn_states_options {
  tarn_translate_precision precision;  // default auto. Results are in fp32 whatever it is
  tarn_translate_overlong overlong;    // a line of more tokens than model.max_length is truncated, or refused with
                                       // DATA; default: refuse. Language models with model.positions none, alibi or t5
                                       // have no limit
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

// Opens a checkpoint, or the one that tarn_checkpoint_find() chooses in a run directory (tarn/checkpoint.h). Nothing is
// selected. Fails with USAGE (options), IO, DATA (a damaged checkpoint), or MEMORY.
TARN_API tarn_status tarn_states_open(tarn_states **states, const char *path,
                                      const tarn_states_options *options) TARN_CHECKED;
// The same with the model of an open translator, as it is in memory: no file is read, and nothing is held twice. The
// translator's precision and threads hold in place of those in the options. It must stay open until the states are
// closed, and only one of the two may be at work at a time. Fails with USAGE or MEMORY.
TARN_API tarn_status tarn_states_open_translator(tarn_states **states, tarn_translator *translator,
                                                 const tarn_states_options *options) TARN_CHECKED;
TARN_API void tarn_states_close(tarn_states **states);

// The file that was opened; valid until close.
TARN_API const char *tarn_states_path(const tarn_states *states);

// What a token or a sentence belongs to. For models that read one text, it is the source.
typedef enum tarn_states_side {
  TARN_STATES_SIDE_SOURCE,
  TARN_STATES_SIDE_TARGET,
  TARN_STATES_SIDE_COUNT
} tarn_states_side;
// How many sides the model reads: translation models 2, others 1.
TARN_API int tarn_states_sides(const tarn_states *states);

typedef enum tarn_states_type { TARN_STATES_TYPE_F32, TARN_STATES_TYPE_I32 } tarn_states_type;

// The shape of a sentence's numbers, row-major: a row for every token of `side`, [tokens, width]; one row, [width]; or
// a matrix for every head, [width heads, tokens of `side`, tokens of `key_side`], in which row i says how much token i
// attends to each token j. Rows sum to 1; tokens that token i cannot see get 0.
typedef enum tarn_states_form {
  TARN_STATES_FORM_TOKENS,
  TARN_STATES_FORM_SENTENCE,
  TARN_STATES_FORM_ATTENTION
} tarn_states_form;

// One array of results. Sentences follow one another in the order of the lines.
typedef struct tarn_states_array {
  const char *name;  // as above
  const char *text;  // what it is, for people to read; a static string
  tarn_states_type type;
  tarn_states_form form;
  tarn_states_side side, key_side;
  int64_t width;  // 0 of what is offered as output.topK
} tarn_states_array;

// What the model offers, in the order of its layers. Valid until close.
TARN_API const tarn_states_array *tarn_states_offered(const tarn_states *states, size_t *count);

// Selects by name what is to be computed, in place of an earlier selection; a repeated name counts once. Fails with
// USAGE for a name that the model does not offer; the message suggests the nearest one.
TARN_API tarn_status tarn_states_select(tarn_states *states, const char *const *names, size_t count) TARN_CHECKED;
// What is selected; valid until the next selection.
TARN_API const tarn_states_array *tarn_states_selected(const tarn_states *states, size_t *count);

// Takes the sentences to be computed, in place of earlier ones: `count` lines of lengths[i] bytes, and for a
// translation model their translations; if targets is NULL, only what the encoder computes is available. The model
// reads: of a source, its tokens and the end of sentence; of a target, and of the text of a language model, the end of
// sentence (or model.decoder_start) and then the tokens, so that a row predicts the token after it; in masked models
// and classifiers, the token that begins a row, if there is one, the tokens, and the end of sentence, and two sentences
// if a tab separates them and the model knows pairs. Fails with DATA (a line without tokens, if the model cannot read
// one; lines that `strict` or `overlong` refuse), USAGE (targets for a model that reads one text) or MEMORY.
TARN_API tarn_status tarn_states_encode(tarn_states *states, const char *const *lines, const size_t *lengths,
                                        const char *const *targets, const size_t *target_lengths,
                                        size_t count) TARN_CHECKED;
// The same for the lines of text files, pipes or devices ("-": standard input). Fails also with IO, and with DATA if a
// file is not text or the two have different numbers of lines. Only the tokens of the text are kept, 4 bytes each.
TARN_API tarn_status tarn_states_encode_file(tarn_states *states, const char *path,
                                             const char *target_path) TARN_CHECKED;

// Counts of what was read.
typedef struct tarn_states_summary {
  int64_t sentences;
  int64_t tokens[TARN_STATES_SIDE_COUNT];
  int64_t truncated, replaced;  // lines of either side that were shortened; in which invalid UTF-8 was replaced
  int64_t unknown;              // tokens of both sides that are not in the vocabulary
} tarn_states_summary;
TARN_API void tarn_states_get_summary(const tarn_states *states, tarn_states_summary *summary);

// The tokens that the model reads on a side: ids [tokens], and offsets [sentences + 1], where each sentence begins.
// NULL for a side that was not given. Valid until the next sentences are taken.
TARN_API const int32_t *tarn_states_ids(const tarn_states *states, tarn_states_side side);
TARN_API const int64_t *tarn_states_offsets(const tarn_states *states, tarn_states_side side);
// The text of a token of a side ("" for an id that is not one), valid until close.
TARN_API const char *tarn_states_piece(const tarn_states *states, tarn_states_side side, int32_t id);

// The index of the number in selected array `array` at which sentence `sentence` begins; for `sentence` equal to the
// number of sentences, the length of the array. -1 if the array cannot be computed because there are no targets.
TARN_API int64_t tarn_states_place(const tarn_states *states, size_t array, int64_t sentence);
// The same for all sentences, and the length of the array at the end: places [sentences + 1].
TARN_API void tarn_states_places(const tarn_states *states, size_t array, int64_t *places);

// Computes the selected arrays for all sentences into the caller's memory: buffers[a], float or int32_t, has room for
// all numbers of array a; NULL: this array is not wanted. Nothing else of that size is held in memory. The numbers of a
// sentence do not depend on which sentences are computed together with it. Fails with USAGE (targets are missing,
// max_result), MEMORY, NUMERIC (a result is not a finite number), or what `progress` returns.
TARN_API tarn_status tarn_states_compute(tarn_states *states, void *const *buffers) TARN_CHECKED;

// Receives the numbers of a sentence, counted from 0: values[a] for array a, valid during the call. Anything but
// TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_states_sink)(void *user, int64_t sentence, const void *const *values);
// The same, but gives the results to `sink`, sentence by sentence in order: only one batch of them is held in memory.
TARN_API tarn_status tarn_states_each(tarn_states *states, tarn_states_sink sink, void *user) TARN_CHECKED;

// Files of results. They have one array under each selected name, over all sentences, of shape [tokens, width] or
// [sentences, width]; attention weights are stored flat, in the order of TARN_STATES_FORM_ATTENTION, with NAME.offsets,
// I64 [sentences + 1], the index of the number at which each sentence begins. With them come the tokens that the model
// reads, I32, and the index of the token at which each sentence begins, I64 [sentences + 1]: "tokens" and "offsets",
// or for a translation model "source.tokens", "source.offsets", and with targets "target.tokens" and "target.offsets".
typedef enum tarn_states_format {
  TARN_STATES_FORMAT_SAFETENSORS,  // one file; for attention weights its metadata has "NAME.heads"
  TARN_STATES_FORMAT_NPY           // a folder, which is made if need be, with a file NAME.npy for each array; a folder
                                   // that holds other .npy files is refused with IO
} tarn_states_format;

// Computes the selected arrays and writes them batch by batch: only one batch of results is held in memory. An existing
// file is replaced when everything is written, or stays as it was. Fails like tarn_states_compute(), and with IO.
TARN_API tarn_status tarn_states_write(tarn_states *states, const char *path, tarn_states_format format) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
