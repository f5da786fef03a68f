// Duration forecasts of a training, before it starts or while it runs, and on more ranks.
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

// The basis of a forecast: the best available.
typedef enum tarn_duration_source {
  TARN_DURATION_RUN,        // the log of the run: its updates and validations so far
  TARN_DURATION_PROBE,      // two seconds of updates on the training data, with zero weights
  TARN_DURATION_OPERATIONS  // the operations of the plan, and the speed of a matrix product on this machine
} tarn_duration_source;

// Times are wall-clock seconds. If `train.patience` may stop the training earlier, they are upper bounds; if it has
// stopped the run, and no override changes it, they are those of the run.
typedef struct tarn_duration {
  tarn_duration_source source;
  double seconds;            // of the whole training with its validations; negative: the training has no known limit
  double low, high;          // expected interval of `seconds`, if the load of the machine stays as it is
  double seconds_left;       // RUN: from the last line of the log; else the same as `seconds`
  double updates, epochs;    // of the whole training; 0: unknown
  double tokens_per_second;  // source and target tokens together
  // Validation's part of `seconds`. RUN: from the validations so far; PROBE and OPERATIONS: the loss only, without
  // translations and other uses of the model.
  double validation_seconds;
  double dynamics_seconds;  // likewise of exponents (dynamics.input); PROBE and OPERATIONS: 0, they are not included
} tarn_duration;

// "run", "probe", "operations"; NULL for another value.
TARN_API const char *tarn_duration_source_name(tarn_duration_source source);

// Forecasts the duration of the training of `options` (a description, overrides, threads) with its plan. `run`: its run
// directory, whose log is used if it has updates; NULL: none. A probe needs the memory of the plan while it runs. The
// forecast is based on operations if the data cannot be read or there is not enough memory, and for train.cache_frozen
// and ridge, whose time is not that of updates. Fails with USAGE, DATA, IO, NUMERIC or MEMORY.
TARN_API tarn_status tarn_train_duration(tarn_duration *duration, const tarn_train_options *options,
                                         const tarn_plan *plan, const char *run) TARN_CHECKED;

// A performance model of a training on many ranks (docs/scale.md), without running on them: step time, bytes sent,
// memory and efficiency, from the operations of the plan, the measured time of one rank, and the given network.
//
// The model follows communicator `mpi`. A message costs latency + bytes / bandwidth, a rank sends and receives at the
// same time, and calls cost as much as the algorithms of Thakur, Rabenseifner and Gropp, "Optimization of Collective
// Communication Operations in MPICH" (2005). With N ranks, latency a and bandwidth B:
//
//   log2 N      rounded up
//   word        w = a log2 N + 24 (N - 1) / B               the status word at the start of every call, gathered
//   exchange    e(m) = a (N - 1) + m (N - 1) / (N B)        pairwise: each rank gets all ranks' values of its share
//   gather      g(m) = a (N - 1) + m (N - 1) / (N B)        in a ring; for less than 512 KiB in total
//               a log2 N + m (N - 1) / (N B)                by doubling
//   all-gather  t(m) = k g(N m / k)                         m bytes of each rank to all, in k pieces, the number that
//                                                           fits those of all ranks and one more into 1 MiB
//
// In an update on N > 1 ranks each rank computes as much as a single rank, on its own batches. In addition it
//   - agrees on stopping, sums losses and sums norms, w + t(24) for each of the three, and gathers from all ranks which
//     gradients were written, one bit per parameter, and one per row of the tables with only rows in use sent:
//     w + t(bits / 8) for the parameters, and again for each of these tables
//   - sums the gradients in buckets. A sum of m bytes takes k = m / 1 MiB rounds, rounded up:
//     k (w + e(m / k) + w + g(m / k)), a reduce-scatter and an all-gather; with train.shard_optimiser
//     k (w + e(m / k)), and each rank then gathers the new weights, k (w + g(m / k)) (ZeRO stage 1: Rajbhandari et al.
//     2020, arXiv 1910.02054). A value has 4 bytes, or 2 with train.reduce: bf16; weights have those of their precision
//   - copies the values out of the gradients' memory, adds them and copies them back: 4 bytes per value / `adding`
// Of embedding tables that are not the output layer, only the rows in use are sent. If all ranks together look up R
// tokens, and p is the frequency of a row's token in the data, their expected number is the sum of 1 - (1 - p)^R over
// the rows.
//
// If sums overlap with the backward pass (`overlap`), a bucket can be sent when the backward pass has reached the
// lowest layer that uses one of its parameters, and buckets are sent one after another. With f the seconds of the
// forward pass, r_b the seconds until bucket b is complete, s_b its seconds on the network and v_b those to add it:
//   start_b = max(r_b + v_1 + ... + v_(b-1), end_(b-1)),   end_b = start_b + s_b + v_b
//   update = max(f + backward + v_1 + ... + v_n, end_n) + the small sums + the optimiser + the weights
// Buckets are sent in the order of the program: the uppermost layer first, then an output layer with its own weights,
// and embedding tables last. With train.accumulate only the last batch's backward pass overlaps. The time of the passes
// is divided among the layers by their operations. Without overlap all r_b are the end of the backward pass. As in the
// program (docs/ranks.md), sums overlap if ranks communicate over a link, but not with backskipping, on a device with
// its own memory, or between ranks of one machine (`one_machine`), whose sums go through shared memory: there the
// network takes no time. With sharded moments the optimiser takes 1 / N of its time.
//
// Not modelled: waiting for the slowest rank of each update, as batches differ a little in work; other traffic on the
// network; validation and saving; layers skipped or stopped in an update (LayerDrop, train.freeze).

enum { TARN_SCALE_RANKS = 1048576 };  // maximum number of ranks

typedef struct tarn_scale_options {
  const int *ranks;  // (count) numbers of ranks, 1 to TARN_SCALE_RANKS
  size_t count;
  double bandwidth;  // bytes per second that a rank sends, and receives at the same time; more than 0
  double latency;    // seconds per message in addition; 0 or more
  // Seconds of an update on one rank; 0: measured by a few seconds of updates or, if that is not possible, estimated
  // from operations like tarn_train_duration().
  double step_seconds;
  double optimiser_seconds;  // the optimiser's part of it; 0: as measured, or else unknown and not separated
  double adding;             // bytes of gradients per second that a rank copies out, adds and copies back; 0: measured
  int64_t vocab_size;        // as in tarn_plan_options; 0: read
  int one_machine;           // 1: all ranks run on one machine; bandwidth and latency are ignored
} tarn_scale_options;

// Fills in the defaults: 1 rank, a link of 1.25e9 bytes per second (10 Gbit/s) and 2e-5 seconds, the rest 0.
TARN_API void tarn_scale_default(tarn_scale_options *options);

// A part of the plan, in the plan's order; `predictors`, of backskipping, come last.
typedef struct tarn_scale_part {
  char label[96];
  int64_t values;  // gradients that may be summed in an update: all rows of tables, in use or not
  double forward_seconds, backward_seconds;  // of step_seconds; recomputation counts as backward
} tarn_scale_part;

// A number of ranks, with or without sharded moments. Bytes sent are those of gradients and weights, by each rank.
typedef struct tarn_scale_way {
  double step_seconds;
  double network_seconds;  // of all sums and weights on the network, without overlap
  double adding_seconds;
  double waiting_seconds;  // idle time of a rank
  double sent_bytes;
  double efficiency;         // tokens per second over those of one rank, divided by the ranks
  double tokens_per_second;  // of all ranks, source and target tokens
  size_t memory_bytes;       // of the rank that needs most: tarn_plan's total_bytes
  size_t optimiser_bytes;    // the optimiser's part of it
} tarn_scale_way;

typedef struct tarn_scale_point {
  int ranks;
  double used_values;   // gradients summed: for tables the expected number of rows in use
  double *part_values;  // [part_count] the same for each part
  tarn_scale_way whole, sharded;
} tarn_scale_point;

typedef struct tarn_scale {
  double bandwidth, latency;    // as given; infinite and 0 on one machine
  int one_machine;              // as given
  tarn_precision reduce;        // train.reduce
  int shards;                   // train.shard_optimiser
  int given;                    // 1: step_seconds was given; 0: measured, or estimated as `source` says
  tarn_duration_source source;  // PROBE or OPERATIONS
  double alone_seconds;         // an update of a single rank
  double step_seconds;          // computation of one of several ranks in an update, without the sums: its optimiser
                                // runs after the backward pass
  double optimiser_seconds;     // the optimiser's part of it; 0: not separated
  double adding;                // bytes a second
  double update_tokens;         // of one rank, source and target, in an average update
  int64_t values, weights;      // gradients that may be summed; trained parameters
  double weight_bytes;          // of the weights gathered by ranks with sharded moments
  int64_t marks;                // number of parameter tensors, trained or not
  int accumulate;               // batches per update: sums overlap with the last one only
  int overlap;                  // 1: sums overlap with the backward pass
  int64_t bucket;               // values per bucket
  int64_t round;                // bytes exchanged or gathered at a time
  tarn_scale_part *parts;       // (part_count)
  size_t part_count;
  tarn_scale_point *points;  // (count) one per number of ranks
  size_t count;
  struct tarn__scale_memory *own;  // tables and other memory, freed by close
} tarn_scale;

// Fills *scale for the training of `training` (description, overrides, threads) with `threads` threads per rank. Fails
// with USAGE for options out of range and for train.optimiser ridge, which makes no updates, and like tarn_plan_make()
// and tarn_train_duration().
TARN_API tarn_status tarn_scale_make(tarn_scale *scale, const tarn_train_options *training,
                                     const tarn_scale_options *options) TARN_CHECKED;
TARN_API void tarn_scale_close(tarn_scale *scale);

#ifdef __cplusplus
}
#endif
#endif
