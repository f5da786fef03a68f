// What a training takes: memory and arithmetic before it runs, where its time goes while it runs, and what it has cost.
#ifndef TARN_PLAN_H
#define TARN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a training run will need, computed before anything runs: memory by category, parameters, arithmetic.

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
  // Per token, counted as in profiles. What the backward pass computes again (train.recompute) counts in
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

// Where the time of a training or a translation goes: a table of the ops and of the work around them, and a trace of
// the first updates for chrome://tracing or Perfetto.
//
//   tarn_profile *profile;
//   status = tarn_profile_open(&profile, TARN_PROFILE_TRACED);
//   options.profile = profile;  // of tarn_train_options or tarn_translator_options
//   ... train or translate ...
//   tarn_profile_summary summary;
//   status = tarn_profile_sum(profile, &summary);
//   status = tarn_profile_write_trace(profile, "trace.json");
//   tarn_profile_close(&profile);
//
// Times are those of the thread that drives the ops, on the wall clock: an op lasts from its start until all
// threads are done with it. Without a profile nothing is measured. A profile may be given to several trainings one
// after the other; it adds them up.

enum { TARN_PROFILE_TRACED = 10 };  // updates, or steps of decoding, that a trace usually shows

typedef enum tarn_profile_pass {
  TARN_PROFILE_FORWARD,
  TARN_PROFILE_BACKWARD,
  TARN_PROFILE_BOTH,    // the output layer computes its gradients together with the loss
  TARN_PROFILE_OUTSIDE  // not an op: batches, building of graphs, optimiser, validation, ...
} tarn_profile_pass;

typedef struct tarn_profile_row {
  const char *op;    // "linear_dx"; outside of graphs what was done: "optimiser"
  const char *part;  // "encoder R": the layers of one kind (or of one shared set) of a stack; "" outside of graphs
  tarn_profile_pass pass;
  int64_t calls;
  double seconds;
  double flops;  // floating-point operations, a multiply-add counts two; 0: not counted (element-wise work); a
                 // recurrent matrix that is taken as sparse counts the share of entries that its sparsity leaves
  double bytes;  // read and written: inputs, outputs, weights, gradients and moments, each once, as if no cache held
                 // anything, without scratch; 0: not counted
  // Seconds that the operations alone and the bytes alone would take at the peaks. What is left of `seconds` above the
  // larger of the two is lost, or was not counted; where caches hold what is read, less than the second may do.
  double flops_seconds, bytes_seconds;
} tarn_profile_row;

// What the machine does a second at most, with the threads of the training or translation, measured once before it
// begins (a quarter of a second, 201 MB of memory that are given back); 0: not known.
typedef struct tarn_profile_peaks {
  double fp32_flops, bf16_flops;  // of products of that type
  double bytes;                   // to and from memory
} tarn_profile_peaks;

typedef struct tarn_profile_summary {
  const tarn_profile_row *rows;  // longest first; their times add up to `seconds`: what nothing accounts for is the
  size_t count;                  // row "other"
  double seconds;                // between the beginning and the end of the training or translation
  int64_t units;                 // updates, or steps of decoding
  const char *unit;              // "update" or "step"; "" if there was none
  tarn_profile_peaks peaks;
} tarn_profile_summary;

typedef struct tarn_profile tarn_profile;

// `traced`: how many updates (steps, in translation) the trace shows, 0 or more. It has at most 262,144 events, 40
// bytes each in memory, whatever `traced` says. Fails with USAGE or MEMORY.
TARN_API tarn_status tarn_profile_open(tarn_profile **profile, int64_t traced) TARN_CHECKED;
TARN_API void tarn_profile_close(tarn_profile **profile);

// What was measured so far; valid until the next call with this profile. Fails with MEMORY.
TARN_API tarn_status tarn_profile_sum(tarn_profile *profile, tarn_profile_summary *summary) TARN_CHECKED;

// Writes the trace in the JSON format of chrome://tracing ("traceEvents", complete events "X", times in microseconds
// from the first event on; thread 1 runs the ops, thread 2 prepares batches). Fails with IO or MEMORY.
TARN_API tarn_status tarn_profile_write_trace(const tarn_profile *profile, const char *path) TARN_CHECKED;

// What a training cost beside time: energy, operations, and bytes that went to and from memory.

// NAN where a number is not known. All are of training time alone, as seconds are (train.clock): neither validation nor
// saving counts, and what a training that was resumed took in all its sessions does. Energy is known where every part
// of the training was measured or estimated.
typedef struct tarn_cost {
  // What energy was measured by; several, joined by "+", where parts of the training were measured differently, or a
  // GPU beside the processors; NULL: energy is not known. All but the last are of the whole machine, whoever uses it.
  //   "rapl"      counters of the processors' packages and of their memory (Linux' powercap)
  //   "nvml"      counters of NVIDIA's GPUs, where an accelerator computes
  //   "battery"   the power that the machine's battery gave while it discharged
  //   "estimate"  processor seconds of the process, times train.core_watts: no measurement
  const char *source;
  double joules;        // of the training
  double epoch_joules;  // of one pass over the data, mean of the training
  double best_joules;   // until the best validation by valid.metric
  double co2_grams;     // of `joules`, by train.co2_per_kwh
  // Floating-point operations of the graphs that ran, a multiply-add counts two, as plans count them: products
  // and what else is counted there, without the optimiser. Not known with optimiser ridge, whose sums are not in
  // graphs.
  double operations;
  double token_operations;  // of one token (source and target tokens counted alike), mean of the training
  double best_operations;   // until the best validation by valid.metric
  double moved_bytes;       // read and written by these graphs and by the optimiser, as profiles count them
} tarn_cost;

#ifdef __cplusplus
}
#endif
#endif
