// The device memory in which a decoder runs its graphs.
#ifndef TARN_DECODE_WORKSPACE_H
#define TARN_DECODE_WORKSPACE_H

#include "base/region.h"
#include "graph/graph.h"
#include "ops/ops.h"

// Memory of a graph; grows, never shrinks. Zero-initialise.
typedef struct tarn__workspace {
  void *memory;
  size_t bytes;
} tarn__workspace;

// A region whose blocks are memory of a device.
tarn__region tarn__workspace_region(const tarn__device *device);

// Plans a finished graph, whose building began at `begin` (tarn__profile_clock()), allocates its memory and runs it.
tarn_status tarn__workspace_run(tarn__workspace *space, tarn__region *region, tarn__graph *graph,
                                const tarn__exec *exec, double begin) TARN_CHECKED;
// The results of a graph that has run, as floats; both NULL if there are none.
tarn_status tarn__workspace_top(tarn__graph *graph, const tarn__top *top, int32_t **ids, float **values) TARN_CHECKED;
void tarn__workspace_free(tarn__workspace *space, tarn__region *region);

#endif
