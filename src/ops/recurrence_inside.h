// For somebody who looks inside a recurrence that has no backward pass.
#ifndef TARN_OPS_RECURRENCE_INSIDE_H
#define TARN_OPS_RECURRENCE_INSIDE_H

#include "graph/graph.h"

// Lets the node of tarn__recurrence() whose result `states` are keep what a backward pass would read: *gates, behind
// their functions [R, directions * gates * hidden], and *cells of an LSTM [R, directions * hidden], else NULL. No other
// bit changes. Of a tensor that no such node made, both are NULL.
void tarn__recurrence_inside(tarn__graph *graph, const tarn__tensor *states, tarn__tensor **gates,
                             tarn__tensor **cells);

#endif
