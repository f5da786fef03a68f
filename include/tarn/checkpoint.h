// Checkpoints as files (docs/checkpoint-format.md): looking into them, averaging them, and writing everything out for
// other tools. Models of other programs are in tarn/lab/foreign.h.
//
// Wherever a checkpoint is expected, a run directory will do: tarn_checkpoint_find() says which of its files stands
// for it.
#ifndef TARN_CHECKPOINT_H
#define TARN_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/status.h"
#include "tarn/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

// Which checkpoint of a run directory is meant.
typedef enum tarn_checkpoint_choice {
  // The one that validated best by valid.metric: the best checkpoint, or the average where its own validation, which
  // the log has, is better. An average that was not validated is not taken where there is a best checkpoint. Without a
  // best checkpoint the average if there is one, else the last.
  TARN_CHECKPOINT_CHOICE_AUTO,
  TARN_CHECKPOINT_CHOICE_BEST,     // checkpoint_best.safetensors
  TARN_CHECKPOINT_CHOICE_LAST,     // checkpoint_last.safetensors
  TARN_CHECKPOINT_CHOICE_AVERAGE,  // checkpoint_average.safetensors
  TARN_CHECKPOINT_CHOICE_COUNT
} tarn_checkpoint_choice;

// "auto", "best", "last", "average"; NULL for another value.
TARN_API const char *tarn_checkpoint_choice_name(tarn_checkpoint_choice choice);

// A checkpoint of a run directory. Zero-initialise or find.
typedef struct tarn_checkpoint_found {
  char *path;        // of the file; the caller's until close
  bool in_run;       // true: a run directory was given; false: a file, which is `path`
  char reason[160];  // in_run: why it is this one, "BLEU 4.35 in validation, the average 2.99"; "" for other choices
                     // than AUTO
} tarn_checkpoint_found;

// The file that is read when `path`, a file or a run directory, is given. Fails with USAGE where a choice other
// than AUTO is made for a file, IO where it is made of nothing (AUTO leaves that to whoever reads the file), DATA (a
// folder without checkpoints, or without the one that is wanted: the line names those that are there), IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_find(tarn_checkpoint_found *found, const char *path,
                                          tarn_checkpoint_choice choice) TARN_CHECKED;
TARN_API void tarn_checkpoint_found_close(tarn_checkpoint_found *found);

// One parameter of a model.
typedef struct tarn_checkpoint_param {
  const char *name;      // "encoder.R1.self_attn.qkv.weight"
  int64_t rows, cols;    // a weight of a linear layer is (outputs, inputs); a vector has one row
  bool trained;          // false: frozen
  int uses;              // places of the model that use it; more than 1: shared
  const char *places;    // which: "encoder layer 1 3 5 7", "source target output"
  int64_t stored_bytes;  // of its values in the file; 0 for a frozen parameter that is computed again
  const char *recipe;    // what a frozen parameter is computed from; NULL: its values are stored
} tarn_checkpoint_param;

// What a file says. Everything belongs to it and lives until close.
typedef struct tarn_checkpoint_info {
  const char *path;                     // the file that was read
  const char *model, *config;           // YAML: the model's description, and all of the configuration
  const char *kind;                     // "model", "training" (with the optimiser's state), "average" or "dense"
  const char *averaged;                 // updates of the checkpoints that were averaged, or NULL
  int64_t update;                       // optimiser steps that made it
  uint64_t seed;                        // of the frozen weights
  int64_t source_vocab, target_vocab;   // tokens
  bool joint_vocab;                     // one vocabulary for both sides
  const tarn_checkpoint_param *params;  // in the order of the model
  size_t param_count;
  int64_t trained, frozen;              // parameters, each set once
  int64_t shared_uses;                  // parameters that sharing saves: sum over sets of (uses - 1) * size
  int64_t shared_layers;                // those of layers; the others are of embeddings and the output layer
  int64_t trained_bytes, frozen_bytes;  // of values in the file
  int64_t optimiser_bytes, vocab_bytes;
  int64_t file_bytes;  // all of the file, header included
  struct tarn__checkpoint_info_memory *memory;
  const char *precision;  // what matrices are stored in: "fp32", "bf16" or "int8" where some are, else "fp32"
} tarn_checkpoint_info;

// Reads and checks a file or a run directory's; frozen values are not computed. Fails with DATA, IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_info_open(tarn_checkpoint_info **info, const char *path) TARN_CHECKED;
TARN_API void tarn_checkpoint_info_close(tarn_checkpoint_info **info);

// Values of a parameter: `param` is its index in info->params, and the numbers are [rows, cols], row-major, in fp32.
//
// mapped: where they lie in the file, which stays mapped until close, so that nothing is copied; they must not be
// written to, and tarn/process.h says what happens if the file is cut off meanwhile. NULL for a parameter that is not
// stored in fp32, for one that is computed from its recipe, for one whose place in a file of another tool is not a
// multiple of four bytes, and for an index that is none.
TARN_API const float *tarn_checkpoint_info_mapped(const tarn_checkpoint_info *info, size_t param);
// values: the same for every parameter, in the caller's memory of rows * cols numbers. Frozen ones are drawn from their
// recipe and checked against its hash, as opening the model does; bf16 is widened, and INT8 multiplied by its scales.
// Fails with USAGE (an index that is none), DATA (values that do not have the recipe's hash; more operations than
// tarn/process.h allows), IO (the file changed), MEMORY or NUMERIC (of a reservoir's spectral radius).
TARN_API tarn_status tarn_checkpoint_info_values(const tarn_checkpoint_info *info, size_t param,
                                                 float *values) TARN_CHECKED;

// The vocabularies that a checkpoint, or that of a run directory, contains, for the caller to close; *target is NULL if
// one serves both sides. Fails with DATA, IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_vocabs(tarn_vocab **source, tarn_vocab **target, const char *path) TARN_CHECKED;

// Writes the mean of the trained parameters of `count` checkpoints of one training, as a checkpoint without the
// optimiser's state. Fails with USAGE (no path), DATA unless their descriptions, vocabularies and frozen weights are
// the same, IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_average(const char *output, const char *const *paths, size_t count) TARN_CHECKED;

// Layers to leave out of a trained model, which works best if it was trained with LayerDrop (Fan, Grave and Joulin
// 2020, section 3.2). Zero-initialise for a whole model.
typedef struct tarn_prune {
  // Depths from 1 with commas between them, such as "1,3,5" (fairseq's encoder_layers_to_keep, which counts from 0).
  // NULL: all, or what `rate` leaves.
  const char *encoder_layers_to_keep, *decoder_layers_to_keep;
  // The paper's "every other": of a stack without a list, layers at depths d with d mod floor(1 / rate) = 0 are left
  // out. 0 <= rate <= 0.5; 0: none.
  double rate;
} tarn_prune;

// Writes the checkpoint of a pruned model, without the optimiser's state. Its description has encoder.layers_to_keep or
// decoder.layers_to_keep, and its parameters keep their names. Fails with USAGE for layers that the model does not
// have.
TARN_API tarn_status tarn_checkpoint_prune(const char *output, const char *path, const tarn_prune *prune) TARN_CHECKED;

// Writes a checkpoint in which every parameter is stored in fp32, the frozen ones too, for tools that read safetensors.
// tarn reads it as well. Fails with DATA, IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_export(const char *output, const char *path) TARN_CHECKED;

// Writes a checkpoint of about half the size, whose matrices are stored in bfloat16, rounded as they are for computing
// in bf16: there it gives the same bits as the checkpoint at `path`. Other parameters are stored in fp32, frozen
// weights as they were (a seed; of a dense file like the others). It cannot be averaged. Fails with DATA, IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_export_bf16(const char *output, const char *path) TARN_CHECKED;

// Writes a translation model of about a quarter of the size, whose matrices are stored as 8-bit integers with a scale
// for each row, rounded as they are for computing in int8, the only arithmetic in which it can be used: there it gives
// the same bits as the checkpoint at `path`. Other parameters are stored in fp32, frozen weights as they were (a seed;
// of a dense file like the others). It can be used, but neither trained nor averaged nor exported. Fails with USAGE for
// a model of another task, UNSUPPORTED on a device without products of int8, DATA (also for weights that are not
// finite), IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_export_int8(const char *output, const char *path) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
