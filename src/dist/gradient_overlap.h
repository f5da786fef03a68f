// Sums gradients in a separate thread while the backward pass of an update's last batch still runs: a call is made as
// soon as the last node that adds to its gradients has run. The calls are those of tarn__gradient_sum_run(), in the
// same order, so the bits are the same, and ranks may choose independently.
//
// From begin to finish or stop the communicator belongs to the thread.
#ifndef TARN_DIST_GRADIENT_OVERLAP_H
#define TARN_DIST_GRADIENT_OVERLAP_H

#include "dist/gradient_sum.h"
#include "graph/graph.h"

typedef struct tarn__gradient_overlap tarn__gradient_overlap;

// Whether sums may begin before the end of the backward pass: not if the model has helpers, whose gradients come from
// elsewhere. On an asynchronous device the sums have a stream of their own.
bool tarn__gradient_overlap_possible(const tarn__model *model);

// *overlap stays NULL if it is useless: one rank, a model for which it is impossible, or ranks that share memory and
// compute with all processors (comm->apart).
tarn_status tarn__gradient_overlap_open(tarn__gradient_overlap **overlap, tarn__gradient_sum *sum) TARN_CHECKED;
void tarn__gradient_overlap_close(tarn__gradient_overlap **overlap);

// Call it before the graph of an update's last batch runs; its nodes are then reported to tarn__gradient_overlap_ran().
tarn_status tarn__gradient_overlap_begin(void *overlap, const tarn__graph *graph) TARN_CHECKED;
tarn_status tarn__gradient_overlap_ran(void *overlap, size_t nodes) TARN_CHECKED;
// Completes the sums; equals tarn__gradient_sum_run() if nothing has begun. Only the caller's own waiting counts as
// waiting for others.
tarn_status tarn__gradient_overlap_finish(tarn__gradient_overlap *overlap) TARN_CHECKED;
// Ends it after the current sum, because this rank has failed. Does nothing if nothing has begun.
void tarn__gradient_overlap_stop(tarn__gradient_overlap *overlap);

#endif
