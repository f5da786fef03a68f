// How long a training will take, before it has begun or while it runs, and on more ranks.
#ifndef TARN_LAB_FORECAST_H
#define TARN_LAB_FORECAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/plan.h"
#include "tarn/status.h"
#include "tarn/train.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a forecast is based on: the best basis that there was.
typedef enum tarn_duration_source {
  TARN_DURATION_RUN,        // the log of the run: its updates and validations so far
  TARN_DURATION_PROBE,      // two seconds of updates on the training data, with weights of zero
  TARN_DURATION_OPERATIONS  // the operations of the plan, and the speed of a matrix product on this machine
} tarn_duration_source;

// Times are seconds of wall-clock time. If `train.patience` may end the training sooner, they are upper limits; if it
// has ended the run, and no override changes it, they are those of the run.
typedef struct tarn_duration {
  tarn_duration_source source;
  double seconds;            // of the whole training with its validations; negative: no limit of the training is known
  double low, high;          // interval in which `seconds` should lie, if the machine stays as busy as now
  double seconds_left;       // RUN: from the last line of the log on; else the same as `seconds`
  double updates, epochs;    // of the whole training; 0: not known
  double tokens_per_second;  // source and target tokens together
  // The part of `seconds` that is validation. RUN: from the validations so far; PROBE and OPERATIONS: computing the
  // loss only, without translations and other uses of the model.
  double validation_seconds;
} tarn_duration;

// "run", "probe", "operations"; NULL for another value.
TARN_API const char *tarn_duration_source_name(tarn_duration_source source);

// Forecasts how long the training of `options` (a description, overrides, threads), whose plan is given, will take.
// `run`: its run directory, whose log is used if it has updates; NULL: none. A probe needs the memory of the plan while
// it runs. If the data cannot be read or there is not enough memory, and for train.cache_frozen and ridge, whose time
// is not that of updates, the forecast is based on operations. Fails with USAGE, DATA, IO, NUMERIC or MEMORY.
TARN_API tarn_status tarn_train_duration(tarn_duration *duration, const tarn_train_options *options,
                                         const tarn_plan *plan, const char *run) TARN_CHECKED;

// How fast a training would be on many ranks (docs/scale.md), without running on them: time of a step, bytes sent,
// memory and efficiency, from the operations of the plan, the time that one rank was measured to need, and the network
// that is given.
//
// The model follows what communicator `mpi` does. A message costs latency + bytes / bandwidth, a rank sends and
// receives at the same time, and the calls cost what the algorithms of Thakur, Rabenseifner and Gropp, "Optimization of
// Collective Communication Operations in MPICH" (2005), cost. With N ranks, latency a and bandwidth B:
//
//   log2 N      rounded up
//   word        w = a log2 N + 24 (N - 1) / B               the status word that every call begins with, gathered
//   exchange    e(m) = a (N - 1) + m (N - 1) / (N B)        pairwise: each rank gets all ranks' values of its share
//   gather      g(m) = a (N - 1) + m (N - 1) / (N B)        in a ring; of less than 512 KiB in all
//               a log2 N + m (N - 1) / (N B)                by doubling
//   tell        t(m) = k g(N m / k)                         m bytes of each rank to all, in k pieces, as many as it
//                                                           takes for those of all ranks and one more to fit 1 MiB
//
// In an update on N > 1 ranks each computes what one rank computes, on batches of its own. In addition it
//   - asks whether to stop, adds losses and adds norms, w + t(24) for each of the three, and gathers from all ranks
//     what was written, a bit for each parameter, and for each row of the tables of which only rows in use are sent:
//     w + t(bits / 8) for the parameters, and again for each of these tables
//   - sums the gradients in buckets. A sum of m bytes goes in k = m / 1 MiB rounds, rounded up:
//     k (w + e(m / k) + w + g(m / k)), a reduce-scatter and an all-gather; with train.shard_optimiser
//     k (w + e(m / k)), and each rank then gathers the new weights, k (w + g(m / k)) (ZeRO stage 1: Rajbhandari et al.
//     2020, arXiv 1910.02054). A value has 4 bytes, or 2 with train.reduce: bf16; weights have those of their precision
//   - takes the values out of the gradients' memory, adds them and puts them back: 4 bytes a value / `adding`
// Of embedding tables that are no output layer only the rows in use are sent. With R tokens that all ranks together
// look up, and p the share of a row's token in the data, their expected number is the sum of 1 - (1 - p)^R over the
// rows.
//
// Where sums overlap with the backward pass (`overlap`), a bucket can be sent when the backward pass has reached the
// lowest layer that uses one of its parameters, and buckets are sent one after another. With f the seconds of the
// forward pass, r_b the seconds until bucket b is complete, s_b the seconds that it takes on the network and v_b those
// to add it:
//   start_b = max(r_b + v_1 + ... + v_(b-1), end_(b-1)),   end_b = start_b + s_b + v_b
//   update = max(f + backward + v_1 + ... + v_n, end_n) + the small sums + the optimiser + the weights
// Buckets are sent in the order of the program: those of the uppermost layer first, then those of an output layer with
// weights of its own, and embedding tables last. With train.accumulate only the last batch's backward pass overlaps.
// The seconds of the passes are divided among the layers by their operations. Without overlap all r_b are the end of
// the backward pass. As in the program (docs/ranks.md), sums overlap where ranks communicate over a link, but not with
// backskipping or on a device with memory of its own, nor between ranks of one machine (`one_machine`), whose sums go
// through shared memory: there the network takes no time. With sharded moments the optimiser takes 1 / N of its time.
//
// Not in the model: the wait for the slowest rank of each update, as batches differ a little in work; other traffic on
// the network; validation and saving; layers that an update leaves out or has stopped (LayerDrop, train.freeze).

enum { TARN_SCALE_RANKS = 1048576 };  // the most ranks that are modelled

typedef struct tarn_scale_options {
  const int *ranks;  // (count) numbers of ranks, 1 to TARN_SCALE_RANKS
  size_t count;
  double bandwidth;  // bytes a second that a rank sends, and receives at the same time; more than 0
  double latency;    // seconds that a message takes in addition; 0 or more
  // Seconds of an update on one rank; 0: measured by some seconds of updates or, where that is not possible, estimated
  // from operations as tarn_train_duration() does.
  double step_seconds;
  double optimiser_seconds;  // the optimiser's part of it; 0: as measured, or else not known and not separated
  double adding;             // bytes of gradients a second that a rank takes out, adds and puts back; 0: measured
  int64_t vocab_size;        // as in tarn_plan_options; 0: read
  int one_machine;           // 1: all ranks run on one machine; bandwidth and latency are not used
} tarn_scale_options;

// Fills in the defaults: 1 rank, a link of 1.25e9 bytes a second (10 Gbit/s) and 2e-5 seconds, the rest 0.
TARN_API void tarn_scale_default(tarn_scale_options *options);

// A part of the plan, in its order; `predictors`, of backskipping, come last.
typedef struct tarn_scale_part {
  char label[96];
  int64_t values;  // gradients that may be summed in an update: of tables all rows, in use or not
  double forward_seconds, backward_seconds;  // of step_seconds; what is computed again counts as backward
} tarn_scale_part;

// One number of ranks with or without sharded moments. Bytes sent are those of gradients and weights, by each rank.
typedef struct tarn_scale_way {
  double step_seconds;
  double network_seconds;  // of all sums and weights on the network, if nothing else ran meanwhile
  double adding_seconds;
  double waiting_seconds;  // in which a rank does nothing of its own
  double sent_bytes;
  double efficiency;         // tokens a second over those of one rank, divided by the ranks
  double tokens_per_second;  // of all ranks, source and target tokens
  size_t memory_bytes;       // of the rank that needs most: tarn_plan's total_bytes
  size_t optimiser_bytes;    // of it
} tarn_scale_way;

typedef struct tarn_scale_point {
  int ranks;
  double used_values;   // gradients that are summed: of tables the expected number of rows in use
  double *part_values;  // [part_count] the same of each part
  tarn_scale_way whole, sharded;
} tarn_scale_point;

typedef struct tarn_scale {
  double bandwidth, latency;    // as given; of one machine infinite and 0
  int one_machine;              // as given
  tarn_precision reduce;        // train.reduce
  int shards;                   // train.shard_optimiser
  int given;                    // 1: step_seconds was given; 0: measured, or counted as `source` says
  tarn_duration_source source;  // PROBE or OPERATIONS
  double alone_seconds;         // an update of one rank alone
  double step_seconds;          // what a rank of several computes in an update, without the sums: its optimiser runs
                                // after the backward pass
  double optimiser_seconds;     // of it; 0: not separated
  double adding;                // bytes a second
  double update_tokens;         // of one rank, source and target, of a mean update
  int64_t values, weights;      // gradients that may be summed; trained parameters
  double weight_bytes;          // of the weights that ranks with sharded moments gather
  int64_t marks;                // parameters that there are, trained or not
  int accumulate;               // batches of an update: sums overlap with the last one alone
  int overlap;                  // 1: sums overlap with the backward pass
  int64_t bucket;               // values of a bucket
  int64_t round;                // bytes that are exchanged or gathered at a time
  tarn_scale_part *parts;       // (part_count)
  size_t part_count;
  tarn_scale_point *points;  // (count) one for each number of ranks
  size_t count;
  struct tarn__scale_memory *own;  // tables, and what else close frees
} tarn_scale;

// Fills *scale for the training of `training` (description, overrides, threads), each rank of which has `threads`
// threads of its own. Fails with USAGE for options out of range and for train.optimiser ridge, which makes no updates,
// and as tarn_plan_make() and tarn_train_duration() do.
TARN_API tarn_status tarn_scale_make(tarn_scale *scale, const tarn_train_options *training,
                                     const tarn_scale_options *options) TARN_CHECKED;
TARN_API void tarn_scale_close(tarn_scale *scale);

#ifdef __cplusplus
}
#endif
#endif
