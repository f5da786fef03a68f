// What a training run will need, computed before anything runs: memory by category, parameters, arithmetic.
#ifndef TARN_PLAN_H
#define TARN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/export.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// One part of the model: the embeddings, a layer at its depth, or the output layer. A shared set of weights is counted
// at its first use and is 0 at the others.
typedef struct tarn_plan_part {
  char label[96];  // "encoder 3 R1"
  int frozen;      // 1: a frozen layer
  int matrices;    // 1: a layer of frozen matrices and trained norms and biases
  int cached;      // 1: train.cache_frozen reads its outputs from disk, so it computes nothing in a step
  int64_t trained_parameters, frozen_parameters;
  size_t gradient_bytes;   // gradients of its parameters
  size_t optimiser_bytes;  // Adam's two moments, and the sums of train.autofreeze
  size_t kept_bytes;       // activations of the forward pass that the backward pass still needs
  // Per token, counted as in tarn/profile.h. What the backward pass computes again (train.recompute) counts in
  // recompute_flops alone.
  double forward_flops, backward_flops, recompute_flops;
} tarn_plan_part;

typedef struct tarn_plan {
  tarn_precision precision;  // of products and activations
  tarn_fp32 fp32;            // how products of fp32 are computed
  // Peak bytes by category.
  size_t trained_bytes;  // trained parameters: compute copies and fp32 master copies
  size_t frozen_bytes;   // frozen parameters
  size_t gradient_bytes;
  size_t optimiser_bytes;
  size_t activation_bytes;  // tensors of one step, forward and backward
  size_t workspace_bytes;   // scratch of the kernels
  size_t validation_bytes;  // of validation, beyond the memory of the step, which it shares: translation, or
                            // predictions for sets with labels
  size_t program_bytes;     // the program with its libraries and vocabularies; the training data and their order
  size_t total_bytes;       // the sum of the eight: resident memory of the whole run
  // Parameters, each set once; uses - 1 times its size for every shared set, and of these the ones of layers (the
  // others are of embeddings and the output layer).
  int64_t trained_parameters, frozen_parameters, shared_uses, shared_layers;
  // Floating-point operations per token (source and target tokens counted alike); a multiply-add counts two.
  double forward_flops, backward_flops, recompute_flops;
  // train.cache_frozen: layers at the bottom of the encoder whose outputs are kept on disk, and the bytes of these
  // outputs; 0 bytes where the training data cannot be read. Pages of the file are the system's, and not in the peak.
  int cached_layers;
  size_t cache_bytes;
  // 1: some steps take less than this, which is the plan of one that runs and trains every layer (LayerDrop,
  // train.freeze).
  int upper_bound;
  // What was assumed: rows of the largest batch, and tokens of a mean sentence.
  int64_t source_rows, target_rows;
  double source_length, target_length;
  // Tokens of both sides of the training data; 0 where they cannot be read, or are not, because the sizes of the
  // vocabularies are given.
  double epoch_tokens;
  tarn_plan_part *parts;  // freed by tarn_plan_close()
  size_t part_count;
} tarn_plan;

typedef struct tarn_plan_options {
  int64_t source_vocab, target_vocab;  // tokens, below 2^31; 0: read from the configuration's vocabularies or shard
  int threads;                         // at most 4096; 0: train.threads of the configuration
} tarn_plan_options;

// Fills *plan for a training of `config` (steps, validation, averaging) with a batch of train.max_tokens tokens on
// the longer side, or of train.max_sentences sentences if that is less. Sentence lengths are those of the training
// shard where it can be read, else 25 tokens. Fails with USAGE for options out of range, and with USAGE or DATA where
// the vocabularies are neither given nor readable.
TARN_API tarn_status tarn_plan_make(tarn_plan *plan, const tarn_config *config,
                                    const tarn_plan_options *options) TARN_CHECKED;
TARN_API void tarn_plan_close(tarn_plan *plan);

// Bytes of memory that this process may still take (the machine's available memory, what the limit of its control group
// leaves, in which files in memory do not count as used, or that of its address space, whichever is least; 1 if nothing
// is left), or 0 if unknown.
TARN_API size_t tarn_memory_available(void);

#ifdef __cplusplus
}
#endif
#endif
