// The internal states of a model for given texts, token by token: layer outputs, attention weights, gates and states of
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
// Names: S is encoder or decoder, if the model has it, and N the number of a layer, from 1, in the order of the
// description's pattern:
//   S.0                  the embeddings, with positions: the input of the first layer
//   S.N                  the residual stream after layer N, with the outputs of all its sublayers added
//   S                    the output of the stack: after its last layer and its final norm, if it has one
//   S.N.attention        weights of self-attention, after the softmax
//   S.N.cross_attention  in a decoder with an encoder: weights of attention to the encoder's output
//   S.N.states           recurrent layers and echo state networks: the states of the units, before the following
//                        projection; bidirectional: the forward states, then the reverse ones
//   S.N.cells            LSTM: the cell states
//   S.N.gates            r, z, n of a GRU and i, f, g, o of an LSTM, after their activation functions (bidirectional:
//                        all of one direction, then of the other); convolutions: the gates of the gated linear unit
//   S.N.kernel           dynamic convolutions: the kernel of each head, after the softmax
//   S.N.hidden           the hidden layer of a feed-forward network, after the activation or the gate
//   output               logits of words or classes, not normalised; for regression, the number
//   output.log_probabilities, output.topK, output.topK.ids
//                        log-probabilities of all words or classes; those of the K most likely, and their ids, by
//                        decreasing probability; K is a number, and output.topK implies output.topK.ids
//   output.input         the input of the output layer: the output of the head, if the model has one
// In a selection, * stands for any characters and ? for one; all matching names are selected, except those of the K
// most likely.
//
// A model is used by one thread at a time. It computes with the process's thread pool, whose size it sets.
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

// Called after every batch with the tokens done and their total; any status but TARN_STATUS_OK stops the work and is
// returned. Meant for stopping; tarn/process.h reports progress for display.
typedef tarn_status (*tarn_states_progress)(void *user, int64_t done, int64_t total);

typedef struct tarn_states_options {
  tarn_translate_precision precision;  // default auto. Results are always in fp32
  tarn_translate_overlong overlong;    // a line of more tokens than model.max_length is truncated, or refused with
                                       // DATA; default: refuse. Language models with model.positions none, alibi or t5
                                       // have no limit
  int64_t max_tokens;                  // tokens of a side computed together, 1 .. 2^24; a longer line is computed
                                       // alone; default 4096
  size_t max_memory;                   // bytes for a batch, in addition to the model and the results: batches shrink if
                                       // necessary, and a single line that needs more is refused with MEMORY; 0: no
                                       // limit. Default 1e9
  size_t max_result;                   // bytes of all results together; a larger need is refused with USAGE before any
                                       // computation; 0: no limit. Default 8e9
  bool strict;                         // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;                         // 0: all available to the process; default 0
  tarn_states_progress progress;       // default NULL: none
  void *user;                          // of `progress`
} tarn_states_options;

TARN_API void tarn_states_default(tarn_states_options *options);

typedef struct tarn_states tarn_states;

// Opens a checkpoint, or the one chosen by tarn_checkpoint_find() in a run directory (tarn/checkpoint.h). Nothing is
// selected. Fails with USAGE (options), IO, DATA (a damaged checkpoint) or MEMORY.
TARN_API tarn_status tarn_states_open(tarn_states **states, const char *path,
                                      const tarn_states_options *options) TARN_CHECKED;
// The same with the model of an open translator, in memory: no file is read, and nothing is duplicated. The
// translator's precision and threads apply instead of those in the options. It must stay open until the states are
// closed, and only one of the two may work at a time. Fails with USAGE or MEMORY.
TARN_API tarn_status tarn_states_open_translator(tarn_states **states, tarn_translator *translator,
                                                 const tarn_states_options *options) TARN_CHECKED;
TARN_API void tarn_states_close(tarn_states **states);

// The file that was opened; valid until close.
TARN_API const char *tarn_states_path(const tarn_states *states);

// The side of a token or a sentence. For models that read one text, it is the source.
typedef enum tarn_states_side {
  TARN_STATES_SIDE_SOURCE,
  TARN_STATES_SIDE_TARGET,
  TARN_STATES_SIDE_COUNT
} tarn_states_side;
// Number of sides that the model reads: 2 for translation models, else 1.
TARN_API int tarn_states_sides(const tarn_states *states);

typedef enum tarn_states_type { TARN_STATES_TYPE_F32, TARN_STATES_TYPE_I32 } tarn_states_type;

// The shape of a sentence's numbers, row-major: one row per token of `side`, [tokens, width]; a single row, [width]; or
// one matrix per head, [width heads, tokens of `side`, tokens of `key_side`], whose row i has the attention of token i
// to each token j. Rows sum to 1; tokens not visible to token i have 0.
typedef enum tarn_states_form {
  TARN_STATES_FORM_TOKENS,
  TARN_STATES_FORM_SENTENCE,
  TARN_STATES_FORM_ATTENTION
} tarn_states_form;

// One array of results. Sentences are in the order of the lines.
typedef struct tarn_states_array {
  const char *name;  // as above
  const char *text;  // a description for users; a static string
  tarn_states_type type;
  tarn_states_form form;
  tarn_states_side side, key_side;
  int64_t width;  // 0 for output.topK, whose K is open
} tarn_states_array;

// The arrays that the model offers, in the order of its layers. Valid until close.
TARN_API const tarn_states_array *tarn_states_offered(const tarn_states *states, size_t *count);

// Selects the arrays to compute by name, replacing an earlier selection; a repeated name counts once. Fails with USAGE
// for an unknown name; the message suggests the nearest one.
TARN_API tarn_status tarn_states_select(tarn_states *states, const char *const *names, size_t count) TARN_CHECKED;
// The selected arrays; valid until the next selection.
TARN_API const tarn_states_array *tarn_states_selected(const tarn_states *states, size_t *count);

// Sets the sentences to compute, replacing earlier ones: `count` lines of lengths[i] bytes, and for a translation model
// their translations; if targets is NULL, only the encoder's arrays are available. The model reads: of a source, its
// tokens and the end of sentence; of a target, and of the text of a language model, the end of sentence (or
// model.decoder_start) and then the tokens, so a row predicts the next token; in masked models and classifiers, the
// token that begins a row, if there is one, the tokens, and the end of sentence, and two sentences if a tab separates
// them and the model takes pairs. Fails with DATA (a line without tokens, if the model cannot read one; lines refused
// by `strict` or `overlong`), USAGE (targets for a model that reads one text) or MEMORY.
TARN_API tarn_status tarn_states_encode(tarn_states *states, const char *const *lines, const size_t *lengths,
                                        const char *const *targets, const size_t *target_lengths,
                                        size_t count) TARN_CHECKED;
// The same for the lines of text files, pipes or devices ("-": standard input). Also fails with IO, and with DATA if a
// file is not text or the two have different numbers of lines. Only the tokens of the text are kept, 4 bytes each.
TARN_API tarn_status tarn_states_encode_file(tarn_states *states, const char *path,
                                             const char *target_path) TARN_CHECKED;

// Counts of the input.
typedef struct tarn_states_summary {
  int64_t sentences;
  int64_t tokens[TARN_STATES_SIDE_COUNT];
  int64_t truncated, replaced;  // lines of either side that were truncated; with invalid UTF-8 replaced
  int64_t unknown;              // tokens of both sides not in the vocabulary
} tarn_states_summary;
TARN_API void tarn_states_get_summary(const tarn_states *states, tarn_states_summary *summary);

// The tokens that the model reads on a side: ids [tokens], and offsets [sentences + 1], the start of each sentence.
// NULL for a missing side. Valid until the sentences are replaced.
TARN_API const int32_t *tarn_states_ids(const tarn_states *states, tarn_states_side side);
TARN_API const int64_t *tarn_states_offsets(const tarn_states *states, tarn_states_side side);
// The text of a token of a side ("" for an invalid id), valid until close.
TARN_API const char *tarn_states_piece(const tarn_states *states, tarn_states_side side, int32_t id);

// The offset of sentence `sentence` in selected array `array`, in numbers; for `sentence` equal to the number of
// sentences, the length of the array. -1 if the array cannot be computed because there are no targets.
TARN_API int64_t tarn_states_place(const tarn_states *states, size_t array, int64_t sentence);
// The same for all sentences, with the length of the array at the end: places [sentences + 1].
TARN_API void tarn_states_places(const tarn_states *states, size_t array, int64_t *places);

// Computes the selected arrays for all sentences into the caller's memory: buffers[a], float or int32_t, holds all
// numbers of array a; NULL: skip this array. No other memory of that size is used. The numbers of a sentence do not
// depend on the other sentences of its batch. Fails with USAGE (missing targets, max_result), MEMORY, NUMERIC (a result
// is not finite), or the status of `progress`.
TARN_API tarn_status tarn_states_compute(tarn_states *states, void *const *buffers) TARN_CHECKED;

// Receives the numbers of a sentence, counted from 0: values[a] for array a, valid during the call. Any status but
// TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_states_sink)(void *user, int64_t sentence, const void *const *values);
// The same, but passes the results to `sink`, sentence by sentence in order: only one batch is held in memory.
TARN_API tarn_status tarn_states_each(tarn_states *states, tarn_states_sink sink, void *user) TARN_CHECKED;

// Result files. They have one array for each selected name, over all sentences, of shape [tokens, width] or [sentences,
// width]; attention weights are stored flat, in the order of TARN_STATES_FORM_ATTENTION, with NAME.offsets, I64
// [sentences + 1], the offset of each sentence in numbers. In addition they have the tokens that the model reads, I32,
// and the offset of each sentence in tokens, I64 [sentences + 1]: "tokens" and "offsets", or for a translation model
// "source.tokens", "source.offsets", and with targets "target.tokens" and "target.offsets".
typedef enum tarn_states_format {
  TARN_STATES_FORMAT_SAFETENSORS,  // one file; its metadata has "NAME.heads" for attention weights
  TARN_STATES_FORMAT_NPY           // a folder, created if necessary, with a file NAME.npy for each array; a folder with
                                   // other .npy files is refused with IO
} tarn_states_format;

// Computes the selected arrays and writes them batch by batch: only one batch of results is held in memory. An existing
// file is replaced when everything is written, or stays unchanged. Fails like tarn_states_compute(), and with IO.
TARN_API tarn_status tarn_states_write(tarn_states *states, const char *path, tarn_states_format format) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
