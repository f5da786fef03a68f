// Shared by the files of the op sentence_mean: indices of inputs. PREVIOUS is the gradient of x so far, whose memory
// the output shares, or NULL.
#ifndef TARN_OPS_SENTENCE_MEAN_H
#define TARN_OPS_SENTENCE_MEAN_H

#include "graph/graph.h"

enum { TARN__SENTENCE_MEAN_X, TARN__SENTENCE_MEAN_OFFSETS };
enum { TARN__SENTENCE_MEAN_DY = TARN__SENTENCE_MEAN_X, TARN__SENTENCE_MEAN_PREVIOUS = TARN__SENTENCE_MEAN_OFFSETS + 1 };

#endif
