// Translation by iterations over whole sentences: the common part of its methods (mask_engine.c, edit_engine.c), for a
// decoder that is not causal. Nothing of the target is cached.
//
// Sentences are taken from the queue in groups. A group is encoded once, with the keys and values of the
// cross-attention of every decoder layer. Then its target sentences, one or several for each source sentence, go
// through the decoder as often as the method wants, in chunks: their lengths are known only now, and all of them
// together may be far longer than the group. A method is an engine (engine.h) whose `run` is
//
//   for (;;) {
//     tarn__refiner_take(r, queue, candidates);  r->count is 0: done
//     states = tarn__refiner_encode(r);          it may append outputs to r->encode
//     tarn__refiner_encoded(r);                  and read them with tarn__graph_result(&r->encode, ...)
//     for (each chunk of target sentences, up to tarn__refiner_chunk()) {
//       tarn__refiner_lay(r, ...);               fills in r->ids
//       for (each iteration) {
//         states = tarn__refiner_step(r);        it appends outputs to r->step (tarn__model_build_top())
//         tarn__refiner_stepped(r);              and reads them with tarn__graph_result(&r->step, ...)
//       }
//     }
//     tarn__refiner_keep(r, &results[r->items[s].index], ...);  for each sentence
//     tarn__refiner_finish(r, queue);
//   }
//
// The rows of a target sentence are what the decoder of the task reads of it, from position 0.
#ifndef TARN_DECODE_REFINE_H
#define TARN_DECODE_REFINE_H

#include "decode/engine.h"
#include "decode/id_list.h"
#include "decode/workspace.h"

// Zero-initialise, or open.
typedef struct tarn__refiner {
  tarn__decoder_options options;
  const tarn__model *model;
  int threads;
  tarn__device_stream *stream;  // of the model's device: decoders run in parallel
  tarn__decoder_stats stats;
  tarn__region region;  // source of the workspaces
  tarn__arena results;  // memory of the results

  // The group.
  tarn__item *items;  // [count]
  int64_t count, room;
  tarn__packed source;  // of its sentences
  tarn__graph encode;   // its results and kept tensors stay until the next group
  // A chunk of target sentences, in the order of the sentences that they translate.
  tarn__packed target;
  int32_t *ids;  // [target.rows] the method's input
  tarn__graph step;

  // Memory of these, and of the graphs.
  tarn__id_list source_ids, source_positions, source_offsets, target_ids, target_positions, target_offsets, readers;
  tarn__workspace encode_workspace, step_workspace;
  tarn__tensor **cross;       // [decoder layers], of `encode`
  void **cross_cache;         // [decoder layers]
  double begin, group_begin;  // when building a graph, and processing the group, began
} tarn__refiner;

// Checks the options that all methods share, and that there are none of a search by tokens. `use` completes "the
// vocabulary of the target has no <mask>, ...". Fails with USAGE.
tarn_status tarn__refiner_check(const tarn__translator_options *options, const char *use) TARN_CHECKED;
// Uses `threads` threads. After a failure too, tarn__refiner_close() frees all memory.
tarn_status tarn__refiner_open(tarn__refiner *r, const tarn__model *model, const tarn__decoder_options *options,
                               int threads) TARN_CHECKED;
void tarn__refiner_close(tarn__refiner *r);
// As for an engine.
void tarn__refiner_lend(tarn__refiner *r, void *memory, size_t bytes);
void tarn__refiner_add_stats(const tarn__refiner *r, tarn__decoder_stats *stats);
// For sentences with `candidates` target sentences each, which may be as long as the model permits.
tarn_status tarn__refiner_plan(size_t *bytes, const tarn__model *model, const tarn__translator_options *options,
                               int64_t candidates, double length, int64_t sentences) TARN_CHECKED;

// Call it first in a run: waits until the model's weights and lent memory are written.
tarn_status tarn__refiner_begin(tarn__refiner *r) TARN_CHECKED;
// Takes the next group: as many sentences as fill about TARN__DECODER_ROWS rows of the decoder if each has `candidates`
// target sentences of its own length, within max_tokens and the queue's share; at least one, unless the queue is empty.
tarn_status tarn__refiner_take(tarn__refiner *r, tarn__queue *queue, int64_t candidates) TARN_CHECKED;

// Begins the graph that encodes the group, and returns the encoder's output [source.rows, d_model]; runs it.
tarn__tensor *tarn__refiner_encode(tarn__refiner *r);
tarn_status tarn__refiner_encoded(tarn__refiner *r) TARN_CHECKED;

// The target sentences of a group: those of source sentence s have numbers first[s] .. first[s + 1] - 1, first [count +
// 1], and number i has lengths[i] rows, 1 or more. The end of a chunk that begins at number `begin`: as many as have
// TARN__DECODER_ROWS rows together, at least one.
int64_t tarn__refiner_chunk(const tarn__refiner *r, const int32_t *lengths, const int32_t *first, int64_t begin);
// Lays out those from `begin` to `end` - 1: sets r->target, and r->ids, without values.
tarn_status tarn__refiner_lay(tarn__refiner *r, const int32_t *lengths, const int32_t *first, int64_t begin,
                              int64_t end) TARN_CHECKED;

// Begins the graph of the decoder over r->ids, and returns its output [target.rows, d_model]; runs it.
tarn__tensor *tarn__refiner_step(tarn__refiner *r);
tarn_status tarn__refiner_stepped(tarn__refiner *r) TARN_CHECKED;

// A translation of one sentence: ids and their log-probabilities [length], without the end of sentence.
typedef struct tarn__refined {
  const int32_t *ids;
  const float *log_probabilities;
  int64_t length;
  double score;
} tarn__refined;

// Copies the translations of a sentence, best first, to a result. Each gets an end of sentence of log-probability 0.
tarn_status tarn__refiner_keep(tarn__refiner *r, tarn__translation *result, const tarn__refined *best,
                               int64_t count) TARN_CHECKED;
// Ends a group.
tarn_status tarn__refiner_finish(tarn__refiner *r, tarn__queue *queue) TARN_CHECKED;

#endif
