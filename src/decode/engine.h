// What a crew runs on each of its threads: a decoder that takes items from a queue until it is empty. The task of the
// model determines which kind of decoder it is (tarn__task.decoding): one that writes a text token by token
// (decoder.h), or one that refines whole sentences (refine.h). This table is all that translation knows of them.
#ifndef TARN_DECODE_ENGINE_H
#define TARN_DECODE_ENGINE_H

#include "decode/translate.h"

typedef struct tarn__engine {
  // Fails with USAGE if options of translation that concern this kind alone are out of range.
  tarn_status (*check)(const tarn__translator_options *options) TARN_CHECKED;
  // As tarn__decoder_open() and the functions after it; *own NULL: failed, or closed.
  tarn_status (*open)(void **own, const tarn__model *model, const tarn__decoder_options *options,
                      int threads) TARN_CHECKED;
  void (*close)(void **own);
  void (*lend)(void *own, void *memory, size_t bytes);
  void (*reset)(void *own);
  tarn_status (*run)(void *own, tarn__queue *queue, tarn__translation *results) TARN_CHECKED;
  void (*add_stats)(const void *own, tarn__decoder_stats *stats);
  // Rows of a step that an item of so many tokens takes.
  int64_t (*rows)(const tarn__decoder_options *options, int64_t length);
  // Bytes of the workspaces and caches of one decoder with one thread, for `sentences` sentences of `length` tokens at
  // most at a time (tarn__translator_plan()).
  tarn_status (*plan)(size_t *bytes, const tarn__model *model, const tarn__translator_options *options, double length,
                      int64_t sentences) TARN_CHECKED;
} tarn__engine;

extern const tarn__engine tarn__token_engine, tarn__mask_engine, tarn__edit_engine;

// The engine of a description's models.
const tarn__engine *tarn__engine_of(const tarn_config *config);

// For plans: the workspace of a graph that encodes `rows` tokens of `sentences` sentences, and what is allocated for a
// workspace of so many bytes.
tarn_status tarn__engine_plan_encode(size_t *bytes, const tarn__model *model, int64_t sentences,
                                     int64_t rows) TARN_CHECKED;
static inline size_t tarn__engine_room(size_t bytes) { return bytes + bytes / 4; }

#endif
