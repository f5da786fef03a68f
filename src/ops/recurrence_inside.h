// The inside of a recurrence without a backward pass.
#ifndef TARN_OPS_RECURRENCE_INSIDE_H
#define TARN_OPS_RECURRENCE_INSIDE_H

#include "graph/graph.h"

// Makes the node of tarn__recurrence() with the result `states` keep what a backward pass would read: *gates, after
// their activation functions [R, directions * gates * hidden], and for an LSTM *cells [R, directions * hidden], else
// NULL. No other bit changes. If no such node made the tensor, both are NULL.
void tarn__recurrence_inside(tarn__graph *graph, const tarn__tensor *states, tarn__tensor **gates,
                             tarn__tensor **cells);

#endif
