// Inside of the decoder: its state, and the choosing of next tokens, which decoder_next.c does.
#ifndef TARN_DECODE_DECODER_STATE_H
#define TARN_DECODE_DECODER_STATE_H

#include "base/memory.h"
#include "decode/caches.h"
#include "decode/decoder.h"
#include "decode/id_list.h"
#include "decode/processors.h"
#include "decode/workspace.h"

// A slot for an active item.
typedef struct tarn__slot {
  tarn__decoder *owner;
  tarn__beam beam;
  tarn__item item;
  bool open;           // of a feed: it has not been told that the item is done
  int32_t source_row;  // first row in the caches of the source
  int64_t read;        // tokens of its beginning already in the caches
  int32_t reader;      // slot that also reads the prompt for this one; -1: none, or done
  // In the current step.
  int64_t first_row, rows;
  int64_t first_top;     // of its hypotheses among those that need a next token; -1: the beginning is not complete
  int64_t first_choice;  // the same among the continuations to choose from
} tarn__slot;

// The earlier tokens seen by one group of layers (model.h).
typedef struct tarn__sight {
  int64_t most;  // rows that a token sees, including its own; INT64_MAX: all of its hypothesis; 0: no such layer
  tarn__caches caches;
  tarn__id_list past;     // cache rows of each hypothesis before the step, concatenated
  tarn__id_list history;  // [history_count] the same including its new rows
  tarn__id_list ranges;   // [rows][2]
  int64_t history_count;
} tarn__sight;

struct tarn__decoder {
  tarn__decoder_options options;
  const tarn__model *model;
  int threads, place;           // place: among the decoders that share a feed
  tarn__device_stream *stream;  // of the model's device: decoders run in parallel
  tarn__decoder_stats stats;
  tarn__region region;  // source of the large blocks of memory
  tarn__arena results;  // memory of the results

  tarn__slot *slots;  // [most]
  int32_t *order;     // [most] slots; the first `active` are in use, their hypotheses follow each other in this order
  int64_t most, active, source_tokens;  // source_tokens: of the active items
  int64_t width, most_rows;             // hypotheses of the active items at most, and of all that may be active
  bool sequential;                      // one token of a hypothesis per step

  // Sentences that are encoded together, and the keys and values of the encoder's output for all active sentences.
  tarn__graph encode;
  tarn__workspace encode_workspace;
  tarn__id_list source_ids, source_positions, source_offsets, seen;
  tarn__tensor **cross;  // [decoder layers]
  tarn__caches source;

  // A step.
  tarn__graph step;
  tarn__workspace step_workspace;
  tarn__sight sights[TARN__SIGHTS];
  void **self_cache;  // [decoder layers], in the caches of the layer's group
  int64_t rows, longest, positions_end;
  tarn__id_list ids, positions;  // [rows]
  tarn__id_list source_range;    // [rows][2]
  tarn__id_list begin;           // the ids of a beginning
  tarn__id_list predicted;       // [predicted_count] rows that need a next token
  int64_t predicted_count;
  // The results of the step, for the host (model.h: tarn__model_build_step()).
  int32_t *top_ids;
  float *top_values, *top_own;
  // The likeliest tokens of each row that needs a next one, before any processor changes them,
  // [predicted_count][tops_count], and their values, of which a row has one more.
  int32_t *tops_ids;
  float *tops_values;
  int64_t tops_count;
  // The tokens that phrases want of each of these rows, [predicted_count][wanted_count], and their values in the step,
  // of which a row has one more.
  tarn__id_list wanted;
  int64_t wanted_count;
  float *wanted_values, *wanted_own;
  // What the processors change, and the tokens that they look at.
  tarn__logit_edits edits;
  tarn__id_list so_far, row_numbers;
  tarn__continuation continuation;  // scratch of stops
  // Sampling: the draws requested and made, in the layout of the best continuations.
  tarn__sample_spec draw_spec;
  tarn__id_list draws, drawn_ids;
  int64_t draw_count;
  float *drawn_values;
  size_t drawn_capacity;
};

bool tarn__decoder_translates(const tarn__decoder *d);

// The options of an item: its own, or the decoder's.
static inline const tarn__beam_options *tarn__slot_search(const tarn__decoder *d, const tarn__slot *s) {
  return s->item.own ? &s->item.own->search : &d->options.search;
}
static inline const tarn__sampling *tarn__slot_sampling(const tarn__decoder *d, const tarn__slot *s) {
  return s->item.own ? &s->item.own->sampling : d->options.sampling;
}
static inline const tarn__processing *tarn__slot_processing(const tarn__decoder *d, const tarn__slot *s) {
  return s->item.own ? s->item.own->processing : d->options.processing;
}
static inline const tarn__stops *tarn__slot_stops(const tarn__decoder *d, const tarn__slot *s) {
  return s->item.own ? s->item.own->stops : d->options.stops;
}

// Whether a step with an item needs the logits of all its rows in memory; and the rows of such a step, at most.
bool tarn__next_whole(const tarn__decoder *d, const tarn__item *item);
int64_t tarn__next_fit(const tarn__decoder *d);

// Before a step, whose rows are known: what the processors change, and the tokens that are to be drawn. Then what the
// step has to find for the next tokens.
tarn_status tarn__next_prepare(tarn__decoder *d) TARN_CHECKED;
void tarn__next_request(const tarn__decoder *d, tarn__model_step *step);
// Prepares the search of a new item, whose tokens are told to its listener.
void tarn__next_begin(tarn__decoder *d, tarn__slot *s);
tarn_status tarn__next_tell(const tarn__decoder *d, const tarn__slot *s, const tarn__listener *listener) TARN_CHECKED;
// After the step.
tarn_status tarn__next_read(tarn__decoder *d, const tarn__next *next) TARN_CHECKED;

// The choices of all searches, in the layout of the one that needs most of them.
// Gives the search of a slot, which has phrases, what the step says of the tokens that they want.
void tarn__next_want(const tarn__decoder *d, tarn__slot *s);
tarn_status tarn__next_choices(tarn__decoder *d, tarn__beam_rows *out) TARN_CHECKED;

#endif
