// The keys of a checkpoint's metadata and the names of its tensors other than parameters (docs/checkpoint-format.md).
#ifndef TARN_STORE_CHECKPOINT_KEYS_H
#define TARN_STORE_CHECKPOINT_KEYS_H

#include "run/file_kind.h"

#define TARN__KEY_FORMAT TARN__MODEL_MARK  // version of the format
#define TARN__KEY_PROGRAM "tarn.version"
#define TARN__KEY_MODEL "tarn.model"
#define TARN__KEY_CONFIG "tarn.config"
#define TARN__KEY_SEED "tarn.seed"
#define TARN__KEY_GENERATOR "tarn.generator"
#define TARN__KEY_UPDATE "tarn.update"
#define TARN__KEY_AVERAGE "tarn.average"
#define TARN__KEY_PROGRESS "tarn.progress"
#define TARN__KEY_EXPERTS "tarn.experts"   // marks of those in use (train/features/expert_use.h)
#define TARN__KEY_HALTING "tarn.halting"   // steps of adaptive computation time (train/features/halting_feature.c)
#define TARN__KEY_DATA "tarn.data.train"   // hash of the training shard
#define TARN__KEY_VALID "tarn.data.valid"  // tarn__validator_hash()
#define TARN__KEY_SETS "tarn.data.sets"    // tarn__train_set_hashes()
#define TARN__KEY_DYNAMICS "tarn.data.dynamics"     // tarn_train_dynamics's identity
#define TARN__KEY_SOURCE_VOCAB "tarn.vocab.source"  // hash
#define TARN__KEY_TARGET_VOCAB "tarn.vocab.target"
#define TARN__KEY_FROZEN "tarn.frozen."  // and the parameter's name: its recipe
#define TARN__KEY_HASH "tarn.hash"

#define TARN__TENSOR_SOURCE_VOCAB "vocab.source"
#define TARN__TENSOR_TARGET_VOCAB "vocab.target"
#define TARN__TENSOR_SCALE ".scale"                // ends the name of the scales of a matrix of integers
#define TARN__TENSOR_MOMENT1 "optimiser.moment1."  // and the parameter's name
#define TARN__TENSOR_HELPER "backskip."            // begins the names of backskipping's own parameters
#define TARN__TENSOR_MOMENT2 "optimiser.moment2."
#define TARN__TENSOR_SUM "optimiser.sum."
#define TARN__TENSOR_STATE "carried."  // and the layer: recurrent states between two windows (train.carry_state)

#define TARN__CHECKPOINT_VERSION "1"

#endif
