#include "task/next_token.h"

#include <math.h>

int64_t tarn__next_token_predictions(const tarn__batch *batch) { return batch->target.rows; }

double tarn__next_token_blind_nll(int64_t words) { return log((double)words); }
