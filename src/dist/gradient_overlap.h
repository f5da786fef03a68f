// Sums of gradients while the backward pass of an update's last batch still runs, in a thread of their own: a call is
// made as soon as the last node has run that adds to what it sums. The calls are those of tarn__gradient_sum_run(), in
// their order, so the bits are the same, and some ranks may do it while others do not.
//
// From begin to finish or stop the communicator is the thread's.
#ifndef TARN_DIST_GRADIENT_OVERLAP_H
#define TARN_DIST_GRADIENT_OVERLAP_H

#include "dist/gradient_sum.h"
#include "graph/graph.h"

typedef struct tarn__gradient_overlap tarn__gradient_overlap;

// Whether sums may begin before the backward pass has ended: not where the model has helpers, whose gradients come from
// elsewhere. A device that answers before it has done its work sums on a stream of their own.
bool tarn__gradient_overlap_possible(const tarn__model *model);

// *overlap stays NULL where it serves nothing: one rank, a model with which it is not possible, or ranks that share
// their rooms and compute with all processors (comm->apart).
tarn_status tarn__gradient_overlap_open(tarn__gradient_overlap **overlap, tarn__gradient_sum *sum) TARN_CHECKED;
void tarn__gradient_overlap_close(tarn__gradient_overlap **overlap);

// Before the graph of an update's last batch runs; then tarn__gradient_overlap_ran() is told of its nodes.
tarn_status tarn__gradient_overlap_begin(void *overlap, const tarn__graph *graph) TARN_CHECKED;
tarn_status tarn__gradient_overlap_ran(void *overlap, size_t nodes) TARN_CHECKED;
// After it the gradients are summed, as by tarn__gradient_sum_run(), which it is where nothing has begun. Waiting for
// others counts only as far as the caller had to wait for it.
tarn_status tarn__gradient_overlap_finish(tarn__gradient_overlap *overlap) TARN_CHECKED;
// Ends it after the sum that is under way, because this rank has failed. Does nothing where nothing has begun.
void tarn__gradient_overlap_stop(tarn__gradient_overlap *overlap);

#endif
