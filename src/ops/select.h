// Internals of selecting rows of a matrix by number.
//   select_rows           in: x, rows          out: y
//   select_rows_backward  in: dy, rows, (dx)   out: dx; with `previous` it adds to what is there
#ifndef TARN_OPS_SELECT_H
#define TARN_OPS_SELECT_H

// Backward: PREVIOUS is the gradient of x so far, whose memory the output shares, or NULL.
enum { TARN__SELECT_X = 0, TARN__SELECT_ROWS = 1 };
enum { TARN__SELECT_DY = 0, TARN__SELECT_PREVIOUS = 2 };

#endif
