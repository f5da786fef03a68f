// Weighted sums of rows by number:
//   weighted_rows           y[r] = the sum over j of gates[r, j] table[ids[r, j]], without the j whose id is -1
//   weighted_rows_backward  dgates[r, j] = dy[r] . table[ids[r, j]] (0 where the id is -1);
//                           dtable[ids[r, j]] += gates[r, j] dy[r]
//   weighted_rows_tangent   dy[r] = the sum over j of dgates[r, j] table[ids[r, j]] + gates[r, j] dtable[ids[r, j]]
// The table is a parameter, whose rows may be named any number of times, or a tensor, each of whose rows is named at
// most once (the experts' results for sorted rows); the gradient of unnamed rows of a tensor is not written.
#ifndef TARN_OPS_WEIGHTED_ROWS_H
#define TARN_OPS_WEIGHTED_ROWS_H

#include "ops/ops.h"

// y [R, d], of the graph's dtype; table [N, d]; ids I32 [R, k] and gates F32 (F64 in the reference in double) [R, k].
tarn__tensor *tarn__weighted_rows(tarn__graph *graph, tarn__tensor *table, tarn__tensor *ids, tarn__tensor *gates);

// Internal.
enum { TARN__WEIGHTED_TABLE, TARN__WEIGHTED_IDS, TARN__WEIGHTED_GATES };
// Backward, with these and DY. Out: dgates or NULL, dtable of a tensor or NULL; dparam: the table.
enum { TARN__WEIGHTED_DY = 3 };
enum { TARN__WEIGHTED_DGATES, TARN__WEIGHTED_DTABLE };
// Tangent, with the same three: tangents of table and gates, each NULL if zero.
enum { TARN__WEIGHTED_TANGENT_TABLE = 3, TARN__WEIGHTED_TANGENT_GATES };

#endif
