// Checkpoint files (docs/checkpoint-format.md): inspection, averaging, pruning, and export for other tools. Models of
// other programs are in tarn/lab/foreign.h.
//
// A run directory may be given wherever a checkpoint is expected; tarn_checkpoint_find() chooses one of its files.
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

// Which checkpoint of a run directory to use.
typedef enum tarn_checkpoint_choice {
  // The one with the best validation by valid.metric: the best checkpoint, or the average if its own validation in the
  // log is better. If there is a best checkpoint, an average without a validation is not used. Without a best
  // checkpoint: the average if it exists, else the last.
  TARN_CHECKPOINT_CHOICE_AUTO,
  TARN_CHECKPOINT_CHOICE_BEST,     // checkpoint_best.safetensors
  TARN_CHECKPOINT_CHOICE_LAST,     // checkpoint_last.safetensors
  TARN_CHECKPOINT_CHOICE_AVERAGE,  // checkpoint_average.safetensors
  TARN_CHECKPOINT_CHOICE_COUNT
} tarn_checkpoint_choice;

// "auto", "best", "last", "average"; NULL for another value.
TARN_API const char *tarn_checkpoint_choice_name(tarn_checkpoint_choice choice);

// A checkpoint of a run directory. Zero-initialise it or pass it to tarn_checkpoint_find().
typedef struct tarn_checkpoint_found {
  char *path;        // of the file; owned by the caller until close
  bool in_run;       // true: a run directory was given; false: a file, `path`
  char reason[160];  // in_run: the reason for the choice, "BLEU 4.35 in validation, the average 2.99"; "" unless AUTO
} tarn_checkpoint_found;

// Finds the file to read for `path`, a file or a run directory. Fails with USAGE (`path` is a file and the choice is
// not AUTO), IO (`path` does not exist and the choice is not AUTO; with AUTO the reader of the file reports that), DATA
// (a folder without checkpoints, or without the chosen one: the message lists those that exist), IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_find(tarn_checkpoint_found *found, const char *path,
                                          tarn_checkpoint_choice choice) TARN_CHECKED;
TARN_API void tarn_checkpoint_found_close(tarn_checkpoint_found *found);

// One parameter of a model.
typedef struct tarn_checkpoint_param {
  const char *name;      // "encoder.R1.self_attn.qkv.weight"
  int64_t rows, cols;    // the weight of a linear layer is (outputs, inputs); a vector has one row
  bool trained;          // false: frozen
  int uses;              // places of the model that use it; more than 1: shared
  const char *places;    // these places: "encoder layer 1 3 5 7", "source target output"
  int64_t stored_bytes;  // of its values in the file; 0 for a frozen parameter that is recomputed
  const char *recipe;    // how a frozen parameter is computed; NULL: its values are stored
} tarn_checkpoint_param;

// The contents of a file. All pointers are owned by it and valid until close.
typedef struct tarn_checkpoint_info {
  const char *path;                     // the file read
  const char *model, *config;           // YAML: the model's description, and the whole configuration
  const char *kind;                     // "model", "training" (with the optimiser's state), "average" or "dense"
  const char *averaged;                 // updates of the averaged checkpoints, or NULL
  int64_t update;                       // optimiser steps done
  uint64_t seed;                        // of the frozen weights
  int64_t source_vocab, target_vocab;   // tokens
  bool joint_vocab;                     // one vocabulary for both sides
  const tarn_checkpoint_param *params;  // in the order of the model
  size_t param_count;
  int64_t trained, frozen;              // parameters, each set counted once
  int64_t shared_uses;                  // parameters saved by sharing: sum over sets of (uses - 1) * size
  int64_t shared_layers;                // those of layers; the rest are in the embeddings and the output layer
  int64_t trained_bytes, frozen_bytes;  // of values in the file
  int64_t optimiser_bytes, vocab_bytes;
  int64_t file_bytes;  // of the whole file, header included
  struct tarn__checkpoint_info_memory *memory;
  const char *precision;  // storage format of matrices: "int4", "int8" or "bf16" if any are stored so, else "fp32"
} tarn_checkpoint_info;

// Reads and checks a file, or that of a run directory. Does not compute frozen values. Fails with DATA, IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_info_open(tarn_checkpoint_info **info, const char *path) TARN_CHECKED;
TARN_API void tarn_checkpoint_info_close(tarn_checkpoint_info **info);

// Values as the file has them.
typedef struct tarn_checkpoint_stored {
  const char *precision;  // "fp32", "bf16" (the upper half of each fp32) or "int8"
  const void *values;     // float, uint16_t or int8_t
  const float *scales;    // int8: of each row; a weight is scale * value. Else NULL
} tarn_checkpoint_stored;

// Values of a parameter: `param` is its index in info->params; the values are [rows, cols], row-major.
//
// mapped: a pointer into the file, which stays mapped until close; nothing is copied. The values are read-only;
// tarn/process.h describes what happens if the file is truncated meanwhile. NULL if the parameter is not stored in
// fp32, if it is computed from its recipe, if its offset in a file of another tool is not a multiple of four bytes, and
// for an index out of range.
TARN_API const float *tarn_checkpoint_info_mapped(const tarn_checkpoint_info *info, size_t param);
// stored: the same for every format, as the file has it. False, with zeros in *stored, if the parameter is computed
// from its recipe, if its values or scales are not aligned to their size, if it is stored in int4, whose numbers share
// bytes, and for an index out of range.
TARN_API bool tarn_checkpoint_info_stored(const tarn_checkpoint_info *info, tarn_checkpoint_stored *stored,
                                          size_t param);
// values: for every parameter, in fp32, copied to the caller's rows * cols floats. Frozen parameters are drawn from
// their recipe and checked against its hash, as when a model is opened; bf16 is widened, and INT8 and INT4 are
// multiplied by their scales. Fails with USAGE (index out of range), DATA (values do not match the recipe's hash; more
// operations than tarn/process.h allows), IO (the file has changed), MEMORY or NUMERIC (of a reservoir's spectral
// radius).
TARN_API tarn_status tarn_checkpoint_info_values(const tarn_checkpoint_info *info, size_t param,
                                                 float *values) TARN_CHECKED;

// Opens the vocabularies stored in a checkpoint, or in that of a run directory; the caller closes them. *target is NULL
// if both sides use the same one. Fails with DATA, IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_vocabs(tarn_vocab **source, tarn_vocab **target, const char *path) TARN_CHECKED;

// Writes the mean of the trained parameters of `count` checkpoints of one training, as a checkpoint without the
// optimiser's state. Fails with USAGE (no path), DATA (descriptions, vocabularies or frozen weights differ), IO or
// MEMORY.
TARN_API tarn_status tarn_checkpoint_average(const char *output, const char *const *paths, size_t count) TARN_CHECKED;

// Layers to remove from a trained model. This works best for a model trained with LayerDrop (Fan, Grave and Joulin
// 2020, section 3.2). Zero-initialise to keep all layers.
typedef struct tarn_prune {
  // Depths from 1, separated by commas: "1,3,5" (fairseq's encoder_layers_to_keep, which counts from 0). NULL: all, or
  // those left by `rate`.
  const char *encoder_layers_to_keep, *decoder_layers_to_keep;
  // The paper's "every other": in a stack without a list, layers at depths d with d mod floor(1 / rate) = 0 are
  // removed. 0 <= rate <= 0.5; 0: none.
  double rate;
} tarn_prune;

// Writes the checkpoint of a pruned model, without the optimiser's state. Its description has encoder.layers_to_keep or
// decoder.layers_to_keep; parameters keep their names. Fails with USAGE for layers that the model does not have.
TARN_API tarn_status tarn_checkpoint_prune(const char *output, const char *path, const tarn_prune *prune) TARN_CHECKED;

// Writes a checkpoint with every parameter stored in fp32, frozen ones included, for tools that read safetensors. tarn
// reads it as well. Fails with DATA, IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_export(const char *output, const char *path) TARN_CHECKED;

// Writes a checkpoint of about half the size, with matrices stored in bfloat16. They are rounded as for computing in
// bf16, so results in bf16 are bit-identical to those of the checkpoint at `path`. Other parameters are stored in fp32;
// frozen weights keep their form (a seed, or values as above if the file is dense). It cannot be averaged. Fails with
// DATA, IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_export_bf16(const char *output, const char *path) TARN_CHECKED;

// Writes a model of about a quarter of the size, with matrices stored as 8-bit integers and a scale for each row. They
// are rounded as for computing in int8, the only arithmetic in which the file can be used, so results are bit-identical
// to those of the checkpoint at `path` in int8. Other parameters are stored in fp32; frozen weights keep their form (a
// seed, or values as above if the file is dense). The model can only be used: it cannot be trained, averaged or
// exported. Fails with UNSUPPORTED on a device without int8 products and for a model of which no matrix would be stored
// so (all are frozen and given by a seed, for example), USAGE for a translation model that cannot be decoded, DATA
// (also for weights that are not finite), IO or MEMORY.
TARN_API tarn_status tarn_checkpoint_export_int8(const char *output, const char *path) TARN_CHECKED;

// The same for int4: 4-bit integers, with a factor for 32 terms of a row beside its scale, and the tables of
// vocabularies as in int8; between a seventh and a quarter of the size. It also fails if only such tables would be
// stored as integers.
TARN_API tarn_status tarn_checkpoint_export_int4(const char *output, const char *path) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
