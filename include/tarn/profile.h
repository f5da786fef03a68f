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
#ifndef TARN_PROFILE_H
#define TARN_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "tarn/export.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
