// The cost of recomputing the frozen values of a model (tarn/process.h).
#ifndef TARN_STORE_REGENERATE_H
#define TARN_STORE_REGENERATE_H

#include "model/model.h"

// Arithmetic steps, each about a nanosecond, and temporary bytes.
typedef struct tarn__regenerate_cost {
  double operations, bytes;
} tarn__regenerate_cost;

// For one parameter, and for all frozen parameters outside of mapped files, with the pool's number of threads: bytes
// are those of the largest that can be computed at the same time.
tarn__regenerate_cost tarn__regenerate_param(const tarn__param *param);
tarn__regenerate_cost tarn__regenerate_all(const tarn__model *model);

// Whether a model from a file stays within the limits of the process. `recipes`: frozen values must be computed. Fails
// with MEMORY or DATA and a line that begins with the file, says the cost and names the option that raises the limit.
tarn_status tarn__regenerate_check(const tarn__model *model, const char *file, bool recipes) TARN_CHECKED;

// tarn__model_initialise_frozen() with the progress reports required by the limits.
tarn_status tarn__regenerate(tarn__model *model, uint64_t seed, const char *file) TARN_CHECKED;

#endif
