// The cost of a training: memory and arithmetic in advance, a profile of its time, and its measured cost afterwards.
#ifndef TARN_PLAN_H
#define TARN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The plan of a training: memory by category, parameters and arithmetic, computed before anything runs.

// One part of the model: the embeddings, a layer at its depth, or the output layer. A shared set of weights is counted
// at its first use and is 0 at the others.
typedef struct tarn_plan_part {
  char label[96];  // "encoder 3 R1"
  int frozen;      // 1: a frozen layer
  int matrices;    // 1: a layer with frozen matrices and trained norms and biases
  int cached;      // 1: train.cache_frozen reads its outputs from disk, so it computes nothing in a step
  int64_t trained_parameters, frozen_parameters;
  size_t gradient_bytes;   // gradients of its parameters
  size_t optimiser_bytes;  // Adam's two moments, and the sums of train.autofreeze
  size_t kept_bytes;       // activations of the forward pass kept for the backward pass
  // Per token, counted as in profiles. Recomputation in the backward pass (train.recompute) counts in recompute_flops
  // only.
  double forward_flops, backward_flops, recompute_flops;
} tarn_plan_part;

typedef struct tarn_plan {
  tarn_precision precision;  // of products and activations
  tarn_fp32 fp32;            // how fp32 products are computed
  // Peak bytes by category.
  size_t trained_bytes;  // trained parameters: compute copies and fp32 master copies
  size_t frozen_bytes;   // frozen parameters
  size_t gradient_bytes;
  size_t optimiser_bytes;
  size_t activation_bytes;  // tensors of one step, forward and backward
  size_t workspace_bytes;   // scratch of the kernels, and on a card that of its libraries
  size_t validation_bytes;  // of validation, beyond the memory of the step, which it reuses: translation,
                            // predictions for sets with labels, the copy of the model for dynamics.input
  size_t program_bytes;     // the program with its libraries and vocabularies; the training data and their order
  size_t total_bytes;       // the sum of the eight: resident memory of the whole run
  // Parameters, each set counted once; shared_uses: uses - 1 times the size of every shared set; shared_layers: the
  // part of it in layers (the rest is in the embeddings and the output layer).
  int64_t trained_parameters, frozen_parameters, shared_uses, shared_layers;
  // Floating-point operations per token (source and target tokens count equally); a multiply-add counts as two.
  double forward_flops, backward_flops, recompute_flops;
  // train.cache_frozen: layers at the bottom of the encoder with outputs cached on disk, and the bytes of these
  // outputs; 0 bytes if the training data cannot be read. Pages of the file belong to the system and do not count in
  // the peak.
  int cached_layers;
  size_t cache_bytes;
  // 1: an upper bound. The plan is for a step that runs and trains every layer; some steps need less (LayerDrop,
  // train.freeze).
  int upper_bound;
  // Assumptions: rows of the largest batch, and mean sentence length in tokens.
  int64_t source_rows, target_rows;
  double source_length, target_length;
  // Tokens of both sides of the training data; 0 if they cannot be read, or are not read because the sizes of the
  // vocabularies are given.
  double epoch_tokens;
  tarn_plan_part *parts;  // freed by tarn_plan_close()
  size_t part_count;
} tarn_plan;

typedef struct tarn_plan_options {
  int64_t source_vocab, target_vocab;  // tokens, below 2^31; 0: read from the vocabularies of the configuration or the
                                       // shard
  int threads;                         // at most 4096; 0: train.threads of the configuration
} tarn_plan_options;

// Fills *plan for a training of `config` (steps, validation, averaging) with a batch of train.max_tokens tokens on the
// longer side, or of train.max_sentences sentences if that is less. Sentence lengths are those of the training shard if
// it can be read, else 25 tokens. Fails with USAGE for options out of range, and with USAGE or DATA if the vocabularies
// are neither given nor readable.
TARN_API tarn_status tarn_plan_make(tarn_plan *plan, const tarn_config *config,
                                    const tarn_plan_options *options) TARN_CHECKED;
TARN_API void tarn_plan_close(tarn_plan *plan);

// Bytes of memory still available to this process: the least of the machine's available memory, of what the limit of
// its control group leaves (in which cached files do not count as used), and of its address-space limit; 1 if nothing
// is left. 0 if unknown.
TARN_API size_t tarn_memory_available(void);

// A profile of a training or a translation: a table of the time spent in ops and in the work between them, and a trace
// of the first updates for chrome://tracing or Perfetto.
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
// Times are wall-clock times of the thread that runs the ops: an op lasts from its start until all threads have
// finished it. Without a profile nothing is measured. A profile may be used for several trainings in turn; it
// accumulates their times.

enum { TARN_PROFILE_TRACED = 10 };  // updates, or decoding steps, usually shown in a trace

typedef enum tarn_profile_pass {
  TARN_PROFILE_FORWARD,
  TARN_PROFILE_BACKWARD,
  TARN_PROFILE_BOTH,    // the output layer computes its gradients together with the loss
  TARN_PROFILE_OUTSIDE  // not an op: batching, graph building, optimiser, validation, ...
} tarn_profile_pass;

// The processor rotates queries and keys within attention where it can (rotary positions): such rotations have no row
// of their own, and their time is in attention's.
typedef struct tarn_profile_row {
  const char *op;    // "linear_dx"; outside of graphs the activity: "optimiser"
  const char *part;  // "encoder R": the layers of one kind (or of one shared set) in a stack; "" outside of graphs
  tarn_profile_pass pass;
  int64_t calls;
  double seconds;
  double flops;  // floating-point operations, a multiply-add counts as two; 0: not counted (element-wise work); for a
                 // recurrent matrix treated as sparse the share of nonzero entries counts
  double bytes;  // read and written: inputs, outputs, weights, gradients and moments, each once, as if there were no
                 // caches, without scratch; 0: not counted
  // Seconds for the operations alone and for the bytes alone at the peaks; the floor is the larger of the two, call by
  // call (the roofline of Williams et al. 2009). Time above it is lost or was not counted, such as element-wise
  // arithmetic. The bytes of a call that fit into a cache count at that cache's speed.
  double flops_seconds, bytes_seconds, floor_seconds;
} tarn_profile_row;

// Peak rates per second of the machine, with the threads of the training or translation, measured once before it starts
// (half a second, 201 MB of memory, freed afterwards); 0: unknown.
typedef struct tarn_profile_peaks {
  double fp32_flops, bf16_flops;  // of products in that type
  double bytes;                   // to and from memory
  double cached_bytes;            // of a working set of 256 KiB
} tarn_profile_peaks;

typedef struct tarn_profile_summary {
  const tarn_profile_row *rows;  // longest first; their times add up to `seconds`: the row "other" is
  size_t count;                  // the unaccounted time
  double seconds;        // between the beginning and the end of the training or translation, without left_out_seconds
  double unit_seconds;   // of the updates, or decoding steps, alone
  double floor_seconds;  // the sum of all floors: about what these ops take at least on this machine, as far as
                         // its peaks were measured undisturbed; 0: the peaks are unknown
  int64_t units;         // updates, decoding steps, or groups of sentences translated whole
  const char *unit;      // "update", "step" or "group"; "" if there was none
  tarn_profile_peaks peaks;
  // The first update of each training, in which memory is allocated and mapped and weights are packed: in none of the
  // above, only in the trace.
  int64_t left_out;
  double left_out_seconds;
  // Share of peaks.fp32_flops that the loop which measured it reached meanwhile, in samples of 4 ms after updates or
  // decoding steps, at most five a second and in none of the times above: what other programs, and other virtual
  // machines on the same processor, left to this one. About 1 at most, a little more if the processor became faster; 0:
  // not measured (cards; no unit).
  double available;
} tarn_profile_summary;

typedef struct tarn_profile tarn_profile;

// `traced`: number of updates (decoding steps, in translation) in the trace, 0 or more. The trace has at most 262,144
// events, of 40 bytes each in memory, whatever `traced` is. Fails with USAGE or MEMORY.
TARN_API tarn_status tarn_profile_open(tarn_profile **profile, int64_t traced) TARN_CHECKED;
TARN_API void tarn_profile_close(tarn_profile **profile);

// Sums the measurements so far; valid until the next call with this profile. Fails with MEMORY.
TARN_API tarn_status tarn_profile_sum(tarn_profile *profile, tarn_profile_summary *summary) TARN_CHECKED;

// Writes the trace in the JSON format of chrome://tracing ("traceEvents", complete events "X", times in microseconds
// from the first event; thread 1 runs the ops, thread 2 prepares batches). Fails with IO or MEMORY.
TARN_API tarn_status tarn_profile_write_trace(const tarn_profile *profile, const char *path) TARN_CHECKED;

// The cost of a training besides time: energy, operations, and memory traffic.

// NAN: unknown. All numbers are for training time only, like seconds (train.clock): without validation and saving, over
// all sessions of a resumed training. Energy is known if every part of the training was measured or estimated.
typedef struct tarn_cost {
  // The source of energy; several, joined by "+", if parts of the training were measured differently, or for a GPU in
  // addition to the processors; NULL: energy is unknown. All but the last measure the whole machine, other users
  // included.
  //   "rapl"      counters of the processors' packages and of their memory (Linux' powercap)
  //   "nvml"      counters of NVIDIA's GPUs, for training on an accelerator
  //   "battery"   the power drawn from the machine's battery while it discharged
  //   "estimate"  processor seconds of the process, times train.core_watts: not a measurement
  const char *source;
  double joules;        // of the training
  double epoch_joules;  // of one pass over the data, mean over the training
  double best_joules;   // until the best validation by valid.metric
  double co2_grams;     // of `joules`, by train.co2_per_kwh
  // Floating-point operations of the graphs that ran, counted as in plans (a multiply-add counts as two; products and
  // the other counted ops), without the optimiser. Unknown with optimiser ridge, whose sums are not in graphs.
  double operations;
  double token_operations;  // of one token (source and target tokens count equally), mean over the training
  double best_operations;   // until the best validation by valid.metric
  double moved_bytes;       // bytes read and written by these graphs and by the optimiser, counted as in profiles
} tarn_cost;

#ifdef __cplusplus
}
#endif
#endif
