// Checkpoints: one safetensors file that holds a whole model (docs/checkpoint-format.md): the description, the
// vocabularies, trained parameters as fp32, and for each frozen random parameter a line of text from which its values
// are recomputed. The checkpoint of a running training also holds the optimiser's moments and the training's progress.
#ifndef TARN_STORE_CHECKPOINT_H
#define TARN_STORE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "description/description.h"
#include "model/model.h"
#include "run/log_sum.h"
#include "run/names.h"
#include "store/safetensors.h"
#include "tarn/checkpoint.h"
#include "tarn/translate.h"
#include "tarn/vocab.h"

// A model ready for use.
typedef struct tarn__checkpoint {
  char *path;                   // the file that was read
  tarn_config *config;          // the whole description of the training
  tarn_vocab *source, *target;  // equal pointers if one vocabulary serves both sides
  tarn__model *model;           // not for training; weights set in the dtype asked for
  int64_t update;               // optimiser steps that made it
  bool dense;                   // the file held values of frozen parameters, not recipes
  // Open until close if values of the model are in the file (tarn__param.mapped), else closed. Users of such values
  // call tarn__map_check() before they return a result.
  struct tarn__safetensors file;
  float *scales;  // of all matrices of integers of the file
} tarn__checkpoint;

// Opens a file, or the one that tarn_checkpoint_find() chooses in a run directory. dtype: F32 or BF16 (F64 for the
// reference device). The contents are checked against their hash, frozen weights are recomputed and checked against
// theirs. Fails with DATA, IO, MEMORY; *checkpoint is then NULL.
tarn_status tarn__checkpoint_open(tarn__checkpoint **checkpoint, const char *path, tarn__dtype dtype) TARN_CHECKED;
// The same without the layers that `prune` leaves out (NULL: a whole model). Also fails with USAGE.
tarn_status tarn__checkpoint_open_pruned(tarn__checkpoint **checkpoint, const char *path, tarn__dtype dtype,
                                         const tarn_prune *prune) TARN_CHECKED;
// The same for using a model in a precision, without training or writing it. Files of INT8 are accepted for int8 only
// and those of INT4 for int4 only; all other functions refuse them. AUTO is replaced by the precision chosen. Values
// that the model can read in the mapped file are not copied.
tarn_status tarn__checkpoint_open_use(tarn__checkpoint **checkpoint, const char *path,
                                      tarn_translate_precision *precision, const tarn_prune *prune) TARN_CHECKED;
// Checks the common options of uses of a model; fails with USAGE.
tarn_status tarn__checkpoint_check_use(int threads, tarn_translate_overlong overlong) TARN_CHECKED;
void tarn__checkpoint_close(tarn__checkpoint **checkpoint);

// The path that tarn__checkpoint_open() would read, to be freed with tarn__free().
tarn_status tarn__checkpoint_find(char **file, const char *path) TARN_CHECKED;
// The update of a checkpoint, from its header alone; -1 if that is damaged, which opening the file reports.
tarn_status tarn__checkpoint_update(int64_t *update, const char *path) TARN_CHECKED;

// The progress of a training. Everything on which the next update depends is here, in the parameters, in their moments,
// or a function of the configuration.
typedef struct tarn__progress {
  int64_t update;                        // optimiser steps done
  int64_t batches;                       // batches computed: the counter of the dropout masks
  int64_t epoch, index;                  // position of the next batch
  double seconds;                        // training time: without validation and saving
  int64_t best_update;                   // of the best validation so far; 0: none yet
  double best;                           // its metric
  int64_t worse;                         // validations since then
  int64_t validated;                     // update of the last validation; 0: none yet
  int64_t at_start;                      // 1: the untrained model was validated (valid.at_start)
  int64_t scored[TARN_CONFIG_SETS];      // for each of sets: 1 + the update of its last score; 0: none yet
  int64_t measured;                      // 1 + the update of the last exponents (dynamics.input); 0: none yet
  int64_t saved;                         // update of the last numbered checkpoint; 0: none yet
  int64_t source_tokens, target_tokens;  // trained on so far
  // Sums since the last line of the log.
  double loss_sum, nll_sum, norm_sum, window_seconds;
  int64_t window_updates, window_source, window_target;
  // AutoFreeze: the number of trained sets of the encoder that are frozen, from the bottom, and for each set the norm
  // of its summed gradients at the last test.
  int64_t frozen_sets, norm_count;
  double norms[TARN_CONFIG_LAYERS];
  // The costs of `seconds` (tarn/plan.h), and the same until the best validation. The sources are bits of base/energy.h
  // and of train/train_cost.c; 0: nothing was counted yet, or an older version wrote the checkpoint.
  double joules, best_joules, operations, best_operations, moved_bytes;
  int64_t cost_sources;
  int64_t peak_bytes;  // peak memory of any session of the run; 0: unknown
  tarn__log_sum log;   // of the run's log at that time; zero if an older version wrote the checkpoint
} tarn__progress;

// The arrays of a part of a parameter (tarn__param_training.part).
typedef enum tarn__part_array {
  TARN__PART_MASTER,
  TARN__PART_MOMENT1,
  TARN__PART_MOMENT2,
  TARN__PART_SUM  // AutoFreeze's
} tarn__part_array;

// Reads bytes [first, first + bytes) of such an array of a whole parameter, number `param` of tarn__model_param(), from
// the ranks that hold them.
typedef struct tarn__part_reader {
  tarn_status (*read)(void *user, size_t param, tarn__part_array array, void *to, size_t first, size_t bytes);
  void *user;
} tarn__part_reader;

// The contents of a file in addition to the model.
typedef struct tarn__checkpoint_extra {
  const tarn_vocab *source, *target;  // equal pointers if one serves both sides
  int64_t update;
  const char *data_hash;           // of the training shard; NULL: none
  const char *valid_hash;          // of the validation data; NULL: none
  const char *set_hashes;          // of the scored sets, in order; NULL: none
  const char *dynamics;            // what exponents are computed of (tarn_train_dynamics); NULL: none
  const tarn__progress *progress;  // NULL: the model only, without moments
  tarn__part_reader parts;         // of a model with shares_optimiser
  const tarn__stored *states;      // [state_count] further tensors of the training (train/features/carried.h)
  size_t state_count;
  // Marks of experts in use since the last line of the log (train/features/expert_use.h). NULL: none.
  const char *experts;
  // Steps of adaptive computation time since then (train/features/halting_feature.c). NULL: none.
  const char *halting;
  bool dense;  // store frozen parameters too, for other tools
  // Of parameters that may be rounded so, or to INT8 at least (tarn__param.rounds); the model is in F32, in the host's
  // memory.
  tarn__rounding rounding;
} tarn__checkpoint_extra;

// Writes a checkpoint atomically: on any failure, or a kill at any moment, an older file stays unchanged.
tarn_status tarn__checkpoint_save(const char *path, const tarn__model *model,
                                  const tarn__checkpoint_extra *extra) TARN_CHECKED;

// Writes the mean of the trained parameters of `count` checkpoints of one model. Fails with DATA unless their
// descriptions, vocabularies and frozen weights are equal. The device sums, in its memory at `room` (aligned to 64
// bytes), if that is large enough for the trained parameters in fp32, each rounded up to 64 bytes; NULL and 0: in
// separate memory.
tarn_status tarn__checkpoint_average(const char *path, const char *const *files, size_t count,
                                     const tarn__device *device, void *room, size_t room_bytes) TARN_CHECKED;

// Writes tensors and metadata as a checkpoint, with the hash of all of them.
tarn_status tarn__checkpoint_write(const char *path, const tarn__stored *tensors, size_t count,
                                   const tarn__stored_text *texts, size_t text_count) TARN_CHECKED;
// The same for tensors partly in a map: fails with IO, and writes nothing, if its file changed meanwhile.
tarn_status tarn__checkpoint_write_mapped(const char *path, const tarn__stored *tensors, size_t count,
                                          const tarn__stored_text *texts, size_t text_count,
                                          const tarn__map *map) TARN_CHECKED;

// An open file whose contents agree with their hash.
typedef struct tarn__checkpoint_file {
  tarn__safetensors tensors;
  const char *config_text, *model_text;  // in `tensors`
  int64_t update;
  uint64_t seed;
  bool has_progress;
  tarn__progress progress;
} tarn__checkpoint_file;

tarn_status tarn__checkpoint_file_open(tarn__checkpoint_file *file, const char *path) TARN_CHECKED;
// The same, but fails with DATA if the file holds INT8: for training, averaging and export.
tarn_status tarn__checkpoint_file_open_whole(tarn__checkpoint_file *file, const char *path) TARN_CHECKED;
void tarn__checkpoint_file_close(tarn__checkpoint_file *file);
// The description, and the vocabularies (*target == *source if one serves both sides).
tarn_status tarn__checkpoint_file_config(const tarn__checkpoint_file *file, tarn_config **config) TARN_CHECKED;
tarn_status tarn__checkpoint_file_vocabs(const tarn__checkpoint_file *file, tarn_vocab **source,
                                         tarn_vocab **target) TARN_CHECKED;
// Sets all parameters of an allocated model of the same description, and with `moments` the optimiser's moments.
tarn_status tarn__checkpoint_file_load(const tarn__checkpoint_file *file, tarn__model *model,
                                       bool moments) TARN_CHECKED;

#endif
